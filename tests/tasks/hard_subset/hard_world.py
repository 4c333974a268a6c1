"""A small world to select hard tasks in: scores in tenths, stored as verdicts."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.config.job import Job
from tests.kit import Row, Rows, combined, job_on, row, write_jsonl, written
from tests.tasks.compare.comparisons import judged, tasks_of

N_CRITERIA = 10
Tenths = Mapping[str, Mapping[str, Sequence[int]]]
"""Model -> task -> number of criteria met in each trial, out of ten with weight 1."""
Splits = Mapping[str, Sequence[str]]

TASKS = [f"task-{i:02}" for i in range(12)]
SIZE = 6


def random_tenths() -> Tenths:
    dice = random.Random(5)
    ease = {task: dice.randint(1, 8) for task in TASKS}
    tenths = {}
    for model, n_trials in {"gpt": 2, "kimi": 1, "opus": 2}.items():
        tenths[model] = {}
        for task in TASKS:
            tenths[model][task] = [
                ease[task] + dice.randint(-1, 2) for _ in range(n_trials)
            ]
    return tenths


TENTHS = random_tenths()


def job_with(
    folder: Path,
    tenths: Tenths,
    splits: Splits,
    field: str = "Finance",
    size: int = SIZE,
) -> Job:
    """A job that selects `size` tasks of a field, with these scores in a new warehouse."""
    (folder / "data").mkdir()
    for split in splits:
        write_jsonl(folder / "data" / f"{split}.jsonl", [{"made up": split}])
    job = job_on(
        folder / "data", folder / "warehouse", hard_subset={"share": {field: size}}
    )
    store(job, rows_of(tenths, splits, field))
    return job


def with_rule(job: Job, **changes: Any) -> Job:
    rule = job.settings.hard_subset.model_copy(update=changes)
    settings = job.settings.model_copy(update={"hard_subset": rule})
    return job.model_copy(update={"settings": settings})


def store(job: Job, rows: Mapping[str, list[Row]]):
    """Write rows as rows of the job's own revision, and publish them."""
    written(job.warehouse, rows, job.data.revision).publish()


def rows_of(
    tenths: Tenths, splits: Splits, field: str, vintage: str = "base"
) -> Rows:
    """The tasks of splits, with verdicts that give each response its score."""
    rubrics = {}
    for tasks in splits.values():
        rubrics |= {task: [(1, "Risk")] * N_CRITERIA for task in tasks}
    parts = [tasks_of(rubrics, field=field) | {"split_members": members_of(splits)}]
    for model, scores in tenths.items():
        for trial in (1, 2):
            decisions = {}
            for task, n_met in scores.items():
                if len(n_met) >= trial:
                    decisions[task] = decisions_with(n_met[trial - 1])
            responses = judged(
                decisions,
                model,
                rubrics=rubrics,
                trial=trial,
                of_response={"vintage": vintage},
            )
            parts.append(responses)
    return combined(*parts)


def decisions_with(n_met: int) -> list[float]:
    return [1.0] * n_met + [0.0] * (N_CRITERIA - n_met)


def members_of(splits: Splits) -> list[Row]:
    rows = []
    for split, tasks in splits.items():
        for position, task in enumerate(tasks):
            rows.append(
                row("split_members", split=split, task_id=task, position=position)
            )
    return rows
