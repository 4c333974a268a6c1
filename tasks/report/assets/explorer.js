// Search over tasks: in what the index says of them, in their criteria, and, where one asks for it, in responses.
"use strict";

const taskSearch = {
  // Adds the criteria with their ids to the words of the tasks; once, when they are first asked for.
  async addCriteria(index) {
    if (this.hasCriteria) return;
    const { title, id } = await prbench.load(index.criteria);
    let place = 0;
    for (const task of index.tasks) {
      const end = place + task.n_criteria;
      task.words = [task.words, ...title.slice(place, end), ...id.slice(place, end)].join(" ").toLowerCase();
      place = end;
    }
    this.hasCriteria = true;
  },

  // The keys of the tasks whose responses hold all words, block by block; null where another search has begun.
  async inResponses(tasks, models, holdsWords, tell, isCurrent) {
    const found = new Set();
    const holds = (section) => section?.answers.some(({ text }) => text !== null && holdsWords(text.toLowerCase()));
    const blocks = [...new Set(tasks.map((task) => task.block))];
    for (const [number, block] of blocks.entries()) {
      tell(number, blocks.length);
      const names = models.map((model) => model.blocks[block]).filter(Boolean);
      const files = await Promise.all(names.map((name) => prbench.load(name)));
      names.forEach((name) => prbench.asked.delete(name)); // All of them together may not fit in memory.
      if (!isCurrent()) return null;
      tasks.filter(({ key }) => files.some((file) => holds(file[key]))).forEach((task) => found.add(task.key));
    }
    return found;
  },

  // Whether the chosen models answered a task: `all` of them, `some` but not all, or `none`.
  isAnswered(asked, place, models) {
    const count = models.filter((model) => model.answered[place] === "1").length;
    return { all: count === models.length, some: count > 0 && count < models.length, none: count === 0 }[asked] ?? true;
  },
};

