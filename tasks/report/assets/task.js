// The page of a task. The address says what is shown, so every verdict has a link of its own.
"use strict";

// Returns names with their values, without empty ones.
const definitions = (facts) => {
  const texts = facts.map(([name, value]) => [name, [value].flat().filter(Boolean).join(", ")]);
  const filled = texts.filter(([, text]) => text);
  return filled.map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text)));
};
const tag = (text) => make("span", { class: "tag" }, text);
const flipTag = (text, kind = "") => make("span", { class: `tag flip ${kind}` }, text);
const letter = (side) => make("strong", {}, side.name);

// The conversation of a task, and the responses of two models side by side.
const responses = {
  drawConversation({ conversation, is_sent: isSent }) {
    const note = isSent ? "" : para("empty", "As the data gives it; it is not assembled yet.");
    const turns = conversation.map(({ role, content, html }) => {
      const text = html === undefined ? scrolling("div", "exact", content) : this.text({ text: content, html });
      return make("article", { class: `turn ${role}` }, make("h3", {}, role), text);
    });
    byId("conversation").replaceChildren(note, ...turns);
  },

  draw(sides) {
    const none = para("empty", "No model in this report has a response to this task.");
    byId("responses").replaceChildren(...(sides.length ? sides.map((side) => this.side(side)) : [none]));
  },

  side(side) {
    const { response, entry } = side;
    const content = response ? this.content(side) : para("empty", "No response in this trial.");
    return make("article", { class: "response" }, make("h3", {}, letter(side), ` ${entry.label}`), content);
  },

  content(side) {
    const { response } = side;
    const failure = `No response: ${verdicts.word(response.status)}. ${response.error ?? ""}`;
    return [
      this.facts(response),
      make("dl", { class: "about" }, definitions(this.scores(side))),
      response.degraded && para("notice warn", "Made with fallback parameters, because the configured ones failed."),
      response.is_older && para("notice warn", "Given to an earlier version of the conversation."),
      response.status === "ok" ? this.text(response) : para("notice bad", failure),
    ];
  },

  facts: (response) => make("dl", { class: "about" }, definitions([
    ["Letters and digits", response.chars_alnum?.toLocaleString("en")],
    ["Tokens", response.completion_tokens && written.count(response.completion_tokens)
      + (response.reasoning_tokens ? `, ${written.count(response.reasoning_tokens)} of them thinking` : "")],
    ["Cost", response.source !== "imported" && written.usd(response.cost_usd)],
    ["Time", response.latency_s !== null && `${response.latency_s.toFixed(1)} s`],
    ["Source", response.source === "imported" && "imported"],
    ["Served as", response.served_model],
  ])),

  // Returns the score and the points by each judge; with undecided criteria they are ranges.
  scores: (side) => side.section.points.filter((row) => row.response_id === side.response.response_id).map((row) => {
    const { label } = page.shown.index.judge_configs.find(({ key }) => key === row.judge_config);
    const range = (name, write) => (row.value !== null ? write(row[name])
      : [row[`${name}_lower`], row[`${name}_upper`]].map((end) => write(end)).join(" to "));
    const points = `${range("points", written.points)} of ${written.points(row.positive)} points`;
    const decided = `${row.n_decided} of ${row.n_wanted} criteria decided`;
    return [`Score by ${label}`, `${range("value", written.score)} (${points}, ${decided})`];
  }),

  text({ text, html }) {
    const isAsText = byId("as-text").checked;
    const reason = "Shown as plain text: too long or too deeply nested to be shown as Markdown.";
    if (isAsText || html === null) return [!isAsText && para("says", reason), scrolling("div", "body exact", text)];
    const element = scrolling("div", "body markdown");
    // Only here does text become HTML. It is safe, because the build made this HTML: its Markdown parser saw no `<`, and
    // it kept only listed elements, with the address of a link to http, https or mailto as the only attribute
    // (tasks/report/drilldown/markdown.py). Even without that, the page's policy runs no script and loads nothing.
    element.innerHTML = html;
    return element;
  },
};

