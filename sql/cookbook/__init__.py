"""The cookbook: frequent questions, each with a query.

A recipe is a file `<number>-<name>.sql` of one of the folders here. It begins with the question, as a comment; the
rest is one query without parameters. The number orders the list.
"""

import re
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Recipe:
    """A frequent question (`title`) and its query."""

    name: str
    title: str
    query: str


def recipes() -> list[Recipe]:
    """Return all recipes, in the order of their numbers.

    Raises:
        ValueError: a file does not begin with its question.
    """
    return [_read(path) for path in sorted(_FOLDER.rglob("*.sql"), key=lambda path: path.name)]


def _read(path: Path) -> Recipe:
    text = path.read_text(encoding="utf-8")
    heading = re.match(r"((?:-- .*\n)*?-- .*\?)\n", text)
    if heading is None:
        raise ValueError(f"{path}: it does not begin with a comment that is a question")
    title = " ".join(line.removeprefix("-- ") for line in heading[1].splitlines())
    return Recipe(path.stem.partition("-")[2], title, text[heading.end() :].strip().removesuffix(";").rstrip())
