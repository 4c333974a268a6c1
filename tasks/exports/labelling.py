"""A sheet for human graders: one row a criterion of a response, to be filled in and imported as verdicts."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import sql
from tasks.config import Job
from tasks.exports.sheets import readable, refuse_place, write_sheet
from tasks.imports import SHEET_COLUMN
from tasks.rules.errors import UsageError
from tasks.rules.identity import digest
from tasks.rules.verdict import BINARY, TERNARY, WORDS
from tasks.run import StageReport, WantedTasks, conversations_of, wanted_tasks
from warehouse import Warehouse

COLUMNS = (
    "task", "model", "trial", "vintage", "criterion", "judge", "criteria_met", "explanation", SHEET_COLUMN,
    "title", "response", "conversation", "field", "topic",
)  # fmt: skip
"""What identifies a row, what a grader fills in (judge, criteria_met, explanation) and how, and what is to be read.

Where three steps are asked for, the decision is in words and its column `verdict`.
"""
_DECISION = {BINARY: "criteria_met", TERNARY: "verdict"}
_ENTERED = {BINARY: "yes or no", TERNARY: ", ".join(WORDS)}
_FILLED_IN = ("judge", *_DECISION.values(), "explanation")


def export_labelling(job: Job, file: Path, *, n_rows: int, seed: int = 0) -> StageReport:
    """Write a CSV sheet of `n_rows` rows, if there are as many: sampled responses with their criteria.

    All but the last response have all their criteria. Each model's responses are of the vintage that the job is about.
    The sample is spread evenly over tasks and models, and is the same for the same responses and seed.

    Raises:
        UsageError: the file is there already, has another ending than .csv, or there is no response to grade.
    """
    refuse_place(file)
    with Warehouse(job.warehouse).reader() as reader:
        wanted = wanted_tasks(job, reader)
        key = {"benchmark": wanted.benchmark.name, "revision": wanted.dataset_revision}
        candidates = reader.rows(sql.read("questions/exports/labelling_responses"), key | _wanted(job, wanted))
        chosen = list(_until(n_rows, spread(candidates, seed)))
        if not chosen:
            vintages = " or ".join(job.vintages)
            raise UsageError(
                f"{file}: no usable response of vintage {vintages}; see `prbench status`, "
                "or choose another one with --vintage or --night"
            )
        ids = [each["response_id"] for each in chosen]
        rows = reader.rows(sql.read("questions/exports/labelling_rows"), key | {"response_ids": ids})
        rows = sorted(rows, key=lambda row: ids.index(row["response_id"]))
        n_cut = max(0, len(rows) - n_rows)
        rows = rows[:n_rows]
        conversations = conversations_of(reader, wanted, {row["task"] for row in rows})
    texts = readable(conversations)
    grading = wanted.benchmark.grading
    columns = [_DECISION[grading] if name == _DECISION[BINARY] else name for name in COLUMNS]
    how = f"judge: your name; {_DECISION[grading]}: {_ENTERED[grading]}; explanation: if you like"
    cells = [
        {**row, SHEET_COLUMN: how, **dict.fromkeys(_FILLED_IN, ""), "conversation": texts.get(row["task"], "")}
        for row in rows
    ]
    write_sheet(file, columns, cells)
    n_tasks, n_models = (len({each[name] for each in chosen}) for name in ("task_id", "model"))
    said = f"{len(rows)} criteria of {len(ids)} responses ({n_tasks} tasks, {n_models} models) in {file}"
    notes = [said, *([f"the last response lacks {n_cut} of its criteria"] if n_cut else []), f"fill in {how}"]
    return StageReport("export", rows=len(rows), notes=notes)


def _wanted(job: Job, wanted: WantedTasks) -> dict[str, Any]:
    return {
        "vintage": job.vintage,
        "night": job.night,
        "nightly_models": [each.label for each in job.settings.models if job.vintage_of(each) != job.vintage],
        "task_ids": list(wanted.task_ids),
        "models": None if job.named_models is None else list(job.named_models),
        "trials": None if job.named_trials is None else list(job.named_trials),
    }


def spread(candidates: Iterable[Mapping[str, Any]], seed: int) -> Iterator[Mapping[str, Any]]:
    """All candidates in an order that takes every task once before one twice, and models as evenly as that allows.

    Among equals a hash of seed and response decides.
    """
    order = {each["response_id"]: digest("labelling", seed, each["response_id"]) for each in candidates}
    of_task: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for each in candidates:
        of_task[each["task_id"]].append(each)
    tasks = sorted(of_task, key=lambda task_id: digest("labelling", seed, task_id))
    taken: Counter[str] = Counter()
    while tasks:
        for task_id in tasks:
            best = min(of_task[task_id], key=lambda each: (taken[each["model"]], order[each["response_id"]]))
            of_task[task_id].remove(best)
            taken[best["model"]] += 1
            yield best
        tasks = [task_id for task_id in tasks if of_task[task_id]]


def _until(n_rows: int, responses: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Responses until their criteria make as many rows."""
    for each in responses:
        if n_rows <= 0:
            return
        n_rows -= each["n_criteria"]
        yield each
