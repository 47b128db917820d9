// The operator's console: both servers at a glance, one campaign in detail, what operators did.

import { htmlElement } from "../elements.js";
import { CampaignPart } from "./campaign.js";
import { Doing } from "./doing.js";
import { Listing } from "./listing.js";
import { UNKNOWN, button, put, stateOf, tableParts } from "./putting.js";
import { $, Address, ask, complain, messageOf } from "./shared.js";

const EVERY_MS = 3000;
const SOON_DAYS = 30;
const CALM = ["nothing to do", "wait for uploads", "analysts can ask", "being sealed"];

/** @param {string | null} end */
function certificateText(end) {
  if (!end) return `certificate ends: ${UNKNOWN}`;
  const days = Math.floor((Date.parse(end) - Date.now()) / 86400000);
  return `certificate ends ${end}, in ${days} days${days < SOON_DAYS ? ": renew it" : ""}`;
}

class OperatorPage {
  constructor() {
    this.address = new Address({});
    this.part = new CampaignPart(new Doing(() => this.refresh()));
    this.campaigns = new Listing("campaigns");
    /** @type {any[]} */
    this.servers = [];
  }

  start() {
    $("log-ask").onclick = () => this.log();
    $("log-server").onchange = () => this.log();
    $("all-campaigns").onclick = () => this.choose("");
    window.addEventListener("hashchange", () => {
      this.address.read();
      this.choose(this.address.values.id ?? "");
    });
    this.loop();
  }

  async loop() {
    await this.refresh();
    setTimeout(() => this.loop(), EVERY_MS);
  }

  async refresh() {
    try {
      this.overview(await ask("overview"));
      if (this.address.values.id) await this.part.show(this.address.values.id);
      complain(null);
      $("when").textContent = `As of ${new Date().toLocaleTimeString()}`;
    } catch (error) {
      complain(error);
      $("when").textContent = "What is shown below is old.";
    }
  }

  /** @param {{ servers: any[], campaigns: any[], done: any[] }} found */
  overview({ servers, campaigns, done }) {
    this.servers = servers;
    put("servers", servers, () => servers.map((server) => this.card(server)));
    const mine = servers.filter((s) => s.mine).map((s) => s.number);
    put("log-server", mine, () => mine.map((number) => new Option(`Server ${number}`, number)));
    this.campaigns.show(
      [servers.map((s) => s.listed), campaigns, this.address.values.id ?? ""],
      ["Title", ...servers.map((s) => `Server ${s.number}`), "Next step"],
      () => campaigns.map((campaign) => this.row(campaign)),
      servers.some((s) => s.mine && !s.listed) ? UNKNOWN : "none",
    );
    put("done", done, () =>
      (done.length ? done.map((d) => `${d.time}: ${d.what}`) : ["nothing"]).map((text) => htmlElement("li", {}, text)),
    );
  }

  /** @param {any} server */
  card({ number, url, mine, health, detail, certificate }) {
    const made = htmlElement("div", {
      class: `panel${health === "ready" ? " good" : " bad"}`,
      "data-server": String(number),
    });
    made.append(
      htmlElement("h3", {}, `Server ${number}${mine ? "" : ", of the other organisation"}`),
      htmlElement("p", { class: "mono" }, url ?? UNKNOWN),
      htmlElement("p", {}, stateOf(health), ` ${detail}`),
      htmlElement("p", {}, certificateText(certificate)),
    );
    return made;
  }

  /** @param {any} campaign */
  row({ id, title, servers, next }) {
    const text = htmlElement("span", { class: "short", lang: "", dir: "auto", title: title || id }, title || id);
    const open = button(text, id, "", () => this.open(id));
    open.dataset.id = id;
    if (id === this.address.values.id) open.setAttribute("aria-current", "true");
    /** @type {string[]} */
    const at = servers.map((/** @type {any} */ row, /** @type {number} */ i) => {
      if (row) return `${row.state}, ${row.uploads} uploads`;
      return this.servers[i].listed ? "not there" : UNKNOWN;
    });
    const attention = !CALM.some((words) => next.startsWith(words));
    return {
      text: `${title} ${id} ${at.join(" ")} ${next}`,
      sort: [title, ...at, next],
      cells: [open, ...at, next],
      attention,
    };
  }

  /** @param {string} id */
  async open(id) {
    this.address.set({ id });
    await this.choose(id);
    if (id) $("campaign-head").focus();
  }

  // Shows a campaign, or none.
  /** @param {string} id */
  async choose(id) {
    if ((this.address.values.id ?? "") !== id) this.address.set({ id });
    if (!id) {
      $("campaign").hidden = true;
      $("campaigns-head").focus();
      return;
    }
    try {
      await this.part.show(id);
      complain(null);
    } catch (error) {
      complain(error);
    }
  }

  async log() {
    const server = $("log-server").value;
    try {
      const { chain_valid: valid, actions } = await ask("actions", { server });
      const last = actions.at(-1);
      $("log-whole").textContent = valid
        ? `Server ${server}: the log holds together${last ? `; its last digest is ${last.digest}` : ""}.`
        : `Server ${server}: an action was changed or removed. The log does not hold together.`;
      $("log-whole").className = valid ? "" : "panel bad";
      put("log", [server, actions], () =>
        tableParts(
          ["Number", "Time", "Action", "Campaign", "Outcome", "Details"],
          actions.toReversed().map((/** @type {any} */ row) => this.logRow(row)),
        ),
      );
    } catch (error) {
      $("log-whole").className = "panel bad";
      $("log-whole").textContent = `Server ${server}: ${UNKNOWN}. ${messageOf(error)}`;
      put("log", [server], () => []);
    }
  }

  /** @param {any} action */
  logRow({ number, at, action, campaign, outcome, details }) {
    const words = Object.entries(details).map(([name, value]) => `${name}: ${value}`);
    const short = htmlElement("span", { title: campaign }, campaign.slice(0, 8));
    return [String(number), at, action, short, outcome, words.join(", ")];
  }
}

new OperatorPage().start();
