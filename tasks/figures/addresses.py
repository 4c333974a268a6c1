"""Names of tasks, entries, judge configurations and criteria in files and addresses, and links.

Names are digests, so they reveal no text. A name depends only on its object, so it stays the same
when other tasks or models are added.
"""

import hashlib
from collections.abc import Callable, Sequence
from urllib.parse import urlencode

from tasks.figures.figure import Row, Rows
from tasks.figures.scope import SAMPLING
from tasks.rules.identity import JUDGE_CONFIG, digest

_HEX = 16


def task_key(task_id: str) -> str:
    """Return the name of a task."""
    return digest("task", task_id)[:_HEX]


def entry_key(entry: Row) -> str:
    """Return the name of one sampling of a configured model."""
    return digest("entry", *(entry[column] for column in SAMPLING))[:_HEX]


def judge_config_key(judge_config: Row) -> str:
    """Return the name of a judge configuration."""
    return digest("judging", *(judge_config[column] for column in JUDGE_CONFIG))[:_HEX]


def criterion_key(criterion_id: str) -> str:
    """Return the name of a criterion within its task: the beginning of `sha256(criterion_id)` as in
    SQL.
    """
    return hashlib.sha256(criterion_id.encode()).hexdigest()[:_HEX]


def task_address(
    task_id: str,
    first: Row | None = None,
    second: Row | None = None,
    criterion_id: str | None = None,
) -> str:
    """Return the link to a task's page: with the responses of one or two entries, at one of its
    criteria.
    """
    parameters = {"task": task_key(task_id)}
    if first:
        parameters["a"] = entry_key(first)
    if second:
        parameters["b"] = entry_key(second)
    if criterion_id is not None:
        parameters["criterion"] = criterion_key(criterion_id)
    return "task.html#" + urlencode(parameters)


def side_by_side(first: Sequence[str], second: Sequence[str]) -> Callable[[Rows], Rows]:
    """Return a function that adds to rows the address of a page with two responses, at the
    criterion of the row if it has one.

    `first` and `second` name the columns with the sampling (model, its hash, vintage) of each
    response.
    """

    def with_addresses(rows: Rows) -> Rows:
        addressed_rows = []
        for row in rows:
            address = task_address(
                row["task_id"],
                first=_sampling(row, first),
                second=_sampling(row, second),
                criterion_id=row.get("criterion_id"),
            )
            addressed_rows.append({**row, "address": address})
        return addressed_rows

    return with_addresses


def _sampling(row: Row, columns: Sequence[str]) -> Row:
    return {name: row[column] for name, column in zip(SAMPLING, columns, strict=True)}
