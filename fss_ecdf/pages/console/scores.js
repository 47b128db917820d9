// Views of scores: ROC with an operating point, calibration, decision curve.

import { chart, shortNumber } from "../charts.js";
import { htmlElement } from "../elements.js";
import { WHICH, asked, nearest, percent } from "./drawing.js";
import { ask, draggable, rowsOf, slider, tableWithExport, withExports } from "./shared.js";

// What chance does, or a calibrated score.
const DIAGONAL = {
  kind: "line",
  series: 5,
  dashed: true,
  points: [
    [0, 0],
    [1, 1],
  ],
};

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
  const cut = slider({
    label: "Called positive above",
    min: 0,
    max: last,
    value: here,
    say: (i) => (cuts[i] == null ? "everybody" : String(cuts[i])),
    onchange: (i) => change({ cut: String(i) }),
  });
  const kind = state.interval ?? "population",
    [low, high] = ["lower", "upper"].map((end) => made.about[`auc_${kind}_${end}`]);
  view.show(
    [cut],
    [
      htmlElement(
        "p",
        {},
        `AUC ${shortNumber(made.about.auc)} (95 % ${shortNumber(low)} to ${shortNumber(high)}, ${WHICH[kind]}).`,
      ),
      htmlElement(
        "p",
        { id: "operating" },
        `Above ${cuts[here] ?? "nothing"}: sensitivity ${percent(c.true_positive_rate[here])}, specificity ${percent(1 - c.false_positive_rate[here])}, precision ${percent(c.precision[here])}.`,
      ),
    ],
  );
  const lower = mostFalse.map((x, i) => [x, leastTrue[i]]),
    upper = leastFalse.map((x, i) => [x, mostTrue[i]]);
  const table = { name: "Numbers of the ROC curve", ...rowsOf(c) };
  const figure = chart({
    title: "ROC curve",
    description: `True against false positive rate, with the region that holds the curve. AUC ${shortNumber(made.about.auc)}.`,
    x: { min: 0, max: 1, label: "false positive rate", format: percent },
    y: { min: 0, max: 1, label: "true positive rate", format: percent },
    marks: [
      { kind: "area", points: [...lower, ...upper.reverse()] },
      DIAGONAL,
      { kind: "line", points: c.false_positive_rate.map((x, i) => [x, c.true_positive_rate[i]]) },
      { kind: "points", series: 1, points: [[c.false_positive_rate[here], c.true_positive_rate[here]]] },
    ],
    table,
    width: Math.min(view.width, 520),
    height: Math.min(view.width, 460),
  });
  draggable(figure, { input: cut.input, to: (scales, x) => nearest(c.false_positive_rate, scales.x.inverse(x)) });
  view.draw(withExports(figure, "roc", table));
  view.notes(made.about.notes ?? []);
}

/** What the test says, or that it can say nothing with so few people and so much noise. */
function hosmerLemeshow(about) {
  if (about.p_value == null) return "Hosmer-Lemeshow tells nothing at this n and epsilon";
  const corrected = shortNumber(about.hosmer_lemeshow_corrected);
  return `Hosmer-Lemeshow ${corrected}, p = ${shortNumber(about.p_value)} with the noise included`;
}

export async function calibration(view) {
  const { state, change } = view,
    kind = state.interval ?? "population";
  view.show(
    [
      slider({
        label: "Groups",
        min: 3,
        max: 20,
        value: state.groups ?? 10,
        onchange: (n) => change({ groups: String(n) }),
      }),
    ],
    [],
  );
  const found = await ask("calibration", { groups: state.groups ?? 10, ...asked(view) });
  const { about, columns: c } = found.calibration;
  const marks = [DIAGONAL];
  if (found.smooth) {
    const s = found.smooth.columns;
    marks.push({
      kind: "band",
      series: 1,
      points: s.score.map((x, i) => [x, s[`${kind}_lower`][i], s[`${kind}_upper`][i]]),
    });
    marks.push({ kind: "line", series: 1, points: s.score.map((x, i) => [x, s.share_positive[i]]) });
  }
  marks.push({
    kind: "points",
    points: c.mean_score
      .map((x, i) => [x, c.share_positive[i], c[`${kind}_lower`][i], c[`${kind}_upper`][i]])
      .filter((p) => p.every((x) => x != null)),
  });
  const table = { name: "Numbers of the groups", ...rowsOf(c) };
  view.draw(
    withExports(
      chart({
        title: "Calibration",
        description:
          "Observed share of positives against the mean score of each group, and a smooth curve with its band.",
        x: { min: 0, max: 1, label: "score", format: percent },
        y: { min: 0, max: 1, label: "observed", format: percent },
        marks,
        table,
        series: found.smooth
          ? [
              ["groups", 0],
              ["smooth curve", 1],
            ]
          : [],
        width: view.width,
      }),
      "calibration",
      table,
    ),
  );
  if (found.smooth) {
    const smooth = { name: "Numbers of the smooth curve", ...rowsOf(found.smooth.columns) };
    view.draw(tableWithExport(smooth, "calibration-curve"));
  }
  view.read([
    htmlElement(
      "p",
      {},
      `${hosmerLemeshow(about)}; observed over expected ${shortNumber(about.observed_over_expected)}.`,
    ),
  ]);
  view.notes([...(about.notes ?? []), ...(found.smooth_problem ? [found.smooth_problem] : [])]);
}

export async function decision(view) {
  const { state, change } = view,
    kind = state.interval ?? "population",
    threshold = Number(state.threshold ?? 0.5);
  const cut = slider({
    label: "Treat above",
    min: 0.01,
    max: 0.99,
    step: 0.01,
    value: threshold,
    say: percent,
    onchange: (x) => change({ threshold: String(x) }),
  });
  view.show([cut], []);
  const found = await ask("decision", { threshold, ...asked(view) }),
    c = found.decision.columns;
  const table = { name: "Numbers of the decision curve", ...rowsOf(c) };
  const all = [...c.net_benefit, ...c.treat_all.filter((x) => x > -0.1), ...c[`${kind}_upper`]].filter(
    (x) => x != null,
  );
  const figure = chart({
    title: "Decision curve",
    description: "Net benefit of treating those above each threshold, against treating all and none.",
    x: { min: 0, max: Math.max(...c.threshold), label: "threshold probability", format: percent },
    y: { min: Math.max(-0.1, Math.min(0, ...all)), max: Math.max(...all), label: "net benefit" },
    marks: [
      { kind: "band", points: c.threshold.map((x, i) => [x, c[`${kind}_lower`][i], c[`${kind}_upper`][i]]) },
      { kind: "line", points: c.threshold.map((x, i) => [x, c.net_benefit[i]]) },
      { kind: "line", series: 1, dashed: true, points: c.threshold.map((x, i) => [x, c.treat_all[i]]) },
      { kind: "line", series: 5, dashed: true, points: c.threshold.map((x, i) => [x, c.treat_none[i]]) },
      { kind: "rule", x: threshold, label: percent(threshold) },
    ],
    table,
    series: [
      ["by score", 0],
      ["treat all", 1],
      ["treat none", 5],
    ],
    width: view.width,
  });
  draggable(figure, { input: cut.input, to: (scales, x) => scales.x.inverse(x) });
  view.draw(withExports(figure, "decision", table));
  const performance = {
    name: `Performance, called positive above ${percent(threshold)}`,
    ...rowsOf(found.performance.columns),
  };
  view.draw(tableWithExport(performance, "performance", true));
  view.notes(found.decision.about.notes ?? []);
}
