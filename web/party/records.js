// Values and strata of a CSV file, and their places on the campaign's grid; the same rows as dealer/records.py reads.

import { Refusal, stripped } from "./grid.js";

const DELIMITERS = [",", ";", "\t"];

const occurrences = (text, mark) => text.split(mark).length - 1;

// Rows of cells. Quoted cells may hold delimiters, line ends and doubled quotes; empty lines are no rows.
export function readCsv(text) {
  const plain = text.startsWith("\ufeff") ? text.slice(1) : text;
  const first = plain.slice(0, (plain.indexOf("\n") + 1 || plain.length + 1) - 1);
  const delimiter = DELIMITERS.reduce((best, d) => (occurrences(first, d) > occurrences(first, best) ? d : best));
  return new CsvReader(plain, delimiter).rows();
}

class CsvReader {
  constructor(text, delimiter) {
    this.text = text;
    this.at = 0;
    this.delimiter = delimiter;
    this.plain = new RegExp(`[^${delimiter}\r\n]*`, "y");
  }

  rows() {
    const rows = [];
    while (this.at < this.text.length) {
      const row = this.row();
      if (row.length > 1 || row[0] !== "") rows.push(row);
    }
    return rows;
  }

  row() {
    const cells = [];
    for (;;) {
      cells.push(this.text[this.at] === '"' ? this.quoted() : this.unquoted());
      const end = this.text[this.at];
      this.at += 1;
      if (end === this.delimiter) continue;
      if (end === "\r" && this.text[this.at] === "\n") this.at += 1;
      return cells;
    }
  }

  unquoted() {
    this.plain.lastIndex = this.at;
    const [cell] = this.plain.exec(this.text);
    this.at += cell.length;
    return cell;
  }

  quoted() {
    let cell = "";
    for (;;) {
      const end = this.text.indexOf('"', this.at + 1);
      if (end < 0) throw new Refusal("openQuote");
      cell += this.text.slice(this.at + 1, end);
      this.at = end + 1;
      if (this.text[this.at] !== '"') return cell + this.unquoted();
      cell += '"';
    }
  }
}

// Where the values lie. `rows` are [value, stratum] texts; `firstRow` is how a spreadsheet numbers the first of them.
// What is empty is missing and left out; anything else that is not a value of the campaign is refused with its row.
export function place(campaign, rows, firstRow) {
  const { grid } = campaign;
  const numbers = new Map(campaign.strata.map((name, i) => [name, i]));
  const found = { positions: new Float64Array(rows.length), below: 0, above: 0, missing: 0, rows: rows.length };
  const [lowest, highest] = [grid.threshold(0), grid.threshold(grid.size - 1)];
  let count = 0;
  rows.forEach(([value, name], i) => {
    if (stripped(value ?? "") === "") {
      found.missing += 1;
      return;
    }
    const x = grid.number(value);
    const row = firstRow + i;
    if (Number.isNaN(x)) throw new Refusal(badValue(grid, value), { row, value: value.slice(0, 40) });
    const stratum = campaign.strata.length > 1 ? numbers.get(stripped(name ?? "")) : 0;
    if (stratum === undefined) throw new Refusal("badStratum", { row, value: (name ?? "").slice(0, 40) });
    found.below += x < lowest;
    found.above += x > highest;
    found.positions[count++] = campaign.position(stratum, grid.place(x));
  });
  found.positions = found.positions.slice(0, count);
  return found;
}

function badValue(grid, value) {
  if (grid.values !== "date" && /^\s*[+-]?[0-9]+,[0-9]+\s*$/.test(value)) return "decimalComma";
  return { float: "badNumber", integer: "badInteger", date: "badDate" }[grid.values];
}

// How many of these positions lie in each of at most `most` equal groups of neighbouring thresholds, for each stratum.
export function histogram(campaign, positions, most = 24) {
  const { grid } = campaign,
    width = 2 ** grid.bits;
  const each = Math.ceil(grid.size / most),
    bins = Math.ceil(grid.size / each);
  const counts = campaign.strata.map(() => new Array(bins).fill(0));
  for (const position of positions) counts[Math.floor(position / width)][Math.floor((position % width) / each)] += 1;
  const labels = Array.from({ length: bins }, (_, i) => grid.label(Math.min(grid.size, (i + 1) * each) - 1));
  return { labels, counts };
}
