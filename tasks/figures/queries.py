"""Queries of figures: the SQL text that runs, with its steps and the values of its parameters."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Self

import duckdb

import sql
from tasks.figures.figure import Figure

SAMPLING = ("model", "model_config_hash", "vintage")
JUDGE_CONFIG = ("judge", "judge_config_hash", "template_hash", "grading", "judge_trial")
ColumnsOf = Callable[[str], Sequence[str]]
"""Returns the columns of a relation."""
_NO_COLUMNS: Mapping[str, Sequence[str]] = {}


@dataclass(frozen=True)
class Rows:
    """A small table that a query reads: `from $name as alias (column, ...)`."""

    rows: tuple[tuple[Any, ...], ...]
    width: int

    @classmethod
    def of(cls, records: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Self:
        """Return some columns of records, in this order."""
        return cls(
            tuple(tuple(record[column] for column in columns) for record in records), len(columns)
        )


def filled(
    query: str,
    values: Mapping[str, Any],
    columns_of: ColumnsOf = _NO_COLUMNS.__getitem__,
    steps: Mapping[str, str] | None = None,
) -> str:
    """Return a query, with its steps before it and a literal instead of each `$name`.

    Args:
        query: the text of a query, or its name: `<file>/<name>` below `sql/figures/` or
            `sql/report/`, or a figure's name.
        values: the values of parameters, by name.
        columns_of: returns the columns of a relation, which steps such as `scoped_<relation>` need.
        steps: replace the models with the same names.

    Raises:
        KeyError: a parameter of the query is not given.
    """
    text = _text(query)
    parts = sql.tokens(sql.with_ctes(text, {**(steps or {}), **_steps(text, columns_of)}))
    for i, (sign, name) in enumerate(pairwise(parts)):
        if sign == "$":
            parts[i : i + 2] = "", literal(values[name.rstrip()]) + name[len(name.rstrip()) :]
    return "".join(parts)


def _text(query: str) -> str:
    """Return the text of a query that is given as a text or by its name."""
    if " " in query:
        return query
    if "/" not in query:
        return _by_name()[query]
    file, _, name = query.partition("/")
    folder = "figures" if (sql.FOLDER / f"figures/{file}.sql").exists() else "report"
    return sql.queries(f"{folder}/{file}")[name]


@cache
def _by_name() -> dict[str, str]:
    """Return the queries of figures by name; queries of the scope and shared steps may have the
    same names.
    """
    files = sorted(
        path.stem
        for path in (sql.FOLDER / "figures").glob("*.sql")
        if path.stem not in {"shared", "scope"}
    )
    return {name: query for file in files for name, query in sql.queries(f"figures/{file}").items()}


def _steps(query: str, columns_of: ColumnsOf) -> dict[str, str]:
    """Return the steps of a query by name, in an order in which each step follows those that it
    reads.
    """
    shared = sql.queries("figures/shared")
    parts: dict[str, str] = {}
    for before, after in pairwise(sql.tokens(query)):
        step = after.rstrip()
        kind, _, relation = step.partition("_")
        if before.rstrip() in {"from", "join"} and (step in shared or kind in _BUILT):
            text = shared[step] if step in shared else _BUILT[kind](relation, columns_of)
            parts |= {**_steps(text, columns_of), step: text}
    return parts


_KEYS = (
    (("split", "is_own_hard"), "shown_sets", "is_hard"),
    (SAMPLING, "entries", "entry"),
    (JUDGE_CONFIG, "shown_judge_configs", "judge_config"),
)
"""For each set of columns that decide whether a row is in the scope: the columns, the step to join
on them, and the label that this step gives.
"""
_INTERNAL = {
    "benchmark",
    "dataset_revision",
    "figure_id",
    "basis",
    "task_set_id",
    "model_run_id",
    "ranking_id",
}
"""Columns that are the same in all rows of a figure, or change with each publishing."""


def _scoped(name: str, columns_of: ColumnsOf) -> str:
    """Return a step that selects the rows of a relation in the scope: on its tasks, of its models,
    by its judges.

    Without a requested vintage, these are rows of current vintages where the relation says which
    are current.

    The columns `is_hard`, `entry` and `judge_config` come first, as far as the relation has their
    keys.
    """
    columns = set(columns_of(sql.with_schema(name)))
    deciding = [(keys, step, label) for keys, step, label in _KEYS if columns.issuperset(keys)]
    shown = ", ".join([*(f"{step}.{label}" for _, step, label in deciding), "scoped.*"])
    joined = "".join(f"\ninner join {step} using ({', '.join(keys)})" for keys, step, _ in deciding)
    current = "\nwhere is_latest or $vintage::varchar is not null" if "is_latest" in columns else ""
    return f"select {shown}\nfrom revision_{name} as scoped{joined}{current}"


def _presented(name: str, columns_of: ColumnsOf) -> str:
    """Return the query for the scoped rows as figures show them: labels of models and judges, no
    internal keys.
    """
    columns = columns_of(sql.with_schema(name))
    labels = [label for keys, _, label in _KEYS if set(columns).issuperset(keys)]
    first = [each for each in ("judge_config", "split", "is_hard") if each in {*columns, *labels}]
    renamed = {"entry": "model", "model": "model_label"} if "entry" in labels else {}
    left_out = [*first, *renamed, *(each for each in columns if each in _INTERNAL)]
    shown = [
        *first,
        *(f"{each} as {new}" for each, new in renamed.items()),
        f"* exclude ({', '.join(left_out)})",
    ]
    return f"select {', '.join(shown)}\nfrom scoped_{name}"


_BUILT: Mapping[str, Callable[[str, ColumnsOf], str]] = {
    "revision": lambda name, _: sql.of_revision(name),
    "scoped": _scoped,
    "presented": _presented,
}
"""Prefix of a step -> the function that builds the step from the relation whose name follows."""


def text_of(figure: Figure) -> str:
    """Return the query of a figure."""
    return _text(figure.query or figure.name)


def relation_of(figure: Figure) -> str:
    """Return the relation whose columns a figure shows; empty if the figure has columns of its
    own.
    """
    read = () if figure.compute else sql.tokens(text_of(figure))
    return next(
        (
            each.rstrip().removeprefix("presented_")
            for each in read
            if each.startswith("presented_")
        ),
        "",
    )


def literal(value: Any) -> str:
    """Return a value as SQL text."""
    if not isinstance(value, Rows):
        return str(duckdb.ConstantExpression(value))
    rows = ",\n    ".join(f"({', '.join(map(literal, row))})" for row in value.rows)
    # A table has its columns even without rows.
    return (
        f"(values\n    {rows}\n)"
        if rows
        else f"(select {', '.join(['null'] * value.width)} where false)"
    )
