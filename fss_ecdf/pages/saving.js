// Pictures and tables as files: SVG with its style written into it, PNG, CSV with every digit.

import { SVG, htmlElement, svgElement } from "./elements.js";
/** @import { Cells } from "./charts.js" */

// A text that no spreadsheet takes for a formula, wherever it thinks that a cell begins; numbers are left alone.
/** @param {string} text */
function unlikeFormula(text) {
  if (/^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/.test(text)) return text;
  return text.replace(/(^|[;\t\r\n]\s*)([=+\-@\uff1d\uff0b\uff0d\uff20])/g, "$1'$2");
}

/** @param {unknown} value */
function csvCell(value) {
  const text = typeof value === "string" ? unlikeFormula(value) : String(value ?? "");
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// The numbers of a table as a file: every digit, as JavaScript writes doubles.
/** @param {Cells} table */
export function csvOf({ columns, rows }) {
  return [columns, ...rows].map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

const DRAWN = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "font-family",
  "font-size",
  "font-weight",
];

// The picture as a file of its own, with what the style sheet says written into it, and with its legend.
/** @param {SVGSVGElement} picture */
export function standalone(picture) {
  const copy = /** @type {SVGSVGElement} */ (picture.cloneNode(true));
  const originals = [picture, ...picture.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, i) => {
    const style = getComputedStyle(originals[i]);
    for (const name of DRAWN) element.setAttribute(name, style.getPropertyValue(name));
  });
  copy.querySelector(".reader")?.remove();
  copy.setAttribute("xmlns", SVG);
  const { width, height: drawn } = picture.viewBox.baseVal;
  const height = drawn + Number(picture.querySelector(".saved-legend")?.getAttribute("data-height") ?? 0);
  copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  const paper = svgElement("rect", { width, height, fill: getComputedStyle(document.body).backgroundColor });
  copy.insertBefore(paper, copy.firstChild);
  return new XMLSerializer().serializeToString(copy);
}

/**
 * @param {string} name
 * @param {string} type
 * @param {string | Blob | Uint8Array} content
 */
export function download(name, type, content) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = htmlElement("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/**
 * @param {SVGSVGElement} picture
 * @param {string} name
 */
export function savePng(picture, name) {
  const text = standalone(picture);
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  const image = new Image();
  image.onload = () => {
    const canvas = htmlElement("canvas", { width: 2 * image.width, height: 2 * image.height });
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => blob && download(`${name}.png`, "image/png", blob));
    URL.revokeObjectURL(address);
  };
  image.src = address;
}
