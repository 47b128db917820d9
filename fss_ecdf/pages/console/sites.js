// Sites of a campaign at a glance: uploads against quota and minimum, states, tokens.

import { htmlElement } from "../elements.js";
import { Listing } from "./listing.js";
import { UNKNOWN, button, known, menu, shortened, stateOf } from "./putting.js";
import { $ } from "./shared.js";
/** @import { Doing } from "./doing.js" */

/** @typedef {{ id: string, label: string, state: (string | null)[], quota: (number | null)[], uploads: (number | null)[] }} Site */
/** @typedef {{ path?: string, change?: string, title: string, text: string, yes: string, typed?: boolean }} Change */

/** @param {unknown[]} values */
const both = (values) => {
  const texts = values.map(known);
  return texts.every((text) => text === texts[0]) ? texts[0] : texts.join(" / ");
};

// One bar for both servers: what both have, then what one server has only.
/**
 * @param {Site} site
 * @param {number[]} roles
 * @param {boolean[]} listed
 */
function barOf({ label, uploads, quota }, roles, listed) {
  const counts = uploads.map((count, i) => (count == null ? (listed[i] ? "not there" : UNKNOWN) : String(count)));
  const most = Math.max(1, ...quota.map((one) => one ?? 0)),
    numbers = uploads.map((count) => count ?? 0);
  const part = (/** @type {number} */ count) => Math.min(100, (100 * count) / most);
  const [least, highest] = [part(Math.min(...numbers)), part(Math.max(...numbers))];
  const same = counts.every((text) => text === counts[0]);
  const places = roles.map((role, i) => `${counts[i]} at server ${role}`).join(", ");
  const bar = htmlElement("span", {
    class: "bar-both",
    role: "img",
    "aria-label": `${label}: ${places}, quota ${both(quota)}`,
  });
  for (const [kind, width] of [
    ["either", highest],
    ["both", least],
  ]) {
    const filled = htmlElement("span", { class: `fill ${kind}` });
    filled.style.width = `${width}%`;
    bar.append(filled);
  }
  return htmlElement(
    "span",
    { class: "filled" },
    bar,
    htmlElement("span", {}, `${same ? counts[0] : counts.join(" / ")} of ${both(quota)}`),
  );
}

export class Sites {
  /** @param {Doing} doing */
  constructor(doing) {
    this.doing = doing;
    this.listing = new Listing("sites");
  }

  /**
   * @param {string} id
   * @param {{ about: any, roles: number[], sites: Site[], statuses: any[] }} found
   */
  show(id, { about, roles, sites, statuses }) {
    const is = about?.admission === "sites";
    $("sites-part").hidden = !is;
    if (!is) return;
    $("admit").onclick = () => this.admit(id);
    const listed = roles.map((role) => Array.isArray(statuses[role].sites));
    const sums = roles.map((role, i) => {
      if (!listed[i]) return `${UNKNOWN} at server ${role}`;
      return `${sites.reduce((sum, site) => sum + (site.uploads[i] ?? 0), 0)} at server ${role}`;
    });
    $("sites-sum").textContent =
      `${listed.some(Boolean) ? sites.length : UNKNOWN} sites; uploads: ${sums.join(", ")}; at least ${about.min_uploads} must reach both servers.`;
    this.listing.show(
      [id, sites, roles, listed],
      ["Site", "State", "Uploads", ""],
      () => sites.map((site) => this.row(id, site, roles, listed)),
      listed.every(Boolean) ? "none" : UNKNOWN,
    );
  }

  /**
   * @param {string} id
   * @param {Site} site
   * @param {number[]} roles
   * @param {boolean[]} listed
   */
  row(id, site, roles, listed) {
    const state = both(site.state);
    const differs = [site.state, site.quota, site.uploads].some((values) => values.some((one) => one !== values[0]));
    return {
      text: `${site.label} ${state}`,
      sort: [site.label, state, Math.max(...site.uploads.map((count) => count ?? 0))],
      attention: differs || site.uploads.some((count, i) => count != null && count >= (site.quota[i] ?? 0)),
      cells: [
        shortened(site.label, `${site.id} label`),
        stateOf(state),
        barOf(site, roles, listed),
        this.changes(id, site),
      ],
    };
  }

  /**
   * @param {string} id
   * @param {Site} site
   */
  changes(id, site) {
    const state = site.state.find((s) => s != null);
    const entry = (
      /** @type {string} */ text,
      /** @type {string} */ what,
      /** @type {string} */ name,
      /** @type {Change} */ about,
    ) => button(text, `${site.id} ${what}`, `${name} ${site.label}`, () => this.ask(id, site, about));
    const made =
      state === "active" ? [entry("Pause", "pause", "Pause", PAUSE)] : [entry("Resume", "resume", "Resume", RESUME)];
    made.push(
      button("Quota …", `${site.id} quota`, `Quota of ${site.label}`, () => this.quota(id, site)),
      entry("New token …", "token", "New token for", TOKEN),
    );
    if (state !== "revoked") made.push(entry("Revoke …", "revoke", "Revoke", REVOKE));
    made.push(entry("Erase …", "erase", "Erase what was sent by", ERASE));
    return menu(`${site.id} menu`, `Actions for ${site.label}`, made);
  }

  /**
   * @param {string} id
   * @param {Site} site
   * @param {Change} about
   */
  ask(id, site, { path = "site", change, title, text, yes, typed }) {
    const fields = typed ? [{ name: "typed", label: "The site's label, to confirm" }] : [];
    this.doing.sure({
      title: title.replace("*", site.label),
      text,
      yes,
      path,
      fields,
      body: { id, site: site.id, ...(change && { change }) },
    });
  }

  /**
   * @param {string} id
   * @param {Site} site
   */
  quota(id, site) {
    this.doing.sure({
      title: `Quota of ${site.label}`,
      text: "How many uploads it may send in all. What it has sent stays.",
      yes: "Set it",
      path: "site",
      body: { id, site: site.id, change: "quota" },
      fields: [{ name: "quota", label: "Uploads", kind: "number", value: known(site.quota[0]) }],
    });
  }

  /** @param {string} id */
  admit(id) {
    this.doing.sure({
      title: "Admit sites",
      text: "Each site gets a token and a joining sheet with both servers' addresses. Repeating it changes nothing.",
      yes: "Admit them",
      path: "admit",
      body: { id },
      fields: [
        { name: "labels", label: "Labels of the sites, one in each line", kind: "lines" },
        { name: "quota", label: "Uploads that each site may send", kind: "number", value: "1000" },
      ],
    });
  }
}

const PAUSE = {
  change: "pause",
  title: "Pause *",
  text: "Both servers reject new uploads of this site until it is resumed. What it has sent stays.",
  yes: "Pause it",
};
const RESUME = { change: "resume", title: "Resume *", text: "Its uploads are accepted again.", yes: "Resume it" };
const TOKEN = {
  path: "token",
  title: "New token for *",
  text: "The old token is rejected at once. Uploads stay with the site.",
  yes: "Make it",
};
const REVOKE = {
  change: "revoke",
  title: "Revoke *",
  text: "Its token is rejected from now on. What it has sent stays and counts.",
  yes: "Revoke it",
  typed: true,
};
const ERASE = {
  change: "erase",
  title: "Erase what * sent",
  text: "The site is revoked, and all that it has sent is erased at the servers. This cannot be undone.",
  yes: "Revoke and erase",
  typed: true,
};
