// Keys of the comparison function f(t) = 1[alpha <= t]: what fss/dcf.py and fss/path.py do, one key at a time.
// Secrets (alpha's bits, control bits) act as masks, never as branches or indices.

import { HIGH_MASK, negHigh, negLow, settle } from "./field.js";
import { TreePrg, binderTag } from "./prg.js";

export const KEY_VERSION = 3;
export const SCHEME_DCF = 1;
export const RAND_BYTES = 32;
const KEY_HEADER_BYTES = 8;
const TOP = 0x80000000;

// What all keys of a campaign have in common, and where their words lie (fss/keys.py).
export class KeyType {
  /**
   * @param {number} bits
   * @param {Uint8Array} binder
   */
  constructor(bits, binder) {
    if (!Number.isInteger(bits) || bits < 1 || bits > 32) throw new Error(`keys have 1 to 32 bits, not ${bits}`);
    this.bits = bits;
    this.leafBits = Math.min(4, bits);
    this.depth = bits - this.leafBits;
    this.leaves = 1 << this.leafBits;
    this.keyBytes = KEY_HEADER_BYTES + 8 * (3 + 3 * this.depth + this.leaves);
    this.tag = binderTag(binder);
  }

  /** @param {number} party */
  header(party) {
    return Uint8Array.of(KEY_VERSION, SCHEME_DCF, this.bits, party, ...this.tag);
  }
}

/**
 * @param {number} mask
 * @param {number} set
 * @param {number} clear
 */
const choose = (mask, set, clear) => clear ^ (mask & (set ^ clear));

export class Generator {
  /**
   * @param {KeyType} type
   * @param {Uint8Array} binder
   */
  constructor(type, binder) {
    this.type = type;
    this.prg = new TreePrg(binder);
    // Both parties' states, four words each: lo with the control bit on top, then hi.
    this.seeds = new Uint32Array(8);
    this.values = new Uint32Array(8);
    this.left = new Uint32Array(8);
    this.right = new Uint32Array(8);
    this.leafHashes = Array.from({ length: 8 }, () => new Uint32Array(8));
    this.alphaValue = new Uint32Array(2); // V_alpha
    this.element = new Uint32Array(2);
  }

  // Write both keys of alpha: `outs` are two Uint32Arrays, `at` is where the words behind the headers begin.
  // `rand` is 8 uniform secret words from `from` on, used once.
  /**
   * @param {number} alpha
   * @param {Uint32Array} rand
   * @param {number} from
   * @param {Uint32Array[]} outs
   * @param {number} at
   */
  make(alpha, rand, from, outs, at) {
    const { seeds, prg, type } = this;
    for (let i = 0; i < 8; i++) seeds[i] = rand[from + i];
    seeds[1] &= ~TOP; // the control bit of the root is the party
    seeds[5] |= TOP;
    for (let i = 0; i < 4; i++) {
      outs[0][at + i] = seeds[i];
      outs[1][at + i] = seeds[4 + i];
    }
    for (const out of outs) out[at + 4] = out[at + 5] = 0;
    this.alphaValue.fill(0);
    prg.load(seeds);
    for (let level = 0; level < type.depth; level++) {
      const right = -((alpha >>> (type.bits - 1 - level)) & 1);
      const word = at + 6 + 6 * level;
      this.correctValue(right, outs, word + 4);
      this.descend(right, level, outs, word, at + 4);
    }
    this.finish(alpha, outs, at + 6 + 6 * type.depth);
  }

  // -1 in 61 bits where party 1's control bit is set: what turns an element x into (-1)^t1 x by xor.
  sign() {
    return this.seeds[5] >> 31;
  }

