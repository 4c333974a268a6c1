"""Ingest: store a data set's rows as tasks, criteria and split members of one revision.

A revision is the hub's commit (a branch or tag is resolved to its commit first), or the hash of the
content of files. It is stored on every row, so rows of different revisions are never mixed.

Each hub commit has its own cache folder (`dataset/source.py`) below the usual one, because offline,
or if the hub is down, `datasets` loads the newest revision in its cache, whichever was requested.
Offline, therefore, only data that this program has downloaded is found.

The scratchpad (the author's notes) is not stored, so it cannot be sent to a model. The canary is
stored in `split_members`, apart from all texts, and is in no export and no report.

Parsing refuses only rows that cannot become tasks. All other problems are left to the checks, so
that a refused task is in the database with the reason (`quarantine`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
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

IngestedRow = dict[str, Any]
RevisionKey = Mapping[str, str]
"""The benchmark and the revision."""
TasksBySplit = Mapping[str, Sequence[Task]]
"""The tasks of each split, in order."""


def ingest_and_check(job: Job) -> StageReport:
    """Ingest the data set and check it; existing rows do not change."""
    report = ingest(job)
    report.add_messages(check(job, ("ingest",), reuse=True))
    return report


def ingest(job: Job) -> StageReport:
    """Store the configured data set in the warehouse.

    Ingesting the same revision again changes nothing.

    Raises:
        PipelineError: the data set cannot be read or lacks a column; no row is stored then.
    """
    benchmark = load_benchmark(job.benchmark)
    source = source_of(job)
    warehouse = Warehouse(job.warehouse)
    key = {"benchmark": benchmark.name, "dataset_revision": source.revision}
    # A commit of the hub that is stored is not loaded again: its rows never change.
    if not source.files and warehouse.database.exists():
        with warehouse.reader() as reader:
            rows = reader.select("split_members", "distinct split", **key)
        if {row["split"] for row in rows} >= set(source.splits):
            return _report(warehouse, key, source)
    tasks_by_split = {split: list(tasks_of(source, split, benchmark)) for split in source.splits}
    tables = _reference_rows(benchmark) | _task_rows(key, tasks_by_split)
    # Last, because a split with members counts as stored.
    tables["split_members"] = _member_rows(key, tasks_by_split)
    for table, rows in tables.items():
        warehouse.write(table, rows)
    warehouse.publish()
    return _report(warehouse, key, source)


def _task_rows(key: RevisionKey, tasks_by_split: TasksBySplit) -> dict[str, list[IngestedRow]]:
    """Return the rows of tasks and their parts by table, each task once.

    Hard splits repeat tasks of full ones; the first one counts.
    """
    n_rows = _count_rows(tasks_by_split)
    tasks: dict[str, Task] = {}
    for members in tasks_by_split.values():
        for task in members:
            tasks.setdefault(task.task_id, task)
    task_rows = []
    criteria = []
    turns = []
    task_labels = []
    # By key, because a faulty task may have the same criterion id twice.
    criterion_labels = {}
    for task_id, task in tasks.items():
        task_key = {**key, "task_id": task_id}
        task_rows.append(task_key | _task_row(task, n_rows[task_id]))
        for position, turn in enumerate(task.conversation):
            turns.append({**task_key, "position": position, **asdict(turn)})
        for kind, label in dict.fromkeys(task.labels):
            task_labels.append({**task_key, "kind": kind, "label": label})
        for criterion in task.criteria:
            criterion_row = task_key | asdict(criterion)
            del criterion_row["labels"]
            criteria.append(criterion_row)
            criterion_id = criterion.criterion_id
            for kind, label in criterion.labels:
                criterion_labels[task_id, criterion_id, kind, label] = {
                    **task_key,
                    "criterion_id": criterion_id,
                    "kind": kind,
                    "label": label,
                }
    return {
        "task_rows": task_rows,
        "criteria": criteria,
        "conversation_turns": turns,
        "task_labels": task_labels,
        "criterion_labels": list(criterion_labels.values()),
    }


def _count_rows(tasks_by_split: TasksBySplit) -> Counter[str]:
    """Return the number of rows of each task id.

    It is the larger of two numbers: of its rows in any one split, and of its different contents in
    all splits. So an id in two splits with the same content counts once.
    """
    contents = set()
    for members in tasks_by_split.values():
        contents |= {(task.task_id, task.content_hash) for task in members}
    n_rows = Counter(task_id for task_id, _ in contents)
    for members in tasks_by_split.values():
        n_rows |= Counter(task.task_id for task in members)  # the larger number of each id
    return n_rows


def _member_rows(key: RevisionKey, tasks_by_split: TasksBySplit) -> list[IngestedRow]:
    rows = []
    for split, members in tasks_by_split.items():
        for position, task in enumerate(members):
            rows.append(
                {
                    **key,
                    "split": split,
                    "task_id": task.task_id,
                    "position": position,
                    "canary": task.canary,
                }
            )
    return rows


def _task_row(task: Task, n_rows: int) -> IngestedRow:
    """Return the row of a task: its fields that are columns of `task_rows`, and sums over it."""
    columns = TABLES["task_rows"].columns
    row = {name: getattr(task, name) for name in columns if hasattr(task, name)}
    weights = [criterion.weight or 0.0 for criterion in task.criteria]
    row["n_rows"] = n_rows
    row["n_criteria"] = len(weights)
    row["positive_weight"] = sum(max(weight, 0.0) for weight in weights)
    row["negative_weight"] = sum(min(weight, 0.0) for weight in weights)
    return row


def _reference_rows(benchmark: Benchmark) -> dict[str, list[IngestedRow]]:
    """Return the declarations of the benchmark as rows that SQL can join."""
    name = benchmark.name
    labels = []
    for field, kinds in benchmark.vocabularies.items():
        for kind, vocabulary in kinds.items():
            for label in sorted(vocabulary):
                labels.append({"benchmark": name, "field": field, "kind": kind, "label": label})
    severities = []
    for severity, (low, high) in benchmark.severities.items():
        severities.append(
            {
                "benchmark": name,
                "severity": severity,
                "min_weight": low,
                "max_weight": high,
            }
        )
    return {
        "labels": labels,
        "severities": severities,
        "score_definitions": [{"benchmark": name, **asdict(score)} for score in benchmark.scores],
    }


def _report(warehouse: Warehouse, key: RevisionKey, source: Source) -> StageReport:
    with warehouse.reader() as reader:
        tasks = reader.select("tasks", "splits, n_criteria", **key)
    sizes = []
    for row in tasks:
        if not set(source.splits).isdisjoint(row["splits"] or ()):
            sizes.append(row["n_criteria"])
    size_text = f"{counted(len(sizes), 'task')} with {counted(sum(sizes), 'criterion', 'criteria')}"
    note = f"{size_text} in {', '.join(source.splits)} of revision {source.revision[:12]}"
    return StageReport("ingest", rows=len(sizes), notes=[note])
