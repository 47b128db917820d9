// Sending keys to both servers, and taking them back, as dealer/upload_client.py does: whatever fails, a value counts once.

import { isConfirmed, storedMessage, withdrawnMessage } from "./confirmation.js";
import { UPLOAD_TYPE } from "./envelope.js";
import { Refusal } from "./grid.js";
import { DONE, NEW, PENDING, SENDING, WITHDRAWING } from "./receipt.js";
import { Problem } from "./sites.js";
/** @import { Campaign } from "./campaign.js" */
/** @import { Receipt } from "./receipt.js" */
/** @import { Sites } from "./sites.js" */

export const BATCH = 1000; // values a request; servers take as many ids in a withdrawal
const REPEATED = ["upload-withdrawn", "upload-conflict", "wave-closed"];
const IN_FLIGHT = 3;
const TRIES = 3; // of a batch, each with new keys: waves may close again and again

// One upload's dealings with both servers. Everything is in the receipt before it is on the wire. `make` returns both
// envelopes of a batch and its leaves; `progress` hears how many values both servers have stored.
/** @typedef {{ envelopes: Uint8Array[], leaves: Uint8Array }} Made */
export class Exchange {
  /**
   * @param {Campaign} campaign
   * @param {Sites} sites
   * @param {Receipt} receipt
   * @param {(number: number, generation: number, positions: Float64Array, wave: number) => Promise<Made>} make
   * @param {(stored: number) => void} progress
   */
  constructor(campaign, sites, receipt, make, progress) {
    this.campaign = campaign;
    this.sites = sites;
    this.receipt = receipt;
    this.make = make;
    this.progress = progress;
  }

  // The values that the receipt knows already go on; others must be withdrawn first.
  /** @param {Float64Array} positions */
  async upload(positions) {
    const { receipt } = this,
      data = receipt.source.tag(positions);
    if (receipt.numbers(SENDING, DONE).length && receipt.data !== data) throw new Refusal("otherValues");
    await this.finishWithdrawals();
    await receipt.take(data, positions.length, BATCH);
    this.progress(receipt.size(receipt.numbers(DONE)));
    try {
      await this.sendAll(positions);
    } catch (error) {
      throw error instanceof Refusal ? await this.takeBack(error) : error;
    }
  }

  async withdraw() {
    const { receipt } = this,
      numbers = receipt.numbers(SENDING, DONE, WITHDRAWING, PENDING),
      values = receipt.size(numbers);
    await receipt.note(numbers, WITHDRAWING);
    await this.finishWithdrawals();
    await receipt.forgetData();
    return values;
  }

  // A few batches at a time; after a failure no further one is begun, and those under way come to their end.
  /** @param {Float64Array} positions */
  async sendAll(positions) {
    const { receipt } = this;
    const queue = receipt
      .numbers(NEW, SENDING)
      .filter((n) => n * receipt.batch < receipt.count)
      .reverse();
    const work = async () => {
      for (let number = queue.pop(); number !== undefined; number = queue.pop()) {
        try {
          await this.send(number, positions.slice(...receipt.within(number)));
        } catch (error) {
          queue.length = 0;
          throw error;
        }
        this.progress(receipt.size(receipt.numbers(DONE)));
      }
    };
    const outcomes = await Promise.allSettled(Array.from({ length: IN_FLIGHT }, work));
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  }

  // A batch whose ids cannot be used, or whose wave has closed, is sent again with new ids and keys; but not before both
  // servers have confirmed that the old ones do not count: a server that lies about it would have a person counted twice.
  /**
   * @param {number} number
   * @param {Float64Array} positions
   */
  async send(number, positions) {
    for (let left = TRIES; ; ) {
      try {
        await this.sendOnce(number, positions);
        return;
      } catch (error) {
        if (!(error instanceof Problem) || !REPEATED.includes(error.code)) throw error;
        const late = error.code === "wave-closed";
        await this.receipt.note([number], late ? PENDING : WITHDRAWING);
        await this.finishWithdrawals([number]);
        left -= 1;
        if (!left) throw error;
        if (late) await this.sites.check();
      }
    }
  }

