// AES-128 on two blocks at once, bit-sliced: word i of eight holds bit i of all 32 bytes. There is no table, no index
// and no branch that depends on a secret. The S-box is the circuit of Boyar and Peralta ("A depth-16 circuit for the
// AES S-box", 2011), whose names for the wires are kept.

const ROUND_WORDS = 8;
export const KEY_WORDS = 11 * ROUND_WORDS;

/**
 * @param {Int32Array} q
 * @param {number} i
 * @param {number} j
 * @param {number} low
 * @param {number} by
 */
function swap(q, i, j, low, by) {
  const a = q[i];
  const b = q[j];
  q[i] = (a & low) | ((b & low) << by);
  q[j] = ((a & ~low) >>> by) | (b & ~low);
}

// Between bytes in words and slices of bits; it is its own inverse.
/** @param {Int32Array} q */
function transpose(q) {
  for (let i = 0; i < 8; i += 2) swap(q, i, i + 1, 0x55555555, 1);
  for (const i of [0, 1, 4, 5]) swap(q, i, i + 2, 0x33333333, 2);
  for (let i = 0; i < 4; i++) swap(q, i, i + 4, 0x0f0f0f0f, 4);
}

// Eight words, four of each block, as slices.
/**
 * @param {Int32Array} words
 * @param {Int32Array} q
 */
export function slice(words, q) {
  for (let i = 0; i < 4; i++) {
    q[2 * i] = words[i];
    q[2 * i + 1] = words[4 + i];
  }
  transpose(q);
}

/** @param {Int32Array} q */
// prettier-ignore
export function substitute(q) {
  const x0 = q[7], x1 = q[6], x2 = q[5], x3 = q[4], x4 = q[3], x5 = q[2], x6 = q[1], x7 = q[0];
  const y14 = x3 ^ x5, y13 = x0 ^ x6, y9 = x0 ^ x3, y8 = x0 ^ x5, t0 = x1 ^ x2;
  const y1 = t0 ^ x7, y4 = y1 ^ x3, y12 = y13 ^ y14, y2 = y1 ^ x0, y5 = y1 ^ x6, y3 = y5 ^ y8, t1 = x4 ^ y12;
  const y15 = t1 ^ x5, y20 = t1 ^ x1, y6 = y15 ^ x7, y10 = y15 ^ t0, y11 = y20 ^ y9, y7 = x7 ^ y11;
  const y17 = y10 ^ y11, y19 = y10 ^ y8, y16 = t0 ^ y11, y21 = y13 ^ y16, y18 = x0 ^ y16;
  const t2 = y12 & y15, t4 = (y3 & y6) ^ t2, t6 = (y4 & x7) ^ t2, t7 = y13 & y16, t9 = (y5 & y1) ^ t7;
  const t11 = (y2 & y7) ^ t7, t12 = y9 & y11, t14 = (y14 & y17) ^ t12, t16 = (y8 & y10) ^ t12;
  const t21 = t4 ^ t14 ^ y20, t22 = t6 ^ t16 ^ y19, t23 = t9 ^ t14 ^ y21, t24 = t11 ^ t16 ^ y18;
  const t25 = t21 ^ t22, t26 = t21 & t23, t27 = t24 ^ t26, t29 = (t25 & t27) ^ t22, t30 = t23 ^ t24;
  const t33 = ((t22 ^ t26) & t30) ^ t24, t36 = t24 & (t27 ^ t33), t37 = t36 ^ t23 ^ t33;
  const t40 = t25 ^ (t29 & (t27 ^ t36)), t41 = t40 ^ t37, t42 = t29 ^ t33, t43 = t29 ^ t40, t44 = t33 ^ t37;
  const t45 = t42 ^ t41;
  const z0 = t44 & y15, z1 = t37 & y6, z2 = t33 & x7, z3 = t43 & y16, z4 = t40 & y1, z5 = t29 & y7, z6 = t42 & y11;
  const z7 = t45 & y17, z8 = t41 & y10, z9 = t44 & y12, z10 = t37 & y3, z11 = t33 & y4, z12 = t43 & y13;
  const z13 = t40 & y5, z14 = t29 & y2, z15 = t42 & y9, z16 = t45 & y14, z17 = t41 & y8;
  const t46 = z15 ^ z16, t48 = z5 ^ z13, t53 = z0 ^ z3, t57 = z2 ^ z12 ^ t53, t58 = z4 ^ t46, t59 = z3 ^ z6 ^ z7;
  const t60 = t46 ^ t57, t62 = z7 ^ z8 ^ t58, t63 = z9 ^ z10 ^ t58, t64 = z4 ^ t59, t65 = z14 ^ t57 ^ t62;
  const t66 = z1 ^ t63, s3 = t53 ^ t66;
  q[7] = t59 ^ t63;
  q[6] = t64 ^ ~s3;
  q[5] = z16 ^ z17 ^ ~(t64 ^ t65);
  q[4] = s3;
  q[3] = z2 ^ z5 ^ t66;
  q[2] = z10 ^ z11 ^ t65;
  q[1] = z12 ^ t48 ^ ~t62;
  q[0] = t48 ^ ~t60;
}