// Points and verdicts: for each criterion a line for each judge, with the responses A and B side by side.
const judged = {
  // Returns the verdicts of a side by judge configuration and position, with their explanations.
  byCell: ({ section, trial, response }) => Object.fromEntries(section.verdicts
    .filter((row) => row.trial === trial && row.is_older === (response?.is_older ?? false))
    .map((row) => [`${row.judge_config} ${row.position}`, { ...row, ...row.grounds }])),

  // Returns a verdict; the criteria of a failed response have the status `no_response`.
  verdict: (side, judge_config, position) => side.cells[`${judge_config.key} ${position}`]
    ?? { status: side.response && side.response.status !== "ok" ? "no_response" : "not_judged" },

  differ: (cells) => new Set(cells.map(({ status }) => status).filter(verdicts.isDecided)).size > 1,

  // Returns a criterion's verdicts, and whether A and B, or the judges, differ. Only judges with the same number of
  // steps can disagree. A verdict that is derived from another one is shown if the two differ, or on request.
  compare(criterion, sides, judges, request) {
    const lines = judges.map((judge_config) => {
      const cells = sides.map((side) => this.verdict(side, judge_config, criterion.position));
      return { judge_config, cells, isFlip: this.differ(cells) };
    });
    const originals = lines.filter(({ judge_config }) => !judge_config.reads);
    const isRequested = ({ key }) => request.judge_config === key && request.criterion === criterion.key;
    const isListed = ({ judge_config, cells }) => {
      if (!judge_config.reads || isRequested(judge_config)) return true;
      const original = lines.find((line) => line.judge_config.key === judge_config.reads);
      return cells.some(({ status }, i) => status !== original?.cells[i].status);
    };
    const isDisputed = (scale) => {
      const comparable = lines.filter(({ judge_config }) => judge_config.scale === scale);
      return sides.some((_, i) => this.differ(comparable.map(({ cells }) => cells[i])));
    };
    return {
      criterion,
      lines: lines.filter(isListed),
      flips: originals.some((line) => line.isFlip),
      disputes: [2, 3].some(isDisputed),
      failures: originals.some((line) => line.cells.some(({ status }) => verdicts.isFailure(status))),
    };
  },

  draw({ task, index, sides, request }) {
    const cells = sides.flatMap((side) => Object.values(side.cells));
    const keys = new Set(cells.map((verdict) => verdict.judge_config));
    const judges = index.judge_configs.filter(({ key }) => keys.has(key));
    const groups = task.criteria.map((criterion) => this.compare(criterion, sides, judges, request));
    const isShown = (group) => (group[request.show] ?? true) || group.criterion.key === request.criterion;
    const shownGroups = groups.filter(isShown);
    const count = (name) => groups.filter((group) => group[name]).length;
    byId("n-criteria").textContent = `${shownGroups.length} of ${groups.length} criteria · ${count("flips")} flipped`
      + ` · judges disagree on ${count("disputes")} · ${count("failures")} with failures`;
    const names = sides.map((side) => [letter(side), ` ${side.entry.label}, trial ${side.trial}`]);
    const titles = sides.length ? ["Judge", ...names].map((name) => make("th", { scope: "col" }, name)) : [];
    const head = make("thead", {}, make("tr", {}, titles));
    byId("criteria").replaceChildren(head, ...shownGroups.map(this.group, this));
  },

  group({ criterion, lines, flips, disputes }) {
    const { sides, request } = page.shown;
    const isMarked = criterion.key === request.criterion;
    const facts = para("line", make("strong", {}, written.weight(criterion.weight)),
      [criterion.severity, criterion.category, ...labelsOf(criterion)].filter(Boolean).map(tag),
      flips && flipTag("⇄ flipped"), disputes && flipTag("≠ judges disagree", "dispute"));
    const title = make("th", { colspan: 1 + sides.length, scope: "rowgroup" }, criterion.title, facts);
    const rows = lines.map((line) => {
      const heading = make("th", { scope: "row" }, line.judge_config.label);
      const cells = sides.map((side) => this.cell(line, criterion, side));
      return make("tr", {}, heading, cells);
    });
    return make("tbody", { class: isMarked && !request.judge_config ? "marked" : null, tabindex: -1 },
      make("tr", { class: "criterion" }, title), rows);
  },

  cell({ judge_config, cells, isFlip }, criterion, side) {
    const { request, sides } = page.shown;
    const verdict = cells[sides.indexOf(side)];
    const mark = { criterion: criterion.key, judge_config: judge_config.key, side: side.name.toLowerCase() };
    const isMarked = Object.entries(mark).every(([name, value]) => ({ side: "a", ...request })[name] === value);
    const reasons = verdict.escalated_because?.map((reason) => reason.replace("_", " ")).join(", ");
    const odds = verdict.probability?.toFixed(2);
    const inCall = `of ${verdict.n_in_call} criteria${odds ? `, with a probability of ${odds} to be met` : ""}`;
    const noted = (name, text) => text && para("explanation", tag(name), ` ${text}`);
    const title = `Link to this verdict: ${judge_config.label}, ${side.name}`;
    const link = { class: "anchor", href: address.of({ ...request, ...mark }), title, "aria-label": title };
    const focus = { class: isMarked ? "marked" : null, tabindex: isMarked ? -1 : null };
    return make("td", { "data-label": `${side.name} · ${side.entry.label}`, ...focus },
      para("line", verdicts.badge(verdict.status, criterion.weight),
        isFlip && side === sides[1] && flipTag(`⇄ ${cells.map(({ status }) => verdicts.word(status)).join(" → ")}`),
        make("a", link, "¶")),
      noted("decided by", verdict.decided_by && `${verdict.decided_by}${reasons ? `, because of ${reasons}` : ""}`),
      noted("asked as", verdict.wording),
      noted("decided in a call", verdict.n_in_call && inCall),
      verdict.error && para("explanation empty", verdict.error),
      verdict.explanation && para("explanation", verdict.explanation),
      verdict.chunks?.length > 0 && this.evidence(verdict.chunks),
      prompts.line(verdict, judge_config, criterion, side, page.shown));
  },

  // Returns the evidence in the chunks of a response that is too long for its judge.
  evidence(chunks) {
    const n = chunks.filter((chunk) => chunk.evidence?.length).length;
    const quotes = ({ evidence, status }) => (evidence ? evidence.join("\n") || "nothing" : verdicts.word(status));
    const title = ({ round, chunk, of }) => `${round > 1 ? `Round ${round}, notes` : "Chunk"} ${chunk} of ${of}`;
    const parts = definitions(chunks.map((chunk) => [title(chunk), quotes(chunk)]));
    return folded({ class: "evidence" }, `Searched in ${chunks.length} chunks, something found in ${n}`,
      make("dl", { class: "exact" }, parts));
  },
};

