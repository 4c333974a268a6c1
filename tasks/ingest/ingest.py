"""Ingest: a data set's rows become tasks, criteria and split members of one revision."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import sql
from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark, RowError
from tasks.config.job import Job
from tasks.dataset import Source, SourceError, source_of
from tasks.rules.records import Task
from tasks.rules.text.characters import one_line
from tasks.rules.text.numbers import counted
from tasks.run.writing import StageReport
from warehouse import Warehouse

Rows = list[dict[str, Any]]


def ingest(job: Job) -> StageReport:
    """Bring the configured data set into the warehouse; the same revision again changes nothing.

    Raises:
        PipelineError: the data set cannot be had or lacks a column; nothing of it is stored then.
    """
    benchmark, source = load_benchmark(job.settings.benchmark), source_of(job)
    if source.revision != job.data.revision:
        raise SourceError(f"{source.name}: changed after this command had started; run it again")
    warehouse = Warehouse(job.warehouse)
    if not source.files and _is_stored(warehouse, benchmark.name, source):
        return _stored(warehouse, benchmark.name, source)
    by_split = {split: _parse(benchmark, source, split) for split in source.splits}
    key = {"benchmark": benchmark.name, "dataset_revision": source.revision}
    tasks = _one_each(by_split)
    for name, rows in _reference_rows(benchmark).items():
        warehouse.write(name, rows)
    warehouse.write("task_rows", [_task_row(key, task, n_rows) for task, n_rows in tasks])
    warehouse.write("criteria", [row for task, _ in tasks for row in _criterion_rows(key, task)])
    warehouse.write("conversation_turns", [row for task, _ in tasks for row in _turn_rows(key, task)])
    warehouse.write("task_labels", [row for task, _ in tasks for row in _label_rows(key, task)])
    warehouse.write("criterion_labels", [row for task, _ in tasks for row in _criterion_label_rows(key, task)])
    # Last, since a split that has members counts as stored.
    warehouse.write("split_members", _member_rows(key, by_split))
    warehouse.publish()
    return _stored(warehouse, benchmark.name, source)


def _where_prompts_are(source: Source) -> str:
    if source.prompts is not None:
        return f"no id in {source.prompts} is that of a row"
    return "prompts in a file of their own, with lines `id<TAB>prompt`, are named by `dataset.prompts`"


def _parse(benchmark: Benchmark, source: Source, split: str) -> list[Task]:
    rows = source.rows(split)
    where = str(source.files.get(split, f"{source.name}@{source.revision[:12]}, split {split}"))
    if not rows:
        raise SourceError(f"{where}: there is no row")
    missing = benchmark.missing_columns({column for row in rows for column in row})
    if missing:
        some = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        advice = f"; {_where_prompts_are(source)}" if "prompt" in missing and source.files else ""
        raise SourceError(
            f"{where}: lacks the column {some}; {benchmark.name} rows have {len(benchmark.columns)}{advice}"
        )
    tasks = []
    for number, row in enumerate(rows, start=1):
        try:
            tasks.append(benchmark.parse_row(row))
        except RowError as error:
            raise SourceError(f"{where}: row {number}: {error}; correct or remove the row") from error
        except Exception as error:
            what = one_line(f"{type(error).__name__}: {error}")
            raise SourceError(f"{where}: row {number}: {benchmark.name}.parse_row cannot read it ({what})") from error
    return tasks


def _one_each(by_split: dict[str, list[Task]]) -> list[tuple[Task, int]]:
    """Every task once, in order of appearance, with how often its id stands in a split (or how many contents it has).

    The hard splits repeat tasks of the full ones, so an id in two splits is right when the content is the same.
    """
    first: dict[str, Task] = {}
    contents: dict[str, set[str]] = defaultdict(set)
    most: dict[str, int] = defaultdict(int)
    for tasks in by_split.values():
        counts: dict[str, int] = defaultdict(int)
        for task in tasks:
            first.setdefault(task.task_id, task)
            contents[task.task_id].add(task.content_hash)
            counts[task.task_id] += 1
            most[task.task_id] = max(most[task.task_id], counts[task.task_id])
    return [(task, max(most[task_id], len(contents[task_id]))) for task_id, task in first.items()]


def _task_row(key: dict[str, str], task: Task, n_rows: int) -> dict[str, Any]:
    weights = [criterion.weight for criterion in task.criteria if criterion.weight is not None]
    return key | {
        "task_id": task.task_id,
        "field": task.field,
        "topic": task.topic,
        "expert": task.expert,
        "turns": task.turns,
        "turn_pattern": task.turn_pattern,
        "decision_types": list(task.decision_types),
        "economic_pathways": list(task.economic_pathways),
        "n_criteria": len(task.criteria),
        "positive_weight": float(sum(w for w in weights if w > 0)),
        "negative_weight": float(sum(w for w in weights if w < 0)),
        "has_reference_texts": task.has_reference_texts,
        "n_rows": n_rows,
        "conversation_id": task.conversation_id,
        "content_hash": task.content_hash,
    }


def _criterion_rows(key: dict[str, str], task: Task) -> Rows:
    names = ("criterion_id", "position", "title", "category", "weight", "weight_text", "severity", "content_hash")
    return [
        key | {"task_id": task.task_id} | {name: getattr(criterion, name) for name in names}
        for criterion in task.criteria
    ]


def _turn_rows(key: dict[str, str], task: Task) -> Rows:
    return [
        key | {
            "task_id": task.task_id, "position": position, "prompt": turn.prompt,
            "reference_texts": list(turn.reference_texts), "response": turn.response,
        }
        for position, turn in enumerate(task.conversation)
    ]  # fmt: skip


def _label_rows(key: dict[str, str], task: Task) -> Rows:
    return [key | {"task_id": task.task_id, "kind": kind, "label": label} for kind, label in dict.fromkeys(task.labels)]


def _criterion_label_rows(key: dict[str, str], task: Task) -> Rows:
    labels = [(c.criterion_id, kind, label) for c in task.criteria for kind, label in c.labels]
    return [
        key | {"task_id": task.task_id, "criterion_id": criterion_id, "kind": kind, "label": label}
        for criterion_id, kind, label in dict.fromkeys(labels)
    ]


def _member_rows(key: dict[str, str], by_split: dict[str, list[Task]]) -> Rows:
    return [
        key | {"split": split, "task_id": task.task_id, "position": position, "canary": task.canary}
        for split, tasks in by_split.items()
        for position, task in enumerate(tasks)
    ]


def _reference_rows(benchmark: Benchmark) -> dict[str, Rows]:
    """What the benchmark declares, as rows that SQL can join: labels, severities, scores."""
    scores: Sequence[str] = (
        "score_name", "numerator_negative", "denominator_positive", "denominator_negative", "clips_mean", "is_primary"
    )  # fmt: skip
    return {
        "labels": [
            {"benchmark": benchmark.name, "field": field, "kind": kind, "label": label}
            for field, kinds in benchmark.vocabularies.items()
            for kind, labels in kinds.items()
            for label in sorted(labels)
        ],
        "severities": [
            {"benchmark": benchmark.name, "severity": severity, "min_weight": low, "max_weight": high}
            for severity, (low, high) in benchmark.severities.items()
        ],
        "score_definitions": [
            {"benchmark": benchmark.name} | {name: getattr(score, name) for name in scores}
            for score in benchmark.scores
        ],
    }


def _is_stored(warehouse: Warehouse, benchmark: str, source: Source) -> bool:
    if not warehouse.database.exists():
        return False
    with warehouse.reader() as reader:
        stored = reader.rows(
            "select distinct split from split_members where benchmark = ? and dataset_revision = ?",
            [benchmark, source.revision],
        )
    return {row["split"] for row in stored} >= set(source.splits)


def _stored(warehouse: Warehouse, benchmark: str, source: Source) -> StageReport:
    with warehouse.reader() as reader:
        parameters = {"benchmark": benchmark, "revision": source.revision, "splits": list(source.splits)}
        row = reader.rows(sql.read("questions/ingest/size_of_splits"), parameters)[0]
    where = f"{', '.join(source.splits)} of revision {source.revision[:12]}"
    note = (
        f"{counted(row['n_tasks'], 'task')} with {counted(int(row['n_criteria']), 'criterion', 'criteria')} in {where}"
    )
    return StageReport("ingest", rows=row["n_tasks"], notes=[note])
