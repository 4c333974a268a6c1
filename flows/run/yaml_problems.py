"""What is wrong with a YAML file, in words of people who write one rather than of the parser."""

import yaml

_IN_WORDS = (
    ("mapping values are not allowed here", "a `:` where no key can be; check indentation, and quote texts with `:`"),
    ("could not find expected ':'", "a key without `:`, or a text over several lines that is not indented"),
    ("that cannot start any token", "a character that no value can begin with (a tab, `@`, `%` or a backtick); indent "
     "with spaces, and quote such texts"),
    ("found unexpected end of stream", "a quote that is not closed"),
    ("expected ',' or ']'", "a list in `[ ]` that is not closed, or lacks a comma"),
    ("expected ',' or '}'", "a mapping in `{ }` that is not closed, or lacks a comma"),
    ("expected <block end>", "indentation that fits nothing above it, or text behind a closed quote"),
    ("expected the node content", "a bracket that is not closed, or a value that is missing"),
    ("found undefined alias", "a text that begins with `*`; quote it"),
    ("found unknown escape", "a backslash in double quotes; use single quotes"),
    ("could not determine a constructor", "a text that begins with `!`; quote it"),
)  # fmt: skip
"""A part of the parser's message, and what people call it; the first that fits."""


def yaml_problem(error: yaml.YAMLError) -> str:
    """Where the problem is and what it is, in one line."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return " ".join(str(error).split())
    said = " ".join(filter(None, (error.context, error.problem)))
    known = (words for part, words in _IN_WORDS if part in said)
    mark = error.problem_mark or error.context_mark
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return place + next(known, " ".join((error.problem or said).split()))