// The page of all tasks: a line a task with the score of every chosen model, sorted and filtered.
const explorer = {
  chosen: { model: null, judging: null },
  sorting: { column: "task", falls: false },

  async start(isCurrent) {
    this.index = await prbench.load("index");
    this.index.tasks.forEach((task, place) => Object.assign(task, { place, words: this.wordsOf(task) }));
    const { tasks } = this.index;
    filters.fill("field", tasks.map((task) => task.field));
    filters.fill("topic", tasks.map((task) => task.topic));
    filters.fill("category", tasks.flatMap((task) => task.categories ?? []));
    filters.fill("split", tasks.flatMap((task) => task.splits ?? []));
    filters.name("field", this.index.field_title);
    filters.name("category", this.index.category_title);
    breakdowns.offer(this.index.breakdowns.filter((breakdown) => !breakdown.of_criteria), tasks.flatMap((task) => task.labels));
    this.hasTopics = tasks.some((task) => task.topic);
    filters.restore();
    const { sort = "task", falls } = address.read();
    this.sorting = { column: sort, falls: falls === "yes" };
    const body = document.querySelector("#tasks tbody");
    this.rows = new GrowingRows(body, document.getElementById("more"), 100, { comesByItself: true });
    filters.listen(() => prbench.draw((isNow) => this.find(isNow)));
    this.listen(body);
    await this.choose(isCurrent);
  },

  wordsOf: (task) =>
    [task.task_id, task.topic, task.opening, ...(task.decision_types ?? []), ...(task.economic_pathways ?? []),
      ...breakdowns.words(task.labels)].join(" ").toLowerCase(),

  // Takes the scores of the chosen judge, and draws the columns of the chosen models.
  async choose(isCurrent) {
    const { entries, judgings, main } = this.index;
    const judging = judgings.find((each) => this.chosen.judging?.includes(each.label))?? judgings.find((each) => each.key === main);
    const scores = judging ? await prbench.load(judging.scores) : {};
    if (!isCurrent()) return;
    this.models = entries.filter((entry) =>
      !entry.is_also && (!this.chosen.model || this.chosen.model.includes(entry.label)));
    this.lines = this.index.tasks.map((task) => this.line(task, scores));
    this.drawHead();
    await this.find(isCurrent);
  },

  // Looks for the words that are asked for wherever they may stand, and shows the tasks that have them.
  async find(isCurrent) {
    const { words, responses, ...asked } = filters.values();
    this.inResponses = new Set();
    if (words) await taskSearch.addCriteria(this.index);
    if (words && responses && this.models.length) {
      await new Promise((done) => setTimeout(done, 300)); // Until nobody types any more: this reads many files.
      if (!isCurrent()) return;
      const holdsWords = filters.holder(words);
      const others = this.index.tasks.filter((task) => this.matches(task, { ...asked, holdsWords: (text) => !holdsWords(text) }));
      const tell = (n, of) => { document.getElementById("count").textContent = `Searching responses: ${Math.round((100 * n) / of)}% …`; };
      const found = await taskSearch.inResponses(others, this.models, holdsWords, tell, isCurrent);
      if (!found) return;
      this.inResponses = found;
    }
    if (isCurrent()) this.show();
  },

  line(task, scores) {
    const values = this.models.map((model) => scores[model.key]?.values[task.place] ?? null);
    const bounds = this.models.map((model) => scores[model.key]?.bounds[task.place] ?? null);
    const known = values.filter((value) => value !== null);
    const mean = known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
    const spread = known.length > 1 ? Math.max(...known) - Math.min(...known) : null;
    return { task, values, bounds, mean, spread };
  },

  columns() {
    const plain = [
      { name: "task", title: "Task", of: (line) => line.task.place },
      this.hasTopics
        ? { name: "topic", title: "Topic", of: (line) => line.task.topic, kind: "wide" }
        : { name: "field", title: this.index.field_title, of: (line) => line.task.field, kind: "wide" },
      { name: "turns", title: "Turns", of: (line) => line.task.turns, kind: "wide number" },
      { name: "criteria", title: "Criteria", of: (line) => line.task.n_criteria, kind: "wide number" },
    ];
    const models = this.models.map((model, place) => ({
      name: model.key, title: model.label, of: (line) => line.values[place], kind: "model",
    }));
    const over = this.models.length < 2 ? [] : [
      { name: "mean", title: "Mean", of: (line) => line.mean, kind: "wide number" },
      { name: "spread", title: "Spread", of: (line) => line.spread, kind: "wide number" },
    ];
    return [...plain, ...over, ...models];
  },

  drawHead() {
    const headings = this.columns().map(({ name, title, kind }) => {
      const sort = () => {
        const falls = this.sorting.column === name ? !this.sorting.falls : ["model", "wide number"].includes(kind);
        this.sorting = { column: name, falls };
        this.show();
      };
      const button = make("button", { type: "button", on: { click: sort } }, make("span", { title }, title));
      return make("th", { scope: "col", class: kind, "data-name": name }, button);
    });
    document.querySelector("#tasks thead").replaceChildren(make("tr", {}, headings));
  },

  matches(task, asked) {
    return (!asked.field || task.field === asked.field) && (!asked.topic || task.topic === asked.topic)
      && (!asked.category || task.categories?.includes(asked.category)) && breakdowns.match(asked, task.labels)
      && (!asked.split || task.splits?.includes(asked.split)) && (!asked.hard || task.is_hard === (asked.hard === "yes"))
      && taskSearch.isAnswered(asked.answered, task.place, this.models)
      && (asked.holdsWords(task.words) || this.inResponses.has(task.key));
  },

  show() {
    const asked = filters.values();
    const wanted = { ...asked, holdsWords: filters.holder(asked.words) };
    const { column, falls } = this.sorting;
    const lines = this.lines.filter((line) => this.matches(line.task, wanted));
    const value = this.columns().find((each) => each.name === column)?.of ?? ((line) => line.task.place);
    lines.sort((one, other) => this.compare(value(one), value(other), falls) || one.task.place - other.task.place);
    document.querySelectorAll("#tasks th").forEach((heading) => {
      if (heading.dataset.name === column) heading.setAttribute("aria-sort", falls ? "descending" : "ascending");
      else heading.removeAttribute("aria-sort");
    });
    document.getElementById("count").textContent =
      `${written.count(lines.length)} of ${written.count(this.lines.length)} tasks`;
    address.replace({ ...asked, sort: column === "task" ? "" : column, falls: falls ? "yes" : "" });
    this.rows.show(lines, (line) => this.row(line));
  },

  // What is missing comes last, whichever way it is sorted.
  compare(one, other, falls) {
    if (one === null || other === null) return (one === null) - (other === null);
    const order = typeof one === "number" ? one - other : String(one).localeCompare(String(other));
    return falls ? -order : order;
  },

  row({ task, values, bounds, mean, spread }) {
    const link = make("a", { href: `task.html${address.of({ task: task.key, a: this.models[0]?.key })}` }, task.task_id);
    const about = make("p", { class: "opening" }, task.opening ?? "");
    const hard = task.is_hard ? make("span", { class: "tag", title: "In the latest own hard selection" }, "hard") : null;
    return make("tr", { "data-task": task.key },
      make("th", { scope: "row" }, link, " ", hard, about),
      make("td", { class: "wide" }, task.field ?? "", make("br"), make("small", {}, this.about(task))),
      make("td", { class: "wide number" }, written.count(task.turns)),
      make("td", { class: "wide number" }, written.count(task.n_criteria)),
      this.models.length < 2 ? null : [
        make("td", { class: "wide number" }, mean === null ? written.missing : mean.toFixed(2)),
        make("td", { class: "wide number" }, spread === null ? written.missing : spread.toFixed(2)),
      ],
      values.map((value, place) => this.cell(value, bounds[place], this.models[place])));
  },

  // The topic, and the labels of the benchmark's own kinds, each with its kind where one points at it.
  about(task) {
    const labels = this.index.breakdowns.flatMap(({ kind, title }) => task.labels.filter((each) => each.kind === kind)
      .map(({ label }) => make("span", { title }, label)));
    return [task.topic, ...labels].filter(Boolean).flatMap((each, place) => (place ? [" · ", each] : [each]));
  },

  cell(value, bounds, model) {
    if (value !== null) {
      const shade = Math.max(0, Math.min(10, Math.round(value * 10)));
      return make("td", { class: `score heat-${shade}`, "data-model": model.key }, value.toFixed(2).replace("-", "−"));
    }
    if (!bounds) return make("td", { class: "score none", "data-model": model.key, title: "no response" }, written.missing);
    const [low, high] = bounds.map((bound) => bound.toFixed(2).replace("-", "−"));
    const title = `incomplete: between ${low} and ${high}`;
    return make("td", { class: "score none", "data-model": model.key, title }, `${low} to ${high}`);
  },

  // A click anywhere in a line opens its task, on a score with the answer that it is of; arrows move between lines.
  listen(body) {
    body.addEventListener("click", (event) => {
      const row = event.target.closest("tr");
      if (!row || event.target.closest("a") || String(getSelection())) return;
      const model = event.target.closest("td[data-model]")?.dataset.model ?? this.models[0]?.key;
      location.href = `task.html${address.of({ task: row.dataset.task, a: model })}`;
    });
    body.addEventListener("keydown", (event) => {
      const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
      const link = step && event.target.closest("tr")?.[step]?.querySelector("a");
      if (!link) return;
      event.preventDefault();
      link.focus();
    });
  },
};

choice.listeners.push((chosen) => {
  explorer.chosen = chosen;
  prbench.draw((isCurrent) => (explorer.index ? explorer.choose(isCurrent) : explorer.start(isCurrent)));
});
