// A number as somebody types it, in the way of the page's language: decimal comma or point, a minus of any kind, the unit
// behind it. Where a mark may stand for thousands or for decimals, the person decides, not the page.

import { Refusal, stripped } from "./grid.js";

const MINUS = /^[\u2212\u2010-\u2015\ufe63\uff0d]/;
const BLANKS_WITHIN = /[\s\u00a0\u202f\u2009']/g;
/** @type {Record<string, RegExp>} */
const GROUPED = { ",": /^[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+$/, ".": /^[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})+$/ };
const POINT_LANGUAGES = ["en"];

/** @param {string} language */
export const decimalMark = (language) => (POINT_LANGUAGES.includes(language) ? "." : ",");

// The literal that the grid reads, or the text as it is where it is no number in any way.
/**
 * @param {string} text
 * @param {string} language
 * @param {string} unit
 */
export function plainNumber(text, language, unit) {
  const bare = withoutUnit(stripped(text).replace(MINUS, "-"), unit).replace(BLANKS_WITHIN, "");
  const marks = [",", "."].filter((mark) => bare.includes(mark));
  if (marks.length === 2) return withBothMarks(bare);
  const [mark] = marks;
  if (!mark) return bare;
  if (bare.indexOf(mark) !== bare.lastIndexOf(mark)) return GROUPED[mark].test(bare) ? bare.split(mark).join("") : bare;
  if (mark !== decimalMark(language) && GROUPED[mark].test(bare))
    throw new Refusal("ambiguousNumber", { value: text.slice(0, 40), other: bare.replace(mark, "") });
  return bare.replace(",", ".");
}

// 1.234,5 and 1,234.5: the later mark is the decimal one, if the others stand before groups of three digits.
/** @param {string} bare */
function withBothMarks(bare) {
  const decimal = bare.lastIndexOf(",") > bare.lastIndexOf(".") ? "," : ".",
    at = bare.lastIndexOf(decimal),
    other = decimal === "," ? "." : ",";
  const whole = bare.slice(0, at);
  return GROUPED[other].test(whole) ? `${whole.split(other).join("")}.${bare.slice(at + 1)}` : bare;
}

/**
 * @param {string} text
 * @param {string} unit
 */
function withoutUnit(text, unit) {
  const end = text.length - unit.length;
  const same = unit && text.slice(end).toLowerCase() === unit.toLowerCase();
  return same && /[0-9.,\s\u00a0\u202f]$/.test(text.slice(0, end)) ? stripped(text.slice(0, end)) : text;
}

// A label of the grid as the language writes it; dates stay as they are.
/**
 * @param {string} label
 * @param {string} language
 */
export const shownNumber = (label, language) =>
  decimalMark(language) === "," && /^-?[0-9]+\.[0-9]+$/.test(label) ? label.replace(".", ",") : label;
