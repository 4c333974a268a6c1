// Helpers for the drill-down: data files, numbers, verdicts, the address, filters.
"use strict";

// Data files are scripts that pass on packed JSON, because a page opened from disk may not read files.
const prbench = {
  requests: new Map(), // Name of a data file -> the promise of its content, with its functions `resolve` and `reject`.

  // Every data file calls this with its content.
  give: (name, packed) => prbench.requests.get(name).resolve(prbench.unpack(packed)),

  // Returns the content of data/<name>.js; names come from the index, never from elsewhere.
  load(name) {
    if (!this.requests.has(name)) {
      const request = {};
      request.promise = new Promise((resolve, reject) => Object.assign(request, { resolve, reject }));
      const why = `data/${name}.js cannot be loaded. Reload the page: the report may have been rebuilt.`;
      const error = () => request.reject(new Error(why));
      this.requests.set(name, request);
      document.head.append(make("script", { src: `data/${name}.js`, load: ({ target }) => target.remove(), error }));
    }
    return this.requests.get(name).promise;
  },

  // Returns the part about a task in the file of its block; `files` maps blocks to files.
  section: async (files, task) => (await prbench.load(files[task.block]))[task.key],

  async unpack(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  },

  // Returns the criteria of all tasks, in the order of the tasks.
  async criteria({ tasks, criteria }) {
    const columns = Object.entries(await prbench.load(criteria));
    const repeated = tasks.flatMap((task) => Array(task.n_criteria).fill(task));
    return repeated.map((task, ordinal) => {
      const values = columns.map(([name, column]) => [name, column[ordinal]]);
      return { task, ordinal, ...Object.fromEntries(values) };
    });
  },

  // Prepares a list once, and shows it again at each new choice of models or judge.
  followChoice: (list) => document.addEventListener("choice", ({ detail }) => {
    list.without = detail;
    prbench.draw(async (isCurrent) => {
      await (list.ready ??= list.start());
      await list.choose(isCurrent);
    });
  }),

  // Returns the chosen models of a list, without entries that are only for comparison.
  chosenModels: ({ index, without }) =>
    index.entries.filter((entry) => !entry.is_earlier && !without.model.includes(entry.label)),

  turn: 0, // The number of the latest drawing.

  // Draws a page, and shows an error on it if that fails; a later call ends an earlier one.
  async draw(work) {
    this.turn += 1;
    const { turn } = this;
    const error = await work(() => turn === this.turn).then(() => null, (reason) => reason);
    if (turn !== this.turn) return;
    const state = { hidden: !error, className: "notice bad", role: "alert", textContent: error?.message ?? "" };
    Object.assign(byId("state"), state);
    document.documentElement.dataset.rendered = "yes";
  },
};

const written = {
  missing: "–",
  count: (value) => value?.toLocaleString("en") ?? written.missing,
  score: (value, decimals = 3) => value?.toFixed(decimals).replace("-", "−") ?? written.missing,
  points: (value) => String(Math.round(value * 100) / 100).replace("-", "−"),
  weight: (value) => (value === null ? "no weight" : `${value > 0 ? "+" : ""}${written.points(value)}`),
  usd: (value) => (value === null ? "unknown" : `$${value < 0.1 ? value.toPrecision(2) : value.toFixed(2)}`),
};

const verdicts = {
  signs: { met: "✓", partial: "◐", unmet: "✗", no_response: "∅", not_judged: "–" },
  kinds: { met: "good", partial: "warn", unmet: "bad", not_judged: "none" },
  isDecided: (status) => ["met", "partial", "unmet"].includes(status),
  isFailure: (status) => !verdicts.isDecided(status) && status !== "not_judged",
  word: (status) => ({ partial: "partly met", unmet: "not met" })[status] ?? status.replaceAll("_", " "),

  // Returns the effect of a verdict on the score: meeting a negative criterion is bad, not meeting it is good.
  kind(status, weight) {
    const kind = this.kinds[status] ?? "failed";
    return weight < 0 ? { good: "bad", bad: "good" }[kind] ?? kind : kind;
  },

  // Returns a status as a sign and a word, in the colour of its effect on the score; a failure has no such colour.
  badge(status, weight = null) {
    const sign = make("span", { "aria-hidden": "true" }, this.signs[status] ?? "⚠");
    return make("span", { class: `badge ${this.kind(status, weight)}` }, sign, ` ${this.word(status)}`);
  },
};

// Returns the labels of a row, all or those of one kind; the index lists the kinds.
const labelsOf = ({ labels }, kind = null) =>
  labels.filter((row) => kind === null || row.kind === kind).map(({ label }) => label);

// The part of the address after `#`, which says what a page shows; an empty value is left out.
const address = {
  read: () => Object.fromEntries(new URLSearchParams(location.hash.slice(1))),
  of: (values) => `#${new URLSearchParams(Object.entries(values).filter(([, value]) => (value ?? "") !== ""))}`,
  replace: (values) => attempt(() => history.replaceState(null, "", address.of(values))),
};

// A form of filters whose values are in the address, so that a link leads to the same rows.
const filters = {
  // Adds a menu for each kind of label, with the labels of all rows (`valuesOf` returns those of a row) or with the
  // given `pairs`. A menu with a single label is left out.
  start(kinds, rows, change) {
    const form = byId("filters");
    const request = address.read();
    this.kinds = kinds;
    for (const kind of kinds) {
      const pairs = kind.pairs ?? this.pairs(rows.flatMap(kind.valuesOf));
      const select = make("select", { name: kind.name }, options([["", "all"], ...pairs], request[kind.name]));
      if (pairs.length > 1) form.querySelector(".words").before(make("label", {}, `${kind.title} `, select), " ");
    }
    form.elements.words.value = request.words ?? "";
    if (request.responses) form.elements.responses.checked = true;
    form.addEventListener("input", change);
    form.addEventListener("reset", () => setTimeout(change));
  },

  // Returns the options of a menu: the labels in alphabetical order, each once.
  pairs(labels) {
    const unique = [...new Set(labels)].filter(Boolean);
    return unique.sort((first, second) => first.localeCompare(second)).map((label) => [label, label]);
  },

  // Returns the menus of what both lists know of a task.
  ofTasks: ({ field_title: field }, taskOf) => [
    { name: "field", title: field, valuesOf: (row) => taskOf(row).field ?? [] },
    { name: "topic", title: "Topic", valuesOf: (row) => taskOf(row).topic ?? [] },
    { name: "split", title: "Split", valuesOf: (row) => taskOf(row).splits ?? [] },
  ],

  // Returns a menu for each kind of label in the index; `carriers` returns the objects with the labels of a row.
  ofLabels: (breakdowns, carriers) => breakdowns.map(({ kind, title }) => ({
    name: `breakdown-${kind}`,
    title,
    valuesOf: (row) => carriers(row).flatMap((carrier) => labelsOf(carrier, kind)),
  })),

  values() {
    const request = Object.fromEntries([...new FormData(byId("filters"))].map(([name, value]) => [name, value.trim()]));
    const words = request.words.toLowerCase().split(/\s+/).filter(Boolean);
    return { request, holds: (text) => words.every((word) => text.includes(word)) }; // `text` must be in lower case.
  },

  // Returns true if a row has every requested label.
  matches: (row, request) => filters.kinds.every(({ name, valuesOf }) =>
    !request[name] || !valuesOf || [valuesOf(row)].flat().includes(request[name])),
};
