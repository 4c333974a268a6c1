// The page of all verdicts: those of the chosen models and judges that match, each with a link to its explanation.
"use strict";

const search = {
  chosen: { model: null, judging: null },
  pageSize: 200,

  async start() {
    this.index = await prbench.load("index");
    const criteria = await prbench.load(this.index.criteria);
    this.criteria = criteria.title.map((title, place) => ({
      place, title, weight: criteria.weight[place], key: criteria.key[place], labels: criteria.labels[place],
      words: [title, criteria.id[place], ...breakdowns.words(criteria.labels[place])].join(" ").toLowerCase(),
      category: criteria.category.labels[criteria.category.numbers[place]] ?? null,
      severity: criteria.severity.labels[criteria.severity.numbers[place]] ?? null,
    }));
    let place = 0;
    for (const task of this.index.tasks) {
      for (let i = 0; i < task.n_criteria; i += 1) this.criteria[place++].task = task;
    }
    this.fill();
    filters.restore();
    filters.listen(() => prbench.draw((isCurrent) => this.show(isCurrent)));
    this.rows = new GrowingRows(
      document.querySelector("#verdicts tbody"), document.getElementById("more"), this.pageSize);
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
    this.showCounts(found.length, counts);
    this.rows.show(found, (number) =>
      this.row(this.criteria[Math.floor(number / lists.length)], lists[number % lists.length]));
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

  row(criterion, { model, judging, trial, marks }) {
    const { task } = criterion;
    const target = address.of({ task: task.key, a: model.key, ta: trial, criterion: criterion.key, judging: judging.key, side: "a" });
    return make("tr", {},
      make("td", {}, verdicts.badge(this.index.statuses[marks[criterion.place]], criterion.weight)),
      make("td", {}, make("a", { href: `task.html${target}` }, criterion.title),
        make("br"), make("small", {}, this.about(criterion))),
      make("td", { class: "number" },
        verdicts.effect(this.index.statuses[marks[criterion.place]], criterion.weight) ?? written.weight(criterion.weight)),
      make("td", {}, model.label, make("br"), make("small", {}, `trial ${trial}`)),
      make("td", {}, judging.label),
      make("td", {}, task.task_id, make("br"), make("small", {}, task.topic ?? task.field ?? "")));
  },

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
