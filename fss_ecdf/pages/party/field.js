// The prime field Z_p with p = 2^61 - 1. An element is two 32-bit words, low and high, side by side in a Uint32Array.
// Sums of a few elements fit into doubles word by word; `settle` brings them down. No branch depends on an element.

export const P = (1n << 61n) - 1n;
export const HIGH_MASK = 0x1fffffff;
const WORD = 4294967296;

// Write the element low + 2^32 high, canonical; both are whole numbers below 2^52, high below 2^53 - 2^20.
/**
 * @param {number} low
 * @param {number} high
 * @param {Uint32Array} out
 * @param {number} at
 */
export function settle(low, high, out, at) {
  high += Math.floor(low / WORD);
  low = low >>> 0;
  // 2^61 = 1: what is above bit 61 is added below
  low += Math.floor(high / 0x20000000);
  high = (high & HIGH_MASK) + Math.floor(low / WORD);
  low = low >>> 0;
  // x >= p exactly if x + 1 reaches bit 61, and x - p is then x + 1 without it
  const over = (high + Math.floor((low + 1) / WORD)) >>> 29;
  low += over;
  out[at] = low;
  out[at + 1] = (high + Math.floor(low / WORD)) & HIGH_MASK;
}

/** @param {number} low */
export const negLow = (low) => ~low >>> 0; // -x is the complement of x in 61 bits
/** @param {number} high */
export const negHigh = (high) => ~high & HIGH_MASK;

// out = a - b, for elements of at most p
/**
 * @param {Uint32Array} a
 * @param {number} ai
 * @param {Uint32Array} b
 * @param {number} bi
 * @param {Uint32Array} out
 * @param {number} at
 */
export function subtract(a, ai, b, bi, out, at) {
  settle(a[ai] + negLow(b[bi]), a[ai + 1] + negHigh(b[bi + 1]), out, at);
}

const LIMB = 2097152; // 2^21: three of them hold 63 bits, and products of limbs add up exactly in a double
const LIMB_MASK = LIMB - 1;

// out = a b, for elements of at most p
/**
 * @param {Uint32Array} a
 * @param {number} ai
 * @param {Uint32Array} b
 * @param {number} bi
 * @param {Uint32Array} out
 * @param {number} at
 */
export function multiply(a, ai, b, bi, out, at) {
  const a0 = a[ai] & LIMB_MASK,
    a1 = (a[ai] >>> 21) | ((a[ai + 1] & 0x3ff) << 11),
    a2 = a[ai + 1] >>> 10;
  const b0 = b[bi] & LIMB_MASK,
    b1 = (b[bi] >>> 21) | ((b[bi + 1] & 0x3ff) << 11),
    b2 = b[bi + 1] >>> 10;
  // 2^63 = 4, so limbs 3 and 4 of the product count four times at 0 and 1
  const c0 = a0 * b0 + 4 * (a1 * b2 + a2 * b1);
  const c1 = a0 * b1 + a1 * b0 + 4 * a2 * b2;
  const c2 = a0 * b2 + a1 * b1 + a2 * b0;
  const carry0 = Math.floor(c0 / LIMB);
  const d1 = c1 + carry0;
  const carry1 = Math.floor(d1 / LIMB);
  const d2 = c2 + carry1;
  const r0 = c0 - carry0 * LIMB,
    r1 = d1 - carry1 * LIMB;
  // r0 + 2^21 r1 + 2^42 d2; from bit 19 on, d2 is above bit 61
  const above = Math.floor(d2 / 524288);
  const low = r0 + (r1 & 0x7ff) * LIMB + above;
  settle(low, (r1 >>> 11) + (d2 - above * 524288) * 1024, out, at);
}

/**
 * @param {bigint} value
 * @param {Uint32Array} out
 * @param {number} at
 */
export function putElement(value, out, at) {
  out[at] = Number(value & 0xffffffffn);
  out[at + 1] = Number(value >> 32n);
}
