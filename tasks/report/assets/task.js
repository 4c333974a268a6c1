// The page of one task: what is shown stands in the address, so that every verdict has a link of its own.
"use strict";

// Names with their values, as far as there are any.
const listed = (facts) => facts.map(([name, value]) => [name, [value].flat().filter(Boolean).join(", ")])
  .filter(([, text]) => text).map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text)));
const tag = (text, title) => make("span", { class: "tag", title }, text);
const flipTag = (text, more = "") => make("span", { class: `tag flip ${more}` }, text);
const letter = (side) => make("span", { class: "letter" }, side.name);
const tableRow = (kind, cells, attributes = {}) => make("tr", {}, cells.map((cell) => make(kind, attributes, cell)));

// The conversation of a task, and the responses of two models beside each other.
const answers = {
  drawConversation({ conversation, is_sent: isSent }) {
    const note = !conversation.length ? "The data has no conversation for this task."
      : isSent ? null : "As the data gives it; it is not assembled yet.";
    byId("conversation").replaceChildren(note ? para("empty", note) : "", ...conversation.map(({ role, content }) =>
      make("article", { class: `turn ${role}` }, make("h3", {}, role), scrolling("div", "exact", content))));
  },

  draw(sides) {
    const none = para("empty", "No model in this report has a response to this task.");
    byId("answers").replaceChildren(...(sides.length ? sides.map((side) => this.side(side)) : [none]));
  },

  side(side) {
    const { answer, entry } = side;
    return make("article", { class: "answer" }, make("h3", {}, letter(side), ` ${entry.label}`), answer ? [
      this.facts(answer),
      answer.degraded && para("notice warn", "Made with fallback parameters, because the configured ones failed."),
      answer.is_older && para("notice warn", "Given to an earlier version of the conversation, which was changed since."),
      answer.status === "ok" ? this.text(answer) : this.failure(answer),
    ] : para("empty", "No response in this trial."));
  },

  facts: (answer) => make("dl", { class: "about" }, listed([
    ["Letters and digits", answer.chars_alnum?.toLocaleString("en")],
    ["Tokens", answer.completion_tokens && written.count(answer.completion_tokens)
      + (answer.reasoning_tokens ? `, ${written.count(answer.reasoning_tokens)} of them thinking` : "")],
    ["Cost", answer.source !== "imported" && written.usd(answer.cost_usd)],
    ["Time", answer.latency_s !== null && `${answer.latency_s.toFixed(1)} s`],
    ["Attempts", answer.attempts > 1 && written.count(answer.attempts)],
    ["Source", answer.source === "imported" && "imported"],
    ["Served as", answer.served_model],
  ])),

  failure: ({ status, error }) =>
    para("notice bad", make("strong", {}, `No response: ${verdicts.word(status)}.`), ` ${error ?? ""}`),

  text({ text, html }) {
    const isAsText = byId("as-text").checked;
    const why = "Shown as plain text: too long or too deeply nested to be shown as Markdown.";
    if (isAsText || html === null) return [!isAsText && para("says", why), scrolling("div", "body exact", text)];
    const set = scrolling("div", "body markdown");
    // The one place of the report where text becomes HTML. It is safe because this is no text of a model: the build made
    // it of one by a Markdown parser that saw no `<`, and kept only elements of a short list, without attributes but the
    // address of a link to http, https or mailto (tasks/report/drilldown/markdown.py). Were something to slip through all
    // the same, the page's policy would run no script in it, and load nothing for it.
    set.innerHTML = html;
    return set;
  },
};

