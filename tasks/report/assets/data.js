// What the pages of the drill-down share: data that they ask for, numbers, verdicts, the address, filters.
"use strict";

// Data files are scripts that hand over packed JSON, since a page opened from disk may not read files.
const prbench = {
  waiting: new Map(), // Name -> who waits for what its script hands over.
  requests: new Map(), // Name -> the promise of it.

  // What the scripts in data/ call.
  give(name, content) {
    this.waiting.get(name)(content);
    this.waiting.delete(name);
  },

  // The content of data/<name>.js; a name is one that the index holds, never a text from elsewhere.
  load(name) {
    if (!this.requests.has(name)) this.requests.set(name, this.request(name).then(this.unpack));
    return this.requests.get(name);
  },

  // What the files of the blocks of tasks hold of a task.
  section: async (files, task) => (await prbench.load(files[task.block]))[task.key],

  request: (name) => new Promise((resolve, reject) => {
    const why = `data/${name}.js cannot be loaded. Reload the page: the report may have been rebuilt.`;
    const script = make("script", { src: `data/${name}.js`, load: () => script.remove(), error: () => reject(new Error(why)) });
    prbench.waiting.set(name, resolve);
    document.head.append(script);
  }),

  async unpack(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  },

  // The criteria of all tasks, in the order of the tasks.
  async criteria({ tasks, criteria }) {
    const columns = Object.entries(await prbench.load(criteria));
    return tasks.flatMap((task) => Array(task.n_criteria).fill(task)).map((task, i) =>
      ({ task, ordinal: i, ...Object.fromEntries(columns.map(([name, values]) => [name, values[i]])) }));
  },

  // A list is prepared once, and shown again whenever other models or another judge are chosen.
  followChoice: (list) => document.addEventListener("choice", ({ detail }) => {
    list.chosen = detail;
    prbench.draw(async (isCurrent) => {
      await (list.ready ??= list.start());
      await list.choose(isCurrent);
    });
  }),

  // Runs what draws a page, and says on the page what went wrong; a later run of the same page ends an earlier one.
  async draw(work) {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const error = await work(() => turn === this.turn).then(() => null, (reason) => reason);
    if (turn !== this.turn) return;
    const failed = { hidden: !error, className: "notice bad", role: "alert", textContent: error?.message ?? "" };
    Object.assign(byId("state"), failed);
    document.documentElement.dataset.rendered = "yes";
  },
};

const written = {
  missing: "–",
  count: (value) => value?.toLocaleString("en") ?? written.missing,
  score: (value, decimals = 3) => value?.toFixed(decimals).replace("-", "−") ?? written.missing,
  points: (value) => String(Math.round(value * 100) / 100).replace("-", "−"),
  signed: (value) => (value > 0 ? "+" : "") + written.points(value),
  change: (value) => (value > 0 ? "+" : "") + written.score(value),
  weight: (value) => (value === null ? "no weight" : written.signed(value)),
  usd: (value) => (value === null ? "unknown" : `$${value < 0.1 ? value.toPrecision(2) : value.toFixed(2)}`),
};

const verdicts = {
  signs: { met: "✓", partial: "◐", unmet: "✗", no_response: "∅", not_judged: "–" },
  values: { met: 1, partial: 0.5, unmet: 0 },
  kinds: { met: "good", partial: "warn", unmet: "bad", not_judged: "none" },
  isDecided: (status) => status in verdicts.values,
  isFailure: (status) => !verdicts.isDecided(status) && status !== "not_judged",
  word: (status) => ({ partial: "partly met", unmet: "not met" })[status] ?? status.replaceAll("_", " "),

  // Whether a verdict is good, bad or between for the score: meeting a negative criterion is bad, avoiding it good.
  kind(status, weight) {
    const kind = this.kinds[status] ?? "failed";
    return weight < 0 ? { good: "bad", bad: "good" }[kind] ?? kind : kind;
  },

  // A status with its sign and its word, in the colour of its effect on the score; a failure is no verdict.
  badge(status, weight = null) {
    const sign = make("span", { "aria-hidden": "true" }, this.signs[status] ?? "⚠");
    return make("span", { class: `badge ${this.kind(status, weight)}` }, sign, ` ${this.word(status)}`);
  },

  // What a verdict gave of what it could give or take: "+5 / +5", "+0 / −7"; null where nothing is decided.
  effect(status, weight) {
    if (!this.isDecided(status) || weight === null) return null;
    const points = this.values[status] * weight;
    const text = [points || 0, weight].map((value) => (value < 0 ? "" : "+") + written.points(value)).join(" / ");
    return make("span", { class: `effect ${this.kind(status, weight)}`, title: "points / weight" }, text);
  },
};

// The labels of a row, or those of a kind that only some benchmarks have; the index says which kinds there are.
const labelsOf = ({ labels }, kind = null) =>
  labels.filter((each) => [null, each.kind].includes(kind)).map(({ label }) => label);

// The part of the address behind `#`, which holds what a page shows; an empty value is left out.
const address = {
  read: () => Object.fromEntries(new URLSearchParams(location.hash.slice(1))),
  of: (values) => `#${new URLSearchParams(Object.entries(values).filter(([, value]) => (value ?? "") !== ""))}`,
  replace: (values) => attempt(() => history.replaceState(null, "", address.of(values))),
};

// A form of filters whose values stand in the address, so that a link leads to what is shown.
const filters = {
  // Adds a choice for each kind of label: its name and title, the labels of a row, and, where they are not all those that
  // the rows have, the values that can be chosen with their words. One with a single label is left out.
  start(kinds, rows, change) {
    const form = byId("filters");
    this.kinds = kinds;
    for (const { name, title, of, options: given } of kinds) {
      const labels = () => [...new Set(rows.flatMap(of))].filter(Boolean).sort((a, b) => a.localeCompare(b));
      const pairs = given ?? labels().map((label) => [label, label]);
      const select = make("select", { name }, options([["", "all"], ...pairs]));
      if (pairs.length > 1) form.querySelector(".words").before(make("label", {}, `${title} `, select), " ");
    }
    for (const [name, value] of Object.entries(address.read())) {
      const control = form.elements.namedItem(name);
      if (control?.type === "checkbox") control.checked = true;
      else if (control) control.value = value;
      if (control?.selectedIndex < 0) control.value = ""; // A value that can no longer be chosen.
    }
    form.addEventListener("input", change);
    form.addEventListener("reset", () => setTimeout(change));
  },

  // A choice for each kind of label that the index names, of the rows that carry a row's labels.
  ofLabels: (breakdowns, carriers) => breakdowns.map(({ kind, title }) =>
    ({ name: `breakdown-${kind}`, title, of: (row) => carriers(row).flatMap((each) => labelsOf(each, kind)) })),

  values() {
    const request = Object.fromEntries([...new FormData(byId("filters"))].map(([name, value]) => [name, value.trim()]));
    const words = request.words.toLowerCase().split(/\s+/).filter(Boolean);
    return { request, holds: (text) => words.every((word) => text.includes(word)) }; // `text` in small letters.
  },

  // Whether a row has every label that is asked for.
  matches: (row, request) =>
    filters.kinds.every(({ name, of }) => !request[name] || !of || [of(row)].flat().includes(request[name])),
};
