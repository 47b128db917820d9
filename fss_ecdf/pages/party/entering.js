// The screen on which a person enters a value, or chooses a file and its columns.

import { readFile, renameColumns, reviewFile } from "./files.js";
import { shownNumber } from "./numbers.js";
import { actions, button, choices, errorText, field, foreign, notice, paragraph, piece, tickBox } from "./parts.js";
/** @import { Refusal } from "./grid.js" */
/** @import { Page } from "./page.js" */
/** @import { Profile, ReadFile } from "./records.js" */

/**
 * @param {Page} page
 * @param {string} label
 */
export const withUnit = (page, label) => `${shownNumber(label, page.language)} ${page.campaign.variable.unit}`.trim();

/** @typedef {(column: Profile) => [text: string, percent: number]} Fit */

const VALUE_ERRORS = ["noValue", "badNumber", "badInteger", "badDate", "ambiguousNumber", "offScale"];

/** @param {Page} page */
export const entering = (page) => (page.form.way === "file" ? enteringFile(page) : enteringOne(page));

/** @param {Page} page */
function enteringOne(page) {
  const { campaign, form, data } = page,
    { strata } = campaign,
    { grid, unit } = campaign.variable,
    { error } = data;
  const text = error && page.say(error.key, error.about);
  const atValue = error && VALUE_ERRORS.includes(error.key);
  const range = {
    first: shownNumber(grid.label(0), page.language),
    last: shownNumber(grid.label(grid.size - 1), page.language),
    unit,
  };
  /** @type {Record<string, Record<string, string>>} */
  const kinds = { date: { type: "date" }, integer: { inputmode: "numeric" }, float: { inputmode: "decimal" } };
  const least = grid.threshold(0);
  // A phone's number keys often have no minus.
  const keys = least < 0 && grid.values !== "date" ? { inputmode: "text" } : kinds[grid.values];
  const value = field({
    id: "value",
    label: unit ? page.say("valueLabelUnit", { unit }) : page.say("valueLabel"),
    hint: page.say("rangeHint", range).trim(),
    error: atValue ? text : "",
    attributes: { class: "large", enterkeyhint: "next", ...keys },
    value: form.value,
    oninput: ({ target }) => (form.value = target.value),
  });
  const groups = choices({
    name: "stratum",
    legend: page.say("group"),
    cards: strata.map((name, i) => [i, foreign("span", name)]),
    chosen: form.stratum === "" ? null : form.stratum,
    error: error?.key === "noGroup" ? text : "",
    onchoose: (number) => (form.stratum = String(number)),
  });
  const elsewhere = error && !atValue && error.key !== "noGroup";
  const made = piece(
    "form",
    { id: "one", novalidate: "" },
    value,
    ...(error?.end === undefined ? [] : [useEnd(page, error.end)]),
    ...(strata.length > 1 ? [groups] : []),
    ...(elsewhere ? [notice("bad", errorText("error", text))] : []),
    actions(
      piece("button", { id: "review-button", class: "primary", type: "submit" }, page.say("look")),
      button("back", page.say("back"), () => page.move("back")),
    ),
  );
  made.onsubmit = (event) => {
    event.preventDefault();
    page.review();
  };
  const first = error?.key === "noGroup" ? "stratum-0" : atValue ? "value" : null;
  return {
    head: page.say("enterHead"),
    focus: first ?? (error ? "error" : "value"),
    body: [
      foreign("p", campaign.question, { id: "question" }),
      made,
      actions(button("way-file", page.say("beginFile"), () => page.changeWay("file"), "link")),
    ],
  };
}

// A value off the scale is sent as the scale's end only where the person says so.
/**
 * @param {Page} page
 * @param {number} end
 */
const useEnd = (page, end) =>
  button("use-end", page.say("useEnd", { end: withUnit(page, page.campaign.variable.grid.label(end)) }), () =>
    page.review(true),
  );