  /**
   * @param {number} number
   * @param {Float64Array} positions
   */
  async sendOnce(number, positions) {
    const part = this.receipt.part(number),
      wave = part.state === NEW ? this.sites.wave : part.wave;
    const { envelopes, leaves } = await this.make(number, part.generation, positions, wave);
    await this.receipt.noteSending(number, wave);
    const to = (/** @type {number} */ server) =>
      this.to(server, envelopes[server], storedMessage(this.campaign, server, wave, leaves));
    const outcomes = await Promise.allSettled([0, 1].map(to));
    const errors = outcomes.flatMap((o) => (o.status === "rejected" ? [o.reason] : []));
    if (!errors.length) {
      const signatures = outcomes.flatMap((o) => (o.status === "fulfilled" ? [o.value] : []));
      await this.receipt.noteStored(number, signatures);
      return;
    }
    throw errors.find((e) => !e.again) ?? errors[0]; // a refusal says more
  }

  // The server's signature that it has stored the whole envelope.
  /**
   * @param {number} server
   * @param {Uint8Array} envelope
   * @param {Uint8Array} message
   */
  async to(server, envelope, message) {
    const text = await this.sites.call(server, "POST", "/uploads", envelope, UPLOAD_TYPE);
    const { failures, signature } = answerOf(text, server);
    if (failures.length) throw new Problem(server, String(failures[0].code), String(failures[0].detail));
    return this.signed(server, message, signature);
  }

  /**
   * @param {number} server
   * @param {Uint8Array} message
   * @param {unknown} signature
   */
  async signed(server, message, signature) {
    if (await isConfirmed(this.campaign, server, message, signature)) return String(signature);
    throw new Problem(server, "not-confirmed", "");
  }

  // After a failure: withdraw what may have arrived. Returns the error with what has become of it.
  /** @param {Refusal} error */
  async takeBack(error) {
    const { receipt } = this;
    await receipt.note(receipt.numbers(SENDING), WITHDRAWING);
    if (!receipt.numbers(WITHDRAWING, PENDING).length) return error;
    try {
      await this.finishWithdrawals();
    } catch {
      error.after = "notTakenBack";
      return error;
    }
    error.after = "takenBack";
    return error;
  }

  // All that were begun, at both servers; each is asked for all of them, whatever the other one answers.
  /** @param {number[] | null} [only] */
  async finishWithdrawals(only = null) {
    const numbers = only ?? this.receipt.numbers(WITHDRAWING, PENDING);
    if (!numbers.length) return;
    const [first, second] = await Promise.all([0, 1].map((server) => this.withdrawAt(server, numbers)));
    await this.receipt.withdrawn(first.confirmed.filter((n) => second.confirmed.includes(n)));
    const problem = first.problem ?? second.problem;
    if (problem) throw problem;
  }

  /**
   * @param {number} server
   * @param {number[]} numbers
   */
  async withdrawAt(server, numbers) {
    /** @type {number[]} */
    const confirmed = [];
    for (const number of numbers) {
      try {
        const ids = this.receipt.ids(number);
        const text = await this.sites.call(server, "POST", "/uploads/withdraw", ids, "application/octet-stream");
        const { failures, signature } = answerOf(text, server, "withdrawn");
        if (failures.length) throw new Problem(server, "campaign-full", "");
        await this.signed(server, withdrawnMessage(this.campaign, server, ids), signature);
      } catch (problem) {
        return { confirmed, problem };
      }
      confirmed.push(number);
    }
    return { confirmed, problem: null };
  }
}

// An answer of this protocol; anything else confirms nothing.
/**
 * @param {string} text
 * @param {number} server
 * @param {string | null} [number]
 * @returns {{ failures: { code: unknown, detail: unknown }[], signature: unknown }}
 */
function answerOf(text, server, number = null) {
  try {
    const found = JSON.parse(text);
    if (Array.isArray(found.failures) && (!number || Number.isInteger(found[number]))) return found;
  } catch {
    // not an answer
  }
  throw new Problem(server, "not-an-answer", "");
}
