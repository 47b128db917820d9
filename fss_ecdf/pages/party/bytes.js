// Bytes and their texts.

const encoder = new TextEncoder();

/** @param {string} text */
export const utf8 = (text) => encoder.encode(text);

/** @param {...Uint8Array} parts */
export function concat(...parts) {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** @param {Uint8Array} bytes */
export const toHex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");

/** @param {unknown} text */
export function fromHex(text) {
  if (typeof text !== "string" || !/^([0-9a-f]{2})*$/.test(text)) throw new Error("not hexadecimal");
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** @param {Uint8Array} bytes */
export function toBase64url(bytes) {
  const text = Array.from(bytes, (b) => String.fromCharCode(b)).join("");
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

// Strictly: unpadded, of the exact length, and the one way to write these bytes.
/**
 * @param {unknown} text
 * @param {number} length
 */
export function fromBase64url(text, length) {
  if (typeof text === "string" && /^[A-Za-z0-9_-]*$/.test(text) && text.length % 4 !== 1) {
    const raw = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(raw, (c) => c.charCodeAt(0));
    if (bytes.length === length && toBase64url(bytes) === text) return bytes;
  }
  throw new Error(`expected ${length} bytes in unpadded base64url`);
}

// Two 64-bit numbers, little-endian; both are far below 2^53.
/**
 * @param {number} first
 * @param {number} second
 */
export function twoNumbers(first, second) {
  const out = new DataView(new ArrayBuffer(16));
  [first, second].forEach((x, i) => {
    out.setUint32(8 * i, x >>> 0, true);
    out.setUint32(8 * i + 4, Math.floor(x / 2 ** 32), true);
  });
  return new Uint8Array(out.buffer);
}
