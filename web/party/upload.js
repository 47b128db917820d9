// One campaign's upload in this browser: receipt, pending positions, both servers. It knows nothing of the page.

import { toHex } from "./bytes.js";
import { Refusal } from "./grid.js";
import { isSupported } from "./hpke.js";
import { DONE, PENDING, Receipt, SENDING, WITHDRAWING } from "./receipt.js";
import { Exchange } from "./sending.js";
import { Store } from "./store.js";

const RECEIPT = "receipt",
  POSITIONS = "positions";

export class Upload {
  static async open(campaign, sites, helper) {
    if (!isSecureContext || !navigator.locks) throw new Refusal("insecure");
    if (!(await isSupported())) throw new Refusal("noEncryption");
    const made = new Upload();
    Object.assign(made, { campaign, sites, helper, lock: `fss-ecdf ${campaign.name}` });
    try {
      made.store = await Store.open(campaign.name);
      await made.reload();
    } catch {
      throw new Refusal("noStorage");
    }
    return made;
  }

  // What the disk says: another tab may have changed it.
  async reload() {
    const { campaign, store } = this;
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
  send(token, positions, progress) {
    return this.alone(token, async () => {
      const sent = positions ?? this.pending;
      if (!sent?.length) throw new Refusal("noValues");
      if (this.isOut && this.receipt.data !== this.receipt.source.tag(sent)) throw new Refusal("otherValues");
      await this.store.put(POSITIONS, sent);
      try {
        await this.exchange(token, progress).upload(sent);
      } catch (error) {
        // What is withdrawn at both servers is not pending any more; what may lie there is.
        if (!this.isOut) await this.store.remove(POSITIONS);
        throw error;
      }
      await this.store.remove(POSITIONS);
      return sent.length;
    });
  }

  withdraw(token) {
    return this.alone(token, async () => {
      const count = await this.exchange(token, () => {}).withdraw();
      await this.store.remove(POSITIONS);
      return count;
    });
  }

  async forget() {
    await this.store.remove(RECEIPT, POSITIONS);
    await this.reload();
  }

  exchange(token, progress) {
    const salt = toHex(this.receipt.salt);
    const make = (number, generation, positions, wave) =>
      this.helper.ask("batch", { salt, token, number, generation, positions, wave });
    return new Exchange(this.sites, this.receipt, make, progress);
  }
}
