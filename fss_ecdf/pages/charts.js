// Charts as SVG: axes, lines, bands, bars, points, rules, each with title, description and its numbers as a table.
// Colours and sizes come from the page's style sheet, by classes, so that dark mode is one rule there.

import { SVG, htmlElement, svgElement } from "./elements.js";

const MARGIN = { left: 58, right: 34, top: 30, bottom: 46 };

// A few round numbers from min to max.
export function roundTicks(min, max, about = 6) {
  const span = max - min;
  if (!(span > 0)) return [min];
  const rough = span / about,
    power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((x) => x * power).find((x) => x >= rough);
  const ticks = [];
  for (let k = Math.ceil(min / step - 1e-9); k * step <= max + 1e-9 * span; k++)
    ticks.push(Number((k * step).toPrecision(12)));
  return ticks;
}

export const shortNumber = (x) => {
  if (Math.abs(x) >= 1e6 || (x !== 0 && Math.abs(x) < 1e-4)) return x.toExponential(2).replace("e+", "e");
  return String(Number(x.toPrecision(4)));
};

// Where numbers lie on the picture.
class Scale {
  constructor({ min, max, log = false }, from, to) {
    this.map = log ? Math.log : (x) => x;
    this.back = log ? Math.exp : (x) => x;
    [this.low, this.high, this.from, this.to] = [this.map(min), this.map(max), from, to];
    if (!(this.high > this.low)) this.high = this.low + 1;
  }

  at(x) {
    return this.from + ((this.map(x) - this.low) / (this.high - this.low)) * (this.to - this.from);
  }

  inverse(pixel) {
    return this.back(this.low + ((pixel - this.from) / (this.to - this.from)) * (this.high - this.low));
  }
}

const near = (x) => Math.round(x * 100) / 100;

function path(points, x, y) {
  const drawn = points.filter((p) => p.every(Number.isFinite));
  return drawn.map(([a, b], i) => `${i ? "L" : "M"}${near(x.at(a))} ${near(y.at(b))}`).join("");
}

// Flat until the next point, as a distribution function is.
export function stairs(points) {
  return points.flatMap((p, i) => (i ? [[p[0], points[i - 1][1]], p] : [p]));
}

const MARKS = {
  line: ({ points, series = 0, dashed }, x, y) => [
    svgElement("path", { d: path(points, x, y), class: `line s${series}${dashed ? " dashed" : ""}` }),
  ],
  band({ points, series = 0 }, x, y) {
    const lower = points.map(([a, low]) => [a, low]),
      upper = points.map(([a, , high]) => [a, high]).reverse();
    return [svgElement("path", { d: `${path([...lower, ...upper], x, y)}Z`, class: `band s${series}` })];
  },
  area: ({ points, series = 0 }, x, y) => [
    svgElement("path", { d: `${path(points, x, y)}Z`, class: `band s${series}` }),
  ],
  bars: ({ bars, series = 0 }, x, y) =>
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
  points: ({ points, series = 0 }, x, y) =>
    points.flatMap(([a, b, low, high]) => {
      const dot = svgElement("circle", { cx: near(x.at(a)), cy: near(y.at(b)), r: 4, class: `point s${series}` });
      if (low === undefined) return [dot];
      const whisker = { x1: near(x.at(a)), x2: near(x.at(a)), y1: near(y.at(low)), y2: near(y.at(high)) };
      return [svgElement("line", { ...whisker, class: `whisker s${series}` }), dot];
    }),
  rule({ x: at, y: height, label = "" }, x, y) {
    const across = height !== undefined;
    const ends = across
      ? { x1: x.from, x2: x.to, y1: near(y.at(height)), y2: near(y.at(height)) }
      : { x1: near(x.at(at)), x2: near(x.at(at)), y1: y.from, y2: y.to };
    const right = ends.x1 > (x.from + x.to) / 2;
    const words = {
      x: across ? x.to - 4 : ends.x1 + (right ? -5 : 5),
      y: across ? ends.y1 - 5 : y.to + 12,
      class: "rule-label",
    };
    if (across || right) words["text-anchor"] = "end";
    return [svgElement("line", { ...ends, class: "rule" }), svgElement("text", words, label)];
  },
};

