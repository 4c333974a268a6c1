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

// What a judge was sent: its template filled in as the judge stage does it (tasks/rules/conversation.py), from the stored
// conversation, response and criterion.
const prompts = {
  last: "assistant, the final message",
  digits: 16,
  unanswered: ["timeout", "provider_error", "redirected", "too_large", "context_length"],

  // The digest of the identities: of JSON in ASCII, the first 32 hexadecimal digits of its SHA-256.
  async digest(...parts) {
    const text = JSON.stringify(parts).replace(/[^ -~]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
    const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
    return [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, "0")).join("").slice(0, 32);
  },

  async marker(source, texts) {
    for (let number = 0; ; number += 1) {
      const value = BigInt(`0x${await this.digest("marker", number, source)}`) % 10n ** BigInt(this.digits);
      const marker = String(value).padStart(this.digits, "0");
      if (!texts.some((text) => text.includes(marker))) return marker;
    }
  },

  // Fills all places at once, so that one that is named inside a text stays text.
  fill: (template, values) =>
    template.replace(/<<[a-z_]+>>/g, (place) => values[place] ?? place),

  async of(template, conversation, response, criterion) {
    const turns = [...conversation, { role: "assistant", content: response }];
    const texts = turns.map(({ content }) => content);
    const values = { "<<rubric_item>>": criterion };
    let marker = "";
    if (template.includes("<<marker>>")) {
      marker = await this.marker(texts, texts);
      values["<<marker>>"] = marker;
      values["<<conversation>>"] = this.quoted(turns, marker);
    } else {
      values["<<conversation>>"] = turns.map(({ role, content }) => `${role}: ${content}`).join("\n\n");
    }
    if (template.includes("<<criterion_marker>>")) {
      values["<<criterion_marker>>"] = await this.marker([marker, criterion], [marker, criterion, ...texts]);
    }
    return this.fill(template, values);
  },

  quoted(turns, marker) {
    const listed = turns.map(({ role, content }, place) => {
      const name = place === turns.length - 1 ? this.last : role;
      return `[${marker} message ${place + 1} of ${turns.length}: ${name}]\n${content}\n`;
    });
    return `${listed.join("")}[${marker} end of the conversation]`;
  },

  // A line that opens to the prompt and the judge's reply word for word, which are made when they are asked for.
  line(verdict, judging, criterion, side, task) {
    if (judging.is_imported || judging.reads || ["no_response", "not_judged"].includes(verdict.status)) return null;
    const place = make("div", {});
    const draw = async () => {
      if (place.childElementCount) return;
      place.replaceChildren(...await this.exchange(verdict, judging, criterion, side, task));
    };
    return make("details", { class: "exchange", on: { toggle: () => prbench.draw(draw) } },
      make("summary", {}, "Prompt and reply"), place);
  },

  // The prompt and the reply, and between them the reply that could not be read and the reminder, where there was one.
  async exchange(verdict, judging, criterion, side, task) {
    const { templates, reminders } = await prbench.load(page.index.templates);
    const { why, last, first } = this.reply(verdict, judging, side);
    const template = new Map(Object.entries(templates)).get(judging.template);
    const prompt = await this.prompt(verdict, template, criterion, side, task);
    const reminded = first === undefined || verdict.is_older ? [] : [
      ...this.part("First reply, which could not be read", { text: first }),
      ...this.part("Reminder, sent after prompt and first reply", { text: reminders[judging.scale] })];
    return [...this.part("Prompt", prompt), ...reminded, ...this.part("Reply, as the judge wrote it", { why, text: last })];
  },

  part: (title, { text, why }) => [make("h4", {}, title),
    why ? make("p", { class: "empty" }, why) : make("pre", { tabindex: 0, class: "exact" }, text)],

  async prompt(verdict, template, criterion, side, { conversation, is_sent: isSent }) {
    if (verdict.is_older) return { why: "The task's conversation was changed after this response was given, and the prompt is not kept." };
    if (verdict.chunks?.length) return { why: "The response was too long for the judge: it was asked for evidence in each chunk, and then about what it had found." };
    if (verdict.status === "context_length") return { why: "The prompt with the whole response was too long for the judge, which refused it or was not asked." };
    if (template === undefined) return { why: "The judge's template is neither in the configuration nor one that is shipped." };
    if (!isSent) return { why: "The task is not assembled." };
    if (!globalThis.crypto?.subtle) return { why: "Browsers show it only in pages from this machine or over HTTPS." };
    return { text: await this.of(template, conversation, side.answer.text, verdict.asked ?? criterion.title) };
  },

  reply(verdict, judging, side) {
    const place = [judging.key, side.trial, verdict.position, ...(verdict.is_older ? ["older"] : [])].join(" ");
    const [last, first] = side.section.replies[place] ?? [];
    if (last !== undefined) return { last, first };
    return { why: this.unanswered.includes(verdict.status) ? "No reply came."
      : "Not in this report: the ledger has deleted it, or holds too many replies for a report." };
  },
};
