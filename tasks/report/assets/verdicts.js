// The page of all verdicts: those of the chosen models and judges that match, each with a link to its explanation.
"use strict";

const search = {
  chosen: { model: null, judging: null },
  pageSize: 200,

  async start() {
    this.index = await prbench.load("index");
    const criteria = await prbench.load(this.index.criteria);
    this.criteria = criteria.title.map((title, place) => ({
      ...Object.fromEntries(Object.entries(criteria).map(([name, values]) => [name, values[place]])), place,
      words: [title, criteria.criterion_id[place], ...breakdowns.words(criteria.labels[place])].join(" ").toLowerCase(),
    }));
    let place = 0;
    for (const task of this.index.tasks) {
      for (let i = 0; i < task.n_criteria; i += 1) this.criteria[place++].task = task;
    }
    this.fill();
    filters.restore();
    filters.listen(() => prbench.draw((isCurrent) => this.show(isCurrent)));
    this.grid = tables.make(document.getElementById("verdicts"), "Verdicts", this.columns(), {
      layout: "fitColumns", responsiveLayout: "collapse", maxHeight: "max(24rem, calc(100vh - 5rem))",
      progressiveLoad: "scroll", paginationSize: this.pageSize,
      ajaxURL: "found", ajaxRequestFunc: async (_url, _config, { page }) => this.page(page),
    });
    await new Promise((done) => this.grid.on("tableBuilt", done));
  },

  lists: [],
  found: [],

  // Rows are made as they are scrolled to: of more than a million verdicts few are looked at.
  page(number) {
    const some = this.found.slice((number - 1) * this.pageSize, number * this.pageSize);
    const data = some.map((place) => ({ criterion: this.criteria[Math.floor(place / this.lists.length)], ...this.lists[place % this.lists.length] }));
    return { last_page: Math.max(1, Math.ceil(this.found.length / this.pageSize)), data };
  },

  fill() {
    const { tasks, entries, statuses } = this.index;
    filters.name("field", this.index.field_title);
    filters.name("category", this.index.category_title);
    breakdowns.offer(this.index.breakdowns, [...tasks, ...this.criteria].flatMap((each) => each.labels));
    filters.fill("field", tasks.map((task) => task.field));
    filters.fill("topic", tasks.map((task) => task.topic));
    filters.fill("split", tasks.flatMap((task) => task.splits ?? []));
    filters.fill("category", this.criteria.map((criterion) => criterion.category));
    filters.fill("severity", this.criteria.map((criterion) => criterion.severity));
    filters.fill("trial", entries.flatMap((entry) => entry.trials.map(String)));
    const select = filters.form().elements.status;
    select.append(make("option", { value: "undecided" }, "any failure"));
    Object.values(statuses).forEach((status) => select.append(make("option", { value: status }, verdicts.word(status))));
  },

  // The letters of the verdicts that are asked for; those that are still to be judged only if one asks for them.
  letters(status) {
    const asked = Object.entries(this.index.statuses).filter(([, each]) =>
      (status === "" && each !== "not_judged") || each === status || (status === "undecided" && verdicts.isFailure(each)));
    return new Set(asked.map(([letter]) => letter));
  },

  // The lists of letters of the chosen models: one for each judge and trial.
  async markLists(asked) {
    const models = this.index.entries.filter((entry) => this.chosen.model ? this.chosen.model.includes(entry.label) : !entry.is_also);
    const lists = await Promise.all(models.map((model) => prbench.load(model.marks)));
    return models.flatMap((model, place) => this.index.judgings
      .filter((judging) => !this.chosen.judging || this.chosen.judging.includes(judging.label))
      .flatMap((judging) => Object.entries(lists[place][judging.key] ?? {})
        .filter(([trial]) => !asked.trial || trial === asked.trial)
        .map(([trial, marks]) => ({ model, judging, trial, marks }))));
  },

  matches(criterion, asked) {
    const { task } = criterion;
    return (!asked.field || task.field === asked.field) && (!asked.topic || task.topic === asked.topic)
      && (!asked.split || task.splits?.includes(asked.split))
      && (!asked.category || criterion.category === asked.category)
      && (!asked.severity || criterion.severity === asked.severity)
      && breakdowns.match(asked, [...task.labels, ...criterion.labels])
      && asked.holdsWords(criterion.words);
  },

  async show(isCurrent) {
    const asked = filters.values();
    const lists = await this.markLists(asked);
    if (!isCurrent()) return;
    address.replace(asked);
    const { found, counts } = this.find({ ...asked, holdsWords: filters.holder(asked.words) }, lists);
    Object.assign(this, { lists, found });
    this.showCounts(found.length, counts);
    await this.grid.setData("found");
  },

  // The verdicts that match, a number for each that says which criterion and which list, and how many have which letter.
  find(asked, lists) {
    const isAsked = new Uint8Array(128);
    const counts = new Uint32Array(128);
    this.letters(asked.status).forEach((letter) => { isAsked[letter.charCodeAt(0)] = 1; });
    const found = [];
    for (const criterion of this.criteria) {
      if (!this.matches(criterion, asked)) continue;
      for (let number = 0; number < lists.length; number += 1) {
        const letter = lists[number].marks.charCodeAt(criterion.place);
        if (!isAsked[letter]) continue;
        counts[letter] += 1;
        found.push(criterion.place * lists.length + number);
      }
    }
    return { found, counts };
  },

  showCounts(total, counts) {
    const place = document.getElementById("count");
    const tally = Object.entries(this.index.statuses).map(([letter, status]) => [counts[letter.charCodeAt(0)], status])
      .filter(([count]) => count).map(([count, status]) => make("li", {}, make("span", { class: "badge" }, verdicts.word(status)), ` ${written.count(count)}`));
    place.replaceChildren(make("strong", {}, `${written.count(total)} ${total === 1 ? "verdict" : "verdicts"}`),
      make("ul", { class: "tally" }, tally));
    place.dataset.total = total;
  },

  columns() {
    const column = (title, of, more) =>
      ({ title, field: title, headerSort: false, formatter: (cell) => make("div", {}, of(cell.getData())), ...more });
    const status = ({ marks, criterion }) => this.index.statuses[marks[criterion.place]];
    return [
      column("Verdict", (row) => verdicts.badge(status(row), row.criterion.weight), { width: 124 }),
      column("Criterion", (row) => [make("a", { href: this.target(row) }, row.criterion.title), make("br"),
        make("small", {}, this.about(row.criterion))], { widthGrow: 3, minWidth: 200 }),
      column("Points / weight", (row) => verdicts.effect(status(row), row.criterion.weight) ?? written.weight(row.criterion.weight),
        { width: 150, hozAlign: "right", headerHozAlign: "right" }),
      column("Model", ({ model, trial }) => [model.label, make("br"), make("small", {}, `trial ${trial}`)], { minWidth: 110 }),
      column("Judge", ({ judging }) => judging.label, { minWidth: 110 }),
      column("Task", ({ criterion: { task } }) => [task.task_id, make("br"), make("small", {}, task.topic ?? task.field ?? "")], { minWidth: 110 }),
    ];
  },

  target: ({ criterion: { task, key }, model, judging, trial }) =>
    `task.html${address.of({ task: task.key, a: model.key, ta: trial, criterion: key, judging: judging.key, side: "a" })}`,

  about: ({ severity, category, labels }) => [severity, category, ...breakdowns.words(labels)].filter(Boolean).join(" · "),
};

choice.listeners.push((chosen) => {
  search.chosen = chosen;
  prbench.draw(async (isCurrent) => {
    search.ready ??= search.start();
    await search.ready;
    await search.show(isCurrent);
  });
});
