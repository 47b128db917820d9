// Charts as SVG: axes, lines, bands, bars, points, rules, each with title, description and its numbers as a table.
// Colours and sizes come from the page's style sheet, by classes, so that dark mode is one rule there.

import { htmlElement, svgElement } from "./elements.js";

/** @typedef {{ min: number, max: number, label?: string, log?: boolean, ticks?: number[], format?: (x: number) => string }} AxisAbout */
/** @typedef {{ kind: string, series?: number, dashed?: boolean, points?: any[], bars?: any[], x?: number, y?: number, label?: string }} Mark */
/** @typedef {{ columns: string[], rows: any[][] }} Cells */
/** @typedef {Cells & { name: string }} Table */
/**
 * @typedef {{ title: string, description: string, x: AxisAbout, y: AxisAbout, marks: Mark[], series?: [string, number][],
 *   hidden?: number[], table?: Table, width?: number, height?: number }} ChartAbout
 */
/** @typedef {{ x: Scale, y: Scale }} Scales */
/** @typedef {HTMLElement & { scales: Scales, picture: SVGSVGElement }} Figure */

const MARGIN = { left: 66, right: 24, top: 22, bottom: 50 };
const LEGEND_LINE = 20;
const LONG_TABLE = 40; // rows from which a table scrolls within itself
const LETTER = 7.5; // about the width of one, in units of the picture

// A few round numbers from min to max.
/**
 * @param {number} min
 * @param {number} max
 */
export function roundTicks(min, max, about = 6) {
  const span = max - min;
  if (!(span > 0)) return [min];
  const rough = span / about,
    power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((x) => x * power).find((x) => x >= rough) ?? 10 * power;
  const ticks = [];
  for (let k = Math.ceil(min / step - 1e-9); k * step <= max + 1e-9 * span; k++)
    ticks.push(Number((k * step).toPrecision(12)));
  return ticks;
}

/** @param {number} x */
export const shortNumber = (x) => {
  if (Math.abs(x) >= 1e6 || (x !== 0 && Math.abs(x) < 1e-4)) return x.toExponential(2).replace("e+", "e");
  return String(Number(x.toPrecision(4)));
};

// Where numbers lie on the picture.
export class Scale {
  /**
   * @param {AxisAbout} about
   * @param {number} from
   * @param {number} to
   */
  constructor({ min, max, log = false }, from, to) {
    this.map = log ? Math.log : (/** @type {number} */ x) => x;
    this.back = log ? Math.exp : (/** @type {number} */ x) => x;
    this.low = this.map(min);
    this.high = this.map(max);
    this.from = from;
    this.to = to;
    if (!(this.high > this.low)) this.high = this.low + 1;
  }

  /** @param {number} x */
  at(x) {
    return this.from + ((this.map(x) - this.low) / (this.high - this.low)) * (this.to - this.from);
  }

  /** @param {number} pixel */
  inverse(pixel) {
    return this.back(this.low + ((pixel - this.from) / (this.to - this.from)) * (this.high - this.low));
  }
}

/** @param {number} x */
const near = (x) => Math.round(x * 100) / 100;

/**
 * @param {any[]} points
 * @param {Scale} x
 * @param {Scale} y
 */
function path(points, x, y) {
  const drawn = points.filter((p) => p.every(Number.isFinite));
  return drawn.map(([a, b], i) => `${i ? "L" : "M"}${near(x.at(a))} ${near(y.at(b))}`).join("");
}

// Flat until the next point, as a distribution function is.
/** @param {any[]} points */
export function stairs(points) {
  return points.flatMap((p, i) => (i ? [[p[0], points[i - 1][1]], p] : [p]));
}

