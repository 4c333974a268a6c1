"""Naming patterns: what the name of a file says about the response that it holds."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from tasks.imports.documents import SUFFIXES
from tasks.rules.errors import UsageError

FIELDS = ("task", "model", "trial", "vintage")
_PLACE = re.compile(r"\{([^{}]*)\}")
_BY_MODEL, _OF_ONE_MODEL = "{model}/{task}", "{task}"


@dataclass(frozen=True)
class Pattern:
    """A path without its ending, cut into literal text and names of fields, in turn and beginning with text."""

    text: str
    parts: tuple[str, ...]

    def readings(self, path: PurePath) -> list[dict[str, str]]:
        """All ways in which the name of a file fits; a field is one character or more of one folder's or file's name.

        Several ways are possible where the text between two fields also occurs in one of them.
        """
        found = _readings(self.parts, path.with_suffix("").as_posix(), {})
        return [dict(reading) for reading in dict.fromkeys(tuple(reading.items()) for reading in found)]


def pattern_of(text: str | None, model: str | None) -> Pattern:
    """The pattern that is asked for, or the usual one.

    Raises:
        UsageError: it lacks the task or the model, or is ambiguous.
    """
    text = text or (_BY_MODEL if model is None else _OF_ONE_MODEL)
    parts = tuple(_PLACE.split(text))
    names = parts[1::2]
    if problem := _problem(parts[::2], names, model):
        raise UsageError(f"--pattern {text}: {problem}")
    return Pattern(text, parts)


def _problem(literals: tuple[str, ...], names: tuple[str, ...], model: str | None) -> str | None:
    unknown = [name for name in names if name not in FIELDS]
    if unknown == ["ext"] or literals[-1].lower().endswith(SUFFIXES):
        return "leave the ending of the files out; all kinds of documents are taken"
    if unknown or any("{" in literal or "}" in literal for literal in literals):
        return f"fields are {', '.join(f'{{{name}}}' for name in FIELDS)}"
    if "task" not in names:
        return "lacks {task}"
    if model is None and "model" not in names:
        return "lacks {model}; add it, or name the model of all files with --as LABEL"
    if not all(literals[1:-1]):
        return "needs text between two fields"
    return None


def _readings(parts: tuple[str, ...], rest: str, found: dict[str, str]) -> Iterator[dict[str, str]]:
    literal, *following = parts
    if not rest.startswith(literal):
        return
    rest = rest.removeprefix(literal)
    if not following:
        if not rest:
            yield found
        return
    name, *after = following
    longest = len(rest.partition("/")[0])
    for length in range(1, longest + 1):
        value = rest[:length]
        if found.get(name, value) == value:
            yield from _readings(tuple(after), rest[length:], found | {name: value})
