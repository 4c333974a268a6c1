// The page of all tasks: a line for each task with the score of every chosen model, sorted and filtered.
"use strict";

const explorer = {
  async start() {
    this.index = await prbench.load("index");
    const { tasks, breakdowns, category_title: category } = this.index;
    tasks.forEach((task, ordinal) => Object.assign(task, { ordinal, words: this.words(task) }));
    this.hasTopics = tasks.some((task) => task.topic);
    filters.start([
      ...filters.ofTasks(this.index, (task) => task),
      { name: "category", title: category, valuesOf: (task) => task.categories ?? [] },
      { name: "hard", title: "Hard", valuesOf: (task) => (task.is_hard ? "hard" : "others") },
      ...filters.ofLabels(breakdowns.filter((breakdown) => !breakdown.of_criteria), (task) => [task]),
    ], tasks, () => prbench.draw((isCurrent) => this.find(isCurrent)));
  },

  words(task) {
    const labels = [task.decision_types ?? [], task.economic_pathways ?? [], labelsOf(task)].flat();
    return [task.task_id, task.topic, task.opening, ...labels].join(" ").toLowerCase();
  },

  // Loads the scores of the chosen judge, and draws the columns of the chosen models.
  async choose(isCurrent) {
    const { judge_configs, main } = this.index;
    const judges = this.without.judge_config;
    const isChosen = ({ key, label }) => (judges.length ? !judges.includes(label) : key === main);
    const judge_config = judge_configs.find(isChosen);
    const scores = judge_config ? await prbench.load(judge_config.scores) : {};
    if (!isCurrent()) return;
    this.models = prbench.chosenModels(this);
    this.lines = this.index.tasks.map((task) => this.line(task, scores));
    await this.draw();
    await this.find(isCurrent);
  },

  line(task, scores) {
    const scoreByModel = {};
    const bounds = {};
    for (const { key } of this.models) {
      const [score, ...ends] = scores[key]?.[task.ordinal] ?? [];
      scoreByModel[key] = score ?? null;
      bounds[key] = ends;
    }
    const values = Object.values(scoreByModel).filter((score) => score !== null);
    return {
      ...task,
      task,
      label: this.hasTopics ? task.topic : task.field,
      bounds,
      mean: values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null,
      spread: values.length > 1 ? Math.max(...values) - Math.min(...values) : null,
      ...scoreByModel,
    };
  },

  // Shows the tasks that match the filters and contain all words: in their texts, or in criteria or responses.
  async find(isCurrent) {
    const { request, holds } = filters.values();
    if (request.words) await (this.withCriteria ??= this.addCriteria());
    const matching = this.lines.filter((line) => filters.matches(line, request));
    const others = matching.filter(({ task }) => !holds(task.words));
    const matches = request.words && request.responses ? await this.inResponses(others, holds, isCurrent) : new Set();
    if (!isCurrent()) return;
    const rows = matching.filter(({ task }) => holds(task.words) || matches.has(task.key));
    byId("count").textContent = `${written.count(rows.length)} of ${written.count(this.lines.length)} tasks`;
    await this.grid.setData(rows);
    address.replace(request);
  },

  // Adds criteria and their ids to the texts in which words are searched.
  async addCriteria() {
    for (const { task, title, criterion_id: id } of await prbench.criteria(this.index)) {
      task.words += ` ${title} ${id}`.toLowerCase();
    }
  },

  // Returns the keys of tasks with a response that contains all words. Waits until the user stops typing, because it
  // reads many files, block by block.
  async inResponses(tasks, holds, isCurrent) {
    await new Promise((done) => setTimeout(done, 300));
    const keys = new Set();
    const blocks = [...new Set(tasks.map((task) => task.block))];
    for (const [number, block] of blocks.entries()) {
      if (!isCurrent()) break;
      byId("count").textContent = `Searching responses: ${Math.round((100 * number) / blocks.length)}% …`;
      const names = this.models.map((model) => model.blocks[block]).filter(Boolean);
      const files = await Promise.all(names.map((name) => prbench.load(name)));
      names.forEach((name) => prbench.requests.delete(name)); // All files together may not fit into memory.
      const isIn = (file, key) => file[key]?.responses.some(({ text }) => text !== null && holds(text.toLowerCase()));
      tasks.filter(({ key }) => files.some((file) => isIn(file, key))).forEach(({ key }) => keys.add(key));
    }
    return keys;
  },

  columns() {
    const isWide = !matchMedia("(max-width: 45rem)").matches;
    const right = { hozAlign: "right", headerHozAlign: "right", headerSortStartingDir: "desc" };
    const number = { ...right, visible: isWide, width: 100 };
    const score = { ...number, formatter: (cell) => written.score(cell.getValue(), 2) };
    return [
      { title: "Task", field: "ordinal", frozen: true, minWidth: isWide ? 240 : 150, widthGrow: 1,
        formatter: (cell) => this.head(cell.getData()), accessorDownload: (_value, row) => tables.plain(row.task_id) },
      { title: this.hasTopics ? "Topic" : this.index.field_title, field: "label", width: 170, visible: isWide,
        formatter: (cell) => this.about(cell.getData()) },
      { title: "Turns", field: "turns", ...number },
      { title: "Criteria", field: "n_criteria", ...number },
      ...(this.models[1] ? ["Mean", "Spread"] : []).map((title) => ({ title, field: title.toLowerCase(), ...score })),
      ...this.models.map(({ key: field, label: title }) => ({ ...right, title, field, width: 68, minWidth: 68,
        headerVertical: "flip", cssClass: "score", formatter: (cell) => this.score(cell) })),
    ];
  },

  async draw() {
    const columns = this.columns();
    this.tools?.remove();
    this.grid?.destroy();
    // A fixed height, because measuring every row takes most of the time that the page takes to open.
    const rowHeight = columns[1].visible ? 72 : false;
    const options = { ...tables.ofPage, rowHeight, initialSort: [{ column: "ordinal", dir: "asc" }] };
    this.grid = tables.grid(byId("tasks"), "Tasks with their scores", columns, options);
    await this.grid.built;
    this.tools = tables.tools(this.grid, "tasks");
  },

  target: ({ key }, model) => `task.html${address.of({ task: key, a: model })}`,

  head(task) {
    return make("div", {}, make("a", { href: this.target(task, this.models[0]?.key) }, task.task_id), " ",
      task.is_hard && make("span", { class: "tag", title: "In the latest own hard selection" }, "hard"),
      para("opening", task.opening ?? ""));
  },

  // Returns the field, the topic, and labels of the benchmark's own kinds.
  about(task) {
    const labels = [task.topic, ...this.index.breakdowns.flatMap(({ kind }) => labelsOf(task, kind))].filter(Boolean);
    return make("div", {}, task.field ?? "", make("br"), make("small", {}, labels.join(" · ")));
  },

  // Returns the cell of a score, with a link to the response.
  score(cell) {
    const value = cell.getValue();
    const task = cell.getData();
    const model = cell.getField();
    const element = cell.getElement();
    const range = task.bounds[model].map((end) => written.score(end, 2)).join(" to ");
    element.classList.toggle("none", value === null);
    if (value !== null) element.style.setProperty("--heat", `${100 * Math.max(0, Math.min(1, value))}%`);
    const text = value === null && range ? range : written.score(value, 2);
    return text === written.missing ? text : make("a", { href: this.target(task, model) }, text);
  },
};

prbench.followChoice(explorer);
