// The page: what is shown when. The same script is the worker, where there is no document.

import { toBase64url } from "./bytes.js";
import { readCampaign } from "./campaign.js";
import { Refusal } from "./grid.js";
import { fill, histogramChart, sizeText } from "./preview.js";
import { sealedBytes } from "./sealed.js";
import { Sites } from "./sites.js";
import { TEXTS, say } from "./texts.js";
import { keepToken, takeToken } from "./token.js";
import { Upload } from "./upload.js";
import { Helper, runWorker } from "./worker.js";

const find = (id) => document.getElementById(id);
const show = (id, visible = true) => (find(id).hidden = !visible);

class Page {
  constructor(about, source) {
    const wanted = navigator.language.slice(0, 2);
    this.language = wanted in TEXTS ? wanted : "en";
    Object.assign(this, { about, token: takeToken(about.digest), placed: null, problem: null, ready: false });
    this.helper = new Helper(source);
    this.sites = new Sites(about.urls, about.digest);
  }

  say(key, more) {
    return say(this.language, key, more);
  }

  async start() {
    this.bind();
    try {
      this.campaign = readCampaign(this.about.campaign);
      if (toBase64url(this.campaign.digest) !== this.about.digest)
        throw new Refusal("badCampaign", { field: "digest" });
      this.render();
      await this.helper.ask("start", { campaign: this.about.campaign });
      this.upload = await Upload.open(this.campaign, this.sites, this.helper);
      await this.resume();
      await this.checkServers();
    } catch (error) {
      this.refuse(error);
      show("values", Boolean(this.upload)); // nothing is typed into a page that cannot send it
    }
  }

  // Before anything can be sent: both servers must describe the campaign of this page.
  async checkServers() {
    this.note("checking");
    const states = (await this.sites.check()).map((answer) => answer.state);
    this.ready = true;
    this.note(null);
    const closed = states.find((state) => state !== "open");
    if (closed) this.note("closed", { state: closed });
    this.update();
  }

  note(key, more) {
    this.noted = key && { key, more };
    show("before", Boolean(key));
    if (key) find("before").textContent = this.say(key, more);
  }

  refuse(error) {
    this.problem = error;
    this.note(null);
    show("problem");
    find("problem").textContent = this.explain(error);
    this.update();
  }

  explain(error) {
    if (!(error instanceof Refusal)) return this.say("internal", { detail: String(error) });
    const parts = [this.say(error.key, error.about)];
    if (error.after) parts.push(this.say(error.after));
    else if (!this.upload?.isOut) parts.push(this.say("refused"));
    return parts.join(" ");
  }

  // What was begun before the page was loaded.
  async resume() {
    const { upload } = this;
    if (upload.isComplete) return this.finished(upload.stored);
    if (!upload.isOut) return undefined;
    if (this.token && upload.pending) {
      this.note("resumed");
      return this.run(null);
    }
    this.note(upload.pending ? "resumeToken" : "unfinished", { count: upload.pending?.length });
    show("values", false);
    show("sending");
    find("agree").checked = true;
    return undefined;
  }

  bind() {
    find("language").onchange = (event) => {
      this.language = event.target.value;
      this.render();
    };
    for (const way of document.querySelectorAll("input[name=way]")) way.onchange = () => this.choose(way.value);
    find("one").onsubmit = (event) => {
      event.preventDefault();
      this.look(() => this.helper.ask("placeOne", { value: find("value").value, stratum: find("stratum").value }));
    };
    find("file").onchange = (event) => this.read(event.target.files[0]);
    for (const id of ["column", "stratum-column"]) find(id).onchange = () => this.lookAtFile();
    this.bindDrop();
    find("agree").onchange = find("token").oninput = () => this.update();
    find("send").onclick = () => this.run(this.placed?.positions ?? null);
    this.bindDone();
  }

