// What both consoles' pages share: asking the program, saying what went wrong, keeping the view in the address.

import { csvOf, download, standalone, tableOf } from "../charts.js";
import { htmlElement } from "../elements.js";

export const $ = (id) => document.getElementById(id);

export class Trouble extends Error {}

async function answered(response) {
  const found = await response.json().catch(() => ({ detail: "the console's program answered something else" }));
  if (!response.ok) throw new Trouble(found.detail ?? found.title ?? `status ${response.status}`);
  return found;
}

async function reached(asking) {
  try {
    return await asking;
  } catch {
    throw new Trouble("The console's program does not answer. Was it ended?");
  }
}

export async function ask(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== "" && one != null) query.append(name, one);
  }
  return answered(await reached(fetch(`/api/${path}?${query}`)));
}

// What changes something has a header that no other site's form can send.
export async function tell(path, body) {
  const how = {
    method: "POST",
    headers: { "X-Fss-Console": "1", "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  return answered(await reached(fetch(`/api/${path}`, how)));
}

export function complain(error) {
  $("problem").hidden = !error;
  $("problem").textContent = error ? (error instanceof Trouble ? error.message : `The page failed: ${error}`) : "";
}

// The view as the address's fragment: a link restores it, and no server sees it.
export class Address {
  constructor(defaults) {
    this.values = { ...defaults, ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))) };
  }

  set(changes) {
    Object.assign(this.values, changes);
    const kept = Object.entries(this.values).filter(([, value]) => value !== "" && value != null);
    history.replaceState(null, "", `#${new URLSearchParams(kept)}`);
  }
}

// A picture as SVG, PNG and CSV, each a button below it.
export function withExports(figure, name, table) {
  const picture = figure.querySelector("svg");
  const button = (text, act) => {
    const made = htmlElement("button", { type: "button" }, text);
    made.onclick = act;
    return made;
  };
  const row = htmlElement(
    "div",
    { class: "exports", role: "group", "aria-label": `Save: ${name}` },
    button("SVG", () => download(`${name}.svg`, "image/svg+xml", standalone(picture))),
    button("PNG", () => savePng(picture, name)),
    button("CSV", () => download(`${name}.csv`, "text/csv", csvOf(table))),
  );
  figure.append(row);
  return figure;
}

function savePng(picture, name) {
  const address = URL.createObjectURL(new Blob([standalone(picture)], { type: "image/svg+xml" }));
  const image = new Image();
  image.onload = () => {
    const { width, height } = picture.viewBox.baseVal;
    const canvas = htmlElement("canvas", { width: 2 * width, height: 2 * height });
    canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
    canvas.toBlob((blob) => download(`${name}.png`, "image/png", blob));
    URL.revokeObjectURL(address);
  };
  image.src = address;
}

let fields = 0;

// A labelled slider with what it says beside it. `onchange` hears the number.
export function slider({ label, min, max, step = 1, value, say = String, onchange }) {
  fields += 1;
  const input = htmlElement("input", { type: "range", id: `field-${fields}`, min, max, step });
  input.value = value;
  const output = htmlElement("output", { for: input.id });
  const told = () => {
    output.textContent = say(Number(input.value));
    input.setAttribute("aria-valuetext", output.textContent);
  };
  told();
  let timer;
  input.oninput = () => {
    told();
    clearTimeout(timer);
    timer = setTimeout(() => onchange(Number(input.value)), 120);
  };
  const words = htmlElement("label", { for: input.id }, `${label}: `, output);
  const made = htmlElement("div", { class: "field" }, words, input);
  made.input = input;
  return made;
}

export function selector({ label, options, value, onchange }) {
  fields += 1;
  const select = htmlElement("select", { id: `field-${fields}` });
  select.append(...options.map(([key, text]) => new Option(text, key)));
  select.value = value;
  select.onchange = () => onchange(select.value);
  return htmlElement("div", { class: "field" }, htmlElement("label", { for: select.id }, label), select);
}

export function checkboxes({ label, options, chosen, onchange }) {
  const boxes = options.map((name) => {
    const box = htmlElement("input", { type: "checkbox", value: name });
    box.checked = chosen.includes(name);
    box.onchange = () => onchange(boxes.filter((b) => b.checked).map((b) => b.value));
    return box;
  });
  const rows = boxes.map((box) => htmlElement("label", { class: "choice" }, box, box.value));
  return htmlElement("fieldset", {}, htmlElement("legend", {}, label), ...rows);
}

// Sliders can be moved on the picture too: press and drag, or click. Of several handles, each { input, to, place } with
// what a place on the picture means and how far the handle is from it, the nearest one moves. A view is drawn anew while
// somebody drags, so what moves is the handle of that number on the picture that is shown now.
let dragged = null;
let latest = []; // of the newest picture, which may not be on the page yet, and of the one before

export function draggable(figure, ...handles) {
  const picture = figure.querySelector("svg");
  figure.classList.add("draggable");
  const at = (event) => {
    const box = picture.getBoundingClientRect(),
      view = picture.viewBox.baseVal;
    return [
      ((event.clientX - box.left) / box.width) * view.width,
      ((event.clientY - box.top) / box.height) * view.height,
    ];
  };
  const mine = {
    isShown: () => picture.isConnected,
    away: (event) => handles.map(({ place }) => (place ? place(figure.scales, ...at(event)) : 0)),
    move: (event) => {
      const { input, to } = handles[dragged] ?? handles[0];
      input.value = to(figure.scales, ...at(event));
      input.dispatchEvent(new Event("input"));
    },
  };
  latest = [mine, ...latest.slice(0, 1)];
  picture.onpointerdown = (event) => {
    const away = mine.away(event);
    dragged = away.indexOf(Math.min(...away));
    mine.move(event);
  };
  return figure;
}

window.addEventListener("pointermove", (event) => {
  if (dragged !== null) latest.find((picture) => picture.isShown())?.move(event);
});
for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, () => (dragged = null));

// A table without a picture, open or folded, with all its digits as a file.
export function tableWithExport(table, name, open = false) {
  const made = tableOf(table);
  made.open = open;
  const save = htmlElement("button", { type: "button", "aria-label": `Save ${table.name} as CSV` }, "CSV");
  save.onclick = () => download(`${name}.csv`, "text/csv", csvOf(table));
  made.append(htmlElement("div", { class: "exports" }, save));
  return made;
}

// Columns as a table of rows.
export function rowsOf(columns, names = Object.keys(columns)) {
  const height = names.length ? columns[names[0]].length : 0;
  const rows = Array.from({ length: height }, (_, i) => names.map((name) => columns[name][i]));
  return { columns: names, rows };
}
