// An upload as it travels (fss_ecdf/campaign/sealed_uploads.py): the header of its envelope in plain view, and its rows in parts,
// the first row alone, each encrypted to one server with everything that both sides must agree on in HPKE's `info`.

import { concat, utf8 } from "./bytes.js";
import { HEADER_BYTES, UPLOAD_TYPE, uploadBytes } from "./envelope.js";
import { ENCAPSULATED_BYTES, OVERHEAD, seal } from "./hpke.js";
import { sha256 } from "./sha256.js";
/** @import { Campaign } from "./campaign.js" */

const PART_BYTES = 2 ** 20;
const CONTEXT = utf8(`fss-ecdf sealed upload 2\n${UPLOAD_TYPE}\n`);

// How many bytes travel to one server for so many uploads.
/**
 * @param {Campaign} campaign
 * @param {number} count
 */
export function sealedBytes(campaign, count) {
  const whole = uploadBytes(campaign, count);
  return whole + (1 + Math.ceil((whole - uploadBytes(campaign, 1)) / PART_BYTES)) * OVERHEAD;
}

// `first` is the encapsulated key of the first part, nothing for that part itself: it ties all parts together.
/**
 * @param {Uint8Array} header
 * @param {Uint8Array} token
 * @param {number} number
 * @param {boolean} last
 * @param {Uint8Array} first
 */
function partInfo(header, token, number, last, first) {
  const place = new DataView(new ArrayBuffer(5));
  place.setUint32(0, number, true);
  place.setUint8(4, last ? 1 : 0);
  return concat(CONTEXT, header, token, new Uint8Array(place.buffer), first);
}

// What travels of an envelope with this token: with another one no server opens it.
/**
 * @param {Campaign} campaign
 * @param {number} server
 * @param {Uint8Array} envelope
 * @param {string} token
 */
export async function sealUpload(campaign, server, envelope, token) {
  const header = envelope.subarray(0, HEADER_BYTES),
    sender = sha256(utf8(token)),
    parts = [header];
  let start = HEADER_BYTES,
    end = uploadBytes(campaign, 1);
  if (!campaign.hpkeKeys) throw new Error("no server has this campaign yet");
  while (start < envelope.length) {
    const first = parts.length > 1 ? parts[1].subarray(0, ENCAPSULATED_BYTES) : new Uint8Array(0),
      info = partInfo(header, sender, parts.length - 1, end >= envelope.length, first);
    parts.push(await seal(campaign.hpkeKeys[server], info, envelope.subarray(start, end)));
    [start, end] = [end, end + PART_BYTES];
  }
  return concat(...parts);
}
