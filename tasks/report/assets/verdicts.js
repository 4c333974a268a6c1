// The page of all verdicts: those of the chosen models and judges that match, each with a link to its explanation.
"use strict";

const search = {
  pageSize: 200,
  lists: [], // For each model, judge and trial: a letter for the status of each criterion.
  matches: [], // For each matching verdict: the ordinal of its criterion * the number of lists + the index of its list.

  async start() {
    this.index = await prbench.load("index");
    this.criteria = await prbench.criteria(this.index);
    const { entries, statuses, breakdowns } = this.index;
    const named = (names) => names.map((name) => [name, verdicts.word(name)]);
    filters.start([
      { name: "status", title: "Verdict", options: [["undecided", "any failure"], ...named(Object.values(statuses))] },
      { name: "severity", title: "Severity", of: (criterion) => criterion.severity },
      { name: "category", title: this.index.category_title, of: (criterion) => criterion.category },
      { name: "field", title: this.index.field_title, of: ({ task }) => task.field },
      { name: "topic", title: "Topic", of: ({ task }) => task.topic },
      { name: "split", title: "Split", of: ({ task }) => task.splits ?? [] },
      { name: "trial", title: "Trial", options: named([...new Set(entries.flatMap((entry) => entry.trials.map(String)))].sort()) },
      ...filters.ofLabels(breakdowns, (criterion) => [criterion.task, criterion]),
    ], this.criteria, () => prbench.draw((isCurrent) => this.choose(isCurrent)));
    this.grid = tables.make(byId("verdicts"), "Verdicts", this.columns(), {
      layout: "fitColumns", responsiveLayout: "collapse", maxHeight: "max(24rem, calc(100vh - 5rem))",
      renderVerticalBuffer: 100, progressiveLoad: "scroll", paginationSize: this.pageSize, ajaxURL: "matches",
      ajaxRequestFunc: async (_url, _config, { page }) => this.page(page),
    });
    await this.grid.built;
    tables.tools(this.grid, "verdicts");
  },

  // Returns the rows of one scrolled page only, because there may be more than a million verdicts.
  page(number) {
    const { matches, lists, criteria, pageSize } = this;
    const row = (match) => ({ criterion: criteria[Math.floor(match / lists.length)], ...lists[match % lists.length] });
    const data = matches.slice((number - 1) * pageSize, number * pageSize).map(row);
    return { last_page: Math.max(1, Math.ceil(matches.length / pageSize)), data };
  },

  // Returns the lists of letters of the chosen models, one for each judge and trial.
  async markLists(request) {
    const { model: names, judge_config: judges } = this.chosen;
    const models = this.index.entries.filter(({ is_also: isAlso, label }) => names?.includes(label) ?? !isAlso);
    const judge_configs = this.index.judge_configs.filter(({ label }) => judges?.includes(label) ?? true);
    const files = await Promise.all(models.map((model) => prbench.load(model.marks)));
    return models.flatMap((model, i) => judge_configs.flatMap((judge_config) =>
      Object.entries(files[i][judge_config.key] ?? {}).filter(([trial]) => !request.trial || trial === request.trial)
        .map(([trial, marks]) => ({ model, judge_config, trial, marks }))));
  },

  // Missing verdicts are shown on request only.
  isWanted: (status, request) =>
    (request === "undecided" ? verdicts.isFailure(status) : request ? status === request : status !== "not_judged"),

  async choose(isCurrent) {
    const { request, holds } = filters.values();
    const lists = await this.markLists(request);
    if (!isCurrent()) return;
    address.replace(request);
    this.lists = lists;
    const counts = this.find(request, holds);
    const tally = [...counts].filter(([, n]) => n).map(([status, n]) =>
      make("li", {}, verdicts.badge(status), ` ${written.count(n)}`));
    const [total, count] = [this.matches.length, byId("count")];
    const title = make("strong", {}, `${written.count(total)} ${total === 1 ? "verdict" : "verdicts"}`);
    count.replaceChildren(title, make("ul", { class: "tally" }, tally));
    count.dataset.total = total;
    await this.grid.setData("matches");
  },

  // Finds the matching verdicts, and returns their number by status.
  find(request, holds) {
    const letters = Object.entries(this.index.statuses).filter(([, status]) => this.isWanted(status, request.status));
    const [statuses, counts] = [new Map(letters), new Map(letters.map(([, status]) => [status, 0]))];
    this.matches = [];
    const text = (each) => [each.title, each.criterion_id, ...labelsOf(each)].join(" ").toLowerCase();
    const matches = (each) => filters.matches(each, request) && (!request.words || holds(text(each)));
    for (const { ordinal } of this.criteria.filter(matches)) {
      for (const [number, { marks }] of this.lists.entries()) {
        const status = statuses.get(marks[ordinal]);
        if (!status) continue;
        counts.set(status, counts.get(status) + 1);
        this.matches.push(ordinal * this.lists.length + number);
      }
    }
    return counts;
  },

  columns() {
    const column = (title, of, more) =>
      ({ title, field: title, headerSort: false, formatter: (cell) => make("div", {}, of(cell.getData())), ...more });
    const two = (first, second) => [first, make("br"), make("small", {}, second)];
    const status = ({ marks, criterion }) => this.index.statuses[marks[criterion.ordinal]];
    const right = { width: 150, hozAlign: "right", headerHozAlign: "right" };
    const about = (criterion) => [criterion.severity, criterion.category, ...labelsOf(criterion)].filter(Boolean);
    const title = (row) => make("a", { href: target(row) }, row.criterion.title);
    const effect = ({ weight }, of) => verdicts.effect(of, weight) ?? written.weight(weight);
    const target = ({ criterion: { task, key: criterion }, model, judge_config: by, trial }) =>
      `task.html${address.of({ task: task.key, a: model.key, ta: trial, criterion, judge_config: by.key })}`;
    return [
      column("Verdict", (row) => verdicts.badge(status(row), row.criterion.weight), { width: 124 }),
      column("Criterion", (row) => two(title(row), about(row.criterion).join(" · ")), { widthGrow: 3, minWidth: 200 }),
      column("Points / weight", (row) => effect(row.criterion, status(row)), right),
      column("Model", ({ model, trial }) => two(model.label, `trial ${trial}`), { minWidth: 110 }),
      column("Judge", ({ judge_config }) => judge_config.label, { minWidth: 110 }),
      column("Task", ({ criterion: { task } }) => two(task.task_id, task.topic ?? task.field ?? ""), { minWidth: 110 }),
    ];
  },
};

prbench.followChoice(search);
