// What a judge was sent: its template filled in as the judge stage does it (tasks/rules/conversation.py), from the stored
// conversation, response and criterion.
"use strict";

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
    const { templates, reminders } = await prbench.list("templates");
    const [prompt, { why, last, first }] = await Promise.all([
      this.prompt(verdict, new Map(Object.entries(templates)).get(judging.template), criterion, side, task), this.reply(verdict, judging, side, task)]);
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

  async reply(verdict, judging, side, { key, has_replies: hasReplies }) {
    const none = { why: this.unanswered.includes(verdict.status) ? "No reply came."
      : "Not in this report: the ledger has deleted it, or holds too many replies for a report." };
    if (!hasReplies) return none;
    const place = [side.entry.key, judging.key, side.trial, verdict.position, ...(verdict.is_older ? ["older"] : [])].join(" ");
    const [, last, first] = (await prbench.list(`replies-${key}`))[place] ?? [];
    return last === undefined ? none : { last, first };
  },
};
