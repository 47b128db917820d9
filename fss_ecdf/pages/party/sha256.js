// SHA-256 (FIPS 180-4) and HMAC over it. WebCrypto has both, but only asynchronously.

import { concat } from "./bytes.js";

// The first 32 bits of the fractional parts of square and cube roots of the first primes.
/**
 * @param {number} count
 * @param {bigint} root
 */
function fractions(count, root) {
  const found = [];
  for (let n = 2; found.length < count; n++) {
    let prime = true;
    for (let d = 2; d * d <= n; d++) if (n % d === 0) prime = false;
    if (prime) found.push(fraction(BigInt(n), root));
  }
  return found;
}

// floor(2^32 n^(1/root)) mod 2^32, by bisection in whole numbers: roots in floating point differ between machines.
/**
 * @param {bigint} n
 * @param {bigint} root
 */
function fraction(n, root) {
  const target = n << (32n * root);
  let low = 0n;
  let high = 1n << 40n;
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** root <= target) low = middle;
    else high = middle;
  }
  return Number(low & 0xffffffffn) | 0;
}

const START = fractions(8, 2n);
const ROUNDS = Int32Array.from(fractions(64, 3n));

/**
 * @param {number} x
 * @param {number} by
 */
const turn = (x, by) => (x >>> by) | (x << (32 - by));

/**
 * @param {Int32Array} state
 * @param {Int32Array} schedule
 */
function compress(state, schedule) {
  const w = schedule;
  for (let i = 16; i < 64; i++) {
    const s0 = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ (w[i - 15] >>> 3);
    const s1 = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ (w[i - 2] >>> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i++) {
    const t1 = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + ROUNDS[i] + w[i]) | 0;
    const t2 = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  [a, b, c, d, e, f, g, h].forEach((x, i) => (state[i] += x));
}

/** @param {Uint8Array} message */
export function sha256(message) {
  const padded = new Uint8Array((((message.length + 8) >> 6) + 1) << 6);
  padded.set(message);
  padded[message.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(message.length / 2 ** 29));
  view.setUint32(padded.length - 4, message.length << 3);
  const state = Int32Array.from(START);
  const schedule = new Int32Array(64);
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 16; i++) schedule[i] = view.getInt32(at + 4 * i);
    compress(state, schedule);
  }
  const out = new DataView(new ArrayBuffer(32));
  state.forEach((x, i) => out.setInt32(4 * i, x));
  return new Uint8Array(out.buffer);
}

/**
 * @param {Uint8Array} key
 * @param {Uint8Array} message
 */
export function hmacSha256(key, message) {
  const block = new Uint8Array(64);
  block.set(key.length > 64 ? sha256(key) : key);
  const inner = sha256(
    concat(
      block.map((b) => b ^ 0x36),
      message,
    ),
  );
  return sha256(
    concat(
      block.map((b) => b ^ 0x5c),
      inner,
    ),
  );
}
