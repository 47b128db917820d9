// What has become of what was sent, after something went wrong.

import { Refusal } from "./grid.js";
/** @import { Upload } from "./upload.js" */

/**
 * @param {unknown} error
 * @returns {Refusal}
 */
export const asRefusal = (error) =>
  error instanceof Refusal ? error : new Refusal("internal", { detail: String(error).slice(0, 200) });

// As the receipt on the disk has it; null where the problem itself says it.
/**
 * @param {Upload | null} upload
 * @param {Refusal} error
 */
export function outcomeOf(upload, error) {
  if (["otherTab", "otherValues"].includes(error.key) || error.code === "campaign-sealed") return null;
  if (!upload?.isOut) return error.after ?? "refused";
  if (upload.stored && upload.pending) return "partStored";
  return error.after ?? (upload.pending ? "perhapsStored" : "unfinished");
}
