// Text that people write, and how text of others is shown: the rule of fss_ecdf/campaign/text.py, with the same ranges.

const FORBIDDEN = new RegExp(
  "[\\0-\\x1f\\x7f-\\x9f\\xad\\u034f\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u115f\\u1160" +
    "\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ud800-\\uf8ff" +
    "\\ufdd0-\\ufdef\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\uffff\\u{110bd}\\u{110cd}\\u{13430}-\\u{1343f}" +
    "\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{1fffe}\\u{1ffff}\\u{2fffe}\\u{2ffff}\\u{3fffe}-\\u{10ffff}]",
  "u",
);
const ONE_BLANK = "[ \\xa0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000]";
const SPARE_BLANKS = new RegExp(`^${ONE_BLANK}|${ONE_BLANK}{2}|${ONE_BLANK}$`, "u");
const MOST_MARKS = 4;
const LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?";
const ADDRESS = new RegExp(
  `^https://(?:${LABEL}(?:\\.${LABEL})*|\\[[0-9A-Fa-f:.]+\\])(?::([1-9][0-9]{0,4}))?` +
    "(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*/?$",
);

// What a server or another person wrote, on one line: what the rule forbids is spelt out, and heaps of combining marks.
/** @param {string} text */
export function shownPlainly(text) {
  let marks = MOST_MARKS;
  return Array.from(text, (one) => {
    marks = /\p{M}/u.test(one) ? marks + 1 : 0;
    return marks > MOST_MARKS || FORBIDDEN.test(one) ? `\\u{${Number(one.codePointAt(0)).toString(16)}}` : one;
  }).join("");
}

/** @param {string} text */
export const isText = (text) => !FORBIDDEN.test(text) && !SPARE_BLANKS.test(text);

/** @param {string} text */
export const isAddress = (text) => {
  const found = text.length <= 500 ? ADDRESS.exec(text) : null;
  return found !== null && Number(found[1] ?? 443) < 65536;
};
