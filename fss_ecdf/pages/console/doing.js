// Doing something at both servers: asked first, in a window of its own, and what is shown once shown once.

import { download } from "../charts.js";
import { htmlElement } from "../elements.js";
import { $, tell } from "./shared.js";

function inputOf({ name, label, kind = "text", value = "" }) {
  const id = `sure-${name}`;
  const input =
    kind === "lines" ? htmlElement("textarea", { id, rows: "6" }) : htmlElement("input", { id, type: kind });
  input.autocomplete = "off";
  input.value = value;
  return htmlElement("div", { class: "field" }, htmlElement("label", { for: id }, label), input);
}

export class Doing {
  // `after` is called when something was done.
  constructor(after) {
    this.after = after;
    $("no").onclick = () => $("sure").close();
    $("forget").onclick = () => $("secret").close();
    $("secret").onclose = () => {
      $("secret-sites").replaceChildren();
      $("secret-file").textContent = "";
    };
  }

  // `fields` are what is to be typed ({ name, label, kind, value }); what was typed joins `body`.
  sure({ title, text, yes, path, body, fields = [] }) {
    $("sure-title").textContent = title;
    $("sure-text").textContent = text;
    $("sure-problem").textContent = "";
    $("sure-fields").replaceChildren(...fields.map(inputOf));
    $("yes").textContent = yes;
    const typed = () => Object.fromEntries(fields.map(({ name }) => [name, $(`sure-${name}`).value]));
    $("yes").onclick = () => this.act(path, { ...body, ...typed() });
    $("sure").showModal();
    (fields.length ? $(`sure-${fields[0].name}`) : $("yes")).focus();
  }

  async act(path, body) {
    $("yes").disabled = true;
    try {
      const answer = await tell(path, body);
      $("sure").close();
      if (answer.sites || answer.file) this.show(answer);
      await this.after();
    } catch (error) {
      $("sure-problem").textContent = error.message;
    }
    $("yes").disabled = false;
  }

  show({ sites = [], file }) {
    $("secret-title").textContent = sites.length ? "Shown once" : "For the other operator";
    $("secret-sites").replaceChildren(...sites.flatMap((site) => this.site(site)));
    $("secret-file").textContent = file
      ? `The other operator has to do the same. Send the file ${file}, which has no secret in it; there: fss-server campaign sites apply FILE`
      : "";
    $("secret").showModal();
  }

  site({ label, token, sheet, name, file }) {
    const copy = htmlElement("button", { type: "button" }, "Copy the token");
    copy.onclick = async () => {
      await navigator.clipboard.writeText(token).catch(() => undefined);
      copy.textContent = "Copied";
    };
    const save = htmlElement("button", { type: "button" }, "Save its sheet");
    save.onclick = () => download(name, "text/markdown", sheet);
    return [
      htmlElement("h3", {}, label),
      htmlElement("p", { class: "mono token" }, token),
      htmlElement("div", { class: "row" }, copy, save),
      htmlElement("p", { class: "soft" }, `The same sheet is in ${file}, where this console runs.`),
    ];
  }
}
