"""What a judge is sent: a template filled in, and in it quoted text that cannot pass for ours.

Where a template has `<<marker>>`, each message of the conversation stands between lines with a marker: a number made
from the quoted texts, and again with a counter until none of them holds it. So no text can end its own quotation or
begin a turn. The marker depends on the conversation alone, so that the prompts on all criteria of one answer begin
alike (the provider's prompt cache); the criterion, which comes last, has a marker of its own, `<<criterion_marker>>`.
"""

import itertools
from collections.abc import Mapping, Sequence

from tasks.rules.conversation import PLACES, Message, fill, said
from tasks.rules.identity import digest

MARKER, CRITERION_MARKER = "<<marker>>", "<<criterion_marker>>"
_DIGITS = 16
"""Digits alone: tokenizers make equally many tokens of any such number, so a prompt's length is known beforehand."""


def is_marked(template: str) -> bool:
    """Whether a template delimits what it quotes by a marker."""
    return MARKER in template


def marker_of(source: Sequence[str], texts: Sequence[str]) -> str:
    """A marker made from a source that none of the texts holds."""
    for number in itertools.count():
        marker = f"{int(digest('marker', number, list(source)), 16) % 10**_DIGITS:0{_DIGITS}}"
        if not any(marker in text for text in texts):
            return marker
    raise AssertionError("a finite text does not hold every number")


def judge_prompt(template: str, messages: Sequence[Message], response: str, criterion: str) -> str:
    """What asks a judge about a criterion: a conversation with the response as its last assistant turn."""
    return prompt_on(template, (*messages, ("assistant", response)), criterion, last="assistant, the final message")


def prompt_on(
    template: str, turns: Sequence[Message], criterion: str, *, last: str | None = None,
    more: Mapping[str, str] | None = None,
) -> str:  # fmt: skip
    """A template filled with turns and a criterion; `more` are further places with the texts that fill them.

    `last` names the last turn, where that is more than its role.
    """
    texts = [*(content for _, content in turns), *(more or {}).values()]
    values = {PLACES[0]: said(turns), PLACES[1]: criterion, **(more or {})}
    marker = ""
    if is_marked(template):
        marker = marker_of(texts, texts)
        values |= {MARKER: marker, PLACES[0]: _quoted(turns, marker, last)}
    if CRITERION_MARKER in template:
        values[CRITERION_MARKER] = marker_of([marker, criterion], [marker, criterion, *texts])
    return fill(template, values)


RUBRIC, NUMBER = "<<rubric>>", "<<number>>"


def rubric_prompt(template: str, turns: Sequence[Message], rubric: Sequence[tuple[str, str]], place: int) -> str:
    """A marked template filled with turns, a whole rubric and, last, one criterion of it.

    What all criteria of a rubric share comes first and is the same for each. `rubric` holds a word on each criterion,
    such as whether it is desired, and its text; `place` is that of the criterion, from 0.
    """
    criterion = rubric[place][1]
    texts = [*(content for _, content in turns), *(text for _, text in rubric)]
    marker = marker_of(texts, texts)
    listed = [
        f"[{marker} criterion {number} of {len(rubric)}: {word}]\n{text}\n"
        for number, (word, text) in enumerate(rubric, start=1)
    ]
    return fill(template, {
        PLACES[0]: _quoted(turns, marker, None), RUBRIC: "".join([*listed, f"[{marker} end of the rubric]"]),
        PLACES[1]: criterion, NUMBER: f"{place + 1} of {len(rubric)}", MARKER: marker,
        CRITERION_MARKER: marker_of([marker, criterion], [marker, criterion, *texts]),
    })  # fmt: skip


TAKEN, PHRASES = "<<taken>>", "<<phrases>>"


def naming_prompt(template: str, phrases: Sequence[str], taken: Sequence[str]) -> str:
    """A template filled with the phrases of a group and with names that it must not get."""
    texts = [*phrases, *taken]
    marker = marker_of(texts, texts)
    return fill(template, {MARKER: marker, TAKEN: _listed(taken, marker, "name"),
                           PHRASES: _listed(phrases, marker, "phrase")})  # fmt: skip


def _listed(texts: Sequence[str], marker: str, kind: str) -> str:
    """Texts of one kind, each behind a line with the marker, and such a line at the end."""
    lines = [f"[{marker} {kind} {number} of {len(texts)}]\n{text}\n" for number, text in enumerate(texts, start=1)]
    return "".join([*lines, f"[{marker} end of the {kind}s]"])


def _quoted(turns: Sequence[Message], marker: str, last: str | None) -> str:
    """The turns, each behind a line with the marker, and such a line at the end."""
    names = [role for role, _ in turns]
    if last is not None:
        names[-1] = last
    listed = [
        f"[{marker} message {number} of {len(turns)}: {name}]\n{content}\n"
        for number, (name, (_, content)) in enumerate(zip(names, turns, strict=True), start=1)
    ]
    return "".join([*listed, f"[{marker} end of the conversation]"])