/** @param {Page} page */
function enteringFile(page) {
  const { data } = page,
    { file, reading, error } = data;
  return {
    head: page.say("fileHead"),
    focus: error ? "error" : undefined,
    body: [
      dropPlace(page, Boolean(file)),
      ...(reading ? [paragraph(page.say("reading"), { role: "status" })] : []),
      ...(error ? [fileErrors(page, error)] : []),
      ...(file ? columnChoices(page, file) : []),
      actions(
        file && button("review-button", page.say("look"), () => reviewFile(page), "primary"),
        button("back", page.say("back"), () => page.move("back")),
      ),
      actions(button("way-one", page.say("byHand"), () => page.changeWay("one"), "link")),
    ],
  };
}

/**
 * @param {Page} page
 * @param {Refusal} error
 */
function fileErrors(page, error) {
  /** @type {{ wrong?: { row: number, key: string, value: string }[] }} */
  const { wrong = [] } = error.about;
  const lines = wrong.map(({ row, key, value }) =>
    piece("li", {}, page.say("inRow", { row: String(row), what: page.say(key, { value }) })),
  );
  return notice(
    "bad",
    piece("p", { id: "error", tabindex: "-1", role: "alert" }, page.say(error.key, error.about)),
    ...(lines.length ? [piece("ul", {}, ...lines)] : []),
    ...(error.key === "manyOff"
      ? [tickBox("allow", page.say("allowEnds"), page.form.allowed, (checked) => (page.form.allowed = checked))]
      : []),
  );
}

/**
 * @param {Page} page
 * @param {boolean} chosen
 */
function dropPlace(page, chosen) {
  const input = piece("input", {
    type: "file",
    id: "file",
    accept: ".csv,.txt,.tsv,text/csv,text/plain",
    class: "visually-hidden",
  });
  input.onchange = () => {
    const found = input.files?.[0];
    input.value = ""; // so that the same file, corrected, can be chosen again
    readFile(page, found);
  };
  const drop = piece(
    "div",
    { id: "drop" },
    input,
    piece("label", { class: "button", for: "file" }, page.say(chosen ? "otherFile" : "chooseFile")),
    paragraph(page.say("dropHere"), { class: "soft" }),
  );
  drop.ondragenter = () => drop.classList.add("over");
  drop.ondragleave = () => drop.classList.remove("over");
  drop.ondrop = (event) => readFile(page, event.dataTransfer?.files[0]);
  return drop;
}

/**
 * @param {Page} page
 * @param {ReadFile} file
 */
function columnChoices(page, file) {
  const { form, campaign } = page;
  /**
   * @param {Fit} fit
   * @returns {(column: Profile, number: number) => [number, ...Node[]]}
   */
  const card = (fit) => (column, number) => [
    number,
    foreign("strong", column.name || page.say("columnNumber", { number: number + 1 })),
    piece("span", { class: "soft samples", lang: "", dir: "auto" }, column.samples.join(" · ") || "–"),
    piece(
      "span",
      { class: `fit${fit(column)[1] < 95 ? " low" : ""}` },
      page.say(fit(column)[0], { percent: fit(column)[1] }),
    ),
  ];
  /**
   * @param {string} name
   * @param {"column" | "groupColumn"} key
   * @param {string} legend
   * @param {Fit} fit
   */
  const choose = (name, key, legend, fit) =>
    choices({
      name,
      legend: page.say(legend),
      cards: file.columns.map(card(fit)),
      chosen: form[key],
      onchoose: (number) => (form[key] = Number(number)),
    });
  const read = { name: file.name, rows: file.rows, columns: file.columns.length };
  return [
    paragraph(page.say("fileRead", read), { id: "file-read" }),
    ...(file.latin1 ? [paragraph(page.say("latin1"))] : []),
    tickBox("header", page.say("firstRowNames"), file.header, (checked) => renameColumns(page, checked)),
    choose("column", "column", "valueColumn", (column) => ["fitsScale", column.scale]),
    ...(campaign.strata.length > 1
      ? [choose("group-column", "groupColumn", "groupColumn", (column) => ["fitsGroups", column.groups])]
      : []),
  ];
}
