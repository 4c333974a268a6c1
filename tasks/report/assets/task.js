// Points and verdicts of a task: for each criterion a line a judge, with the answers A and B beside each other.
"use strict";

const judged = {
  // The verdicts of a side by judging and position; an answer that failed has none, and its criteria say so.
  byCell(side) {
    const cells = new Map();
    const isOlder = side.answer?.is_older ?? false;
    const of = (rows) => (rows ?? []).filter((row) => row.trial === side.trial && row.is_older === isOlder);
    const name = ({ judging, position }) => `${judging} ${position}`;
    of(side.section?.verdicts).forEach((verdict) => cells.set(name(verdict), verdict));
    of(side.section?.grounds).forEach((grounds) => cells.set(name(grounds), { ...cells.get(name(grounds)), ...grounds }));
    return cells;
  },

  verdict(side, judging, position) {
    const found = side.cells.get(`${judging.key} ${position}`);
    if (found) return found;
    return { status: side.answer && side.answer.status !== "ok" ? "no_response" : "not_judged" };
  },

  // The judges that looked at one of the sides.
  judges(sides, judgings) {
    const seen = new Set(sides.flatMap((side) => [...side.cells.values()].map((verdict) => verdict.judging)));
    return judgings.filter((judging) => seen.has(judging.key));
  },

  differ: (one, other) => one.status in verdicts.values && other.status in verdicts.values && one.status !== other.status,

  // What the page shows of a criterion: its verdicts, and whether A and B, or the judges, differ in them.
  look(criterion, sides, judges, asked) {
    const lines = judges.map((judging) => {
      const cells = sides.map((side) => this.verdict(side, judging, criterion.position));
      return { judging, cells, isFlip: cells.length === 2 && this.differ(...cells) };
    });
    const own = lines.filter(({ judging }) => !judging.reads);
    const isFailure = own.some((line) => line.cells.some((cell) => verdicts.isFailure(cell.status)));
    return {
      criterion, lines: lines.filter((line) => this.isListed(line, lines, criterion, asked)),
      isFlip: own.some((line) => line.isFlip), isDispute: sides.some((_, place) => this.isDisputed(lines, place)), isFailure,
    };
  },

  // Judges disagree where they differ among those that decide in as many steps.
  isDisputed: (lines, place) => [2, 3].some((scale) => {
    const found = lines.filter(({ judging }) => judging.scale === scale).map((line) => line.cells[place].status);
    return new Set(found.filter((status) => status in verdicts.values)).size > 1;
  }),

  // A verdict that is read again from another one is shown where that makes it another, or on request.
  isListed({ judging, cells }, lines, criterion, asked) {
    if (!judging.reads || (asked.judging === judging.key && asked.criterion === criterion.key)) return true;
    const read = lines.find((line) => line.judging.key === judging.reads);
    return !read || cells.some((cell, place) => cell.status !== read.cells[place].status);
  },

  isShown: (looked, show) =>
    ({ flips: looked.isFlip, disputes: looked.isDispute, failures: looked.isFailure })[show] ?? true,

  drawCriteria(task, sides, { judgings, breakdowns: kinds }, asked) {
    const judges = this.judges(sides, judgings);
    Object.assign(this, { kinds, task });
    const looked = task.criteria.map((criterion) => this.look(criterion, sides, judges, asked));
    const shown = looked.filter((each) => this.isShown(each, asked.show) || each.criterion.key === asked.criterion);
    const count = (name) => looked.filter((each) => each[name]).length;
    document.getElementById("n-criteria").textContent = [
      `${shown.length} of ${looked.length} criteria`, sides.length === 2 ? `${count("isFlip")} flipped` : "",
      judges.filter((judging) => !judging.reads).length > 1 ? `judges disagree on ${count("isDispute")}` : "", count("isFailure") ? `${count("isFailure")} with failures` : "",
    ].filter(Boolean).join(" · ");
    const head = make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Judge"),
      sides.map((side) => make("th", { scope: "col" }, make("span", { class: "letter" }, side.name), ` ${side.entry.label}, trial ${side.trial}`))));
    const nobody = make("tbody", {}, make("tr", {}, make("td", { colspan: 3, class: "empty" }, "These responses have not been judged yet.")));
    document.getElementById("criteria").replaceChildren(sides.length ? head : "",
      ...(judges.length || !sides.length ? [] : [nobody]), ...shown.map((each) => this.group(each, sides, asked)));
  },

  group({ criterion, lines, isFlip, isDispute }, sides, asked) {
    const isMarked = criterion.key === asked.criterion;
    const facts = make("p", { class: "rubric" },
      make("span", { class: "weight" }, written.weight(criterion.weight)),
      [criterion.severity, criterion.category].filter(Boolean).map((label) => make("span", { class: "tag" }, label)),
      this.kinds.flatMap(({ kind, title }) => criterion.labels.filter((each) => each.kind === kind)
        .map(({ label }) => make("span", { class: "tag", title }, label))),
      isFlip ? make("span", { class: "tag flip" }, "⇄ flipped") : null,
      isDispute ? make("span", { class: "tag dispute" }, "≠ judges disagree") : null);
    const heading = make("th", { colspan: 1 + sides.length, scope: "rowgroup" }, make("p", { class: "title" }, criterion.title), facts);
    return make("tbody", { "data-criterion": criterion.key, class: isMarked && !asked.judging ? "marked" : null, tabindex: -1 },
      make("tr", { class: "criterion" }, heading),
      lines.map((line) => this.line(line, criterion, sides, asked)),
      isMarked ? this.query(criterion, sides, asked) : null);
  },

  line({ judging, cells, isFlip }, criterion, sides, asked) {
    return make("tr", { class: isFlip ? "flipped" : null },
      make("th", { scope: "row" }, judging.label),
      cells.map((verdict, place) => this.cell(verdict, judging, criterion, sides, place, asked, isFlip ? cells[0] : null)));
  },

  cell(verdict, judging, criterion, sides, place, asked, flippedFrom) {
    const letter = sides[place].name.toLowerCase();
    const isMarked = asked.criterion === criterion.key && asked.judging === judging.key && (asked.side ?? "a") === letter;
    const link = address.of({ ...asked, criterion: criterion.key, judging: judging.key, side: letter });
    const flip = flippedFrom && place === 1
      ? make("span", { class: "tag flip" }, `⇄ ${verdicts.word(flippedFrom.status)} → ${verdicts.word(verdict.status)}`) : null;
    const title = "Link to this verdict";
    return make("td", { "data-label": `${sides[place].name} · ${sides[place].entry.label}`, class: isMarked ? "marked" : null, tabindex: isMarked ? -1 : null },
      make("p", { class: "decision" }, verdicts.badge(verdict.status, criterion.weight),
        verdicts.effect(verdict.status, criterion.weight), flip,
        make("a", { class: "anchor", href: link, title, "aria-label": `${title}: ${judging.label}, ${sides[place].name}` }, "¶")),
      verdict.decided_by ? make("p", { class: "asked" }, make("span", { class: "tag" }, "decided by"),
        ` ${verdict.decided_by}${verdict.escalated_because ? `, because of ${verdict.escalated_because.map((why) => why.replace("_", " ")).join(", ")}` : ""}`) : null,
      verdict.asked ? make("p", { class: "asked" }, make("span", { class: "tag" }, "asked as"), ` ${verdict.asked}`) : null,
      verdict.error ? make("p", { class: "cause" }, verdict.error) : null,
      verdict.explanation ? make("p", { class: "explanation" }, verdict.explanation) : null,
      verdict.chunks?.length ? this.evidence(verdict.chunks) : null,
      prompts.line(verdict, judging, criterion, sides[place], this.task));
  },

  // What was found in the chunks of an answer that is too long for its judge.
  evidence(chunks) {
    const isFull = chunks.filter((chunk) => chunk.found?.length).length;
    const listed = (chunk) => chunk.found === null ? [make("li", { class: "cause" }, verdicts.word(chunk.status))]
      : chunk.found.length ? chunk.found.map((text) => make("li", {}, text)) : [make("li", { class: "empty" }, "nothing")];
    return make("details", { class: "evidence" },
      make("summary", {}, `Searched in ${chunks.length} chunks, something found in ${isFull}`),
      make("dl", {}, chunks.map((chunk) => [
        make("dt", {}, `${chunk.round > 1 ? `Round ${chunk.round}, notes` : "Chunk"} ${chunk.chunk} of ${chunk.of}`),
        make("dd", {}, make("ul", {}, listed(chunk)))])));
  },

  // A line for the terminal; names that are not digests are not put into it.
  query(criterion, sides, asked) {
    const side = sides.find((each) => each.name.toLowerCase() === asked.side) ?? sides[0];
    const id = side.answer?.response_id ?? "";
    if (!/^[0-9a-f]+$/.test(id)) return null;
    const where = `response_id = '${id}' and starts_with(sha256(criterion_id), '${criterion.key}')`;
    return make("tr", {}, make("td", { colspan: 1 + sides.length }, make("details", { class: "query" },
      make("summary", {}, `Everything stored about this criterion (${side.name})`),
      make("pre", { tabindex: 0 }, `prbench sql --format json "from verdict_details where ${where}"`))));
  },

  drawPoints(sides, judgings) {
    const of = (side, judging) => side.section?.points?.find((each) => each.response_id === side.answer?.response_id && each.judging === judging.key);
    const rows = judgings.map((judging) => ({ judging, found: sides.map((side) => of(side, judging)) }))
      .filter(({ found }) => found.some(Boolean));
    const titles = ["Score", "Points", "Decided"].concat(sides.length === 2 ? ["Score", "Points", "Decided", "B minus A"] : []);
    const names = make("tr", {}, make("td", {}), sides.map((side) => make("th", { colspan: 3, scope: "colgroup" }, `${side.name} · ${side.entry.label}`)),
      sides.length === 2 ? make("td", {}) : null);
    document.getElementById("points").replaceChildren(
      make("thead", {}, names, make("tr", {}, make("th", { scope: "col" }, "Judge"), titles.map((title) => make("th", { scope: "col", class: "number" }, title)))),
      make("tbody", {}, rows.map(({ judging, found }) => make("tr", {}, make("th", { scope: "row" }, judging.label),
        found.map((each) => this.points(each)), sides.length === 2 ? make("td", { class: "number" }, this.change(...found)) : null))));
  },

  points(found) {
    if (!found) return ["", "", ""].map(() => make("td", { class: "number" }, written.missing));
    const range = (low, high, write) => `${write(low)} to ${write(high)}`;
    const isDecided = found.value !== null;
    const score = isDecided ? written.score(found.value) : range(found.value_lower, found.value_upper, written.score);
    const points = isDecided ? written.points(found.points) : range(found.points_lower, found.points_upper, written.points);
    return [score, `${points} of ${written.points(found.positive)}`, `${found.n_decided} of ${found.n_wanted}`]
      .map((text) => make("td", { class: "number" }, text));
  },

  change: (first, second) =>
    (first?.value ?? null) === null || (second?.value ?? null) === null ? written.missing : written.signed(second.value - first.value),
};