/** @type {Record<string, (mark: Mark, x: Scale, y: Scale) => SVGElement[]>} */
const MARKS = {
  line: ({ points = [], series = 0, dashed }, x, y) => [
    svgElement("path", { d: path(points, x, y), class: `line s${series}${dashed ? " dashed" : ""}` }),
  ],
  band({ points = [], series = 0 }, x, y) {
    const lower = points.map(([a, low]) => [a, low]),
      upper = points.map(([a, , high]) => [a, high]).reverse();
    return [svgElement("path", { d: `${path([...lower, ...upper], x, y)}Z`, class: `band s${series}` })];
  },
  area: ({ points = [], series = 0 }, x, y) => [
    svgElement("path", { d: `${path(points, x, y)}Z`, class: `band s${series}` }),
  ],
  bars: ({ bars = [], series = 0 }, x, y) =>
    bars.map(([from, to, height]) => {
      const [left, right, top, base] = [x.at(from), x.at(to), y.at(height), y.at(0)].map(near);
      const size = {
        x: Math.min(left, right),
        width: Math.abs(right - left),
        y: Math.min(top, base),
        height: Math.abs(base - top),
      };
      return svgElement("rect", { ...size, class: `bar s${series}` });
    }),
  points: ({ points = [], series = 0 }, x, y) =>
    points.flatMap(([a, b, low, high]) => {
      const dot = svgElement("circle", { cx: near(x.at(a)), cy: near(y.at(b)), r: 4, class: `point s${series}` });
      if (low == null || high == null) return [dot];
      const whisker = { x1: near(x.at(a)), x2: near(x.at(a)), y1: near(y.at(low)), y2: near(y.at(high)) };
      return [svgElement("line", { ...whisker, class: `whisker s${series}` }), dot];
    }),
  whiskers: ({ points = [] }, x, y) =>
    points.map(([a, low, high]) => {
      const ends = { x1: near(x.at(a)), x2: near(x.at(a)), y1: near(y.at(low)), y2: near(y.at(high)) };
      return svgElement("line", { ...ends, class: "whisker plain" });
    }),
  rule({ x: at, y: height, label = "" }, x, y) {
    const across = height !== undefined;
    const ends = across
      ? { x1: x.from, x2: x.to, y1: near(y.at(height)), y2: near(y.at(height)) }
      : { x1: near(x.at(at ?? 0)), x2: near(x.at(at ?? 0)), y1: y.from, y2: y.to };
    const right = ends.x1 > (x.from + x.to) / 2;
    const words = {
      x: across ? x.to - 4 : ends.x1 + (right ? -5 : 5),
      // Below the line where there is no room above; the label of an upright line stands at the top.
      y: across ? ends.y1 + (ends.y1 < y.to + 34 ? 15 : -5) : y.to + 12,
      class: "rule-label",
      ...((across || right) && { "text-anchor": "end" }),
    };
    return [svgElement("line", { ...ends, class: "rule" }), svgElement("text", words, label)];
  },
};

/**
 * @param {Scale} x
 * @param {Scale} y
 * @param {ChartAbout} about
 */
function axes(x, y, about) {
  const made = [];
  let taken = -Infinity;
  const place = (/** @type {number} */ at) => (at < x.from + 20 ? "start" : at > x.to - 12 ? "end" : "middle");
  for (const tick of about.x.ticks ?? roundTicks(about.x.min, about.x.max, (x.to - x.from) / 100)) {
    const at = near(x.at(tick));
    if (at < x.from - 0.5 || at > x.to + 0.5) continue;
    const text = (about.x.format ?? shortNumber)(tick);
    const anchor = text.length > 6 ? place(at) : "middle";
    made.push(svgElement("line", { x1: at, x2: at, y1: y.from, y2: y.from + 5, class: "axis" }));
    const size = LETTER * text.length,
      left = { start: at, middle: at - size / 2, end: at - size }[anchor] ?? at;
    if (left < taken) continue; // a tick without a label, where that would lie on the one before
    taken = left + size + 4;
    made.push(svgElement("text", { x: at, y: y.from + 19, "text-anchor": anchor }, text));
  }
  for (const tick of about.y.ticks ?? roundTicks(about.y.min, about.y.max, 5)) {
    const at = near(y.at(tick));
    made.push(svgElement("line", { x1: x.from, x2: x.to, y1: at, y2: at, class: "gridline" }));
    const text = (about.y.format ?? shortNumber)(tick);
    made.push(svgElement("text", { x: x.from - 7, y: at + 4, "text-anchor": "end" }, text));
  }
  made.push(svgElement("line", { x1: x.from, x2: x.to, y1: y.from, y2: y.from, class: "axis" }));
  const middle = (y.from + y.to) / 2,
    words = { "text-anchor": "middle", class: "axis-label" };
  made.push(svgElement("text", { ...words, x: (x.from + x.to) / 2, y: y.from + 41 }, about.x.label ?? ""));
  made.push(
    svgElement("text", { ...words, x: 14, y: middle, transform: `rotate(-90 14 ${middle})` }, about.y.label ?? ""),
  );
  return made;
}

