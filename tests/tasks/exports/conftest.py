"""Sheets as spreadsheet programs read and save them, a small world with every outcome, and its logs
as documents.
"""

import csv
import json
import random
from collections.abc import Iterator, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tasks.aggregate import aggregate
from tasks.config.job import Job
from tasks.measures import MEASURES
from tests.kit import (
    Row,
    Rows,
    admitted,
    at,
    criterion,
    few_published,
    job_on,
    response,
    row,
    verdict,
    write_jsonl,
    written,
)

csv.field_size_limit(2**31 - 1)
DEBIASED = [measure for measure in MEASURES if measure.name == "debiased"]


@pytest.fixture(scope="module")
def only_debiased() -> Iterator[None]:
    """Publish no other scores than debiased ones, in modules that read no others."""
    with few_published(
        "debiased_scores", "debiased_differences", "intermediate.debiased_values"
    ):
        yield


def sheet_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a sheet."""
    with path.open(encoding="utf-8-sig", newline="") as lines:
        return list(csv.DictReader(lines))


def formulas_in(rows: list[dict[str, str]]) -> list[str]:
    """Return the cells of a sheet that a spreadsheet program would run, or strip."""
    cells = chain.from_iterable(row.values() for row in rows)
    return [
        cell
        for cell in cells
        if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    ]


def save_sheet(path: Path, rows: list[dict[str, str]]) -> Path:
    """Write rows as a spreadsheet program would save them."""
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def truth(row: Row) -> bool:
    """Return people's decision on a row of a sheet."""
    dice = random.Random(f"{row['task']} {row['model']} {row['criterion']}")
    return dice.random() < (0.7 if row["model"] == "ada" else 0.5)


def filled(rows: list[Row], person: str = "eva") -> list[Row]:
    """Return rows with a person's decisions."""
    return [
        row | {"judge": person, "criteria_met": "yes" if truth(row) else "no"}
        for row in rows
    ]


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


def values_of(
    model: str,
    judge: str,
    task: int,
    trial: int,
) -> tuple[float | None, ...]:
    """Return a judge's decisions on the three criteria."""
    if model == "good" and task == 2 and trial == 1 and judge == "strict":
        return (1.0, None, 0.0)
    base = (
        task + trial + (3 if judge == "mild" else 0) + (0 if model == "good" else 1)
    )
    return (
        float(base % 2),
        float(base % 3 > 0),
        float(base % 5 == 0),
    )


def rows_of_world() -> Rows:
    """Two models in two trials under two judges; `t7` times out, and not all judges judged `t6`."""
    rows = dict(admitted(TASKS, topic="A topic", expert="Expert"))
    for task in HARD:
        member = row(
            "split_members",
            split="finance_hard",
            task_id=task,
            position=0,
        )
        rows["split_members"].append(member)
    for member in rows["split_members"]:
        member["canary"] = CANARY
    for table in ("criteria", "message_rows", "responses", "verdicts"):
        rows[table] = []
    for number, task in enumerate(TASKS):
        criteria = [
            criterion(task, position, weight)
            for position, weight in enumerate(WEIGHTS)
        ]
        rows["criteria"] += criteria
        rows["message_rows"] += messages_of(task)
        for model, trial in product(("good", "poor"), (1, 2)):
            sampled = response_of(number, model, trial)
            rows["responses"].append(sampled)
            if sampled["status"] == "ok":
                for judge in JUDGES[:1] if number == 6 else JUDGES:
                    values = values_of(model, judge, number, trial)
                    rows["verdicts"] += verdicts_on(sampled, criteria, values, judge)
    return rows


def messages_of(task: str) -> list[Row]:
    """Return the conversation of a task."""
    return [
        row(
            "message_rows",
            task_id=task,
            position=position,
            role=role,
            content=f"{role} says {position} about {task}",
        )
        for position, role in enumerate(("user", "assistant", "user"))
    ]


def response_of(number: int, model: str, trial: int) -> Row:
    """Return a response to a task, or its failure."""
    outcome = {"status": "ok", **CALL}
    if number == 7 and model == "poor":
        outcome = {"status": "timeout", "error": "no reply in 60 s"}
    sampled = response(
        TASKS[number],
        model,
        trial,
        **outcome,
        served_model=f"{model}-2026",
        latency_s=1.5,
    )
    return sampled | {"created_at": at(60 * number + trial)}


def verdicts_on(
    sampled: Row,
    criteria: Sequence[Row],
    values: Sequence[float | None],
    judge: str,
) -> list[Row]:
    """Return a judge's verdicts on a response; an undecided one has no known cost."""
    return [
        verdict(
            sampled,
            item,
            value,
            judge=judge,
            created_at=at(3600 + TASKS.index(sampled["task_id"])),
            explanation=f"because of {value} | <b>it</b>",
            **({"cost_usd": None} if value is None else CALL),
        )
        for item, value in zip(criteria, values, strict=True)
    ]


@pytest.fixture(scope="session")
def outcomes_job(tmp_path_factory) -> Job:
    """The job on the world, aggregated, for tests that change nothing."""
    folder = tmp_path_factory.mktemp("world")
    source = folder / "source"
    source.mkdir()
    for split in ("finance", "finance_hard"):
        write_jsonl(source / f"{split}.jsonl", [{}])
    job = job_on(source, folder / "data")
    written(
        job.warehouse,
        rows_of_world(),
        job.data.revision,
    )
    aggregate(job)
    return job


def documents_of(log: Path) -> dict[str, Any]:
    """Every member of a log by its name."""
    with ZipFile(log) as opened:
        assert opened.testzip() is None
        return {name: json.loads(opened.read(name)) for name in opened.namelist()}
