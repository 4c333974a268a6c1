"""Sheets for people to fill in: CSV files that every spreadsheet opens correctly, with one row for
each criterion.

A sheet for human graders is imported as verdicts. It has either whole responses, or single verdicts
sampled with known probabilities, so that people's labels can correct a judge's scores
(`label_sampling.py`).

A sheet for experts is imported as reviews. It follows the paper's validation (arXiv 2511.11562,
appendix E): experts who did not write the task agree or disagree that a criterion is
well-constructed, accurate and relevant. Criteria are sampled with known probabilities, which are
stored (`review_samples`), so that the share of agreement can be estimated for all.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import sql
from tasks.assemble import complete_conversations
from tasks.config.job import Job
from tasks.exports import label_forecast, label_sampling
from tasks.figures.csv_rows import as_csv
from tasks.imports.verdicts import SHEET_COLUMN
from tasks.rules.errors import UsageError, disk_errors
from tasks.rules.identity import digest
from tasks.rules.statistics.sampling import SampledUnit, stratified_sample
from tasks.rules.verdict import BINARY, TERNARY, WORDS
from tasks.run.missing_work import Conversation, WantedTasks, wanted_tasks
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse, write_atomically

Row = dict[str, Any]
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
    """Return a conversation as a text that fits into a cell; the middle of a longer text is left
    out.
    """
    text = "\n\n".join(map(": ".join, conversation.messages))
    half = _CELL_CHARS // 2 - 50
    cut = f"{text[:half]}\n\n[... {len(text) - 2 * half} characters left out ...]\n\n{text[-half:]}"
    return text if len(text) <= _CELL_CHARS else cut


def write_sheet(
    reader: Reader,
    wanted: WantedTasks,
    file: Path,
    columns: Sequence[str],
    how: str,
    rows: Sequence[Row],
) -> None:
    """Write rows as CSV, each with its task's conversation, instructions, and empty cells for
    people.

    Raises:
        PipelineError: the file cannot be written.
    """
    conversations = complete_conversations(reader, wanted, {row["task"] for row in rows})
    texts = {task_id: readable(conversation) for task_id, conversation in conversations.items()}
    given = (
        {
            **row,
            SHEET_COLUMN: how,
            "conversation": texts[row["task"]],
        }
        for row in rows
    )
    cells = [{name: row.get(name) for name in columns} for row in given]
    # All cells are quoted, because some spreadsheets separate cells by semicolons; without a byte
    # order mark they assume another encoding.
    content = as_csv(columns, cells, must_quote=True).encode("utf-8-sig")
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
_DECISIONS = {BINARY: ("criteria_met", "yes or no"), TERNARY: ("verdict", ", ".join(WORDS))}


@dataclass
class LabellingReport(StageReport):
    """The report of an export of a sampled sheet.

    It has the id of the sheet, the `figures` once it is filled in (with the reason why one is
    missing), and the expected widths of the interval.
    """

    sheet_id: str = ""
    figures: list[Row] = field(default_factory=list)
    expected_widths: list[Row] = field(default_factory=list)


def export_labelling(job: Job, file: Path, *, n_rows: int, seed: int = 0) -> StageReport:
    """Write a CSV sheet of sampled responses with their criteria; it has `n_rows` rows if there are
    as many.

    All responses but the last have all their criteria. Responses are of the job's vintage. The
    sample is spread evenly over tasks and models, and is the same for the same responses and seed.

    Raises:
        UsageError: the file exists already or does not end in .csv, or there is no response to
            grade.
    """
    refuse_target(file)
    with Warehouse(job.warehouse).reader() as reader:
        wanted = wanted_tasks(job, reader)
        ordered = spread(_usable(job, reader, wanted, file), seed)
        rows = _rows(reader, wanted, [each["response_id"] for each in islice(ordered, n_rows)])[
            :n_rows
        ]
        how = _write(reader, wanted, file, rows)
    n_responses, n_tasks, n_models = (
        len({row[name] for row in rows}) for name in ("response_id", "task", "model")
    )
    summary = (
        f"{len(rows)} criteria of {n_responses} responses ({n_tasks} tasks, {n_models} models) in"
        f" {file}"
    )
    return StageReport("export", rows=len(rows), notes=[summary, f"fill in {how}"])


def export_sampled_labelling(
    job: Job, file: Path, *, sampled_for: str, n_rows: int, seed: int = 0, of_latest: bool = True
) -> LabellingReport:
    """Write a CSV sheet of the verdicts whose labels narrow an interval most, and store how they
    were sampled.

    The probability of each verdict without a label is in proportion to its contribution to the
    chosen score and to the expected error of the judge. The same verdicts, number and seed give the
    same sheet.

    Args:
        job: gives the tasks, models, trials and vintage to sample from.
        file: a new file that ends in .csv.
        sampled_for: `leaderboard`, two models with a space between them, or a category.
        n_rows: number of verdicts; all if there are fewer.
        seed: each seed gives another sheet.
        of_latest: sample from each model's current vintages, which leaderboards show, instead of
            the job's vintage; for two models, the job's vintage is always used.

    Raises:
        UsageError: the file exists already, `sampled_for` names nothing, or there is nothing to
            label.
        PipelineError: the file cannot be written.
    """
    refuse_target(file)
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        wanted = wanted_tasks(job, reader)
        usable = _usable(job, reader, wanted, file, is_any_vintage=of_latest)
        purpose = label_sampling.purpose_of(
            sampled_for, reader, wanted, sorted({each["model"] for each in usable})
        )
        if purpose.is_difference and of_latest:
            of_latest = False
            usable = _usable(job, reader, wanted, file)
        ids = [each["response_id"] for each in usable if each["model"] in purpose.models]
        population = label_sampling.population_of(
            job, reader, wanted, purpose, ids, of_latest=of_latest
        )
        sheet, draws = label_sampling.draw(job, population, n_rows, seed)
        n_drawn = sheet["n_drawn"]
        widths = label_forecast.expected_widths(reader, population, n_drawn, seed)
        figures = label_forecast.outlooks(population, n_drawn, seed)
        forecast = [
            _width_note(widths, n_drawn),
            *label_forecast.outlook_notes(population, n_drawn, seed),
        ]
        chosen = {(row["response_id"], row["criterion_id"]) for row in draws if not row["is_known"]}
        of_responses = _rows(reader, wanted, sorted({response_id for response_id, _ in chosen}))
        rows = [row for row in of_responses if (row["response_id"], row["criterion"]) in chosen]
        if not reader.select("label_sheets", "1", sheet_id=sheet["sheet_id"]):
            warehouse.write("label_sheets", [sheet])
            warehouse.write("label_draws", draws)
            warehouse.publish()
        how = _write(reader, wanted, file, rows)
    notes = [f"{sheet['design']}, in {file}", f"fill in {how}", *forecast]
    return LabellingReport(
        "export",
        rows=len(rows),
        notes=notes,
        sheet_id=sheet["sheet_id"],
        figures=[
            {
                "model": figure.model,
                "split": figure.split,
                "n_labels": figure.n_labels,
                "no_figure": figure.no_figure,
            }
            for figure in figures
        ],
        expected_widths=widths,
    )


def _width_note(widths: Sequence[Row], n_rows: int) -> str:
    """Return a sentence on the expected width of the interval."""
    now = widths[0]["width"]
    then = next(each["width"] for each in widths if each["n_labels"] == n_rows)
    if now is not None:
        return f"the interval is {now:.3f} wide now, and with {n_rows} more labels about {then:.3f}"
    return f"with {n_rows} labels the interval is about {then:.2f} wide"


def _usable(
    job: Job, reader: Reader, wanted: WantedTasks, file: Path, *, is_any_vintage: bool = False
) -> list[Row]:
    """Return the responses that people can label."""
    rows = reader.rows(
        sql.read("queries/exports/labelling_responses"),
        {
            **wanted.key,
            "task_ids": wanted.task_ids,
            "models": job.named_models,
            "trials": job.named_trials,
        },
    )
    usable = [
        row for row in rows if is_any_vintage or row["vintage"] == job.vintage_named(row["model"])
    ]
    if not usable:
        raise UsageError(
            f"{file}: no usable response of vintage {' or '.join(job.vintages)}; see `prbench"
            " status`"
        )
    return usable


def _rows(reader: Reader, wanted: WantedTasks, response_ids: Sequence[str]) -> list[Row]:
    """Return the criteria of some responses, in the order of the responses."""
    return reader.rows(
        sql.read("queries/exports/labelling_rows"), {**wanted.key, "response_ids": response_ids}
    )


def _write(reader: Reader, wanted: WantedTasks, file: Path, rows: Sequence[Row]) -> str:
    """Write a sheet for graders, and return its instructions."""
    decision, entered = _DECISIONS[wanted.benchmark.grading]
    how = f"judge: your name; {decision}: {entered}; explanation: if you like"
    columns = [decision if name == "criteria_met" else name for name in LABELLING_COLUMNS]
    write_sheet(reader, wanted, file, columns, how, rows)
    return how


def spread(candidates: Iterable[Mapping[str, Any]], seed: int) -> Iterator[Mapping[str, Any]]:
    """Yield all candidates, every task once before any task a second time, and models as evenly as
    that allows.

    Ties are decided by a hash of seed and response.
    """
    order = {
        each["response_id"]: digest("labelling", seed, each["response_id"]) for each in candidates
    }
    of_task: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for each in candidates:
        of_task[each["task_id"]].append(each)
    tasks = sorted(of_task, key=lambda task_id: digest("labelling", seed, task_id))
    taken: Counter[str] = Counter()
    while tasks:
        for task_id in tasks:
            best = min(
                of_task[task_id],
                key=lambda each: (taken[each["model"]], order[each["response_id"]]),
            )
            of_task[task_id].remove(best)
            taken[best["model"]] += 1
            yield best
        tasks = [task_id for task_id in tasks if of_task[task_id]]


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
HOW = (
    "reviewer: your name; decision: agree or disagree that the criterion is well-constructed,"
    " accurate and relevant to the task; reason: why (needed to disagree); better_wording: how it"
    " should read, if you like"
)


def export_review(
    job: Job,
    target: Path,
    *,
    n_criteria: int,
    n_tasks: int | None = None,
    by: Sequence[str] = (),
    seed: int = 0,
) -> StageReport:
    """Write a CSV sheet of sampled criteria, and store the sample with its probabilities.

    The sample is a simple random one of `n_criteria` criteria. With `by` it has equally many from
    each stratum, as far as possible; with `n_tasks` it has all criteria of that many tasks. The
    same criteria, numbers and seed give the same sample, which is stored once.

    Args:
        job: its wanted tasks are the population.
        target: a file that ends in .csv, or a folder, where the sheet is named after its sample.
        n_criteria: number of criteria; all of them if there are fewer.
        n_tasks: number of whole tasks to sample instead of single criteria.
        by: labels (category, severity, field, topic) by which to stratify; each combination of them
            is a stratum.
        seed: each seed gives another sample.

    Raises:
        UsageError: the file exists already, there is no criterion, or there are more strata than
            criteria to sample.
        PipelineError: the file cannot be written.
    """
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        wanted = wanted_tasks(job, reader)
        key = {**wanted.key, "task_ids": list(wanted.task_ids)}
        population = reader.rows(sql.read("queries/exports/review_population"), key)
        if not population:
            raise UsageError(
                "no admitted task with a criterion in the chosen splits; see `prbench check`"
            )
        design, sampled = _sample(population, n_criteria, n_tasks, by, seed)
        listed = sorted(
            (row["task"], row["criterion"], row["criterion_hash"]) for row in population
        )
        population_id = digest("review population", *wanted.key.values(), listed)
        sample_id = digest("review sample", population_id, design)
        chosen = [population[each.position] for each in sampled]
        file = target if target.suffix == SUFFIX else target / f"review-{sample_id[:8]}{SUFFIX}"
        refuse_target(file)
        if not reader.select("review_samples", "1", sample_id=sample_id):
            common = {
                **wanted.key,
                "sample_id": sample_id,
                "population_id": population_id,
                "n_population": len(population),
                "design": design,
                "run_id": job.run_id,
                "created_at": datetime.now(UTC),
            }
            warehouse.write(
                "review_samples",
                [
                    common
                    | {
                        "task_id": row["task"],
                        "criterion_id": row["criterion"],
                        "stratum": each.stratum,
                        "criterion_hash": row["criterion_hash"],
                        "probability": each.probability,
                    }
                    for each, row in zip(sampled, chosen, strict=True)
                ],
            )
            warehouse.publish()
        cells = [
            row
            | {
                "sample": sample_id,
                "describes": row["weight"] and f"something {'un' * (row['weight'] < 0)}desired",
            }
            for row in chosen
        ]
        write_sheet(reader, wanted, file, REVIEW_COLUMNS, HOW, cells)
    n_of = len({row["task"] for row in chosen})
    notes = [
        f"{len(chosen)} of {len(population)} criteria ({n_of} tasks) in {file}",
        design,
        f"fill in {HOW}",
    ]
    return StageReport("export", rows=len(chosen), notes=notes)


def _sample(
    population: Sequence[Row], n_criteria: int, n_tasks: int | None, by: Sequence[str], seed: int
) -> tuple[str, list[SampledUnit]]:
    """Return the design of a sample in words, and the sampled criteria in the order of the
    population.
    """
    if n_tasks is not None and by:
        raise UsageError("--by: goes with -n, not with --tasks, which samples whole tasks")
    strata = [" / ".join(row[label] or "(none)" for label in by) or "all" for row in population]
    if n_tasks is None and n_criteria < (n_strata := len(set(strata))):
        problem = f"by {' and '.join(by)} there are {n_strata} strata"
        raise UsageError(f"-n {n_criteria}: {problem}; use -n {n_strata} or more")
    # The units are whole tasks, or single criteria.
    keys = [
        digest(row["task"], row["criterion"]) if n_tasks is None else row["task"]
        for row in population
    ]
    units = dict(zip(keys, strata, strict=True))
    n = n_criteria if n_tasks is None else n_tasks
    names = list(units)
    sampled = {
        names[each.position]: each
        for each in stratified_sample(names, list(units.values()), n, seed)
    }
    criteria = [sampled[key]._replace(position=i) for i, key in enumerate(keys) if key in sampled]
    if n_tasks is not None:
        return f"all criteria of {len(sampled)} of {len(units)} tasks, seed {seed}", criteria
    how = f"stratified by {' and '.join(by)}" if by else "simple random"
    return f"{how} sample of {len(sampled)} of {len(population)} criteria, seed {seed}", criteria