// Points and verdicts: for each criterion a line a judge, with the responses A and B beside each other.
const judged = {
  // The verdicts of a side by judging and position; a response that failed has none, and its criteria say so.
  byCell({ section, trial, answer }) {
    const isShown = (row) => row.trial === trial && row.is_older === (answer?.is_older ?? false);
    const cells = new Map();
    for (const row of [...section.verdicts, ...section.grounds].filter(isShown)) {
      const name = `${row.judging} ${row.position}`;
      cells.set(name, { ...cells.get(name), ...row });
    }
    return cells;
  },

  verdict: (side, judging, position) => side.cells.get(`${judging.key} ${position}`)
    ?? { status: side.answer && side.answer.status !== "ok" ? "no_response" : "not_judged" },

  differ: (found) => new Set(found.map(({ status }) => status).filter(verdicts.isDecided)).size > 1,

  // What the page shows of a criterion: its verdicts, and whether A and B, or the judges, differ in them. Judges disagree
  // where they differ among those that decide in as many steps. A verdict that is read again from another one is shown
  // where that makes it another, or on request.
  look(criterion, sides, judges, asked) {
    const lines = judges.map((judging) => {
      const cells = sides.map((side) => this.verdict(side, judging, criterion.position));
      return { judging, cells, isFlip: this.differ(cells) };
    });
    const own = lines.filter(({ judging }) => !judging.reads);
    const isListed = ({ judging, cells }) => {
      const read = lines.find((other) => other.judging.key === judging.reads);
      return !judging.reads || (asked.judging === judging.key && asked.criterion === criterion.key)
        || cells.some((cell, place) => cell.status !== read?.cells[place].status);
    };
    return {
      criterion, lines: lines.filter(isListed), flips: own.some((line) => line.isFlip),
      disputes: [2, 3].some((scale) => sides.some((_, place) =>
        this.differ(lines.filter(({ judging }) => judging.scale === scale).map((line) => line.cells[place])))),
      failures: own.some((line) => line.cells.some(({ status }) => verdicts.isFailure(status))),
    };
  },

  draw({ task, index, sides, asked }) {
    const seen = new Set(sides.flatMap((side) => [...side.cells.values()].map((verdict) => verdict.judging)));
    const judges = index.judgings.filter(({ key }) => seen.has(key));
    const looked = task.criteria.map((criterion) => this.look(criterion, sides, judges, asked));
    const shown = looked.filter((each) => (each[asked.show] ?? true) || each.criterion.key === asked.criterion);
    const count = (name) => looked.filter((each) => each[name]).length;
    byId("n-criteria").textContent = [
      `${shown.length} of ${looked.length} criteria`, sides.length === 2 && `${count("flips")} flipped`,
      judges.filter((judging) => !judging.reads).length > 1 && `judges disagree on ${count("disputes")}`,
      count("failures") && `${count("failures")} with failures`,
    ].filter(Boolean).join(" · ");
    const names = sides.map((side) => [letter(side), ` ${side.entry.label}, trial ${side.trial}`]);
    const head = make("thead", {}, sides.length ? tableRow("th", ["Judge", ...names], { scope: "col" }) : null);
    const nobody = tableRow("td", ["These responses have not been judged yet."], { colspan: 3, class: "empty" });
    const none = sides.length && !judges.length ? make("tbody", {}, nobody) : "";
    byId("criteria").replaceChildren(head, none, ...shown.map((each) => this.group(each)));
  },

  group({ criterion, lines, flips, disputes }) {
    const { sides, asked, index } = page.shown;
    const isMarked = criterion.key === asked.criterion;
    const labels = index.breakdowns.flatMap(({ kind, title }) =>
      labelsOf(criterion, kind).map((label) => tag(label, title)));
    const facts = para("line", make("strong", {}, written.weight(criterion.weight)),
      [criterion.severity, criterion.category].filter(Boolean).map((label) => tag(label)), labels,
      flips && flipTag("⇄ flipped"), disputes && flipTag("≠ judges disagree", "dispute"));
    const title = make("th", { colspan: 1 + sides.length, scope: "rowgroup" }, para("title", criterion.title), facts);
    return make("tbody", { class: isMarked && !asked.judging ? "marked" : null, tabindex: -1 },
      make("tr", { class: "criterion" }, title),
      lines.map((line) => make("tr", { class: line.isFlip ? "flipped" : null },
        make("th", { scope: "row" }, line.judging.label), sides.map((side) => this.cell(line, criterion, side)))),
      isMarked && this.query(criterion));
  },

  cell({ judging, cells, isFlip }, criterion, side) {
    const { asked, sides } = page.shown;
    const verdict = cells[sides.indexOf(side)];
    const mark = { criterion: criterion.key, judging: judging.key, side: side.name.toLowerCase() };
    const isMarked = Object.entries(mark).every(([name, value]) => ({ side: "a", ...asked })[name] === value);
    const because = verdict.escalated_because?.map((why) => why.replace("_", " ")).join(", ");
    const noted = (name, text) => text && para("explanation", tag(name), ` ${text}`);
    const title = `Link to this verdict: ${judging.label}, ${side.name}`;
    const link = { class: "anchor", href: address.of({ ...asked, ...mark }), title, "aria-label": title };
    const shown = { class: isMarked ? "marked" : null, tabindex: isMarked ? -1 : null };
    return make("td", { "data-label": `${side.name} · ${side.entry.label}`, ...shown },
      para("line", verdicts.badge(verdict.status, criterion.weight), verdicts.effect(verdict.status, criterion.weight),
        isFlip && side === sides[1] && flipTag(`⇄ ${cells.map(({ status }) => verdicts.word(status)).join(" → ")}`),
        make("a", link, "¶")),
      noted("decided by", verdict.decided_by && `${verdict.decided_by}${because ? `, because of ${because}` : ""}`),
      noted("asked as", verdict.asked),
      verdict.error && para("explanation empty", verdict.error),
      verdict.explanation && para("explanation", verdict.explanation),
      verdict.chunks?.length && this.evidence(verdict.chunks),
      prompts.line(verdict, judging, criterion, side, page.shown));
  },

  // What was found in the chunks of a response that is too long for its judge.
  evidence(chunks) {
    const n = chunks.filter((chunk) => chunk.found?.length).length;
    const nothing = (chunk) => make("li", { class: "empty" }, chunk.found ? "nothing" : verdicts.word(chunk.status));
    const found = (chunk) => (chunk.found?.length ? chunk.found.map((text) => make("li", {}, text)) : nothing(chunk));
    const title = ({ round, chunk, of }) => `${round > 1 ? `Round ${round}, notes` : "Chunk"} ${chunk} of ${of}`;
    const parts = chunks.map((each) => [make("dt", {}, title(each)), make("dd", {}, make("ul", {}, found(each)))]);
    const summary = `Searched in ${chunks.length} chunks, something found in ${n}`;
    return folded({ class: "evidence" }, summary, make("dl", {}, parts));
  },

  // A line for the terminal; names that are not digests are not put into it.
  query(criterion) {
    const { sides, asked } = page.shown;
    const side = sides.find((each) => each.name.toLowerCase() === asked.side) ?? sides[0];
    const id = side?.answer?.response_id ?? "";
    if (!/^[0-9a-f]+$/.test(id)) return null;
    const where = `response_id = '${id}' and starts_with(sha256(criterion_id), '${criterion.key}')`;
    const line = scrolling("pre", null, `prbench sql --format json "from verdict_details where ${where}"`);
    const all = folded({ class: "query" }, `Everything stored about this criterion (${side.name})`, line);
    return tableRow("td", [all], { colspan: 1 + sides.length });
  },

  // A line for each judge and response; what is not decided yet is a range.
  drawPoints({ sides, index }) {
    const isOf = (judging, answer) => (each) => each.response_id === answer?.response_id && each.judging === judging.key;
    const lines = index.judgings.flatMap((judging) => {
      const found = sides.map(({ section, answer }) => section.points.find(isOf(judging, answer)));
      const isKnown = found.length === 2 && found.every((each) => (each?.value ?? null) !== null);
      const change = isKnown ? written.change(found[1].value - found[0].value) : "";
      return found.map((each, place) => each && [judging.label, `${sides[place].name} · ${sides[place].entry.label}`,
        ...this.points(each), place ? change : ""]);
    }).filter(Boolean);
    const titles = ["Judge", "Response", "Score", "Points", "Decided", sides.length < 2 ? "" : "B minus A"];
    byId("points").replaceChildren(make("thead", {}, tableRow("th", titles, { scope: "col" })),
      make("tbody", {}, lines.map((line) => tableRow("td", line))));
  },

  points(found) {
    const range = (name, write) => (found.value !== null ? write(found[name])
      : [found[`${name}_lower`], found[`${name}_upper`]].map((end) => write(end)).join(" to "));
    return [range("value", written.score), `${range("points", written.points)} of ${written.points(found.positive)}`,
      `${found.n_decided} of ${found.n_wanted}`];
  },
};