  // BCG+21 Fig. 3, lines 10 to 12: the level's value correction, and V_alpha
  /**
   * @param {number} right
   * @param {Uint32Array[]} outs
   * @param {number} to
   */
  correctValue(right, outs, to) {
    const v = this.values;
    this.prg.hash(this.prg.value, v);
    const beta = ~right & 1;
    const lose0 = choose(right, v[0], v[2]) >>> 0,
      lose0h = choose(right, v[1], v[3]) & HIGH_MASK;
    const lose1 = choose(right, v[4], v[6]) >>> 0,
      lose1h = choose(right, v[5], v[7]) & HIGH_MASK;
    const keep0 = choose(right, v[2], v[0]) >>> 0,
      keep0h = choose(right, v[3], v[1]) & HIGH_MASK;
    const keep1 = choose(right, v[6], v[4]) >>> 0,
      keep1h = choose(right, v[7], v[5]) & HIGH_MASK;
    const va = this.alphaValue;
    this.correction(lose0, lose0h, lose1, lose1h, beta, outs, to);
    const sign = this.sign();
    const cw = (outs[0][to] ^ sign) >>> 0,
      cwh = (outs[0][to + 1] ^ sign) & HIGH_MASK;
    settle(va[0] + negLow(keep1) + keep0 + cw, va[1] + negHigh(keep1h) + keep0h + cwh, va, 0);
  }

  // (-1)^t1 (x1 - x0 - V_alpha + gained), written to both keys
  /**
   * @param {number} x0
   * @param {number} x0h
   * @param {number} x1
   * @param {number} x1h
   * @param {number} gained
   * @param {Uint32Array[]} outs
   * @param {number} to
   */
  correction(x0, x0h, x1, x1h, gained, outs, to) {
    const va = this.alphaValue,
      e = this.element,
      sign = this.sign();
    settle(x1 + negLow(x0) + negLow(va[0]) + gained, x1h + negHigh(x0h) + negHigh(va[1]), e, 0);
    settle((e[0] ^ sign) >>> 0, (e[1] ^ sign) & HIGH_MASK, e, 0);
    for (const out of outs) {
      out[to] = e[0];
      out[to + 1] = e[1];
    }
  }

  // Fig. 3, lines 4 to 9, 13 and 14: the seeds' correction, and down to the child on the path
  /**
   * @param {number} right
   * @param {number} level
   * @param {Uint32Array[]} outs
   * @param {number} to
   * @param {number} control
   */
  descend(right, level, outs, to, control) {
    const { seeds, left: l, right: r, prg } = this;
    prg.hash(prg.left, l);
    prg.hash(prg.right, r);
    const turnLeft = ~(l[1] ^ l[5] ^ right) & TOP;
    const turnRight = (r[1] ^ r[5] ^ right) & TOP;
    const apart = turnLeft ^ turnRight;
    const c0 = choose(right, l[0] ^ l[4], r[0] ^ r[4]);
    const c1 = (choose(right, l[1] ^ l[5], r[1] ^ r[5]) & ~TOP) | turnLeft;
    const c2 = choose(right, l[2] ^ l[6], r[2] ^ r[6]);
    const c3 = choose(right, l[3] ^ l[7], r[3] ^ r[7]);
    const flag = (apart >>> 31) << level; // there are at most 28 levels
    for (const out of outs) {
      out[to] = c0;
      out[to + 1] = c1;
      out[to + 2] = c2;
      out[to + 3] = c3;
      out[control] |= flag;
    }
    const own = c1 ^ (apart & right);
    for (let b = 0; b < 8; b += 4) {
      const t = seeds[b + 1] >> 31;
      seeds[b] = choose(right, r[b], l[b]) ^ (t & c0);
      seeds[b + 1] = choose(right, r[b + 1], l[b + 1]) ^ (t & own);
      seeds[b + 2] = choose(right, r[b + 2], l[b + 2]) ^ (t & c2);
      seeds[b + 3] = choose(right, r[b + 3], l[b + 3]) ^ (t & c3);
    }
    prg.load(seeds);
  }

  // Fig. 3, line 17, once for each leaf of the terminal node: 1 from alpha's own leaf on
  /**
   * @param {number} alpha
   * @param {Uint32Array[]} outs
   * @param {number} to
   */
  finish(alpha, outs, to) {
    const { leaves } = this.type,
      end = alpha & (leaves - 1);
    for (let pair = 0; pair < leaves / 2; pair++) {
      const h = this.leafHashes[pair];
      this.prg.hash(this.prg.leaves[pair], h);
      for (let side = 0; side < 2; side++) {
        const leaf = 2 * pair + side,
          i = 2 * side;
        const gained = ((end - leaf - 1) >>> 31) & 1;
        const x0h = h[i + 1] & HIGH_MASK,
          x1h = h[4 + i + 1] & HIGH_MASK;
        this.correction(h[i], x0h, h[4 + i], x1h, gained, outs, to + 2 * leaf);
      }
    }
  }
}
