"""Select the hard subset of each field as rows of a new version, with how stable the selection is."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.hard_subset.stability import in_words, overlap_rows, stability_rows
from tasks.hard_subset.universe import Panel, Universe, admitted_tasks, read_panel, universe_of
from tasks.rules.errors import PipelineError
from tasks.rules.hardness import HardSubsetError, Selected, select_hardest, selection_id, wanted_size
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Stored:
    """What is stored: the selections that count, tasks on the border by selection, and what overlaps are with."""

    latest: set[str]
    n_border: dict[str, int]
    overlaps: set[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class _Selection:
    identity: str
    universe: Universe
    selected: list[Selected]

    @property
    def task_ids(self) -> frozenset[str]:
        return frozenset(each.task_id for each in self.selected)


def select_hard(job: Job, *, must_select: bool = True) -> StageReport:
    """Select for every field of the job's revision, by the primary score under one judging.

    The universe are the admitted tasks of the chosen splits that are complete for every model of the panel. A field
    whose universe is too small, or under the coverage bar, is refused: with `must_select` as an error, else as a
    warning. The same basis gives the same selection id, and no new rows. Stability is measured once a selection.

    Raises:
        PipelineError: a field is refused, or the judging to select by is not clear.
    """
    benchmark, data = load_benchmark(job.settings.benchmark), job.data
    warehouse = Warehouse(job.warehouse)
    report = StageReport("select-hard")
    with warehouse.reader() as reader:
        fields = admitted_tasks(reader, benchmark.name, data.revision, data.splits)
        official = _official(reader, benchmark, data.revision)
        stored = _stored(reader)
        try:
            panel = read_panel(reader, job, benchmark, data.revision)
        except HardSubsetError as error:
            if must_select:
                raise PipelineError(f"select-hard: {error}") from error
            report.warnings.append(f"no hard subset: {error}")
            return report
    for field, task_ids in sorted(fields.items()):
        try:
            selection = _select_field(job, data.revision, field, task_ids, panel)
        except HardSubsetError as error:
            if must_select:
                raise PipelineError(f"select-hard: {field}: {error}") from error
            report.warnings.append(f"no hard subset for {field}: {error}")
            continue
        key = {"benchmark": benchmark.name, "dataset_revision": data.revision, "field": field}
        n_rows, words = _store(warehouse, key, selection, stored, official.get(field, {}))
        report.rows += n_rows
        n_complete = len(selection.universe.scores)
        aside = "" if n_complete == len(task_ids) else f" (chosen from {n_complete})"
        report.notes.append(f"{field}: {len(selection.selected)} of {len(task_ids)} tasks are hard{aside}, {words}")
    warehouse.publish()
    return report


def has_new_selection(job: Job) -> bool:
    """Whether selecting now would give a field a selection that is not the one that counts.

    Raises:
        PipelineError: a field is refused, or the judging to select by is not clear.
    """
    benchmark, data = load_benchmark(job.settings.benchmark), job.data
    with Warehouse(job.warehouse).reader() as reader:
        fields = admitted_tasks(reader, benchmark.name, data.revision, data.splits)
        latest = _stored(reader).latest
        try:
            panel = read_panel(reader, job, benchmark, data.revision)
            found = [_select_field(job, data.revision, *of_field, panel) for of_field in fields.items()]
        except HardSubsetError as error:
            raise PipelineError(str(error)) from error
    return any(selection.identity not in latest for selection in found)


def _official(reader: Reader, benchmark: Benchmark, revision: str) -> dict[str, dict[str, frozenset[str]]]:
    """The tasks of the data set's own hard split, by field and split; empty where the split is not stored."""
    return {
        field: {
            split: frozenset(
                row["task_id"]
                for row in reader.rows(
                    "select task_id from split_members where benchmark = ? and dataset_revision = ? and split = ?",
                    [benchmark.name, revision, split],
                )
            )
        }
        for field, split in benchmark.hard_splits.items()
    }


def _stored(reader: Reader) -> _Stored:
    latest = reader.rows("select selection_id from staging.latest_selections")
    stable = reader.rows(
        "select selection_id, count(*) filter (is_border) as n_border from hard_stability group by selection_id"
    )
    overlaps = reader.rows("select selection_id, kind, compared_with from hard_overlaps")
    return _Stored(
        {row["selection_id"] for row in latest},
        {row["selection_id"]: row["n_border"] for row in stable},
        {(row["selection_id"], row["kind"], row["compared_with"]) for row in overlaps},
    )


def _select_field(job: Job, revision: str, field: str, task_ids: set[str], panel: Panel) -> _Selection:
    size = wanted_size(len(task_ids), job.settings.hard_subset.share, field)
    universe = universe_of(field, task_ids, panel, job.settings)
    selected = select_hardest(universe.scores, size)
    basis = sorted(universe.scores.items())
    identity = selection_id(job.settings.benchmark, revision, field, basis, universe.models, size)
    return _Selection(identity, universe, selected)


def _store(
    warehouse: Warehouse, key: Row, selection: _Selection, stored: _Stored, official: dict[str, frozenset[str]]
) -> tuple[int, str]:
    """Write what is not stored of a selection; the number of rows written, and its stability in words.

    Each table is looked at by itself: selections from before stability was measured, or from a run that was cut off
    here, get what they lack, and so does one whose official split came later.
    """
    key = {"selection_id": selection.identity} | key
    n_border = stored.n_border.get(selection.identity)
    overlaps = overlap_rows(selection.universe, selection.task_ids, official)
    new: dict[str, list[Row]] = {
        "hard_overlaps": [
            row for row in overlaps if (selection.identity, row["kind"], row["compared_with"]) not in stored.overlaps
        ]
    }
    if selection.identity not in stored.latest:
        # Also one that was selected before another: the selection made last is the one that counts.
        new["hard_subset"] = _subset_rows(selection)
    if n_border is None:
        new["hard_stability"] = stability_rows(selection.universe, len(selection.selected))
        n_border = sum(row["is_border"] for row in new["hard_stability"])
    for table, rows in new.items():
        warehouse.write(table, [key | row for row in rows])
    return sum(map(len, new.values())), in_words(n_border, overlaps)


def _subset_rows(selection: _Selection) -> list[Row]:
    models, now = selection.universe.models, datetime.now(UTC)
    return [
        {
            "task_id": task.task_id, "rank": task.rank, "mean_score": task.mean_score, "n_models": len(models),
            "panel": list(models), "selected_at": now,
        }
        for task in selection.selected
    ]  # fmt: skip
