// Views of distributions: curves with bands, histograms, two strata compared.

import { chart, stairs } from "../charts.js";
import { htmlElement } from "../elements.js";
import { Axis, WHICH, asked, between, legendOf, nearest, percent } from "./drawing.js";
import { ask, checkboxes, draggable, rowsOf, selector, slider, tableWithExport, withExports } from "./shared.js";

function strataControls(view) {
  const { about, state, change } = view;
  if (about.strata.length < 2) return [];
  return [
    checkboxes({
      label: "Strata",
      options: about.strata,
      chosen: chosenStrata(view),
      onchange: (names) => names.length && change({ strata: JSON.stringify(names) }),
    }),
    selector({
      label: "Shown",
      options: [
        ["", "each by itself"],
        ["1", "pooled into one"],
      ],
      value: state.pooled ?? "",
      onchange: (pooled) => change({ pooled }),
    }),
  ];
}

function chosenStrata({ about, state }) {
  try {
    const names = JSON.parse(state.strata);
    if (Array.isArray(names) && names.length && names.every((name) => about.strata.includes(name))) return names;
  } catch {
    // none in the address
  }
  return about.strata.slice(0, 6);
}

const askedStrata = (view) => ({ stratum: chosenStrata(view), pooled: view.state.pooled, ...asked(view) });

// How a threshold and a share are read off, in one sentence for each curve.
function readDistribution(view, curves) {
  const kind = view.state.interval ?? "population";
  return curves.map(({ name, point, quantile }) => {
    const p = point.columns,
      q = quantile.columns;
    const share = `${percent(p.fraction[0])}${between(p[`${kind}_lower`][0], p[`${kind}_upper`][0], percent)}`;
    const place = `${q.threshold[0]}${between(q[`${kind}_lower`][0], q[`${kind}_upper`][0], String)}`;
    return htmlElement(
      "p",
      { "data-stratum": name },
      htmlElement("strong", {}, name),
      `: ${share} are at most ${p.threshold[0]}; ${percent(q.level[0])} are at most ${place}, ${WHICH[kind]}.`,
    );
  });
}

// Curves with their bands, over thresholds that lie at these places.
function curveMarks(curves, places) {
  const steps = (values) => stairs(places.map((x, i) => [x, values[i]]));
  return curves.flatMap(({ columns, band: [low, high] }, series) => {
    const [below, above] = [steps(low), steps(high)];
    return [
      { kind: "band", series, points: below.map(([x, y], i) => [x, y, above[i][1]]) },
      { kind: "line", series, points: steps(columns.fraction) },
    ];
  });
}

function curveTable(curves) {
  return {
    columns: ["threshold", ...curves.flatMap(({ name: n }) => [n, `${n}: band from`, `${n}: band to`])],
    rows: curves[0].columns.threshold.map((t, i) => [
      t,
      ...curves.flatMap((c) => [c.columns.fraction[i], c.band[0][i], c.band[1][i]]),
    ]),
  };
}

export async function distribution(view) {
  const { about, state, change } = view,
    axis = new Axis(about);
  const first = await ask("distribution", { ...askedStrata(view), at: state.at, level: state.level ?? 0.5 });
  const thresholds = first.curves[0].columns.threshold;
  if (state.at === undefined || state.at === "") {
    view.change({ at: String(thresholds[Math.floor(thresholds.length / 2)]) });
    return;
  }
  const places = thresholds.map((x) => axis.number(x)),
    here = axis.number(about.grid.values === "date" ? state.at : Number(state.at));
  const at = slider({
    label: "Threshold",
    min: 0,
    max: thresholds.length - 1,
    value: nearest(places, here),
    say: (i) => String(thresholds[i]),
    onchange: (i) => change({ at: String(thresholds[i]) }),
  });
  const level = slider({
    label: "Share",
    min: 0.01,
    max: 0.99,
    step: 0.01,
    value: state.level ?? 0.5,
    say: percent,
    onchange: (x) => change({ level: String(x) }),
  });
  view.show([...strataControls(view), at, level], readDistribution(view, first.curves));
  const marks = curveMarks(first.curves, places);
  marks.push(
    { kind: "rule", x: here, label: String(state.at) },
    { kind: "rule", y: Number(state.level ?? 0.5), label: percent(Number(state.level ?? 0.5)) },
  );
  const names = first.curves.map((c) => c.name);
  const table = { name: "Numbers of the curves", ...curveTable(first.curves) };
  const figure = chart({
    title: "Distribution functions",
    x: axis.scale,
    y: { min: 0, max: 1, label: "share at most", format: percent },
    marks,
    table,
    series: legendOf(names),
    description: `Share of values at most each threshold, with a band that holds the whole curve. ${names.join(", ")}.`,
    width: view.width,
  });
  const share = Number(state.level ?? 0.5);
  draggable(
    figure,
    {
      input: at.input,
      to: (scales, x) => nearest(places, scales.x.inverse(x)),
      place: (scales, x) => Math.abs(scales.x.at(here) - x),
    },
    {
      input: level.input,
      to: (scales, x, y) => scales.y.inverse(y),
      place: (scales, x, y) => Math.abs(scales.y.at(share) - y),
    },
  );
  view.draw(withExports(figure, "distribution", table));
  for (const { name, summary } of first.curves)
    view.draw(tableWithExport({ name: `Summary: ${name}`, ...rowsOf(summary.columns) }, `summary-${name}`));
}

