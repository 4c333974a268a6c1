"""Conversations: built from turns and quoted in prompts; and the cleaning of responses.

Source of the rules: PRBench paper (arXiv 2511.11562), appendix D, and the published harness's
behaviour.

A judge gets a filled template whose quoted texts cannot be mistaken for its own. If a template has
`<<marker>>`, each message of the conversation is between lines with a marker: a number hashed from
the quoted texts and a counter, which grows until no text contains it. So no text can end its own
quotation or begin a turn. The marker depends only on the conversation, so that the prompts on all
criteria of one response begin alike (for the provider's prompt cache); the criterion, which comes
last, has its own marker, `<<criterion_marker>>`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tasks.rules.identity import digest
from tasks.rules.records import Turn
from tasks.rules.text.characters import one_line, shows_nothing

Message = tuple[str, str]
"""(role, content)"""

CONVERSATION = "<<conversation>>"
CRITERION = "<<rubric_item>>"
PLACEHOLDERS = (CONVERSATION, CRITERION)
"""The placeholders that a judge template must contain; it may also contain markers."""
GROUP = "<<rubric_items>>"
QUESTIONS = "<<questions>>"
GROUP_PLACEHOLDERS = (CONVERSATION, GROUP)
"""The placeholders of a template for several criteria in one call."""
DECISION_PLACEHOLDERS = (CONVERSATION, QUESTIONS, CRITERION)
"""The placeholders of a template for decision models: the text to decide on, then a question on a
criterion.
"""

_TAG = r"(?:\w+:)?(?:think|thinking|thought|thoughts|reasoning|reason)"
_OPENING_TAG = re.compile(rf"<({_TAG})>|\[(THINK)\]|◁(think)▷", re.IGNORECASE | re.ASCII)
_CLOSING_TAG = re.compile(rf"</({_TAG})>|\[/(THINK)\]|◁/(think)▷", re.IGNORECASE | re.ASCII)
_CHANNEL = r"(?:<\|start\|>assistant)?<\|channel\|>"
_MESSAGE = r"[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>"
_BLOCKS = (
    # Channels of gpt-oss: the reply alone; thinking, then the reply; the same where a server leaves
    # the marks out.
    (rf"{_CHANNEL}final\b{_MESSAGE}", ""),
    (_CHANNEL, rf"<\|channel\|>final\b{_MESSAGE}"),
    (r"analysis(?=\S)(?=.*?assistantfinal)", "assistantfinal"),
    # Gemma, Cohere, OpenThinker.
    (r"<\|channel>thought\b", r"<channel\|>"),
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>\s*(?:<\|START_RESPONSE\|>)?"),
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>\s*(?:<\|begin_of_solution\|>)?"),
)
"""Other openings of thinking at the very start of a reply, each with the end of the thinking."""
_BLOCK_PATTERNS = [(re.compile(opening, re.DOTALL), re.compile(end)) for opening, end in _BLOCKS]
_LAST_MARK = re.compile(r"<\|(?:return|end|END_RESPONSE|end_of_solution)\|>\s*\Z")
_THINKING_WORDS = "think|thought|reason|reflect|scratchpad|analysis|monologue|channel"
_LIKE_THINKING = re.compile(
    rf"\s*(?P<tag>[<\[◁]\|?[\w:-]*(?:{_THINKING_WORDS})[\w:-]*(?: [^<>]{{0,80}})?\|?[>\]▷])",
    re.IGNORECASE | re.ASCII,
)
_BREAKS = re.compile(r"(?:\r?\n){3,}")


def turn_pattern(conversation: Sequence[Turn], turns: int | None) -> str:
    """Return the shape of a conversation, a letter for each slot (see `records.Task`).

    Slots alternate: prompt 0, response 0, prompt 1, ... Slots after the last used one are left out.
    An invisible prompt counts as used if `turns` states that there is a turn, or if it has
    reference texts.
    """
    pattern = ""
    for i, turn in enumerate(conversation):
        if not shows_nothing(turn.prompt or ""):
            pattern += "u"
        elif turn.reference_texts or (turns is not None and i < turns):
            pattern += "e"
        else:
            pattern += "-"
        pattern += "-" if shows_nothing(turn.response or "") else "a"
    return pattern.rstrip("-")


def build_messages(conversation: Sequence[Turn]) -> tuple[Message, ...]:
    """Return the conversation as sent.

    A user message has its numbered references, then the prompt; assistant turns are included. No
    system prompt is added here; the sample stage adds a configured one. Slots that show nothing are
    skipped; checks of `turn_pattern` find incomplete conversations.
    """
    messages: list[Message] = []
    for turn in conversation:
        if turn.prompt is not None and not shows_nothing(turn.prompt):
            references = [
                f"Reference Text {i}:\n{text}\n\n" for i, text in enumerate(turn.reference_texts)
            ]
            messages.append(("user", "".join(references) + turn.prompt))
        if turn.response is not None and not shows_nothing(turn.response):
            messages.append(("assistant", turn.response))
    return tuple(messages)


def fill(template: str, values: Mapping[str, str]) -> str:
    """Fill the placeholders of a template in one pass: a placeholder inside a text stays."""
    pattern = "|".join(map(re.escape, values))
    return re.sub(pattern, lambda match: values[match.group()], template)


def missing_placeholders(template: str, placeholders: Sequence[str]) -> list[str]:
    """Return the placeholders that a template should have but lacks."""
    return [placeholder for placeholder in placeholders if placeholder not in template]


def final_text(text: str, *, omits_think_tag: bool = False) -> str:
    """Return a model's response without its thinking; three or more line breaks become two.

    A response that never ends its opening thinking, or that has no visible text, is empty.
    """
    try:
        response = without_thinking(text, omits_think_tag=omits_think_tag)
    except UnfinishedThinking:
        return ""
    response = _BREAKS.sub("\n\n", response).strip()
    return "" if shows_nothing(response) else response


NOTHING_SHOWN = "the reply has no visible text besides its thinking"
"""The reason why a response is empty."""


class UnfinishedThinking(ValueError):
    """A reply opens with thinking that it never ends."""


def without_thinking(text: str, *, omits_think_tag: bool) -> str:
    """Return a reply without the block of thinking at its start.

    A reply has such a block only if it starts, after white space, with a known opening: a tag,
    whose block ends at the first closing tag of that name, or a mark of a model's format. A tag
    anywhere else is text, because a model may write about tags. With `omits_think_tag` (the server
    sends thinking without its opening tag), a reply without an opening tag starts inside a block,
    which ends at the first closing tag, if there is one.

    Raises:
        UnfinishedThinking: the block is never closed.
    """
    start = len(text) - len(text.lstrip())
    opening = _OPENING_TAG.match(text, start)
    if opening is not None:
        name = _tag_name(opening)
        for closing in _CLOSING_TAG.finditer(text, opening.end()):
            if _tag_name(closing) == name:
                return text[closing.end() :]
        raise UnfinishedThinking(f"{opening[0].lower()} is never closed")
    for opening_pattern, end_pattern in _BLOCK_PATTERNS:
        opening = opening_pattern.match(text, start)
        if opening is not None:
            end = end_pattern.search(text, opening.end())
            if end is None:
                raise UnfinishedThinking(f"{opening[0]} is never closed")
            return _LAST_MARK.sub("", text[end.end() :])
    end = _CLOSING_TAG.search(text) if omits_think_tag else None
    return text[end.end() :] if end else text


def _tag_name(tag: re.Match[str]) -> str:
    return str(tag[tag.lastindex or 0]).lower()


def unknown_opening(response: str) -> str | None:
    """Return the opening of a response that looks like an unknown tag of thinking; else None."""
    opening = _LIKE_THINKING.match(response)
    return None if opening is None else one_line(opening["tag"], 50)


MARKER = "<<marker>>"
CRITERION_MARKER = "<<criterion_marker>>"
_DIGITS = 16
"""The length of a marker. It has only digits, so that every marker has the same number of tokens,
and a prompt's length is predictable.
"""


def is_marked(template: str) -> bool:
    """Return whether a template delimits quoted texts by a marker."""
    return MARKER in template


def marker_of(source: Sequence[str], texts: Sequence[str]) -> str:
    """Return a marker that is derived from a source and occurs in none of the texts."""
    number = 0
    while True:
        hashed = int(digest("marker", number, source), 16) % 10**_DIGITS
        marker = f"{hashed:0{_DIGITS}}"
        if not any(marker in text for text in texts):
            return marker
        number += 1


def judge_prompt(template: str, messages: Sequence[Message], response: str, criterion: str) -> str:
    """Return the judge's prompt on a criterion; the response is the last turn."""
    turns = (*messages, ("assistant", response))
    return prompt_on(template, turns, criterion, last_name="assistant, the final message")


