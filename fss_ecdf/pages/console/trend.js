// Waves over time: quantiles of every wave with bands, and what changed from one to the next.

import { Axis, WHICH, asked, drawChart, kindOf, legendOf } from "./drawing.js";
import { ask, rowsOf, tableWithExport } from "./shared.js";
/** @import { Mark } from "../charts.js" */
/** @import { View } from "./drawing.js" */

/** @param {View} view */
export async function trend(view) {
  view.show([]);
  const found = await ask("trend", asked(view)),
    { columns } = found.quantiles,
    axis = new Axis(view.about),
    kind = kindOf(view);
  /** @type {number[]} */
  const levels = [...new Set(columns.level)];
  /** @type {number[]} */
  const waves = [...new Set(columns.wave)];
  const names = levels.map((level) => (level === 0.5 ? "median" : `${100 * level} %`));
  const number = (/** @type {string} */ name, /** @type {number} */ i) =>
    columns[name][i] == null ? null : axis.number(columns[name][i]);
  const rowsAt = levels.map((level) =>
    columns.wave
      .map((/** @type {number} */ _, /** @type {number} */ i) => i)
      .filter((/** @type {number} */ i) => columns.level[i] === level),
  );
  const values = (/** @type {string} */ name) =>
    rowsAt.map((rows) =>
      waves.map((wave) => number(name, rows.find((/** @type {number} */ i) => columns.wave[i] === wave) ?? -1)),
    );
  const [middle, low, high] = ["value", `${kind}_lower`, `${kind}_upper`].map(values);
  /** @type {Mark[]} */
  const marks = levels.flatMap((_, series) => {
    const known = waves.map((_wave, i) => i).filter((i) => middle[series][i] !== null);
    return [
      { kind: "band", series, points: known.map((i) => [waves[i], low[series][i], high[series][i]]) },
      { kind: "line", series, points: known.map((i) => [waves[i], middle[series][i]]) },
      { kind: "points", series, points: known.map((i) => [waves[i], middle[series][i]]) },
    ];
  });
  const seen = [middle, low, high].flat(2).flatMap((x) => (x !== null && Number.isFinite(x) ? [x] : []));
  const say = (/** @type {number} */ x) => axis.label(x);
  drawChart(
    view,
    "trend",
    {
      title: "Quantiles over time",
      description: `Quantiles of every wave with intervals ${WHICH[kind]}.`,
      x: { min: Math.min(...waves) - 0.5, max: Math.max(...waves) + 0.5, label: "wave", ticks: waves },
      y: { min: Math.min(...seen), max: Math.max(...seen), label: view.about.value_label, format: say },
      marks,
      table: { name: "Quantiles of every wave", ...rowsOf(columns) },
      series: legendOf(names),
    },
    () => ({
      reading: {
        at: waves,
        say: (i) => `wave ${waves[i]}`,
        format: say,
        rows: levels.map((_, series) => ({
          name: names[series],
          series,
          values: middle[series],
          low: low[series],
          high: high[series],
        })),
      },
    }),
  );
  const changes = { name: "Each wave against the one before it", ...rowsOf(found.changes.columns) };
  view.draw(tableWithExport(changes, "changes", true));
}
