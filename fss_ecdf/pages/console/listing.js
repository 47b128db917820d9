// A table that can be filtered and sorted; rows that need attention come first until a column is chosen.

import { htmlElement } from "../elements.js";
import { put, tableParts } from "./putting.js";
import { $ } from "./shared.js";

/** @typedef {{ sort: (string | number)[], cells: (string | Node)[], text: string, attention: boolean }} ListRow */

export class Listing {
  // The page has a field `ID-filter` and a text `ID-count` beside the table `ID`. `head` names the columns; one without a
  // place in a row's `sort` is not sorted by.
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    this.column = -1;
    this.ascending = true;
    this.draw = () => {};
    $(`${id}-filter`).oninput = () => this.draw();
  }

  /**
   * @param {unknown} data
   * @param {string[]} head
   * @param {() => ListRow[]} make
   * @param {string} empty
   */
  show(data, head, make, empty) {
    this.draw = () => {
      const wanted = $(`${this.id}-filter`).value.trim().toLowerCase();
      put(this.id, [data, wanted, this.column, this.ascending], () => {
        const all = make(),
          found = all.filter((row) => row.text.toLowerCase().includes(wanted));
        const attention = found.filter((row) => row.attention).length;
        $(`${this.id}-count`).textContent = all.length
          ? `${found.length} of ${all.length} shown, ${attention} need attention`
          : "";
        const columns = head.map((name, i) => this.header(name, i));
        const cells = this.sorted(found).map((row) => row.cells);
        return tableParts(columns, cells, { named: true, empty: all.length ? "none fits the filter" : empty });
      });
    };
    this.draw();
  }

  /** @param {ListRow[]} rows */
  sorted(rows) {
    if (this.column < 0) return [...rows.filter((row) => row.attention), ...rows.filter((row) => !row.attention)];
    const sign = this.ascending ? 1 : -1;
    return rows.toSorted((a, b) => {
      const [x, y] = [a.sort[this.column], b.sort[this.column]];
      if (typeof x === "number" && typeof y === "number") return sign * (x - y);
      return sign * String(x).localeCompare(String(y));
    });
  }

  /**
   * @param {string} name
   * @param {number} column
   */
  header(name, column) {
    if (!name) return htmlElement("td");
    const is = this.column === column;
    const made = htmlElement(
      "button",
      { type: "button", class: "sorter", "data-key": `sort ${this.id} ${name}` },
      name,
    );
    if (is) made.append(htmlElement("span", { "aria-hidden": "true" }, this.ascending ? " ↑" : " ↓"));
    made.onclick = () => {
      this.ascending = is ? !this.ascending : true;
      this.column = column;
      this.draw();
    };
    const sort = is ? (this.ascending ? "ascending" : "descending") : "none";
    return htmlElement("th", { scope: "col", "aria-sort": sort }, made);
  }
}
