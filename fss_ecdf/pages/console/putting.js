// Parts of a page that is asked anew every few seconds: what has not changed is left alone, and whoever was at a
// button, or had opened something, still is.

import { htmlElement } from "../elements.js";
import { $ } from "./shared.js";

export const UNKNOWN = "unknown";

const shown = new Map();

const placeOf = (element) => element.dataset.key ?? `${element.tagName} ${element.textContent}`;

// `make` gives the children of the element `id`, for these data; it is called only when they are other ones.
export function put(id, data, make) {
  const key = JSON.stringify(data),
    where = $(id);
  if (shown.get(id) === key) return;
  shown.set(id, key);
  const focused = where.contains(document.activeElement) ? placeOf(document.activeElement) : null;
  const open = new Set([...where.querySelectorAll("details[open] > summary")].map((s) => s.textContent));
  where.replaceChildren(...make());
  for (const summary of where.querySelectorAll("summary"))
    if (open.has(summary.textContent)) summary.parentElement.open = true;
  if (focused !== null) [...where.querySelectorAll("button, summary")].find((e) => placeOf(e) === focused)?.focus();
}

export const known = (value) => (value == null ? UNKNOWN : String(value));

export const stateOf = (text) =>
  htmlElement("span", { class: `state${text === UNKNOWN ? " unknown" : ""}` }, String(text));

// Rows of cells, each a text or an element; the first cell of a row names it where `named` is set.
export function tableParts(head, rows, { named = false, empty = "none" } = {}) {
  const cells = head.map((text) => (text ? htmlElement("th", { scope: "col" }, text) : htmlElement("td")));
  const row = (values) =>
    values.map((value, i) => {
      if (named && i === 0) return htmlElement("th", { scope: "row" }, value);
      return htmlElement("td", {}, value === UNKNOWN ? stateOf(value) : value);
    });
  const nothing = htmlElement("tr", {}, htmlElement("td", { colspan: String(head.length) }, empty));
  const body = rows.length ? rows.map((values) => htmlElement("tr", {}, ...row(values))) : [nothing];
  return [htmlElement("thead", {}, htmlElement("tr", {}, ...cells)), htmlElement("tbody", {}, ...body)];
}

export function button(text, key, name, act) {
  const made = htmlElement("button", { type: "button", "data-key": key });
  made.append(text);
  if (name) made.setAttribute("aria-label", name);
  made.onclick = act;
  return made;
}
