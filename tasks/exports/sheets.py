"""Sheets for people to fill in: CSV files with one row for each criterion.

A sheet for human graders is imported as verdicts. It has either whole responses, or single verdicts
sampled with known probabilities, so that people's labels can correct a judge's scores
(`label_sampling.py`).

A sheet for experts is imported as reviews. It follows the paper's validation (arXiv 2511.11562,
appendix E): experts who did not write the task agree or disagree that a criterion is
well-constructed, accurate and relevant. Criteria are sampled with known probabilities, which are
stored (`review_samples`), so that the share of agreement can be estimated for all.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from tasks.assemble import complete_conversations
from tasks.config.job import Job
from tasks.exports import label_forecast, label_sampling
from tasks.exports.label_sampling import Population
from tasks.figures.csv_rows import as_csv
from tasks.imports.verdicts import SHEET_COLUMN
from tasks.rules.errors import UsageError, disk_errors
from tasks.rules.identity import digest
from tasks.rules.statistics.sampling import SampledUnit, stratified_sample
from tasks.rules.text.numbers import counted
from tasks.rules.verdict import BINARY, TERNARY, WORDS
from tasks.run.missing_work import Conversation, WantedTasks, wanted_tasks
from tasks.run.writing import StageReport
from warehouse import Reader, Row, Warehouse, write_atomically

SUFFIX = ".csv"
_CELL_CHARS = 32_000
"""Largest number of characters in a cell. Spreadsheets allow slightly more, and move the rest of a
longer text into other rows.
"""


def refuse_target(file: Path) -> None:
    """Refuse a path that cannot be a sheet, or where a sheet exists, which may be filled in.

    Raises:
        UsageError: the path has another suffix, or exists.
    """
    if file.suffix != SUFFIX:
        raise UsageError(f"{file}: the sheet must end in {SUFFIX}")
    if file.exists():
        raise UsageError(f"{file}: already exists and may be filled in; choose another name")


def readable(conversation: Conversation) -> str:
    """Return a conversation as a text that fits into a cell, without the middle if too long."""
    text = "\n\n".join(f"{role}: {content}" for role, content in conversation.messages)
    if len(text) <= _CELL_CHARS:
        return text
    half = _CELL_CHARS // 2 - 50  # leaves room for the words in the gap
    gap = f"[... {len(text) - 2 * half} characters left out ...]"
    return f"{text[:half]}\n\n{gap}\n\n{text[-half:]}"


def write_sheet(
    reader: Reader,
    selection: WantedTasks,
    file: Path,
    columns: Sequence[str],
    instructions: str,
    rows: Sequence[Row],
) -> None:
    """Write rows as CSV, each with its conversation, instructions, and empty cells for people.

    Raises:
        PipelineError: the file cannot be written.
    """
    conversations = complete_conversations(reader, selection, {row["task"] for row in rows})
    texts = {task_id: readable(conversation) for task_id, conversation in conversations.items()}
    lines = []
    for row in rows:
        values = {**row, SHEET_COLUMN: instructions, "conversation": texts[row["task"]]}
        lines.append({column: values.get(column) for column in columns})
    # All cells are quoted, because some spreadsheets separate cells by semicolons; without a byte
    # order mark they assume another encoding.
    content = as_csv(columns, lines, must_quote=True).encode("utf-8-sig")
    with disk_errors(file):
        write_atomically(file, content)


LABELLING_COLUMNS = (
    "task",
    "model",
    "trial",
    "vintage",
    "criterion",
    "judge",
    "criteria_met",
    "explanation",
    SHEET_COLUMN,
    "title",
    "response",
    "conversation",
    "field",
    "topic",
)
"""The columns that identify a row, those that a grader fills in (judge, criteria_met, explanation),
and those to read.

