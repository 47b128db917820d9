// Views of scores: ROC with an operating point, calibration, decision curve.

import { shortNumber } from "../charts.js";
import { draggable } from "../explore.js";
import { WHICH, asked, between, drawChart, kindOf, nearest, percent } from "./drawing.js";
import { ask, numberCard, rowsOf, slider, tableWithExport } from "./shared.js";
/** @import { Mark } from "../charts.js" */
/** @import { View } from "./drawing.js" */

// What chance does, or a calibrated score.
/** @type {Mark} */
const DIAGONAL = {
  kind: "line",
  series: 5,
  dashed: true,
  points: [
    [0, 0],
    [1, 1],
  ],
};

/** @param {View} view */
export async function roc(view) {
  const { state, change } = view;
  const {
    roc: made,
    region: [leastFalse, mostFalse, leastTrue, mostTrue],
  } = await ask("roc", asked(view));
  const c = made.columns,
    cuts = c.called_positive_above,
    last = cuts.length - 1;
  const here = Math.min(last, Math.max(0, Number(state.cut ?? Math.floor(last / 2))));
  const say = (/** @type {number} */ i) => (cuts[i] == null ? "everybody" : String(cuts[i]));
  const cut = slider({
    label: "Called positive above",
    min: 0,
    max: last,
    value: here,
    say,
    onchange: (i) => change({ cut: String(i) }),
  });
  const kind = kindOf(view),
    [low, high] = ["lower", "upper"].map((end) => made.about[`auc_${kind}_${end}`]);
  view.show([cut]);
  view.read([
    numberCard(
      "AUC",
      made.about.auc == null ? "–" : shortNumber(made.about.auc),
      `95 %: ${between(low, high, shortNumber)}, ${WHICH[kind]}`,
      {
        id: "auc",
      },
    ),
    numberCard(`Sensitivity above ${say(here)}`, percent(c.true_positive_rate[here]), "", { id: "operating" }),
    numberCard(`Specificity above ${say(here)}`, percent(1 - c.false_positive_rate[here])),
    numberCard(`Precision above ${say(here)}`, percent(c.precision[here])),
  ]);
  const pairs = (/** @type {any[]} */ xs, /** @type {any[]} */ ys) => xs.map((x, i) => [x, ys[i]]);
  const side = Math.min(view.width, 620);
  drawChart(
    view,
    "roc",
    {
      title: "ROC curve",
      description: `True against false positive rate, with the region that holds the curve. AUC ${made.about.auc ?? "unknown"}.`,
      x: { min: 0, max: 1, label: "false positive rate (%)", format: percent },
      y: { min: 0, max: 1, label: "true positive rate (%)", format: percent },
      marks: [
        { kind: "area", points: [...pairs(mostFalse, leastTrue), ...pairs(leastFalse, mostTrue).reverse()] },
        DIAGONAL,
        { kind: "line", points: pairs(c.false_positive_rate, c.true_positive_rate) },
        { kind: "points", series: 1, points: [[c.false_positive_rate[here], c.true_positive_rate[here]]] },
      ],
      table: { name: "Numbers of the ROC curve", ...rowsOf(c) },
      width: side,
      height: Math.round(0.85 * side),
    },
    (figure) => ({
      reading: {
        at: c.false_positive_rate,
        start: here,
        say: (i) => `above ${say(i)}: false positive rate ${percent(c.false_positive_rate[i])}`,
        format: percent,
        rows: [{ name: "true positive rate", series: 0, values: c.true_positive_rate, low: leastTrue, high: mostTrue }],
      },
      onpick: (i) => change({ cut: String(i) }),
      handles: draggable(figure, [
        {
          input: cut.input,
          to: (scales, x) => nearest(c.false_positive_rate, scales.x.inverse(x)),
          away: (scales, x, y) =>
            Math.hypot(scales.x.at(c.false_positive_rate[here]) - x, scales.y.at(c.true_positive_rate[here]) - y),
        },
      ]),
    }),
  );
  view.notes(made.about.notes ?? []);
}

/** What the test says, or that it can say nothing with so few people and so much noise.
 * @param {any} about
 */
function hosmerLemeshow(about) {
  if (about.p_value == null) return numberCard("Hosmer-Lemeshow", "–", "it tells nothing at this n and epsilon");
  const p = `p ${about.p_value < 1e-4 ? "< 0.0001" : `= ${shortNumber(about.p_value)}`}, with the noise included`;
  return numberCard("Hosmer-Lemeshow", shortNumber(about.hosmer_lemeshow_corrected), p);
}

