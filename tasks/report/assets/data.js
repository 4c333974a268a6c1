// Data that a page asks for: scripts that hand over packed JSON, since a page opened from disk may not read files.
"use strict";

const prbench = {
  given: new Map(), // What a script has handed over, by name.
  asked: new Map(), // Name -> the promise of it.

  // What the scripts in data/ call.
  give(name, content) {
    this.given.set(name, content);
  },

  // The content of data/<name>.js; a name is one that the index holds, never a text from elsewhere.
  load(name) {
    if (!this.asked.has(name)) {
      const promise = this.request(name).then((text) => this.unpack(text));
      this.asked.set(name, promise);
      promise.catch(() => this.asked.delete(name)); // It may be there the next time.
    }
    return this.asked.get(name);
  },

  // What the files of the blocks of tasks hold of a task.
  section: async (files, task) => (files[task.block] ? (await prbench.load(files[task.block]))[task.key] : undefined),

  request(name) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      const end = () => {
        script.remove();
        if (this.given.has(name)) resolve(this.given.get(name));
        else reject(new Error(`data/${name}.js cannot be loaded. Reload the page: the report may have been rebuilt.`));
        this.given.delete(name);
      };
      script.addEventListener("load", end);
      script.addEventListener("error", end);
      script.src = `data/${name}.js`;
      document.head.append(script);
    });
  },

  async unpack(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  },

  // Says on the page what went wrong, or, without an error, nothing more.
  tell(error) {
    const place = document.getElementById("state");
    place.hidden = !error;
    place.className = "notice bad";
    place.setAttribute("role", "alert");
    place.textContent = error ? error.message : "";
    if (error) document.documentElement.dataset.failed = "yes";
    else delete document.documentElement.dataset.failed;
  },

  // Runs what draws a page; a later run of the same page ends an earlier one.
  async draw(work) {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    try {
      await work(() => turn === this.turn);
      if (turn === this.turn) this.tell(null);
    } catch (error) {
      if (turn === this.turn) this.tell(error);
    }
    if (turn === this.turn) document.documentElement.dataset.drawn = "yes";
  },
};

// What the pages of the drill-down share: elements whose text is always text, numbers, verdicts, lists that grow.
// An element; attributes that are null or false are left out, `on` holds listeners.
const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") Object.entries(value).forEach(([event, listener]) => element.addEventListener(event, listener));
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
};

const written = {
  missing: "–",
  count: (value) => (value === null || value === undefined ? written.missing : value.toLocaleString("en")),
  score: (value) => (value === null || value === undefined ? written.missing : value.toFixed(3).replace("-", "−")),
  signed: (value) => (value > 0 ? "+" : "") + written.score(value),
  points: (value) => String(Math.round(value * 100) / 100).replace("-", "−"),
  weight: (value) => (value === null ? "no weight" : `${value > 0 ? "+" : ""}${written.points(value)}`),
  usd: (value) => (value === null ? "unknown" : `$${value < 0.1 ? value.toPrecision(2) : value.toFixed(2)}`),
  seconds: (value) => (value === null ? written.missing : `${value.toFixed(1)} s`),
};

const verdicts = {
  signs: { met: "✓", partial: "◐", unmet: "✗", no_response: "∅", not_judged: "–" },
  values: { met: 1, partial: 0.5, unmet: 0 },
  kinds: { met: "good", partial: "warn", unmet: "bad", not_judged: "none" },
  isFailure: (status) => !(status in verdicts.values) && status !== "not_judged",
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

  // What a verdict gave of what it could give or take: "+5 / +5", "+0 / -7"; null where nothing is decided.
  effect(status, weight) {
    if (!(status in this.values) || weight === null) return null;
    const points = this.values[status] * weight;
    const sign = (value) => `${value < 0 ? "" : "+"}${written.points(value)}`;
    return make("span", { class: `effect ${this.kind(status, weight)}`, title: "points / weight" }, `${sign(points || 0)} / ${sign(weight)}`);
  },
};

// The part of the address behind `#`, which holds what a page shows; an empty value is left out.
const address = {
  read: () => Object.fromEntries(new URLSearchParams(location.hash.slice(1))),
  of(values) {
    return `#${new URLSearchParams(Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== ""))}`;
  },
  replace(values) {
    try {
      history.replaceState(null, "", this.of(values));
    } catch {
      // Browsers refuse it when it is called very often: then the address stays as it is.
    }
  },
};

// A form of filters whose values stand in the address, so that a link leads to what is shown.
const filters = {
  form: () => document.getElementById("filters"),

  fill(name, labels) {
    const select = this.form().elements[name];
    [...new Set(labels)].filter((label) => label !== null).sort((one, other) => one.localeCompare(other))
      .forEach((label) => select.append(make("option", { value: label }, label)));
    select.closest("label").hidden = select.options.length < 3;
  },

  // Calls a filter what its labels are called here.
  name(name, title) {
    this.form().elements[name].closest("label").firstChild.textContent = `${title} `;
  },

  restore() {
    const stored = address.read();
    for (const control of this.form().elements) {
      if (!control.name || !(control.name in stored)) continue;
      if (control.type === "checkbox") control.checked = stored[control.name] === "yes";
      else control.value = stored[control.name];
      if (control.tagName === "SELECT" && control.selectedIndex < 0) control.value = "";
    }
  },

  values() {
    const named = [...this.form().elements].filter((control) => control.name);
    return Object.fromEntries(named.map((control) =>
      [control.name, control.type === "checkbox" ? (control.checked ? "yes" : "") : control.value.trim()]));
  },

  listen(change) {
    this.form().addEventListener("submit", (event) => event.preventDefault());
    this.form().addEventListener("input", change);
    this.form().addEventListener("reset", () => setTimeout(change));
  },

  // What says whether a text, in small letters, holds every one of some words.
  holder(words) {
    const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
    return (text) => parts.every((part) => text.includes(part));
  },
};

// Labels of kinds that only some benchmarks have: the index says which there are.
const breakdowns = {
  offered: [],
  name: (kind) => `breakdown-${kind}`,

  // Adds a filter for each kind to the form, before the words.
  offer(kinds, labels) {
    this.offered = kinds;
    const words = filters.form().querySelector(".words");
    kinds.forEach(({ kind, title }) => {
      const name = this.name(kind);
      words.before(make("label", {}, `${title} `, make("select", { name }, make("option", { value: "" }, "all"))), " ");
      filters.fill(name, labels.filter((each) => each.kind === kind).map((each) => each.label));
    });
  },

  match(asked, labels) {
    return this.offered.every(({ kind }) => {
      const wanted = asked[this.name(kind)];
      return !wanted || labels.some((each) => each.kind === kind && each.label === wanted);
    });
  },

  words: (labels) => labels.map((each) => each.label),
};
