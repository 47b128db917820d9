// Reading a chart: a crosshair with all series and their intervals, a legend that shows and hides series, a brush that
// zooms, handles that are dragged; with the pointer, and with the keyboard alone.

import { htmlElement, svgElement } from "./elements.js";
/** @import { Figure, Scales } from "./charts.js" */

/** @typedef {{ name: string, series: number, values: any[], low?: any[], high?: any[] }} ReadSeries */
/**
 * What a crosshair reads: `at` are the places that can be read, in order, `say` names one of them, `format` writes a value.
 * @typedef {{ at: number[], say: (index: number) => string, rows: ReadSeries[], format: (x: any) => string, start?: number }} Reading
 */
/** @typedef {{ input: HTMLInputElement, to: (scales: Scales, x: number, y: number) => number, away: (scales: Scales, x: number, y: number) => number }} Handle */
/**
 * @typedef {{ title: string, reading?: Reading, legend?: [string, number][], hidden?: number[], handles?: Handle[],
 *   onhide?: (hidden: number[]) => void, zoomed?: boolean, onzoom?: (range: [number, number] | null) => void,
 *   onpick?: (index: number) => void }} Exploring
 */

const GRIP = 14; // how near to a handle a drag begins, in units of the picture
const LEAST_BRUSH = 10;
const BIG_STEPS = 10;

/** @type {Record<string, (index: number, last: number) => number>} */
const KEYS = {
  ArrowLeft: (index) => index - 1,
  ArrowRight: (index) => index + 1,
  ArrowDown: (index) => index - 1,
  ArrowUp: (index) => index + 1,
  PageDown: (index, last) => index - Math.ceil(last / BIG_STEPS),
  PageUp: (index, last) => index + Math.ceil(last / BIG_STEPS),
  Home: () => 0,
  End: (_, last) => last,
};

/**
 * @param {Figure} figure
 * @param {Exploring} about
 */
export function explore(figure, about) {
  const { legend = [], hidden = [], onhide } = about;
  if (legend.length > 1 && onhide) figure.prepend(legendButtons(legend, hidden, onhide));
  if (about.reading) new Explorer(figure, about, about.reading);
  return figure;
}

/**
 * @param {[string, number][]} names
 * @param {number[]} hidden
 * @param {(hidden: number[]) => void} onhide
 */
function legendButtons(names, hidden, onhide) {
  const buttons = names.map(([name, series]) => {
    const isHidden = hidden.includes(series);
    const made = htmlElement(
      "button",
      { type: "button", "aria-pressed": String(!isHidden), "data-series": series },
      htmlElement("span", { class: `swatch k${series}`, "aria-hidden": "true" }),
      htmlElement("span", { lang: "", dir: "auto" }, name),
    );
    made.onclick = () => onhide(isHidden ? hidden.filter((one) => one !== series) : [...hidden, series]);
    return made;
  });
  return htmlElement("div", { class: "legend", role: "group", "aria-label": "Shown in the chart" }, ...buttons);
}

class Explorer {
  /**
   * @param {Figure} figure
   * @param {Exploring} about
   * @param {Reading} reading
   */
  constructor(figure, about, reading) {
    this.figure = figure;
    this.about = about;
    this.reading = { ...reading, rows: reading.rows.filter((row) => !(about.hidden ?? []).includes(row.series)) };
    this.index = reading.start ?? Math.floor(reading.at.length / 2);
    /** @type {number | null} where a brush began, in units of the picture */
    this.brushed = null;
    this.lines = svgElement("g", { class: "reader", "aria-hidden": "true" });
    figure.picture.append(this.lines);
    this.readout = htmlElement("div", { class: "readout" });
    this.cross = this.surface();
    figure.querySelector(".stage")?.append(this.cross);
    figure.querySelector(".stage")?.before(this.readout);
    if (about.zoomed) figure.querySelector(".stage")?.before(this.whole());
    this.show();
  }

  whole() {
    const made = htmlElement("button", { type: "button", class: "whole", "data-key": "whole" }, "Show the whole range");
    made.onclick = () => this.about.onzoom?.(null);
    return made;
  }

  // What lies over the picture and hears pointer and keys. For readers by ear it is a slider over all places.
  surface() {
    const made = htmlElement("div", {
      class: "cross",
      role: "slider",
      tabindex: "0",
      "data-key": `read ${this.about.title}`,
      "aria-label": `Read ${this.about.title}`,
      "aria-valuemin": "0",
      "aria-valuemax": String(this.reading.at.length - 1),
    });
    made.onkeydown = (event) => this.key(event);
    made.onpointermove = (event) => this.hover(event);
    made.onpointerdown = (event) => this.press(event);
    made.onpointerup = (event) => this.release(event);
    made.onpointercancel = () => this.cancel();
    made.ondblclick = () => this.about.onzoom?.(null);
    return made;
  }

  /** @param {number} x in units of the picture */
  nearest(x) {
    const { at } = this.reading,
      { x: scale } = this.figure.scales;
    return at.reduce((best, one, i) => (Math.abs(scale.at(one) - x) < Math.abs(scale.at(at[best]) - x) ? i : best), 0);
  }