const page = {
  async draw(isCurrent) {
    const index = await prbench.load("index");
    const request = address.read();
    const isRequested = ({ key, task_id: id }) => [key, id].includes(request.task);
    const ordinal = request.task ? index.tasks.findIndex(isRequested) : 0;
    const task = index.tasks[ordinal];
    if (!task) throw new Error(index.tasks.length ? "This report has no such task." : "There are no tasks yet.");
    // The requested entries and trials, if the task has them; otherwise the first entry alone.
    const entries = index.entries.filter((entry) => entry.response_states[ordinal] !== "0");
    const a = entries.find(({ key }) => key === request.a) ?? entries[0];
    const b = entries.find(({ key }) => key === request.b);
    const sideOf = (name, entry, value) => {
      const trial = entry.trials.find((number) => String(number) === value) ?? entry.trials[0];
      return { name, entry, trial };
    };
    const sides = [];
    if (a) sides.push(sideOf("A", a, request.ta));
    if (b) sides.push(sideOf("B", b, request.tb));
    const rubric = await prbench.section(index.rubrics, task);
    await Promise.all(sides.map((side) => this.load(side, task)));
    if (!isCurrent()) return;
    const chosen = { a: a?.key, ta: sides[0]?.trial, b: b?.key, tb: sides[1]?.trial, task: task.key };
    this.show({ index, sides, ordinal, entries, task: { ...task, ...rubric }, request: { ...request, ...chosen } });
  },

  // Loads the response of a side, and its verdicts.
  async load(side, task) {
    side.section = await prbench.section(side.entry.blocks, task);
    side.response = side.section.responses.find((response) => response.trial === side.trial);
    side.cells = judged.byCell(side);
  },

  show(shown) {
    this.shown = shown;
    byId("shown").hidden = false;
    this.drawTop(shown);
    this.drawChoice(shown);
    responses.drawConversation(shown.task);
    responses.draw(shown.sides);
    judged.draw(shown);
    const marked = document.querySelector("#criteria .marked"); // What the address points to.
    marked?.scrollIntoView({ block: "center" });
    marked?.focus({ preventScroll: true });
  },

  drawTop({ task, index, ordinal, request }) {
    document.querySelector("h1").textContent = visible(task.task_id);
    document.title = document.title.replace(/^.*(?= · )/, () => visible(task.task_id));
    byId("about").replaceChildren(...definitions([
      [index.field_title, task.field], ["Topic", task.topic], ["Asked by", task.expert], ["Splits", task.splits],
      ["Decision", task.decision_types], ["Pathway", task.economic_pathways],
      ...index.breakdowns.map(({ kind, title }) => [title, labelsOf(task, kind)]),
    ]));
    for (const [id, step] of [["previous", -1], ["next", 1]]) {
      const other = index.tasks[ordinal + step];
      const href = address.of({ ...request, task: other?.key, criterion: "", judge_config: "", side: "" });
      const textContent = visible(step < 0 ? `‹ ${other?.task_id}` : `${other?.task_id} ›`);
      Object.assign(byId(id), { hidden: !other, href, textContent });
    }
  },

  drawChoice({ entries, sides, request }) {
    const { a, b } = byId("compare").elements;
    const pairs = entries.flatMap(({ key, label, is_earlier: isEarlier, trials }) => trials.map((trial) => {
      const age = isEarlier ? " (earlier)" : "";
      const number = trials.length > 1 ? `, trial ${trial}` : "";
      return [`${key} ${trial}`, `${label}${age}${number}`];
    }));
    const [first, second] = sides.map(({ entry, trial }) => `${entry.key} ${trial}`);
    a.replaceChildren(...options(pairs, first));
    b.replaceChildren(...options([["", "none"], ...pairs], second));
    byId("narrow").elements.show.value = request.show ?? "";
  },

  // Changes the address, so that "back" works; `address.read()` includes changes that are not drawn yet.
  go(changes) {
    location.hash = address.of({ ...this.shown.request, ...address.read(), ...changes });
  },

  start() {
    byId("compare").addEventListener("change", ({ target: { name, value } }) => {
      const [key, trial] = value.split(" ");
      if (name) this.go({ [name]: key, [`t${name}`]: trial, criterion: "" });
      else {
        responses.drawConversation(this.shown.task);
        responses.draw(this.shown.sides);
      }
    });
    byId("narrow").addEventListener("change", ({ target }) => this.go({ show: target.value, criterion: "" }));
    addEventListener("hashchange", () => prbench.draw((isCurrent) => this.draw(isCurrent)));
    prbench.draw((isCurrent) => this.draw(isCurrent));
  },
};

page.start();
