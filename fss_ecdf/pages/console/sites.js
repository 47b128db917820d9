// Sites of a campaign at a glance: uploads against quota and minimum, states, tokens.

import { htmlElement } from "../elements.js";
import { UNKNOWN, button, known, put, stateOf, tableParts } from "./putting.js";
import { $ } from "./shared.js";

const both = (values) => {
  const texts = values.map(known);
  return texts.every((text) => text === texts[0]) ? texts[0] : texts.join(" / ");
};

function meterOf(value, most, name) {
  const made = htmlElement("meter", { min: "0", max: String(Math.max(1, most)), value: String(value) });
  made.setAttribute("aria-label", name);
  return made;
}

export class Sites {
  constructor(doing) {
    this.doing = doing;
  }

  show(id, { about, roles, sites, statuses }) {
    const is = about?.admission === "sites";
    $("sites-part").hidden = !is;
    if (!is) return;
    $("admit").onclick = () => this.admit(id);
    const listed = roles.map((role) => Array.isArray(statuses[role].sites));
    const least = about.min_uploads;
    const sums = roles.map((role, i) => {
      if (!listed[i]) return `${UNKNOWN} at server ${role}`;
      return `${sites.reduce((sum, site) => sum + (site.uploads[i] ?? 0), 0)} at server ${role}`;
    });
    $("sites-sum").textContent =
      `${listed.some(Boolean) ? sites.length : UNKNOWN} sites; uploads: ${sums.join(", ")}; at least ${least} must reach both servers.`;
    put("sites", [id, sites, roles, listed], () =>
      tableParts(
        ["Site", "State", ...roles.map((role) => `Uploads at server ${role}`), "Quota", "Change"],
        sites.map((site) => this.row(id, site, listed)),
        { named: true, empty: listed.every(Boolean) ? "none" : UNKNOWN },
      ),
    );
  }

  row(id, site, listed) {
    const uploads = site.uploads.map((count, i) => {
      if (count == null) return listed[i] ? "not there" : UNKNOWN;
      const quota = site.quota[i];
      const words = htmlElement("span", {}, `${count} of ${quota}`);
      return htmlElement(
        "span",
        { class: "filled" },
        meterOf(count, quota, `${site.label}: ${count} of ${quota}`),
        words,
      );
    });
    return [site.label, stateOf(both(site.state)), ...uploads, both(site.quota), this.changes(id, site)];
  }

  changes(id, site) {
    const state = site.state.find((s) => s != null);
    const name = (what) => `${what} ${site.label}`,
      key = (what) => `${site.id} ${what}`,
      ask = (about) => () => this.ask(id, site, about);
    const made = [];
    if (state === "active") made.push(button("Pause", key("pause"), name("Pause"), ask(PAUSE)));
    else made.push(button("Resume", key("resume"), name("Resume"), ask(RESUME)));
    made.push(
      button("Quota …", key("quota"), name("Quota of"), () => this.quota(id, site)),
      button("New token …", key("token"), name("New token for"), ask(TOKEN)),
    );
    if (state !== "revoked") made.push(button("Revoke …", key("revoke"), name("Revoke"), ask(REVOKE)));
    made.push(button("Erase …", key("erase"), name("Erase what was sent by"), ask(ERASE)));
    return htmlElement("span", { class: "small" }, ...made);
  }

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

  admit(id) {
    this.doing.sure({
      title: "Admit sites",
      text: "Each gets a token and a sheet to be sent to it, with both servers' addresses. Repeating it changes nothing.",
      yes: "Admit them",
      path: "admit",
      body: { id },
      fields: [
        { name: "labels", label: "What they are called, one in each line", kind: "lines" },
        { name: "quota", label: "Uploads that each may send", kind: "number", value: "1000" },
      ],
    });
  }
}

const PAUSE = {
  change: "pause",
  title: "Pause *",
  text: "Nothing new is taken from it until it is resumed. What it has sent stays.",
  yes: "Pause it",
};
const RESUME = { change: "resume", title: "Resume *", text: "Its uploads are taken again.", yes: "Resume it" };
const TOKEN = {
  path: "token",
  title: "New token for *",
  text: "The old one opens nothing any more, at once. Uploads stay with the site.",
  yes: "Make it",
};
const REVOKE = {
  change: "revoke",
  title: "Revoke *",
  text: "Its token opens nothing any more. What it has sent stays and counts.",
  yes: "Revoke it",
  typed: true,
};
const ERASE = {
  change: "erase",
  title: "Erase what * sent",
  text: "It is revoked, and all that it has sent is erased at the servers. This cannot be undone.",
  yes: "Revoke and erase",
  typed: true,
};
