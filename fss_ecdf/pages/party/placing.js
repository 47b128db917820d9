// One value as it was typed, and its place on the campaign's grid.

import { Refusal, stripped } from "./grid.js";
import { plainNumber } from "./numbers.js";
import { badValueKey } from "./records.js";
/** @import { Campaign } from "./campaign.js" */
/** @import { Form } from "./form.js" */
/** @import { AnyGrid } from "./grid.js" */
/** @import { PlacedOne } from "./records.js" */

/** @param {{ variable: { grid: AnyGrid, unit: string } }} campaign */
export function rangeOf({ variable: { grid, unit } }) {
  return { first: grid.label(0), last: `${grid.label(grid.size - 1)} ${unit}`.trim(), unit };
}

// A value off the scale is placed at its end only if that is allowed; the refusal says which end it is.
/**
 * @param {Campaign} campaign
 * @param {Form} form
 * @param {string} language
 * @param {boolean} allowed
 * @returns {PlacedOne}
 */
export function placeTyped(campaign, form, language, allowed) {
  const { strata } = campaign,
    { grid, unit } = campaign.variable,
    text = stripped(form.value);
  if (!text) throw new Refusal("noValue");
  const x = grid.number(grid.values === "date" ? text : plainNumber(text, language, unit));
  if (Number.isNaN(x)) throw new Refusal(badValueKey(grid), { value: text.slice(0, 40) });
  if (strata.length > 1 && form.stratum === "") throw new Refusal("noGroup");
  const last = grid.size - 1;
  const end = x < grid.threshold(0) ? 0 : x > grid.threshold(last) ? last : null;
  if (end !== null && !allowed)
    throw Object.assign(new Refusal("offScale", { ...rangeOf(campaign), value: text }), { end });
  const index = grid.place(x);
  const positions = Float64Array.of(campaign.position(Number(form.stratum || 0), index));
  return { positions, one: { x: end === null ? x : grid.threshold(end), index } };
}
