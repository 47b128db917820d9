// A variable of a campaign: what is measured, on which grid.

import { Refusal, readGrid } from "./grid.js";
import { isText } from "./text.js";

/** @import { Json } from "./json.js" */

export class Variable {
  /** @param {Json} fields */
  constructor(fields) {
    if (!(fields instanceof Map)) throw new Refusal("badCampaign", { field: "variables" });
    this.name = readText(fields, "name");
    this.unit = readText(fields, "unit");
    // What this page can make keys for; anything else is refused before a byte is sent.
    if (fields.get("scheme") !== "dcf") throw new Refusal("unknownScheme", { scheme: String(fields.get("scheme")) });
    // Categories and missing values have positions that this page does not know.
    if (fields.get("missing") !== false) throw new Refusal("badCampaign", { field: "missing" });
    this.grid = readGrid(fields.get("grid"));
  }

  get indexBits() {
    return this.grid.bits;
  }
}

/**
 * @param {Map<string, Json>} fields
 * @param {string} name
 */
function readText(fields, name) {
  const found = fields.get(name);
  if (typeof found !== "string" || !isText(found)) throw new Refusal("badCampaign", { field: name });
  return found;
}

// The only variable of a campaign: the page asks for one.
/** @param {Json | undefined} list */
export function readOnlyVariable(list) {
  if (!Array.isArray(list) || list.length !== 1) throw new Refusal("badCampaign", { field: "variables" });
  return new Variable(list[0]);
}
