// The prompt that a judge got, and its reply. The template is filled in as the judge stage fills it in
// (tasks/rules/conversation.py), from the stored conversation, response and criterion.
"use strict";

const prompts = {
  digits: 16,

  // Returns the digest of identities: the first 32 hexadecimal digits of the SHA-256 of JSON in ASCII.
  async digest(...parts) {
    const hex = (number, digits) => number.toString(16).padStart(digits, "0");
    const text = JSON.stringify(parts).replace(/[^ -~]/g, (letter) => `\\u${hex(letter.charCodeAt(0), 4)}`);
    const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
    return [...new Uint8Array(hash)].map((byte) => hex(byte, 2)).join("").slice(0, 32);
  },

  async marker(source, texts) {
    for (let number = 0; ; number += 1) {
      const value = BigInt(`0x${await this.digest("marker", number, source)}`) % 10n ** BigInt(this.digits);
      const marker = String(value).padStart(this.digits, "0");
      if (!texts.some((text) => text.includes(marker))) return marker;
    }
  },

  // Fills all placeholders at once, so that a placeholder's name inside a text stays text.
  async of(template, conversation, response, criterion) {
    const turns = [...conversation, { role: "assistant", content: response }];
    const texts = turns.map(({ content }) => content);
    const marker = template.includes("<<marker>>") ? await this.marker(texts, texts) : "";
    const parts = [marker, criterion];
    const own = template.includes("<<criterion_marker>>") ? await this.marker(parts, [...parts, ...texts]) : "";
    const plain = () => turns.map(({ role, content }) => `${role}: ${content}`).join("\n\n");
    const values = {
      "<<rubric_item>>": criterion, "<<conversation>>": marker ? this.quoted(turns, marker) : plain(),
      "<<marker>>": marker, "<<criterion_marker>>": own,
    };
    return template.replace(/<<[a-z_]+>>/g, (placeholder) => values[placeholder] ?? placeholder);
  },

  quoted(turns, marker) {
    const listed = turns.map(({ role, content }, i) => {
      const name = i === turns.length - 1 ? "assistant, the final message" : role;
      return `[${marker} message ${i + 1} of ${turns.length}: ${name}]\n${content}\n`;
    });
    return `${listed.join("")}[${marker} end of the conversation]`;
  },

  // Returns a line that opens to the exact prompt and reply, which are made when it opens.
  line(verdict, judge_config, criterion, side, shown) {
    const isSent = !["no_response", "not_judged"].includes(verdict.status);
    if (!isSent || judge_config.is_imported || judge_config.reads || verdict.n_in_call) return null;
    const details = folded({ class: "exchange" }, "Prompt and reply");
    const draw = async () => details.append(...await this.exchange(verdict, judge_config, criterion, side, shown));
    details.addEventListener("toggle", () => prbench.draw(draw), { once: true });
    return details;
  },

  // Returns the prompt and the reply, and between them an unreadable first reply and the reminder, if any.
  async exchange(verdict, judge_config, criterion, side, { task, index }) {
    const { templates, reminders } = await prbench.load(index.templates);
    const template = new Map(Object.entries(templates)).get(judge_config.template);
    const isInChunks = verdict.chunks?.length || verdict.status === "context_length";
    const isKept = template && task.is_sent && !verdict.is_older && !isInChunks;
    const isKnown = isKept && globalThis.crypto?.subtle;
    const why = isKept ? "The browser makes prompts only on pages that come from disk, from this machine or by https."
      : "The prompt is not kept: its template or conversation changed, or the response was judged in chunks.";
    const wording = verdict.wording ?? criterion.title;
    const prompt = isKnown ? await this.of(template, task.conversation, side.response.text, wording) : null;
    const key = [judge_config.key, side.trial, verdict.position, ...(verdict.is_older ? ["older"] : [])].join(" ");
    const [last, first] = side.section.replies[key] ?? [];
    const part = (title, text, missing) =>
      [make("h4", {}, title), (text ?? null) === null ? para("empty", missing) : scrolling("pre", "exact", text)];
    return [
      ...part("Prompt", prompt, why),
      ...(first === undefined || verdict.is_older ? [] : [...part("First reply, which could not be read", first),
        ...part("Reminder, sent after prompt and first reply", reminders[judge_config.scale])]),
      ...part("Reply, as the judge wrote it", last, "No reply came, or the ledger has deleted it, or holds too many."),
    ];
  },
};
