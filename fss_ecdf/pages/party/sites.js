// A campaign at both its servers: asking them, again where that helps, and one clear problem where it does not.

import { checkAnswer } from "./campaign.js";
import { Refusal } from "./grid.js";
import { isAddress, shownPlainly } from "./text.js";

const ATTEMPTS = 6;
const FIRST_WAIT_S = 0.5;
const BUSY_WAIT_S = 1;
const LONGEST_WAIT_S = 20;
const MOST_BYTES = 33554432; // of an answer: a campaign whose thresholds are listed is the longest
const MOST_DETAIL = 500;
// How long an answer may take: to a question, and to an upload, which may have to crawl through a slow line.
const ASK_PATIENCE_MS = 12000;
const SEND_PATIENCE_MS = 120000;
const SLOWEST_BYTES_MS = 5;
const SILENT_ATTEMPTS = 2;
const WITHOUT_DOCUMENT = ["unreachable", "silent", "not-an-answer", "not-confirmed"];
const URN = "urn:fss-ecdf:problem:";
const TRY_AGAIN = [
  "try-again",
  "upload-undecided",
  "too-many-requests",
  "peer-unavailable",
  "invalid-peer-response",
  "storage-full",
  "storage-busy",
  "not-ready",
];

// What a server refused, by its stable code, or that it could not be reached.
export class Problem extends Refusal {
  /**
   * @param {number} server
   * @param {string} code
   * @param {string} detail
   */
  constructor(server, code, detail) {
    /** @param {string} text */
    const said = (text) => shownPlainly(text.slice(0, MOST_DETAIL));
    const words = { server, detail: said(detail), code: said(code) };
    super(WITHOUT_DOCUMENT.includes(code) ? code : "serverSays", words);
    this.server = server;
    this.code = code;
    this.again = WITHOUT_DOCUMENT.includes(code) || TRY_AGAIN.includes(code);
  }
}

/** @param {number} seconds */
const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

export class Sites {
  /**
   * @param {string[]} urls
   * @param {string} digest
   */
  constructor(urls, digest) {
    if (!urls.every(isAddress)) throw new Refusal("badCampaign", { field: "urls" });
    this.urls = urls;
    this.digest = digest;
    this.token = "";
    this.attempts = ATTEMPTS;
    this.wave = 0;
    /** @type {string[]} */
    this.states = [];
  }

  // The text of an answer that succeeded, perhaps not at once.
  /**
   * @param {number} server
   * @param {string} method
   * @param {string} [path]
   * @param {Uint8Array | undefined} [body]
   * @param {string | undefined} [type]
   */
  async call(server, method, path = "", body = undefined, type = undefined) {
    let step = FIRST_WAIT_S;
    for (let attempt = 1; ; attempt++) {
      const [text, problem, asked] = await this.once(server, method, path, body, type);
      if (!problem) return text;
      const most = problem.code === "silent" ? SILENT_ATTEMPTS : this.attempts;
      if (!problem.again || attempt >= most) throw problem;
      await pause(Math.max(step, asked));
      step = Math.min(2 * step, LONGEST_WAIT_S);
    }
  }

  /**
   * @param {number} server
   * @param {string} method
   * @param {string} path
   * @param {Uint8Array | undefined} body
   * @param {string | undefined} type
   * @returns {Promise<[string, null, number] | [null, Problem, number]>}
   */
  async once(server, method, path, body, type) {
    /** @type {Record<string, string>} */
    const headers = body === undefined ? {} : { Authorization: `Bearer ${this.token}`, "Content-Type": type ?? "" };
    // No cookie, no cache, no referrer, and no answer from anywhere else than asked.
    /** @type {RequestInit} */
    const how = { credentials: "omit", cache: "no-store", referrerPolicy: "no-referrer", redirect: "error" };
    const patience = body === undefined ? ASK_PATIENCE_MS : SEND_PATIENCE_MS + body.length / SLOWEST_BYTES_MS;
    const signal = AbortSignal.timeout(Math.round(patience));
    try {
      const answer = await fetch(this.urls[server] + path, { method, headers, body, signal, ...how });
      const text = await readAnswer(answer);
      if (text === null) return [null, new Problem(server, "not-an-answer", ""), 0];
      if (answer.ok) return [text, null, 0];
      const asked = /^[0-9]{1,6}$/.test(answer.headers.get("Retry-After") ?? "")
        ? Number(answer.headers.get("Retry-After"))
        : BUSY_WAIT_S;
      return [null, problemOf(server, text), Math.min(LONGEST_WAIT_S, asked)];
    } catch {
      return [null, new Problem(server, signal.aborted ? "silent" : "unreachable", ""), 0];
    }
  }

  // Both servers must describe the page's campaign, each as the server that it should be. Returns their states. A server
  // takes uploads for its open wave and the next one, so the later one is taken by both.
  async check() {
    /** @param {number} server */
    const ask = async (server) => checkAnswer(await this.call(server, "GET"), server, this.digest);
    const answers = await Promise.all([0, 1].map(ask));
    this.wave = Math.max(...answers.map((answer) => answer.wave));
    this.states = answers.map((answer) => answer.state);
    return answers;
  }
}

// An answer's text, or null if it is longer than any of ours.
/** @param {Response} answer */
async function readAnswer(answer) {
  const reader = answer.body?.getReader();
  const decoder = new TextDecoder();
  let [text, size] = ["", 0];
  for (;;) {
    const { done, value } = reader ? await reader.read() : { done: true, value: undefined };
    if (done || !value) return text + decoder.decode();
    size += value.length;
    if (size > MOST_BYTES) {
      await reader?.cancel();
      return null;
    }
    text += decoder.decode(value, { stream: true });
  }
}

/**
 * @param {number} server
 * @param {string} text
 */
export function problemOf(server, text) {
  try {
    const found = JSON.parse(text);
    if (typeof found.type === "string" && found.type.startsWith(URN)) {
      return new Problem(server, found.type.slice(URN.length), String(found.detail ?? ""));
    }
  } catch {
    // what is no document is no answer
  }
  return new Problem(server, "not-an-answer", "");
}
