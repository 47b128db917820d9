// One campaign in the operator's console: what it is, where it stands at both servers, and what can be done with it.

import { chart } from "../charts.js";
import { htmlElement } from "../elements.js";
import { explore } from "../explore.js";
import { UNKNOWN, known, put, tableParts } from "./putting.js";
import { $, ask } from "./shared.js";
import { Sites } from "./sites.js";
/** @import { Mark } from "../charts.js" */
/** @import { Doing, Field } from "./doing.js" */

const STATES = [
  ["State", "state"],
  ["Uploads", "uploads"],
  ["Operator agreed", "operator_agreed"],
  ["Sealed", "sealed_uploads"],
  ["Unmatched", "unmatched"],
  ["Rejected", "rejected"],
  ["Excluded and kept", "excluded_stored"],
  ["Evaluation", "phase"],
  ["Progress", "progress"],
  ["Trouble", "troubles"],
];

/** What does not go on, since when, and why.
 * @param {any} status
 */
function troubles(status) {
  const held = [status.on_hold, status.peer_rolled_back].filter(Boolean);
  const each = (status.troubles ?? []).map(
    (/** @type {any} */ one) => `${one.wave ? `wave ${one.wave} ` : ""}${one.what} since ${one.since}: ${one.detail}`,
  );
  return [...held, ...each].join("; ") || "–";
}

/** What one operator's agreement does, by whose servers these are and what the other operator has done.
 * @param {number[]} roles
 * @param {any[]} statuses
 */
function sealingText(roles, statuses) {
  const sealing =
    "Both servers freeze the uploads, keep those that reached both of them, and seal that set. Afterwards nobody can upload or withdraw anything.";
  if (roles.length === 2)
    return `You operate both servers, so you agree for both, and the campaign is sealed now. ${sealing}`;
  const [own] = roles;
  if (statuses[1 - own]?.operator_agreed)
    return `The other operator has agreed already, so your agreement seals the campaign now. ${sealing}`;
  return `Your agreement is recorded at server ${own}; nothing is sealed yet, and uploads continue. Until the other operator agrees as well, you can withdraw your agreement. As soon as both operators have agreed, the campaign is sealed. ${sealing}`;
}

/** @type {Record<string, { title: string, text: string, yes: string, fields?: Field[] }>} */
const ACTS = {
  seal: {
    title: "Agree to seal",
    text: "",
    yes: "Agree to seal",
    fields: [{ name: "typed", label: "The campaign's title, to confirm" }],
  },
  retract: {
    title: "Withdraw your agreement",
    text: "The campaign is not sealed until both operators agree. Uploads continue.",
    yes: "Withdraw it",
  },
  reopen: {
    title: "Unfreeze",
    text: "A sealing stopped half-way and left uploads frozen. Unfreezing lets uploads continue at both servers. What is sealed stays sealed.",
    yes: "Unfreeze it",
  },
  confirm: {
    title: "Discard excluded uploads",
    text: "Uploads that only one server had, or whose keys failed the check, were excluded. Discarding erases them. This cannot be undone.",
    yes: "Discard them",
  },
};

export class CampaignPart {
  /** @param {Doing} doing */
  constructor(doing) {
    this.sites = new Sites(doing);
    this.id = "";
    /** @type {{ roles: number[], statuses: any[] }} */
    this.found = { roles: [], statuses: [] };
    for (const [path, about] of Object.entries(ACTS))
      $(path).onclick = () => {
        const text = path === "seal" ? sealingText(this.found.roles, this.found.statuses) : about.text;
        doing.sure({ ...about, text, path, body: { id: this.id } });
      };
  }

  /** @param {string} id */
  async show(id) {
    const found = await ask("campaign", { id }),
      { about, statuses, roles, seen, budgets, next } = found;
    this.id = id;
    this.found = found;
    $("campaign").hidden = false;
    $("campaign-head").textContent = about?.title ?? id;
    if ($("next").textContent !== `Next: ${next}`) $("next").textContent = `Next: ${next}`;
    put("facts", [about, budgets, roles], () => this.facts(about, budgets, roles));
    $("page").href = `/api/page?id=${encodeURIComponent(id)}`;
    $("page").hidden = roles.length < 2;
    put("states", statuses, () => this.states(statuses));
    this.waves(statuses);
    this.sites.show(id, found);
    put("uploads", [id, seen, innerWidth], () => [this.history(seen, about)]);
    this.enable(statuses, roles);
  }

  /**
   * @param {any[]} statuses
   * @param {number[]} roles
   */
  enable(statuses, roles) {
    const states = statuses.map((s) => s.state),
      mine = roles.map((role) => statuses[role]);
    $("seal").disabled = states.some((s) => s === undefined) || states.every((s) => ["checking", "sealed"].includes(s));
    $("retract").disabled = !mine.some((s) => s.operator_agreed && s.state === "open");
    $("reopen").disabled = !states.includes("frozen") || states.some((s) => ["checking", "sealed"].includes(s));
    $("confirm").disabled = !mine.some((s) => s.excluded_stored > 0);
  }

