"""A sheet for human graders: one row a criterion of a response, to be filled in and imported as verdicts.

Either whole responses, or single verdicts that are drawn with known probabilities, so that what people say of them can
correct a judge's scores (`drawing.py`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sql
from tasks.assemble import complete_conversations
from tasks.config.job import Job
from tasks.exports import drawing
from tasks.exports.sheets import readable, refuse_place, write_sheet
from tasks.imports.verdicts import SHEET_COLUMN
from tasks.rules.errors import UsageError
from tasks.rules.identity import digest
from tasks.rules.statistics.debiased import FEWEST_LABELLED_TASKS, FEWEST_LABELS
from tasks.rules.text.numbers import counted
from tasks.rules.verdict import BINARY, TERNARY, WORDS
from tasks.run.missing_work import Conversation, WantedTasks, wanted_tasks
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

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


@dataclass
class LabellingReport(StageReport):
    """What an export of a drawn sheet says, with its id and the expected widths of the interval that it is for."""

    sheet_id: str = ""
    expected_widths: list[dict[str, Any]] = field(default_factory=list)


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
        chosen = list(_until(n_rows, spread(_usable(job, reader, wanted, file), seed)))
        rows = _rows(reader, wanted, [each["response_id"] for each in chosen])
        n_cut = max(0, len(rows) - n_rows)
        rows = rows[:n_rows]
        conversations = complete_conversations(reader, wanted, {row["task"] for row in rows})
    how = _write(file, wanted, rows, conversations)
    n_tasks, n_models = (len({each[name] for each in chosen}) for name in ("task_id", "model"))
    said = f"{len(rows)} criteria of {len(chosen)} responses ({n_tasks} tasks, {n_models} models) in {file}"
    notes = [said, *([f"the last response lacks {n_cut} of its criteria"] if n_cut else []), f"fill in {how}"]
    return StageReport("export", rows=len(rows), notes=notes)


def export_drawn_labelling(
    job: Job, file: Path, *, drawn_for: str, n_rows: int, seed: int = 0, of_latest: bool = True
) -> LabellingReport:
    """Write a CSV sheet of the verdicts whose labels narrow an interval most, and store how they were drawn.

    Each verdict without a label is drawn with a probability in proportion to what it adds to the chosen score and to
    the error that is expected of the judge there. The same verdicts, number and seed draw the same sheet.

    Args:
        job: its wanted tasks, models, trials and vintage are what the sheet is drawn from.
        file: a new file that ends in .csv.
        drawn_for: `leaderboard`, two models with a space between them, or a category.
        n_rows: number of verdicts; all if there are fewer.
        seed: another one draws another sheet.
        of_latest: draw each model's latest vintage, which leaderboards show, instead of the job's; two models are
            compared in the job's in any case.

    Raises:
        UsageError: the file is there already, nothing has the name, or there is nothing to label.
        PipelineError: the file cannot be written.
    """
    refuse_place(file)
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        wanted = wanted_tasks(job, reader)
        usable = _usable(job, reader, wanted, file, is_any_vintage=of_latest)
        purpose = drawing.purpose_of(drawn_for, reader, wanted, sorted({each["model"] for each in usable}))
        if purpose.is_difference and of_latest:
            of_latest, usable = False, _usable(job, reader, wanted, file)
        ids = [each["response_id"] for each in usable if each["model"] in purpose.models]
        population = drawing.population_of(job, reader, wanted, purpose, ids, of_latest=of_latest)
        drawn = drawing.draw(population, wanted, purpose, n_rows, seed)
        sheet, draws = drawing.sheet_rows(job, wanted, purpose, population, drawn, seed)
        widths = drawing.expected_widths(reader, wanted, purpose, population, len(drawn.places))
        taken = [population.rows[place] for place in drawn.places]
        chosen = {(row["response_id"], row["criterion_id"]) for row in taken}
        of_responses = _rows(reader, wanted, sorted({response_id for response_id, _ in chosen}))
        rows = [row for row in of_responses if (row["response_id"], row["criterion"]) in chosen]
        conversations = complete_conversations(reader, wanted, {row["task"] for row in rows})
        is_stored = bool(reader.rows("select 1 from label_sheets where sheet_id = ?", [drawn.sheet_id]))
    if not is_stored:
        warehouse.write("label_sheets", [sheet])
        warehouse.write("label_draws", draws)
        warehouse.publish()
    how = _write(file, wanted, rows, conversations)
    notes = [f"{sheet['design']}, in {file}", f"fill in {how}", _said(widths, population, len(drawn.places))]
    return LabellingReport(
        "export", rows=len(rows), notes=notes, sheet_id=drawn.sheet_id,
        expected_widths=[each._asdict() for each in widths],
    )  # fmt: skip


def _said(widths: Sequence[drawing.Width], population: drawing.Population, n_rows: int) -> str:
    """Return in a line how many labels are needed, and how wide the interval is expected to become."""
    now, then = widths[0].width, next(each for each in widths if each.n_labels == n_rows)
    if now is not None:
        return f"the interval is {now:.3f} wide now, and with {n_rows} more labels about {then.width:.3f}"
    if population.n_tasks < FEWEST_LABELLED_TASKS:
        return (
            f"only {counted(population.n_tasks, 'task')} of a model can be labelled, so there will be no figure: it "
            f"needs {FEWEST_LABELLED_TASKS}"
        )
    n_models = len(set(population.models.tolist()))
    models = f"{n_models} models need" if n_models > 1 else "1 model needs"
    return (
        f"each model needs {FEWEST_LABELS} labels in {FEWEST_LABELLED_TASKS} tasks; {models} about "
        f"{drawing.n_needed(population)}; with {n_rows}{'' if then.is_enough else ' (too few)'} the interval is about "
        f"{then.width:.2f} wide"
    )


def _usable(
    job: Job, reader: Reader, wanted: WantedTasks, file: Path, *, is_any_vintage: bool = False
) -> list[dict[str, Any]]:
    """The responses that a person can be asked about."""
    usable = reader.rows(sql.read("queries/exports/labelling_responses"), {
        "benchmark": wanted.benchmark.name, "revision": wanted.dataset_revision, "is_any_vintage": is_any_vintage,
        "vintage": job.vintage, "night": job.night, "task_ids": list(wanted.task_ids),
        "nightly_models": [each.label for each in job.settings.models if job.vintage_of(each) != job.vintage],
        "models": None if job.named_models is None else list(job.named_models),
        "trials": None if job.named_trials is None else list(job.named_trials),
    })  # fmt: skip
    if not usable:
        vintages = " or ".join(job.vintages)
        raise UsageError(
            f"{file}: no usable response of vintage {vintages}; see `prbench status`, "
            "or choose another one with --vintage or --night"
        )
    return usable


def _rows(reader: Reader, wanted: WantedTasks, response_ids: Sequence[str]) -> list[dict[str, Any]]:
    """The criteria of some responses, in the order of these."""
    places = {response_id: place for place, response_id in enumerate(response_ids)}
    given = {"benchmark": wanted.benchmark.name, "revision": wanted.dataset_revision, "response_ids": [*response_ids]}
    rows = reader.rows(sql.read("queries/exports/labelling_rows"), given)
    return sorted(rows, key=lambda row: places[row["response_id"]])


def _write(
    file: Path, wanted: WantedTasks, rows: Sequence[Mapping[str, Any]], conversations: Mapping[str, Conversation]
) -> str:
    """Write the sheet, and return what is to be filled in."""
    texts = readable(conversations)
    grading = wanted.benchmark.grading
    columns = [_DECISION[grading] if name == _DECISION[BINARY] else name for name in COLUMNS]
    how = f"judge: your name; {_DECISION[grading]}: {_ENTERED[grading]}; explanation: if you like"
    cells = [
        {**row, SHEET_COLUMN: how, **dict.fromkeys(_FILLED_IN, ""), "conversation": texts[row["task"]]} for row in rows
    ]
    write_sheet(file, columns, cells)
    return how


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
