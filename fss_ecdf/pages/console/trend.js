// Waves over time: quantiles of every wave with bands, and what changed from one to the next.

import { chart, tableOf } from "../charts.js";
import { Axis, WHICH, asked, legendOf } from "./drawing.js";
import { ask, rowsOf, withExports } from "./shared.js";

export async function trend(view) {
  view.show([], []);
  const found = await ask("trend", asked(view)),
    { columns } = found.quantiles,
    axis = new Axis(view.about);
  const levels = [...new Set(columns.level)],
    { interval } = view.state;
  const marks = levels.flatMap((level, series) => {
    const rows = columns.wave.map((_, i) => i).filter((i) => columns.level[i] === level && columns.value[i] !== null);
    const at = (name, i) => axis.number(columns[name][i]);
    return [
      {
        kind: "band",
        series,
        points: rows.map((i) => [columns.wave[i], at(`${interval}_lower`, i), at(`${interval}_upper`, i)]),
      },
      { kind: "line", series, points: rows.map((i) => [columns.wave[i], at("value", i)]) },
    ];
  });
  const seen = marks.flatMap((mark) => mark.points.flatMap(([, ...values]) => values)).filter(Number.isFinite);
  const table = { name: "Quantiles of every wave", ...rowsOf(columns) };
  view.draw(
    withExports(
      chart({
        title: "Quantiles over time",
        description: `Quantiles of every wave with intervals ${WHICH[interval]}.`,
        x: { min: 0, max: Math.max(...columns.wave) + 1, label: "wave" },
        y: { min: Math.min(...seen), max: Math.max(...seen), label: view.about.unit, format: (x) => axis.label(x) },
        marks,
        table,
        series: legendOf(levels.map((level) => (level === 0.5 ? "median" : `${100 * level} %`))),
        width: view.width,
      }),
      "trend",
      table,
    ),
  );
  const changes = tableOf({ name: "Each wave against the one before it", ...rowsOf(found.changes.columns) });
  changes.open = true;
  view.draw(changes);
}
