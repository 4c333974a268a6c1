"""A sheet for experts who review rubrics: one row a criterion, to be filled in and imported as reviews.

The paper's validation (arXiv 2511.11562, appendix E): experts who did not write the task agree or disagree that a
criterion is well-constructed, accurate and relevant. Criteria are sampled with known probabilities, which are stored
(`review_samples`), so that the share of agreement can be estimated for all criteria.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sql
from tasks.assemble import complete_conversations
from tasks.config.job import Job
from tasks.exports.sheets import SUFFIX, fitting, readable, refuse_place, write_sheet
from tasks.imports.verdicts import SHEET_COLUMN
from tasks.rules.errors import UsageError
from tasks.rules.identity import digest
from tasks.rules.statistics.sampling import Drawn, stratified_sample
from tasks.run.missing_work import WantedTasks, wanted_tasks
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

COLUMNS = (
    "sample", "task", "criterion", "criterion_hash", "reviewer", "decision", "reason", "better_wording",
    SHEET_COLUMN, "title", "describes", "severity", "category", "conversation", "field", "topic",
)  # fmt: skip
"""What identifies a row, what a reviewer fills in (reviewer, decision, reason, better_wording) and how, and what is to
be read. The weight is left out: experts are not asked about the number. Its severity and sign are there, because a
criterion that describes something undesired is right if that is wrong to do.
"""
_FILLED_IN = ("reviewer", "decision", "reason", "better_wording")
HOW = (
    "reviewer: your name; decision: agree or disagree that the criterion is well-constructed, accurate and relevant to "
    "the task; reason: why (needed to disagree); better_wording: how it should read, if you like"
)
_NONE = "(none)"
"""The stratum of criteria without such a label."""
Row = dict[str, Any]


def export_review(
    job: Job, target: Path, *, n_criteria: int, n_tasks: int | None = None, by: Sequence[str] = (), seed: int = 0
) -> StageReport:
    """Write a CSV sheet of sampled criteria, and store the sample with its probabilities.

    The sample is a simple random one of `n_criteria` criteria; with `by` as many from each stratum as from the others,
    as far as they have them; with `n_tasks` all criteria of that many tasks. It is the same for the same criteria,
    numbers and seed, and is then stored once.

    Args:
        job: its wanted tasks are the population.
        target: a file that ends in .csv, or a folder, where the sheet is named after its sample.
        n_criteria: how many criteria; all of them if there are fewer.
        n_tasks: whole tasks instead of single criteria.
        by: strata: every combination of these labels (category, severity, field, topic) is one.
        seed: another one draws another sample.

    Raises:
        UsageError: the file is there already, there is no criterion, or there are more strata than criteria to sample.
        PipelineError: the file cannot be written.
    """
    is_file = target.suffix == SUFFIX
    if is_file:
        refuse_place(target)
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        wanted = wanted_tasks(job, reader)
        population = _population(reader, wanted)
        design, drawn = _sample(population, n_criteria, n_tasks, by, seed)
        listed = sorted((row["task"], row["criterion"], row["criterion_hash"]) for row in population)
        population_id = digest("review population", *wanted.key.values(), listed)
        sample_id = digest("review sample", population_id, design)
        chosen = [population[each.place] for each in drawn]
        conversations = readable(complete_conversations(reader, wanted, {row["task"] for row in chosen}))
        is_stored = bool(reader.rows("select 1 from review_samples where sample_id = ? limit 1", [sample_id]))
    file = target if is_file else target / f"review-{sample_id[:8]}{SUFFIX}"
    refuse_place(file)
    if not is_stored:
        common = {
            **wanted.key, "sample_id": sample_id, "population_id": population_id, "n_population": len(population),
            "design": design, "run_id": job.run_id, "created_at": datetime.now(UTC),
        }  # fmt: skip
        warehouse.write("review_samples", [common | _member(population[each.place], each) for each in drawn])
        warehouse.publish()
    write_sheet(file, COLUMNS, [_cells(row, sample_id, conversations[row["task"]]) for row in chosen])
    n_of = len({row["task"] for row in chosen})
    notes = [f"{len(chosen)} of {len(population)} criteria ({n_of} tasks) in {file}", f"{design}", f"fill in {HOW}"]
    return StageReport("export", rows=len(chosen), notes=notes)


def _population(reader: Reader, wanted: WantedTasks) -> list[Row]:
    given = {**wanted.key, "task_ids": list(wanted.task_ids)}
    population = reader.rows(sql.read("queries/exports/review_population"), given)
    if not population:
        raise UsageError("no admitted task with a criterion in the chosen splits; see `prbench check`")
    return population


def _sample(
    population: Sequence[Row], n_criteria: int, n_tasks: int | None, by: Sequence[str], seed: int
) -> tuple[str, list[Drawn]]:
    """The design of a sample in words, and the criteria drawn."""
    if n_tasks is not None:
        if by:
            raise UsageError("--by: goes with -n, not with --tasks, which samples whole tasks")
        tasks = list(dict.fromkeys(row["task"] for row in population))
        of_task = {tasks[each.place]: each for each in stratified_sample(tasks, ["all"] * len(tasks), n_tasks, seed)}
        drawn = [each._replace(place=i) for i, row in enumerate(population) if (each := of_task.get(row["task"]))]
        return f"all criteria of {len(of_task)} of {len(tasks)} tasks, seed {seed}", drawn
    strata = [" / ".join(row[label] or _NONE for label in by) or "all" for row in population]
    if n_criteria < (n_strata := len(set(strata))):
        raise UsageError(
            f"-n {n_criteria}: by {' and '.join(by)} there are {n_strata} strata, and each needs a criterion; "
            f"use -n {n_strata} or more"
        )
    keys = [digest(row["task"], row["criterion"]) for row in population]
    drawn = stratified_sample(keys, strata, n_criteria, seed)
    how = f"stratified by {' and '.join(by)}" if by else "simple random"
    return f"{how} sample of {len(drawn)} of {len(population)} criteria, seed {seed}", drawn


def _member(row: Row, drawn: Drawn) -> Row:
    return {
        "task_id": row["task"], "criterion_id": row["criterion"], "criterion_hash": row["criterion_hash"],
        "stratum": drawn.stratum, "probability": drawn.probability,
    }  # fmt: skip


def _cells(row: Row, sample_id: str, conversation: str) -> Row:
    describes = None if not row["weight"] else "something desired" if row["weight"] > 0 else "something undesired"
    return {
        **row, **dict.fromkeys(_FILLED_IN), "sample": sample_id, "describes": describes,
        "conversation": fitting(conversation), SHEET_COLUMN: HOW,
    }  # fmt: skip
