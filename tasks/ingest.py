"""Ingest: store a data set's rows as tasks, criteria and split members of one revision.

A revision is the hub's commit (a branch or tag is resolved to its commit first), or the hash of the
content of files. It is stored on every row, so rows of different revisions are never mixed.

Each hub commit has its own cache folder (`dataset/source.py`) below the usual one, because offline,
or if the hub is down, `datasets` loads the newest revision in its cache, whichever was requested.
So a cache that other programs filled is not used offline.

The scratchpad is not stored, so it cannot be sent to a model. The canary is stored in
`split_members`, apart from all texts, and is in no export and no report.

Parsing refuses only rows that cannot become tasks. All other problems are left to the checks, so
that a refused task is in the database with the reason (`quarantine`).
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.check import check
from tasks.config.job import Job
from tasks.dataset.source import Source, source_of, tasks_of
from tasks.rules.records import Task
from tasks.rules.text.numbers import counted
from tasks.run.writing import StageReport
from warehouse import TABLES, Warehouse

Rows = list[dict[str, Any]]


def ingest_and_check(job: Job) -> StageReport:
    """Ingest the data set and check it; existing rows do not change."""
    report = ingest(job)
    report.add_messages(check(job, ("ingest",), reuse=True))
    return report


def ingest(job: Job) -> StageReport:
    """Store the configured data set in the warehouse; ingesting the same revision again changes
    nothing.

    Raises:
        PipelineError: the data set cannot be read or lacks a column; no row is stored then.
    """
    benchmark = load_benchmark(job.settings.benchmark)
    source = source_of(job)
    warehouse = Warehouse(job.warehouse)
    key = {"benchmark": benchmark.name, "dataset_revision": source.revision}
    if not source.files and warehouse.database.exists():
        with warehouse.reader() as reader:
            stored = reader.select("split_members", "distinct split", **key)
        if {row["split"] for row in stored} >= set(source.splits):
            return _stored(warehouse, key, source)
    by_split = {split: list(tasks_of(source, split, benchmark)) for split in source.splits}
    # Every task once, in order of appearance. `n_rows` is the largest number of rows with its id in
    # a split, or of different contents under its id. Hard splits repeat tasks of full ones, so an
    # id may be in two splits with the same content.
    first: dict[str, Task] = {}
    everything = [task for of_split in by_split.values() for task in of_split]
    n_rows = Counter(
        task_id for task_id, _ in {(task.task_id, task.content_hash) for task in everything}
    )
    for of_split in by_split.values():
        n_rows |= Counter(task.task_id for task in of_split)
    tasks = [task for task in everything if first.setdefault(task.task_id, task) is task]
    for name, rows in _reference_rows(benchmark).items():
        warehouse.write(name, rows)
    warehouse.write("task_rows", [_task_row(key, task, n_rows[task.task_id]) for task in tasks])
    for name, rows_of in _ROWS_OF_TASK.items():
        warehouse.write(
            name,
            [
                {
                    **key,
                    "task_id": task.task_id,
                    **row,
                }
                for task in tasks
                for row in rows_of(task)
            ],
        )
    # Last, because a split with members counts as stored.
    warehouse.write(
        "split_members",
        [
            key
            | {
                "split": split,
                "task_id": task.task_id,
                "position": position,
                "canary": task.canary,
            }
            for split, of_split in by_split.items()
            for position, task in enumerate(of_split)
        ],
    )
    warehouse.publish()
    return _stored(warehouse, key, source)


def _task_row(key: dict[str, str], task: Task, n_rows: int) -> dict[str, Any]:
    weights = [criterion.weight or 0.0 for criterion in task.criteria]
    counts = {
        "n_rows": n_rows,
        "n_criteria": len(weights),
        "positive_weight": sum(max(w, 0.0) for w in weights),
        "negative_weight": sum(min(w, 0.0) for w in weights),
    }
    return (
        key
        | counts
        | {name: getattr(task, name) for name in TABLES["task_rows"].columns if hasattr(task, name)}
    )


_ROWS_OF_TASK: dict[str, Callable[[Task], Rows]] = {
    "criteria": lambda task: [
        {k: v for k, v in asdict(each).items() if k != "labels"} for each in task.criteria
    ],
    "conversation_turns": lambda task: [
        {"position": n, **asdict(turn)} for n, turn in enumerate(task.conversation)
    ],
    "task_labels": lambda task: [
        {"kind": kind, "label": label} for kind, label in dict.fromkeys(task.labels)
    ],
    "criterion_labels": lambda task: [
        {
            "criterion_id": criterion_id,
            "kind": kind,
            "label": label,
        }
        for criterion_id, kind, label in dict.fromkeys(
            (c.criterion_id, *of) for c in task.criteria for of in c.labels
        )
    ],
}
"""Table -> function that returns the rows of a task in it."""


def _reference_rows(benchmark: Benchmark) -> dict[str, Rows]:
    """Return the declarations of the benchmark as rows that SQL can join: labels, severities,
    scores.
    """
    name = benchmark.name
    return {
        "labels": [
            {
                "benchmark": name,
                "field": field,
                "kind": kind,
                "label": label,
            }
            for field, kinds in benchmark.vocabularies.items()
            for kind, labels in kinds.items()
            for label in sorted(labels)
        ],
        "severities": [
            {
                "benchmark": name,
                "severity": severity,
                "min_weight": low,
                "max_weight": high,
            }
            for severity, (low, high) in benchmark.severities.items()
        ],
        "score_definitions": [{"benchmark": name, **asdict(score)} for score in benchmark.scores],
    }


def _stored(warehouse: Warehouse, key: dict[str, str], source: Source) -> StageReport:
    with warehouse.reader() as reader:
        tasks = reader.select("tasks", "splits, n_criteria", **key)
    sizes = [row["n_criteria"] for row in tasks if set(source.splits) & set(row["splits"] or ())]
    where = f"{', '.join(source.splits)} of revision {source.revision[:12]}"
    note = (
        f"{counted(len(sizes), 'task')} with {counted(sum(sizes), 'criterion', 'criteria')} in"
        f" {where}"
    )
    return StageReport("ingest", rows=len(sizes), notes=[note])
