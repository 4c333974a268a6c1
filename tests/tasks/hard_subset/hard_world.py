"""A small world to select hard tasks in: scores in tenths, stored as verdicts."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.config.job import Job
from tests.kit import Rows, combined, job_on, row, write_jsonl, written
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
    n_trials = {
        "gpt": 2,
        "kimi": 1,
        "opus": 2,
    }
    return {
        model: {task: [ease[task] + dice.randint(-1, 2) for _ in range(n)] for task in TASKS}
        for model, n in n_trials.items()
    }


TENTHS = random_tenths()


def job_with(
    folder: Path, tenths: Tenths, splits: Splits, field: str = "Finance", size: int = SIZE
) -> Job:
    """A job that selects `size` tasks of a field, with these scores in a new warehouse."""
    (folder / "data").mkdir()
    for split in splits:
        write_jsonl(folder / "data" / f"{split}.jsonl", [{"made up": split}])
    job = job_on(folder / "data", folder / "warehouse", hard_subset={"share": {field: size}})
    store(job, rows_of(tenths, splits, field))
    return job


def with_rule(job: Job, **changes: Any) -> Job:
    rule = job.settings.hard_subset.model_copy(update=changes)
    return job.model_copy(
        update={"settings": job.settings.model_copy(update={"hard_subset": rule})}
    )


def store(job: Job, rows: Mapping[str, list[dict[str, Any]]]) -> None:
    """Write rows as rows of the job's own revision, and publish them."""
    written(job.warehouse, rows, job.data.revision).publish()


def rows_of(tenths: Tenths, splits: Splits, field: str, vintage: str = "base") -> Rows:
    rubrics = {
        task: [(1, "Risk")] * N_CRITERIA
        for task in sorted({task for of in splits.values() for task in of})
    }
    decided = [
        judged(
            {
                task: [float(i < of[trial]) for i in range(N_CRITERIA)]
                for task, of in scores.items()
                if of[trial:]
            },
            model,
            rubrics=rubrics,
            trial=trial + 1,
            of_response={"vintage": vintage},
        )
        for model, scores in tenths.items()
        for trial in range(2)
    ]
    return combined(
        tasks_of(rubrics, field=field) | {"split_members": members_of(splits)}, *decided
    )


def members_of(splits: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    return [
        row(
            "split_members",
            split=split,
            task_id=task,
            position=i,
        )
        for split, members in splits.items()
        for i, task in enumerate(members)
    ]
