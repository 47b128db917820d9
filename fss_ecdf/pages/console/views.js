// The views of an analyst's console: what each asks the program, which controls it has, and how answers are drawn.
// Nothing is computed here but where a number lies on a picture.

import { shortNumber, stairs } from "../charts.js";
import { comparison, distribution, histogram } from "./distributions.js";
import { asked, drawChart, legendOf, nearest, percent, powers } from "./drawing.js";
import { calibration, decision, roc } from "./scores.js";
import { ask, numberCard, rowsOf, slider, tableWithExport } from "./shared.js";
import { trend } from "./trend.js";
/** @import { Mark } from "../charts.js" */
/** @import { View } from "./drawing.js" */

/** @param {View} view */
async function survival(view) {
  view.show([]);
  const found = await ask("survival", asked(view));
  /** @type {any[]} */
  const arms = found.arms;
  const longest = Math.max(...arms.map((a) => a.columns.time.at(-1)));
  /** @type {Mark[]} */
  const marks = arms.flatMap(({ columns: c, band: [times, low, high] }, series) => {
    const [below, above] = [low, high].map((values) =>
      stairs([[0, 1], ...times.map((/** @type {number} */ t, /** @type {number} */ i) => [t, values[i]])]),
    );
    const steps = c.time.map((/** @type {number} */ t, /** @type {number} */ i) => [t, c.survival[i]]);
    return [
      { kind: "band", series, points: below.map(([t, y], i) => [t, y, above[i][1]]) },
      { kind: "line", series, points: stairs([[0, 1], ...steps]) },
    ];
  });
  const unit = view.about.unit || "time";
  const longestArm = arms.reduce((best, arm) => (arm.columns.time.length > best.columns.time.length ? arm : best));
  /** @type {number[]} */
  const times = longestArm.columns.time;
  // What holds from the last time on that is not later.
  const at = (/** @type {number[]} */ own, /** @type {number[]} */ values) =>
    times.map((t) => values[own.findLastIndex((one) => one <= t)] ?? null);
  drawChart(
    view,
    "survival",
    {
      title: "Survival",
      description: `Kaplan-Meier curves with bands. ${arms.map((a) => a.name).join(", ")}.`,
      x: { min: 0, max: longest, label: unit === "time" ? unit : `time (${unit})` },
      y: { min: 0, max: 1, label: "survival (%)", format: percent },
      marks,
      table: { name: "Survival and number at risk", ...rowsOf(found.table.columns) },
      series: legendOf(arms.map((a) => a.name)),
    },
    () => ({
      reading: {
        at: times,
        say: (i) => `${shortNumber(times[i])} ${unit}`,
        format: percent,
        rows: arms.map(({ name, columns: c, band: [own, low, high] }, series) => ({
          name: arms.length > 1 ? name : "",
          series,
          values: at(c.time, c.survival),
          low: at(own, low),
          high: at(own, high),
        })),
      },
    }),
  );
  const summary = { name: "Medians, restricted means, tests", ...rowsOf(found.summary.columns) };
  view.draw(tableWithExport(summary, "survival-summary", true));
  view.notes(found.table.about.notes ?? []);
}

/** @param {View} view */
async function plan(view) {
  const { about, state, change } = view;
  const n = Number(state.n ?? 5000),
    epsilon = Number(state.epsilon ?? 1);
  const parties = (/** @type {number} */ x) => Number((10 ** x).toPrecision(2));
  const size = slider({
    label: "Parties",
    min: 2,
    max: 6,
    step: 0.01,
    value: Math.log10(n),
    say: (x) => parties(x).toLocaleString("en"),
    onchange: (x) => change({ n: String(parties(x)) }),
  });
  const privacy = slider({
    label: "Epsilon",
    min: 0.05,
    max: 5,
    step: 0.05,
    value: epsilon,
    say: shortNumber,
    onchange: (x) => change({ epsilon: String(x) }),
  });
  view.show([size, privacy]);
  const found = await ask("plan", { n, epsilon, thresholds: about.grid.size, strata: about.strata.length }),
    { here, columns: c } = found;
  view.read([
    numberCard("A point of the curve is off by", percent(here.point), "one standard error"),
    numberCard("The whole curve by at most", percent(here.band), "in 95 % of campaigns"),
    numberCard("A quantile by", `${shortNumber(here.quantile_steps)} steps`, "of this campaign's grid"),
  ]);
  drawChart(
    view,
    "plan",
    {
      title: "Expected error of the curve",
      description: "Standard error of a point and the error of the whole curve, against the number of parties.",
      x: {
        min: c.n[0],
        max: c.n.at(-1),
        log: true,
        ticks: powers(c.n[0], c.n.at(-1)),
        label: "number of parties",
        format: (x) => Number(x.toPrecision(3)).toLocaleString("en"),
      },
      // From a hundredth of a percent on: what is smaller helps nobody to decide.
      y: { min: 1e-4, max: 1, log: true, ticks: powers(1e-4, 1), label: "error (%)", format: percent },
      marks: [
        {
          kind: "line",
          series: 0,
          points: c.n.map((/** @type {any} */ x, /** @type {number} */ i) => [x, c.point_error[i]]),
        },
        {
          kind: "line",
          series: 1,
          points: c.n.map((/** @type {any} */ x, /** @type {number} */ i) => [x, c.band_95[i]]),
        },
        { kind: "rule", x: n, label: n.toLocaleString("en") },
      ],
      table: { name: "Expected errors", ...rowsOf(c) },
      series: [
        ["a point", 0],
        ["the whole curve", 1],
      ],
    },
    () => ({
      reading: {
        at: c.n,
        start: nearest(c.n, n),
        say: (i) => `${c.n[i].toLocaleString("en")} parties`,
        format: percent,
        rows: [
          { name: "a point", series: 0, values: c.point_error },
          { name: "the whole curve", series: 1, values: c.band_95 },
        ],
      },
      onpick: (i) => change({ n: String(c.n[i]) }),
    }),
  );
}

// A statistic that has no drawing of its own here: its table.
/**
 * @param {string} name
 * @param {string} title
 * @returns {(view: View) => Promise<void>}
 */
const tableView = (name, title) => async (view) => {
  const { table } = await ask(name, asked(view));
  view.draw(tableWithExport({ name: title, ...rowsOf(table.columns) }, name, true));
  view.notes(table.about.notes ?? []);
};

/**
 * @param {string} name
 * @param {Record<string, string>} titles
 */
export const viewOf = (name, titles) => VIEWS[name] ?? [titles[name], tableView(name, titles[name])];

/** @type {Record<string, [string, (view: View) => Promise<void>]>} */
const VIEWS = {
  distribution: ["Distribution", distribution],
  histogram: ["Histogram", histogram],
  trend: ["Over time", trend],
  comparison: ["Comparison", comparison],
  roc: ["ROC", roc],
  calibration: ["Calibration", calibration],
  decision: ["Decision curve", decision],
  survival: ["Survival", survival],
  plan: ["Planning", plan],
};