For ternary grading, the decision is in words, in the column `verdict`.
"""
_DECISION_CELLS = {BINARY: ("criteria_met", "yes or no"), TERNARY: ("verdict", ", ".join(WORDS))}
"""Grading -> the column for a decision, and what to enter there."""


@dataclass
class LabellingReport(StageReport):
    """The report of an export of a sampled sheet.

    Attributes:
        sheet_id: the id of the sheet.
        figures: the figures to expect once the sheet is filled in, or why there will be none.
        expected_widths: the expected width of the interval for several numbers of labels.
    """

    sheet_id: str = ""
    figures: list[Row] = field(default_factory=list)
    expected_widths: list[Row] = field(default_factory=list)


def export_labelling(job: Job, file: Path, *, n_rows: int, seed: int = 0) -> StageReport:
    """Write a CSV sheet of sampled responses with their criteria: at most `n_rows` rows.

    All sampled responses but the last have all their criteria. Responses are of the job's vintage.
    The sample is spread evenly over tasks and models, and is the same for the same responses and
    seed.

    Raises:
        UsageError: the file exists already or does not end in .csv, or there is no response to
            grade.
    """
    refuse_target(file)
    with Warehouse(job.warehouse).reader() as reader:
        selection = wanted_tasks(job, reader)
        responses = spread(_usable_responses(job, reader, selection, file), seed)
        response_ids = [response["response_id"] for response in islice(responses, n_rows)]
        rows = _criteria_of(reader, selection, response_ids)[:n_rows]
        instructions = _write_labelling(reader, selection, file, rows)
    summary = (
        f"{counted(len(rows), 'criterion', 'criteria')} of {_counted_distinct(rows, 'response_id')}"
        f" ({_counted_distinct(rows, 'task')}, {_counted_distinct(rows, 'model')}) in {file}"
    )
    return StageReport("export", rows=len(rows), notes=[summary, f"fill in {instructions}"])


def _counted_distinct(rows: Sequence[Row], column: str) -> str:
    """Return how many different values a column has, such as `2 tasks`."""
    return counted(len({row[column] for row in rows}), column.removesuffix("_id"))


def export_sampled_labelling(
    job: Job,
    file: Path,
    *,
    sampled_for: str,
    n_rows: int,
    seed: int = 0,
    is_latest: bool = True,
) -> LabellingReport:
    """Write a CSV sheet of the verdicts whose labels narrow an interval most; store the sample.

    The probability of each verdict without a label is in proportion to its contribution to the
    chosen score and to the expected error of the judge. The same verdicts, number and seed give the
    same sheet.

    Args:
        job: gives the tasks, models, trials and vintage to sample from.
        file: a new file that ends in .csv.
        sampled_for: `leaderboard`, two models with a space between them, or a category.
        n_rows: number of verdicts; all if there are fewer.
        seed: each seed gives another sheet.
        is_latest: sample from each model's current vintages, which leaderboards show, instead of
            the job's vintage; for two models, the job's vintage is always used.

    Raises:
        UsageError: the file exists already, `sampled_for` names nothing, or there is nothing to
            label.
        PipelineError: the file cannot be written.
    """
    refuse_target(file)
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        selection = wanted_tasks(job, reader)
        population = _population(job, reader, selection, file, sampled_for, is_latest=is_latest)
        sheet, draws = label_sampling.sampled_sheet(job, population, n_rows, seed)
        n_drawn = sheet["n_drawn"]
        widths = label_forecast.expected_widths(reader, population, n_drawn, seed)
        outlooks = label_forecast.outlooks(population, n_drawn, seed)
        forecast = label_forecast.outlook_notes(population, outlooks, seed)
        rows = _criteria_to_label(reader, selection, draws)
        if not reader.select("label_sheets", "1", sheet_id=sheet["sheet_id"]):
            warehouse.write("label_sheets", [sheet])
            warehouse.write("label_draws", draws)
            warehouse.publish()
        instructions = _write_labelling(reader, selection, file, rows)
    notes = [
        f"{sheet['design']}, in {file}",
        f"fill in {instructions}",
        _width_note(widths, n_drawn),
        *forecast,
    ]
    figures = []
    for outlook in outlooks:
        figure = outlook._asdict()
        del figure["figure_id"]
        figures.append(figure)
    return LabellingReport(
        "export",
        rows=len(rows),
        notes=notes,
        sheet_id=sheet["sheet_id"],
        figures=figures,
        expected_widths=widths,
    )


def _population(
    job: Job,
    reader: Reader,
    selection: WantedTasks,
    file: Path,
    sampled_for: str,
    *,
    is_latest: bool,
) -> Population:
    """Return the verdicts to sample from; two models are compared in the job's vintage."""
    responses = _usable_responses(job, reader, selection, file, is_any_vintage=is_latest)
    models = sorted({response["model"] for response in responses})
    purpose = label_sampling.purpose_of(sampled_for, reader, selection, models)
    is_of_latest = is_latest and not purpose.is_difference
    if is_of_latest != is_latest:
        responses = _usable_responses(job, reader, selection, file)
    response_ids = [
        response["response_id"] for response in responses if response["model"] in purpose.models
    ]
    return label_sampling.population_of(
        job,
        reader,
        selection,
        purpose,
        response_ids,
        is_latest=is_of_latest,
    )