class Quotation(NamedTuple):
    """Texts to quote in a prompt.

    Attributes:
        kind: the word for one of them, such as message.
        entries: for each text its name (empty for none) and the text itself.
        plural: the word for all of them, such as conversation.
    """

    kind: str
    entries: Sequence[tuple[str, str]]
    plural: str

    def text(self, marker: str) -> str:
        """Return the entries, each after a line with the marker; a last such line follows."""
        lines = []
        for number, (name, text) in enumerate(self.entries, start=1):
            title = f"{self.kind} {number} of {len(self.entries)}"
            if name:
                title += f": {name}"
            lines.append(f"[{marker} {title}]\n{text}\n")
        return "".join([*lines, f"[{marker} end of the {self.plural}]"])


def prompt_on(
    template: str,
    turns: Sequence[Message],
    criterion: str,
    *,
    last_name: str | None = None,
    extra_texts: Mapping[str, str] | None = None,
    quotations: Mapping[str, Quotation] | None = None,
) -> str:
    """Return a template filled with turns and a criterion.

    In a marked template, `last_name` replaces the role as the name of the last turn, and
    `quotations` fill further placeholders. `extra_texts` fill further placeholders of any template.
    """
    values = dict(extra_texts or {})
    quoted = dict(quotations or {})
    texts = [content for _, content in turns]
    texts += values.values()
    for quotation in quoted.values():
        texts += [text for _, text in quotation.entries]
    values[CONVERSATION] = "\n\n".join(f"{role}: {content}" for role, content in turns)
    values[CRITERION] = criterion
    marker = ""
    if is_marked(template):
        marker = marker_of(texts, texts)
        if last_name is not None:
            turns = [*turns[:-1], (last_name, turns[-1][1])]
        quoted[CONVERSATION] = Quotation("message", turns, "conversation")
        values[MARKER] = marker
        for placeholder, quotation in quoted.items():
            values[placeholder] = quotation.text(marker)
    if CRITERION_MARKER in template:
        values[CRITERION_MARKER] = marker_of([marker, criterion], [marker, criterion, *texts])
    return fill(template, values)


