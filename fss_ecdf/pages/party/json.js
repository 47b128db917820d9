// A strict JSON reader that keeps numbers as they are written: the digest of a campaign is over its text, and JavaScript
// would write 1.0 as 1. Objects are Maps, numbers are instances of `Numeral`; everything else is plain.

export class Numeral {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }

  get value() {
    return Number(this.text);
  }
}

/** @typedef {string | boolean | null | Numeral | JsonList | JsonMap} Json */
/** @typedef {Json[]} JsonList */
/** @typedef {Map<string, Json>} JsonMap */

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const BLANK = /[ \t\n\r]*/y;
const DEEPEST = 50;
/** @type {[string, boolean | null][]} */
const WORDS = [
  ["true", true],
  ["false", false],
  ["null", null],
];

class Reader {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  /** @param {RegExp} pattern */
  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (!found) return null;
    this.at = pattern.lastIndex;
    return found[0];
  }

  /** @param {string} word */
  take(word) {
    if (!this.text.startsWith(word, this.at)) return false;
    this.at += word.length;
    return true;
  }

  /** @param {string} word */
  need(word) {
    if (!this.take(word)) this.fail();
  }

  /** @returns {never} */
  fail() {
    throw new Error(`not JSON at character ${this.at}`);
  }

  /**
   * @param {number} depth
   * @returns {Json}
   */
  value(depth) {
    if (depth > DEEPEST) this.fail();
    this.match(BLANK);
    const found = this.one(depth);
    this.match(BLANK);
    return found;
  }

  /**
   * @param {number} depth
   * @returns {Json}
   */
  one(depth) {
    if (this.take("{")) return this.object(depth);
    if (this.take("[")) return this.array(depth);
    if (this.text[this.at] === '"') return this.string();
    for (const [word, meaning] of WORDS) if (this.take(word)) return meaning;
    return new Numeral(this.match(NUMBER) ?? this.fail());
  }

  /** @returns {string} */
  string() {
    const found = JSON.parse(this.match(STRING) ?? this.fail());
    if (/[\ud800-\udfff]/u.test(found)) throw new Error("half of a surrogate pair is not a character");
    return found;
  }

  /**
   * @param {number} depth
   * @returns {Json[]}
   */
  array(depth) {
    /** @type {Json[]} */
    const found = [];
    this.match(BLANK);
    if (this.take("]")) return found;
    do found.push(this.value(depth + 1));
    while (this.take(","));
    this.need("]");
    return found;
  }

  /**
   * @param {number} depth
   * @returns {Map<string, Json>}
   */
  object(depth) {
    const found = new Map();
    this.match(BLANK);
    if (this.take("}")) return found;
    do {
      this.match(BLANK);
      const name = this.string();
      if (found.has(name)) throw new Error("a field occurs twice");
      this.match(BLANK);
      this.need(":");
      found.set(name, this.value(depth + 1));
    } while (this.take(","));
    this.need("}");
    return found;
  }
}

/**
 * @param {string} text
 * @returns {Json}
 */
export function readJson(text) {
  const reader = new Reader(text);
  const found = reader.value(0);
  if (reader.at !== text.length) reader.fail();
  return found;
}

/**
 * @param {string} a
 * @param {string} b
 */
function byCodePoint(a, b) {
  const [x, y] = [a, b].map((text) => Array.from(text, (c) => Number(c.codePointAt(0))));
  for (let i = 0; i < Math.min(x.length, y.length); i++) if (x[i] !== y[i]) return x[i] - y[i];
  return x.length - y.length;
}

/** @type {Record<string, string>} */
const ESCAPES = { '"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** @param {string} text */
function quoted(text) {
  /** @param {string} c */
  const escape = (c) => ESCAPES[c] ?? `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return `"${text.replace(/["\\\u0000-\u001f]/g, escape)}"`;
}

// The one way to write it: sorted by code points, compact, numbers as they came.
/**
 * @param {Json} value
 * @returns {string}
 */
export function writeJson(value) {
  if (value instanceof Numeral) return value.text;
  if (value instanceof Map) {
    const sorted = [...value].sort(([a], [b]) => byCodePoint(a, b));
    return `{${sorted.map(([name, one]) => `${quoted(name)}:${writeJson(one)}`).join(",")}}`;
  }
  if (Array.isArray(value)) return `[${value.map(writeJson).join(",")}]`;
  return typeof value === "string" ? quoted(value) : String(value);
}
