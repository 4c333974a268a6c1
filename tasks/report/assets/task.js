// The page of a task. The address says what is shown, so every verdict has a link of its own.
"use strict";

// Returns names with their values, without empty ones.
const listed = (facts) => facts.map(([name, value]) => [name, [value].flat().filter(Boolean).join(", ")])
  .filter(([, text]) => text).map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text)));
const tag = (text, title) => make("span", { class: "tag", title }, text);
const flipTag = (text, more = "") => make("span", { class: `tag flip ${more}` }, text);
const letter = (side) => make("span", { class: "letter" }, side.name);
const tableRow = (kind, cells, attributes = {}) => make("tr", {}, cells.map((cell) => make(kind, attributes, cell)));

// The conversation of a task, and the responses of two models side by side.
const responses = {
  drawConversation({ conversation, is_sent: isSent }) {
    const note = !conversation.length ? "The data has no conversation for this task."
      : isSent ? null : "As the data gives it; it is not assembled yet.";
    byId("conversation").replaceChildren(note ? para("empty", note) : "", ...conversation.map(({ role, content }) =>
      make("article", { class: `turn ${role}` }, make("h3", {}, role), scrolling("div", "exact", content))));
  },

  draw(sides) {
    const none = para("empty", "No model in this report has a response to this task.");
    byId("responses").replaceChildren(...(sides.length ? sides.map((side) => this.side(side)) : [none]));
  },

  side(side) {
    const { response, entry } = side;
    return make("article", { class: "response" }, make("h3", {}, letter(side), ` ${entry.label}`), response ? [
      this.facts(response),
      response.degraded && para("notice warn", "Made with fallback parameters, because the configured ones failed."),
      response.is_older && para("notice warn", "Given to an earlier version of the conversation."),
      response.status === "ok" ? this.text(response)
        : para("notice bad", `No response: ${verdicts.word(response.status)}. ${response.error ?? ""}`),
    ] : para("empty", "No response in this trial."));
  },

  facts: (response) => make("dl", { class: "about" }, listed([
    ["Letters and digits", response.chars_alnum?.toLocaleString("en")],
    ["Tokens", response.completion_tokens && written.count(response.completion_tokens)
      + (response.reasoning_tokens ? `, ${written.count(response.reasoning_tokens)} of them thinking` : "")],
    ["Cost", response.source !== "imported" && written.usd(response.cost_usd)],
    ["Time", response.latency_s !== null && `${response.latency_s.toFixed(1)} s`],
    ["Attempts", response.attempts > 1 && written.count(response.attempts)],
    ["Source", response.source === "imported" && "imported"],
    ["Served as", response.served_model],
  ])),

  text({ text, html }) {
    const isAsText = byId("as-text").checked;
    const why = "Shown as plain text: too long or too deeply nested to be shown as Markdown.";
    if (isAsText || html === null) return [!isAsText && para("says", why), scrolling("div", "body exact", text)];
    const set = scrolling("div", "body markdown");
    // Only here does text become HTML. It is safe, because the build made this HTML: its Markdown parser saw no `<`, and
    // it kept only listed elements, with the address of a link to http, https or mailto as the only attribute
    // (tasks/report/drilldown/markdown.py). Even without that, the page's policy runs no script and loads nothing.
    set.innerHTML = html;
    return set;
  },
};

