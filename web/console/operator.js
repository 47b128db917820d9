// The operator's console: both servers at a glance, one campaign in detail, sealing with a typed confirmation.

import { chart, htmlElement } from "../charts.js";
import { $, Address, ask, complain, tell } from "./shared.js";

const EVERY_MS = 3000;
const UNKNOWN = "unknown";
const SOON_DAYS = 30;

const cell = (value, of = "td") => htmlElement(of, of === "th" ? { scope: "col" } : {}, value);
const known = (value) => (value == null ? UNKNOWN : String(value));
const stateOf = (text) => htmlElement("span", { class: `state${text === UNKNOWN ? " unknown" : ""}` }, text);

function certificateText(end) {
  if (!end) return `certificate ends: ${UNKNOWN}`;
  const days = Math.floor((Date.parse(end) - Date.now()) / 86400000);
  return `certificate ends ${end}, in ${days} days${days < SOON_DAYS ? ": renew it" : ""}`;
}

class OperatorPage {
  constructor() {
    this.address = new Address({});
  }

  start() {
    $("no").onclick = () => ($("sure").hidden = true);
    $("seal").onclick = () => this.sure("seal");
    $("confirm").onclick = () => this.sure("confirm");
    this.loop();
  }

  async loop() {
    await this.refresh();
    setTimeout(() => this.loop(), EVERY_MS);
  }

  async refresh() {
    try {
      const found = await ask("overview");
      this.overview(found);
      if (this.address.values.id) await this.campaign(this.address.values.id);
      complain(null);
      $("when").textContent = `As of ${new Date().toLocaleTimeString()}`;
    } catch (error) {
      complain(error);
      $("when").textContent = "What is shown below is old.";
    }
  }

  overview({ servers, campaigns, done }) {
    this.servers = servers;
    $("servers").replaceChildren(...servers.map((server) => this.server(server)));
    const head = ["Title", ...servers.map((s) => `Server ${s.number}`), "Next step"];
    const rows = campaigns.map((campaign) => this.row(campaign));
    const empty = servers.some((s) => s.health === UNKNOWN) ? UNKNOWN : "none";
    const nothing = htmlElement("tr", {}, htmlElement("td", { colspan: String(head.length) }, empty));
    $("campaigns").replaceChildren(
      htmlElement("thead", {}, htmlElement("tr", {}, ...head.map((text) => cell(text, "th")))),
      htmlElement("tbody", {}, ...(rows.length ? rows : [nothing])),
    );
    $("done").replaceChildren(
      ...(done.length ? done.map((d) => `${d.time}: ${d.what}`) : ["nothing"]).map((text) =>
        htmlElement("li", {}, text),
      ),
    );
  }

  server({ number, url, health, detail, certificate }) {
    const made = htmlElement("div", {
      class: `panel${health === "ready" ? " good" : " bad"}`,
      "data-server": String(number),
    });
    made.append(htmlElement("h3", {}, `Server ${number}`), htmlElement("p", { class: "mono" }, url));
    made.append(
      htmlElement("p", {}, stateOf(health), ` ${detail}`),
      htmlElement("p", {}, certificateText(certificate)),
    );
    return made;
  }

  row({ id, title, servers, next }) {
    const open = htmlElement("button", { type: "button", "data-id": id }, title || id);
    open.onclick = () => this.open(id);
    const at = servers.map((row, i) => {
      if (row) return `${row.state}, ${row.uploads} uploads`;
      return this.servers[i].health === UNKNOWN ? UNKNOWN : "not there";
    });
    return htmlElement(
      "tr",
      {},
      cell(open),
      ...at.map((text) => cell(text === UNKNOWN ? stateOf(text) : text)),
      cell(next),
    );
  }

  async open(id) {
    this.address.set({ id });
    $("sure").hidden = true;
    try {
      await this.campaign(id);
      $("campaign-head").focus();
    } catch (error) {
      complain(error);
    }
  }

  async campaign(id) {
    const { about, statuses, seen, budgets, next } = await ask("campaign", { id });
    this.about = about;
    $("campaign").hidden = false;
    $("campaign-head").textContent = about?.title ?? id;
    $("next").textContent = `Next: ${next}`;
    $("facts").replaceChildren(...this.facts(about, budgets));
    $("page").href = `/api/page?id=${encodeURIComponent(id)}`;
    this.states(statuses);
    this.perSite(statuses);
    $("uploads").replaceChildren(this.history(seen, about));
    const states = statuses.map((s) => s.state);
    $("seal").disabled = states.some((s) => s === undefined) || states.every((s) => s === "sealed");
    $("confirm").disabled = !statuses.some((s) => s.kept > 0);
  }

