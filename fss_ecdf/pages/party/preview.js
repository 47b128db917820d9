// The values of a file as a histogram, as only their owner sees them: nothing of this leaves the page.

import { htmlElement, svgElement } from "../elements.js";
/** @import { Campaign } from "./campaign.js" */
/** @import { Histogram } from "./records.js" */

const MOST_STRATA = 6; // as many as there are colours; the table has all
const [HEAD_ROOM, BASE_LINE, LABEL_LINE] = [18, 170, 190];

// `say` speaks the page's language. Letters are as large as the reader's: the picture has as many units as pixels.
/**
 * @param {Campaign} campaign
 * @param {Histogram} about
 * @param {number} count
 * @param {(key: string, about?: Record<string, unknown>) => string} say
 */
export function histogramChart(campaign, { labels, counts }, count, say) {
  const letters = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  const wide = Math.round(Math.min(600, Math.max(280, innerWidth - 32)) / letters);
  const shown = counts.slice(0, MOST_STRATA),
    most = Math.max(1, ...shown.flat());
  const each = (wide - 8) / labels.length,
    bar = (0.9 * each) / shown.length;
  const bars = shown.flatMap((row, s) =>
    row.map((n, i) => {
      const height = ((BASE_LINE - HEAD_ROOM) * n) / most;
      const place = { x: 4 + i * each + s * bar, y: BASE_LINE - height, width: bar, height };
      return svgElement("rect", { ...place, class: `bar s${s}` });
    }),
  );
  const every = Math.ceil((labels.length * 64) / wide);
  const marks = labels.map((label, i) =>
    svgElement(
      "text",
      { x: 4 + (i + 0.5) * each, y: LABEL_LINE, "text-anchor": "middle" },
      i % every === every >> 1 ? label : "",
    ),
  );
  const title = say("histogramTitle");
  const picture = svgElement(
    "svg",
    {
      viewBox: `0 0 ${wide} 200`,
      role: "img",
      "aria-label": `${title}. ${say("histogramDescription", { count, most })}`,
    },
    ...bars,
    svgElement("line", { x1: 4, x2: wide - 4, y1: BASE_LINE, y2: BASE_LINE, class: "axis" }),
    svgElement("text", { x: 4, y: 12 }, String(most)),
    ...marks,
  );
  const legend = campaign.strata
    .slice(0, shown.length)
    .map((name, s) => htmlElement("li", { class: `key k${s}`, lang: "", dir: "auto" }, name));
  const names = [`${say("upTo")} … ${campaign.variable.unit}`.trim(), ...campaign.strata];
  return htmlElement(
    "figure",
    { class: "chart" },
    htmlElement("figcaption", {}, title),
    picture,
    ...(campaign.strata.length > 1 ? [htmlElement("ul", { class: "legend" }, ...legend)] : []),
    numbersTable(
      say("number"),
      names,
      labels.map((label, i) => [label, ...counts.map((row) => String(row[i]))]),
    ),
  );
}

/**
 * @param {string} name
 * @param {string[]} names
 * @param {string[][]} rows
 */
function numbersTable(name, names, rows) {
  /**
   * @param {string} kind
   * @param {string[]} row
   */
  const cells = (kind, row) => htmlElement("tr", {}, ...row.map((text) => htmlElement(kind, {}, text)));
  const table = htmlElement(
    "table",
    {},
    htmlElement("thead", {}, cells("th", names)),
    htmlElement("tbody", {}, ...rows.map((row) => cells("td", row))),
  );
  const scroller = htmlElement("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": name }, table);
  return htmlElement("details", { id: "numbers" }, htmlElement("summary", {}, name), scroller);
}
