"""Sheets as spreadsheet programs read and save them, a small world with every outcome, and its logs
as documents.
"""

import csv
import json
from itertools import product
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tasks.aggregate import aggregate
from tasks.config.job import Job
from tests.kit import admitted, at, criterion, job_on, response, row, verdict, write_jsonl, written

csv.field_size_limit(2**31 - 1)


def sheet_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a sheet."""
    with path.open(encoding="utf-8-sig", newline="") as lines:
        return list(csv.DictReader(lines))


def save_sheet(path: Path, rows: list[dict[str, str]]) -> Path:
    """Write rows as a spreadsheet program would save them."""
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


TASKS = [f"t{number}" for number in range(8)]
HARD = TASKS[:3]
WEIGHTS = (10.0, 5.0, -5.0)
CANARY = "a canary that must not leave"
JUDGES = ("strict", "mild")
CALL = {
    "prompt_tokens": 100,
    "cached_tokens": 40,
    "completion_tokens": 20,
    "cost_usd": 0.001,
}


def values_of(model: str, judge: str, task: int, trial: int) -> tuple[float | None, ...]:
    """Return a judge's decisions on the three criteria."""
    if model == "good" and task == 2 and trial == 1 and judge == "strict":
        return (1.0, None, 0.0)
    base = task + trial + (3 if judge == "mild" else 0) + (0 if model == "good" else 1)
    return (float(base % 2), float(base % 3 > 0), float(base % 5 == 0))


def rows_of_world() -> dict[str, list[dict[str, Any]]]:
    """Two models in two trials under two judges; `t7` times out, and not all judges judged `t6`."""
    rows = dict(admitted(TASKS, topic="A topic", expert="Expert"))
    rows["split_members"] += [
        row(
            "split_members",
            split="finance_hard",
            task_id=task,
            position=0,
        )
        for task in HARD
    ]
    for member in rows["split_members"]:
        member["canary"] = CANARY
    rows["criteria"] = [
        criterion(task, position, weight)
        for task in TASKS
        for position, weight in enumerate(WEIGHTS)
    ]
    rows["message_rows"] = [
        row(
            "message_rows",
            task_id=task,
            position=position,
            role=role,
            content=f"{role} says {position} about {task}",
        )
        for task in TASKS
        for position, role in enumerate(("user", "assistant", "user"))
    ]
    rows["responses"] = []
    rows["verdicts"] = []
    for model, (number, task), trial in product(("good", "poor"), enumerate(TASKS), (1, 2)):
        fails = number == 7 and model == "poor"
        sampled = response(
            task,
            model,
            trial,
            "timeout" if fails else "ok",
            **({} if fails else CALL),
            served_model=f"{model}-2026",
            error="no reply in 60 s" if fails else None,
            latency_s=1.5,
        )
        sampled["created_at"] = at(60 * number + trial)
        rows["responses"].append(sampled)
        for judge in () if fails else JUDGES[:1] if number == 6 else JUDGES:
            judged_by = {"judge": judge, "created_at": at(3600 + number)}
            criteria = [each for each in rows["criteria"] if each["task_id"] == task]
            rows["verdicts"] += [
                verdict(
                    sampled,
                    item,
                    value,
                    **judged_by,
                    explanation=f"because of {value} | <b>it</b>",
                    **(CALL if value is not None else {"cost_usd": None}),
                )
                for item, value in zip(
                    criteria, values_of(model, judge, number, trial), strict=True
                )
            ]
    return rows


@pytest.fixture(scope="session")
def inspected(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """The job on the world, aggregated, for tests that change nothing."""
    folder = tmp_path_factory.mktemp("world")
    source = folder / "source"
    source.mkdir()
    for split in ("finance", "finance_hard"):
        write_jsonl(source / f"{split}.jsonl", [{}])
    job = job_on(source, folder / "data")
    written(job.warehouse, rows_of_world(), job.data.revision)
    aggregate(job)
    return job


def documents_of(log: Path) -> dict[str, Any]:
    """Every member of a log by its name."""
    with ZipFile(log) as opened:
        assert opened.testzip() is None
        return {name: json.loads(opened.read(name)) for name in opened.namelist()}
