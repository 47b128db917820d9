// What both consoles' pages share: asking the program, saying what went wrong, keeping the view in the address, controls.

import { tableOf } from "../charts.js";
import { elementOf, htmlElement } from "../elements.js";
import { csvOf, download, savePng, standalone } from "../saving.js";
/** @import { Cells, Figure, Table } from "../charts.js" */

export const $ = elementOf;

export class Trouble extends Error {}

/** @param {Response} response */
async function answered(response) {
  const found = await response.json().catch(() => ({ detail: "the console's program answered something else" }));
  if (!response.ok) throw new Trouble(found.detail ?? found.title ?? `status ${response.status}`);
  return found;
}

/** @param {Promise<Response>} asking */
async function reached(asking) {
  try {
    return await asking;
  } catch {
    throw new Trouble("The console's program does not answer. Was it ended?");
  }
}

/**
 * @param {string} path
 * @param {Record<string, any>} parameters
 * @returns {Promise<any>}
 */
export async function ask(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== "" && one != null) query.append(name, one);
  }
  return answered(await reached(fetch(`/api/${path}?${query}`)));
}

// What changes something has a header that no other site's form can send.
/**
 * @param {string} path
 * @param {Record<string, string>} body
 * @returns {Promise<any>}
 */
export async function tell(path, body) {
  const how = {
    method: "POST",
    headers: { "X-Fss-Console": "1", "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  return answered(await reached(fetch(`/api/${path}`, how)));
}

/** @param {unknown} error */
export const messageOf = (error) => (error instanceof Trouble ? error.message : `The page failed: ${error}`);

/** @param {unknown} error null where nothing is wrong */
export function complain(error) {
  $("problem").hidden = !error;
  $("problem").textContent = error ? messageOf(error) : "";
}

const SAME_STEP_MS = 1500;

// The view as the address's fragment: a link restores it, and no server sees it. What a person does is a step that the
// browser's back button undoes; what follows each other quickly, as of a slider that moves, is one step.
export class Address {
  /** @param {Record<string, string>} defaults */
  constructor(defaults) {
    this.defaults = defaults;
    /** @type {Record<string, string>} */
    this.values = {};
    this.last = { what: "", time: 0 };
    this.read();
  }

  read() {
    this.values = { ...this.defaults, ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))) };
  }

  /**
   * @param {Record<string, string>} changes
   * @param {boolean} replaced whether it is no step of a person
   */
  set(changes, replaced = false) {
    Object.assign(this.values, changes);
    const kept = Object.entries(this.values).filter(([, value]) => value !== "" && value != null);
    const [what, time] = [Object.keys(changes).join(), Date.now()];
    const goesOn =
      replaced || (what === this.last.what && !/,|^id$/.test(what) && time - this.last.time < SAME_STEP_MS);
    const fragment = `#${new URLSearchParams(kept)}`;
    if (goesOn || fragment === location.hash) history.replaceState(null, "", fragment);
    else history.pushState(null, "", fragment);
    if (!replaced) this.last = { what, time };
  }
}

/**
 * @param {string} text
 * @param {() => void} act
 */
function exportButton(text, act) {
  const made = htmlElement("button", { type: "button" }, text);
  made.onclick = act;
  return made;
}

// A picture as SVG, PNG and CSV, each a button below it.
/**
 * @param {Figure} figure
 * @param {string} name
 * @param {Cells} table
 */
export function withExports(figure, name, table) {
  const { picture } = figure;
  const row = htmlElement(
    "div",
    { class: "exports", role: "group", "aria-label": `Save: ${name}` },
    exportButton("SVG", () => download(`${name}.svg`, "image/svg+xml", standalone(picture))),
    exportButton("PNG", () => savePng(picture, name)),
    exportButton("CSV", () => download(`${name}.csv`, "text/csv", csvOf(table))),
  );
  figure.append(row);
  return figure;
}

let fields = 0;

const nextId = () => {
  fields += 1;
  return `field-${fields}`;
};

// A labelled slider with what it says beside it. `onchange` hears the number.
/**
 * @param {{ label: string, min: number, max: number, step?: number, value: number | string,
 *   say?: (x: number) => string, onchange: (x: number) => void }} about
 */
export function slider({ label, min, max, step = 1, value, say = String, onchange }) {
  const input = htmlElement("input", { type: "range", id: nextId(), min, max, step });
  input.value = String(value);
  const output = htmlElement("output", { for: input.id });
  const told = () => {
    output.textContent = say(Number(input.value));
    input.setAttribute("aria-valuetext", output.textContent);
  };
  told();
  let timer = 0;
  input.oninput = () => {
    told();
    clearTimeout(timer);
    timer = window.setTimeout(() => onchange(Number(input.value)), 120);
  };
  const words = htmlElement("label", { for: input.id }, `${label}: `, output);
  return Object.assign(htmlElement("div", { class: "field" }, words, input), { input });
}

/**
 * @param {{ label: string, options: [string, string][], value: string, onchange: (value: string) => void }} about
 */
export function selector({ label, options, value, onchange }) {
  const select = htmlElement("select", { id: nextId() });
  select.append(...options.map(([key, text]) => new Option(text, key)));
  select.value = value;
  select.onchange = () => onchange(select.value);
  return htmlElement("div", { class: "field" }, htmlElement("label", { for: select.id }, label), select);
}

/**
 * @param {{ label: string, options: string[], chosen: string[], onchange: (chosen: string[]) => void }} about
 */
export function checkboxes({ label, options, chosen, onchange }) {
  const boxes = options.map((name) => {
    const box = htmlElement("input", { type: "checkbox", value: name });
    box.checked = chosen.includes(name);
    return box;
  });
  for (const box of boxes) box.onchange = () => onchange(boxes.filter((b) => b.checked).map((b) => b.value));
  const rows = boxes.map((box) =>
    htmlElement("label", { class: "choice" }, box, htmlElement("span", { lang: "", dir: "auto" }, box.value)),
  );
  return htmlElement("fieldset", {}, htmlElement("legend", {}, label), ...rows);
}

// One number with its name, and what is to be known about it.
/**
 * @param {string} name
 * @param {string} value
 * @param {string} note
 * @param {Record<string, string>} attributes
 */
export function numberCard(name, value, note = "", attributes = {}) {
  return htmlElement(
    "div",
    { class: "number", ...attributes },
    htmlElement("span", { class: "soft", dir: "auto" }, name),
    htmlElement("strong", {}, value),
    ...(note ? [htmlElement("span", { class: "soft" }, note)] : []),
  );
}

// A table without a picture, open or folded, with all its digits as a file.
/**
 * @param {Table} table
 * @param {string} name
 */
export function tableWithExport(table, name, open = false) {
  const made = tableOf(table);
  made.open = open;
  const save = htmlElement("button", { type: "button", "aria-label": `Save ${table.name} as CSV` }, "CSV");
  save.onclick = () => download(`${name}.csv`, "text/csv", csvOf(table));
  made.append(htmlElement("div", { class: "exports" }, save));
  return made;
}

// Columns as a table of rows.
/**
 * @param {Record<string, any[]>} columns
 * @param {string[]} names
 */
export function rowsOf(columns, names = Object.keys(columns)) {
  const height = names.length ? columns[names[0]].length : 0;
  const rows = Array.from({ length: height }, (_, i) => names.map((name) => columns[name][i]));
  return { columns: names, rows };
}