  bindDrop() {
    const drop = find("drop");
    const stop = (event) => event.preventDefault();
    // A file dropped beside the field would be opened in the place of this page.
    for (const name of ["dragover", "drop"]) window.addEventListener(name, stop);
    drop.ondragenter = () => drop.classList.add("over");
    drop.ondragleave = () => drop.classList.remove("over");
    drop.ondrop = (event) => {
      drop.classList.remove("over");
      this.read(event.dataTransfer.files[0]);
    };
  }

  bindDone() {
    find("save").onclick = () => this.saveReceipt();
    find("withdraw").onclick = () => this.askSure("Withdraw", () => this.withdraw());
    find("forget").onclick = () => this.askSure("Forget", () => this.forget());
    find("no").onclick = () => show("sure", false);
  }

  // All texts, again: in another language, or when something is known that was not.
  render() {
    const { campaign, about } = this;
    document.documentElement.lang = find("language").value = this.language;
    for (const element of document.querySelectorAll("[data-text]"))
      element.textContent = this.say(element.dataset.text);
    const put = (id, text) => (find(id).textContent = text);
    put("title", campaign.title);
    put("question", campaign.question);
    put("promise", this.say("promise", { factor: Math.exp(campaign.totalEpsilon).toPrecision(2) }));
    show("many", campaign.max_instances > 1);
    put("many", this.say("many", { count: campaign.max_instances }));
    [0, 1].forEach((server) => put(`server${server}`, about.urls[server]));
    put("digest", about.digest);
    const { pooled, reserve } = campaign;
    const epsilon = { total: campaign.totalEpsilon, curve: campaign.epsilon, reserve, pooled };
    put("epsilon", this.say(pooled === null ? "epsilonValue" : "epsilonWaves", epsilon));
    const { grid, unit } = campaign;
    put(
      "scale",
      this.say("scaleValue", { size: grid.size, first: grid.label(0), last: grid.label(grid.size - 1), unit }),
    );
    put("strata", campaign.strata.join(", "));
    put("checked", this.say(campaign.checked ? "checkedYes" : "checkedNo"));
    put("value-label", unit ? this.say("valueLabelUnit", { unit }) : this.say("valueLabel"));
    find("value").type = grid.values === "date" ? "date" : "text";
    find("value").inputMode = grid.values === "integer" ? "numeric" : "decimal";
    fill(
      find("stratum"),
      campaign.strata.map((name) => [name, name]),
    );
    show("stratum-field", campaign.strata.length > 1);
    if (this.problem) put("problem", this.explain(this.problem));
    if (this.noted) this.note(this.noted.key, this.noted.more);
    if (this.placed) this.preview();
    if (this.doneText) this.finished(...this.doneText);
    this.update();
  }

  update() {
    const busy = !find("progress").hidden;
    show("token-field", !this.token);
    const token = this.token || find("token").value.trim();
    const going = Boolean(this.placed?.positions.length) || Boolean(this.upload?.isOut);
    find("send").disabled = busy || !(this.ready && going && find("agree").checked && token);
    const resuming = !this.placed && this.upload?.isOut;
    find("send").textContent = this.say(resuming ? "goOn" : "send");
    const count = this.placed?.positions.length ?? this.upload?.receipt.count;
    find("consent").textContent = this.say("consent", { count, epsilon: this.campaign?.totalEpsilon });
  }

  choose(way) {
    show("one", way === "one");
    show("file-way", way === "file");
    this.clear();
  }

  clear() {
    this.placed = null;
    for (const id of ["preview", "error", "sending"]) show(id, false);
    find("agree").checked = false;
    this.update();
  }

  async read(file) {
    if (!file) return;
    this.clear();
    show("columns", false);
    try {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
      const { names, rows } = await this.helper.ask("read", { text });
      if (!rows) throw new Refusal("noValues");
      this.header = names.length > 0;
      const options = this.header ? names.map((name, i) => [i, name]) : [[0, this.say("onlyColumn")]];
      fill(find("column"), options);
      fill(find("stratum-column"), options);
      this.guess(names);
      show("columns");
      show("stratum-column-field", this.campaign.strata.length > 1);
      await this.lookAtFile();
    } catch (error) {
      this.complain(error instanceof TypeError ? new Refusal("notUtf8") : error);
    }
  }

