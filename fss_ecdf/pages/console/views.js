// The views of an analyst's console: what each asks the program, which controls it has, and how answers are drawn.
// Nothing is computed here but where a number lies on a picture.

import { chart, shortNumber, stairs } from "../charts.js";
import { htmlElement } from "../elements.js";
import { comparison, distribution, histogram } from "./distributions.js";
import { asked, legendOf, percent, powers } from "./drawing.js";
import { calibration, decision, roc } from "./scores.js";
import { ask, rowsOf, slider, tableWithExport, withExports } from "./shared.js";
import { trend } from "./trend.js";

async function survival(view) {
  view.show([], []);
  const found = await ask("survival", asked(view)),
    longest = Math.max(...found.arms.map((a) => a.columns.time.at(-1)));
  const marks = found.arms.flatMap(({ columns: c, band: [times, low, high] }, series) => {
    const [below, above] = [low, high].map((values) => stairs([[0, 1], ...times.map((t, i) => [t, values[i]])]));
    return [
      { kind: "band", series, points: below.map(([t, y], i) => [t, y, above[i][1]]) },
      { kind: "line", series, points: stairs([[0, 1], ...c.time.map((t, i) => [t, c.survival[i]])]) },
    ];
  });
  const table = { name: "Survival and number at risk", ...rowsOf(found.table.columns) };
  view.draw(
    withExports(
      chart({
        title: "Survival",
        description: `Kaplan-Meier curves with bands. ${found.arms.map((a) => a.name).join(", ")}.`,
        x: { min: 0, max: longest, label: view.about.unit || "time" },
        y: { min: 0, max: 1, label: "survival", format: percent },
        marks,
        table,
        series: legendOf(found.arms.map((a) => a.name)),
        width: view.width,
      }),
      "survival",
      table,
    ),
  );
  const summary = { name: "Medians, restricted means, tests", ...rowsOf(found.summary.columns) };
  view.draw(tableWithExport(summary, "survival-summary", true));
  view.notes(found.table.about.notes ?? []);
}

async function plan(view) {
  const { about, state, change } = view;
  const n = Number(state.n ?? 5000),
    epsilon = Number(state.epsilon ?? 1);
  const parties = (x) => Number((10 ** x).toPrecision(2));
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
  view.show([size, privacy], []);
  const found = await ask("plan", { n, epsilon, thresholds: about.grid.size, strata: about.strata.length }),
    { here, columns: c } = found;
  view.read([
    htmlElement(
      "p",
      {},
      `With ${n.toLocaleString("en")} parties and epsilon ${shortNumber(epsilon)}, on this campaign's grid: a point of the curve is off by ${percent(here.point)} (one standard error), the whole curve by at most ${percent(here.band)} in 95 % of campaigns, a quantile by ${shortNumber(here.quantile_steps)} steps of the grid.`,
    ),
  ]);
  const table = { name: "Expected errors", ...rowsOf(c) };
  view.draw(
    withExports(
      chart({
        title: "Expected error of the curve",
        description: "Standard error of a point and the error of the whole curve, against the number of parties.",
        x: {
          min: c.n[0],
          max: c.n.at(-1),
          log: true,
          ticks: powers(c.n[0], c.n.at(-1)),
          label: "parties",
          format: (x) => x.toLocaleString("en"),
        },
        // From a hundredth of a percent on: what is smaller helps nobody to decide.
        y: { min: 1e-4, max: 1, log: true, ticks: powers(1e-4, 1), label: "error", format: percent },
        marks: [
          { kind: "line", points: c.n.map((x, i) => [x, c.point_error[i]]) },
          { kind: "line", series: 1, points: c.n.map((x, i) => [x, c.band_95[i]]) },
          { kind: "rule", x: n, label: n.toLocaleString("en") },
        ],
        table,
        series: [
          ["a point", 0],
          ["the whole curve", 1],
        ],
        width: view.width,
      }),
      "plan",
      table,
    ),
  );
}

// A statistic that has no drawing of its own here: its table.
const tableView = (name, title) => async (view) => {
  view.show([], []);
  const { table } = await ask(name, asked(view));
  view.draw(tableWithExport({ name: title, ...rowsOf(table.columns) }, name, true));
  view.notes(table.about.notes ?? []);
};

export const viewOf = (name, titles) => VIEWS[name] ?? [titles[name], tableView(name, titles[name])];

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