def group_prompt(
    template: str,
    messages: Sequence[Message],
    response: str,
    criteria: Sequence[str],
) -> str:
    """Return the judge's prompt on several criteria, each under a line with their marker."""
    texts = [*(content for _, content in messages), response]
    conversation_marker = marker_of(texts, texts)
    marker = marker_of([conversation_marker, *criteria], [*texts, *criteria])
    entries = [("", text) for text in criteria]
    quoted_criteria = Quotation("criterion", entries, "criteria").text(marker)
    # The quoted criteria take the place of the one criterion of other templates.
    template = template.replace(GROUP, CRITERION)
    return judge_prompt(template, messages, response, quoted_criteria)


def decision_input(
    template: str,
    messages: Sequence[Message],
    response: str,
    criteria: Sequence[str],
) -> tuple[str, list[str]]:
    """Return the text that a decision model decides on, and a question for each criterion."""
    text, _, wording = template.partition(QUESTIONS)
    questions = [fill(wording, {CRITERION: criterion}).strip() for criterion in criteria]
    return judge_prompt(text, messages, response, "").strip(), questions


def rubric_prompt(
    template: str,
    turns: Sequence[Message],
    rubric: Sequence[tuple[str, str]],
    index: int,
) -> str:
    """Return a marked template filled with turns, a whole rubric and, last, one criterion of it.

    The part that all criteria of a rubric share comes first. `rubric` has for each criterion a word
    (desired or not) and its text; `index` is the criterion's, from 0.
    """
    numbered = template.replace("<<number>>", f"{index + 1} of {len(rubric)}")
    quotations = {"<<rubric>>": Quotation("criterion", rubric, "rubric")}
    return prompt_on(numbered, turns, rubric[index][1], quotations=quotations)


def naming_prompt(template: str, phrases: Sequence[str], forbidden: Sequence[str]) -> str:
    """Return a template filled with the phrases of a group and its forbidden names."""
    quotations = {
        "<<phrases>>": Quotation("phrase", [("", text) for text in phrases], "phrases"),
        "<<taken>>": Quotation("name", [("", text) for text in forbidden], "names"),
    }
    return prompt_on(template, (), "", quotations=quotations)
