// What a server confirms to a party (fss_ecdf/campaign/confirmations.py): that uploads are stored, or that they do not
// count. It is signed with the server's key in the campaign.

import { concat, fromBase64url, utf8 } from "./bytes.js";
import { sha256 } from "./sha256.js";
/** @import { Campaign } from "./campaign.js" */

const SIGNATURE_BYTES = 64;
const STORED = utf8("fss-ecdf stored uploads 1\n");
const WITHDRAWN = utf8("fss-ecdf withdrawal 1\n");

// What a server signs when it has stored uploads for a wave; `leaves` are those of all of them, joined.
/**
 * @param {Campaign} campaign
 * @param {number} server
 * @param {number} wave
 * @param {Uint8Array} leaves
 */
export function storedMessage(campaign, server, wave, leaves) {
  const about = new DataView(new ArrayBuffer(5));
  about.setUint8(0, server);
  about.setUint32(1, wave, true);
  return concat(STORED, campaign.digest, new Uint8Array(about.buffer), sha256(leaves));
}

// What a server signs when none of these ids counts.
/**
 * @param {Campaign} campaign
 * @param {number} server
 * @param {Uint8Array} ids
 */
export const withdrawnMessage = (campaign, server, ids) =>
  concat(WITHDRAWN, campaign.digest, Uint8Array.of(server), sha256(ids));

/**
 * @param {Campaign} campaign
 * @param {number} server
 */
const keyOf = (campaign, server) =>
  crypto.subtle.importKey("raw", campaign.signingKeys?.[server] ?? new Uint8Array(), "Ed25519", false, ["verify"]);

// Whether this browser can check a signature. Older ones lack Ed25519.
/** @param {Campaign} campaign */
export async function canVerify(campaign) {
  try {
    await Promise.all([0, 1].map((server) => keyOf(campaign, server)));
    return true;
  } catch {
    return false;
  }
}

// Whether the text is the server's signature of the message.
/**
 * @param {Campaign} campaign
 * @param {number} server
 * @param {Uint8Array} message
 * @param {unknown} signature
 */
export async function isConfirmed(campaign, server, message, signature) {
  try {
    const key = await keyOf(campaign, server);
    return await crypto.subtle.verify("Ed25519", key, fromBase64url(signature, SIGNATURE_BYTES), message);
  } catch {
    return false;
  }
}
