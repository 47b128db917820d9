// Everything random of an upload, from one secret, as dealer/upload_secrets.py has it: sending it again sends the same bytes,
// which count once, and `fss-dealer` can go on with a receipt of this page.

import { concat, toHex, twoNumbers, utf8 } from "./bytes.js";
import { ID_BYTES, randBytes } from "./envelope.js";
import { shake256 } from "./keccak.js";
import { hmacSha256 } from "./sha256.js";

export const SALT_BYTES = 32;

// 64-bit little-endian numbers, as the other program writes positions.
function littleEndian(positions) {
  const words = new Uint32Array(2 * positions.length);
  positions.forEach((x, i) => (words[2 * i] = x));
  return new Uint8Array(words.buffer);
}

export class Source {
  constructor(salt, token) {
    this.salt = salt;
    this.key = hmacSha256(salt, utf8(token));
  }

  // Tells whether it is the same token; not which.
  mark() {
    return toHex(this.bytes("mark", 16));
  }

  // Tells whether these are the same values in the same order.
  tag(positions) {
    return toHex(this.bytes("data", 32, littleEndian(positions)));
  }

  // The same with every token: what may have arrived with one can be withdrawn with another.
  ids(number, generation, count) {
    return shake256(concat(this.salt, utf8("ids "), twoNumbers(number, generation)), count * ID_BYTES);
  }

  // What the keys of one batch are made from; it depends on positions and wave, so no others ever meet it.
  rand(number, generation, positions, campaign, wave) {
    const about = concat(
      twoNumbers(number, generation),
      campaign.digest,
      littleEndian([wave]),
      littleEndian(positions),
    );
    return this.bytes("keys", positions.length * randBytes(campaign.checked), about);
  }

  bytes(purpose, count, about = new Uint8Array(0)) {
    return shake256(concat(this.key, utf8(purpose), about), count);
  }
}
