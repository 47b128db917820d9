// Parts of a page that is asked anew every few seconds: what has not changed is left alone, and whoever was at a
// button, or had opened something, still is.

import { htmlElement } from "../elements.js";
import { $ } from "./shared.js";

export const UNKNOWN = "unknown";

/** @type {Map<string, string>} */
const shown = new Map();

/** @param {HTMLElement} element */
const placeOf = (element) => element.dataset.key ?? `${element.tagName} ${element.textContent}`;

// `make` gives the children of the element `id`, for these data; it is called only when they are other ones. While a
// menu is open in it, it stays as it is.
/**
 * @param {string} id
 * @param {unknown} data
 * @param {() => Node[]} make
 */
export function put(id, data, make) {
  const key = JSON.stringify(data);
  /** @type {HTMLElement} */
  const where = $(id);
  if (shown.get(id) === key || where.querySelector(":popover-open")) return;
  shown.set(id, key);
  const active = document.activeElement;
  const focused = active instanceof HTMLElement && where.contains(active) ? placeOf(active) : null;
  const open = new Set([...where.querySelectorAll("details[open] > summary")].map((s) => s.textContent));
  where.replaceChildren(...make());
  for (const summary of where.querySelectorAll("summary"))
    if (open.has(summary.textContent)) summary.parentElement?.setAttribute("open", "");
  if (focused === null) return;
  /** @type {HTMLElement[]} */
  const places = [...where.querySelectorAll("button, summary, [tabindex]")].filter((e) => e instanceof HTMLElement);
  places.find((e) => placeOf(e) === focused)?.focus();
}

/** @param {unknown} value */
export const known = (value) => (value == null ? UNKNOWN : String(value));

/** @param {unknown} text */
export const stateOf = (text) =>
  htmlElement("span", { class: `state${text === UNKNOWN ? " unknown" : ""}` }, String(text));

// What other people wrote, cut where it is long; whole for whoever comes to it by the keyboard or the pointer.
/**
 * @param {string} text
 * @param {string} key
 */
export const shortened = (text, key) =>
  htmlElement("span", { class: "short", tabindex: "0", lang: "", dir: "auto", title: text, "data-key": key }, text);

// Rows of cells, each a text or an element; the first cell of a row names it where `named` is set.
/**
 * @param {(string | Node)[]} head
 * @param {(string | Node)[][]} rows
 * @param {{ named?: boolean, empty?: string }} how
 */
export function tableParts(head, rows, { named = false, empty = "none" } = {}) {
  const cells = head.map((one) => {
    if (one instanceof HTMLTableCellElement) return one;
    return one ? htmlElement("th", { scope: "col" }, one) : htmlElement("td");
  });
  const row = (/** @type {(string | Node)[]} */ values) =>
    values.map((value, i) => {
      if (named && i === 0) return htmlElement("th", { scope: "row" }, value);
      return htmlElement("td", {}, value === UNKNOWN ? stateOf(value) : value);
    });
  const nothing = htmlElement("tr", {}, htmlElement("td", { colspan: String(head.length) }, empty));
  const body = rows.length ? rows.map((values) => htmlElement("tr", {}, ...row(values))) : [nothing];
  return [htmlElement("thead", {}, htmlElement("tr", {}, ...cells)), htmlElement("tbody", {}, ...body)];
}

/**
 * @param {string | Node} text
 * @param {string} key
 * @param {string} name
 * @param {() => void} act
 */
export function button(text, key, name, act) {
  const made = htmlElement("button", { type: "button", "data-key": key }, text);
  if (name) made.setAttribute("aria-label", name);
  made.onclick = act;
  return made;
}

let menus = 0;

// Buttons behind one button, which the browser puts above everything else and closes by itself.
/**
 * @param {string} key
 * @param {string} name
 * @param {HTMLElement[]} entries
 */
export function menu(key, name, entries) {
  menus += 1;
  const list = htmlElement("div", {
    id: `menu-${menus}`,
    class: "menu",
    popover: "",
    role: "group",
    "aria-label": name,
  });
  const opener = htmlElement("button", { type: "button", "data-key": key, "aria-label": name }, "Actions");
  opener.setAttribute("popovertarget", list.id);
  list.append(...entries);
  // First of all, so that a window that an entry opens gives the focus back to the button.
  const leave = () => {
    list.hidePopover();
    opener.focus();
  };
  list.addEventListener("click", leave, { capture: true });
  list.addEventListener("beforetoggle", () => {
    const box = opener.getBoundingClientRect();
    list.style.top = `${Math.min(box.bottom + 2, Math.max(0, innerHeight - 48 * entries.length - 16))}px`;
    list.style.left = `${Math.max(4, Math.min(box.left, innerWidth - 208))}px`;
  });
  return htmlElement("span", { class: "small" }, opener, list);
}
