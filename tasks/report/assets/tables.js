// Tables that can be sorted by a click on a heading or by the keyboard, and filtered by a word.
"use strict";

const tables = {
  value(cell) {
    const text = cell ? cell.textContent.trim() : "";
    const number = Number(text.replace(/[,$%]/g, "").replace("−", "-"));
    return text === "" || text === "–" ? null : Number.isNaN(number) ? text.toLowerCase() : number;
  },

  compare(one, other) {
    if (one === null || other === null) return (one === null) - (other === null);
    if (typeof one === "number" && typeof other === "number") return one - other;
    return String(one).localeCompare(String(other));
  },

  sort(table, column, heading) {
    const falls = heading.getAttribute("aria-sort") === "ascending";
    const body = table.tBodies[0];
    const keyed = [...body.rows].map((row) => [this.value(row.cells[column]), row]);
    keyed.sort(([one], [other]) => {
      const order = this.compare(one, other);
      return falls && one !== null && other !== null ? -order : order; // What is missing stays last.
    });
    table.querySelectorAll("th[aria-sort]").forEach((each) => each.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", falls ? "descending" : "ascending");
    body.append(...keyed.map(([, row]) => row));
  },

  // The heading of each column: headings may stand in several rows, under headings of groups.
  headings(table) {
    const first = table.tBodies[0].rows[0];
    return [...(first?.cells ?? [])].map((cell) => document.getElementById(cell.headers.split(" ").pop()));
  },

  makeSortable(table) {
    this.headings(table).forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => this.sort(table, column, heading));
    });
  },

  makeFilterable(table) {
    if (table.tBodies[0].rows.length < 12) return;
    const field = document.createElement("input");
    field.type = "search";
    field.placeholder = "Filter rows";
    field.setAttribute("aria-label", "Filter the rows of this table");
    field.addEventListener("input", () => this.filter(table, { word: field.value.trim().toLowerCase() }));
    table.closest(".scroll").before(field);
  },

  // A row is shown if it holds the word and if its model and judge are chosen, or are none of those one can choose.
  filter(table, change) {
    const asked = Object.assign((table.asked ??= { word: "", model: null, judging: null }), change);
    const titles = this.headings(table).map((heading) => heading.textContent.trim());
    const [model, judge] = [titles.indexOf("Model"), titles.indexOf("Judge")];
    const isChosen = (row, kind, column) => {
      const text = asked[kind] && column >= 0 ? row.cells[column].textContent : null; // A label may begin with a space.
      return text === null || asked[kind].includes(text) || !choice.offered[kind]().includes(text);
    };
    for (const row of table.tBodies[0].rows) {
      row.hidden = !(isChosen(row, "model", model) && isChosen(row, "judging", judge)
        && row.textContent.toLowerCase().includes(asked.word));
    }
  },

  choose(chosen) {
    document.querySelectorAll("table.figure").forEach((table) => this.filter(table, chosen));
    document.querySelectorAll("main [data-judging]").forEach((each) => {
      each.hidden = Boolean(chosen.judging) && !chosen.judging.includes(each.dataset.judging);
    });
    document.querySelectorAll(".ranked tr[data-model]").forEach((row) => {
      row.hidden = Boolean(chosen.model) && !chosen.model.includes(row.dataset.model);
    });
  },
};

document.addEventListener("DOMContentLoaded", () => {
  choice.listeners.push((chosen) => tables.choose(chosen));
  document.querySelectorAll("table.figure").forEach((table) => {
    tables.makeSortable(table);
    tables.makeFilterable(table);
  });
  addEventListener("beforeprint", () => document.querySelectorAll("details.how").forEach((each) => { each.open = true; }));
});
