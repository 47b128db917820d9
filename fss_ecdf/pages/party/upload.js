// One campaign's uploads in this browser: receipts, pending positions, both servers. It knows nothing of the page.
//
// Receipts are kept for each invitation, under a hash of its token, so that one person is not told of another's. Where
// all parties have the same token, somebody else on the device gets the next number. While another receipt is
// unfinished, nothing is sent before its person has withdrawn it, or has said that somebody else is using the device.

import { concat, toHex, utf8 } from "./bytes.js";
import { canVerify } from "./confirmation.js";
import { Refusal } from "./grid.js";
import { isSupported } from "./hpke.js";
import { DONE, Receipt, SENDING, WITHDRAWING } from "./receipt.js";
import { Exchange } from "./sending.js";
import { Problem } from "./sites.js";
import { sha256 } from "./sha256.js";
import { Store } from "./store.js";
/** @import { Campaign } from "./campaign.js" */
/** @import { ReceiptBody } from "./receipt.js" */
/** @import { Sites } from "./sites.js" */
/** @import { Helper } from "./worker.js" */

const RECEIPT = "receipt",
  POSITIONS = "positions";

export class Upload {
  /**
   * @param {Campaign} campaign
   * @param {Sites} sites
   * @param {Helper} helper
   * @param {Store} store
   */
  constructor(campaign, sites, helper, store) {
    this.campaign = campaign;
    this.sites = sites;
    this.helper = helper;
    this.store = store;
    this.lock = `fss-ecdf ${campaign.name}`;
    this.number = 0;
    this.sharesDevice = false;
    /** @type {Float64Array | null} */
    this.pending = null;
    this.receipt = Receipt.fresh(campaign.name, async () => undefined);
  }

  /**
   * @param {Campaign} campaign
   * @param {Sites} sites
   * @param {Helper} helper
   */
  static async open(campaign, sites, helper) {
    if (!isSecureContext || !navigator.locks) throw new Refusal("insecure");
    if (!(await isSupported()) || !(await canVerify(campaign))) throw new Refusal("noEncryption");
    try {
      const made = new Upload(campaign, sites, helper, await Store.open());
      await made.select("");
      return made;
    } catch {
      throw new Refusal("noStorage");
    }
  }

  // The numbers of the receipts of this invitation, and whether any upload of the campaign is pending on this device.
  /** @param {string} token */
  async kept(token) {
    /** @type {[name: string, kind: string][]} */
    const keys = await this.store.keys(`${this.campaign.name}/`);
    const own = `${this.campaign.name}/${invitation(token)}/`;
    const numbers = keys.filter(([name, kind]) => kind === RECEIPT && name.startsWith(own));
    return {
      numbers: numbers.map(([name]) => Number(name.slice(own.length))).sort((a, b) => a - b),
      any: keys.some(([, kind]) => kind === RECEIPT),
      pending: keys.some(([, kind]) => kind === POSITIONS),
    };
  }

  // From now on this receipt of this invitation; without a number the last one.
  /**
   * @param {string} token
   * @param {number | null} [number]
   */
  async select(token, number = null) {
    const last = (await this.kept(token)).numbers.at(-1) ?? 0;
    this.number = number ?? last;
    this.sharesDevice = false;
    this.store.name = `${this.campaign.name}/${invitation(token)}/${this.number}`;
    await this.reload();
  }

  // A receipt for somebody else with the same token, which a reload finds again.
  /** @param {string} token */
  async selectNext(token) {
    await this.select(token);
    if (!this.isOut) return;
    await this.select(token, this.number + 1);
    await this.receipt.save();
  }

  // What the disk says: another tab may have changed it.
  async reload() {
    const { campaign, store } = this;
    /** @param {ReceiptBody} body */
    const keep = (body) => store.put(RECEIPT, body);
    const body = await store.get(RECEIPT);
    this.receipt = body ? Receipt.read(body, campaign.name, keep) : Receipt.fresh(campaign.name, keep);
    this.pending = (await store.get(POSITIONS)) ?? null;
  }

  get stored() {
    return this.receipt.stored;
  }

  get isOut() {
    return this.receipt.isOut;
  }

  get isComplete() {
    return this.receipt.isComplete;
  }

