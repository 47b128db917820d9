// The upload envelopes for both servers (fss_ecdf/campaign/binary_messages.py): keys beside their ids, and proofs where keys are
// checked, each with the hash of what the other server gets.
//
//     "FSSU" version party kind 0 digest(32) wave(4) count(4) people(8) key_bytes(4) proof_bytes(4),
//     then count x (id(16) other(32) key proof)

import { concat, utf8 } from "./bytes.js";
import { Generator, RAND_BYTES } from "./dcf.js";
import { PROOF_RAND_WORDS, Prover, proofBytes } from "./proof.js";
import { sha256 } from "./sha256.js";
/** @import { Campaign } from "./campaign.js" */

export const UPLOAD_TYPE = "application/vnd.fss-ecdf.upload";
export const UPLOAD_VERSION = 4;
export const ID_BYTES = 16;
const HASH_BYTES = 32;
export const HEADER_BYTES = 64;
const LEAF = utf8("fss-ecdf set leaf 1\n");

/** @param {boolean} checked */
export const randBytes = (checked) => RAND_BYTES + (checked ? 8 * PROOF_RAND_WORDS : 0);

/** @param {Campaign} campaign */
const recordBytes = (campaign) =>
  ID_BYTES + HASH_BYTES + campaign.keyType.keyBytes + (campaign.checked ? proofBytes(campaign.keyType) : 0);

/**
 * @param {Campaign} campaign
 * @param {number} count
 */
export const uploadBytes = (campaign, count) => HEADER_BYTES + count * recordBytes(campaign);

/**
 * @param {Campaign} campaign
 * @param {number} party
 * @param {number} count
 * @param {number} wave
 */
function header(campaign, party, count, wave) {
  const out = new Uint8Array(HEADER_BYTES);
  const view = new DataView(out.buffer);
  out.set([70, 83, 83, 85, UPLOAD_VERSION, party]); // FSSU
  out.set(campaign.digest, 8);
  view.setUint32(40, wave, true);
  view.setUint32(44, count, true);
  view.setUint32(48, count, true); // people
  view.setUint32(56, campaign.keyType.keyBytes, true);
  view.setUint32(60, campaign.checked ? proofBytes(campaign.keyType) : 0, true);
  return out;
}

// Makes envelopes of one campaign.
export class Sealer {
  /** @param {Campaign} campaign */
  constructor(campaign) {
    if (new Uint8Array(Uint32Array.of(1).buffer)[0] !== 1) throw new Error("this needs a little-endian machine");
    this.campaign = campaign;
    this.generator = new Generator(campaign.keyType, campaign.id);
    this.prover = campaign.checked ? new Prover(campaign.keyType) : null;
  }

  // `rand` has `randBytes` uniform secret bytes for each position: for all keys, then for all proofs.
  /**
   * @param {ArrayLike<number>} positions
   * @param {Uint8Array} ids
   * @param {Uint8Array} rand
   * @param {number} wave
   */
  envelopes(positions, ids, rand, wave) {
    const { campaign, generator, prover } = this;
    const count = positions.length,
      size = recordBytes(campaign);
    if (rand.length !== count * randBytes(campaign.checked)) throw new Error("too little or too much randomness");
    const words = new Uint32Array(rand.slice().buffer);
    const outs = [0, 1].map((party) => this.blank(party, count, ids, size, wave));
    const views = outs.map((out) => new Uint32Array(out.buffer));
    for (let i = 0; i < count; i++) {
      const at = (HEADER_BYTES + i * size + ID_BYTES + HASH_BYTES) / 4;
      generator.make(positions[i], words, 8 * i, views, at + 2);
      if (prover) {
        const from = 8 * count + 2 * PROOF_RAND_WORDS * i;
        prover.prove(positions[i], generator, words, from, views, at + campaign.keyType.keyBytes / 4);
      }
    }
    words.fill(0);
    for (let i = 0; i < count; i++) crossHashes(outs, HEADER_BYTES + i * size, size);
    return outs;
  }

  // An envelope with ids and the headers of its keys.
  /**
   * @param {number} party
   * @param {number} count
   * @param {Uint8Array} ids
   * @param {number} size
   * @param {number} wave
   */
  blank(party, count, ids, size, wave) {
    const out = new Uint8Array(HEADER_BYTES + count * size);
    out.set(header(this.campaign, party, count, wave));
    const keyHeader = this.campaign.keyType.header(party);
    for (let i = 0; i < count; i++) {
      const at = HEADER_BYTES + i * size;
      out.set(ids.subarray(ID_BYTES * i, ID_BYTES * (i + 1)), at);
      out.set(keyHeader, at + ID_BYTES + HASH_BYTES);
    }
    return out;
  }
}

// Behind the id of one upload, each server is told the hash of the other one's key and proof.
/**
 * @param {Uint8Array[]} outs
 * @param {number} at
 * @param {number} size
 */
function crossHashes(outs, at, size) {
  const [first, second] = outs.map((out) => sha256(out.subarray(at + ID_BYTES + HASH_BYTES, at + size)));
  outs[0].set(second, at + ID_BYTES);
  outs[1].set(first, at + ID_BYTES);
}

// What stands for each upload in its set, joined: its id, its wave, one person, and the hashes of both servers' shares.
/**
 * @param {Campaign} campaign
 * @param {Uint8Array[]} envelopes
 * @param {number} wave
 */
export function leavesOf(campaign, envelopes, wave) {
  const size = recordBytes(campaign),
    about = new DataView(new ArrayBuffer(12)),
    /** @type {Uint8Array[]} */
    leaves = [];
  about.setUint32(0, wave, true);
  about.setUint32(4, 1, true);
  for (let at = HEADER_BYTES; at < envelopes[0].length; at += size) {
    const id = envelopes[0].subarray(at, at + ID_BYTES);
    const [second, first] = envelopes.map((one) => one.subarray(at + ID_BYTES, at + ID_BYTES + HASH_BYTES));
    leaves.push(sha256(concat(LEAF, id, new Uint8Array(about.buffer), first, second)));
  }
  return concat(...leaves);
}