  facts(about, budgets) {
    const spent = budgets.map((b) => (b ? `${b.spent} of ${b.reserve}` : UNKNOWN));
    const rows = [
      ["Question", known(about?.question)],
      ["Digest", known(about?.digest)],
      ["Epsilon", about ? `${about.epsilon} for the curve, ${about.total_epsilon} in all` : UNKNOWN],
      ["Reserve spent", spent[0] === spent[1] ? spent[0] : `server 0: ${spent[0]}, server 1: ${spent[1]}`],
      ["Uploads", about ? `at least ${about.min_uploads}, at most ${about.max_uploads}` : UNKNOWN],
      ["Admission", known(about?.admission)],
      ["Open", about ? `${about.opens ?? "at once"} to ${about.closes ?? "it is sealed"}` : UNKNOWN],
      ["Keys are checked", about ? (about.checked ? "yes" : "no") : UNKNOWN],
    ];
    return rows.flatMap(([name, value]) => [htmlElement("dt", {}, name), htmlElement("dd", {}, value)]);
  }

  states(statuses) {
    const names = [
      ["State", "state"],
      ["Uploads", "uploads"],
      ["Operator's word", "agreed"],
      ["Sealed", "count"],
      ["Left out", "orphans"],
      ["Still kept of these", "kept"],
      ["Evaluation", "phase"],
      ["Progress", "progress"],
    ];
    const value = (status, key) => {
      if (!("state" in status))
        return key === "state" ? (status.problem === "peer-unavailable" ? UNKNOWN : status.detail) : UNKNOWN;
      if (key === "agreed") return status.agreed ? "given" : "not yet";
      if (key === "progress") return status.progress == null ? "–" : `${Math.round(100 * status.progress)} %`;
      return status[key] == null ? "–" : String(status[key]);
    };
    const head = htmlElement("tr", {}, cell("", "td"), ...statuses.map((_, i) => cell(`Server ${i}`, "th")));
    const rows = names.map(([name, key]) =>
      htmlElement(
        "tr",
        {},
        htmlElement("th", { scope: "row" }, name),
        ...statuses.map((s) => htmlElement("td", { "data-key": key }, value(s, key))),
      ),
    );
    $("states").replaceChildren(htmlElement("thead", {}, head), htmlElement("tbody", {}, ...rows));
  }

  // Where campaigns have sites of their own: uploads of each against its quota.
  perSite(statuses) {
    const found = statuses.find((s) => Array.isArray(s.sites))?.sites;
    if (!found) return $("sites").replaceChildren();
    const rows = found.flatMap(({ name, uploads, quota }) => {
      const meter = htmlElement("meter", { min: "0", max: String(quota ?? uploads), "aria-label": String(name) });
      meter.value = uploads;
      return [
        htmlElement("span", {}, String(name)),
        meter,
        htmlElement("span", {}, `${uploads} of ${quota ?? "any number"}`),
      ];
    });
    return $("sites").replaceChildren(htmlElement("h3", {}, "Sites"), htmlElement("div", { class: "meter" }, ...rows));
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
      width: Math.min(820, Math.max(320, innerWidth - 32)),
      height: 260,
      table: {
        name: "Numbers of the uploads",
        columns: ["minutes", "server 0", "server 1"],
        rows: seen.map((row) => [minutes(row), known(row[1]), known(row[2])]),
      },
    });
  }

  sure(what) {
    const seal = what === "seal";
    $("sure").hidden = false;
    $("title-field").hidden = !seal;
    $("typed").value = $("sure-problem").textContent = "";
    $("sure-text").textContent = seal
      ? "Sealing fixes the set of uploads for good. Nothing can be uploaded or withdrawn afterwards."
      : "Uploads that only one server had were left out. Erasing them cannot be undone.";
    $("yes").textContent = seal ? "Seal it" : "Erase them";
    $("yes").onclick = () => this.act(what);
    (seal ? $("typed") : $("yes")).focus();
  }

  async act(what) {
    $("yes").disabled = true;
    try {
      await tell(
        what,
        what === "seal" ? { id: this.address.values.id, title: $("typed").value } : { id: this.address.values.id },
      );
      $("sure").hidden = true;
      await this.refresh();
    } catch (error) {
      $("sure-problem").textContent = error.message; // beside the button: the next look at the servers would clear it
    }
    $("yes").disabled = false;
  }
}

new OperatorPage().start();
