// What takes long runs beside the page: reading files, placing values, making keys. It talks to nobody but the page.

import { fromHex } from "./bytes.js";
import { readCampaign } from "./campaign.js";
import { Source } from "./derive.js";
import { Sealer } from "./envelope.js";
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

const START_PATIENCE_MS = 20000;
const work = { campaign: null, sealer: null, table: null, latin1: false };

const TASKS = {
  start({ campaign }) {
    work.campaign = readCampaign(campaign);
    work.sealer = new Sealer(work.campaign);
  },

  // A file's columns as somebody chooses among them; `header` null: by what the first row looks like.
  read({ bytes, header = null }) {
    if (bytes) {
      const { text, latin1 } = decodeFile(bytes);
      Object.assign(work, { table: readTable(text), latin1 });
      checkCommaList(work.table);
    }
    const { table, campaign, latin1 } = work;
    if (!table.rows.length) throw new Refusal("noValues");
    const named = header ?? hasHeader(campaign.grid, table.rows[0]);
    const rows = table.rows.length - (named ? 1 : 0);
    return { columns: profiles(campaign, table, named), rows, header: named, latin1 };
  },

  place({ column, stratum, header, allowed }) {
    const { rows, ...about } = chosenRows(work.table, { column, stratum, header });
    const found = { ...about, ...place(work.campaign, rows) };
    if (!found.positions.length) throw new Refusal("noValues");
    checkClipping(found, allowed);
    return { ...found, histogram: histogram(work.campaign, found.positions) };
  },

  async batch({ salt, token, number, generation, positions, wave }) {
    const source = new Source(fromHex(salt), token);
    const ids = source.ids(number, generation, positions.length);
    const rand = source.rand(number, generation, positions, work.campaign, wave);
    const plain = work.sealer.envelopes(positions, ids, rand, wave);
    return Promise.all(plain.map((envelope, server) => sealUpload(work.campaign, server, envelope, token)));
  },
};

export function runWorker() {
  self.onmessage = async ({ data: { id, task, about } }) => {
    try {
      const result = await TASKS[task](about);
      const moved = task === "batch" ? result.map((sealed) => sealed.buffer) : [];
      self.postMessage({ id, result }, moved);
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
  constructor(source) {
    this.waiting = new Map();
    this.count = 0;
    try {
      this.worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
    } catch {
      this.worker = null;
      return;
    }
    this.worker.onmessage = ({ data: { id, result, refusal } }) => {
      const { resolve, reject } = this.waiting.get(id);
      this.waiting.delete(id);
      if (refusal) reject(new Refusal(refusal.key, refusal.about));
      else resolve(result);
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
  async start(campaign) {
    const patience = setTimeout(() => this.giveUp(), START_PATIENCE_MS);
    try {
      await this.ask("start", { campaign });
    } finally {
      clearTimeout(patience);
    }
  }

  ask(task, about = {}) {
    if (!this.worker) return Promise.reject(new Refusal("noWorker"));
    this.count += 1;
    const id = this.count;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, task, about });
    });
  }
}