const page = {
  async draw(isCurrent) {
    const index = await prbench.load("index");
    const asked = address.read();
    const place = asked.task ? index.tasks.findIndex((each) => [each.key, each.task_id].includes(asked.task)) : 0;
    const task = index.tasks[place];
    if (!task) throw new Error(index.tasks.length ? "This report has no such task." : "There are no tasks yet.");
    // The entries and trials that are asked for, as far as the task has them; else the first one alone.
    const known = index.entries.filter((entry) => entry.answered[place] !== "0");
    const [a, b] = [known.find(({ key }) => key === asked.a) ?? known[0], known.find(({ key }) => key === asked.b)];
    const trial = ({ trials }, value) => trials.find((each) => String(each) === value) ?? trials[0];
    const sides = [["A", a, asked.ta], ["B", b, asked.tb]].filter(([, entry]) => entry)
      .map(([name, entry, value]) => ({ name, entry, trial: trial(entry, value) }));
    const rubric = await prbench.section(index.rubrics, task);
    await Promise.all(sides.map(async (side) => {
      side.section = await prbench.section(side.entry.blocks, task);
      side.answer = side.section.answers.find((answer) => answer.trial === side.trial);
      side.cells = judged.byCell(side);
    }));
    if (!isCurrent()) return;
    const chosen = { a: a?.key, ta: sides[0]?.trial, b: b?.key, tb: sides[1]?.trial, task: task.key };
    this.show({ index, sides, place, known, task: { ...task, ...rubric }, asked: { ...asked, ...chosen } });
  },

  show(shown) {
    this.shown = shown;
    byId("shown").hidden = false;
    this.drawTop(shown);
    this.drawChoice(shown);
    answers.drawConversation(shown.task);
    answers.draw(shown.sides);
    judged.drawPoints(shown);
    judged.draw(shown);
    const marked = document.querySelector("#criteria .marked"); // What the address names.
    marked?.scrollIntoView({ block: "center" });
    marked?.focus({ preventScroll: true });
  },

  drawTop({ task, index, place, asked }) {
    document.querySelector("h1").textContent = task.task_id;
    document.title = document.title.replace(/^.*(?= · )/, () => task.task_id);
    byId("about").replaceChildren(...listed([
      [index.field_title, task.field], ["Topic", task.topic], ["Asked by", task.expert], ["Splits", task.splits],
      ["Decision", task.decision_types], ["Pathway", task.economic_pathways],
      ...index.breakdowns.map(({ kind, title }) => [title, labelsOf(task, kind)]),
      ["Hard", task.is_hard && "in the latest own hard selection"],
    ]));
    for (const [id, step] of [["previous", -1], ["next", 1]]) {
      const other = index.tasks[place + step];
      const href = address.of({ ...asked, task: other?.key, criterion: "", judging: "", side: "" });
      const textContent = step < 0 ? `‹ ${other?.task_id}` : `${other?.task_id} ›`;
      Object.assign(byId(id), { hidden: !other, href, textContent });
    }
  },

  drawChoice({ known, sides, asked }) {
    const { a, b } = byId("compare").elements;
    const pairs = known.flatMap(({ key, label, is_also: isAlso, trials }) => trials.map((trial) =>
      [`${key} ${trial}`, `${label}${isAlso ? " (earlier)" : ""}${trials.length > 1 ? `, trial ${trial}` : ""}`]));
    a.replaceChildren(...options(pairs));
    b.replaceChildren(...options([["", "none"], ...pairs]));
    [a, b].forEach((select, place) => { select.value = sides[place] ? `${sides[place].entry.key} ${sides[place].trial}` : ""; });
    byId("narrow").elements.show.value = asked.show ?? "";
  },

  // Another address is another state that "back" leads out of. The last change may not be drawn yet.
  go(changes) {
    location.hash = address.of({ ...this.shown.asked, ...address.read(), ...changes });
  },

  start() {
    byId("compare").addEventListener("change", ({ target: { name, value } }) => {
      const [key, trial] = value.split(" ");
      if (name) this.go({ [name]: key, [`t${name}`]: trial, criterion: "" });
      else answers.draw(this.shown.sides);
    });
    byId("narrow").addEventListener("change", ({ target }) => this.go({ show: target.value, criterion: "" }));
    addEventListener("hashchange", () => prbench.draw((isCurrent) => this.draw(isCurrent)));
    prbench.draw((isCurrent) => this.draw(isCurrent));
  },
};

page.start();
