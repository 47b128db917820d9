// What a party adds to a key so that two servers can check it without learning anything: fss/proof.py, key by key.

import { HIGH_MASK, P, multiply, negHigh, negLow, putElement, settle, subtract } from "./field.js";
/** @import { Generator, KeyType } from "./dcf.js" */

export const PROOF_RAND_WORDS = 19;
export const MAX_CHECKED_BITS = 20;
const HASHES = 4;

/** @param {KeyType} type */
export const proofBytes = (type) => 8 * (HASHES + 2 + type.leaves);

/** @param {bigint} x */
const modulo = (x) => ((x % P) + P) % P;

/** @param {bigint} x */
function inverse(x) {
  let result = 1n;
  let base = modulo(x);
  for (let e = P - 2n; e; e >>= 1n) {
    if (e & 1n) result = (result * base) % P;
    base = (base * base) % P;
  }
  return result;
}

/** @param {bigint[]} factors */
const product = (factors) => factors.reduce((a, b) => modulo(a * b), 1n);
/**
 * @param {number} first
 * @param {number} last
 */
const upTo = (first, last) => Array.from({ length: last - first + 1 }, (_, i) => BigInt(first + i));

// At j, the derivative of the polynomial that is 1 at i and 0 at the others of 0..m.
/**
 * @param {number} m
 * @param {bigint} i
 * @param {bigint} j
 */
function slope(m, i, j) {
  const others = upTo(0, m).filter((k) => k !== i);
  if (i === j) return others.reduce((sum, k) => modulo(sum + inverse(i - k)), 0n);
  return product(others.map((k) => (k === j ? 1n : j - k) * inverse(i - k)));
}

// At 0..m, the values of (l^2 - l) / Z for each l that is 1 at one of 1..m and 0 at the others (fss/polynomial.py).
/** @param {number} m */
export function quotients(m) {
  return upTo(1, m).map((i) => [
    0n,
    ...upTo(1, m).map((j) => {
      const zSlope = product(
        upTo(1, m)
          .filter((k) => k !== j)
          .map((k) => j - k),
      );
      return modulo((i === j ? 1n : -1n) * slope(m, i, j) * inverse(zSlope));
    }),
  ]);
}

/** @param {bigint[]} values */
const elements = (values) => {
  const out = new Uint32Array(2 * values.length);
  values.forEach((value, i) => putElement(value, out, 2 * i));
  return out;
};

export class Prover {
  /** @param {KeyType} type */
  constructor(type) {
    if (type.bits > MAX_CHECKED_BITS) throw new Error(`keys over ${type.bits} bits cannot be checked`);
    this.type = type;
    this.tables = quotients(type.leaves).map(elements);
    this.overZ0 = elements([inverse(product(upTo(1, type.leaves).map((j) => -j)))]);
    this.hashes = [0, 1].map(() => new Uint32Array(8));
    this.drawn = new Uint32Array(2 * PROOF_RAND_WORDS);
    this.a = new Uint32Array(2);
    this.b = new Uint32Array(2);
    this.scaled = new Uint32Array(2);
    this.minus = new Uint32Array(2);
    this.q = new Uint32Array(2 * (type.leaves + 1));
  }

  // Write both servers' proofs at `at`, right after the generator has made alpha's keys. `rand` is 38 further uniform
  // secret words from `from` on, independent of the keys'.
  /**
   * @param {number} alpha
   * @param {Generator} generator
   * @param {Uint32Array} rand
   * @param {number} from
   * @param {Uint32Array[]} outs
   * @param {number} at
   */
  prove(alpha, generator, rand, from, outs, at) {
    this.corrections(alpha, generator, outs, at);
    const { drawn, q } = this;
    for (let i = 0; i < 2 * PROOF_RAND_WORDS; i += 2) settle(rand[from + i], rand[from + i + 1] & HIGH_MASK, drawn, i);
    this.quotient(alpha & (this.type.leaves - 1));
    for (let row = 0; row < this.type.leaves + 2; row++) {
      const to = at + 2 * (HASHES + row),
        share = 2 * (1 + row);
      outs[1][to] = drawn[share];
      outs[1][to + 1] = drawn[share + 1];
      if (row) subtract(q, 2 * (row - 1), drawn, share, outs[0], to);
      else subtract(drawn, 0, drawn, share, outs[0], to);
    }
  }

  // z (h_i(s_0) - h_i(s_1)) with the sign of t_0 - t_1, and the step into the node added to the first difference
  /**
   * @param {number} alpha
   * @param {Generator} generator
   * @param {Uint32Array[]} outs
   * @param {number} at
   */
  corrections(alpha, generator, outs, at) {
    const { a, b, type } = this,
      sign = generator.sign();
    const first = (((alpha & (type.leaves - 1)) - 1) >>> 31) & 1;
    b[0] = (alpha >>> type.leafBits) + 1;
    b[1] = 0;
    generator.prg.checks.forEach((keys, i) => generator.prg.hash(keys, this.hashes[i]));
    for (let i = 0; i < HASHES; i++) {
      const h = this.hashes[i >> 1],
        j = 2 * (i & 1);
      const h0h = h[j + 1] & HIGH_MASK,
        h1h = h[4 + j + 1] & HIGH_MASK;
      settle(h[j] + negLow(h[4 + j]) + (i ? 0 : first), h0h + negHigh(h1h), a, 0);
      multiply(a, 0, b, 0, a, 0);
      settle((a[0] ^ sign) >>> 0, (a[1] ^ sign) & HIGH_MASK, a, 0);
      for (const out of outs) {
        out[at + 2 * i] = a[0];
        out[at + 2 * i + 1] = a[1];
      }
    }
  }

  // q at 0..m. With f = w l_0 + l, l being 1 at alpha's leaf: (w^2 l_0 - w + 2 w l) / Z(0) + (l^2 - l) / Z
  /** @param {number} leaf */
  quotient(leaf) {
    const { drawn: w, scaled, minus, a, q, tables } = this,
      m = this.type.leaves;
    multiply(w, 0, this.overZ0, 0, scaled, 0);
    settle(negLow(scaled[0]), negHigh(scaled[1]), minus, 0);
    multiply(w, 0, scaled, 0, a, 0);
    subtract(a, 0, scaled, 0, q, 0);
    for (let j = 1; j <= m; j++) {
      let low = 0,
        high = 0;
      for (let i = 0; i < m; i++) {
        const here = ((leaf ^ i) - 1) >> 31; // all ones where i is alpha's leaf
        low |= here & tables[i][2 * j];
        high |= here & tables[i][2 * j + 1];
      }
      const own = ((leaf ^ (j - 1)) - 1) >> 31;
      const x = (minus[0] ^ (own & (scaled[0] ^ minus[0]))) >>> 0,
        xh = minus[1] ^ (own & (scaled[1] ^ minus[1]));
      settle(x + (low >>> 0), xh + high, q, 2 * j);
    }
  }
}
