// A server's confirmation that uploads do not count (fss_ecdf/campaign/confirmations.py): signed with its key in the campaign.

import { concat, fromBase64url, utf8 } from "./bytes.js";
import { sha256 } from "./sha256.js";
/** @import { Campaign } from "./campaign.js" */

const SIGNATURE_BYTES = 64;
const WITHDRAWAL = utf8("fss-ecdf withdrawal 1\n");

// False also where this browser has no Ed25519: what it cannot check is not confirmed.
/**
 * @param {Campaign} campaign
 * @param {number} server
 * @param {Uint8Array} ids
 * @param {unknown} signature
 */
export async function isConfirmed(campaign, server, ids, signature) {
  try {
    const message = concat(WITHDRAWAL, campaign.digest, Uint8Array.of(server), sha256(ids));
    const key = await crypto.subtle.importKey(
      "raw",
      campaign.signingKeys?.[server] ?? new Uint8Array(),
      "Ed25519",
      false,
      ["verify"],
    );
    return await crypto.subtle.verify("Ed25519", key, fromBase64url(signature, SIGNATURE_BYTES), message);
  } catch {
    return false;
  }
}