/** @param {View} view */
export async function calibration(view) {
  const { about: campaign, state, change } = view,
    kind = kindOf(view);
  view.show([
    slider({
      label: "Groups",
      min: 3,
      max: 20,
      value: state.groups ?? 10,
      onchange: (n) => change({ groups: String(n) }),
    }),
  ]);
  const found = await ask("calibration", { groups: state.groups ?? 10, ...asked(view) });
  const { about, columns: c } = found.calibration,
    smooth = found.smooth?.columns;
  /** @type {Mark[]} */
  const marks = [DIAGONAL];
  if (smooth) {
    const points = (/** @type {string[]} */ ...names) =>
      smooth.score.map((/** @type {number} */ x, /** @type {number} */ i) => [
        x,
        ...names.map((name) => smooth[name][i]),
      ]);
    marks.push({ kind: "band", series: 1, points: points(`${kind}_lower`, `${kind}_upper`) });
    marks.push({ kind: "line", series: 1, points: points("share_positive") });
  }
  marks.push({
    kind: "points",
    series: 0,
    points: c.mean_score
      .map((/** @type {number} */ x, /** @type {number} */ i) => [
        x,
        c.share_positive[i],
        c[`${kind}_lower`][i],
        c[`${kind}_upper`][i],
      ])
      .filter((/** @type {any[]} */ p) => p.every((x) => x != null)),
  });
  const read = smooth
    ? { xs: smooth.score, columns: smooth, name: "smooth curve", series: 1 }
    : { xs: c.mean_score, columns: c, name: "group", series: 0 };
  view.read([
    hosmerLemeshow(about),
    numberCard("Observed over expected", shortNumber(about.observed_over_expected), "1 where the score is calibrated"),
  ]);
  drawChart(
    view,
    "calibration",
    {
      title: "Calibration",
      description:
        "Observed fraction of positives against the mean score of each group, and a smooth curve with its band.",
      x: { min: 0, max: 1, label: campaign.value_label, format: percent },
      y: { min: 0, max: 1, label: "observed fraction (%)", format: percent },
      marks,
      table: { name: "Numbers of the groups", ...rowsOf(c) },
      series: smooth
        ? [
            ["groups", 0],
            ["smooth curve", 1],
          ]
        : [],
    },
    () => ({
      reading: {
        at: read.xs,
        say: (i) => `score ${percent(read.xs[i])}`,
        format: percent,
        rows: [
          {
            name: read.name,
            series: read.series,
            values: read.columns.share_positive,
            low: read.columns[`${kind}_lower`],
            high: read.columns[`${kind}_upper`],
          },
        ],
      },
    }),
  );
  if (smooth)
    view.draw(tableWithExport({ name: "Numbers of the smooth curve", ...rowsOf(smooth) }, "calibration-curve"));
  view.notes([...(about.notes ?? []), ...(found.smooth_problem ? [found.smooth_problem] : [])]);
}

/** @param {View} view */
export async function decision(view) {
  const { state, change } = view,
    kind = kindOf(view),
    threshold = Number(state.threshold ?? 0.5);
  const cut = slider({
    label: "Treat above",
    min: 0.01,
    max: 0.99,
    step: 0.01,
    value: threshold,
    say: percent,
    onchange: (x) => change({ threshold: String(Number(x.toPrecision(6))) }),
  });
  view.show([cut]);
  const found = await ask("decision", { threshold, ...asked(view) }),
    c = found.decision.columns;
  const all = [
    ...c.net_benefit,
    ...c.treat_all.filter((/** @type {number} */ x) => x > -0.1),
    ...c[`${kind}_upper`],
  ].filter((x) => x != null);
  const points = (/** @type {string[]} */ ...names) =>
    c.threshold.map((/** @type {number} */ x, /** @type {number} */ i) => [x, ...names.map((name) => c[name][i])]);
  const at = nearest(c.threshold, threshold);
  const interval = between(c[`${kind}_lower`][at], c[`${kind}_upper`][at], shortNumber);
  view.read([
    numberCard(`Net benefit above ${percent(c.threshold[at])}`, shortNumber(c.net_benefit[at]), interval),
    numberCard("Treating all", shortNumber(c.treat_all[at])),
  ]);
  drawChart(
    view,
    "decision",
    {
      title: "Decision curve",
      description: "Net benefit of treating those above each threshold, against treating all and none.",
      x: { min: 0, max: Math.max(...c.threshold), label: "threshold probability (%)", format: percent },
      y: { min: Math.max(-0.1, Math.min(0, ...all)), max: Math.max(...all), label: "net benefit" },
      marks: [
        { kind: "band", series: 0, points: points(`${kind}_lower`, `${kind}_upper`) },
        { kind: "line", series: 0, points: points("net_benefit") },
        { kind: "line", series: 1, dashed: true, points: points("treat_all") },
        { kind: "line", series: 5, dashed: true, points: points("treat_none") },
        { kind: "rule", x: threshold, label: percent(threshold) },
      ],
      table: { name: "Numbers of the decision curve", ...rowsOf(c) },
      series: [
        ["by score", 0],
        ["treat all", 1],
        ["treat none", 5],
      ],
    },
    (figure) => ({
      reading: {
        at: c.threshold,
        start: at,
        say: (i) => `threshold ${percent(c.threshold[i])}`,
        format: shortNumber,
        rows: [
          { name: "by score", series: 0, values: c.net_benefit, low: c[`${kind}_lower`], high: c[`${kind}_upper`] },
          { name: "treat all", series: 1, values: c.treat_all },
          { name: "treat none", series: 5, values: c.treat_none },
        ],
      },
      onpick: (i) => change({ threshold: String(c.threshold[i]) }),
      handles: draggable(figure, [
        {
          input: cut.input,
          to: (scales, x) => scales.x.inverse(x),
          away: (scales, x) => Math.abs(scales.x.at(threshold) - x),
        },
      ]),
    }),
  );
  const performance = {
    name: `Performance, called positive above ${percent(threshold)}`,
    ...rowsOf(found.performance.columns),
  };
  view.draw(tableWithExport(performance, "performance", true));
  view.notes(found.decision.about.notes ?? []);
}