def _criteria_to_label(
    reader: Reader,
    selection: WantedTasks,
    draws: Sequence[Row],
) -> list[Row]:
    """Return the criteria to label: those of the sampled verdicts without a label."""
    new_draws = [draw for draw in draws if not draw["is_known"]]
    pairs = {(draw["response_id"], draw["criterion_id"]) for draw in new_draws}
    response_ids = sorted({draw["response_id"] for draw in new_draws})
    rows = _criteria_of(reader, selection, response_ids)
    return [row for row in rows if (row["response_id"], row["criterion"]) in pairs]


def _width_note(widths: Sequence[Row], n_rows: int) -> str:
    """Return a sentence on the expected width of the interval."""
    width = widths[0]["width"]
    (expected,) = [row["width"] for row in widths if row["n_labels"] == n_rows]
    if width is not None:
        return (
            f"the interval is {width:.3f} wide now, and with {n_rows} more labels about"
            f" {expected:.3f}"
        )
    return f"with {n_rows} labels the interval is about {expected:.2f} wide"


def _usable_responses(
    job: Job,
    reader: Reader,
    selection: WantedTasks,
    file: Path,
    *,
    is_any_vintage: bool = False,
) -> list[Row]:
    """Return the responses that people can label."""
    parameters = {
        **selection.key,
        "task_ids": selection.task_ids,
        "models": job.named_models,
        "trials": job.named_trials,
    }
    rows = reader.query("queries/exports/labelling_responses", parameters)
    if not is_any_vintage:
        rows = [row for row in rows if row["vintage"] == job.vintage_named(row["model"])]
    if not rows:
        vintages = "any vintage"
        if not is_any_vintage:
            vintages = f"vintage {' or '.join(job.vintages)}"
        raise UsageError(f"{file}: no usable response of {vintages}; see `prbench status`")
    return rows


def _criteria_of(
    reader: Reader,
    selection: WantedTasks,
    response_ids: Sequence[str],
) -> list[Row]:
    """Return the criteria of some responses, in the order of the responses."""
    parameters = {**selection.key, "response_ids": response_ids}
    return reader.query("queries/exports/labelling_rows", parameters)


def _write_labelling(
    reader: Reader,
    selection: WantedTasks,
    file: Path,
    rows: Sequence[Row],
) -> str:
    """Write a sheet for graders, and return its instructions."""
    column, values = _DECISION_CELLS[selection.benchmark.grading]
    instructions = f"judge: your name; {column}: {values}; explanation: if you like"
    columns = [column if name == "criteria_met" else name for name in LABELLING_COLUMNS]
    write_sheet(reader, selection, file, columns, instructions, rows)
    return instructions


