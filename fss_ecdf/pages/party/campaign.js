// A campaign as both servers and this page must mean it, byte for byte: its digest is over the text that was received.

import { concat, fromBase64url, toBase64url, utf8 } from "./bytes.js";
import { KeyType } from "./dcf.js";
import { Refusal, bitsFor } from "./grid.js";
import { PUBLIC_KEY_BYTES } from "./hpke.js";
import { Numeral, readJson, writeJson } from "./json.js";
import { MAX_CHECKED_BITS } from "./proof.js";
import { sha256 } from "./sha256.js";
import { isText } from "./text.js";
import { readOnlyVariable } from "./variable.js";
/** @import { Json } from "./json.js" */

const MAX_EPSILON = 20; // of all that a party consents to
const SIGNING_KEY_BYTES = 32;
const DIGEST_CONTEXT = "fss-ecdf campaign 8\n";

/** @param {Map<string, Json>} fields */
export const digestOf = (fields) => sha256(concat(utf8(DIGEST_CONTEXT), utf8(writeJson(fields))));

export class Campaign {
  /** @param {unknown} fields */
  constructor(fields) {
    if (!(fields instanceof Map)) throw new Refusal("badCampaign", { field: "campaign" });
    this.fields = fields;
    this.digest = digestOf(fields);
    this.id = this.read("id", (found) => fromBase64url(found, 32));
    this.name = toBase64url(this.id);
    this.title = this.read("title", textOf);
    this.question = this.read("question", textOf);
    this.strata = this.read("strata", (found) => (Array.isArray(found) && found.length ? found.map(textOf) : fail()));
    this.epsilon = this.read("epsilon", numberOf);
    this.reserve = this.read("reserve", numberOf);
    this.max_values_per_person = this.read("max_values_per_person", numberOf);
    if ((fields.get("kem") ?? "x25519") !== "x25519")
      throw new Refusal("unknownKem", { kem: String(fields.get("kem")) });
    this.hpkeKeys = this.read("server_commitments", (found) => keysOf(found, "hpke_key", PUBLIC_KEY_BYTES));
    this.signingKeys = this.read("server_commitments", (found) => keysOf(found, "signing_key", SIGNING_KEY_BYTES));
    this.variable = readOnlyVariable(fields.get("variables"));
    this.bits = bitsFor(this.strata.length) + this.variable.indexBits;
    if (this.bits > 32) throw new Refusal("badCampaign", { field: "grid" });
    this.checked = this.read("check_keys", (found = false) =>
      typeof (found ?? false) === "boolean" ? found === true : fail(),
    );
    if (this.checked && this.bits > MAX_CHECKED_BITS) throw new Refusal("badCampaign", { field: "check_keys" });
    this.pooled = this.read("waves", pooledOf);
    this.admission = String(fields.get("admission") ?? "open");
    this.opens = timeOf(fields.get("opens"));
    this.closes = timeOf(fields.get("closes"));
    if (!(this.totalEpsilon <= MAX_EPSILON)) throw new Refusal("badCampaign", { field: "epsilon" });
    this.keyType = new KeyType(this.bits, this.id);
  }

  /**
   * @template Found
   * @param {string} name
   * @param {(found: Json | undefined) => Found} how
   */
  read(name, how) {
    try {
      return how(this.fields.get(name));
    } catch {
      throw new Refusal("badCampaign", { field: name });
    }
  }

  // What a party consents to: the curve and the reserve for further statistics, and all that may be pooled.
  get totalEpsilon() {
    return this.epsilon + this.reserve + (this.pooled ?? 0);
  }

  /**
   * @param {number} stratum
   * @param {number} index
   */
  position(stratum, index) {
    return stratum * 2 ** this.variable.indexBits + index;
  }
}

/** @returns {never} */
function fail() {
  throw new Error("of another kind");
}

/** @param {unknown} found */
const textOf = (found) => (typeof found === "string" && isText(found) ? found : fail());
/** @param {unknown} found */
const numberOf = (found) => (found instanceof Numeral && Number.isFinite(found.value) ? found.value : fail());

/** @param {unknown} found */
const timeOf = (found) => Date.parse(String(found ?? "")) || null;

// What uploads to each server are encrypted to, and what its signatures are checked with; a campaign that no server has
// yet names none.
/**
 * @param {any} servers
 * @param {string} name
 * @param {number} length
 */
function keysOf(servers, name, length) {
  if ((servers ?? null) === null) return null;
  return [0, 1].map((server) => fromBase64url(servers[server].get(name), length));
}

// The epsilon of everything that is pooled, of a campaign of waves; of any other, null.
/**
 * @param {any} waves
 * @returns {number | null}
 */
function pooledOf(waves) {
  if ((waves ?? null) === null) return null;
  return waves
    .get("pooled")
    .reduce((/** @type {number} */ sum, /** @type {Map<string, Json>} */ one) => sum + numberOf(one.get("epsilon")), 0);
}

/** @param {string} text */
export const readCampaign = (text) => new Campaign(readJson(text));

// What a server answers about a campaign, checked: it must be the one of the page, from the server it should be.
/**
 * @param {string} text
 * @param {number} server
 * @param {string} digest
 */
export function checkAnswer(text, server, digest) {
  let answer;
  try {
    answer = readJson(text);
  } catch {
    throw new Refusal("noCampaign", { server });
  }
  if (!(answer instanceof Map)) throw new Refusal("noCampaign", { server });
  const [campaign, number] = [answer.get("campaign"), answer.get("server")];
  if (!(campaign instanceof Map) || !(number instanceof Numeral)) throw new Refusal("noCampaign", { server });
  if (number.text !== String(server)) throw new Refusal("swapped", { server });
  const found = toBase64url(digestOf(campaign));
  if (found !== digest) throw new Refusal("otherCampaign", { server, found, expected: digest });
  const wave = answer.get("wave");
  return { state: String(answer.get("state")), wave: wave instanceof Numeral ? waveOf(wave.text, server) : 0 };
}

// The number of the open wave, as a server writes it.
/**
 * @param {string} text
 * @param {number} server
 */
function waveOf(text, server) {
  if (!/^(0|[1-9][0-9]{0,3})$/.test(text)) throw new Refusal("noCampaign", { server });
  return Number(text);
}
