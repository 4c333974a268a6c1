// The page of all verdicts: those of the chosen models and judges that match, each with a link to its explanation.
"use strict";

const search = {
  most: 1000, // Number of matching verdicts that are listed; a longer list is narrowed by filters.

  async start() {
    this.index = await prbench.load("index");
    this.criteria = await prbench.criteria(this.index);
    const { statuses, breakdowns } = this.index;
    const pairs = Object.values(statuses).map((status) => [status, verdicts.word(status)]);
    filters.start([
      { name: "status", title: "Verdict", pairs: [["undecided", "any failure"], ...pairs] },
      { name: "severity", title: "Severity", valuesOf: (criterion) => criterion.severity },
      { name: "category", title: this.index.category_title, valuesOf: (criterion) => criterion.category },
      ...filters.ofTasks(this.index, ({ task }) => task),
      ...filters.ofLabels(breakdowns, (criterion) => [criterion.task, criterion]),
    ], this.criteria, () => prbench.draw((isCurrent) => this.choose(isCurrent)));
    this.grid = tables.grid(byId("verdicts"), "Verdicts", this.columns(), {
      ...tables.ofPage, responsiveLayout: "collapse",
      responsiveLayoutCollapseFormatter: (cells) => cells.length > 0 && make("div", { class: "about", role: "gridcell" },
        cells.map(({ title, value }) => make("div", {}, make("small", {}, title), value))),
    });
    await this.grid.built;
    tables.tools(this.grid, "verdicts");
  },

  // Returns the lists of letters of the chosen models, one for each judge and trial.
  async markLists() {
    const models = prbench.chosenModels(this);
    const judges = this.without.judge_config;
    const judge_configs = this.index.judge_configs.filter(({ label }) => !judges.includes(label));
    const files = await Promise.all(models.map((model) => prbench.load(model.marks)));
    const lists = [];
    for (const [index, model] of models.entries()) {
      for (const judge_config of judge_configs) {
        const trials = Object.entries(files[index][judge_config.key] ?? {});
        for (const [trial, marks] of trials) lists.push({ model, judge_config, trial, marks });
      }
    }
    return lists;
  },

  // Missing verdicts are shown on request only.
  isWanted(status, request) {
    if (request === "undecided") return verdicts.isFailure(status);
    return request ? status === request : status !== "not_judged";
  },

  async choose(isCurrent) {
    const { request, holds } = filters.values();
    const lists = await this.markLists();
    if (!isCurrent()) return;
    address.replace(request);
    const { counts, rows } = this.find(lists, request, holds);
    const tally = [...counts].filter(([, n]) => n)
      .flatMap(([status, n]) => [" ", verdicts.badge(status), ` ${written.count(n)}`]);
    const count = byId("count");
    const total = [...counts.values()].reduce((sum, n) => sum + n, 0);
    const note = total > this.most ? `, the first ${written.count(this.most)} listed` : "";
    const title = make("strong", {}, `${written.count(total)} ${total === 1 ? "verdict" : "verdicts"}${note}`);
    count.replaceChildren(title, ...tally);
    count.dataset.total = total;
    await this.grid.setData(rows);
  },

  // Returns the number of matching verdicts by status, and the first ones.
  find(lists, request, holds) {
    const letters = Object.entries(this.index.statuses).filter(([, status]) => this.isWanted(status, request.status));
    const statuses = new Map(letters);
    const counts = new Map(letters.map(([, status]) => [status, 0]));
    const rows = [];
    const text = (row) => [row.title, row.criterion_id, ...labelsOf(row)].join(" ").toLowerCase();
    const isMatch = (row) => filters.matches(row, request) && (!request.words || holds(text(row)));
    for (const criterion of this.criteria.filter(isMatch)) {
      for (const list of lists) {
        const status = statuses.get(list.marks[criterion.ordinal]);
        if (!status) continue;
        counts.set(status, counts.get(status) + 1);
        if (rows.length < this.most) rows.push({ criterion, ...list });
      }
    }
    return { counts, rows };
  },

  target({ criterion, model, judge_config, trial }) {
    const request = { task: criterion.task.key, a: model.key, ta: trial, criterion: criterion.key };
    return `task.html${address.of({ ...request, judge_config: judge_config.key })}`;
  },

  columns() {
    const column = (title, contentOf, layout) => ({
      title,
      field: title,
      headerSort: false,
      titleFormatter: "plaintext",
      formatter: (cell) => make("div", {}, contentOf(cell.getData())),
      ...layout,
    });
    const two = (first, second) => [first, make("br"), make("small", {}, second)];
    const status = ({ marks, criterion }) => this.index.statuses[marks[criterion.ordinal]];
    const right = { width: 90, hozAlign: "right", headerHozAlign: "right" };
    const labels = (criterion) => [criterion.severity, criterion.category, ...labelsOf(criterion)].filter(Boolean);
    const title = (row) => make("a", { href: this.target(row) }, row.criterion.title);
    return [
      column("Verdict", (row) => verdicts.badge(status(row), row.criterion.weight), { width: 124 }),
      column("Criterion", (row) => two(title(row), labels(row.criterion).join(" · ")), { widthGrow: 3, minWidth: 200 }),
      column("Weight", ({ criterion }) => written.weight(criterion.weight), right),
      column("Model", ({ model, trial }) => two(model.label, `trial ${trial}`), { minWidth: 110 }),
      column("Judge", ({ judge_config }) => judge_config.label, { minWidth: 110 }),
      column("Task", ({ criterion: { task } }) => two(task.task_id, task.topic ?? task.field ?? ""), { minWidth: 110 }),
    ];
  },
};

prbench.followChoice(search);
