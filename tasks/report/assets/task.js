// The page of one task: what is shown stands in the address, so that every verdict has a link of its own.
"use strict";

const page = {
  async draw(isCurrent) {
    this.index ??= await prbench.list("index");
    const asked = address.read();
    const task = this.index.tasks.find((each) => each.key === asked.task || each.task_id === asked.task) ?? (asked.task ? null : this.index.tasks[0]);
    if (!task) throw new Error(this.index.tasks.length ? "This report has no such task." : "There are no tasks yet.");
    const files = await prbench.load(`task-${task.key}`);
    const chosen = this.choose(asked, files);
    const names = ["task", chosen.a, chosen.b].filter((name) => name && files[name]);
    const sections = await Promise.all(names.map(async (name) => [name, await prbench.unpack(files[name][2])]));
    if (!isCurrent()) return;
    this.show(task, { ...asked, ...chosen, task: task.key }, new Map(sections));
  },

  // The entries and trials that are asked for, as far as the task has them; else the first one alone.
  choose(asked, files) {
    const known = this.index.entries.filter((entry) => files[entry.key]);
    const of = (key) => known.find((entry) => entry.key === key);
    const a = of(asked.a) ?? known[0];
    const b = of(asked.b);
    const trial = (entry, value) => (entry ? entry.trials.find((each) => String(each) === value) ?? entry.trials[0] : undefined);
    return { a: a?.key, ta: trial(a, asked.ta), b: b?.key, tb: trial(b, asked.tb), known };
  },

  show(task, { known, ...asked }, sections) {
    const { criteria, conversation, is_sent } = sections.get("task");
    const sides = [["A", asked.a, asked.ta], ["B", asked.b, asked.tb]].filter(([, key]) => key).map(([name, key, trial]) => {
      const side = { name, trial, entry: known.find((entry) => entry.key === key), section: sections.get(key) };
      side.answer = side.section?.answers?.find((answer) => answer.trial === trial);
      return Object.assign(side, { cells: judged.byCell(side) });
    });
    this.shown = { asked, sides, task: { ...task, criteria, conversation, is_sent } };
    document.getElementById("shown").hidden = false;
    this.drawTop(task, asked, known);
    ["#compare", ".toggle", "section:has(#points)"].forEach((place) => document.querySelector(place).toggleAttribute("hidden", !sides.length));
    answers.drawConversation(conversation, is_sent);
    this.drawAnswers();
    judged.drawPoints(sides, this.index.judgings);
    document.getElementById("narrow").elements.show.value = asked.show ?? "";
    judged.drawCriteria(this.shown.task, sides, this.index, asked);
    this.reveal(asked);
  },

  drawAnswers() {
    answers.draw(this.shown.sides, document.getElementById("as-text").checked);
  },

  drawTop(task, asked, known) {
    document.querySelector("h1").textContent = task.task_id;
    document.title = document.title.replace(/^.*(?= · )/, () => task.task_id);
    const facts = [
      [this.index.field_title, task.field], ["Topic", task.topic], ["Asked by", task.expert], ["Splits", task.splits?.join(", ")],
      ["Decision", task.decision_types?.join(", ")], ["Pathway", task.economic_pathways?.join(", ")],
      ...this.index.breakdowns.map(({ kind, title }) =>
        [title, breakdowns.words(task.labels.filter((each) => each.kind === kind)).join(", ")]),
      ["Hard", task.is_hard ? "in the latest own hard selection" : null],
    ];
    document.getElementById("about").replaceChildren(...facts.filter(([, value]) => value).map(([name, value]) =>
      make("div", {}, make("dt", {}, name), make("dd", {}, value))));
    const place = this.index.tasks.findIndex((each) => each.key === task.key);
    const same = { a: asked.a, ta: asked.ta, b: asked.b, tb: asked.tb, show: asked.show };
    [["previous", -1], ["next", 1]].forEach(([id, step]) => {
      const other = this.index.tasks[place + step];
      const link = document.getElementById(id);
      link.toggleAttribute("hidden", !other);
      if (!other) return;
      link.href = address.of({ ...same, task: other.key });
      link.replaceChildren(step < 0 ? `‹ ${other.task_id}` : `${other.task_id} ›`);
    });
    this.drawChoice(asked, known);
  },

  drawChoice(asked, known) {
    const { a, ta, b, tb } = document.getElementById("compare").elements;
    const options = known.map((entry) => [entry.key, entry.is_also ? `${entry.label} (earlier)` : entry.label]);
    const trials = (key) => (known.find((entry) => entry.key === key)?.trials ?? []).map((trial) => [trial, trial]);
    const fill = (select, pairs, value) => {
      select.replaceChildren(...pairs.map(([key, label]) => make("option", { value: key }, String(label))));
      select.value = value ?? "";
      select.closest("label").hidden = pairs.length === 0;
    };
    fill(a, options, asked.a);
    fill(b, [["", "none"], ...options], asked.b);
    fill(ta, trials(asked.a), asked.ta);
    fill(tb, trials(asked.b), asked.tb);
    document.getElementById("swap").hidden = !asked.b;
  },

  // Brings what the address names into view, once for each address.
  reveal(asked) {
    const at = JSON.stringify([asked.task, asked.criterion, asked.judging, asked.side]);
    if (!asked.criterion || at === this.revealed) return;
    this.revealed = at;
    const target = document.querySelector("#criteria .marked");
    target?.scrollIntoView({ block: "center" });
    target?.focus({ preventScroll: true });
  },

  // Another address is another state that "back" leads out of.
  go(changes) {
    location.hash = address.of({ ...this.shown.asked, ...changes });
  },

  listen() {
    const compare = document.getElementById("compare");
    compare.addEventListener("submit", (event) => event.preventDefault());
    compare.addEventListener("change", ({ target }) => this.go({ [target.name]: target.value }));
    document.getElementById("swap").addEventListener("click", () => {
      const { a, ta, b, tb } = this.shown.asked;
      this.go({ a: b, ta: tb, b: a, tb: ta });
    });
    document.getElementById("as-text").addEventListener("change", () => this.drawAnswers());
    document.getElementById("narrow").addEventListener("submit", (event) => event.preventDefault());
    document.getElementById("narrow").addEventListener("change", ({ target }) => this.go({ show: target.value, criterion: "", judging: "", side: "" }));
    addEventListener("hashchange", () => prbench.draw((isCurrent) => this.draw(isCurrent)));
  },
};

document.addEventListener("DOMContentLoaded", () => {
  page.listen();
  prbench.draw((isCurrent) => page.draw(isCurrent));
});