function axes(x, y, about) {
  const made = [];
  for (const tick of about.x.ticks ?? roundTicks(about.x.min, about.x.max, (x.to - x.from) / 90)) {
    const at = near(x.at(tick));
    made.push(svgElement("line", { x1: at, x2: at, y1: y.from, y2: y.from + 5, class: "axis" }));
    made.push(
      svgElement("text", { x: at, y: y.from + 18, "text-anchor": "middle" }, (about.x.format ?? shortNumber)(tick)),
    );
  }
  for (const tick of about.y.ticks ?? roundTicks(about.y.min, about.y.max, 5)) {
    const at = near(y.at(tick));
    made.push(svgElement("line", { x1: x.from, x2: x.to, y1: at, y2: at, class: "gridline" }));
    made.push(
      svgElement("text", { x: x.from - 7, y: at + 4, "text-anchor": "end" }, (about.y.format ?? shortNumber)(tick)),
    );
  }
  made.push(svgElement("line", { x1: x.from, x2: x.to, y1: y.from, y2: y.from, class: "axis" }));
  const middle = (y.from + y.to) / 2;
  made.push(
    svgElement(
      "text",
      { x: (x.from + x.to) / 2, y: y.from + 38, "text-anchor": "middle", class: "axis-label" },
      about.x.label ?? "",
    ),
  );
  made.push(
    svgElement(
      "text",
      { x: 13, y: middle, "text-anchor": "middle", class: "axis-label", transform: `rotate(-90 13 ${middle})` },
      about.y.label ?? "",
    ),
  );
  return made;
}

function legend(names) {
  let at = MARGIN.left;
  return names.flatMap(([name, series]) => {
    const made = [
      svgElement("rect", { x: at, y: 8, width: 12, height: 12, class: `bar s${series}` }),
      svgElement("text", { x: at + 17, y: 18 }, name),
    ];
    at += 17 + 7.5 * name.length + 16;
    return made;
  });
}

let charts = 0;

// `about`: title, description, x and y (min, max, label, log, ticks, format), marks, series ([name, number] for the
// legend), table ({ columns, rows }) and its name. Returns a figure; `figure.scales` are for those who want to drag.
export function chart(about) {
  const { width = 640, height = 340 } = about;
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
  for (const mark of about.marks) inside.append(...MARKS[mark.kind](mark, x, y));
  picture.append(...axes(x, y, about), inside, ...legend(about.series ?? []));
  picture.style.maxWidth = `${1.15 * width}px`;
  const figure = htmlElement("figure", { class: "chart" }, picture);
  if (about.table) figure.append(tableOf(about.table));
  figure.scales = { x, y };
  return figure;
}

// The numbers of a picture, folded away. A long table scrolls, and can be scrolled by keys.
export function tableOf({ name, columns, rows }) {
  const head = htmlElement(
    "tr",
    {},
    ...columns.map((c) => htmlElement("th", { scope: "col" }, c.replaceAll("_", " "))),
  );
  // What is shown is rounded; the number itself is beside it, for those who check.
  const shown = (value, column) => (column === "p_value" && value < 1e-4 ? "< 0.0001" : shortNumber(value));
  const cell = (value, i) =>
    typeof value === "number"
      ? htmlElement("td", { "data-value": String(value) }, shown(value, columns[i]))
      : htmlElement("td", {}, String(value ?? ""));
  const body = rows.map((row) => htmlElement("tr", {}, ...row.map(cell)));
  const table = htmlElement("table", {}, htmlElement("thead", {}, head), htmlElement("tbody", {}, ...body));
  const scroller = htmlElement("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": name }, table);
  return htmlElement("details", {}, htmlElement("summary", {}, name), scroller);
}

// A text that no spreadsheet takes for a formula, wherever it thinks that a cell begins; numbers are left alone.
function unlikeFormula(text) {
  if (/^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/.test(text)) return text;
  return text.replace(/(^|[;\t\r\n]\s*)([=+\-@\uff1d\uff0b\uff0d\uff20])/g, "$1'$2");
}

// The numbers of a table as a file: every digit, as JavaScript writes doubles.
export function csvOf({ columns, rows }) {
  const cell = (value) => {
    const text = typeof value === "string" ? unlikeFormula(value) : String(value ?? "");
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
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

// The picture as a file of its own, with what the style sheet says written into it.
export function standalone(picture) {
  const copy = picture.cloneNode(true);
  const originals = [picture, ...picture.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, i) => {
    const style = getComputedStyle(originals[i]);
    for (const name of DRAWN) element.setAttribute(name, style.getPropertyValue(name));
  });
  copy.setAttribute("xmlns", SVG);
  const { width, height } = picture.viewBox.baseVal;
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const paper = svgElement("rect", { width, height, fill: getComputedStyle(document.body).backgroundColor });
  copy.insertBefore(paper, copy.firstChild);
  return new XMLSerializer().serializeToString(copy);
}

export function download(name, type, content) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = htmlElement("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
