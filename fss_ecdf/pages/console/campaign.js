// One campaign in the operator's console: what it is, where it stands at both servers, and what can be done with it.

import { chart } from "../charts.js";
import { htmlElement } from "../elements.js";
import { UNKNOWN, known, put, tableParts } from "./putting.js";
import { $, ask } from "./shared.js";
import { Sites } from "./sites.js";

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

/** What does not go on, since when, and why. */
function troubles(status) {
  const held = [status.on_hold, status.peer_rolled_back].filter(Boolean);
  const each = (status.troubles ?? []).map(
    (one) => `${one.wave ? `wave ${one.wave} ` : ""}${one.what} since ${one.since}: ${one.detail}`,
  );
  return [...held, ...each].join("; ") || "–";
}

const ACTS = {
  seal: {
    title: "Seal",
    text: "Both servers freeze, agree on the uploads that reached both, and fix that set for good. Nothing can be uploaded or withdrawn afterwards.",
    yes: "Seal it",
    fields: [{ name: "typed", label: "The campaign's title, to confirm" }],
  },
  retract: {
    title: "Take the word back",
    text: "It will not be sealed until you say so again. Uploads go on.",
    yes: "Take it back",
  },
  reopen: {
    title: "Reopen",
    text: "A sealing stopped half-way and left uploads frozen. Reopening lets uploads go on at both servers; nothing that is fixed is undone.",
    yes: "Reopen it",
  },
  confirm: {
    title: "Erase what was left out",
    text: "Uploads that only one server had, or whose keys were not well made, were left out. Erasing them cannot be undone.",
    yes: "Erase them",
  },
};

export class CampaignPart {
  constructor(doing) {
    this.sites = new Sites(doing);
    for (const [path, about] of Object.entries(ACTS))
      $(path).onclick = () => doing.sure({ ...about, path, body: { id: this.id } });
  }

  async show(id) {
    const found = await ask("campaign", { id }),
      { about, statuses, roles, seen, budgets, next } = found;
    this.id = id;
    $("campaign").hidden = false;
    $("campaign-head").textContent = about?.title ?? id;
    if ($("next").textContent !== `Next: ${next}`) $("next").textContent = `Next: ${next}`;
    put("facts", [about, budgets, roles], () => this.facts(about, budgets, roles));
    $("page").href = `/api/page?id=${encodeURIComponent(id)}`;
    $("page").hidden = roles.length < 2;
    put("states", statuses, () => this.states(statuses));
    this.sites.show(id, found);
    put("uploads", [id, seen], () => [this.history(seen, about)]);
    this.enable(statuses, roles);
  }

  enable(statuses, roles) {
    const states = statuses.map((s) => s.state),
      mine = roles.map((role) => statuses[role]);
    $("seal").disabled = states.some((s) => s === undefined) || states.every((s) => ["checking", "sealed"].includes(s));
    $("retract").disabled = !mine.some((s) => s.operator_agreed && s.state === "open");
    $("reopen").disabled = !states.includes("frozen") || states.some((s) => ["checking", "sealed"].includes(s));
    $("confirm").disabled = !mine.some((s) => s.excluded_stored > 0);
  }

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
      ["Taken", about ? `from ${about.opens ?? "its creation"} until ${about.closes ?? "it is sealed"}` : UNKNOWN],
      ["Keys are checked", about ? (about.check_keys ? "yes" : "no") : UNKNOWN],
    ];
    return rows.flatMap(([name, value]) => [htmlElement("dt", {}, name), htmlElement("dd", {}, value)]);
  }

  states(statuses) {
    const value = (status, key) => {
      if (!("state" in status))
        return key === "state" && status.problem !== "peer-unavailable" ? status.detail : UNKNOWN;
      if (key === "operator_agreed") return status.operator_agreed ? "yes" : "not yet";
      if (key === "troubles") return troubles(status);
      if (key === "progress") return status.progress == null ? "–" : `${Math.round(100 * status.progress)} %`;
      return status[key] == null ? "–" : String(status[key]);
    };
    const cell = (status, key) => htmlElement("span", { "data-state": key }, value(status, key));
    return tableParts(
      ["", ...statuses.map((_, i) => `Server ${i}`)],
      STATES.map(([name, key]) => [name, ...statuses.map((status) => cell(status, key))]),
      { named: true },
    );
  }

  history(seen, about) {
    const start = seen.length ? seen[0][0] : 0;
    const minutes = ([time]) => (time - start) / 60;
    const lines = [1, 2].map((at) => seen.filter((row) => row[at] != null).map((row) => [minutes(row), row[at]]));
    const most = 1.08 * Math.max(1, about?.min_uploads ?? 1, ...lines.flat().map(([, y]) => y));
    const marks = lines.map((points, series) => ({ kind: "line", series, dashed: series === 1, points }));
    if (about) marks.push({ kind: "rule", y: about.min_uploads, label: `at least ${about.min_uploads}` });
    return chart({
      title: "Uploads over time",
      description: `Uploads stored at each server since the console was started; at least ${about?.min_uploads ?? UNKNOWN} are needed.`,
      x: { min: 0, max: Math.max(1, seen.length ? minutes(seen.at(-1)) : 1), label: "minutes" },
      y: { min: 0, max: most, label: "uploads" },
      marks,
      series: [
        ["server 0", 0],
        ["server 1", 1],
      ],
      width: Math.min(820, Math.max(280, innerWidth - 32)),
      height: 260,
      table: {
        name: "Numbers of the uploads",
        columns: ["minutes", "server 0", "server 1"],
        rows: seen.map((row) => [minutes(row), known(row[1]), known(row[2])]),
      },
    });
  }
}
