// The template of a judge's prompt with the values of its placeholders, and the judge's reply.
"use strict";

const prompts = {
  // Describes the numbers that mark quoted texts; they are not stored.
  markers: {
    "<<marker>>": "16 digits of a hash of the conversation, which none of its messages contains. A line with them"
      + " stands before each message, and one after the last.",
    "<<criterion_marker>>": "16 digits of a hash of the criterion, which neither it nor the conversation contains.",
  },

  // Returns a line that opens to the prompt's parts and the reply, which are made when it opens.
  line(verdict, judgeConfig, criterion, side, shown) {
    const isUnsent = ["no_response", "not_judged"].includes(verdict.status);
    if (isUnsent || judgeConfig.is_imported || judgeConfig.reads || verdict.n_in_call) return null;
    const details = folded({ class: "exchange" }, "Prompt and reply");
    const draw = async () => {
      const { templates, reminders } = await prbench.load(shown.index.templates);
      const template = new Map(Object.entries(templates)).get(judgeConfig.template);
      details.append(
        ...this.prompt(template, verdict, criterion, side, shown.task),
        ...this.replies(verdict, judgeConfig, side, reminders),
      );
    };
    details.addEventListener("toggle", () => prbench.draw(draw), { once: true });
    return details;
  },

  // Returns the template with its placeholders in bold, and the value of each.
  prompt(template, verdict, criterion, side, task) {
    const isInChunks = verdict.chunks?.length || verdict.status === "context_length";
    if (!template || !task.is_sent || verdict.is_older || isInChunks) {
      const reason = "The prompt is not kept: its template or conversation changed, or the response was judged in chunks.";
      return [this.title("Prompt"), para("empty", reason)];
    }
    const texts = template.split(/(<<[a-z_]+>>)/);
    const withNames = texts.map((text) => (text.startsWith("<<") ? make("strong", {}, text) : text));
    const messages = [...task.conversation, { role: "assistant, the response", content: side.response.text }];
    const turns = messages.flatMap(({ role, content }, index) =>
      this.text(`<<conversation>>, message ${index + 1} of ${messages.length}: ${role}`, content));
    const markers = Object.entries(this.markers).filter(([name]) => template.includes(name));
    return [
      ...this.text("Template of the prompt", withNames),
      ...turns,
      ...this.text("<<rubric_item>>", verdict.wording ?? criterion.title),
      ...markers.flatMap(([name, meaning]) => [this.title(name), para("says", meaning)]),
    ];
  },

  // Returns the reply, after an unreadable first reply and the reminder, if any.
  replies(verdict, judgeConfig, side, reminders) {
    const age = verdict.is_older ? ["older"] : [];
    const key = [judgeConfig.key, side.trial, verdict.position, ...age].join(" ");
    const [last, first] = side.section.replies[key] ?? [];
    const parts = [];
    if (first !== undefined && !verdict.is_older) {
      parts.push(...this.text("First reply, which could not be read", first));
      parts.push(...this.text("Reminder, sent after prompt and first reply", reminders[judgeConfig.scale]));
    }
    const title = "Reply, as the judge wrote it";
    const reason = "No reply came, or the ledger has deleted it, or holds too many.";
    if (last === undefined) parts.push(this.title(title), para("empty", reason));
    else parts.push(...this.text(title, last));
    return parts;
  },

  title: (text) => make("h4", {}, text),
  text: (title, text) => [prompts.title(title), scrolling("pre", "exact", text)],
};