/**
 * @param {Int32Array} q
 * @param {Int32Array} keys
 * @param {number} round
 */
function addKey(q, keys, round) {
  const at = round * ROUND_WORDS;
  for (let i = 0; i < 8; i++) q[i] ^= keys[at + i];
}

// Row r of a state is byte r of each word, two bits for each column: a rotation by r columns.
/** @param {Int32Array} q */
function shiftRows(q) {
  for (let i = 0; i < 8; i++) {
    const x = q[i];
    q[i] =
      (x & 0x000000ff) |
      ((x & 0x0000fc00) >>> 2) |
      ((x & 0x00000300) << 6) |
      ((x & 0x00f00000) >>> 4) |
      ((x & 0x000f0000) << 4) |
      ((x & 0xc0000000) >>> 6) |
      ((x & 0x3f000000) << 2);
  }
}

/** @param {number} x */
const next = (x) => (x >>> 8) | (x << 24); // the row below
/** @param {number} x */
const half = (x) => (x >>> 16) | (x << 16);

// 2 (a_r + a_(r+1)) + a_(r+1) + a_(r+2) + a_(r+3): doubling moves bits up, and bit 7 comes back at 0, 1, 3, 4.
/** @param {Int32Array} q */
function mixColumns(q) {
  const q7 = q[7];
  const top = q7 ^ next(q7);
  let below = 0; // slice i - 1 of what is doubled
  for (let i = 0; i < 8; i++) {
    const x = q[i];
    const r = next(x);
    const carry = i === 0 || i === 1 || i === 3 || i === 4 ? top : 0;
    q[i] = below ^ carry ^ r ^ half(x ^ r);
    below = x ^ r;
  }
}

const state = new Int32Array(8);

// AES of the sliced blocks in `q`, which stay as they are; the words of both blocks are written to `out`.
/**
 * @param {Int32Array} keys
 * @param {Int32Array} q
 * @param {Int32Array | Uint32Array} out
 */
export function encrypt(keys, q, out) {
  const s = state;
  for (let i = 0; i < 8; i++) s[i] = q[i];
  addKey(s, keys, 0);
  for (let round = 1; round < 10; round++) {
    substitute(s);
    shiftRows(s);
    mixColumns(s);
    addKey(s, keys, round);
  }
  substitute(s);
  shiftRows(s);
  addKey(s, keys, 10);
  transpose(s);
  for (let i = 0; i < 4; i++) {
    out[i] = s[2 * i];
    out[4 + i] = s[2 * i + 1];
  }
}

/** @param {number} word */
function substituteWord(word) {
  const q = new Int32Array(8);
  q[0] = word;
  transpose(q);
  substitute(q);
  transpose(q);
  return q[0];
}

// FIPS 197, key expansion; each round key is sliced for both blocks. The keys of a campaign are public.
/** @param {Uint8Array} key */
export function expandKey(key) {
  const view = new DataView(key.buffer, key.byteOffset, 16);
  const w = new Int32Array(44);
  for (let i = 0; i < 4; i++) w[i] = view.getInt32(4 * i, true);
  let constant = 1;
  for (let i = 4; i < 44; i++) {
    let word = w[i - 1];
    if (i % 4 === 0) {
      word = substituteWord(next(word)) ^ constant;
      constant = (constant << 1) ^ (constant & 0x80 ? 0x11b : 0);
    }
    w[i] = w[i - 4] ^ word;
  }
  const keys = new Int32Array(KEY_WORDS);
  const words = new Int32Array(8);
  for (let round = 0; round < 11; round++) {
    words.set(w.subarray(4 * round, 4 * round + 4));
    words.set(w.subarray(4 * round, 4 * round + 4), 4);
    slice(words, keys.subarray(ROUND_WORDS * round, ROUND_WORDS * (round + 1)));
  }
  return keys;
}
