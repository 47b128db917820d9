// Views of distributions: curves with bands, histograms, two strata compared.

import { stairs } from "../charts.js";
import { draggable } from "../explore.js";
import { Axis, WHICH, asked, between, drawChart, kindOf, legendOf, levelOf, nearest, percent } from "./drawing.js";
import { ask, checkboxes, numberCard, rowsOf, selector, slider, tableWithExport } from "./shared.js";
/** @import { Mark } from "../charts.js" */
/** @import { Reading } from "../explore.js" */
/** @import { View } from "./drawing.js" */

/** @param {View} view */
function strataControls(view) {
  const { about, state, change } = view;
  if (about.strata.length < 2) return [];
  return [
    checkboxes({
      label: "Strata",
      options: about.strata,
      chosen: chosenStrata(view),
      onchange: (names) => names.length && change({ strata: JSON.stringify(names), hide: "" }),
    }),
    selector({
      label: "Shown",
      options: [
        ["", "each by itself"],
        ["1", "pooled into one"],
      ],
      value: state.pooled ?? "",
      onchange: (pooled) => change({ pooled, hide: "" }),
    }),
  ];
}

/**
 * @param {View} view
 * @returns {string[]}
 */
function chosenStrata({ about, state }) {
  try {
    const names = JSON.parse(state.strata);
    if (Array.isArray(names) && names.length && names.every((name) => about.strata.includes(name))) return names;
  } catch {
    // none in the address
  }
  return about.strata.slice(0, 6);
}

/** @param {View} view */
const askedStrata = (view) => ({ stratum: chosenStrata(view), pooled: view.state.pooled, ...asked(view) });

// How a threshold and a fraction are read off: two cards for each curve.
/**
 * @param {View} view
 * @param {any[]} curves
 */
function distributionCards(view, curves) {
  const kind = kindOf(view),
    unit = view.about.unit ? ` ${view.about.unit}` : "",
    note = (/** @type {string} */ interval) => (interval ? `${levelOf(view)}: ${interval}, ${WHICH[kind]}` : "");
  return curves.flatMap(({ name, point: { columns: p }, quantile: { columns: q } }) => {
    const fraction = between(p[`${kind}_lower`][0], p[`${kind}_upper`][0], percent);
    const place = between(q[`${kind}_lower`][0], q[`${kind}_upper`][0], String);
    return [
      numberCard(`${name}: at most ${p.threshold[0]}${unit}`, percent(p.fraction[0]), note(fraction), {
        "data-stratum": name,
      }),
      numberCard(`${name}: ${percent(q.level[0])} are at most`, `${q.threshold[0]}${unit}`, note(place), {
        "data-quantile": name,
      }),
    ];
  });
}

// Curves with their bands, over thresholds that lie at these places.
/**
 * @param {any[]} curves
 * @param {number[]} places
 * @returns {Mark[]}
 */
function curveMarks(curves, places) {
  const steps = (/** @type {any[]} */ values) => stairs(places.map((x, i) => [x, values[i]]));
  return curves.flatMap(({ columns, band: [low, high] }, series) => {
    const [below, above] = [steps(low), steps(high)];
    return [
      { kind: "band", series, points: below.map(([x, y], i) => [x, y, above[i][1]]) },
      { kind: "line", series, points: steps(columns.fraction) },
    ];
  });
}

/**
 * @param {any[]} curves
 * @param {number[]} places
 * @param {any} about
 * @returns {Reading}
 */
function curveReading(curves, places, about) {
  const { threshold } = curves[0].columns;
  return {
    at: places,
    say: (i) => `at most ${[threshold[i], about.unit].join(" ").trim()}`,
    format: percent,
    rows: curves.map(({ name, columns, band: [low, high] }, series) => ({
      name: curves.length > 1 ? name : "",
      series,
      values: columns.fraction,
      low,
      high,
    })),
  };
}