def spread(responses: Iterable[Row], seed: int) -> Iterator[Row]:
    """Yield all responses, every task once before any task a second time.

    Models alternate as evenly as that allows. Ties are decided by a hash of seed and response.
    """
    sorted_responses = sorted(
        responses, key=lambda row: digest("labelling", seed, row["response_id"])
    )
    remaining = defaultdict(list)
    for response in sorted_responses:
        remaining[response["task_id"]].append(response)
    task_ids = sorted(remaining, key=lambda task_id: digest("labelling", seed, task_id))
    n_of_model = Counter[str]()
    while task_ids:
        for task_id in task_ids:
            # Of several minima, `min` returns the first.
            best = min(remaining[task_id], key=lambda response: n_of_model[response["model"]])
            remaining[task_id].remove(best)
            n_of_model[best["model"]] += 1
            yield best
        task_ids = [task_id for task_id in task_ids if remaining[task_id]]


REVIEW_COLUMNS = (
    "sample",
    "task",
    "criterion",
    "criterion_hash",
    "reviewer",
    "decision",
    "reason",
    "better_wording",
    SHEET_COLUMN,
    "title",
    "describes",
    "severity",
    "category",
    "conversation",
    "field",
    "topic",
)
"""The columns that identify a row, those that a reviewer fills in (reviewer to better_wording), and
those to read.

The weight is left out, because experts do not review the number. Its severity and its sign
(`describes`) are included, because a criterion with a negative weight is right if it describes a
mistake.
"""
INSTRUCTIONS = (
    "reviewer: your name; decision: agree or disagree that the criterion is well-constructed,"
    " accurate and relevant to the task; reason: why (needed to disagree); better_wording: how it"
    " should read, if you like"
)


_ONE_STRATUM = "all"
"""The stratum of all criteria, or of all tasks, in a sample that is not stratified."""


def export_review(
    job: Job,
    target: Path,
    *,
    n_criteria: int,
    n_tasks: int | None = None,
    labels: Sequence[str] = (),
    seed: int = 0,
) -> StageReport:
    """Write a CSV sheet of sampled criteria, and store the sample with its probabilities.

    The sample is a simple random one of `n_criteria` criteria. With `labels` it has equally many
    from each stratum, as far as possible; with `n_tasks` it has all criteria of that many tasks.
    The same criteria, numbers and seed give the same sample, which is stored once.

    Args:
        job: its wanted tasks are the population.
        target: a file that ends in .csv, or a folder, where the sheet is named after its sample.
        n_criteria: number of criteria; all of them if there are fewer.
        n_tasks: number of whole tasks to sample instead of single criteria.
        labels: the labels (category, severity, field, topic) by which to stratify; each combination
            of them is a stratum.
        seed: each seed gives another sample.

    Raises:
        UsageError: the file exists already, there is no criterion, or there are more strata than
            criteria to sample.
        PipelineError: the file cannot be written.
    """
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        selection = wanted_tasks(job, reader)
        parameters = {**selection.key, "task_ids": list(selection.task_ids)}
        population = reader.query("queries/exports/review_population", parameters)
        if not population:
            raise UsageError(
                "no admitted task with a criterion in the chosen splits; see `prbench check`"
            )
        design, units = _sample(population, n_criteria, n_tasks, labels, seed)
        sample = _sample_columns(job, selection, population, design)
        sample_id = sample["sample_id"]
        file = target
        if target.suffix != SUFFIX:
            file = target / f"review-{sample_id[:8]}{SUFFIX}"
        refuse_target(file)
        rows = [population[unit.position] for unit in units]
        if not reader.select("review_samples", "1", sample_id=sample_id):
            stored_rows = [
                _stored_row(sample, row, unit) for row, unit in zip(rows, units, strict=True)
            ]
            warehouse.write("review_samples", stored_rows)
            warehouse.publish()
        for row in rows:
            row["sample"] = sample_id
            row["describes"] = _described_by(row["weight"])
        write_sheet(reader, selection, file, REVIEW_COLUMNS, INSTRUCTIONS, rows)
    notes = [
        f"{len(rows)} of {len(population)} criteria ({_counted_distinct(rows, 'task')}) in {file}",
        design,
        f"fill in {INSTRUCTIONS}",
    ]
    return StageReport("export", rows=len(rows), notes=notes)


