"""The cookbook: questions that are often asked, each with a query that answers it.

A recipe is a file `<number>-<name>.sql` of one of the folders here. It begins with the question, as a comment; the
rest is one query without parameters. The number is its place in the list.
"""

import re
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Recipe:
    """A question and the query that answers it."""

    name: str
    question: str
    query: str


def recipes() -> list[Recipe]:
    """Return all recipes, in the order of their numbers.

    Raises:
        ValueError: a file does not begin with its question.
    """
    return [_read(path) for path in sorted(_FOLDER.rglob("*.sql"), key=lambda path: path.name)]


def _read(path: Path) -> Recipe:
    text = path.read_text(encoding="utf-8")
    question = re.match(r"((?:-- .*\n)*?-- .*\?)\n", text)
    if question is None:
        raise ValueError(f"{path}: it does not begin with a comment that is a question")
    asked = " ".join(line.removeprefix("-- ") for line in question[1].splitlines())
    return Recipe(path.stem.partition("-")[2], asked, text[question.end() :].strip().removesuffix(";").rstrip())
