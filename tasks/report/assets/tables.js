// Tables that can be sorted and filtered (Tabulator). Tables of figures are in the page, readable without scripts.
"use strict";

const tables = {
  text: (value) => (value instanceof Element ? value.textContent : String(value ?? "")).trim(),
  // An asterisk after a number marks few tasks.
  number: (text) => Number(text.replace(/[,$%]|(?<=\d%?)\*$/g, "").replace("−", "-")),

  // Missing values stay last in both directions.
  sorter(firstCell, secondCell, _firstRow, _secondRow, _column, direction) {
    const sortText = (cell) => tables.text(cell).replace(/^–$/, "").toLowerCase();
    const first = sortText(firstCell);
    const second = sortText(secondCell);
    const last = direction === "asc" ? 1 : -1; // Descending, the table reverses the result.
    if (!first) return second ? last : 0;
    if (!second) return -last;
    const difference = tables.number(first) - tables.number(second);
    return Number.isNaN(difference) ? first.localeCompare(second) : difference;
  },

  // Returns a value for a downloaded file; text that a spreadsheet would run or change gets an apostrophe (cells.py).
  plain(value, _row, _type, _params, column) {
    const text = tables.text(value);
    const number = column.getDefinition().hozAlign === "right" ? tables.number(text) : NaN;
    if (text && !Number.isNaN(number)) return number;
    return /^'*(?:[\t\r\n]|\s*[=+\-@＝＋－＠]|\d+(?:[-/.:]\d+)+$)/.test(text) ? `'${text}` : text;
  },

  // Makes headings that sort buttons, so that the keyboard reaches them; a name begins with that of the group.
  heading(cell) {
    const label = cell.getColumn().getDefinition().titleDownload;
    return make("button", { type: "button", title: cell.getValue(), "aria-label": label }, cell.getValue());
  },

  // Makes a table; its promise `built` resolves when it is complete.
  grid(container, label, columns, options) {
    const { sorter, heading: titleFormatter, plain: accessorDownload } = this;
    const grid = new Tabulator(container, {
      columns, layout: "fitDataFill", maxHeight: "34rem", printAsHtml: true, printRowRange: "all",
      debugInvalidOptions: false, nestedFieldSeparator: false, downloadConfig: { columnGroups: false },
      columnDefaults: { sorter, titleFormatter, accessorDownload, variableHeight: true, resizable: "header" },
      ...options,
    });
    container.setAttribute("aria-label", label);
    grid.built = new Promise((done) => grid.on("tableBuilt", done)).then(() => this.repair(container));
    return grid;
  },

  // Adds tools above a table: a choice of columns, and a download of the shown rows if the table holds all of them.
  tools(grid, name) {
    const label = (column) => {
      const { title, titleDownload } = column.getDefinition();
      const box = make("input", { type: "checkbox", checked: column.isVisible(), change: () => column.toggle() });
      return make("label", {}, box, ` ${titleDownload ?? title}`);
    };
    const button = make("button", { type: "button", click: () => grid.download("csv", `${name}.csv`) }, "Download");
    const menu = folded({}, "Columns", make("div", {}, grid.getColumns().map(label)));
    const tools = make("div", { class: "tools" }, menu, button);
    grid.element.before(tools);
    return tools;
  },

  // Corrects the roles for screen readers that Tabulator sets wrongly: some do not exist or may not be nested.
  repair(container) {
    const setRole = (selector, name) => {
      container.querySelectorAll(selector).forEach((element) => { element.role = name; });
    };
    container.removeAttribute("aria-owns");
    container.querySelectorAll(".tabulator-col-group").forEach((group) =>
      ["aria-sort", "aria-title"].forEach((name) => group.removeAttribute(name)));
    setRole(".tabulator-col-group, .tabulator-table", "presentation");
    setRole(".tabulator-col-group > .tabulator-col-content", "columnheader");
    setRole(".tabulator-tableholder", "rowgroup");
  },

  // Returns the columns of a static table; a heading may be below that of a group.
  columns(table) {
    const grouped = [];
    for (const { headers, className: align } of table.tBodies[0].rows[0].cells) {
      const [heading, group] = headers.split(" ").reverse().map(byId);
      const titles = [group, heading].filter(Boolean).map((element) => element.textContent);
      const column = {
        title: heading.textContent,
        titleDownload: titles.join(" "),
        field: heading.id,
        hozAlign: align,
        headerHozAlign: align,
        maxInitialWidth: innerWidth < 640 ? 150 : 380,
        minWidth: group?.colSpan === 1 ? 10 * titles[0].length : 40,
        formatter: (cell) => cell.getValue(),
      };
      if (!group) grouped.push(column);
      else if (grouped.at(-1)?.id === group.id) grouped.at(-1).columns.push(column);
      else grouped.push({ title: group.textContent, titleFormatter: "plaintext", id: group.id, columns: [column] });
    }
    return grouped;
  },

  // Options of a table that has a page of its own.
  ofPage: { layout: "fitColumns", maxHeight: "max(24rem, calc(100vh - 5rem))" },

  row: (row) => Object.fromEntries([...row.cells].map((cell) =>
    [cell.headers.split(" ").at(-1), make("span", {}, [...cell.childNodes])])),

  grids: [],
  without: { model: [], judge_config: [] }, // The names that the user left out.

  async enhance(table) {
    const rows = [...table.tBodies[0].rows];
    const scroll = table.closest(".scroll");
    const container = make("div");
    const input = () => this.filter(grid);
    const field = make("input", { type: "search", placeholder: "Filter rows", "aria-label": "Filter the rows", input });
    const label = byId(scroll.getAttribute("aria-labelledby")).textContent;
    const columns = this.columns(table);
    const data = rows.map(this.row);
    scroll.replaceWith(container);
    const grid = Object.assign(this.grid(container, label, columns, { data }), { field });
    await grid.built;
    this.filter(grid);
    this.grids.push(grid);
    if (rows.length >= 12) this.tools(grid, columns[0].field.split("-")[0]).prepend(field);
  },

  // Shows the rows that contain the word, without those of models and judges that are left out.
  filter(grid) {
    const word = grid.field.value.trim().toLowerCase();
    const columns = grid.getColumnDefinitions();
    const isLeftOut = (row, kind, title) =>
      this.without[kind].includes(row[columns.find((column) => column.title === title)?.field]?.textContent);
    const hasWord = (row) => Object.values(row).map(this.text).join(" ").toLowerCase().includes(word);
    grid.setFilter((row) =>
      !isLeftOut(row, "model", "Model") && !isLeftOut(row, "judge_config", "Judge") && hasWord(row));
  },

  choose(without) {
    this.without = without;
    this.grids.forEach((grid) => this.filter(grid));
    const hide = (selector, names, nameOf) => document.querySelectorAll(selector).forEach((element) => {
      element.hidden = names.includes(nameOf(element));
    });
    hide("main [data-judge_config]", without.judge_config, (element) => element.dataset.judge_config);
    hide(".boards tbody tr", without.model, (row) => row.querySelector("[headers$='-model']").textContent);
  },
};

document.addEventListener("choice", ({ detail }) => tables.choose(detail));
document.querySelectorAll("table:has(td):not(.boards *)").forEach((table) => {
  const details = table.closest("details"); // A folded table has no width yet.
  if (!details || details.open) tables.enhance(table);
  else details.addEventListener("toggle", () => tables.enhance(table), { once: true });
});
addEventListener("beforeprint", () => document.querySelectorAll(".how").forEach((details) => { details.open = true; }));