/** @param {any[]} curves */
function curveTable(curves) {
  return {
    columns: ["threshold", ...curves.flatMap(({ name: n }) => [n, `${n}: band from`, `${n}: band to`])],
    rows: curves[0].columns.threshold.map((/** @type {any} */ t, /** @type {number} */ i) => [
      t,
      ...curves.flatMap((c) => [c.columns.fraction[i], c.band[0][i], c.band[1][i]]),
    ]),
  };
}

const FRACTION_AXIS = { min: 0, max: 1, label: "fraction of values at most (%)", format: percent };

/** @param {View} view */
export async function distribution(view) {
  const { about, state, change } = view,
    axis = new Axis(about);
  const { curves } = await ask("distribution", { ...askedStrata(view), at: state.at, level: state.level ?? 0.5 });
  /** @type {any[]} */
  const thresholds = curves[0].columns.threshold;
  if (state.at === undefined || state.at === "") {
    view.settle({ at: String(thresholds[Math.floor(thresholds.length / 2)]) });
    return;
  }
  const places = thresholds.map((x) => axis.number(x)),
    here = axis.number(state.at),
    share = Number(state.level ?? 0.5);
  const at = slider({
    label: "Threshold",
    min: 0,
    max: thresholds.length - 1,
    value: nearest(places, here),
    say: (i) => String(thresholds[i]),
    onchange: (i) => change({ at: String(thresholds[i]) }),
  });
  const level = slider({
    label: "Fraction",
    min: 0.01,
    max: 0.99,
    step: 0.01,
    value: share,
    say: percent,
    onchange: (x) => change({ level: String(x) }),
  });
  view.show([...strataControls(view), at, level]);
  view.read(distributionCards(view, curves));
  const names = curves.map((/** @type {any} */ c) => c.name);
  drawChart(
    view,
    "distribution",
    {
      title: "Distribution functions",
      x: axis.scale,
      y: FRACTION_AXIS,
      marks: [
        ...curveMarks(curves, places),
        { kind: "rule", x: here, label: String(state.at) },
        { kind: "rule", y: share, label: percent(share) },
      ],
      table: { name: "Numbers of the curves", ...curveTable(curves) },
      series: legendOf(names),
      description: `Fraction of values at most each threshold, with a band that holds the whole curve. ${names.join(", ")}.`,
    },
    (figure) => ({
      reading: { ...curveReading(curves, places, about), start: nearest(places, here) },
      onpick: (i) => change({ at: String(thresholds[i]) }),
      handles: draggable(figure, [
        {
          input: at.input,
          to: (scales, x) => nearest(places, scales.x.inverse(x)),
          away: (scales, x) => Math.abs(scales.x.at(here) - x),
        },
        {
          input: level.input,
          to: (scales, _, y) => scales.y.inverse(y),
          away: (scales, _, y) => Math.abs(scales.y.at(share) - y),
        },
      ]),
    }),
  );
  for (const { name, summary } of curves)
    view.draw(tableWithExport({ name: `Summary: ${name}`, ...rowsOf(summary.columns) }, `summary-${name}`));
}

