// Why something does not go on, and what has become of what was sent.

import { Refusal } from "./grid.js";
/** @import { Campaign } from "./campaign.js" */
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
  if (["otherTab", "otherValues", "earlierStays"].includes(error.key) || error.code === "campaign-sealed") return null;
  if (!upload?.isOut) return error.after ?? "refused";
  if (upload.stored && upload.pending) return "partStored";
  return error.after ?? (upload.pending ? "perhapsStored" : "unfinished");
}

// Why the campaign takes nothing at this moment, by the states that both servers have told; or null.
/**
 * @param {Campaign} campaign
 * @param {string[]} states
 */
export function closedReason({ opens, closes }, states) {
  const now = Date.now();
  if (states.includes("sealed") || states.includes("checking")) return { why: "campaign-sealed", sealed: true };
  if (opens && now < opens) return { why: "closedNotYet", time: opens };
  if (closes && now >= closes) return { why: "closedSince", time: closes };
  return states.some((state) => state !== "open") ? { why: "closedFrozen" } : null;
}
