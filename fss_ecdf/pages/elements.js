// Elements of a page and of a picture, with their attributes and children.

export const SVG = "http://www.w3.org/2000/svg";

/**
 * @template {string} Name
 * @param {Name} name
 * @param {Record<string, unknown>} attributes
 * @param {...(string | Node)} children
 * @returns {Name extends keyof SVGElementTagNameMap ? SVGElementTagNameMap[Name] : SVGElement}
 */
export function svgElement(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return /** @type {any} */ (made);
}

/**
 * @template {string} Name
 * @param {Name} name
 * @param {Record<string, unknown>} attributes
 * @param {...(string | Node)} children
 * @returns {Name extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[Name] : HTMLElement}
 */
export function htmlElement(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return /** @type {any} */ (made);
}

/**
 * The element of the page with this id.
 * @param {string} id
 * @returns {any} an element whose kind the page's markup decides
 */
export function elementOf(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return found;
}
