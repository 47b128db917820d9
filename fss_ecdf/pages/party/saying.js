// Texts in the page's language, with their blanks filled in.

import { PROBLEM_TEXTS } from "./problem_texts.js";
import { LANGUAGES, SCREEN_TEXTS } from "./texts.js";

/** @type {Record<string, string[]>} */
const TEXTS = {
  ...SCREEN_TEXTS,
  ...PROBLEM_TEXTS,
  noCampaign: PROBLEM_TEXTS["not-an-answer"],
  otherToken: PROBLEM_TEXTS.otherValues,
};
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

/** @param {string} key */
export const hasText = (key) => key in TEXTS;

/** @param {readonly string[]} wanted */
export function wantedLanguage(wanted) {
  const found = wanted.map((name) => name.slice(0, 2).toLowerCase()).find((name) => name in LANGUAGES);
  return found ?? "en";
}

/**
 * @param {string} language
 * @param {number} count
 */
export const counted = (language, count) =>
  new Intl.NumberFormat(language, { maximumFractionDigits: 12 }).format(count);

// Other people's words keep their own direction and do not turn the sentence around.
/** @param {string} text */
const isolated = (text) => (RIGHT_TO_LEFT.test(text) ? `\u2068${text}\u2069` : text);

/**
 * @param {string} language
 * @param {string} key
 * @param {Record<string, unknown>} about
 * @returns {string}
 */
export function say(language, key, about = {}) {
  const at = Object.keys(LANGUAGES).indexOf(language);
  /** @param {string} name */
  const blank = (name) => {
    if (name === "values") return say(language, about.count === 1 ? "valueOne" : "valueMany", about);
    const found = about[name];
    return typeof found === "number" ? counted(language, found) : isolated(String(found));
  };
  const text = (TEXTS[key]?.[at] ?? key).replace(/\{(\w+)\}/g, (whole, name) =>
    name in about || name === "values" ? blank(name) : whole,
  );
  // French sets its marks apart, and never at the start of a line.
  return language === "fr" ? text.replace(/ ([:;?!»])/g, "\u00a0$1").replace(/« /g, "«\u00a0") : text;
}
