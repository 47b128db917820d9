// Pieces of which the page's screens are made. Texts are set as texts; what other people wrote keeps its own direction.

import { htmlElement } from "../elements.js";

export const piece = htmlElement;

/** @typedef {Record<string, unknown>} Attributes */

/** @param {Attributes} attributes */
const inputOf = (attributes) => /** @type {HTMLInputElement} */ (piece("input", attributes));

/**
 * @param {string} text
 * @param {Attributes} attributes
 */
export const paragraph = (text, attributes = {}) => piece("p", attributes, text);

// What other people wrote: of an unknown language, in its own direction.
/**
 * @param {string} name
 * @param {string} text
 * @param {Attributes} attributes
 */
export const foreign = (name, text, attributes = {}) => piece(name, { lang: "", dir: "auto", ...attributes }, text);

/**
 * @param {string} id
 * @param {string} text
 * @param {() => unknown} act
 */
export function button(id, text, act, kind = "") {
  const made = piece("button", { id, type: "button", class: kind }, text);
  made.onclick = act;
  return made;
}

/** @param {...(Node | false | null | undefined)} buttons */
export const actions = (...buttons) =>
  piece("div", { class: "actions" }, ...buttons.filter((one) => one instanceof Node));

/**
 * @param {string} kind
 * @param {...(string | Node)} children
 */
export const notice = (kind, ...children) => piece("div", { class: `panel ${kind}` }, ...children);

/**
 * @param {string} summary
 * @param {string} id
 * @param {...(string | Node)} children
 */
export function folded(summary, id, ...children) {
  return piece("details", { id }, piece("summary", {}, summary), ...children);
}

/** @param {[string, Node][]} pairs */
export const definitions = (pairs) =>
  piece("dl", {}, ...pairs.flatMap(([name, value]) => [piece("dt", {}, name), value]));

// A labelled field. `error` is shown at it and read with it.
/** @param {{id: string, label: string, hint?: string, error?: string, attributes?: Attributes, value?: string,
 * oninput: (event: any) => void}} about */
export function field({ id, label, hint = "", error = "", attributes = {}, value = "", oninput }) {
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  const input = inputOf({
    id,
    autocomplete: "off",
    ...attributes,
    ...(described && { "aria-describedby": described }),
    ...(error && { "aria-invalid": "true" }),
  });
  input.value = value;
  input.oninput = oninput;
  return piece(
    "div",
    { class: "field" },
    piece("label", { for: id }, label),
    ...(hint ? [piece("span", { id: `${id}-hint`, class: "soft" }, hint)] : []),
    input,
    ...(error ? [errorText(`${id}-error`, error)] : []),
  );
}

/**
 * @param {string} id
 * @param {string} text
 */
export const errorText = (id, text) => piece("p", { id, class: "error" }, text);

// Cards of which one can be chosen; none is chosen for the person. `cards` are [value, ...children].
/** @param {{name: string, legend: string, cards: [number, ...Node[]][], chosen: number | string | null, error?: string,
 * onchoose: (value: number) => void}} about */
export function choices({ name, legend, cards, chosen, error = "", onchoose }) {
  const made = cards.map(([value, ...children]) => {
    const input = inputOf({ type: "radio", name, value: String(value), id: `${name}-${value}` });
    input.checked = chosen !== null && String(chosen) === String(value);
    input.onchange = () => onchoose(value);
    return piece("label", { class: "card" }, input, piece("span", { class: "card-text" }, ...children));
  });
  const about = error ? { "aria-describedby": `${name}-error`, "aria-invalid": "true" } : {};
  return piece(
    "fieldset",
    { id: name, class: "cards", role: "radiogroup", ...about },
    piece("legend", {}, legend),
    piece("div", { class: "card-list" }, ...made),
    ...(error ? [errorText(`${name}-error`, error)] : []),
  );
}

/**
 * @param {string} id
 * @param {string} text
 * @param {boolean} checked
 * @param {(checked: boolean) => void} onchange
 */
export function tickBox(id, text, checked, onchange, error = "") {
  const input = inputOf({
    type: "checkbox",
    id,
    ...(error && { "aria-invalid": "true", "aria-describedby": `${id}-error` }),
  });
  input.checked = checked;
  input.onchange = () => onchange(input.checked);
  const label = piece("label", { class: "card" }, input, piece("span", { class: "card-text" }, text));
  return piece("div", {}, label, ...(error ? [errorText(`${id}-error`, error)] : []));
}

/**
 * @param {string} name
 * @param {string} text
 */
export function saveFile(name, text) {
  const href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  Object.assign(document.createElement("a"), { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60000);
}
