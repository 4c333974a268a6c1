"""The cookbook: frequent questions, each with a query.

A recipe is a file `<number>-<name>.sql` of one of the folders here. It begins with the question, as
a comment; the rest is one query without parameters. The number orders the list.
"""

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
    """Return all recipes, in the order of their numbers."""
    return [_read(path) for path in sorted(_FOLDER.rglob("*.sql"), key=lambda path: path.name)]


def _read(path: Path) -> Recipe:
    heading, _, query = path.read_text(encoding="utf-8").partition("?\n")
    title = " ".join(line.removeprefix("-- ") for line in heading.splitlines())
    return Recipe(
        path.stem.partition("-")[2], f"{title}?", query.strip().removesuffix(";").rstrip()
    )
