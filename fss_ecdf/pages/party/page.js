// What the party's page does: each method is something a person or a server does, and ends in one transition of states.js.

import { toBase64url } from "./bytes.js";
import { readCampaign } from "./campaign.js";
import { emptyForm } from "./form.js";
import { Refusal } from "./grid.js";
import { asRefusal, closedReason, outcomeOf } from "./outcomes.js";
import { saveFile } from "./parts.js";
import { placeTyped, rangeOf } from "./placing.js";
import { say, wantedLanguage } from "./saying.js";
import { render } from "./screens.js";
import { Sites } from "./sites.js";
import { FIRST_STATE, isPossible, nextState } from "./states.js";
import { invitationToken, rememberToken, rememberedToken } from "./token.js";
import { Upload } from "./upload.js";
import { Helper } from "./worker.js";
/** @import { Campaign } from "./campaign.js" */
/** @import { Placed, ReadFile } from "./records.js" */

/** @typedef {{ campaign: string, digest: string, urls: string[], organiser?: string, contact?: string }} About */
/** @typedef {{ token: string, agreed: boolean }} Typed */
/** @typedef {Record<string, any>} Data what a state's screen shows besides the page's own fields */

const SLOW_MS = 4000;

/** @type {Record<string, string>} how withdrawing is left, by where it was begun */
const LEFT = { done: "keep", failed: "leave", closed: "abandon" };

/** @returns {any} */
const unset = () => null;

export class Page {
  /**
   * @param {About} about
   * @param {string} source
   */
  constructor(about, source) {
    this.about = about;
    this.source = source;
    this.state = FIRST_STATE;
    /** @type {Data} */
    this.data = {};
    this.form = emptyForm();
    /** @type {Placed | null} */
    this.placed = null;
    /** @type {ReadFile | null} */
    this.file = null;
    /** @type {{ numbers: number[], any: boolean, pending: boolean }} */
    this.kept = { numbers: [], any: false, pending: false };
    // None of these is there before `open` has set it: screens of earlier states look first.
    /** @type {Upload} */
    this.upload = unset();
    /** @type {Campaign} */
    this.campaign = unset();
    /** @type {Sites} */
    this.sites = unset();
    /** @type {Helper} */
    this.helper = unset();
    this.opened = "";
    this.mine = ""; // the name of a receipt whose token was mistyped by whoever sends now
    this.isPersisted = false;
    this.language = wantedLanguage(navigator.languages ?? [navigator.language]);
    this.token = invitationToken() || rememberedToken(about.digest);
    rememberToken(about.digest, this.token);
  }

  /**
   * @param {string} key
   * @param {Record<string, unknown>} [more]
   */
  say(key, more) {
    return say(this.language, key, more);
  }

  // The only way from one state to another.
  /**
   * @param {string} event
   * @param {Data} [data]
   */
  move(event, data = {}) {
    const from = this.state;
    Object.assign(this, { state: nextState(from, event), data });
    document.body.dataset.move = `${from} ${event} ${this.state}`;
    render(this, event !== "learnt");
  }

  /** @param {string} language */
  speak(language) {
    this.language = language;
    render(this, false);
  }

  async start() {
    // A file dropped beside its place would be opened instead of this page.
    for (const name of ["dragover", "drop"]) window.addEventListener(name, (event) => event.preventDefault());
    window.addEventListener("hashchange", () => this.invited(invitationToken()));
    render(this, false);
    await this.load();
  }

  // Everything that must hold before somebody is asked for a value.
  /** @param {number | null} [number] */
  async load(number = null) {
    try {
      await this.open();
      await this.upload.select(this.token, number);
      this.kept = await this.upload.kept(this.token);
      if (this.upload.isComplete) this.finished();
      else await this.ask();
    } catch (error) {
      this.refuse(error);
    }
  }

  async open() {
    if (this.upload) return;
    this.campaign ??= readCampaign(this.about.campaign);
    if (toBase64url(this.campaign.digest) !== this.about.digest) throw new Refusal("badCampaign", { field: "digest" });
    this.sites ??= new Sites(this.about.urls, this.about.digest);
    this.helper = new Helper(this.source);
    await this.helper.start(this.about.campaign);
    this.upload = await Upload.open(this.campaign, this.sites, this.helper);
  }

  // Both servers must describe the campaign of this page.
  async ask() {
    render(this, false);
    const slow = setTimeout(() => {
      this.data = { slow: true };
      render(this, false);
    }, SLOW_MS);
    try {
      await this.sites.check();
    } finally {
      clearTimeout(slow);
    }
    const { upload } = this;
    const closed = closedReason(this.campaign, this.sites.states);
    if (closed) this.move("shut", closed);
    else if (upload.isOut && upload.pending) await this.run("interrupted", null);
    else if (upload.isOut) this.move("halted", { after: "unfinished", halted: true });
    else this.move("opened");
  }

  finished() {
    this.move("finished", { count: this.upload.stored });
    this.learn();
  }

  // Whether what was sent can still be withdrawn; a server that is away does not matter here.
  async learn() {
    try {
      await this.sites.check();
      const closed = closedReason(this.campaign, this.sites.states);
      if (closed && this.state === "done") this.move("learnt", { ...this.data, closed });
    } catch {
      // withdrawing asks again
    }
  }

  /** @param {string} token */
  invited(token) {
    if (!token || token === this.token) return;
    if (!isPossible(this.state, "invited")) {
      this.opened = token; // what is being sent comes to its end first
      return;
    }
    this.change(token);
    this.move("invited");
    this.load();
  }

  /** @param {string} token */
  change(token) {
    Object.assign(this, { token, opened: "", mine: "", form: emptyForm(), placed: null });
    rememberToken(this.about.digest, token);
  }

