// The analyst's console: which view is shown, with what, and what its address says.

import { htmlElement } from "../elements.js";
import { $, Address, ask, complain, selector } from "./shared.js";
import { viewOf } from "./views.js";
/** @import { View } from "./drawing.js" */

const RESIZE_MS = 200;

class AnalystPage {
  /** @param {any} about */
  constructor(about) {
    this.about = about;
    /** @type {string[]} */
    this.views = about.views;
    this.address = new Address({ view: this.views[0], interval: "population", confidence: "0.95" });
    this.turn = 0;
  }

  start() {
    const { about } = this;
    document.title = about.title;
    $("title").textContent = about.title;
    $("question").textContent = about.question;
    $("facts").textContent =
      `${about.n.toLocaleString("en")} values, epsilon ${about.epsilon} for the curve, ${about.total_epsilon} in all; of the reserve ${about.budget.remaining} of ${about.budget.reserve} remain. ${about.grid.size} thresholds from ${about.grid.first} to ${[about.grid.last, about.unit].join(" ").trim()}. Noise: ${about.mechanism}.`;
    $("promise").textContent = about.promise;
    $("digest").textContent = `digest ${about.digest}`;
    $("views").replaceChildren(...this.views.map((name) => this.tab(name)));
    $("link").onclick = () => this.copyLink();
    window.addEventListener("hashchange", () => {
      this.address.read();
      this.render();
    });
    let timer = 0;
    let width = innerWidth;
    window.addEventListener("resize", () => {
      if (innerWidth === width) return;
      width = innerWidth;
      clearTimeout(timer);
      timer = window.setTimeout(() => this.render(), RESIZE_MS);
    });
    this.render();
  }

  /** @param {string} name */
  tab(name) {
    const made = htmlElement("button", { type: "button", "data-view": name }, viewOf(name, this.about.titles)[0]);
    made.onclick = () => this.change({ view: name, zoom: "", hide: "" }, true);
    return made;
  }

  /** @param {Record<string, string>} changes */
  change(changes, focus = false) {
    this.address.set(changes);
    this.render(focus);
  }

  async copyLink() {
    $("copied").textContent = location.href;
    try {
      await navigator.clipboard.writeText(location.href);
      $("copied").textContent = "copied; it works while this console runs";
    } catch {
      // the link itself is shown instead
    }
  }

  // What was asked for by a view that is left already is not drawn any more.
  /**
   * @param {number} turn
   * @returns {View}
   */
  handle(turn) {
    const { about, address } = this,
      current = () => turn === this.turn;
    /** @type {Node[]} */
    const pictures = [];
    /** @type {Node[]} */
    const controls = [];
    /** @type {Node[]} */
    let cards = [];
    return {
      about,
      state: address.values,
      width: Math.max(300, $("pictures").clientWidth),
      change: (changes) => current() && this.change(changes),
      settle: (changes) => {
        if (!current()) return;
        address.set(changes, true);
        this.render();
      },
      show: (made) => controls.push(...made),
      read: (made) => (cards = made),
      draw: (made) => pictures.push(made),
      notes: (texts) =>
        pictures.push(...[...new Set(texts)].map((text) => htmlElement("p", { class: "panel warn" }, text))),
      finish: (common) => {
        if (!current()) return;
        const place = focusedPlace();
        $("reading").replaceChildren(...cards);
        $("controls").replaceChildren(...controls, ...common);
        $("pictures").replaceChildren(...pictures);
        place?.()?.focus({ preventScroll: true });
      },
    };
  }

  // Which intervals are drawn, where any are.
  /** @param {string} view */
  common(view) {
    if (view === "plan") return [];
    const { interval, confidence } = this.address.values;
    /** @type {[string, string][]} */
    const kinds = [
      ["population", "for the population"],
      ["noise", "for those who took part"],
    ];
    /** @type {[string, string][]} */
    const levels = ["0.8", "0.9", "0.95", "0.99"].map((x) => [x, `${100 * Number(x)} %`]);
    return [
      selector({ label: "Intervals", options: kinds, value: interval, onchange: (x) => this.change({ interval: x }) }),
      selector({
        label: "Confidence",
        options: levels,
        value: confidence,
        onchange: (x) => this.change({ confidence: x }),
      }),
    ];
  }

  async render(focus = false) {
    this.turn += 1;
    const turn = this.turn,
      { values } = this.address,
      view = this.views.includes(values.view) ? values.view : this.views[0];
    const [title, draw] = viewOf(view, this.about.titles);
    for (const button of $("views").children) {
      if (button.dataset.view === view) button.setAttribute("aria-current", "page");
      else button.removeAttribute("aria-current");
    }
    const other = $("view-title").textContent !== title;
    $("view-title").textContent = title;
    if (other) for (const id of ["controls", "reading", "pictures"]) $(id).replaceChildren();
    if (focus) $("view-title").focus();
    $("pictures").classList.add("busy");
    const handle = this.handle(turn);
    let problem = null;
    try {
      await draw(handle);
    } catch (error) {
      problem = error;
    }
    if (turn !== this.turn) return;
    complain(problem);
    handle.finish(this.common(view));
    $("pictures").classList.remove("busy");
  }
}

// Where the focus is, so that what is drawn anew in its place gets it: a control by its number, anything else by its key.
/** @returns {(() => any) | null} */
function focusedPlace() {
  const active = document.activeElement;
  const field = active?.closest("#controls .field, #controls fieldset");
  if (field) {
    const number = [...$("controls").children].indexOf(field);
    const within = [...field.querySelectorAll("input, select")].indexOf(/** @type {Element} */ (active));
    return () => $("controls").children[number]?.querySelectorAll("input, select")[within];
  }
  if (!active?.closest("#pictures")) return null;
  if (active.hasAttribute("data-series"))
    return () => document.querySelector(`#pictures [data-series="${active.getAttribute("data-series")}"]`);
  if (active.matches(".cross, .whole")) return () => document.querySelector("#pictures .cross");
  return null;
}

ask("campaign").then((about) => new AnalystPage(about).start(), complain);
