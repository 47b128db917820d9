// Everything random of an upload, from one secret, as dealer/upload_secrets.py has it: sending it again sends the same bytes,
// which count once, and `fss-dealer` can go on with a receipt of this page.

import { concat, toHex, twoNumbers, utf8 } from "./bytes.js";
import { ID_BYTES, randBytes } from "./envelope.js";
import { shake256 } from "./keccak.js";
import { hmacSha256 } from "./sha256.js";
/** @import { Campaign } from "./campaign.js" */

export const SALT_BYTES = 32;

// 64-bit little-endian numbers, as the other program writes positions.
/** @param {ArrayLike<number>} positions */
function littleEndian(positions) {
  const words = new Uint32Array(2 * positions.length);
  for (let i = 0; i < positions.length; i++) words[2 * i] = positions[i];
  return new Uint8Array(words.buffer);
}

export class Source {
  /**
   * @param {Uint8Array} salt
   * @param {string} token
   */
  constructor(salt, token) {
    this.salt = salt;
    this.key = hmacSha256(salt, utf8(token));
  }

  // Tells whether it is the same token; not which.
  mark() {
    return toHex(this.bytes("mark", 16));
  }

  // Tells whether these are the same values in the same order.
  /** @param {ArrayLike<number>} positions */
  tag(positions) {
    return toHex(this.bytes("data", 32, littleEndian(positions)));
  }

  // The same with every token: what may have arrived with one can be withdrawn with another.
  /**
   * @param {number} number
   * @param {number} generation
   * @param {number} count
   */
  ids(number, generation, count) {
    return shake256(concat(this.salt, utf8("ids "), twoNumbers(number, generation)), count * ID_BYTES);
  }

  // What the keys of one batch are made from; it depends on positions and wave, so no others ever meet it.
  /**
   * @param {number} number
   * @param {number} generation
   * @param {ArrayLike<number>} positions
   * @param {Campaign} campaign
   * @param {number} wave
   */
  rand(number, generation, positions, campaign, wave) {
    const about = concat(
      twoNumbers(number, generation),
      campaign.digest,
      littleEndian([wave]),
      littleEndian(positions),
    );
    return this.bytes("keys", positions.length * randBytes(campaign.checked), about);
  }

  /**
   * @param {string} purpose
   * @param {number} count
   * @param {Uint8Array} [about]
   */
  bytes(purpose, count, about = new Uint8Array(0)) {
    return shake256(concat(this.key, utf8(purpose), about), count);
  }
}
