// Tables that are sorted and filtered (Tabulator). Those of figures stand in the page and are readable without scripts.
"use strict";

const tables = {
  // What a cell is sorted by; null where nothing is known.
  value(text) {
    const number = Number(text.trim().replace(/[,$%]/g, "").replace("−", "-"));
    return ["", "–"].includes(text.trim()) ? null : Number.isNaN(number) ? text.toLowerCase() : number;
  },

  // What is missing stays last, whichever way it is sorted.
  sorter(one, other, _row, _otherRow, _column, direction) {
    const value = (cell) => (cell instanceof Element ? tables.value(cell.textContent) : cell ?? null);
    const [first, second] = [value(one), value(other)];
    if (first === null || second === null) return ((first === null) - (second === null)) * (direction === "asc" ? 1 : -1);
    if (typeof first === "number" && typeof second === "number") return first - second;
    return String(first).localeCompare(String(second));
  },

  // A heading is a button, so that the keyboard reaches it; its name begins with that of its group.
  heading(cell) {
    const button = document.createElement("button");
    const group = cell.getColumn().getParentColumn();
    Object.assign(button, { type: "button", textContent: cell.getValue(), title: cell.getValue() });
    if (group) button.ariaLabel = `${group.getDefinition().title} ${cell.getValue()}`;
    return button;
  },

  make(place, label, columns, options) {
    const grid = new Tabulator(place, {
      columns, layout: "fitDataFill", maxHeight: "34rem", printAsHtml: true, printRowRange: "all", debugInvalidOptions: false,
      nestedFieldSeparator: false,
      columnDefaults: { sorter: this.sorter, titleFormatter: this.heading, variableHeight: true, resizable: "header" },
      ...options,
    });
    place.setAttribute("aria-label", label);
    grid.on("tableBuilt", () => this.repair(place));
    return grid;
  },

  // Puts right what screen readers stumble over: roles that do not exist, or that stand in each other.
  repair(place) {
    const role = (selector, name) => place.querySelectorAll(selector).forEach((each) => each.setAttribute("role", name));
    place.removeAttribute("aria-owns");
    for (const group of place.querySelectorAll(".tabulator-col-group")) {
      group.removeAttribute("aria-sort");
      group.removeAttribute("aria-title");
    }
    role(".tabulator-col-group, .tabulator-table", "presentation");
    role(".tabulator-col-group > .tabulator-col-content", "columnheader");
    role(".tabulator-tableholder", "rowgroup");
  },

  // The columns of a static table: headings may stand below those of groups.
  columns(table) {
    const found = [];
    for (const cell of table.tBodies[0].rows[0].cells) {
      const [own, group] = cell.headers.split(" ").reverse().map((id) => document.getElementById(id));
      const align = cell.classList.contains("right") ? "right" : "left";
      const column = {
        title: own.textContent, field: own.id, hozAlign: align, headerHozAlign: align, maxInitialWidth: innerWidth < 640 ? 150 : 380,
        formatter: (each) => each.getValue(), cssClass: own.id.endsWith("-judging") ? "judging" : "",
      };
      if (!group) found.push(column);
      else if (found.at(-1)?.id === group.id) found.at(-1).columns.push(column);
      else found.push({ title: group.textContent, id: group.id, headerHozAlign: "center", columns: [column] });
    }
    return found;
  },

  row: (row) => Object.fromEntries([...row.cells].map((cell) => {
    const value = document.createElement("span");
    value.append(...cell.childNodes);
    return [cell.headers.split(" ").at(-1), value];
  })),

  grids: [],
  chosen: {},

  enhance(table) {
    if (!table.tBodies[0].rows.length) return;
    const [columns, data] = [this.columns(table), [...table.tBodies[0].rows].map(this.row)];
    const [place, field] = [document.createElement("div"), document.createElement("input")];
    const scroll = table.closest(".scroll");
    scroll.replaceWith(place);
    const label = scroll.ariaLabel ?? document.getElementById(scroll.getAttribute("aria-labelledby")).textContent;
    const grid = Object.assign(this.make(place, label, columns, { data }), { field });
    grid.on("tableBuilt", () => {
      this.filter(grid);
      this.grids.push(grid);
    });
    if (data.length < 12) return;
    Object.assign(field, { type: "search", placeholder: "Filter rows", ariaLabel: "Filter the rows of this table" });
    field.addEventListener("input", () => this.filter(grid));
    place.before(field);
  },

  // A row is shown if it holds the word and if its model and judge are chosen, or are none of those one can choose.
  filter(grid) {
    const word = grid.field.value.trim().toLowerCase();
    const [model, judge] = ["Model", "Judge"].map((title) => grid.getColumnDefinitions().find((each) => each.title === title)?.field);
    const isChosen = (row, kind, name) => {
      const text = this.chosen[kind] && name ? row[name].textContent : null; // A label may begin with a space.
      return text === null || this.chosen[kind].includes(text) || !choice.offered[kind]().includes(text);
    };
    const text = (row) => Object.values(row).map((each) => each.textContent).join(" ").toLowerCase();
    grid.setFilter((row) => isChosen(row, "model", model) && isChosen(row, "judging", judge) && text(row).includes(word));
  },

  choose(chosen) {
    this.chosen = chosen;
    this.grids.forEach((grid) => this.filter(grid));
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
    const details = table.closest("details"); // Of a table that is folded no width is known.
    if (!details || details.open) tables.enhance(table);
    else details.addEventListener("toggle", () => tables.enhance(table), { once: true });
  });
  addEventListener("beforeprint", () => document.querySelectorAll("details.how").forEach((each) => { each.open = true; }));
});
