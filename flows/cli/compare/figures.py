"""Tables of figures with their intervals."""

from collections.abc import Mapping, Sequence
from typing import Any

from flows.cli.common.tables import show_table
from flows.cli.compare.questions import Records
from tasks.rules.text.numbers import SMALL_MARK


def show_figures(title: str, records: Records, columns: Mapping[str, str | tuple[str, str, str]]) -> None:
    """A table of some columns under other headings; three names are a figure with its interval.

    Columns without any value are left out.
    """
    if not records:
        return
    used = {name: column for name, column in columns.items() if any(_cell(r, column) is not None for r in records)}
    show_table(list(used), [[_cell(record, column) for column in used.values()] for record in records], title=title)


def _cell(record: Mapping[str, Any], column: str | Sequence[str]) -> Any:
    if isinstance(column, str):
        value = record[column]
        if column.endswith("_hash"):
            return value[:8]
        return f"{value:.3f}" if isinstance(value, float) and column != "weight" else value
    value, low, high = (record[name] for name in column)
    if value is None:
        return None
    small = SMALL_MARK if is_small(record) or record.get(f"{column[0]}_is_small") else ""
    return f"{value:.3f}{small}" if low is None else f"{value:.3f} ({low:.3f} to {high:.3f}){small}"


def is_small(record: Mapping[str, Any]) -> bool:
    """Whether a figure is based on too few tasks, as it says itself or else by their number."""
    from tasks.rules.statistics.intervals import SMALL

    return bool(record.get("is_small", record.get("n_tasks", SMALL) < SMALL))


def repetition(records: Records) -> dict[str, str]:
    """The column of the judge's repetition, if there is more than the first."""
    return {"judge trial": "judge_trial"} if any(record["judge_trial"] != 1 for record in records) else {}
