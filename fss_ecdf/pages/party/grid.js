// The public grid of thresholds, and how a value becomes an index on it: fss_ecdf/campaign/grid.py, with the same arithmetic.

import { decimal, stepFactor, times, toDouble } from "./decimal.js";
import { Numeral } from "./json.js";
/** @import { Json } from "./json.js" */

// A value or a campaign that is refused; `key` names the text of texts.js that says why, `about` its blanks.
export class Refusal extends Error {
  /**
   * @param {string} key
   * @param {Record<string, any>} [about]
   */
  constructor(key, about = {}) {
    super(key);
    this.key = key;
    this.about = about;
    /** @type {string | null} what has become of what was sent */
    this.after = null;
    /** @type {string | undefined} the stable code of what a server refused */
    this.code = undefined;
    /** @type {number | undefined} the end of the scale beyond which a value lies */
    this.end = undefined;
  }
}

const LITERAL = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/;
const DAY =
  /^([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?$/;
const BLANKS = /^[\s\u001c-\u001f\u0085]+|[\s\u001c-\u001f\u0085]+$/g;

/** @param {string} text */
export const stripped = (text) => text.replace(BLANKS, "");

// Days since 1970-01-01 of an ISO date, or NaN.
/** @param {string} text */
export function dayNumber(text) {
  const found = DAY.exec(text);
  if (!found || found[1] === "0000") return NaN;
  const [year, month, day] = found.slice(1, 4).map(Number);
  const time = new Date(0);
  time.setUTCFullYear(year, month - 1, day);
  const right = time.getUTCMonth() === month - 1 && time.getUTCDate() === day;
  const clock = /[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?/.exec(text) ?? [];
  const [hours, minutes, seconds] = clock.slice(1).map((part) => Number(part ?? 0));
  if (!right || hours > 23 || minutes > 59 || seconds > 59) return NaN;
  return Math.round(time.getTime() / 86400000);
}

/** @param {number} days */
const dayText = (days) => new Date(days * 86400000).toISOString().slice(0, 10);

/**
 * @param {unknown} condition
 * @param {string} field
 * @returns {asserts condition}
 */
function need(condition, field) {
  if (!condition) throw new Refusal("badCampaign", { field });
}

/**
 * @param {unknown} found
 * @param {string} field
 * @returns {Numeral}
 */
const numeral = (found, field) => {
  need(found instanceof Numeral && Number.isFinite(found.value), field);
  return found;
};

// The literal as digits over a power of ten, exactly.
/**
 * @param {string} literal
 * @returns {Exact}
 */
function exact(literal) {
  const found = /^(-?)([0-9]+)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?$/.exec(literal);
  need(found, "grid");
  const [, sign, whole, part = "", power = "0"] = found;
  const places = part.length - Number(power);
  const digits = BigInt(sign + whole + part);
  return places >= 0 ? { digits, places } : { digits: digits * 10n ** BigInt(-places), places: 0 };
}

/**
 * @param {Exact} about
 * @returns {Exact}
 */
function shortened({ digits, places }) {
  while (places && digits % 10n === 0n) [digits, places] = [digits / 10n, places - 1];
  return { digits, places };
}

// Bits that tell so many things apart.
/** @param {number} count */
export function bitsFor(count) {
  let bits = 0;
  while (2 ** bits < count) bits += 1;
  return bits;
}

/** @typedef {Grid} AnyGrid */
/** @typedef {{ digits: bigint, places: number }} Exact */

class Grid {
  /** @param {unknown} values */
  constructor(values) {
    need(values === "float" || values === "integer" || values === "date", "grid.values");
    this.values = values;
    this.size = 0;
  }

  /**
   * @param {number} index
   * @returns {number}
   */
  threshold(index) {
    throw new Error(`a grid of no kind has no threshold ${index}`);
  }

  // The index of the first threshold that is at least x.
  /**
   * @param {number} x
   * @returns {number}
   */
  firstAtLeast(x) {
    throw new Error(`a grid of no kind has no threshold at least ${x}`);
  }

  get bits() {
    return Math.max(1, bitsFor(this.size));
  }

  // A text as a number of this grid's kind; NaN if it is none.
  /** @param {string} text */
  number(text) {
    const plain = stripped(text);
    if (this.values === "date") return dayNumber(plain);
    const x = LITERAL.test(plain) ? Number(plain) : NaN;
    if (!Number.isFinite(x) || (this.values === "integer" && x !== Math.floor(x))) return NaN;
    return x;
  }

  // The index of a number; beyond the last threshold it is the last one's.
  /** @param {number} x */
  place(x) {
    return Math.min(this.firstAtLeast(x), this.size - 1);
  }

  /** @param {number} index */
  label(index) {
    const x = this.threshold(index);
    if (this.values === "date") return dayText(x);
    return this.values === "integer" ? String(x) : String(Number(x.toPrecision(10)));
  }
}

class LinearGrid extends Grid {
  /**
   * @param {Map<string, Json>} fields
   * @param {unknown} values
   */
  constructor(fields, values) {
    super(values);
    const literals = ["from", "to", "step"].map((name) => this.literal(fields.get(name), `grid.${name}`));
    const parts = literals.map((text) => shortened(exact(text)));
    const places = Math.max(...parts.map((p) => p.places));
    need(places <= 22, "grid.step");
    const [first, last, step] = parts.map((p) => p.digits * 10n ** BigInt(places - p.places));
    need(step > 0n && last > first && (last - first) % step === 0n, "grid.step");
    need(first >= -(10n ** 15n) && last <= 10n ** 15n, "grid.to");
    this.size = Number((last - first) / step) + 1;
    need(this.size <= 2 ** 32, "grid.step");
    this.first = Number(first);
    this.step = Number(step);
    this.scale = 10 ** places;
  }

  /**
   * @param {unknown} found
   * @param {string} field
   * @returns {string}
   */
  literal(found, field) {
    if (this.values === "date" && field !== "grid.step") {
      const days = typeof found === "string" && found.length === 10 ? dayNumber(found) : NaN;
      need(Number.isInteger(days), field);
      return String(days);
    }
    return numeral(found, field).text;
  }

  // Both operands are exact, so the quotient is the decimal number, correctly rounded.
  /** @param {number} index */
  threshold(index) {
    return (this.first + index * this.step) / this.scale;
  }

  /** @param {number} x */
  firstAtLeast(x) {
    const clipped = Math.min(Math.max(x, this.threshold(0)), this.threshold(this.size - 1));
    const guess = Math.ceil((clipped * this.scale - this.first) / this.step);
    let at = Math.min(Math.max(guess, 0), this.size - 1);
    // The guess is off by at most one step, by rounding; the thresholds themselves decide.
    if (at > 0 && this.threshold(at - 1) >= x) at -= 1;
    return this.threshold(at) < x ? at + 1 : at;
  }
}

/**
 * @param {Float64Array} list
 * @param {number} x
 */
function firstInList(list, x) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (list[middle] >= x) high = middle;
    else low = middle + 1;
  }
  return low;
}

class ListedGrid extends Grid {
  /**
   * @param {Float64Array} list
   * @param {unknown} values
   */
  constructor(list, values) {
    super(values);
    need(list.length >= 2 && list.every((x, i) => !i || x > list[i - 1]), "grid");
    this.list = list;
    this.size = list.length;
  }

  /** @param {number} index */
  threshold(index) {
    return this.list[index];
  }

  /** @param {number} x */
  firstAtLeast(x) {
    return firstInList(this.list, x);
  }
}

// `count` thresholds, each the same factor above the last. The list is made when it is needed: it may be long.
class LogGrid extends Grid {
  /** @param {Map<string, Json>} fields */
  constructor(fields) {
    super("float");
    const [start, stop] = ["from", "to"].map((name) => numeral(fields.get(name), `grid.${name}`));
    const count = numeral(fields.get("count"), "grid.count").value;
    need(Number.isInteger(count) && count >= 2 && count <= 2 ** 22, "grid.count");
    need(start.value > 0 && stop.value > start.value, "grid.from");
    this.start = start;
    this.stop = stop;
    this.size = count;
    /** @type {Float64Array | null} */
    this.listed = null;
  }

  get list() {
    this.listed ??= this.computed();
    return this.listed;
  }

  computed() {
    let tau = decimal(this.start.text);
    const factor = stepFactor(tau, decimal(this.stop.text), this.size - 1);
    const list = new Float64Array(this.size);
    for (let i = 0; i < this.size - 1; i++) {
      list[i] = toDouble(tau);
      tau = times(tau, factor);
    }
    list[this.size - 1] = this.stop.value;
    return list;
  }

  /** @param {number} index */
  threshold(index) {
    if (index === 0) return this.start.value;
    return index === this.size - 1 ? this.stop.value : this.list[index];
  }

  /** @param {number} x */
  firstAtLeast(x) {
    return firstInList(this.list, x);
  }
}

/**
 * @param {Map<string, Json>} fields
 * @param {unknown} values
 */
function explicit(fields, values) {
  const at = fields.get("at");
  need(Array.isArray(at), "grid.at");
  /** @param {unknown} x */
  const one = (x) =>
    values === "date" && typeof x === "string" && x.length === 10 ? dayNumber(x) : numeral(x, "grid.at").value;
  const list = at.map(one);
  return new ListedGrid(Float64Array.from(list), values);
}

/**
 * @param {unknown} fields
 * @returns {AnyGrid}
 */
export function readGrid(fields) {
  need(fields instanceof Map, "grid");
  const values = fields.get("values");
  const kind = fields.get("kind");
  if (kind === "linear") return new LinearGrid(fields, values);
  if (kind === "logarithmic") return new LogGrid(fields);
  if (kind === "explicit") return explicit(fields, values);
  throw new Refusal("badCampaign", { field: "grid.kind" });
}
