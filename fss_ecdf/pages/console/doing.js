// Doing something at both servers: asked first, in a window of its own, and what is shown once shown once.

import { htmlElement } from "../elements.js";
import { download } from "../saving.js";
import { $, messageOf, tell } from "./shared.js";
import { zipOf } from "./zip.js";

/** @typedef {{ name: string, label: string, kind?: string, value?: string }} Field */
/**
 * @typedef {{ title: string, text: string, yes: string, path: string, body: Record<string, string>, fields?: Field[] }} Deed
 */
/** @typedef {{ label: string, token: string, sheet: string, name: string, file: string }} NewSite */

/** @param {Field} field */
function inputOf({ name, label, kind = "text", value = "" }) {
  const id = `sure-${name}`;
  const input =
    kind === "lines" ? htmlElement("textarea", { id, rows: "6" }) : htmlElement("input", { id, type: kind });
  input.autocomplete = "off";
  input.value = value;
  input.setAttribute("aria-describedby", "sure-text sure-problem");
  input.addEventListener("input", () => input.removeAttribute("aria-invalid"));
  return htmlElement("div", { class: "field" }, htmlElement("label", { for: id }, label), input);
}

export class Doing {
  // `after` is called when something was done.
  /** @param {() => Promise<void>} after */
  constructor(after) {
    this.after = after;
    this.from = ""; // the key of what the window was opened with; it may be drawn anew meanwhile
    $("sure").onclose = () => {
      const opener = document.querySelector(`[data-key="${CSS.escape(this.from)}"]`);
      if (document.activeElement === document.body && opener instanceof HTMLElement) opener.focus();
    };
    $("no").onclick = () => $("sure").close();
    $("forget").onclick = () => $("secret").close();
    $("secret").onclose = () => {
      $("secret-sites").replaceChildren();
      $("secret-file").textContent = "";
    };
  }

  // `fields` are what is to be typed; what was typed joins `body`.
  /** @param {Deed} deed */
  sure({ title, text, yes, path, body, fields = [] }) {
    $("sure-title").textContent = title;
    $("sure-text").textContent = text;
    $("sure-problem").textContent = "";
    $("sure-fields").replaceChildren(...fields.map(inputOf));
    $("yes").textContent = yes;
    const typed = () => Object.fromEntries(fields.map(({ name }) => [name, $(`sure-${name}`).value]));
    $("yes").onclick = () => this.act(path, { ...body, ...typed() });
    this.from = document.activeElement instanceof HTMLElement ? (document.activeElement.dataset.key ?? "") : "";
    $("sure").showModal();
    (fields.length ? $(`sure-${fields[0].name}`) : $("yes")).focus();
  }

  /**
   * @param {string} path
   * @param {Record<string, string>} body
   */
  async act(path, body) {
    $("yes").disabled = true;
    try {
      const answer = await tell(path, body);
      $("sure").close();
      if (answer.sites || answer.file) this.show(answer);
      await this.after();
    } catch (error) {
      $("sure-problem").textContent = messageOf(error);
      const input = document.querySelector("#sure-fields input, #sure-fields textarea");
      input?.setAttribute("aria-invalid", "true");
      if (input instanceof HTMLElement) input.focus();
    }
    $("yes").disabled = false;
  }

  /** @param {{ sites?: NewSite[], file?: string | null, authorities?: Record<string, string> }} answer */
  show({ sites = [], file, authorities = {} }) {
    $("secret-title").textContent = sites.length ? "Shown once" : "For the other operator";
    const all = htmlElement("button", { type: "button", id: "all-sheets" }, "Save all sheets in one file");
    all.onclick = () => {
      const sheets = Object.fromEntries(sites.map(({ name, sheet }) => [name, sheet]));
      download("joining-sheets.zip", "application/zip", zipOf({ ...sheets, ...authorities }));
    };
    $("secret-sites").replaceChildren(...(sites.length > 1 ? [all] : []), ...sites.flatMap((site) => this.site(site)));
    $("secret-file").textContent = file
      ? `The other operator has to do the same. Send the file ${file}, which has no secret in it; there: fss-server campaign sites apply FILE`
      : "";
    $("secret").showModal();
  }

  /** @param {NewSite} site */
  site({ label, token, sheet, name, file }) {
    const copy = htmlElement(
      "button",
      { type: "button", "aria-label": `Copy the token of ${label}` },
      "Copy the token",
    );
    copy.onclick = async () => {
      await navigator.clipboard.writeText(token).catch(() => undefined);
      copy.textContent = "Copied";
    };
    const save = htmlElement(
      "button",
      { type: "button", "aria-label": `Save the sheet of ${label}` },
      "Save its sheet",
    );
    save.onclick = () => download(name, "text/markdown", sheet);
    return [
      htmlElement("h3", { lang: "", dir: "auto" }, label),
      htmlElement("p", { class: "mono token" }, token),
      htmlElement("div", { class: "row" }, copy, save),
      htmlElement("p", { class: "soft" }, `The same sheet is in ${file}, where this console runs.`),
    ];
  }
}