// The page of one task: what is shown stands in the address, so that every verdict has a link of its own.
const page = {
  async draw(isCurrent) {
    this.index ??= await prbench.load("index");
    const asked = address.read();
    const task = this.index.tasks.find((each) => each.key === asked.task || each.task_id === asked.task) ?? (asked.task ? null : this.index.tasks[0]);
    if (!task) throw new Error(this.index.tasks.length ? "This report has no such task." : "There are no tasks yet.");
    const { known, ...chosen } = this.choose(asked, this.index.tasks.indexOf(task));
    const [rubric, ...sections] = await Promise.all([this.index, ...known.filter(({ key }) => [chosen.a, chosen.b].includes(key))]
      .map(async ({ key, rubrics, blocks }) => [key, await prbench.section(rubrics ?? blocks, task)]));
    if (!isCurrent()) return;
    this.show({ ...task, ...rubric[1] }, { ...asked, ...chosen, task: task.key }, known, new Map(sections));
  },

  // The entries and trials that are asked for, as far as the task has them; else the first one alone.
  choose(asked, place) {
    const known = this.index.entries.filter((entry) => entry.answered[place] !== "0");
    const of = (key) => known.find((entry) => entry.key === key);
    const a = of(asked.a) ?? known[0];
    const b = of(asked.b);
    const trial = (entry, value) => (entry ? entry.trials.find((each) => String(each) === value) ?? entry.trials[0] : undefined);
    return { a: a?.key, ta: trial(a, asked.ta), b: b?.key, tb: trial(b, asked.tb), known };
  },

  show(task, asked, known, sections) {
    const sides = [["A", asked.a, asked.ta], ["B", asked.b, asked.tb]].filter(([, key]) => key).map(([name, key, trial]) => {
      const side = { name, trial, entry: known.find((entry) => entry.key === key), section: sections.get(key) };
      side.answer = side.section?.answers?.find((answer) => answer.trial === trial);
      return Object.assign(side, { cells: judged.byCell(side) });
    });
    this.shown = { asked, sides, task };
    document.getElementById("shown").hidden = false;
    this.drawTop(task, asked, known);
    ["#compare", ".toggle", "section:has(#points)"].forEach((place) => document.querySelector(place).toggleAttribute("hidden", !sides.length));
    answers.drawConversation(task.conversation, task.is_sent);
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
    location.hash = address.of({ ...this.shown.asked, ...address.read(), ...changes }); // The last change may not be drawn yet.
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