  retry() {
    this.move("retry");
    return this.load();
  }

  // An earlier contribution from this device, by its invitation's token or its number.
  /**
   * @param {string} token
   * @param {number | null} [number]
   */
  recall(token, number = null) {
    if (token) this.change(token);
    this.move("recall");
    this.load(number);
  }

  /** @param {string} way */
  begin(way) {
    this.form.way = way;
    this.move("begin");
  }

  /** @param {string} way */
  changeWay(way) {
    this.form = emptyForm(way);
    this.move("noted");
  }

  // One value as it was typed: placed, or an error at its field.
  /** @param {boolean} [allowed] */
  review(allowed = false) {
    try {
      this.placed = placeTyped(this.campaign, this.form, this.language, allowed);
      this.move("placed");
    } catch (error) {
      this.note(error);
    }
  }

  // An error of what was entered, at its field.
  /** @param {unknown} error */
  note(error) {
    const known = asRefusal(error);
    if (known.key === "manyOff") Object.assign(known.about, rangeOf(this.campaign));
    this.move("noted", { error: known, file: this.data.file });
  }

  // What would be sent, once it was placed.
  get reviewed() {
    if (!this.placed) throw new Error("nothing was placed");
    return this.placed;
  }

  // Something is missing for sending: shown at its field.
  /**
   * @param {Typed} typed
   * @param {string} missing
   */
  lacking(typed, missing) {
    this.move("lacked", { typed, missing });
  }

  // Back to what was entered: what was placed is gone, so that only what is reviewed again can be sent.
  edit() {
    this.placed = null;
    this.move("edit", this.form.way === "file" ? { file: this.file } : {});
  }

  // The token of this page or, where there is none, the one that was typed. Its receipt may know of an upload already:
  // then that is shown, and nothing is sent.
  /** @param {string} typed */
  async admit(typed) {
    if (this.token) return true;
    this.token = typed;
    rememberToken(this.about.digest, typed);
    await this.upload.select(typed);
    if (!this.upload.isComplete) return true;
    this.finished();
    return false;
  }

  // Send what was reviewed, or go on with what was begun.
  /**
   * @param {string} event
   * @param {string} [typed]
   */
  async send(event, typed = "") {
    try {
      if (!(await this.admit(typed))) return;
    } catch (error) {
      this.refuse(error);
      return;
    }
    await this.run(event, this.placed?.positions ?? null);
  }

  /**
   * @param {string} event
   * @param {Float64Array | null} positions
   */
  async run(event, positions) {
    const count = positions?.length ?? this.upload.receipt.count;
    this.move(event, { count, stored: 0, resumed: event === "interrupted" });
    this.persist();
    /** @param {number} stored */
    const progress = (stored) => {
      this.data.stored = stored;
      render(this, false);
    };
    try {
      const sent = await this.upload.send(this.token, positions, progress);
      this.placed = null;
      this.move("stored", { count: sent });
    } catch (error) {
      const known = asRefusal(error);
      if (known.key !== "earlier") this.refuse(known);
      else {
        this.move("doubted");
        if (this.mine) await this.withdrawEarlier();
      }
    }
  }

  // The unfinished upload is somebody else's, who uses this device, too.
  shareDevice() {
    this.upload.sharesDevice = true;
    return this.run("others", this.reviewed.positions);
  }

  // It is the same person's: all that is unfinished, or what was sent with a token that was mistyped a moment ago.
  async withdrawEarlier() {
    const name = this.mine;
    this.mine = "";
    this.move("mine", { working: true });
    try {
      await this.upload.withdrawEarlier(this.token, name);
      await this.run("cleared", this.reviewed.positions);
    } catch (error) {
      this.refuse(error);
    }
  }

  // The browser may ask the person; nothing waits for the answer.
  async persist() {
    try {
      this.isPersisted = await navigator.storage.persist();
    } catch {
      return;
    }
    if (this.state === "done") render(this, false);
  }

  askWithdraw() {
    const count = this.upload.receipt.count;
    this.move("withdraw", { from: this.state, before: this.data, count });
  }

  keep() {
    const { from, before } = this.data;
    this.move(LEFT[from], before);
  }

  async withdraw() {
    this.move("confirm", { ...this.data, working: true });
    try {
      const count = await this.upload.withdraw(this.token);
      this.placed = null;
      this.move("erased", { count, erased: true });
    } catch (error) {
      this.refuse(error);
    }
  }

  again() {
    this.form = emptyForm(this.form.way);
    this.move("again");
  }

  // Where all parties share one token, the next person gets a receipt of their own; elsewhere, their own invitation.
  async another() {
    this.move("another");
    try {
      if (this.campaign.admission !== "open") this.change("");
      else {
        await this.upload.selectNext(this.token);
        this.change(this.token);
      }
    } catch (error) {
      this.refuse(error);
      return;
    }
    await this.load();
  }

  async forget() {
    await this.upload.forget();
    this.move("forgot");
    await this.load();
  }

  /** @param {unknown} error */
  refuse(error) {
    const known = asRefusal(error);
    const retyped = known.code === "not-authenticated" && Boolean(this.placed || !this.upload.isOut);
    if (retyped) {
      // Another token can be typed. Whoever said that this one is unknown may have stored the upload.
      this.token = "";
      this.mine = this.upload.isOut ? this.upload.store.name : "";
      rememberToken(this.about.digest, "");
    }
    const after = retyped && this.mine ? "withdrawnFirst" : outcomeOf(this.upload, known);
    this.move("refused", { error: known, after, retyped });
  }

  saveReceipt() {
    saveFile(`${this.campaign.name}.receipt.json`, JSON.stringify(this.upload.receipt.body));
  }
}
