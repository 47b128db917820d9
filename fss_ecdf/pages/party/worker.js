// What takes long runs beside the page: reading files, placing values, making keys. It talks to nobody but the page.

import { fromHex } from "./bytes.js";
import { readCampaign } from "./campaign.js";
import { Source } from "./derive.js";
import { Sealer, leavesOf } from "./envelope.js";
import { Refusal } from "./grid.js";
import {
  checkClipping,
  checkCommaList,
  chosenRows,
  decodeFile,
  hasHeader,
  histogram,
  place,
  profiles,
  readTable,
} from "./records.js";
import { sealUpload } from "./sealed.js";
/** @import { Campaign } from "./campaign.js" */
/** @import { Table } from "./records.js" */

const START_PATIENCE_MS = 20000;
/** @type {{ campaign: Campaign, sealer: Sealer, table: Table, latin1: boolean }} what `start` and `read` set */
const work = Object.create(null);

/** @type {Record<string, (about: any) => any>} */
const TASKS = {
  /** @param {{ campaign: string }} about */
  start({ campaign }) {
    work.campaign = readCampaign(campaign);
    work.sealer = new Sealer(work.campaign);
  },

  // A file's columns as somebody chooses among them; `header` null: by what the first row looks like.
  /** @param {{ bytes?: Uint8Array, header?: boolean | null }} about */
  read({ bytes, header = null }) {
    if (bytes) {
      const { text, latin1 } = decodeFile(bytes);
      Object.assign(work, { table: readTable(text), latin1 });
      checkCommaList(work.table);
    }
    const { table, campaign, latin1 } = work;
    if (!table.rows.length) throw new Refusal("noValues");
    const named = header ?? hasHeader(campaign.variable.grid, table.rows[0]);
    const rows = table.rows.length - (named ? 1 : 0);
    return { columns: profiles(campaign, table, named), rows, header: named, latin1 };
  },

  /** @param {{ column: number, stratum: number | null, header: boolean, allowed: boolean }} about */
  place({ column, stratum, header, allowed }) {
    const { rows, ...about } = chosenRows(work.table, { column, stratum, header });
    const found = { ...about, ...place(work.campaign, rows) };
    if (!found.positions.length) throw new Refusal("noValues");
    checkClipping(found, allowed);
    return { ...found, histogram: histogram(work.campaign, found.positions) };
  },

  /** @param {{ salt: string, token: string, number: number, generation: number, positions: Float64Array, wave: number }} about */
  async batch({ salt, token, number, generation, positions, wave }) {
    const source = new Source(fromHex(salt), token);
    const ids = source.ids(number, generation, positions.length);
    const rand = source.rand(number, generation, positions, work.campaign, wave);
    const plain = work.sealer.envelopes(positions, ids, rand, wave);
    const sealed = plain.map((envelope, server) => sealUpload(work.campaign, server, envelope, token));
    return { envelopes: await Promise.all(sealed), leaves: leavesOf(work.campaign, plain, wave) };
  },
};

export function runWorker() {
  self.onmessage = async ({ data: { id, task, about } }) => {
    try {
      const result = await TASKS[task](about);
      const moved = task === "batch" ? result.envelopes.map((/** @type {Uint8Array} */ sealed) => sealed.buffer) : [];
      self.postMessage({ id, result }, { transfer: moved });
    } catch (error) {
      const refusal =
        error instanceof Refusal
          ? { key: error.key, about: error.about }
          : { key: "internal", about: { detail: String(error) } };
      self.postMessage({ id, refusal });
    }
  };
}

// The worker as the page sees it: `ask` returns what a task returns, or raises its refusal. A worker that does not start,
// or that ends, is a refusal, too.
export class Helper {
  /** @param {string} source */
  constructor(source) {
    /** @type {Map<number, { resolve: (result: any) => void, reject: (reason: Refusal) => void }>} */
    this.waiting = new Map();
    this.count = 0;
    /** @type {Worker | null} */
    this.worker = null;
    try {
      this.worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
    } catch {
      return;
    }
    this.worker.onmessage = ({ data: { id, result, refusal } }) => {
      const asked = this.waiting.get(id);
      this.waiting.delete(id);
      if (refusal) asked?.reject(new Refusal(refusal.key, refusal.about));
      else asked?.resolve(result);
    };
    this.worker.onerror = this.worker.onmessageerror = () => this.giveUp();
  }

  giveUp() {
    for (const { reject } of this.waiting.values()) reject(new Refusal("noWorker"));
    this.waiting.clear();
    this.worker?.terminate();
    this.worker = null;
  }

  // The first task, for whose answer nobody waits for ever.
  /** @param {string} campaign */
  async start(campaign) {
    const patience = setTimeout(() => this.giveUp(), START_PATIENCE_MS);
    try {
      await this.ask("start", { campaign });
    } finally {
      clearTimeout(patience);
    }
  }

  /**
   * @param {string} task
   * @param {object} [about]
   * @returns {Promise<any>}
   */
  ask(task, about = {}) {
    if (!this.worker) return Promise.reject(new Refusal("noWorker"));
    this.count += 1;
    const id = this.count;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker?.postMessage({ id, task, about });
    });
  }
}
