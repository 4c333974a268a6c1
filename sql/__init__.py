"""The SQL of the project, found from this folder: models (`staging/`, `marts/`) and the rows that checks look at."""

import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Model:
    """One view or table: its name, its kind, its query, what a row is, and its described columns.

    The kind is `view`, `table`, or `step`: a table that is of use only while others are built.
    """

    name: str
    kind: str
    query: str
    meaning: str
    columns: dict[str, str]

    @cached_property
    def sources(self) -> set[str]:
        """The names behind `from` and `join`: tables, models, and the query's own steps."""
        return set(re.findall(r"\b(?:from|join)\s+([a-z_]+)", self.query))

    @cached_property
    def text(self) -> str:
        """All that is said of the model."""
        return repr(self)


@cache
def schema() -> dict[str, Any]:
    """`schema.yml`: every model in the order of building, and the meaning of the columns that models add."""
    document: dict[str, Any] = yaml.safe_load((FOLDER / "schema.yml").read_text(encoding="utf-8"))
    return document


@cache
def models() -> list[Model]:
    """Every model, in the order in which they are built."""
    return [
        Model(
            name=name,
            kind=entry["kind"],
            query=read(f"{entry['folder']}/{name}"),
            meaning=entry["meaning"],
            columns=dict(entry.get("columns") or {}),
        )
        for name, entry in schema()["models"].items()
    ]


def behind(changed: set[str]) -> list[Model]:
    """The models to build again when these stored tables changed, in the order of building.

    They are those that come out differently, and the steps to them, since those are not kept.
    """
    reached = set(changed)
    for model in models():
        if model.sources & reached:
            reached.add(model.name)
    for model in reversed(models()):
        if model.name in reached:
            reached |= {step.name for step in models() if step.kind == "step" and step.name in model.sources}
    return [model for model in models() if model.name in reached]


def read(name: str) -> str:
    """The text of `<name>.sql` below this folder."""
    return (FOLDER / f"{name}.sql").read_text(encoding="utf-8").strip().removesuffix(";")
