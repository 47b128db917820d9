// Keccak-p[1600] and two functions made of it: TurboSHAKE128 (RFC 9861, 12 rounds) and SHAKE256 (FIPS 202, 24 rounds).
// A lane of 64 bits is two 32-bit words, low and high.

const LANES = 25;

// rho's rotations, pi's targets and iota's constants, by their definitions.
const ROTATIONS = new Int32Array(LANES);
const TARGETS = new Int32Array(LANES);
{
  let [x, y] = [1, 0];
  for (let t = 0; t < 24; t++) {
    ROTATIONS[x + 5 * y] = (((t + 1) * (t + 2)) / 2) % 64;
    [x, y] = [y, (2 * x + 3 * y) % 5];
  }
  for (let i = 0; i < LANES; i++) TARGETS[i] = Math.floor(i / 5) + 5 * ((2 * (i % 5) + 3 * Math.floor(i / 5)) % 5);
}

const CONSTANTS = new Int32Array(48);
{
  let register = 1;
  for (let round = 0; round < 24; round++) {
    for (let j = 0; j <= 6; j++) {
      const bit = 2 ** j - 1;
      if (register & 1) CONSTANTS[2 * round + (bit >> 5)] ^= 1 << (bit & 31);
      register = (register << 1) ^ (register & 0x80 ? 0x171 : 0);
    }
  }
}

const columns = new Int32Array(10);
const moved = new Int32Array(2 * LANES);

/**
 * @param {Int32Array} state
 * @param {number} rounds
 */
function permute(state, rounds) {
  for (let round = 24 - rounds; round < 24; round++) {
    for (let i = 0; i < 10; i++) {
      columns[i] = state[i] ^ state[i + 10] ^ state[i + 20] ^ state[i + 30] ^ state[i + 40];
    }
    for (let x = 0; x < 5; x++) {
      const before = 2 * ((x + 4) % 5);
      const after = 2 * ((x + 1) % 5);
      const low = columns[before] ^ ((columns[after] << 1) | (columns[after + 1] >>> 31));
      const high = columns[before + 1] ^ ((columns[after + 1] << 1) | (columns[after] >>> 31));
      for (let i = 2 * x; i < 50; i += 10) {
        state[i] ^= low;
        state[i + 1] ^= high;
      }
    }
    for (let i = 0; i < LANES; i++) rotateInto(state, i);
    for (let y = 0; y < 50; y += 10) {
      for (let x = 0; x < 10; x++) {
        state[y + x] = moved[y + x] ^ (~moved[y + ((x + 2) % 10)] & moved[y + ((x + 4) % 10)]);
      }
    }
    state[0] ^= CONSTANTS[2 * round];
    state[1] ^= CONSTANTS[2 * round + 1];
  }
}

/**
 * @param {Int32Array} state
 * @param {number} i
 */
function rotateInto(state, i) {
  const by = ROTATIONS[i] & 31;
  const swapped = ROTATIONS[i] >> 5;
  const low = state[2 * i + swapped];
  const high = state[2 * i + 1 - swapped];
  const to = 2 * TARGETS[i];
  // A shift by 32 is one by 0 in JavaScript, hence in two steps.
  moved[to] = (low << by) | ((high >>> 1) >>> (31 - by));
  moved[to + 1] = (high << by) | ((low >>> 1) >>> (31 - by));
}

/**
 * @param {Uint8Array} message
 * @param {number} length
 * @param {number} rate
 * @param {number} suffix
 * @param {number} rounds
 */
function sponge(message, length, rate, suffix, rounds) {
  const state = new Int32Array(2 * LANES);
  const block = new Uint8Array(state.buffer);
  let at = 0;
  for (; message.length - at >= rate; at += rate) {
    for (let i = 0; i < rate; i++) block[i] ^= message[at + i];
    permute(state, rounds);
  }
  for (let i = 0; at + i < message.length; i++) block[i] ^= message[at + i];
  block[message.length - at] ^= suffix;
  block[rate - 1] ^= 0x80;
  const out = new Uint8Array(length);
  for (let done = 0; done < length; done += rate) {
    permute(state, rounds);
    out.set(block.subarray(0, Math.min(rate, length - done)), done);
  }
  return out;
}

/**
 * @param {Uint8Array} message
 * @param {number} domain
 * @param {number} length
 */
export const turboShake128 = (message, domain, length) => sponge(message, length, 168, domain, 12);

/**
 * @param {Uint8Array} message
 * @param {number} length
 */
export const shake256 = (message, length) => sponge(message, length, 136, 0x1f, 24);