def _sample_columns(
    job: Job,
    selection: WantedTasks,
    population: Sequence[Row],
    design: str,
) -> Row:
    """Return the columns that all rows of a sample share in `review_samples`."""
    population_id = digest(
        "review population",
        selection.benchmark.name,
        selection.dataset_revision,
        sorted((row["task"], row["criterion"], row["criterion_hash"]) for row in population),
    )
    return {
        **selection.key,
        "sample_id": digest("review sample", population_id, design),
        "population_id": population_id,
        "n_population": len(population),
        "design": design,
        "run_id": job.run_id,
        "created_at": datetime.now(UTC),
    }


def _stored_row(sample: Row, criterion: Row, unit: SampledUnit) -> Row:
    """Return the row of `review_samples` of a sampled criterion."""
    return {
        **sample,
        "task_id": criterion["task"],
        "criterion_id": criterion["criterion"],
        "criterion_hash": criterion["criterion_hash"],
        "stratum": unit.stratum,
        "probability": unit.probability,
    }


def _described_by(weight: float | None) -> str | None:
    """Return what a criterion with this weight describes; None if the weight is unknown."""
    if weight is None:
        return None
    return "something undesired" if weight < 0 else "something desired"


def _sample(
    population: Sequence[Row],
    n_criteria: int,
    n_tasks: int | None,
    labels: Sequence[str],
    seed: int,
) -> tuple[str, list[SampledUnit]]:
    """Return the design of a sample in words, and the sampled criteria in order."""
    if n_tasks is None:
        return _sample_criteria(population, n_criteria, labels, seed)
    if labels:
        raise UsageError("--by: goes with -n, not with --tasks, which samples whole tasks")
    return _sample_tasks(population, n_tasks, seed)


def _sample_criteria(
    population: Sequence[Row],
    n_criteria: int,
    labels: Sequence[str],
    seed: int,
) -> tuple[str, list[SampledUnit]]:
    """Return the design of a sample in words, and the sampled criteria."""
    names = " and ".join(labels)
    strata = [_stratum(row, labels) for row in population]
    n_strata = len(set(strata))
    if n_criteria < n_strata:
        raise UsageError(
            f"-n {n_criteria}: by {names} there are {n_strata} strata; use -n {n_strata} or more"
        )
    keys = [digest(row["task"], row["criterion"]) for row in population]
    units = stratified_sample(keys, strata, n_criteria, seed)
    method = f"stratified by {names}" if labels else "simple random"
    return f"{method} sample of {len(units)} of {len(population)} criteria, seed {seed}", units


def _stratum(row: Row, labels: Sequence[str]) -> str:
    return " / ".join(row[label] or "(none)" for label in labels) or _ONE_STRATUM


def _sample_tasks(
    population: Sequence[Row],
    n_tasks: int,
    seed: int,
) -> tuple[str, list[SampledUnit]]:
    """Return the design of a sample in words, and all criteria of the sampled tasks."""
    task_ids = list(dict.fromkeys(row["task"] for row in population))
    tasks = stratified_sample(task_ids, [_ONE_STRATUM] * len(task_ids), n_tasks, seed)
    units_by_task = {task_ids[unit.position]: unit for unit in tasks}
    units = []
    for position, row in enumerate(population):
        unit = units_by_task.get(row["task"])
        if unit is not None:
            units.append(unit._replace(position=position))
    return f"all criteria of {len(tasks)} of {len(task_ids)} tasks, seed {seed}", units
