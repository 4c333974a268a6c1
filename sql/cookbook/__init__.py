"""The cookbook: questions that are often asked, each with a query that answers it.

A recipe is a file `<number>-<name>.sql` of this folder. Its first line is the question, as a comment; the rest is one
query without parameters. The number is its place in the list.
"""

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
    """All recipes, in the order of their numbers.

    Raises:
        ValueError: a file does not begin with its question.
    """
    return [_read(path) for path in sorted(_FOLDER.glob("*.sql"))]


def _read(path: Path) -> Recipe:
    first, _, rest = path.read_text(encoding="utf-8").partition("\n")
    question = first.removeprefix("--").strip()
    if not first.startswith("--") or not question:
        raise ValueError(f"{path}: the first line is no comment with a question")
    return Recipe(path.stem.partition("-")[2], question, rest.strip().removesuffix(";").rstrip())
