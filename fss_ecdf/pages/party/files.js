// Choosing a file and its columns: the worker reads it, and each step ends in a transition of the page.

import { emptyForm } from "./form.js";
import { Refusal } from "./grid.js";
/** @import { Page } from "./page.js" */

/**
 * @param {Page} page
 * @param {File | undefined} file
 */
export async function readFile(page, file) {
  if (!file) return;
  page.form = emptyForm("file");
  page.move("noted", { reading: true });
  await noting(page, async () => {
    const bytes = await file.arrayBuffer().then(
      (found) => new Uint8Array(found),
      () => null,
    );
    if (!bytes) throw new Refusal("unreadableFile");
    await showColumns(page, { bytes }, file.name);
  });
}

/**
 * @param {Page} page
 * @param {boolean} header
 */
export const renameColumns = (page, header) => noting(page, () => showColumns(page, { header }, page.data.file.name));

/** @param {Page} page */
export const reviewFile = (page) =>
  noting(page, async () => {
    const { form, campaign, data } = page;
    const several = campaign.strata.length > 1;
    if (form.column === null) throw new Refusal("noColumn");
    if (several && form.groupColumn === null) throw new Refusal("noGroupColumn");
    if (several && form.groupColumn === form.column) throw new Refusal("sameColumn");
    const about = { column: form.column, stratum: several ? form.groupColumn : null, allowed: form.allowed };
    page.placed = await page.helper.ask("place", { ...about, header: data.file.header });
    page.file = data.file;
    if (page.state === "enter") page.move("placed");
  });

/**
 * @param {Page} page
 * @param {{ bytes?: Uint8Array, header?: boolean }} about
 * @param {string} name
 */
async function showColumns(page, about, name) {
  const found = await page.helper.ask("read", about);
  if (page.state !== "enter") return; // the person has gone elsewhere
  if (found.columns.length === 1) page.form.column = 0;
  page.move("noted", { file: { ...found, name } });
}

/**
 * What goes wrong is shown at its field, if the person is still there.
 * @param {Page} page
 * @param {() => Promise<void>} what
 */
async function noting(page, what) {
  try {
    await what();
  } catch (error) {
    if (page.state === "enter") page.note(error);
  }
}
