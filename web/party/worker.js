// What takes long runs beside the page: reading files, placing values, making keys. It talks to nobody but the page.

import { fromHex } from "./bytes.js";
import { readCampaign } from "./campaign.js";
import { Source } from "./derive.js";
import { Sealer } from "./envelope.js";
import { Refusal } from "./grid.js";
import { histogram, place, readCsv } from "./records.js";
import { sealUpload } from "./sealed.js";

const work = { campaign: null, sealer: null, table: [] };

const TASKS = {
  start({ campaign }) {
    work.campaign = readCampaign(campaign);
    work.sealer = new Sealer(work.campaign);
  },

  // The names of a file's columns, and how many rows follow them.
  read({ text }) {
    work.table = readCsv(text);
    const [names = []] = work.table;
    const plain = names.length === 1 && !Number.isNaN(work.campaign.grid.number(names[0]));
    return { names: plain ? [] : names, rows: work.table.length - (plain ? 0 : 1) };
  },

  place({ column, stratum, header }) {
    const rows = work.table
      .slice(header ? 1 : 0)
      .map((row) => [row[column] ?? "", stratum === null ? "" : (row[stratum] ?? "")]);
    return placed(rows, header ? 2 : 1);
  },

  placeOne({ value, stratum }) {
    return placed([[value, stratum]], 1);
  },

  async batch({ salt, token, number, generation, positions, wave }) {
    const source = new Source(fromHex(salt), token);
    const ids = source.ids(number, generation, positions.length);
    const rand = source.rand(number, generation, positions, work.campaign, wave);
    const plain = work.sealer.envelopes(positions, ids, rand, wave);
    return Promise.all(plain.map((envelope, server) => sealUpload(work.campaign, server, envelope)));
  },
};

function placed(rows, firstRow) {
  const found = place(work.campaign, rows, firstRow);
  return { ...found, histogram: histogram(work.campaign, found.positions) };
}

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

// The worker as the page sees it: `ask` returns what a task returns, or raises its refusal.
export class Helper {
  constructor(source) {
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    this.worker = new Worker(address);
    this.waiting = new Map();
    this.count = 0;
    this.worker.onmessage = ({ data: { id, result, refusal } }) => {
      const { resolve, reject } = this.waiting.get(id);
      this.waiting.delete(id);
      if (refusal) reject(new Refusal(refusal.key, refusal.about));
      else resolve(result);
    };
  }

  ask(task, about = {}) {
    this.count += 1;
    const id = this.count;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, task, about });
    });
  }
}
