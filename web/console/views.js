// The views of an analyst's console: what each asks the program, which controls it has, and how answers are drawn.
// Nothing is computed here but where a number lies on a picture.

import { chart, htmlElement, shortNumber, stairs, tableOf } from "../charts.js";
import { ask, checkboxes, draggable, rowsOf, selector, slider, withExports } from "./shared.js";

const DAY = 86400000;
const percent = (x) => (x == null ? "–" : `${shortNumber(100 * x)} %`);
const between = (low, high, say) => (low == null || high == null ? "" : ` (${say(low)} to ${say(high)})`);
const WHICH = { population: "for the population", noise: "for those who took part" };

// Thresholds as numbers for the axis: dates are days.
class Axis {
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

function powers(min, max) {
  const found = [];
  for (let k = Math.ceil(Math.log10(min) - 1e-9); k <= Math.log10(max) + 1e-9; k++) found.push(10 ** k);
  return found.length > 1 ? found : [min, max];
}

const nearest = (list, x) => list.reduce((best, y, i) => (Math.abs(y - x) < Math.abs(list[best] - x) ? i : best), 0);

function strataControls(view) {
  const { about, state, change } = view;
  if (about.strata.length < 2) return [];
  return [
    checkboxes({
      label: "Strata", options: about.strata, chosen: chosenStrata(view),
      onchange: (names) => names.length && change({ strata: JSON.stringify(names) }),
    }),
    selector({
      label: "Shown", options: [["", "each by itself"], ["1", "pooled into one"]], value: state.pooled ?? "",
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

const asked = (view) => ({ interval: view.state.interval, confidence: view.state.confidence });
const askedStrata = (view) => ({ stratum: chosenStrata(view), pooled: view.state.pooled, ...asked(view) });

function legendOf(names) {
  return names.length > 1 ? names.map((name, i) => [name, i]) : [];
}

// How a threshold and a share are read off, in one sentence for each curve.
function readDistribution(view, curves) {
  const kind = view.state.interval ?? "population";
  return curves.map(({ name, point, quantile }) => {
    const p = point.columns, q = quantile.columns;
    const share = `${percent(p.fraction[0])}${between(p[`${kind}_lower`][0], p[`${kind}_upper`][0], percent)}`;
    const place = `${q.threshold[0]}${between(q[`${kind}_lower`][0], q[`${kind}_upper`][0], String)}`;
    return htmlElement("p", { "data-stratum": name }, htmlElement("strong", {}, name),
      `: ${share} are at most ${p.threshold[0]}; ${percent(q.level[0])} are at most ${place}, ${WHICH[kind]}.`);
  });
}

async function distribution(view) {
  const { about, state, change } = view, axis = new Axis(about);
  const first = await ask("distribution", { ...askedStrata(view), at: state.at, level: state.level ?? 0.5 });
  const thresholds = first.curves[0].columns.threshold;
  if (state.at === undefined || state.at === "") {
    view.change({ at: String(thresholds[Math.floor(thresholds.length / 2)]) });
    return;
  }
  const places = thresholds.map((x) => axis.number(x)), here = axis.number(about.grid.values === "date" ? state.at : Number(state.at));
  const at = slider({
    label: "Threshold", min: 0, max: thresholds.length - 1, value: nearest(places, here), say: (i) => String(thresholds[i]),
    onchange: (i) => change({ at: String(thresholds[i]) }),
  });
  const level = slider({
    label: "Share", min: 0.01, max: 0.99, step: 0.01, value: state.level ?? 0.5, say: percent, onchange: (x) => change({ level: String(x) }),
  });
  view.show([...strataControls(view), at, level], readDistribution(view, first.curves));
  const marks = first.curves.flatMap(({ columns, band: [low, high] }, series) => {
    const steps = (values) => stairs(places.map((x, i) => [x, values[i]]));
    const [below, above] = [steps(low), steps(high)];
    return [
      { kind: "band", series, points: below.map(([x, y], i) => [x, y, above[i][1]]) },
      { kind: "line", series, points: steps(columns.fraction) },
    ];
  });
  marks.push({ kind: "rule", x: here, label: String(state.at) }, { kind: "rule", y: Number(state.level ?? 0.5), label: percent(Number(state.level ?? 0.5)) });
  const names = first.curves.map((c) => c.name);
  const table = {
    name: "Numbers of the curves",
    columns: ["threshold", ...names.flatMap((n) => [n, `${n}: band from`, `${n}: band to`])],
    rows: thresholds.map((t, i) => [t, ...first.curves.flatMap((c) => [c.columns.fraction[i], c.band[0][i], c.band[1][i]])]),
  };
  const figure = chart({
    title: "Distribution functions", x: axis.scale, y: { min: 0, max: 1, label: "share at most", format: percent }, marks, table, series: legendOf(names),
    description: `Share of values at most each threshold, with a band that holds the whole curve. ${names.join(", ")}.`, width: view.width,
  });
  draggable(figure, at.input, (scales, x) => nearest(places, scales.x.inverse(x)));
  view.draw(withExports(figure, "distribution", table));
  for (const { name, summary } of first.curves) view.draw(tableOf({ name: `Summary: ${name}`, ...rowsOf(summary.columns) }));
}

async function histogram(view) {
  const { about, state, change } = view, axis = new Axis(about), kind = state.interval ?? "population";
  const bins = slider({ label: "Bins", min: 2, max: Math.min(100, about.grid.size), value: state.bins ?? 20, onchange: (n) => change({ bins: String(n) }) });
  view.show([...strataControls(view), bins], []);
  const { histograms } = await ask("histogram", { ...askedStrata(view), bins: state.bins ?? 20 });
  const from = (c) => c.above.map((x) => (x == null ? axis.scale.min : axis.number(x))), to = (c) => c.up_to.map((x) => (x == null ? axis.scale.max : axis.number(x)));
  const wide = 1 / histograms.length;
  const marks = histograms.flatMap(({ columns: c }, series) => {
    const ends = from(c).map((a, i) => [a, to(c)[i]]);
    const part = ([a, b]) => [a + (b - a) * series * wide, a + (b - a) * (series + 0.92) * wide];
    const middle = ([a, b]) => (part([a, b])[0] + part([a, b])[1]) / 2;
    return [
      { kind: "bars", series, bars: ends.map((e, i) => [...part(e), c.share[i]]) },
      { kind: "points", series: 5, points: ends.map((e, i) => [middle(e), c.share[i], c[`${kind}_lower`][i], c[`${kind}_upper`][i]]) },
    ];
  });
  const names = histograms.map((h) => h.name), first = histograms[0].columns;
  const table = {
    name: "Numbers of the histogram",
    columns: ["above", "up to", ...names.flatMap((n) => [n, `${n}: from`, `${n}: to`])],
    rows: first.up_to.map((t, i) => [first.above[i], t, ...histograms.flatMap(({ columns: c }) => [c.share[i], c[`${kind}_lower`][i], c[`${kind}_upper`][i]])]),
  };
  const most = Math.max(...histograms.flatMap(({ columns: c }) => c[`${kind}_upper`].map((x) => x ?? 0)));
  const x = { ...axis.scale, min: Math.min(axis.scale.min, ...from(first)), log: false, ticks: undefined };
  view.draw(withExports(chart({
    title: "Histogram", description: `Share of values in each of ${first.share.length} bins, with intervals. ${names.join(", ")}.`, x,
    y: { min: 0, max: most, label: "share", format: percent }, marks, table, series: legendOf(names), width: view.width,
  }), "histogram", table));
  view.notes(histograms.flatMap((h) => h.about.notes ?? []));
}

async function comparison(view) {
  const { about, state, change } = view, options = about.strata.map((s) => [s, s]);
  const first = state.first ?? about.strata[0], second = state.second ?? about.strata.at(-1);
  view.show([
    selector({ label: "First", options, value: first, onchange: (x) => change({ first: x }) }),
    selector({ label: "Second", options, value: second, onchange: (x) => change({ second: x }) }),
  ], []);
  const { comparison: made } = await ask("comparison", { first, second, ...asked(view) });
  const table = { name: "Comparison", ...rowsOf(made.columns) };
  const figure = htmlElement("figure", { class: "chart" }, tableOf(table));
  figure.querySelector("details").open = true;
  view.draw(figure);
  view.read([htmlElement("p", {}, `Differences are ${second} less ${first}. p-values are for the population and count the noise in.`)]);
  view.notes(made.about.notes ?? []);
}

async function roc(view) {
  const { state, change } = view;
  const { roc: made, region: [leastFalse, mostFalse, leastTrue, mostTrue] } = await ask("roc", asked(view));
  const c = made.columns, cuts = c.called_positive_above, last = cuts.length - 1;
  const here = Math.min(last, Math.max(0, Number(state.cut ?? Math.floor(last / 2))));
  const cut = slider({
    label: "Called positive above", min: 0, max: last, value: here, say: (i) => (cuts[i] == null ? "everybody" : String(cuts[i])), onchange: (i) => change({ cut: String(i) }),
  });
  const kind = state.interval ?? "population", [low, high] = made.about[`auc_${kind}_95_%`];
  view.show([cut], [
    htmlElement("p", {}, `AUC ${shortNumber(made.about.auc)} (95 % ${shortNumber(low)} to ${shortNumber(high)}, ${WHICH[kind]}).`),
    htmlElement("p", { id: "operating" }, `Above ${cuts[here] ?? "nothing"}: sensitivity ${percent(c.true_positive_rate[here])}, specificity ${percent(1 - c.false_positive_rate[here])}, precision ${percent(c.precision[here])}.`),
  ]);
  const lower = mostFalse.map((x, i) => [x, leastTrue[i]]), upper = leastFalse.map((x, i) => [x, mostTrue[i]]);
  const table = { name: "Numbers of the ROC curve", ...rowsOf(c) };
  const figure = chart({
    title: "ROC curve", description: `True against false positive rate, with the region that holds the curve. AUC ${shortNumber(made.about.auc)}.`,
    x: { min: 0, max: 1, label: "false positive rate", format: percent }, y: { min: 0, max: 1, label: "true positive rate", format: percent },
    marks: [
      { kind: "area", points: [...lower, ...upper.reverse()] },
      { kind: "line", series: 5, dashed: true, points: [[0, 0], [1, 1]] },
      { kind: "line", points: c.false_positive_rate.map((x, i) => [x, c.true_positive_rate[i]]) },
      { kind: "points", series: 1, points: [[c.false_positive_rate[here], c.true_positive_rate[here]]] },
    ],
    table, width: Math.min(view.width, 520), height: Math.min(view.width, 460),
  });
  draggable(figure, cut.input, (scales, x) => nearest(c.false_positive_rate, scales.x.inverse(x)));
  view.draw(withExports(figure, "roc", table));
  view.notes(made.about.notes ?? []);
}

async function calibration(view) {
  const { state, change } = view, kind = state.interval ?? "population";
  view.show([slider({ label: "Groups", min: 3, max: 20, value: state.groups ?? 10, onchange: (n) => change({ groups: String(n) }) })], []);
  const found = await ask("calibration", { groups: state.groups ?? 10, ...asked(view) });
  const { about, columns: c } = found.calibration;
  const marks = [{ kind: "line", series: 5, dashed: true, points: [[0, 0], [1, 1]] }];
  if (found.smooth) {
    const s = found.smooth.columns;
    marks.push({ kind: "band", series: 1, points: s.score.map((x, i) => [x, s[`${kind}_lower`][i], s[`${kind}_upper`][i]]) });
    marks.push({ kind: "line", series: 1, points: s.score.map((x, i) => [x, s.share_positive[i]]) });
  }
  marks.push({ kind: "points", points: c.mean_score.map((x, i) => [x, c.share_positive[i], c[`${kind}_lower`][i], c[`${kind}_upper`][i]]).filter((p) => p.every((x) => x != null)) });
  const table = { name: "Numbers of the groups", ...rowsOf(c) };
  view.draw(withExports(chart({
    title: "Calibration", description: "Observed share of positives against the mean score of each group, and a smooth curve with its band.",
    x: { min: 0, max: 1, label: "score", format: percent }, y: { min: 0, max: 1, label: "observed", format: percent },
    marks, table, series: found.smooth ? [["groups", 0], ["smooth curve", 1]] : [], width: view.width,
  }), "calibration", table));
  if (found.smooth) view.draw(tableOf({ name: "Numbers of the smooth curve", ...rowsOf(found.smooth.columns) }));
  view.read([htmlElement("p", {}, `Hosmer-Lemeshow ${shortNumber(about.hosmer_lemeshow_corrected)}, p = ${about.p_value == null ? "not known" : shortNumber(about.p_value)} with the noise included; observed over expected ${shortNumber(about.observed_over_expected)}.`)]);
  view.notes([...(about.notes ?? []), ...(found.smooth_problem ? [found.smooth_problem] : [])]);
}

async function decision(view) {
  const { state, change } = view, kind = state.interval ?? "population", threshold = Number(state.threshold ?? 0.5);
  const cut = slider({ label: "Treat above", min: 0.01, max: 0.99, step: 0.01, value: threshold, say: percent, onchange: (x) => change({ threshold: String(x) }) });
  view.show([cut], []);
  const found = await ask("decision", { threshold, ...asked(view) }), c = found.decision.columns;
  const table = { name: "Numbers of the decision curve", ...rowsOf(c) };
  const all = [...c.net_benefit, ...c.treat_all.filter((x) => x > -0.1), ...c[`${kind}_upper`]].filter((x) => x != null);
  const figure = chart({
    title: "Decision curve", description: "Net benefit of treating those above each threshold, against treating all and none.",
    x: { min: 0, max: Math.max(...c.threshold), label: "threshold probability", format: percent },
    y: { min: Math.max(-0.1, Math.min(0, ...all)), max: Math.max(...all), label: "net benefit" },
    marks: [
      { kind: "band", points: c.threshold.map((x, i) => [x, c[`${kind}_lower`][i], c[`${kind}_upper`][i]]) },
      { kind: "line", points: c.threshold.map((x, i) => [x, c.net_benefit[i]]) },
      { kind: "line", series: 1, dashed: true, points: c.threshold.map((x, i) => [x, c.treat_all[i]]) },
      { kind: "line", series: 5, dashed: true, points: c.threshold.map((x, i) => [x, c.treat_none[i]]) },
      { kind: "rule", x: threshold, label: percent(threshold) },
    ],
    table, series: [["by score", 0], ["treat all", 1], ["treat none", 5]], width: view.width,
  });
  draggable(figure, cut.input, (scales, x) => scales.x.inverse(x));
  view.draw(withExports(figure, "decision", table));
  const performance = tableOf({ name: `Performance, called positive above ${percent(threshold)}`, ...rowsOf(found.performance.columns) });
  performance.open = true;
  view.draw(performance);
  view.notes(found.decision.about.notes ?? []);
}

async function survival(view) {
  view.show([], []);
  const found = await ask("survival", asked(view)), longest = Math.max(...found.arms.map((a) => a.columns.time.at(-1)));
  const marks = found.arms.flatMap(({ columns: c, band: [times, low, high] }, series) => {
    const [below, above] = [low, high].map((values) => stairs([[0, 1], ...times.map((t, i) => [t, values[i]])]));
    return [
      { kind: "band", series, points: below.map(([t, y], i) => [t, y, above[i][1]]) },
      { kind: "line", series, points: stairs([[0, 1], ...c.time.map((t, i) => [t, c.survival[i]])]) },
    ];
  });
  const table = { name: "Survival and number at risk", ...rowsOf(found.table.columns) };
  view.draw(withExports(chart({
    title: "Survival", description: `Kaplan-Meier curves with bands. ${found.arms.map((a) => a.name).join(", ")}.`,
    x: { min: 0, max: longest, label: view.about.unit || "time" }, y: { min: 0, max: 1, label: "survival", format: percent },
    marks, table, series: legendOf(found.arms.map((a) => a.name)), width: view.width,
  }), "survival", table));
  const summary = tableOf({ name: "Medians, restricted means, tests", ...rowsOf(found.summary.columns) });
  summary.open = true;
  view.draw(summary);
  view.notes(found.table.about.notes ?? []);
}

async function plan(view) {
  const { about, state, change } = view;
  const n = Number(state.n ?? 5000), epsilon = Number(state.epsilon ?? 1);
  const parties = (x) => Number((10 ** x).toPrecision(2));
  const size = slider({ label: "Parties", min: 2, max: 6, step: 0.01, value: Math.log10(n), say: (x) => parties(x).toLocaleString("en"), onchange: (x) => change({ n: String(parties(x)) }) });
  const privacy = slider({ label: "Epsilon", min: 0.05, max: 5, step: 0.05, value: epsilon, say: shortNumber, onchange: (x) => change({ epsilon: String(x) }) });
  view.show([size, privacy], []);
  const found = await ask("plan", { n, epsilon, thresholds: about.grid.size, strata: about.strata.length }), { here, columns: c } = found;
  view.read([htmlElement("p", {}, `With ${n.toLocaleString("en")} parties and epsilon ${shortNumber(epsilon)}, on this campaign's grid: a point of the curve is off by ${percent(here.point)} (one standard error), the whole curve by at most ${percent(here.band)} in 95 % of campaigns, a quantile by ${shortNumber(here.quantile_steps)} steps of the grid.`)]);
  const table = { name: "Expected errors", ...rowsOf(c) };
  view.draw(withExports(chart({
    title: "Expected error of the curve", description: "Standard error of a point and the error of the whole curve, against the number of parties.",
    x: { min: c.n[0], max: c.n.at(-1), log: true, ticks: powers(c.n[0], c.n.at(-1)), label: "parties", format: (x) => x.toLocaleString("en") },
    y: { min: 0, max: Math.min(1, Math.max(...c.band_95)), label: "error", format: percent },
    marks: [
      { kind: "line", points: c.n.map((x, i) => [x, c.point_error[i]]) }, { kind: "line", series: 1, points: c.n.map((x, i) => [x, c.band_95[i]]) },
      { kind: "rule", x: n, label: n.toLocaleString("en") },
    ],
    table, series: [["a point", 0], ["the whole curve", 1]], width: view.width,
  }), "plan", table));
}

export const VIEWS = {
  distribution: ["Distribution", distribution],
  histogram: ["Histogram", histogram],
  comparison: ["Comparison", comparison],
  roc: ["ROC", roc],
  calibration: ["Calibration", calibration],
  decision: ["Decision curve", decision],
  survival: ["Survival", survival],
  plan: ["Planning", plan],
};