  // Other receipts on this device of which something may be at a server without its person having been told so.
  async unfinished() {
    /** @type {[name: string, kind: string][]} */
    const keys = await this.store.keys(`${this.campaign.name}/`);
    /** @type {[name: string, receipt: Receipt][]} */
    const found = [];
    for (const [name, kind] of keys) {
      if (kind !== RECEIPT || name === this.store.name) continue;
      /** @param {ReceiptBody} body */
      const keep = (body) => this.store.put(RECEIPT, body, name);
      const receipt = Receipt.read(await this.store.get(RECEIPT, name), this.campaign.name, keep);
      if (receipt.isOut && !receipt.isComplete) found.push([name, receipt]);
    }
    return found;
  }

  // One tab at a time; both servers must still be the page's before anything is sent.
  /**
   * @template T
   * @param {string} token
   * @param {() => Promise<T>} what
   * @returns {Promise<T>}
   */
  alone(token, what) {
    return navigator.locks.request(this.lock, { ifAvailable: true }, async (lock) => {
      if (!lock) throw new Refusal("otherTab");
      await this.reload();
      this.sites.token = token;
      if (!this.receipt.use(token)) throw new Refusal("otherToken");
      await this.sites.check();
      return what();
    });
  }

  // Send these positions, or go on with those that were interrupted.
  /**
   * @param {string} token
   * @param {Float64Array | null} positions
   * @param {(stored: number) => void} progress
   */
  send(token, positions, progress) {
    return this.alone(token, async () => {
      const sent = positions ?? this.pending;
      if (!sent?.length) throw new Refusal("noValues");
      const { receipt } = this;
      if (receipt.numbers(SENDING, DONE).length && receipt.data !== receipt.source.tag(sent))
        throw new Refusal("otherValues");
      if (!receipt.isOut && !this.sharesDevice && (await this.unfinished()).length) throw new Refusal("earlier");
      try {
        await this.store.put(POSITIONS, sent);
        this.pending = sent;
        await this.exchange(token, progress).upload(sent);
      } catch (failure) {
        const error = await this.told(failure);
        // What is withdrawn at both servers is not pending any more; what may lie there is.
        if (!this.isOut) await this.dropPending();
        throw error;
      }
      await this.dropPending();
      return sent.length;
    });
  }

  /** @param {string} token */
  withdraw(token) {
    return this.alone(token, async () => {
      try {
        const count = await this.exchange(token, () => {}).withdraw();
        await this.dropPending();
        return count;
      } catch (failure) {
        throw await this.told(failure);
      }
    });
  }

  // The same person has another invitation now. What may have arrived from this device with an earlier one is withdrawn
  // first, and both servers must confirm that: whoever said that the token is unknown may have stored the upload.
  /**
   * @param {string} token
   * @param {string} only the name of one receipt, or "" for all that are unfinished
   */
  withdrawEarlier(token, only) {
    return this.alone(token, async () => {
      for (const [name, receipt] of await this.unfinished()) {
        if (only && name !== only) continue;
        await receipt.note(receipt.numbers(SENDING, DONE), WITHDRAWING);
        receipt.use(token);
        try {
          await this.exchange(token, () => {}, receipt).withdraw();
        } catch (error) {
          const stays = error instanceof Problem && error.code === "campaign-full";
          throw stays ? new Refusal("earlierStays", error.about) : await this.told(error);
        }
        await this.store.remove([POSITIONS], name);
      }
    });
  }

  async dropPending() {
    await this.store.remove([POSITIONS]);
    this.pending = null;
  }

  // A storage that is full: what lies on the disk is true, not what was about to be written there.
  /** @param {unknown} error */
  async told(error) {
    if (!(error instanceof DOMException)) return error;
    await this.reload();
    return new Refusal("storageFull");
  }

  forget() {
    return this.store.remove([RECEIPT, POSITIONS]);
  }

  /**
   * @param {string} token
   * @param {(stored: number) => void} progress
   * @param {Receipt} [receipt]
   */
  exchange(token, progress, receipt = this.receipt) {
    const salt = toHex(receipt.salt);
    /**
     * @param {number} number
     * @param {number} generation
     * @param {Float64Array} positions
     * @param {number} wave
     */
    const make = (number, generation, positions, wave) =>
      this.helper.ask("batch", { salt, token, number, generation, positions, wave });
    return new Exchange(this.campaign, this.sites, receipt, make, progress);
  }
}

/** @param {string} token */
const invitation = (token) => toHex(sha256(concat(utf8("fss-ecdf invitation\n"), utf8(token))));
