// What the views of an analyst's console share: numbers in words, the axis of thresholds, a chart that can be explored.

import { chart, shortNumber } from "../charts.js";
import { explore } from "../explore.js";
import { withExports } from "./shared.js";
/** @import { AxisAbout, ChartAbout, Figure, Table } from "../charts.js" */
/** @import { Exploring } from "../explore.js" */

/**
 * What a view may do with the page.
 * @typedef {{ about: any, state: Record<string, string>, width: number, change: (changes: Record<string, string>) => void,
 *   settle: (changes: Record<string, string>) => void, show: (controls: Node[]) => void, read: (cards: Node[]) => void,
 *   draw: (made: Node) => void, notes: (texts: string[]) => void, finish: (common: Node[]) => void }} View
 */

const DAY = 86400000;
/** @param {number | null | undefined} x */
export const percent = (x) => (x == null ? "–" : `${shortNumber(100 * x)} %`);
/**
 * @param {any} low
 * @param {any} high
 * @param {(x: any) => string} say
 */
export const between = (low, high, say) => (low == null || high == null ? "" : `${say(low)} to ${say(high)}`);
/** @type {Record<string, string>} */
export const WHICH = { population: "for the population", noise: "for those who took part" };
/** @param {View} view */
export const kindOf = (view) => view.state.interval ?? "population";
/** @param {View} view */
export const levelOf = (view) => `${shortNumber(100 * Number(view.state.confidence ?? 0.95))} %`;

// Thresholds as numbers for the axis: dates are days.
export class Axis {
  /** @param {any} about */
  constructor(about) {
    this.isDate = about.grid.values === "date";
    const [min, max] = [about.grid.first, about.grid.last].map((x) => this.number(x));
    /** @type {AxisAbout} */
    this.scale = {
      min,
      max,
      label: about.value_label,
      log: about.grid.kind === "logarithmic",
      format: (x) => this.label(x),
    };
    if (this.scale.log) this.scale.ticks = powers(min, max);
  }

  /** @param {any} x */
  number(x) {
    return this.isDate ? Date.parse(x) / DAY : Number(x);
  }

  /** @param {number} x */
  label(x) {
    return this.isDate ? new Date(Math.round(x) * DAY).toISOString().slice(0, 10) : shortNumber(x);
  }
}

/**
 * @param {number} min
 * @param {number} max
 */
export function powers(min, max) {
  const found = [];
  for (let k = Math.ceil(Math.log10(min) - 1e-9); k <= Math.log10(max) + 1e-9; k++) found.push(10 ** k);
  return found.length > 1 ? found : [min, max];
}

/**
 * @param {number[]} list
 * @param {number} x
 */
export const nearest = (list, x) =>
  list.reduce((best, y, i) => (Math.abs(y - x) < Math.abs(list[best] - x) ? i : best), 0);

/** @param {View} view */
export const asked = (view) => ({ interval: view.state.interval, confidence: view.state.confidence });

/**
 * @param {string[]} names
 * @returns {[string, number][]}
 */
export function legendOf(names) {
  return names.length > 1 ? names.map((name, i) => [name, i]) : [];
}

// The part of the axis that the address has, within the whole one.
/**
 * @param {View} view
 * @param {AxisAbout} whole
 * @returns {AxisAbout}
 */
function zoomed(view, whole) {
  const [low, high] = (view.state.zoom ?? "").split("_").map(Number);
  if (!(high > low)) return whole;
  const [min, max] = [Math.max(whole.min, low), Math.min(whole.max, high)];
  return max > min ? { ...whole, min, max, ticks: undefined } : whole;
}

/** @param {View} view */
const hiddenIn = (view) => (view.state.hide ? view.state.hide.split("_").map(Number) : []);

// A chart over the whole width that can be read, zoomed and saved; which part is shown is in the address.
/**
 * @param {View} view
 * @param {string} name of its files
 * @param {ChartAbout & { table: Table }} about
 * @param {(figure: Figure) => Omit<Exploring, "title">} exploring
 */
export function drawChart(view, name, about, exploring = () => ({})) {
  const x = zoomed(view, about.x),
    hidden = hiddenIn(view);
  const figure = chart({
    width: view.width,
    height: Math.min(460, Math.max(300, view.width * 0.5)),
    ...about,
    x,
    hidden,
  });
  explore(figure, {
    title: about.title,
    legend: about.series,
    hidden,
    onhide: (numbers) => view.change({ hide: numbers.join("_") }),
    zoomed: x !== about.x,
    onzoom: (range) => view.change({ zoom: range ? range.map((end) => Number(end.toPrecision(8))).join("_") : "" }),
    ...exploring(figure),
  });
  view.draw(withExports(figure, name, about.table));
}
