"""The leaderboards of a job: which rows, of which table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.compare.figures import query_of
from tasks.compare.pairs import score_or
from tasks.config.job import Job
from tasks.rules.errors import UsageError
from tasks.rules.records import Table
from warehouse import Reader, Warehouse

EVERY = "all"
"""Asks for the rows of all vintages."""
OFFICIAL_HARD = "official hard"
"""The label, in the breakdown `subset`, of all tasks of a split that is hard by the data set's own choice."""
_OF_RUBRICS = {"category", "severity"}
"""Breakdowns of every rubric; others are of the tasks, or of labels that are stored with what they are of."""


@dataclass(frozen=True)
class Choice:
    """Which leaderboard: a vintage (None: the latest of each model; `all`), a score (None: the fitting one), a
    breakdown, and which tasks.

    `selection` is the id of a hard selection, or its beginning, or `latest`; `is_hard` the latest of each field.
    """  # noqa: D205 - what is chosen from takes two lines

    vintage: str | None = None
    score: str | None = None
    by: str | None = None
    is_hard: bool = False
    is_severity: bool = False
    selection: str | None = None


def leaderboard(job: Job, choice: Choice) -> Table:
    """The chosen leaderboard on the job's data-set revision.

    Raises:
        UsageError: the benchmark has no such score or breakdown, or the warehouse no such selection.
    """
    benchmark, data = load_benchmark(job.settings.benchmark), job.data
    _refuse_other_benchmarks(benchmark, choice)
    given = {
        "splits": list(job.settings.dataset.splits), "models": list(job.named_models or ()),
        "judges": list(job.named_judges or ()), "vintage": choice.vintage,
    }  # fmt: skip
    data_set = {"benchmark": benchmark.name, "revision": data.revision, "bar": job.settings.coverage.min}
    with Warehouse(job.warehouse).reader() as reader:
        if choice.selection is not None:
            score = _score(benchmark, choice, is_of_criteria=False)
            return _on_selection(reader, choice.selection, given | {"score": score}, data_set)
        if choice.is_severity:
            parameters = {**given, **data_set, "is_hard": choice.is_hard}
            return Table(*reader.table(query_of("severity"), parameters))
        return _ranked(reader, benchmark, choice, given | data_set)


def _refuse_other_benchmarks(benchmark: Benchmark, choice: Choice) -> None:
    """Refuse what is asked about other benchmarks than this."""
    common = (breakdown for breakdown in benchmark.common_breakdowns if breakdown != "severity" or benchmark.severities)
    breakdowns = [*common, *benchmark.own_breakdowns]
    if choice.by is not None and choice.by not in breakdowns:
        raise UsageError(f"--by {choice.by}: no such breakdown; {benchmark.name} has {', '.join(breakdowns)}")
    if choice.is_severity and not benchmark.severities:
        raise UsageError(f"--risk: {benchmark.name} has no weight classes that would say what is critical")


def _ranked(reader: Reader, benchmark: Benchmark, choice: Choice, given: Mapping[str, Any]) -> Table:
    breakdown = choice.by or "all"
    key = {"benchmark": given["benchmark"], "dataset_revision": given["revision"], "kind": breakdown}
    is_of_criteria = breakdown in _OF_RUBRICS or bool(reader.select("criterion_labels", "distinct kind", **key))
    score = _score(benchmark, choice, is_of_criteria=is_of_criteria)
    parameters = {**given, "score": score, "breakdown": breakdown, "is_hard": choice.is_hard}
    columns, rows = reader.table(query_of("leaderboard"), parameters)
    at = columns.index("label")
    if choice.by is None:
        return Table(columns[:at] + columns[at + 1 :], [row[:at] + row[at + 1 :] for row in rows])
    if choice.by == "subset":
        rows = [_of_hard_split(benchmark, row, columns.index("split"), at) for row in rows]
    return Table([*columns[:at], choice.by, *columns[at + 1 :]], rows)


def _of_hard_split(benchmark: Benchmark, row: tuple[Any, ...], split_at: int, label_at: int) -> tuple[Any, ...]:
    """A row whose label does not call the whole of a hard split the full set."""
    is_whole = row[split_at] in benchmark.hard_splits.values() and row[label_at] == "full"
    return (*row[:label_at], OFFICIAL_HARD, *row[label_at + 1 :]) if is_whole else row


def _score(benchmark: Benchmark, choice: Choice, *, is_of_criteria: bool) -> str:
    """The score that was asked for; else the main one, or for some criteria of a rubric one that any of them have."""
    fitting = benchmark.criteria_score if is_of_criteria else benchmark.primary_score
    return score_or(fitting, choice.score, benchmark).score_name


def _on_selection(reader: Reader, selection: str, given: Mapping[str, Any], data_set: Mapping[str, Any]) -> Table:
    """Any split on any hard selection: the tasks that they share, with intervals drawn now."""
    from tasks.hard_subset.selection_scores import scores_on

    key = {"benchmark": data_set["benchmark"], "dataset_revision": data_set["revision"]}
    of_data_set = "from hard_subset where benchmark = $benchmark and dataset_revision = $dataset_revision"
    rows = reader.rows(f"select selection_id {of_data_set} group by all order by max(selected_at) desc", key)
    known = [row["selection_id"] for row in rows]
    chosen = [name for name in known if name.startswith(selection)]
    if selection == "latest":
        chosen = [row["selection_id"] for row in reader.select("staging.latest_selections", **key)]
    if not chosen or (len(chosen) > 1 and selection != "latest"):
        what = f"fits {len(chosen)} selections" if chosen else "is no selection"
        raise UsageError(f"--selection {selection}: {what} of this data set; there are {', '.join(known) or 'none'}")
    records = scores_on(reader, {**given, "selections": chosen}, data_set["bar"])
    named = [record | {"score_name": given["score"], "selections": chosen} for record in records]
    return Table(list(named[0]) if named else [], [tuple(record.values()) for record in named])
