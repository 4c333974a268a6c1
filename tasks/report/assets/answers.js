// The conversation of a task, and the answers of two models beside each other.
"use strict";

// The one place of the report where text becomes HTML. It is safe because this is no text of a model: the build made it
// of one by a Markdown parser that saw no `<`, and kept only elements of a short list, without attributes but the address
// of a link to http, https or mailto (tasks/report/drilldown/markdown.py). Were something to slip through all the same,
// the page's policy would run no script in it, and load nothing for it.
const setCleanHtml = (element, html) => {
  element.innerHTML = html;
};

const answers = {
  // A long turn is folded; the last one, which the answer is to, is open.
  drawConversation(turns, isSent) {
    const place = document.getElementById("conversation");
    const note = turns.length && !isSent ? make("p", { class: "empty" }, "As the data gives it; it is not assembled yet.") : "";
    if (!turns.length) place.replaceChildren(make("p", { class: "empty" }, "The data has no conversation for this task."));
    else place.replaceChildren(note, ...turns.map((turn, number) => this.turn(turn, number === turns.length - 1)));
  },

  turn({ role, content }, isLast) {
    const text = make("div", { class: "exact" }, content);
    if (isLast || content.length < 600) return make("article", { class: `turn ${role}` }, make("h3", {}, role), text);
    const more = make("details", {}, make("summary", {}, `${content.slice(0, 120)} …`), text);
    return make("article", { class: `turn ${role}` }, make("h3", {}, role), more);
  },

  draw(sides, isAsText) {
    const place = document.getElementById("answers");
    const none = make("p", { class: "empty" }, "No model in this report has a response to this task.");
    place.replaceChildren(...(sides.length ? sides.map((side) => this.side(side, isAsText)) : [none]));
    place.classList.toggle("two", sides.length === 2);
    place.querySelectorAll(".answer").forEach((article) => this.fold(article));
  },

  opened: new Set(), // The sides whose long answers somebody opened.

  // A long answer is cut; the bar above it, which stays in view, opens and closes it.
  fold(article) {
    const body = article.querySelector(".body");
    if (!body || body.scrollHeight < 600) return;
    const { side } = article.dataset;
    const button = make("button", { type: "button", "aria-controls": body.id });
    const show = () => {
      const isOpen = this.opened.has(side);
      body.classList.toggle("cut", !isOpen);
      button.setAttribute("aria-expanded", String(isOpen));
      button.textContent = isOpen ? "Collapse" : "Show all";
    };
    button.addEventListener("click", () => {
      const isOpen = this.opened.has(side);
      this.opened[isOpen ? "delete" : "add"](side);
      show();
      if (isOpen) article.scrollIntoView({ block: "nearest" });
    });
    article.querySelector(".bar").append(button);
    show();
  },

  side({ name, entry, answer }, isAsText) {
    const heading = make("h3", {}, make("span", { class: "letter" }, name), ` ${entry.label}`);
    if (!answer) {
      return make("article", { class: "answer" }, heading, make("p", { class: "empty" }, "No response in this trial."));
    }
    const body = make("div", { class: "body", id: `answer-${name}` }, this.body(answer, isAsText));
    return make("article", { class: "answer", "data-side": name }, make("div", { class: "bar" }, heading), this.facts(answer), body);
  },

  facts(answer) {
    const { reasoning_tokens: thought, source } = answer;
    const facts = [
      ["Letters and digits", written.count(answer.chars_alnum)],
      ["Tokens", written.count(answer.completion_tokens) + (thought ? `, ${written.count(thought)} of them thinking` : "")],
      ["Cost", source === "imported" ? null : written.usd(answer.cost_usd)],
      ["Time", answer.latency_s === null ? null : written.seconds(answer.latency_s)],
      ["Attempts", answer.attempts > 1 ? written.count(answer.attempts) : null],
      ["Source", source === "imported" ? "imported" : null],
      ["Served as", answer.served_model],
    ];
    const shown = facts.filter(([, value]) => value !== null && value !== written.missing);
    return make("dl", { class: "about small" }, shown.map(([name, value]) =>
      make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  },

  body(answer, isAsText) {
    const notes = [
      answer.degraded ? "Made with fallback parameters, because the configured ones failed." : null,
      answer.is_older ? "Given to an earlier version of the conversation, which was changed since." : null,
    ].filter(Boolean).map((text) => make("p", { class: "notice warn" }, text));
    if (answer.status !== "ok") {
      const cause = make("strong", {}, `No response: ${verdicts.word(answer.status)}.`);
      return [...notes, make("p", { class: "notice bad" }, cause, ` ${answer.error ?? ""}`)];
    }
    if (isAsText) return [...notes, make("div", { class: "exact" }, answer.text)];
    if (answer.html === null) {
      const why = "Shown as plain text: too long or too deeply nested to be shown as Markdown.";
      return [...notes, make("p", { class: "says" }, why), make("div", { class: "exact" }, answer.text)];
    }
    const body = make("div", { class: "markdown" });
    setCleanHtml(body, answer.html);
    return [...notes, body];
  },
};