// Points and verdicts: for each criterion a line for each judge, with the responses A and B side by side.
const judged = {
  // Returns the verdicts of a side by judge configuration and position, with their explanations.
  byCell({ section, trial, response }) {
    const isShown = (row) => row.trial === trial && row.is_older === (response?.is_older ?? false);
    const cells = {};
    for (const row of [...section.verdicts, ...section.grounds].filter(isShown)) {
      Object.assign(cells[`${row.judge_config} ${row.position}`] ??= {}, row);
    }
    return cells;
  },

  // Returns a verdict; the criteria of a failed response have the status `no_response`.
  verdict: (side, judge_config, position) => side.cells[`${judge_config.key} ${position}`]
    ?? { status: side.response && side.response.status !== "ok" ? "no_response" : "not_judged" },

  differ: (cells) => new Set(cells.map(({ status }) => status).filter(verdicts.isDecided)).size > 1,

  // Returns a criterion's verdicts, and whether A and B, or the judges, differ. Only judges with the same number of
  // steps can disagree. A verdict that is derived from another one is shown if the two differ, or on request.
  look(criterion, sides, judges, request) {
    const lines = judges.map((judge_config) => {
      const cells = sides.map((side) => this.verdict(side, judge_config, criterion.position));
      return { judge_config, cells, isFlip: this.differ(cells) };
    });
    const own = lines.filter(({ judge_config }) => !judge_config.reads);
    const isListed = ({ judge_config, cells }) => {
      const read = lines.find((other) => other.judge_config.key === judge_config.reads);
      return !judge_config.reads || (request.judge_config === judge_config.key && request.criterion === criterion.key)
        || cells.some((cell, i) => cell.status !== read?.cells[i].status);
    };
    return {
      criterion, lines: lines.filter(isListed), flips: own.some((line) => line.isFlip),
      disputes: [2, 3].some((scale) => sides.some((_, i) =>
        this.differ(lines.filter(({ judge_config }) => judge_config.scale === scale).map((line) => line.cells[i])))),
      failures: own.some((line) => line.cells.some(({ status }) => verdicts.isFailure(status))),
    };
  },

  draw({ task, index, sides, request }) {
    const seen = new Set(sides.flatMap((side) => Object.values(side.cells).map((verdict) => verdict.judge_config)));
    const judges = index.judge_configs.filter(({ key }) => seen.has(key));
    const looked = task.criteria.map((criterion) => this.look(criterion, sides, judges, request));
    const shown = looked.filter((each) => (each[request.show] ?? true) || each.criterion.key === request.criterion);
    const count = (name) => looked.filter((each) => each[name]).length;
    byId("n-criteria").textContent = [
      `${shown.length} of ${looked.length} criteria`, sides.length === 2 && `${count("flips")} flipped`,
      judges.filter((judge_config) => !judge_config.reads).length > 1 && `judges disagree on ${count("disputes")}`,
      count("failures") && `${count("failures")} with failures`,
    ].filter(Boolean).join(" · ");
    const names = sides.map((side) => [letter(side), ` ${side.entry.label}, trial ${side.trial}`]);
    const head = make("thead", {}, sides.length ? tableRow("th", ["Judge", ...names], { scope: "col" }) : null);
    const none = make("tbody", {}, tableRow("td", ["There is no verdict yet."], { colspan: 3, class: "empty" }));
    byId("criteria").replaceChildren(head, sides.length && !judges.length ? none : "", ...shown.map(this.group, this));
  },

  group({ criterion, lines, flips, disputes }) {
    const { sides, request, index } = page.shown;
    const isMarked = criterion.key === request.criterion;
    const labels = index.breakdowns.flatMap(({ kind, title }) =>
      labelsOf(criterion, kind).map((label) => tag(label, title)));
    const facts = para("line", make("strong", {}, written.weight(criterion.weight)),
      [criterion.severity, criterion.category].filter(Boolean).map((label) => tag(label)), labels,
      flips && flipTag("⇄ flipped"), disputes && flipTag("≠ judges disagree", "dispute"));
    const title = make("th", { colspan: 1 + sides.length, scope: "rowgroup" }, para("title", criterion.title), facts);
    return make("tbody", { class: isMarked && !request.judge_config ? "marked" : null, tabindex: -1 },
      make("tr", { class: "criterion" }, title),
      lines.map((line) => make("tr", { class: line.isFlip ? "flipped" : null },
        make("th", { scope: "row" }, line.judge_config.label), sides.map((side) => this.cell(line, criterion, side)))),
      isMarked && this.query(criterion));
  },

  cell({ judge_config, cells, isFlip }, criterion, side) {
    const { request, sides } = page.shown;
    const verdict = cells[sides.indexOf(side)];
    const mark = { criterion: criterion.key, judge_config: judge_config.key, side: side.name.toLowerCase() };
    const isMarked = Object.entries(mark).every(([name, value]) => ({ side: "a", ...request })[name] === value);
    const because = verdict.escalated_because?.map((why) => why.replace("_", " ")).join(", ");
    const odds = verdict.probability?.toFixed(2);
    const inCall = `of ${verdict.n_in_call} criteria${odds ? `, with a probability of ${odds} to be met` : ""}`;
    const noted = (name, text) => text && para("explanation", tag(name), ` ${text}`);
    const title = `Link to this verdict: ${judge_config.label}, ${side.name}`;
    const link = { class: "anchor", href: address.of({ ...request, ...mark }), title, "aria-label": title };
    const shown = { class: isMarked ? "marked" : null, tabindex: isMarked ? -1 : null };
    return make("td", { "data-label": `${side.name} · ${side.entry.label}`, ...shown },
      para("line", verdicts.badge(verdict.status, criterion.weight), verdicts.effect(verdict.status, criterion.weight),
        isFlip && side === sides[1] && flipTag(`⇄ ${cells.map(({ status }) => verdicts.word(status)).join(" → ")}`),
        make("a", link, "¶")),
      noted("decided by", verdict.decided_by && `${verdict.decided_by}${because ? `, because of ${because}` : ""}`),
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
    const nothing = (chunk) => make("li", { class: "empty" }, chunk.evidence ? "nothing" : verdicts.word(chunk.status));
    const texts = (each) => (each.evidence?.length ? each.evidence.map((text) => make("li", {}, text)) : nothing(each));
    const title = ({ round, chunk, of }) => `${round > 1 ? `Round ${round}, notes` : "Chunk"} ${chunk} of ${of}`;
    const parts = chunks.map((each) => [make("dt", {}, title(each)), make("dd", {}, make("ul", {}, texts(each)))]);
    const summary = `Searched in ${chunks.length} chunks, something found in ${n}`;
    return folded({ class: "evidence" }, summary, make("dl", {}, parts));
  },

  // Returns a command for the terminal; only digests are put into it.
  query(criterion) {
    const { sides, request } = page.shown;
    const side = sides.find((each) => each.name.toLowerCase() === request.side) ?? sides[0];
    const id = side?.response?.response_id ?? "";
    if (!/^[0-9a-f]+$/.test(id)) return null;
    const where = `response_id = '${id}' and starts_with(sha256(criterion_id), '${criterion.key}')`;
    const line = scrolling("pre", null, `prbench sql --format json "from verdict_details where ${where}"`);
    const all = folded({ class: "query" }, `Everything stored about this criterion (${side.name})`, line);
    return tableRow("td", [all], { colspan: 1 + sides.length });
  },

  // Draws a line for each judge and response; an undecided score is a range.
  drawPoints({ sides, index }) {
    const lines = index.judge_configs.flatMap((judge_config) => {
      const points = sides.map(({ section, response }) => section.points.find((each) =>
        each.response_id === response?.response_id && each.judge_config === judge_config.key));
      const isKnown = points.length === 2 && points.every((each) => (each?.value ?? null) !== null);
      const change = isKnown ? written.change(points[1].value - points[0].value) : "";
      return points.map((each, i) => each && [judge_config.label, `${sides[i].name} · ${sides[i].entry.label}`,
        ...this.points(each), i ? change : ""]);
    }).filter(Boolean);
    const titles = ["Judge", "Response", "Score", "Points", "Decided", sides.length < 2 ? "" : "B minus A"];
    byId("points").replaceChildren(make("thead", {}, tableRow("th", titles, { scope: "col" })),
      make("tbody", {}, lines.map((line) => tableRow("td", line))));
  },

  points(row) {
    const range = (name, write) => (row.value !== null ? write(row[name])
      : [row[`${name}_lower`], row[`${name}_upper`]].map((end) => write(end)).join(" to "));
    return [range("value", written.score), `${range("points", written.points)} of ${written.points(row.positive)}`,
      `${row.n_decided} of ${row.n_wanted}`];
  },
};

const page = {
  async draw(isCurrent) {
    const index = await prbench.load("index");
    const request = address.read();
    const ordinal = request.task ? index.tasks.findIndex((each) => [each.key, each.task_id].includes(request.task)) : 0;
    const task = index.tasks[ordinal];
    if (!task) throw new Error(index.tasks.length ? "This report has no such task." : "There are no tasks yet.");
    // The requested entries and trials, if the task has them; otherwise the first entry alone.
    const known = index.entries.filter((entry) => entry.response_states[ordinal] !== "0");
    const [a, b] = [known.find(({ key }) => key === request.a) ?? known[0], known.find(({ key }) => key === request.b)];
    const trial = ({ trials }, value) => trials.find((each) => String(each) === value) ?? trials[0];
    const sides = [["A", a, request.ta], ["B", b, request.tb]].filter(([, entry]) => entry)
      .map(([name, entry, value]) => ({ name, entry, trial: trial(entry, value) }));
    const rubric = await prbench.section(index.rubrics, task);
    await Promise.all(sides.map(async (side) => {
      side.section = await prbench.section(side.entry.blocks, task);
      side.response = side.section.responses.find((response) => response.trial === side.trial);
      side.cells = judged.byCell(side);
    }));
    if (!isCurrent()) return;
    const chosen = { a: a?.key, ta: sides[0]?.trial, b: b?.key, tb: sides[1]?.trial, task: task.key };
    this.show({ index, sides, ordinal, known, task: { ...task, ...rubric }, request: { ...request, ...chosen } });
  },

  show(shown) {
    this.shown = shown;
    byId("shown").hidden = false;
    this.drawTop(shown);
    this.drawChoice(shown);
    responses.drawConversation(shown.task);
    responses.draw(shown.sides);
    judged.drawPoints(shown);
    judged.draw(shown);
    const marked = document.querySelector("#criteria .marked"); // What the address points to.
    marked?.scrollIntoView({ block: "center" });
    marked?.focus({ preventScroll: true });
  },

  drawTop({ task, index, ordinal, request }) {
    document.querySelector("h1").textContent = task.task_id;
    document.title = document.title.replace(/^.*(?= · )/, () => task.task_id);
    byId("about").replaceChildren(...listed([
      [index.field_title, task.field], ["Topic", task.topic], ["Asked by", task.expert], ["Splits", task.splits],
      ["Decision", task.decision_types], ["Pathway", task.economic_pathways],
      ...index.breakdowns.map(({ kind, title }) => [title, labelsOf(task, kind)]),
      ["Hard", task.is_hard && "in the latest own hard selection"],
    ]));
    for (const [id, step] of [["previous", -1], ["next", 1]]) {
      const other = index.tasks[ordinal + step];
      const href = address.of({ ...request, task: other?.key, criterion: "", judge_config: "", side: "" });
      const textContent = step < 0 ? `‹ ${other?.task_id}` : `${other?.task_id} ›`;
      Object.assign(byId(id), { hidden: !other, href, textContent });
    }
  },

  drawChoice({ known, sides, request }) {
    const { a, b } = byId("compare").elements;
    const pairs = known.flatMap(({ key, label, is_also: isAlso, trials }) => trials.map((trial) =>
      [`${key} ${trial}`, `${label}${isAlso ? " (earlier)" : ""}${trials.length > 1 ? `, trial ${trial}` : ""}`]));
    a.replaceChildren(...options(pairs));
    b.replaceChildren(...options([["", "none"], ...pairs]));
    [a, b].forEach((select, i) => { select.value = sides[i] ? `${sides[i].entry.key} ${sides[i].trial}` : ""; });
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
      else responses.draw(this.shown.sides);
    });
    byId("narrow").addEventListener("change", ({ target }) => this.go({ show: target.value, criterion: "" }));
    addEventListener("hashchange", () => prbench.draw((isCurrent) => this.draw(isCurrent)));
    prbench.draw((isCurrent) => this.draw(isCurrent));
  },
};

page.start();
