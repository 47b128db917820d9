// Values and strata of a CSV file, and their places on the campaign's grid: read as dealer/file_formats.py and dealer/input_rows.py
// read them, with the same words for missing values and the same doubts.

import { Refusal, stripped } from "./grid.js";
/** @import { Campaign } from "./campaign.js" */
/** @import { AnyGrid } from "./grid.js" */

/** @typedef {[value: string, stratum: string, row: number]} Row */
/** @typedef {{ rows: string[][], numbers: number[], delimiter: string, width: number }} Table */
/** @typedef {{ labels: string[], counts: number[][] }} Histogram */
/** @typedef {{ name: string, samples: string[], scale: number, groups: number }} Profile */
/** @typedef {{ positions: Float64Array, below: number, above: number, off: { row: number, value: string }[] }} PlacedRows */

/** @typedef {{ columns: Profile[], rows: number, header: boolean, latin1: boolean, name: string }} ReadFile */
/** @typedef {{ positions: Float64Array, one: { x: number, index: number } }} PlacedOne */
/** @typedef {PlacedRows & { read: number, missing: number, commas: boolean, histogram: Histogram }} PlacedFile */
/** @typedef {PlacedOne | PlacedFile} Placed what would be sent: one value as it was typed, or the rows of a file */

const DELIMITERS = [";", "\t", "|", ","]; // of two that fit as well, the one that is rarer within values
const SAMPLE_LINES = 50;
const SAMPLE_TEXT = 65536;
const MISSING_WORDS = new Set(["", "na", "n/a", "#n/a", "nan", "null", "none", "missing", "nd", ".", "-", "--", "?"]);
const WITH_COMMA = /^[+-]?[0-9]*,[0-9]+$/;
const WITH_THOUSANDS = /^[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+$/;
/** @type {Record<string, string>} */
const BYTE_ORDERS = { "255,254": "utf-16le", "254,255": "utf-16be" };
/** @type {Record<string, string>} */
const BAD_VALUES = { float: "badNumber", integer: "badInteger", date: "badDate" };
const MOST_CLIPPED = 0.05;
const MOST_SHOWN = 5;
const PROFILED_ROWS = 2000;

// A file's text by what it begins with, and whether it had to be read as Latin-1.
/** @param {Uint8Array} bytes */
export function decodeFile(bytes) {
  const wide = BYTE_ORDERS[String(bytes.slice(0, 2))];
  let [text, latin1] = ["", false];
  try {
    text = new TextDecoder(wide ?? "utf-8", { fatal: true }).decode(bytes);
  } catch {
    [text, latin1] = [Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""), true];
  }
  if (text.includes("\0")) throw new Refusal("notText");
  return { text, latin1 };
}

// Rows of cells without blanks around them, and the line in which each ends, counted from 1. Quoted cells may hold
// delimiters, line ends and doubled quotes; rows of empty cells are no rows.
/** @param {string} text */
export function readTable(text) {
  const plain = text.startsWith("\ufeff") ? text.slice(1) : text;
  const delimiter = delimiterOf(plain);
  const read = new CsvReader(plain, delimiter || "\t").rows();
  return { ...read, delimiter, width: Math.max(0, ...read.rows.slice(0, PROFILED_ROWS).map((row) => row.length)) };
}

// The one that cuts the first lines into the same number of cells, more than one.
/** @param {string} text */
function delimiterOf(text) {
  const lines = text
    .slice(0, SAMPLE_TEXT)
    .split(/\r\n|\r|\n/)
    .slice(0, SAMPLE_LINES)
    .filter((line) => stripped(line) !== "");
  if (lines.length > 1 && text.length > SAMPLE_TEXT) lines.pop(); // it may be cut off
  let [best, chosen] = [0, ""];
  for (const candidate of DELIMITERS) {
    const widths = new CsvReader(lines.join("\n"), candidate, true).rows().rows.map((row) => row.length);
    const fit = widths.filter((width) => width === widths[0]).length / widths.length;
    if (widths[0] > 1 && fit > best) [best, chosen] = [fit, candidate];
  }
  return chosen;
}

