// The page of one task: what is shown stands in the address, so that every verdict has a link of its own.
"use strict";

// The one place of the report where text becomes HTML. It is safe because this is no text of a model: the build made it
// of one by a Markdown parser that saw no `<`, and kept only elements of a short list, without attributes but the address
// of a link to http, https or mailto (tasks/report/drilldown/markdown.py). Were something to slip through all the same,
// the page's policy would run no script in it, and load nothing for it.
const setCleanHtml = (element, html) => {
  element.innerHTML = html;
};

const listed = (facts) => facts.filter(([, value]) => value).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)));
const rows = (tag, cells, attributes = {}) => make("tr", {}, cells.map((cell) => make(tag, attributes, cell)));

// The conversation of a task, and the responses of two models beside each other.
const answers = {
  // A long turn is folded; the last one, which the response is to, is open.
  turn({ role, content }, number, turns) {
    const text = make("div", { class: "exact" }, content);
    const isFolded = number < turns.length - 1 && content.length >= 600;
    return make("article", { class: `turn ${role}` }, make("h3", {}, role),
      isFolded ? make("details", {}, make("summary", {}, `${content.slice(0, 120)} …`), text) : text);
  },

  drawConversation({ conversation, is_sent: isSent }) {
    const note = !conversation.length ? "The data has no conversation for this task."
      : isSent ? null : "As the data gives it; it is not assembled yet.";
    document.getElementById("conversation").replaceChildren(note ? make("p", { class: "empty" }, note) : "", ...conversation.map(this.turn));
  },

  draw(sides) {
    const isAsText = document.getElementById("as-text").checked;
    const none = make("p", { class: "empty" }, "No model in this report has a response to this task.");
    document.getElementById("answers").replaceChildren(...(sides.length ? sides.map((side) => this.side(side, isAsText)) : [none]));
  },

  side({ name, entry, answer }, isAsText) {
    const heading = make("h3", {}, make("span", { class: "letter" }, name), ` ${entry.label}`);
    const body = answer ? [this.facts(answer), ...this.body(answer, isAsText)] : make("p", { class: "empty" }, "No response in this trial.");
    return make("article", { class: "answer" }, heading, body);
  },

  facts: (answer) => make("dl", { class: "about" }, listed([
    ["Letters and digits", answer.chars_alnum?.toLocaleString("en")],
    ["Tokens", answer.completion_tokens && written.count(answer.completion_tokens)
      + (answer.reasoning_tokens ? `, ${written.count(answer.reasoning_tokens)} of them thinking` : "")],
    ["Cost", answer.source === "imported" ? null : written.usd(answer.cost_usd)],
    ["Time", answer.latency_s === null ? null : `${answer.latency_s.toFixed(1)} s`],
    ["Attempts", answer.attempts > 1 ? written.count(answer.attempts) : null],
    ["Source", answer.source === "imported" ? "imported" : null],
    ["Served as", answer.served_model],
  ])),

  body(answer, isAsText) {
    const notes = [
      answer.degraded && "Made with fallback parameters, because the configured ones failed.",
      answer.is_older && "Given to an earlier version of the conversation, which was changed since.",
    ].filter(Boolean).map((text) => make("p", { class: "notice warn" }, text));
    if (answer.status !== "ok") {
      const cause = make("strong", {}, `No response: ${verdicts.word(answer.status)}.`);
      return [...notes, make("p", { class: "notice bad" }, cause, ` ${answer.error ?? ""}`)];
    }
    const isPlain = isAsText || answer.html === null;
    const why = isPlain && !isAsText ? "Shown as plain text: too long or too deeply nested to be shown as Markdown." : null;
    const text = make("div", { class: `body ${isPlain ? "exact" : "markdown"}`, tabindex: 0 }, isPlain ? answer.text : "");
    if (!isPlain) setCleanHtml(text, answer.html);
    return [...notes, why ? make("p", { class: "says" }, why) : null, text];
  },
};