export async function histogram(view) {
  const { about, state, change } = view,
    axis = new Axis(about),
    kind = state.interval ?? "population";
  const bins = slider({
    label: "Bins",
    min: 2,
    max: Math.min(100, about.grid.size),
    value: state.bins ?? 20,
    onchange: (n) => change({ bins: String(n) }),
  });
  view.show([...strataControls(view), bins], []);
  const { histograms } = await ask("histogram", { ...askedStrata(view), bins: state.bins ?? 20 });
  const from = (c) => c.above.map((x) => (x == null ? axis.scale.min : axis.number(x))),
    to = (c) => c.up_to.map((x) => (x == null ? axis.scale.max : axis.number(x)));
  const wide = 1 / histograms.length;
  const marks = histograms.flatMap(({ columns: c }, series) => {
    const ends = from(c).map((a, i) => [a, to(c)[i]]);
    const part = ([a, b]) => [a + (b - a) * series * wide, a + (b - a) * (series + 0.92) * wide];
    const middle = ([a, b]) => (part([a, b])[0] + part([a, b])[1]) / 2;
    return [
      { kind: "bars", series, bars: ends.map((e, i) => [...part(e), c.share[i]]) },
      {
        kind: "points",
        series: 5,
        points: ends.map((e, i) => [middle(e), c.share[i], c[`${kind}_lower`][i], c[`${kind}_upper`][i]]),
      },
    ];
  });
  const names = histograms.map((h) => h.name),
    first = histograms[0].columns;
  const table = {
    name: "Numbers of the histogram",
    columns: ["above", "up to", ...names.flatMap((n) => [n, `${n}: from`, `${n}: to`])],
    rows: first.up_to.map((t, i) => [
      first.above[i],
      t,
      ...histograms.flatMap(({ columns: c }) => [c.share[i], c[`${kind}_lower`][i], c[`${kind}_upper`][i]]),
    ]),
  };
  const most = Math.max(...histograms.flatMap(({ columns: c }) => c[`${kind}_upper`].map((x) => x ?? 0)));
  const x = { ...axis.scale, min: Math.min(axis.scale.min, ...from(first)), log: false, ticks: undefined };
  view.draw(
    withExports(
      chart({
        title: "Histogram",
        description: `Share of values in each of ${first.share.length} bins, with intervals. ${names.join(", ")}.`,
        x,
        y: { min: 0, max: most, label: "share", format: percent },
        marks,
        table,
        series: legendOf(names),
        width: view.width,
      }),
      "histogram",
      table,
    ),
  );
  view.notes(histograms.flatMap((h) => h.about.notes ?? []));
}

export async function comparison(view) {
  const { about, state, change } = view,
    options = about.strata.map((s) => [s, s]);
  const first = state.first ?? about.strata[0],
    second = state.second ?? about.strata.at(-1);
  view.show(
    [
      selector({ label: "First", options, value: first, onchange: (x) => change({ first: x }) }),
      selector({ label: "Second", options, value: second, onchange: (x) => change({ second: x }) }),
    ],
    [],
  );
  const { comparison: made } = await ask("comparison", { first, second, ...asked(view) });
  view.draw(tableWithExport({ name: "Comparison", ...rowsOf(made.columns) }, "comparison", true));
  const { curves } = await ask("distribution", { stratum: [...new Set([first, second])], ...asked(view) });
  const axis = new Axis(about),
    places = curves[0].columns.threshold.map((x) => axis.number(x)),
    table = { name: "Numbers of both curves", ...curveTable(curves) };
  const figure = chart({
    title: `${first} and ${second}`,
    description: `Distribution functions of ${first} and ${second}, each with a band that holds the whole curve.`,
    x: axis.scale,
    y: { min: 0, max: 1, label: "share at most", format: percent },
    marks: curveMarks(curves, places),
    table,
    series: legendOf(curves.map((c) => c.name)),
    width: view.width,
  });
  view.draw(withExports(figure, "compared", table));
  view.read([
    htmlElement(
      "p",
      {},
      `Differences are ${second} less ${first}. p-values are for the population and count the noise in.`,
    ),
  ]);
  view.notes(made.about.notes ?? []);
}
