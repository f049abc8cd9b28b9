// A table that becomes a list of cards on narrow screens.
//
// Its roles are explicit, because a table with another layout loses them.

import { keep, make, mark, say } from "./elements.js";

/**
 * `columns` are [heading, text of a row, more]; `more.head` marks the column that names the row,
 * `more.fill` fills the cell itself, `more.number` aligns it to the right.
 */
export class Table {
  constructor(place, caption, columns, key) {
    this.columns = columns;
    this.key = key;
    this.body = make("tbody", { role: "rowgroup" });
    const headings = columns.map(([heading, , more = {}]) =>
      make("th", { role: "columnheader", scope: "col", ...(more.number ? { class: "number" } : {}) }, heading));
    this.table = make("table", { role: "table" },
      make("caption", { class: "hidden" }, caption),
      make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...headings)),
      this.body);
    place.append(this.table);
  }

  show(rows) {
    this.table.hidden = rows.length === 0;
    keep(this.body, rows, this.key, () => this.row(), (part, row) => {
      this.columns.forEach(([, text, more = {}], index) => {
        if (more.fill) more.fill(part.cells[index], row);
        else say(part.cells[index], text(row));
      });
    });
  }

  row() {
    const cells = this.columns.map(([heading, , more = {}]) => {
      const cell = more.head
        ? make("th", { role: "rowheader", scope: "row" })
        : make("td", { role: "cell" });
      mark(cell, "data-label", heading);
      if (more.number) cell.classList.add("number");
      return cell;
    });
    return { element: make("tr", { role: "row" }, ...cells), cells };
  }
}