// For the saved picture, below it: on the page the legend is a row of buttons (explore.js).
/**
 * @param {[string, number][]} names
 * @param {number} width
 * @param {number} height
 */
function legend(names, width, height) {
  let [at, line] = [MARGIN.left, 0];
  const entries = names.flatMap(([name, series]) => {
    const size = 17 + LETTER * name.length + 16;
    if (at + size > width && at > MARGIN.left) [at, line] = [MARGIN.left, line + 1];
    const top = height + LEGEND_LINE * line;
    const made = [
      svgElement("rect", { x: at, y: top, width: 12, height: 12, class: `bar s${series}` }),
      svgElement("text", { x: at + 17, y: top + 11 }, name),
    ];
    at += size;
    return made;
  });
  return svgElement(
    "g",
    { class: "saved-legend", "data-height": names.length ? LEGEND_LINE * (line + 1) : 0 },
    ...entries,
  );
}

let charts = 0;

// Returns a figure; `figure.scales` are for those who read or drag on it. Marks of hidden series are left out.
/**
 * @param {ChartAbout} about
 * @returns {Figure}
 */
export function chart(about) {
  const { width = 640, height = 340, hidden = [], series = [] } = about;
  const x = new Scale(about.x, MARGIN.left, width - MARGIN.right);
  const y = new Scale(about.y, height - MARGIN.bottom, MARGIN.top);
  charts += 1;
  const ids = [`chart-${charts}-title`, `chart-${charts}-description`];
  const picture = svgElement("svg", {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-labelledby": ids.join(" "),
  });
  picture.append(
    svgElement("title", { id: ids[0] }, about.title),
    svgElement("desc", { id: ids[1] }, about.description),
  );
  const clip = `chart-${charts}-clip`;
  const frame = { x: x.from, y: y.to, width: x.to - x.from, height: y.from - y.to };
  picture.append(svgElement("clipPath", { id: clip }, svgElement("rect", frame)));
  const inside = svgElement("g", { "clip-path": `url(#${clip})` });
  const shown = about.marks.filter((mark) => mark.series === undefined || !hidden.includes(mark.series));
  for (const mark of shown) inside.append(...MARKS[mark.kind](mark, x, y));
  const named = series.filter(([, number]) => !hidden.includes(number));
  picture.append(...axes(x, y, about), inside, legend(named, width, height));
  const figure = htmlElement("figure", { class: "chart" }, htmlElement("div", { class: "stage" }, picture));
  if (about.table) figure.append(tableOf(about.table));
  return Object.assign(figure, { scales: { x, y }, picture });
}

// What is shown is rounded; the number itself is beside it, for those who check.
/**
 * @param {any} value
 * @param {string} column
 */
function cellOf(value, column) {
  if (typeof value !== "number") return htmlElement("td", {}, String(value ?? ""));
  const text = column === "p_value" && value < 1e-4 ? "< 0.0001" : shortNumber(value);
  return htmlElement("td", { "data-value": String(value) }, text);
}

// The numbers of a picture, folded away. A long table scrolls, and can be scrolled by keys.
/** @param {Table} table */
export function tableOf({ name, columns, rows }) {
  const names = columns.map((c) => htmlElement("th", { scope: "col" }, c.replaceAll("_", " ")));
  const body = rows.map((row) => htmlElement("tr", {}, ...row.map((value, i) => cellOf(value, columns[i]))));
  const made = htmlElement(
    "table",
    {},
    htmlElement("thead", {}, htmlElement("tr", {}, ...names)),
    htmlElement("tbody", {}, ...body),
  );
  const kind = rows.length > LONG_TABLE ? "scroller long" : "scroller";
  const scroller = htmlElement("div", { class: kind, tabindex: "0", role: "region", "aria-label": name }, made);
  return htmlElement("details", {}, htmlElement("summary", {}, name), scroller);
}
