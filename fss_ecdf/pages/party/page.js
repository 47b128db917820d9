// What the party's page does: each method is something a person or a server does, and ends in one transition of states.js.

import { toBase64url } from "./bytes.js";
import { readCampaign } from "./campaign.js";
import { Refusal } from "./grid.js";
import { asRefusal, outcomeOf } from "./outcomes.js";
import { saveFile } from "./parts.js";
import { placeTyped, rangeOf } from "./placing.js";
import { say, wantedLanguage } from "./saying.js";
import { render } from "./screens.js";
import { Sites } from "./sites.js";
import { FIRST_STATE, isPossible, nextState } from "./states.js";
import { invitationToken, rememberToken, rememberedToken } from "./token.js";
import { Upload } from "./upload.js";
import { Helper } from "./worker.js";

const SLOW_MS = 4000;
const emptyForm = (way = "one") => ({ way, value: "", stratum: "", column: null, groupColumn: null, allowed: false });

export class Page {
  constructor(about, source) {
    Object.assign(this, { about, source, state: FIRST_STATE, data: {}, form: emptyForm(), placed: null });
    Object.assign(this, { upload: null, campaign: null, opened: "", isPersisted: false });
    this.language = wantedLanguage(navigator.languages ?? [navigator.language]);
    this.token = invitationToken() || rememberedToken(about.digest);
    rememberToken(about.digest, this.token);
  }

  say(key, more) {
    return say(this.language, key, more);
  }

  // The only way from one state to another.
  move(event, data = {}) {
    const from = this.state;
    Object.assign(this, { state: nextState(from, event), data });
    document.body.dataset.move = `${from} ${event} ${this.state}`;
    render(this, event !== "learnt");
  }

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
    const closed = this.closing();
    if (closed) this.move("shut", closed);
    else if (upload.isOut && upload.pending) await this.run("interrupted", null);
    else if (upload.isOut) this.move("halted", { after: "unfinished", halted: true });
    else this.move("opened");
  }

  // Why the campaign takes nothing at this moment, or null.
  closing() {
    const { states } = this.sites,
      { opens, closes } = this.campaign,
      now = Date.now();
    if (states.includes("sealed") || states.includes("checking")) return { why: "campaign-sealed", sealed: true };
    if (opens && now < opens) return { why: "closedNotYet", time: opens };
    if (closes && now >= closes) return { why: "closedSince", time: closes };
    return states.some((state) => state !== "open") ? { why: "closedFrozen" } : null;
  }

  finished() {
    this.move("finished", { count: this.upload.stored });
    this.learn();
  }

  // Whether what was sent can still be withdrawn; a server that is away does not matter here.
  async learn() {
    try {
      await this.sites.check();
      const closed = this.closing();
      if (closed && this.state === "done") this.move("learnt", { ...this.data, closed });
    } catch {
      // withdrawing asks again
    }
  }

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

  change(token) {
    Object.assign(this, { token, opened: "", form: emptyForm(), placed: null });
    rememberToken(this.about.digest, token);
  }

  retry() {
    this.move("retry");
    return this.load();
  }

  // An earlier contribution from this device, by its invitation's token or its number.
  recall(token, number = null) {
    if (token) this.change(token);
    this.move("recall");
    this.load(number);
  }

  begin(way) {
    this.form.way = way;
    this.move("begin");
  }

  changeWay(way) {
    this.form = emptyForm(way);
    this.move("noted");
  }

  // One value as it was typed: placed, or an error at its field.
  review(allowed = false) {
    try {
      this.placed = placeTyped(this.campaign, this.form, this.language, allowed);
      this.move("placed");
    } catch (error) {
      this.note(error);
    }
  }

  // An error of what was entered, at its field.
  note(error) {
    const known = asRefusal(error);
    if (known.key === "manyOff") Object.assign(known.about, rangeOf(this.campaign));
    this.move("noted", { error: known, file: this.data.file });
  }

  async readFile(file) {
    if (!file) return;
    this.form = emptyForm("file");
    this.move("noted", { reading: true });
    try {
      const bytes = await file.arrayBuffer().then(
        (found) => new Uint8Array(found),
        () => null,
      );
      if (!bytes) throw new Refusal("unreadableFile");
      await this.showColumns({ bytes }, file.name);
    } catch (error) {
      if (this.state === "enter") this.note(error);
    }
  }

  async renameColumns(header) {
    try {
      await this.showColumns({ header }, this.data.file.name);
    } catch (error) {
      if (this.state === "enter") this.note(error);
    }
  }

  async showColumns(about, name) {
    const found = await this.helper.ask("read", about);
    if (this.state !== "enter") return; // the person has gone elsewhere
    if (found.columns.length === 1) this.form.column = 0;
    this.move("noted", { file: { ...found, name } });
  }

  async reviewFile() {
    const { form, campaign } = this;
    const file = this.data.file;
    try {
      if (form.column === null) throw new Refusal("noColumn");
      const several = campaign.strata.length > 1;
      if (several && form.groupColumn === null) throw new Refusal("noGroupColumn");
      if (several && form.groupColumn === form.column) throw new Refusal("sameColumn");
      const about = { column: form.column, stratum: several ? form.groupColumn : null, allowed: form.allowed };
      this.placed = await this.helper.ask("place", { ...about, header: file.header });
      this.file = file;
      if (this.state === "enter") this.move("placed");
    } catch (error) {
      if (this.state === "enter") this.note(error);
    }
  }

  // Something is missing for sending: shown at its field.
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
  async send(event, typed = "") {
    try {
      if (!(await this.admit(typed))) return;
    } catch (error) {
      this.refuse(error);
      return;
    }
    await this.run(event, this.upload.isOut ? null : this.placed.positions);
  }

  async run(event, positions) {
    const count = positions?.length ?? this.upload.receipt.count;
    this.move(event, { count, stored: 0, resumed: event === "interrupted" });
    this.persist();
    const progress = (stored) => {
      this.data.stored = stored;
      render(this, false);
    };
    try {
      const sent = await this.upload.send(this.token, positions, progress);
      this.placed = null;
      this.move("stored", { count: sent });
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
    this.move({ done: "keep", failed: "leave", closed: "abandon" }[from], before);
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

  refuse(error) {
    const known = asRefusal(error);
    if (known.code === "not-authenticated" && !this.upload.isOut) {
      this.token = ""; // another one can be typed
      rememberToken(this.about.digest, "");
    }
    this.move("refused", { error: known, after: outcomeOf(this.upload, known) });
  }

  saveReceipt() {
    saveFile(`${this.campaign.name}.receipt.json`, JSON.stringify(this.upload.receipt.body));
  }
}