  /**
   * @param {any} about
   * @param {any[]} budgets
   * @param {number[]} roles
   */
  facts(about, budgets, roles) {
    const spent = roles.map((role) => {
      const b = budgets[role];
      return b ? `${b.spent} of ${b.epsilon + b.reserve} spent, ${b.remaining} left` : UNKNOWN;
    });
    const same = spent.every((text) => text === spent[0]);
    const rows = [
      ["Question", known(about?.question)],
      ["Id", this.id],
      ["Digest", known(about?.digest)],
      ["Epsilon", about ? `${about.epsilon} for the curve, ${about.total_epsilon} in all` : UNKNOWN],
      ["Budget", same ? spent[0] : roles.map((role, i) => `server ${role}: ${spent[i]}`).join("; ")],
      ["Uploads", about ? `at least ${about.min_uploads}, at most ${about.max_uploads}` : UNKNOWN],
      ["Admission", known(about?.admission)],
      ["Accepted", about ? `from ${about.opens ?? "its creation"} until ${about.closes ?? "it is sealed"}` : UNKNOWN],
      ["Keys are checked", about ? (about.check_keys ? "yes" : "no") : UNKNOWN],
    ];
    return rows.flatMap(([name, value]) => [
      htmlElement("dt", {}, name),
      htmlElement("dd", name === "Question" ? { lang: "", dir: "auto" } : {}, value),
    ]);
  }

  /** @param {any[]} statuses */
  states(statuses) {
    const value = (/** @type {any} */ status, /** @type {string} */ key) => {
      if (!("state" in status))
        return key === "state" && status.problem !== "peer-unavailable" ? status.detail : UNKNOWN;
      if (key === "operator_agreed") return status.operator_agreed ? "yes" : "not yet";
      if (key === "troubles") return troubles(status);
      if (key === "progress") return status.progress == null ? "–" : `${Math.round(100 * status.progress)} %`;
      return status[key] == null ? "–" : String(status[key]);
    };
    return tableParts(
      ["", ...statuses.map((_, i) => `Server ${i}`)],
      STATES.map(([name, key]) => [
        name,
        ...statuses.map((status) => htmlElement("span", { "data-state": key }, value(status, key))),
      ]),
      { named: true },
    );
  }

  // Each wave with its state and uploads at both servers, the newest first; of a campaign that has several.
  /** @param {any[]} statuses */
  waves(statuses) {
    /** @type {number[]} */
    const numbers = [...new Set(statuses.flatMap((s) => (s.waves ?? []).map((/** @type {any} */ w) => w.number)))];
    const is = statuses.some((s) => s.planned_waves != null) || numbers.length > 1;
    $("waves-part").hidden = !is;
    if (!is) return;
    const of = (/** @type {any} */ status, /** @type {number} */ number) => {
      if (!status.waves) return UNKNOWN;
      const wave = status.waves.find((/** @type {any} */ one) => one.number === number);
      if (!wave) return "not begun";
      const phase = wave.phase == null ? "" : `, ${wave.phase} ${Math.round(100 * (wave.progress ?? 0))} %`;
      return `${wave.state}, ${wave.uploads} uploads${wave.rejected ? `, ${wave.rejected} rejected` : ""}${phase}`;
    };
    put(
      "waves",
      statuses.map((s) => s.waves ?? null),
      () =>
        tableParts(
          ["Wave", ...statuses.map((_, i) => `Server ${i}`)],
          numbers.toSorted((a, b) => b - a).map((n) => [String(n), ...statuses.map((status) => of(status, n))]),
          { named: true },
        ),
    );
  }

  /**
   * @param {(number | null)[][]} seen
   * @param {any} about
   */
  history(seen, about) {
    const start = seen[0]?.[0] ?? 0;
    const minutes = (/** @type {(number | null)[]} */ [time]) => ((time ?? 0) - start) / 60;
    const lines = [1, 2].map((at) => seen.flatMap((row) => (row[at] == null ? [] : [[minutes(row), row[at] ?? 0]])));
    const most = 1.08 * Math.max(1, about?.min_uploads ?? 1, ...lines.flat().map(([, y]) => y));
    /** @type {Mark[]} */
    const marks = lines.map((points, series) => ({ kind: "line", series, dashed: series === 1, points }));
    if (about) marks.push({ kind: "rule", y: about.min_uploads, label: `at least ${about.min_uploads}` });
    const last = seen.at(-1);
    const figure = chart({
      title: "Uploads over time",
      description: `Uploads stored at each server since the console was started; at least ${about?.min_uploads ?? UNKNOWN} are needed.`,
      x: { min: 0, max: Math.max(1, last ? minutes(last) : 1), label: "time since the console was started (minutes)" },
      y: { min: 0, max: most, label: "uploads" },
      marks,
      width: Math.max(280, $("uploads").clientWidth),
      height: 260,
      table: {
        name: "Numbers of the uploads",
        columns: ["minutes", "server 0", "server 1"],
        rows: seen.map((row) => [minutes(row), known(row[1]), known(row[2])]),
      },
    });
    return explore(figure, {
      title: "uploads over time",
      reading: {
        at: seen.length ? seen.map(minutes) : [0],
        start: Math.max(0, seen.length - 1),
        say: (i) => `after ${Math.round(10 * minutes(seen[i] ?? [start])) / 10} minutes`,
        format: String,
        rows: [0, 1].map((series) => ({
          name: `server ${series}`,
          series,
          values: seen.map((row) => row[series + 1]),
        })),
      },
    });
  }
}