class CsvReader {
  // `lenient`: of a sample, which may end inside a quoted cell; every row counts, also an empty one.
  /**
   * @param {string} text
   * @param {string} delimiter
   * @param {boolean} [lenient]
   */
  constructor(text, delimiter, lenient = false) {
    this.text = text;
    this.at = 0;
    this.line = 1;
    this.delimiter = delimiter;
    this.lenient = lenient;
    this.plain = new RegExp(`[^${delimiter === "|" ? "\\|" : delimiter}\r\n]*`, "y");
  }

  rows() {
    /** @type {string[][]} */
    const rows = [];
    /** @type {number[]} */
    const numbers = [];
    while (this.at < this.text.length) {
      const row = this.row();
      if (this.lenient || row.some((cell) => cell !== "")) {
        rows.push(row);
        numbers.push(this.line);
      }
      this.line += 1;
    }
    return { rows, numbers };
  }

  row() {
    const cells = [];
    for (;;) {
      while (this.text[this.at] === " ") this.at += 1;
      cells.push(stripped(this.text[this.at] === '"' ? this.quoted() : this.unquoted()));
      const end = this.text[this.at];
      this.at += 1;
      if (end === this.delimiter) continue;
      if (end === "\r" && this.text[this.at] === "\n") this.at += 1;
      return cells;
    }
  }

  unquoted() {
    this.plain.lastIndex = this.at;
    const cell = this.plain.exec(this.text)?.[0] ?? "";
    this.at += cell.length;
    return cell;
  }

  quoted() {
    let cell = "";
    for (;;) {
      const end = this.text.indexOf('"', this.at + 1);
      if (end < 0 && !this.lenient) throw new Refusal("openQuote");
      const part = this.text.slice(this.at + 1, end < 0 ? undefined : end);
      this.line += part.split(/\r\n|\r|\n/).length - 1;
      cell += part;
      this.at = end < 0 ? this.text.length : end + 1;
      if (this.text[this.at] !== '"') return cell + this.unquoted();
      cell += '"';
    }
  }
}

/** @param {string} cell */
const isMissing = (cell) => MISSING_WORDS.has(cell.toLowerCase());

// No cell of a header is a value: whether the first row is one.
/**
 * @param {AnyGrid} grid
 * @param {string[]} first
 */
export function hasHeader(grid, first) {
  /** @param {string} cell */
  const isValue = (cell) => !Number.isNaN(grid.number(cell));
  return !first.some((cell) => isValue(cell) || isValue(cell.replace(",", ".")) || (cell !== "" && isMissing(cell)));
}

// A list of numbers with decimal commas looks like two columns of numbers: somebody has to say.
/** @param {Table} about */
export function checkCommaList({ rows, delimiter }) {
  const joined = rows.map((row) => row.join(","));
  if (delimiter === "," && joined.length && joined.every((text) => WITH_COMMA.test(text)))
    throw new Refusal("commaList", { value: joined[0].slice(0, 40) });
}

// What a person needs to choose a column: its first cells, and how many of its cells fit the scale or are strata.
/**
 * @param {Campaign} campaign
 * @param {boolean} header
 */
/**
 * @param {Campaign} campaign
 * @param {Table} table
 * @param {boolean} header
 * @returns {Profile[]}
 */
export function profiles(campaign, { rows, width }, header) {
  const body = rows.slice(header ? 1 : 0, PROFILED_ROWS);
  const [lowest, highest] = ends(campaign.variable.grid);
  return Array.from({ length: width }, (_, column) => {
    const cells = body.map((row) => row[column] ?? "").filter((cell) => !isMissing(cell));
    /** @param {string} cell */
    const onScale = (cell) => {
      const x = campaign.variable.grid.number(cell.replace(",", "."));
      return x >= lowest && x <= highest;
    };
    /** @param {(cell: string) => boolean} fits */
    const percent = (fits) => Math.floor((100 * cells.filter(fits).length) / Math.max(1, cells.length));
    return {
      name: (header && rows[0][column]) || "",
      samples: cells.slice(0, 3).map((cell) => cell.slice(0, 30)),
      scale: percent(onScale),
      groups: percent((cell) => campaign.strata.includes(cell)),
    };
  });
}

/** @param {AnyGrid} grid */
const ends = (grid) => [grid.threshold(0), grid.threshold(grid.size - 1)];