/** @param {View} view */
export async function histogram(view) {
  const { about, state, change } = view,
    axis = new Axis(about),
    kind = kindOf(view);
  const bins = slider({
    label: "Bins",
    min: 2,
    max: Math.min(100, about.grid.size),
    value: state.bins ?? 20,
    onchange: (n) => change({ bins: String(n) }),
  });
  view.show([...strataControls(view), bins]);
  const { histograms } = await ask("histogram", { ...askedStrata(view), bins: state.bins ?? 20 });
  const first = histograms[0].columns;
  const from = first.above.map((/** @type {any} */ x) => (x == null ? axis.scale.min : axis.number(x))),
    to = first.up_to.map((/** @type {any} */ x) => (x == null ? axis.scale.max : axis.number(x)));
  /** @type {[number, number][]} */
  const ends = from.map((/** @type {number} */ a, /** @type {number} */ i) => [a, to[i]]);
  const wide = 1 / histograms.length;
  /** @type {Mark[]} */
  const marks = histograms.flatMap((/** @type {any} */ { columns: c }, /** @type {number} */ series) => {
    const part = (/** @type {[number, number]} */ [a, b]) => [
      a + (b - a) * series * wide,
      a + (b - a) * (series + 0.92) * wide,
    ];
    return [
      { kind: "bars", series, bars: ends.map((e, i) => [...part(e), c.share[i]]) },
      {
        kind: "whiskers",
        series,
        points: ends.map((e, i) => [(part(e)[0] + part(e)[1]) / 2, c[`${kind}_lower`][i], c[`${kind}_upper`][i]]),
      },
    ];
  });
  /** @type {string[]} */
  const names = histograms.map((/** @type {any} */ h) => h.name);
  const table = {
    name: "Numbers of the histogram",
    columns: ["above", "up to", ...names.flatMap((n) => [n, `${n}: from`, `${n}: to`])],
    rows: first.up_to.map((/** @type {any} */ t, /** @type {number} */ i) => [
      first.above[i],
      t,
      ...histograms.flatMap((/** @type {any} */ { columns: c }) => [
        c.share[i],
        c[`${kind}_lower`][i],
        c[`${kind}_upper`][i],
      ]),
    ]),
  };
  const most = Math.max(
    ...histograms.flatMap((/** @type {any} */ { columns: c }) =>
      c[`${kind}_upper`].map((/** @type {any} */ x) => x ?? 0),
    ),
  );
  drawChart(
    view,
    "histogram",
    {
      title: "Histogram",
      description: `Fraction of values in each of ${first.share.length} bins, with intervals. ${names.join(", ")}.`,
      x: { ...axis.scale, min: Math.min(axis.scale.min, ...from), log: false, ticks: undefined },
      y: { min: 0, max: most, label: "fraction of values (%)", format: percent },
      marks,
      table,
      series: legendOf(names),
    },
    () => ({
      reading: {
        at: ends.map(([a, b]) => (a + b) / 2),
        say: (i) => [`${first.above[i] ?? "lowest"} to ${first.up_to[i] ?? "highest"}`, about.unit].join(" ").trim(),
        format: percent,
        rows: histograms.map((/** @type {any} */ { name, columns: c }, /** @type {number} */ series) => ({
          name: names.length > 1 ? name : "",
          series,
          values: c.share,
          low: c[`${kind}_lower`],
          high: c[`${kind}_upper`],
        })),
      },
    }),
  );
  view.notes(histograms.flatMap((/** @type {any} */ h) => h.about.notes ?? []));
}

/** @param {View} view */
export async function comparison(view) {
  const { about, state, change } = view;
  /** @type {[string, string][]} */
  const options = about.strata.map((/** @type {string} */ s) => [s, s]);
  const first = state.first ?? about.strata[0],
    second = state.second ?? about.strata.at(-1);
  view.show([
    selector({ label: "First", options, value: first, onchange: (x) => change({ first: x }) }),
    selector({ label: "Second", options, value: second, onchange: (x) => change({ second: x }) }),
  ]);
  const { comparison: made } = await ask("comparison", { first, second, ...asked(view) });
  view.read([
    numberCard("Differences are", `${second} less ${first}`, "p-values are for the population and count the noise in"),
  ]);
  view.draw(tableWithExport({ name: "Comparison", ...rowsOf(made.columns) }, "comparison", true));
  const { curves } = await ask("distribution", { stratum: [...new Set([first, second])], ...asked(view) });
  const axis = new Axis(about),
    places = curves[0].columns.threshold.map((/** @type {any} */ x) => axis.number(x));
  drawChart(
    view,
    "compared",
    {
      title: `${first} and ${second}`,
      description: `Distribution functions of ${first} and ${second}, each with a band that holds the whole curve.`,
      x: axis.scale,
      y: FRACTION_AXIS,
      marks: curveMarks(curves, places),
      table: { name: "Numbers of both curves", ...curveTable(curves) },
      series: legendOf(curves.map((/** @type {any} */ c) => c.name)),
    },
    () => ({ reading: curveReading(curves, places, about) }),
  );
  view.notes(made.about.notes ?? []);
}
