// What would be sent, as its owner sees it before it is: nothing of this leaves the page.

import { chart } from "../charts.js";

const MOST_STRATA = 6; // as many as there are colours; the table has all

export const sizeText = (bytes) => (bytes < 1e6 ? `${Math.ceil(bytes / 1000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);

export function fill(select, options) {
  const before = select.value;
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
  if (options.some(([value]) => String(value) === before)) select.value = before;
}

// `say` speaks the page's language.
export function histogramChart(campaign, { labels, counts }, count, say) {
  const strata = campaign.strata.slice(0, MOST_STRATA),
    shown = counts.slice(0, MOST_STRATA);
  const wide = 0.84 / shown.length,
    most = Math.max(1, ...shown.flat());
  const marks = shown.map((row, s) => ({
    kind: "bars",
    series: s,
    bars: row.map((n, i) => [i + 0.08 + s * wide, i + 0.08 + (s + 1) * wide, n]),
  }));
  const every = Math.ceil(labels.length / 6);
  const ticks = labels.map((_, i) => i + 0.5).filter((_, i) => i % every === every - 1 || labels.length <= 6);
  return chart({
    width: Math.min(640, Math.max(320, innerWidth - 32)), // so that letters stay readable on a phone
    title: say("histogramTitle"),
    description: say("histogramDescription", { count, most }),
    x: {
      min: 0,
      max: labels.length,
      ticks,
      format: (tick) => labels[Math.floor(tick)],
      label: `${say("upTo")} … ${campaign.unit}`,
    },
    y: { min: 0, max: Math.max(5, most), label: say("number") },
    marks,
    series: strata.length > 1 ? strata.map((name, i) => [name, i]) : [],
    table: {
      name: say("histogramTitle"),
      columns: [say("upTo"), ...campaign.strata],
      rows: labels.map((label, i) => [label, ...counts.map((row) => row[i])]),
    },
  });
}
