// Search over tasks: in what the index says of them, in their criteria, and, where one asks for it, in responses.
"use strict";

const taskSearch = {
  batch: 8, // So many tasks' files are read at once.

  // Adds the criteria with their ids to the words of the tasks; once, when they are first asked for.
  async addCriteria(index) {
    if (this.hasCriteria) return;
    const { title, id } = await prbench.list("criteria", index);
    let place = 0;
    for (const task of index.tasks) {
      const end = place + task.n_criteria;
      task.words = [task.words, ...title.slice(place, end), ...id.slice(place, end)].join(" ").toLowerCase();
      place = end;
    }
    this.hasCriteria = true;
  },

  // Whether one of the models' responses to a task holds all words; the task's file is read and not kept.
  async isInResponses(task, models, holdsWords) {
    const name = `task-${task.key}`;
    const files = await prbench.load(name);
    prbench.asked.delete(name);
    for (const { key } of models.filter((model) => files[model.key])) {
      const { answers: given = [] } = await prbench.unpack(files[key][2]);
      if (given.some(({ text }) => text !== null && holdsWords(text.toLowerCase()))) return true;
    }
    return false;
  },

  // The keys of the tasks whose responses hold the words, read in batches; null where another search has begun.
  async inResponses(tasks, models, holdsWords, tell, isCurrent) {
    const found = new Set();
    for (let start = 0; start < tasks.length; start += this.batch) {
      tell(start, tasks.length);
      const batch = tasks.slice(start, start + this.batch);
      const hits = await Promise.all(batch.map((task) => this.isInResponses(task, models, holdsWords)));
      if (!isCurrent()) return null;
      batch.filter((_, place) => hits[place]).forEach((task) => found.add(task.key));
    }
    return found;
  },

  // Whether the chosen models answered a task: `all` of them, `some` but not all, or `none`.
  isAnswered(asked, place, models) {
    const count = models.filter((model) => model.answered[place] === "1").length;
    return { all: count === models.length, some: count > 0 && count < models.length, none: count === 0 }[asked] ?? true;
  },
};
