// The operator's console: both servers at a glance, one campaign in detail, what operators did.

import { htmlElement } from "../elements.js";
import { CampaignPart } from "./campaign.js";
import { Doing } from "./doing.js";
import { UNKNOWN, button, put, stateOf, tableParts } from "./putting.js";
import { $, Address, ask, complain } from "./shared.js";

const EVERY_MS = 3000;
const SOON_DAYS = 30;

function certificateText(end) {
  if (!end) return `certificate ends: ${UNKNOWN}`;
  const days = Math.floor((Date.parse(end) - Date.now()) / 86400000);
  return `certificate ends ${end}, in ${days} days${days < SOON_DAYS ? ": renew it" : ""}`;
}

class OperatorPage {
  constructor() {
    this.address = new Address({});
    this.part = new CampaignPart(new Doing(() => this.refresh()));
  }

  start() {
    $("log-ask").onclick = () => this.log();
    $("log-server").onchange = () => this.log();
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

  overview({ servers, campaigns, done }) {
    this.servers = servers;
    put("servers", servers, () => servers.map((server) => this.card(server)));
    const mine = servers.filter((s) => s.mine).map((s) => s.number);
    put("log-server", mine, () => mine.map((number) => new Option(`Server ${number}`, number)));
    put("campaigns", [servers.map((s) => s.listed), campaigns], () =>
      tableParts(
        ["Title", ...servers.map((s) => `Server ${s.number}`), "Next step"],
        campaigns.map((campaign) => this.row(campaign)),
        { empty: servers.some((s) => s.mine && !s.listed) ? UNKNOWN : "none" },
      ),
    );
    put("done", done, () =>
      (done.length ? done.map((d) => `${d.time}: ${d.what}`) : ["nothing"]).map((text) => htmlElement("li", {}, text)),
    );
  }

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

  row({ id, title, servers, next }) {
    const open = button(title || id, id, "", () => this.open(id));
    open.dataset.id = id;
    const at = servers.map((row, i) => {
      if (row) return `${row.state}, ${row.uploads} uploads`;
      return this.servers[i].listed ? "not there" : UNKNOWN;
    });
    return [open, ...at, next];
  }

  async open(id) {
    this.address.set({ id });
    try {
      await this.part.show(id);
      $("campaign-head").focus();
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
          actions.toReversed().map((row) => this.logRow(row)),
        ),
      );
    } catch (error) {
      $("log-whole").className = "panel bad";
      $("log-whole").textContent = `Server ${server}: ${UNKNOWN}. ${error.message}`;
      put("log", [server], () => []);
    }
  }

  logRow({ number, at, action, campaign, outcome, details }) {
    const words = Object.entries(details).map(([name, value]) => `${name}: ${value}`);
    const short = htmlElement("span", { title: campaign }, campaign.slice(0, 8));
    return [String(number), at, action, short, outcome, words.join(", ")];
  }
}

new OperatorPage().start();
