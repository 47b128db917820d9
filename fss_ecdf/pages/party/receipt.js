// The receipt of an upload, in the form and by the rules of dealer/receipt.py, so that `fss-dealer` understands it:
//
// 1. A batch is noted as `sending` before it is sent, and sent again only as the same bytes under the same ids.
// 2. A withdrawal is noted before it is asked for; from then on these ids are never sent again.
// 3. New ids and keys (the next generation) are used when both servers have confirmed that the old ones do not count:
//    they are withdrawn, or excluded from the set of their wave. A server that calls an upload late, or a token
//    unknown, is not believed without that: if the token was wrong, the right one withdraws what may have arrived.

import { fromHex, toHex } from "./bytes.js";
import { SALT_BYTES, Source } from "./derive.js";

export const RECEIPT_VERSION = 6;
export const NEW = "new",
  SENDING = "sending",
  DONE = "done",
  WITHDRAWING = "withdrawing",
  PENDING = "pending"; // its wave closed before both had it
const FIELDS = ["version", "campaign", "salt", "token", "data", "values", "batch", "form", "parts"];
const FORM = "keys"; // a receipt of tables belongs to `fss-dealer`: this page makes none, and cannot go on with one

/** @typedef {{ generation: number, state: string, wave: number, signatures: string[] }} Part */
/** @typedef {[generation: number, state: string, wave: number, signatures: string[]]} PartBody */
/**
 * @typedef {{ version: number, campaign: string, salt: string, token: string, data: string, values: number,
 *   batch: number, form: string, parts: Record<string, PartBody> }} ReceiptBody
 */

/**
 * @param {Part} part
 * @returns {PartBody}
 */
const partOf = ({ generation, state, wave, signatures }) => [generation, state, wave, signatures];

/**
 * @param {number} generation
 * @returns {Part}
 */
const unsent = (generation) => ({ generation, state: NEW, wave: 0, signatures: [] });

export class Receipt {
  // `keep` stores what `body` returns, durably, before anything goes on.
  /**
   * @param {string} campaign
   * @param {Uint8Array} salt
   * @param {(body: ReceiptBody) => Promise<unknown>} keep
   */
  constructor(campaign, salt, keep) {
    this.campaign = campaign;
    this.salt = salt;
    this.keep = keep;
    /** @type {Source | null} */
    this.secrets = null;
    this.mark = "";
    this.data = "";
    this.count = 0;
    this.batch = 1;
    /** @type {Map<number, Part>} */
    this.parts = new Map();
  }

  /**
   * @param {string} campaign
   * @param {(body: ReceiptBody) => Promise<unknown>} keep
   */
  static fresh(campaign, keep) {
    return new Receipt(campaign, crypto.getRandomValues(new Uint8Array(SALT_BYTES)), keep);
  }

  /**
   * @param {ReceiptBody} body
   * @param {string} campaign
   * @param {(body: ReceiptBody) => Promise<unknown>} keep
   */
  static read(body, campaign, keep) {
    const names = Object.keys(body);
    if (names.length !== FIELDS.length || !FIELDS.every((name) => names.includes(name)))
      throw new Error("other fields");
    if (body.version !== RECEIPT_VERSION || body.campaign !== campaign) throw new Error("of another campaign");
    if (body.form !== FORM) throw new Error("of another form");
    const found = new Receipt(campaign, fromHex(body.salt), keep);
    if (found.salt.length !== SALT_BYTES) throw new Error("a salt is needed");
    Object.assign(found, { mark: body.token, data: body.data, count: body.values, batch: body.batch });
    for (const [number, [generation, state, wave, signatures]] of Object.entries(body.parts)) {
      if (![NEW, SENDING, DONE, WITHDRAWING, PENDING].includes(state)) throw new Error("a state is not known");
      if (state === DONE && signatures.length !== 2) throw new Error("what is stored is signed");
      found.parts.set(Number(number), { generation, state, wave, signatures });
    }
    return found;
  }

  // What was sent with another token can only be gone on with by that one; returns whether this one can go on.
  /** @param {string} token */
  use(token) {
    const source = new Source(this.salt, token);
    this.secrets = source;
    const same = this.mark === source.mark();
    if (!same && this.mark && this.numbers(SENDING, DONE).length) return false;
    this.mark = source.mark();
    return true;
  }

  // What ids and keys are made from, once the token is known.
  get source() {
    if (!this.secrets) throw new Error("a receipt needs its token first");
    return this.secrets;
  }

  /** @returns {ReceiptBody} */
  get body() {
    const parts = Object.fromEntries([...this.parts].sort(([a], [b]) => a - b).map(([n, p]) => [n, partOf(p)]));
    const about = { version: RECEIPT_VERSION, campaign: this.campaign, salt: toHex(this.salt), token: this.mark };
    return { ...about, data: this.data, values: this.count, batch: this.batch, form: FORM, parts };
  }

  save() {
    return this.keep(this.body);
  }

  /** @param {...string} states */
  numbers(...states) {
    return [...this.parts]
      .filter(([, part]) => states.includes(part.state))
      .map(([n]) => n)
      .sort((a, b) => a - b);
  }

  // These values from now on. Nothing of others may be anywhere.
  /**
   * @param {string} data
   * @param {number} count
   * @param {number} batch
   */
  take(data, count, batch) {
    if (this.data !== data || !this.numbers(SENDING, DONE).length) Object.assign(this, { data, count, batch });
    for (let n = 0; n * this.batch < this.count; n++) if (!this.parts.has(n)) this.parts.set(n, unsent(0));
    return this.save();
  }

  /** @param {number} number */
  within(number) {
    return [number * this.batch, Math.min(this.count, (number + 1) * this.batch)];
  }

  /** @param {number[]} numbers */
  size(numbers) {
    return numbers.reduce((sum, n) => sum + Math.max(0, this.within(n)[1] - this.within(n)[0]), 0);
  }

  get stored() {
    return this.size(this.numbers(DONE));
  }

  // Something of it may be at a server.
  get isOut() {
    return this.numbers(SENDING, DONE, WITHDRAWING, PENDING).length > 0;
  }

  get isComplete() {
    return this.isOut && this.count > 0 && this.stored === this.count;
  }

  /** @param {number} number */
  part(number) {
    const found = this.parts.get(number);
    if (!found) throw new Error(`the receipt has no batch ${number}`);
    return found;
  }

  /** @param {number} number */
  ids(number) {
    return this.source.ids(number, this.part(number).generation, this.size([number]));
  }

  /**
   * @param {number[]} numbers
   * @param {string} state
   */
  note(numbers, state) {
    for (const number of numbers) this.part(number).state = state;
    return this.save();
  }

  // Its keys are for this wave, and are sent again for no other.
  /**
   * @param {number} number
   * @param {number} wave
   */
  noteSending(number, wave) {
    this.part(number).wave = wave;
    return this.note([number], SENDING);
  }

  // Both servers have signed that they stored it.
  /**
   * @param {number} number
   * @param {string[]} signatures
   */
  noteStored(number, signatures) {
    this.part(number).signatures = signatures;
    return this.note([number], DONE);
  }

  /** @param {number[]} numbers */
  withdrawn(numbers) {
    for (const n of numbers) this.parts.set(n, unsent(this.part(n).generation + 1));
    return this.save();
  }

  forgetData() {
    Object.assign(this, { data: "", count: 0, batch: 1 });
    return this.save();
  }
}