  /** @param {PointerEvent} event */
  place(event) {
    return placeOn(this.figure.picture, event);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const last = this.reading.at.length - 1;
    if (event.key in KEYS) this.index = Math.min(last, Math.max(0, KEYS[event.key](this.index, last)));
    else if (event.key === "Enter") this.about.onpick?.(this.index);
    else if (event.key === "+" || event.key === "-") this.zoomBy(event.key === "+" ? 0.5 : 2);
    else if (event.key === "Escape" && this.about.zoomed) this.about.onzoom?.(null);
    else return;
    event.preventDefault();
    this.show();
  }

  // Around what is read, half or twice as wide.
  /** @param {number} factor */
  zoomBy(factor) {
    const { x } = this.figure.scales,
      middle = x.at(this.reading.at[this.index]),
      half = (factor * (x.to - x.from)) / 2;
    this.about.onzoom?.(factor > 1 && !this.about.zoomed ? null : [x.inverse(middle - half), x.inverse(middle + half)]);
  }

  /** @param {PointerEvent} event */
  hover(event) {
    const [x] = this.place(event);
    if (this.brushed === null) this.index = this.nearest(x);
    this.show(this.brushed === null ? null : [this.brushed, x]);
  }

  // Near a handle, that is dragged; elsewhere a range is brushed.
  /** @param {PointerEvent} event */
  press(event) {
    if (event.button !== 0) return;
    const [x, y] = this.place(event),
      { handles = [] } = this.about,
      away = handles.map((handle) => handle.away(this.figure.scales, x, y));
    const nearest = away.indexOf(Math.min(...away));
    if (away[nearest] <= GRIP) drag(nearest);
    else this.brushed = x;
  }

  /** @param {PointerEvent} event */
  release(event) {
    const began = this.brushed,
      [x] = this.place(event);
    this.cancel();
    if (began === null) return;
    const { x: scale } = this.figure.scales;
    const [low, high] = [Math.min(began, x), Math.max(began, x)].map((p) =>
      Math.min(scale.to, Math.max(scale.from, p)),
    );
    if (high - low >= LEAST_BRUSH) this.about.onzoom?.([scale.inverse(low), scale.inverse(high)]);
    else this.about.onpick?.(this.nearest(x));
  }

  cancel() {
    this.brushed = null;
    this.show();
  }

  /** @param {[number, number] | null} brush */
  show(brush = null) {
    const { reading, index, figure } = this,
      { x, y } = figure.scales,
      at = x.at(reading.at[index]);
    const shown = reading.rows.filter((row) => row.values[index] != null);
    const [low, high] = brush ? [Math.min(...brush), Math.max(...brush)] : [0, 0];
    this.lines.replaceChildren(
      svgElement("line", { x1: at, x2: at, y1: y.from, y2: y.to, class: "crosshair" }),
      ...shown.map((row) =>
        svgElement("circle", { cx: at, cy: y.at(row.values[index]), r: 4, class: `dot s${row.series}` }),
      ),
      ...(brush
        ? [svgElement("rect", { x: low, width: high - low, y: y.to, height: y.from - y.to, class: "brush" })]
        : []),
    );
    const words = shown.map((row) => [row, textOf(row, index, reading.format)]);
    this.readout.replaceChildren(
      htmlElement("strong", {}, reading.say(index)),
      ...words.map(([row, text]) =>
        htmlElement(
          "span",
          { class: "read" },
          htmlElement("span", { class: `swatch k${/** @type {ReadSeries} */ (row).series}`, "aria-hidden": "true" }),
          /** @type {string} */ (text),
        ),
      ),
    );
    this.cross.setAttribute("aria-valuenow", String(index));
    this.cross.setAttribute("aria-valuetext", [reading.say(index), ...words.map(([, text]) => text)].join("; "));
  }
}

/**
 * @param {ReadSeries} row
 * @param {number} index
 * @param {(x: any) => string} format
 */
function textOf({ name, values, low, high }, index, format) {
  const [from, to] = [low?.[index], high?.[index]];
  const interval = from == null || to == null ? "" : ` (${format(from)} to ${format(to)})`;
  return `${name}${name && " "}${format(values[index])}${interval}`;
}

// Of a pointer, in units of the picture.
/**
 * @param {SVGSVGElement} picture
 * @param {PointerEvent} event
 * @returns {[number, number]}
 */
function placeOn(picture, event) {
  const box = picture.getBoundingClientRect(),
    view = picture.viewBox.baseVal;
  return [
    ((event.clientX - box.left) / box.width) * view.width,
    ((event.clientY - box.top) / box.height) * view.height,
  ];
}

// A view is drawn anew while somebody drags, so what moves is the handle of that number on the picture that is shown now.
/** @type {number | null} */
let dragged = null;
/** @type {{ figure: Figure, handles: Handle[] }[]} the newest picture, which may not be on the page yet, and the one before */
let latest = [];

/** @param {number} handle */
const drag = (handle) => (dragged = handle);

/**
 * @param {Figure} figure
 * @param {Handle[]} handles
 */
export function draggable(figure, handles) {
  latest = [{ figure, handles }, ...latest.slice(0, 1)];
  return handles;
}

window.addEventListener("pointermove", (event) => {
  const shown = latest.find(({ figure }) => figure.isConnected);
  if (dragged === null || !shown) return;
  const { input, to } = shown.handles[dragged] ?? shown.handles[0];
  input.value = String(to(shown.figure.scales, ...placeOn(shown.figure.picture, event)));
  input.dispatchEvent(new Event("input"));
});
for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, () => (dragged = null));
