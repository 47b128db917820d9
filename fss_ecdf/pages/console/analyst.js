// The analyst's console: which view is shown, with what, and what its address says.

import { htmlElement } from "../elements.js";
import { $, Address, ask, complain, selector } from "./shared.js";
import { viewOf } from "./views.js";

class AnalystPage {
  constructor(about) {
    this.about = about;
    this.address = new Address({ view: about.views[0], interval: "population", confidence: "0.95" });
    if (!about.views.includes(this.address.values.view)) this.address.set({ view: about.views[0] });
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
    $("views").replaceChildren(...about.views.map((name) => this.tab(name)));
    $("link").onclick = () => this.copyLink();
    window.addEventListener("hashchange", () => this.follow());
    this.render();
  }

  tab(name) {
    const made = htmlElement("button", { type: "button", "data-view": name }, viewOf(name, this.about.titles)[0]);
    made.onclick = () => this.change({ view: name }, true);
    return made;
  }

  follow() {
    this.address = new Address({ view: this.about.views[0], interval: "population", confidence: "0.95" });
    this.render();
  }

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

  // What a view may do with the page. What was asked for by a view that is left already is not drawn any more.
  handle(turn) {
    const { about, address } = this,
      current = () => turn === this.turn;
    const pictures = [],
      controls = [];
    const put = (id, children) => current() && $(id).replaceChildren(...children);
    return {
      about,
      state: address.values,
      width: Math.min(820, Math.max(320, innerWidth - 32)),
      change: (changes) => current() && this.change(changes),
      show: (made, reading) => {
        controls.push(...made);
        if (reading.length) put("reading", reading);
      },
      read: (made) => put("reading", made),
      draw: (made) => pictures.push(made),
      notes: (texts) =>
        pictures.push(...[...new Set(texts)].map((text) => htmlElement("p", { class: "panel warn" }, text))),
      finish: (common) => {
        const focused = document.activeElement?.closest("#controls .field, #controls fieldset");
        const place = focused ? [...$("controls").children].indexOf(focused) : -1;
        put("controls", [...controls, ...common]);
        put("pictures", pictures);
        if (place >= 0 && current()) $("controls").children[place]?.querySelector("input, select")?.focus();
      },
    };
  }

  // Which intervals are drawn, where any are.
  common(view) {
    if (view === "plan") return [];
    const { interval, confidence } = this.address.values;
    const kinds = [
      ["population", "for the population"],
      ["noise", "for those who took part"],
    ];
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
      { view } = this.address.values;
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
    try {
      await draw(handle);
      if (turn !== this.turn) return;
      complain(null);
      handle.finish(this.common(view));
    } catch (error) {
      if (turn !== this.turn) return;
      complain(error);
      handle.finish(this.common(view));
    }
    $("pictures").classList.remove("busy");
  }
}

ask("campaign").then((about) => new AnalystPage(about).start(), complain);
