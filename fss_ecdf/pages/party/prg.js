// The hashes of a tree's nodes: AES under ten public keys of the campaign (fss/prg.py).
//
//     H(b) = AES(sigma(b)) xor sigma(b),  sigma(lo || hi) = hi || (hi xor lo)

import { encrypt, expandKey, slice } from "./aes.js";
import { concat, utf8 } from "./bytes.js";
import { turboShake128 } from "./keccak.js";

/**
 * @param {string} use
 * @param {Uint8Array} binder
 */
export function deriveKey(use, binder) {
  const dst = utf8(use);
  return turboShake128(concat(Uint8Array.of(dst.length & 255, dst.length >> 8), dst, binder), 2, 16);
}

// Four public bytes that stand in every key of a campaign.
/** @param {Uint8Array} binder */
export const binderTag = (binder) => deriveKey("tag", binder).subarray(0, 4);

export class TreePrg {
  /** @param {Uint8Array} binder */
  constructor(binder) {
    /** @param {string[]} uses */
    const keys = (uses) => uses.map((use) => expandKey(deriveKey(use, binder)));
    this.leaves = keys(["left", "right", "value", "leaf 3", "leaf 4", "leaf 5", "leaf 6", "leaf 7"]);
    this.left = this.leaves[0];
    this.right = this.leaves[1];
    this.value = this.leaves[2];
    this.checks = keys(["check 0", "check 1"]);
    this.sigma = new Int32Array(8);
    this.sliced = new Int32Array(8);
  }

  // Both parties' seeds, four words each.
  /** @param {Uint32Array} seeds */
  load(seeds) {
    const s = this.sigma;
    for (let b = 0; b < 8; b += 4) {
      s[b] = seeds[b + 2];
      s[b + 1] = seeds[b + 3];
      s[b + 2] = seeds[b + 2] ^ seeds[b];
      s[b + 3] = seeds[b + 3] ^ seeds[b + 1];
    }
    slice(s, this.sliced);
  }

  // H of the loaded seeds under one key.
  /**
   * @param {Int32Array} keys
   * @param {Uint32Array} out
   */
  hash(keys, out) {
    encrypt(keys, this.sliced, out);
    for (let i = 0; i < 8; i++) out[i] ^= this.sigma[i];
  }
}
