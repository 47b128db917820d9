// One campaign's uploads in this browser: receipts, pending positions, both servers. It knows nothing of the page.
//
// Receipts are kept for each invitation, under a hash of its token, so that one person is not told of another's. Where
// all parties have the same token, somebody else on the device gets the next number.

import { concat, toHex, utf8 } from "./bytes.js";
import { Refusal } from "./grid.js";
import { isSupported } from "./hpke.js";
import { DONE, PENDING, Receipt, SENDING, WITHDRAWING } from "./receipt.js";
import { Exchange } from "./sending.js";
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
    if (!(await isSupported())) throw new Refusal("noEncryption");
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
    return this.receipt.size(this.receipt.numbers(DONE));
  }

  get isOut() {
    return this.receipt.numbers(SENDING, DONE, WITHDRAWING, PENDING).length > 0;
  }

  get isComplete() {
    return this.isOut && this.receipt.count > 0 && this.stored === this.receipt.count;
  }

  // One tab at a time; both servers must still be the page's before anything is sent.
  /**
   * @param {string} token
   * @param {() => Promise<number>} what
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

  async dropPending() {
    await this.store.remove(POSITIONS);
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
    return this.store.remove(RECEIPT, POSITIONS);
  }

  /**
   * @param {string} token
   * @param {(stored: number) => void} progress
   */
  exchange(token, progress) {
    const salt = toHex(this.receipt.salt);
    /**
     * @param {number} number
     * @param {number} generation
     * @param {Float64Array} positions
     * @param {number} wave
     */
    const make = (number, generation, positions, wave) =>
      this.helper.ask("batch", { salt, token, number, generation, positions, wave });
    return new Exchange(this.campaign, this.sites, this.receipt, make, progress);
  }
}

/** @param {string} token */
const invitation = (token) => toHex(sha256(concat(utf8("fss-ecdf invitation\n"), utf8(token))));
