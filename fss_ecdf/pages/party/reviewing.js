// The screen that shows what would be sent, before it is.

import { svgElement } from "../elements.js";
import { withUnit } from "./entering.js";
import { actions, button, field, foreign, paragraph, piece, tickBox } from "./parts.js";
import { histogramChart } from "./preview.js";
/** @import { Page } from "./page.js" */
/** @import { PlacedFile, PlacedOne } from "./records.js" */

/** @param {Page} page */
export function reviewing(page) {
  const { reviewed: placed, campaign } = page,
    count = placed.positions.length;
  const typed = page.data.typed ?? { token: "", agreed: false };
  const { missing = "" } = page.data;
  const consent = page.say("consent", { count, epsilon: campaign.totalEpsilon });
  const send = () => {
    const lacking = !page.token && !typed.token ? "token" : typed.agreed ? "" : "agree";
    if (lacking) page.lacking(typed, lacking);
    else page.send("send", typed.token);
  };
  const token = field({
    id: "token",
    label: page.say("token"),
    error: missing === "token" ? page.say("noToken") : "",
    attributes: { type: "password" },
    value: typed.token,
    oninput: ({ target }) => (typed.token = target.value.trim()),
  });
  return {
    head: page.say("reviewHead"),
    focus: missing || undefined,
    body: [
      ...("one" in placed ? oneValue(page, placed.one) : manyValues(page, placed)),
      ...(page.token ? [] : [token]),
      tickBox(
        "agree",
        consent,
        typed.agreed,
        (checked) => (typed.agreed = checked),
        missing === "agree" ? page.say("noConsent") : "",
      ),
      actions(
        button("send", page.say("send"), send, "primary"),
        button("edit", page.say("edit"), () => page.edit()),
      ),
    ],
  };
}

/**
 * @param {Page} page
 * @param {PlacedOne["one"]} one
 */
function oneValue(page, { x, index }) {
  const { strata } = page.campaign,
    { grid } = page.campaign.variable;
  const typed = grid.values === "date" ? grid.label(index) : String(x);
  const value = withUnit(page, typed);
  const group = strata[Number(page.form.stratum || 0)];
  const said = page.say(strata.length > 1 ? "youSendGroup" : "youSend", { value, group });
  const label = grid.label(index);
  return [
    foreign("p", said, { id: "you-send", class: "large", lang: page.language }),
    marker(page, value, index),
    ...(Number(label) === x || label === typed
      ? []
      : [paragraph(page.say("countedAs", { label: withUnit(page, label) }))]),
  ];
}

// The value on a line from the first to the last threshold.
/**
 * @param {Page} page
 * @param {string} value
 * @param {number} index
 */
function marker(page, value, index) {
  const { grid } = page.campaign.variable;
  const [left, right, wide] = [12, 308, 320];
  const at = left + ((right - left) * index) / Math.max(1, grid.size - 1);
  const ends = { first: withUnit(page, grid.label(0)), last: withUnit(page, grid.label(grid.size - 1)) };
  const title = page.say("markerTitle", ends);
  const line = svgElement(
    "svg",
    { viewBox: `0 0 ${wide} 30`, role: "img", "aria-label": `${title}: ${value}`, class: "marker" },
    svgElement("line", { x1: left, x2: right, y1: 15, y2: 15, class: "axis" }),
    ...[left, right].map((x) => svgElement("line", { x1: x, x2: x, y1: 9, y2: 21, class: "axis" })),
    svgElement("circle", { cx: at, cy: 15, r: 8, class: "point s0" }),
  );
  const labels = [ends.first, ends.last].map((text) => piece("span", { dir: "auto" }, text));
  return piece(
    "div",
    { class: "marker-line", dir: "ltr" },
    line,
    piece("div", { class: "ends soft", "aria-hidden": "true" }, ...labels),
  );
}

/**
 * @param {Page} page
 * @param {PlacedFile} placed
 */
function manyValues(page, placed) {
  const { campaign } = page,
    { positions, read, missing, below, above, off } = placed;
  /**
   * @param {string} key
   * @param {string} text
   * @param {string} [kind]
   */
  const row = (key, text, kind = "") =>
    piece("tr", { class: kind }, piece("th", { scope: "row" }, page.say(key)), piece("td", {}, text));
  /** @param {number} count */
  const number = (count) => page.say("{count}", { count });
  const list = off.map(({ row: at, value }) => page.say("offRow", { row: String(at), value })).join("; ");
  const many = below + above > off.length ? " …" : "";
  const histogram = histogramChart(campaign, placed.histogram, positions.length, (key, more) => page.say(key, more));
  return [
    piece(
      "table",
      { id: "counts", class: "counts" },
      piece(
        "tbody",
        {},
        row("tableRead", number(read)),
        row("tableEmpty", number(missing)),
        row("tableOff", number(below + above), below + above ? "attention" : ""),
        row("tableSent", number(positions.length), "total"),
      ),
    ),
    ...(off.length ? [foreign("p", page.say("offRows", { list }) + many, { id: "off", lang: page.language })] : []),
    ...(placed.commas ? [paragraph(page.say("commaRead"))] : []),
    piece("div", { id: "histogram" }, histogram),
  ];
}
