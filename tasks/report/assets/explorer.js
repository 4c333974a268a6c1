// Search over tasks: in what the index says of them, in their criteria, and, where one asks for it, in responses.
"use strict";

const taskSearch = {
  // Adds the criteria with their ids to the words of the tasks; once, when they are first asked for.
  async addCriteria(index) {
    if (this.hasCriteria) return;
    const { title, criterion_id: id } = await prbench.load(index.criteria);
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
    filters.listen(() => prbench.draw((isNow) => this.find(isNow)));
    this.listen(document.getElementById("tasks"));
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
    await this.draw();
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
    const known = values.filter((value) => value !== null);
    return {
      ...task, task, label: this.hasTopics ? task.topic : task.field,
      bounds: Object.fromEntries(this.models.map(({ key }) => [key, scores[key]?.bounds[task.place]])),
      mean: known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null,
      spread: known.length > 1 ? Math.max(...known) - Math.min(...known) : null,
      ...Object.fromEntries(this.models.map(({ key }, place) => [key, values[place]])),
    };
  },

  columns() {
    const isWide = !matchMedia("(max-width: 45rem)").matches;
    const number = { hozAlign: "right", visible: isWide, width: 100, headerSortStartingDir: "desc" };
    const score = { ...number, formatter: (cell) => (cell.getValue() === null ? written.missing : cell.getValue().toFixed(2)) };
    const models = this.models.map(({ key, label }) => ({
      title: label, field: key, width: 68, minWidth: 68, headerVertical: "flip", hozAlign: "right", cssClass: "score",
      headerSortStartingDir: "desc", formatter: (cell) => this.score(cell),
    }));
    const labels = { title: this.hasTopics ? "Topic" : this.index.field_title, field: "label", width: 170, visible: isWide };
    return [
      { title: "Task", field: "place", frozen: true, minWidth: isWide ? 240 : 150, widthGrow: 1, formatter: (cell) => this.head(cell.getData()) },
      { ...labels, formatter: (cell) => make("div", {}, cell.getData().field ?? "", make("br"), make("small", {}, this.about(cell.getData()))) },
      { title: "Turns", field: "turns", ...number },
      { title: "Criteria", field: "n_criteria", ...number },
      ...(this.models.length < 2 ? [] : [{ title: "Mean", field: "mean", ...score }, { title: "Spread", field: "spread", ...score }]),
      ...models,
    ];
  },

  // Draws the table anew, sorted as the address says.
  async draw() {
    const columns = this.columns();
    const { sort, falls } = address.read();
    const column = columns.some(({ field }) => field === sort) ? sort : "place";
    this.grid?.destroy();
    this.grid = tables.make(document.getElementById("tasks"), "Tasks with their scores", columns, {
      data: this.lines, layout: "fitColumns", maxHeight: "max(24rem, calc(100vh - 5rem))",
      initialSort: [{ column, dir: falls ? "desc" : "asc" }],
    });
    await new Promise((done) => this.grid.on("tableBuilt", done));
    this.grid.on("dataSorted", () => this.link());
    this.grid.on("cellClick", (event, cell) => this.open(event, cell.getData(), cell.getField()));
  },

  link() {
    const [{ field, dir } = {}] = this.grid.getSorters();
    address.replace({ ...filters.values(), sort: field === "place" ? "" : field, falls: dir === "desc" ? "yes" : "" });
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
    const shown = new Set(this.lines.filter(({ task }) => this.matches(task, wanted)).map(({ key }) => key));
    document.getElementById("count").textContent = `${written.count(shown.size)} of ${written.count(this.lines.length)} tasks`;
    this.grid.setFilter(({ key }) => shown.has(key));
    this.link();
  },

  target: ({ key }, model) => `task.html${address.of({ task: key, a: model })}`,

  head(task) {
    const link = make("a", { href: this.target(task, this.models[0]?.key) }, task.task_id);
    const hard = task.is_hard ? make("span", { class: "tag", title: "In the latest own hard selection" }, "hard") : null;
    return make("div", {}, link, " ", hard, make("p", { class: "opening" }, task.opening ?? ""));
  },

  // The topic, and the labels of the benchmark's own kinds, each with its kind where one points at it.
  about(task) {
    const labels = this.index.breakdowns.flatMap(({ kind, title }) => task.labels.filter((each) => each.kind === kind)
      .map(({ label }) => make("span", { title }, label)));
    return [task.topic, ...labels].filter(Boolean).flatMap((each, place) => (place ? [" · ", each] : [each]));
  },

  score(cell) {
    const [value, bounds, element] = [cell.getValue(), cell.getData().bounds[cell.getField()], cell.getElement()];
    const text = (number) => number.toFixed(2).replace("-", "−");
    element.classList.toggle("none", value === null);
    if (value !== null) element.style.setProperty("--heat", `${100 * Math.max(0, Math.min(1, value))}%`);
    else element.title = bounds ? `incomplete: between ${bounds.map(text).join(" and ")}` : "no response";
    return value !== null ? text(value) : bounds ? bounds.map(text).join(" to ") : written.missing;
  },

  // A click anywhere in a line opens its task, on a score with the answer that it is of.
  open(event, task, field) {
    if (event.target.closest("a") || String(getSelection())) return;
    location.href = this.target(task, this.models.find(({ key }) => key === field)?.key ?? this.models[0]?.key);
  },

  // Arrows move between lines.
  listen(place) {
    place.addEventListener("keydown", (event) => {
      const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
      const link = step && event.target.closest(".tabulator-row")?.[step]?.querySelector("a");
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