// The rows of a table as `place` takes them, and whether commas were read as decimal marks. Rows without a value or a
// stratum are counted and left out. Where a comma may stand for thousands, somebody has to say.
/**
 * @param {Table} table
 * @param {{ column: number, stratum: number | null, header: boolean }} choice
 */
export function chosenRows({ rows, numbers }, { column, stratum, header }) {
  /** @type {Row[]} */
  const whole = rows.map((row, i) => [row[column] ?? "", stratum === null ? "" : (row[stratum] ?? ""), numbers[i]]);
  const all = whole.slice(header ? 1 : 0);
  const kept = all.filter(([value, name]) => !isMissing(value) && (stratum === null || !isMissing(name)));
  const commas = kept.map(([value]) => value).filter((value) => WITH_COMMA.test(value) || WITH_THOUSANDS.test(value));
  if (commas.length && commas.every((value) => WITH_THOUSANDS.test(value)))
    throw new Refusal("groupedColumn", { value: commas[0].slice(0, 40) });
  for (const row of kept) if (WITH_COMMA.test(row[0])) row[0] = row[0].replace(",", ".");
  return { rows: kept, read: all.length, missing: all.length - kept.length, commas: commas.length > 0 };
}

// Where the values lie. `rows` are [value, stratum, number of the row]. All rows that are wrong are counted, and the first
// of them shown; values off the scale are moved to its ends, counted, and the first of them shown.
/**
 * @param {Campaign} campaign
 * @param {Row[]} rows
 * @returns {PlacedRows}
 */
export function place(campaign, rows) {
  const { grid } = campaign.variable;
  const numbers = new Map(campaign.strata.map((name, i) => [name, i]));
  /** @type {PlacedRows} */
  const found = { positions: new Float64Array(rows.length), below: 0, above: 0, off: [] };
  const [lowest, highest] = ends(grid);
  /** @type {{ row: number, key: string, value: string }[]} */
  const wrong = [];
  rows.forEach(([value, name, row], i) => {
    const x = grid.number(value);
    const stratum = campaign.strata.length > 1 ? numbers.get(stripped(name)) : 0;
    if (Number.isNaN(x)) wrong.push({ row, key: badValueKey(grid), value: value.slice(0, 40) });
    else if (stratum === undefined) wrong.push({ row, key: "badStratum", value: name.slice(0, 40) });
    else {
      if (x < lowest) found.below += 1;
      if (x > highest) found.above += 1;
      if ((x < lowest || x > highest) && found.off.length < MOST_SHOWN)
        found.off.push({ row, value: value.slice(0, 40) });
      found.positions[i] = campaign.position(stratum, grid.place(x));
    }
  });
  if (wrong.length)
    throw new Refusal("badRows", { bad: wrong.length, rows: rows.length, wrong: wrong.slice(0, MOST_SHOWN) });
  return found;
}

// Many values off the scale mean that it is another column, or another unit: somebody has to say that they are right.
/**
 * @param {{ positions: ArrayLike<number>, below: number, above: number }} about
 * @param {boolean} allowed
 */
export function checkClipping({ positions, below, above }, allowed) {
  const off = below + above;
  if (!allowed && off > MOST_CLIPPED * positions.length) throw new Refusal("manyOff", { off, count: positions.length });
}

/** @param {AnyGrid} grid */
export const badValueKey = (grid) => BAD_VALUES[grid.values];

// How many of these positions lie in each of at most `most` equal groups of neighbouring thresholds, for each stratum.
/**
 * @param {Campaign} campaign
 * @param {ArrayLike<number>} positions
 * @param {number} [most]
 */
export function histogram(campaign, positions, most = 24) {
  const { grid, indexBits } = campaign.variable,
    width = 2 ** indexBits;
  const each = Math.ceil(grid.size / most),
    bins = Math.ceil(grid.size / each);
  const counts = campaign.strata.map(() => Array.from({ length: bins }, () => 0));
  for (const position of Array.from(positions))
    counts[Math.floor(position / width)][Math.floor((position % width) / each)] += 1;
  const labels = Array.from({ length: bins }, (_, i) => grid.label(Math.min(grid.size, (i + 1) * each) - 1));
  return { labels, counts };
}