// Points and verdicts: for each criterion a line a judge, with the responses A and B beside each other.
const judged = {
  // The verdicts of a side by judging and position; a response that failed has none, and its criteria say so.
  byCell(side) {
    const isShown = (row) => row.trial === side.trial && row.is_older === (side.answer?.is_older ?? false);
    const cells = new Map();
    for (const row of [...(side.section?.verdicts ?? []), ...(side.section?.grounds ?? [])].filter(isShown)) {
      const name = `${row.judging} ${row.position}`;
      cells.set(name, { ...cells.get(name), ...row });
    }
    return cells;
  },

  verdict: (side, judging, position) => side.cells.get(`${judging.key} ${position}`)
    ?? { status: side.answer && side.answer.status !== "ok" ? "no_response" : "not_judged" },

  differ(found) {
    return new Set(found.map(({ status }) => status).filter(verdicts.isDecided)).size > 1;
  },

  // What the page shows of a criterion: its verdicts, and whether A and B, or the judges, differ in them. Judges disagree
  // where they differ among those that decide in as many steps. A verdict that is read again from another one is shown
  // where that makes it another, or on request.
  look(criterion, sides, judges, asked) {
    const lines = judges.map((judging) => {
      const cells = sides.map((side) => this.verdict(side, judging, criterion.position));
      return { judging, cells, isFlip: this.differ(cells) };
    });
    const own = lines.filter(({ judging }) => !judging.reads);
    const same = (one, other) => one.cells.every((cell, place) => cell.status === other?.cells[place].status);
    const isAsked = ({ judging }) => asked.judging === judging.key && asked.criterion === criterion.key;
    const isListed = (line) => own.includes(line) || isAsked(line) || !same(line, lines.find(({ judging }) => judging.key === line.judging.reads));
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
    document.getElementById("n-criteria").textContent = [
      `${shown.length} of ${looked.length} criteria`, sides.length === 2 && `${count("flips")} flipped`,
      judges.filter((judging) => !judging.reads).length > 1 && `judges disagree on ${count("disputes")}`,
      count("failures") && `${count("failures")} with failures`,
    ].filter(Boolean).join(" · ");
    const head = make("thead", {}, rows("th", ["Judge", ...sides.map(({ name, entry, trial }) =>
      [make("span", { class: "letter" }, name), ` ${entry.label}, trial ${trial}`])], { scope: "col" }));
    const nobody = make("tbody", {}, rows("td", ["These responses have not been judged yet."], { colspan: 3, class: "empty" }));
    document.getElementById("criteria").replaceChildren(sides.length ? head : "", sides.length && !judges.length ? nobody : "",
      ...shown.map((each) => this.group(each)));
  },

  group({ criterion, lines, flips, disputes }) {
    const { sides, asked, index } = page.shown;
    const isMarked = criterion.key === asked.criterion;
    const tag = (text, more = {}) => make("span", { class: "tag", ...more }, text);
    const labels = index.breakdowns.flatMap(({ kind, title }) => criterion.labels.filter((each) => each.kind === kind)
      .map(({ label }) => tag(label, { title })));
    const facts = make("p", { class: "line" }, make("strong", {}, written.weight(criterion.weight)),
      [criterion.severity, criterion.category].filter(Boolean).map((label) => tag(label)), labels,
      flips ? tag("⇄ flipped", { class: "tag flip" }) : null, disputes ? tag("≠ judges disagree", { class: "tag flip dispute" }) : null);
    const title = make("th", { colspan: 1 + sides.length, scope: "rowgroup" }, make("p", { class: "title" }, criterion.title), facts);
    return make("tbody", { class: isMarked && !asked.judging ? "marked" : null, tabindex: -1 },
      make("tr", { class: "criterion" }, title),
      lines.map(({ judging, cells, isFlip }) => make("tr", { class: isFlip ? "flipped" : null }, make("th", { scope: "row" }, judging.label),
        cells.map((verdict, place) => this.cell(verdict, judging, criterion, sides[place], isFlip && place === 1 ? cells[0] : null)))),
      isMarked ? this.query(criterion) : null);
  },

  cell(verdict, judging, criterion, side, flippedFrom) {
    const { asked } = page.shown;
    const mark = { criterion: criterion.key, judging: judging.key, side: side.name.toLowerCase() };
    const isMarked = asked.criterion === mark.criterion && asked.judging === mark.judging && (asked.side ?? "a") === mark.side;
    const title = "Link to this verdict";
    const because = verdict.escalated_because?.map((why) => why.replace("_", " ")).join(", ");
    const flip = flippedFrom && `⇄ ${verdicts.word(flippedFrom.status)} → ${verdicts.word(verdict.status)}`;
    const noted = (tag, text) => (text ? make("p", { class: "explanation" }, make("span", { class: "tag" }, tag), ` ${text}`) : null);
    return make("td", { "data-label": `${side.name} · ${side.entry.label}`, class: isMarked ? "marked" : null, tabindex: isMarked ? -1 : null },
      make("p", { class: "line" }, verdicts.badge(verdict.status, criterion.weight), verdicts.effect(verdict.status, criterion.weight),
        flip ? make("span", { class: "tag flip" }, flip) : null,
        make("a", { class: "anchor", href: address.of({ ...asked, ...mark }), title, "aria-label": `${title}: ${judging.label}, ${side.name}` }, "¶")),
      noted("decided by", verdict.decided_by && `${verdict.decided_by}${because ? `, because of ${because}` : ""}`),
      noted("asked as", verdict.asked),
      verdict.error ? make("p", { class: "explanation empty" }, verdict.error) : null,
      verdict.explanation ? make("p", { class: "explanation" }, verdict.explanation) : null,
      verdict.chunks?.length ? this.evidence(verdict.chunks) : null,
      prompts.line(verdict, judging, criterion, side, page.shown));
  },

  // What was found in the chunks of a response that is too long for its judge.
  evidence(chunks) {
    const found = (chunk) => chunk.found?.map((text) => make("li", {}, text)) ?? make("li", { class: "empty" }, verdicts.word(chunk.status));
    const title = (chunk) => `${chunk.round > 1 ? `Round ${chunk.round}, notes` : "Chunk"} ${chunk.chunk} of ${chunk.of}`;
    return make("details", { class: "evidence" },
      make("summary", {}, `Searched in ${chunks.length} chunks, something found in ${chunks.filter((chunk) => chunk.found?.length).length}`),
      make("dl", {}, chunks.map((chunk) => [make("dt", {}, title(chunk)),
        make("dd", {}, make("ul", {}, chunk.found?.length === 0 ? make("li", { class: "empty" }, "nothing") : found(chunk)))])));
  },

  // A line for the terminal; names that are not digests are not put into it.
  query(criterion) {
    const { sides, asked } = page.shown;
    const side = sides.find((each) => each.name.toLowerCase() === asked.side) ?? sides[0];
    const id = side?.answer?.response_id ?? "";
    if (!/^[0-9a-f]+$/.test(id)) return null;
    const where = `response_id = '${id}' and starts_with(sha256(criterion_id), '${criterion.key}')`;
    return rows("td", [make("details", { class: "query" }, make("summary", {}, `Everything stored about this criterion (${side.name})`),
      make("pre", { tabindex: 0 }, `prbench sql --format json "from verdict_details where ${where}"`))], { colspan: 1 + sides.length });
  },

  // A line for each judge and response; what is not decided yet is a range.
  drawPoints({ sides, index }) {
    const of = (side, judging) => side.section?.points?.find((each) => each.response_id === side.answer?.response_id && each.judging === judging.key);
    const lines = index.judgings.flatMap((judging) => {
      const found = sides.map((side) => of(side, judging));
      const change = found.every((each) => (each?.value ?? null) !== null) && found.length === 2 ? found[1].value - found[0].value : null;
      return found.map((each, place) => each && [judging.label, `${sides[place].name} · ${sides[place].entry.label}`, ...this.points(each),
        place && change !== null ? `${change > 0 ? "+" : ""}${written.score(change)}` : ""]);
    }).filter(Boolean);
    document.getElementById("points").replaceChildren(
      make("thead", {}, rows("th", ["Judge", "Response", "Score", "Points", "Decided", sides.length === 2 ? "B minus A" : ""], { scope: "col" })),
      make("tbody", {}, lines.map((line) => rows("td", line))));
  },

  points(found) {
    const isDecided = found.value !== null;
    const range = (low, high, write) => `${write(low)} to ${write(high)}`;
    const points = isDecided ? written.points(found.points) : range(found.points_lower, found.points_upper, written.points);
    return [isDecided ? written.score(found.value) : range(found.value_lower, found.value_upper, written.score),
      `${points} of ${written.points(found.positive)}`, `${found.n_decided} of ${found.n_wanted}`];
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
    const trial = (entry, value) => entry?.trials.find((each) => String(each) === value) ?? entry?.trials[0];
    const sides = [{ name: "A", entry: a, trial: trial(a, asked.ta) }, { name: "B", entry: b, trial: trial(b, asked.tb) }].filter(({ entry }) => entry);
    const [rubric, ...sections] = await Promise.all([index.rubrics, ...sides.map(({ entry }) => entry.blocks)].map((files) => prbench.section(files, task)));
    if (!isCurrent()) return;
    sides.forEach((side, number) => {
      side.section = sections[number];
      side.answer = side.section?.answers?.find((answer) => answer.trial === side.trial);
      side.cells = judged.byCell(side);
    });
    const chosen = { a: a?.key, ta: sides[0]?.trial, b: b?.key, tb: sides[1]?.trial, task: task.key };
    this.show({ index, sides, place, known, task: { ...task, ...rubric }, asked: { ...asked, ...chosen } });
  },

  show(shown) {
    this.shown = shown;
    document.getElementById("shown").hidden = false;
    document.querySelectorAll("#compare, section:has(#points)").forEach((each) => { each.hidden = !shown.sides.length; });
    this.drawTop(shown);
    this.drawChoice(shown);
    answers.drawConversation(shown.task);
    answers.draw(shown.sides);
    judged.drawPoints(shown);
    judged.draw(shown);
    this.reveal(shown.asked);
  },

  drawTop({ task, index, place, asked }) {
    document.querySelector("h1").textContent = task.task_id;
    document.title = document.title.replace(/^.*(?= · )/, () => task.task_id);
    const labels = (kind) => task.labels.filter((each) => each.kind === kind).map(({ label }) => label).join(", ");
    document.getElementById("about").replaceChildren(...listed([
      [index.field_title, task.field], ["Topic", task.topic], ["Asked by", task.expert], ["Splits", task.splits?.join(", ")],
      ["Decision", task.decision_types?.join(", ")], ["Pathway", task.economic_pathways?.join(", ")],
      ...index.breakdowns.map(({ kind, title }) => [title, labels(kind)]),
      ["Hard", task.is_hard ? "in the latest own hard selection" : null],
    ]));
    for (const [id, step] of [["previous", -1], ["next", 1]]) {
      const [link, other] = [document.getElementById(id), index.tasks[place + step]];
      link.toggleAttribute("hidden", !other);
      link.href = address.of({ ...asked, task: other?.key, criterion: "", judging: "", side: "" });
      link.textContent = step < 0 ? `‹ ${other?.task_id}` : `${other?.task_id} ›`;
    }
  },

  drawChoice({ known, sides, asked }) {
    const { a, b } = document.getElementById("compare").elements;
    const named = ({ label, is_also: isAlso, trials }, trial) => `${label}${isAlso ? " (earlier)" : ""}${trials.length > 1 ? `, trial ${trial}` : ""}`;
    const options = known.flatMap((entry) => entry.trials.map((trial) => [`${entry.key} ${trial}`, named(entry, trial)]));
    [[a, options], [b, [["", "none"], ...options]]].forEach(([select, pairs], place) => {
      select.replaceChildren(...pairs.map(([value, text]) => make("option", { value }, text)));
      select.value = sides[place] ? `${sides[place].entry.key} ${sides[place].trial}` : "";
    });
    document.getElementById("narrow").elements.show.value = asked.show ?? "";
  },

  // Brings what the address names into view, once for each address.
  reveal({ task, criterion, judging, side }) {
    const at = JSON.stringify([task, criterion, judging, side]);
    if (!criterion || at === this.revealed) return;
    this.revealed = at;
    const target = document.querySelector("#criteria .marked");
    target?.scrollIntoView({ block: "center" });
    target?.focus({ preventScroll: true });
  },

  // Another address is another state that "back" leads out of.
  go(changes) {
    location.hash = address.of({ ...this.shown.asked, ...address.read(), ...changes }); // The last change may not be drawn yet.
  },

  listen() {
    const [compare, narrow] = ["compare", "narrow"].map((id) => document.getElementById(id));
    [compare, narrow].forEach((form) => form.addEventListener("submit", (event) => event.preventDefault()));
    compare.addEventListener("change", ({ target: { name, value } }) => {
      const [key, trial] = value.split(" ");
      this.go({ [name]: key, [`t${name}`]: trial });
    });
    document.getElementById("as-text").addEventListener("change", () => answers.draw(this.shown.sides));
    narrow.addEventListener("change", ({ target }) => this.go({ show: target.value, criterion: "", judging: "", side: "" }));
    addEventListener("hashchange", () => prbench.draw((isCurrent) => this.draw(isCurrent)));
  },
};

document.addEventListener("DOMContentLoaded", () => {
  page.listen();
  prbench.draw((isCurrent) => page.draw(isCurrent));
});
