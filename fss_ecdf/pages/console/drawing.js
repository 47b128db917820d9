// What the views of an analyst's console share: numbers in words, the axis of thresholds, legends.

import { shortNumber } from "../charts.js";

const DAY = 86400000;
export const percent = (x) => (x == null ? "–" : `${shortNumber(100 * x)} %`);
export const between = (low, high, say) => (low == null || high == null ? "" : ` (${say(low)} to ${say(high)})`);
export const WHICH = { population: "for the population", noise: "for those who took part" };

// Thresholds as numbers for the axis: dates are days.
export class Axis {
  constructor(about) {
    this.isDate = about.grid.values === "date";
    const [min, max] = [about.grid.first, about.grid.last].map((x) => this.number(x));
    this.scale = { min, max, label: about.unit, log: about.grid.kind === "logarithmic", format: (x) => this.label(x) };
    if (this.scale.log) this.scale.ticks = powers(min, max);
  }

  number(x) {
    return this.isDate ? Date.parse(x) / DAY : x;
  }

  label(x) {
    return this.isDate ? new Date(Math.round(x) * DAY).toISOString().slice(0, 10) : shortNumber(x);
  }
}

export function powers(min, max) {
  const found = [];
  for (let k = Math.ceil(Math.log10(min) - 1e-9); k <= Math.log10(max) + 1e-9; k++) found.push(10 ** k);
  return found.length > 1 ? found : [min, max];
}

export const nearest = (list, x) =>
  list.reduce((best, y, i) => (Math.abs(y - x) < Math.abs(list[best] - x) ? i : best), 0);

export const asked = (view) => ({ interval: view.state.interval, confidence: view.state.confidence });

export function legendOf(names) {
  return names.length > 1 ? names.map((name, i) => [name, i]) : [];
}
