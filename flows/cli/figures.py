"""Stored figures: queries on them, and tables with their intervals."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from flows.cli.output import show_records
from tasks.rules.text.numbers import SMALL_MARK

if TYPE_CHECKING:
    from tasks.config.job import Job
    from warehouse import Reader

_GRADERS = {"graders": "judge", "people": "people"}
"""Lists of graders that questions take, with the option that they come from."""
Records = list[dict[str, Any]]


def answer(
    job: "Job",
    question: str,
    parameters: Mapping[str, Any],
    read: "Callable[[Reader, Mapping[str, Any]], Records] | None" = None,
    **names: str | None,
) -> Records:
    """The answer to a question on the job's data-set revision, or what `read` makes of it.

    With a keyword `score` (None: the primary one) the question gets the score's name.

    Raises:
        UsageError: the benchmark has no such score, or nothing stored has a name that was given.
    """
    from tasks.benchmarks import load_benchmark
    from tasks.compare.figures import query_of
    from tasks.compare.pairs import score_or
    from warehouse import Warehouse

    benchmark, data = load_benchmark(job.settings.benchmark), job.data
    given = {**parameters, "benchmark": benchmark.name, "revision": data.revision}
    if "score" in names:
        given["score"] = score_or(benchmark.primary_score, names["score"], benchmark).score_name
    with Warehouse(job.warehouse).reader() as reader:
        _refuse_unknown(reader, given)
        return read(reader, given) if read else reader.rows(query_of(question), given)


def _refuse_unknown(reader: "Reader", given: Mapping[str, Any]) -> None:
    """Refuse an unknown name."""
    from tasks.rules.errors import UsageError

    for names, option in _GRADERS.items():
        if not given.get(names):
            continue
        known = [row["grader"] for row in reader.select("graders", "distinct grader", benchmark=given["benchmark"])]
        unknown = [name for name in given[names] if name not in known]
        if unknown and known:
            raise UsageError(f"--{option} {unknown[0]}: not found; known: {', '.join(map(str, known))}")


def show_figures(title: str, records: Records, columns: Mapping[str, str | tuple[str, str, str]]) -> None:
    """A table of some columns under other headings; `x±` is a figure with its interval, as three names are.

    Columns without any value are left out.
    """
    if not records:
        return
    show_records([{name: _cell(each, column) for name, column in columns.items()} for each in records], title)


def _cell(record: Mapping[str, Any], column: str | tuple[str, str, str]) -> Any:
    if isinstance(column, str) and column[-1] == "±":
        name = column[:-1]
        column = (name, f"{name}_ci_low", f"{name}_ci_high")
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


def say_small(records: Iterable[Mapping[str, Any]]) -> None:
    """Explain the mark of intervals that may be too narrow, if any record has one."""
    from tasks.rules.statistics.intervals import SMALL

    if any(map(is_small, records)):
        click.echo(f"{SMALL_MARK} fewer than {SMALL} tasks, or few that differ: the interval may be too narrow")


def repetition(records: Records) -> dict[str, str]:
    """The column of the judge's repetition, if there is more than the first."""
    return {"judge trial": "judge_trial"} if any(record["judge_trial"] != 1 for record in records) else {}