  // A first choice of columns: the group's is the last one, the values' the first.
  guess(names) {
    find("column").value = "0";
    find("stratum-column").value = String(Math.max(0, names.length - 1));
  }

  lookAtFile() {
    const stratum = this.campaign.strata.length > 1 ? Number(find("stratum-column").value) : null;
    const about = { column: Number(find("column").value), stratum, header: this.header };
    return this.look(() => this.helper.ask("place", about));
  }

  async look(place) {
    this.clear();
    try {
      const placed = await place();
      if (!placed.positions.length) throw new Refusal("noValues");
      this.placed = placed;
      this.preview();
      show("sending");
      this.update();
    } catch (error) {
      this.complain(error);
    }
  }

  complain(error) {
    show("error");
    find("error").textContent = this.explain(error);
  }

  preview() {
    const { positions, below, above, missing, histogram } = this.placed;
    const bytes = sizeText(sealedBytes(this.campaign, positions.length));
    find("counts").textContent = this.say("counts", { count: positions.length, below, above, missing, bytes });
    const texts = (key, more) => this.say(key, more);
    find("histogram").replaceChildren(histogramChart(this.campaign, histogram, positions.length, texts));
    show("preview");
  }

  // Send, or go on; what fails is said, and what had arrived is taken back.
  async run(positions) {
    const token = this.token || find("token").value.trim();
    for (const id of ["error", "problem", "values", "sending"]) show(id, false);
    this.problem = null;
    show("progress");
    this.update();
    const total = positions?.length ?? this.upload.receipt.count;
    const progress = (count) => {
      find("bar").value = count / total;
      find("progress-text").textContent = this.say("progressText", { done: count, count: total });
    };
    progress(0);
    try {
      const resumable = positions ?? this.upload.pending;
      if (resumable) this.finished(await this.upload.send(token, resumable, progress));
      else this.finished(await this.upload.withdraw(token), "withdrawnText");
      this.token = keepToken(this.about.digest, token);
      this.note(null);
    } catch (error) {
      show("values");
      show("sending", Boolean(this.placed) || this.upload.isOut);
      this.refuse(error);
    }
    show("progress", false);
    this.update();
  }

  finished(count, key = "doneText") {
    this.doneText = [count, key];
    const sent = key === "doneText";
    show("done");
    for (const id of ["values", "sending", "progress"]) show(id, !sent && id === "values");
    find("done-text").textContent = this.say(key, { count });
    find("receipt-text").textContent = sent ? this.say("receiptText") : "";
    for (const id of ["save", "withdraw", "forget"]) show(id, sent);
    show("sure", false);
    find("done-head").focus();
    if (!sent) this.clear();
  }

  async saveReceipt() {
    const text = JSON.stringify(this.upload.receipt.body);
    const link = Object.assign(document.createElement("a"), {
      href: URL.createObjectURL(new Blob([text], { type: "application/json" })),
      download: `${this.campaign.name}.receipt.json`,
    });
    link.click();
    URL.revokeObjectURL(link.href);
  }

  askSure(what, yes) {
    show("sure");
    show("withdraw-token-field", what === "Withdraw" && !this.token);
    find("sure-text").textContent = this.say(`sure${what}`, { count: this.upload.receipt.count });
    find("yes").textContent = this.say(`yes${what}`);
    find("yes").onclick = yes;
    find("yes").focus();
  }

  async withdraw() {
    find("yes").disabled = true;
    const token = this.token || find("withdraw-token").value.trim();
    try {
      const count = await this.upload.withdraw(token);
      this.token = keepToken(this.about.digest, token);
      show("problem", false);
      this.finished(count, "withdrawnText");
    } catch (error) {
      this.refuse(error);
    }
    find("yes").disabled = false;
  }

  async forget() {
    await this.upload.forget();
    this.doneText = null;
    show("done", false);
    show("values");
    this.clear();
  }
}

if (typeof document === "undefined") {
  runWorker();
} else {
  const page = new Page(JSON.parse(find("about").textContent), document.currentScript.textContent);
  page.start();
}
