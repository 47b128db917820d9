// Encryption to one server with HPKE (RFC 9180, base mode, DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM), with
// the browser's own X25519 and AES; fss_ecdf/campaign/hpke.py does the same.

import { concat, utf8 } from "./bytes.js";
import { hmacSha256 } from "./sha256.js";

export const PUBLIC_KEY_BYTES = 32;
export const ENCAPSULATED_BYTES = 32;
export const OVERHEAD = ENCAPSULATED_BYTES + 16; // and the tag

const VERSION = utf8("HPKE-v1");
const KEM_SUITE = concat(utf8("KEM"), Uint8Array.of(0, 0x20));
const SUITE = concat(utf8("HPKE"), Uint8Array.of(0, 0x20, 0, 1, 0, 1));
const NOTHING = new Uint8Array(0);

/**
 * @param {Uint8Array} suite
 * @param {Uint8Array} salt
 * @param {string} label
 * @param {Uint8Array} secret
 */
const extract = (suite, salt, label, secret) => hmacSha256(salt, concat(VERSION, suite, utf8(label), secret));

// HKDF's first block is all that is ever needed: 32 bytes or less.
/**
 * @param {Uint8Array} suite
 * @param {Uint8Array} secret
 * @param {string} label
 * @param {Uint8Array} info
 * @param {number} length
 */
function expand(suite, secret, label, info, length) {
  const about = concat(Uint8Array.of(0, length), VERSION, suite, utf8(label), info, Uint8Array.of(1));
  return hmacSha256(secret, about).subarray(0, length);
}

// Whether this browser can encrypt at all. Older ones lack X25519.
export async function isSupported() {
  try {
    await crypto.subtle.generateKey("X25519", false, ["deriveBits"]);
    return true;
  } catch {
    return false;
  }
}

const PAIRS = 8;

// The encapsulated key and the ciphertext. WebKitGTK fails for some key pairs (about one in a hundred); another pair is
// as good, and a public key of small order fails with every pair.
/**
 * @param {Uint8Array} publicKey
 * @param {Uint8Array} info
 * @param {Uint8Array} plaintext
 */
export async function seal(publicKey, info, plaintext) {
  for (let attempt = 1; ; attempt++) {
    const pair = await crypto.subtle.generateKey("X25519", false, ["deriveBits"]);
    if (!("publicKey" in pair)) throw new Error("X25519 has pairs of keys");
    try {
      return await sealWith(pair, publicKey, info, plaintext);
    } catch (error) {
      if (attempt >= PAIRS) throw error;
    }
  }
}

// The same with a given key pair.
/**
 * @param {CryptoKeyPair} pair
 * @param {Uint8Array} publicKey
 * @param {Uint8Array} info
 * @param {Uint8Array} plaintext
 */
export async function sealWith(pair, publicKey, info, plaintext) {
  const enc = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
  const receiver = await crypto.subtle.importKey("raw", publicKey, "X25519", false, []);
  // Raises for a public key of small order, as the standard of WebCrypto demands.
  const dh = new Uint8Array(await crypto.subtle.deriveBits({ name: "X25519", public: receiver }, pair.privateKey, 256));
  const { key, nonce } = schedule(sharedSecret(dh, enc, publicKey), info);
  const cipher = await crypto.subtle.importKey("raw", key, "AES-GCM", false, ["encrypt"]);
  const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv: nonce, tagLength: 128 }, cipher, plaintext);
  return concat(enc, new Uint8Array(sealed));
}

// RFC 9180, section 4.1: ExtractAndExpand.
/**
 * @param {Uint8Array} dh
 * @param {Uint8Array} enc
 * @param {Uint8Array} publicKey
 */
function sharedSecret(dh, enc, publicKey) {
  const secret = extract(KEM_SUITE, NOTHING, "eae_prk", dh);
  return expand(KEM_SUITE, secret, "shared_secret", concat(enc, publicKey), 32);
}

// RFC 9180, section 5.1: KeySchedule of the base mode, for the first and only message.
/**
 * @param {Uint8Array} shared
 * @param {Uint8Array} info
 */
export function schedule(shared, info) {
  const context = concat(
    Uint8Array.of(0),
    extract(SUITE, NOTHING, "psk_id_hash", NOTHING),
    extract(SUITE, NOTHING, "info_hash", info),
  );
  const secret = extract(SUITE, shared, "secret", NOTHING);
  return { key: expand(SUITE, secret, "key", context, 16), nonce: expand(SUITE, secret, "base_nonce", context, 12) };
}
