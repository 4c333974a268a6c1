"""Exporting results as Inspect logs, one for each model and judge."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import sql
from tasks.assemble import complete_conversations
from tasks.config.job import Job
from tasks.exports.inspect_logs.eval_file import SUFFIX, EvalFile
from tasks.exports.inspect_logs.header import eval_id_of, plan_of, results_of, spec_of, stats_of
from tasks.exports.inspect_logs.sample import sample_of, summary_of
from tasks.exports.inspect_logs.totals import Totals
from tasks.exports.places import refuse_filled
from tasks.rules.errors import PipelineError, UsageError
from tasks.run.missing_work import WantedTasks, wanted_tasks
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

Row = dict[str, Any]
_TASKS_AT_ONCE = 500
"""So many tasks are in memory at a time, with all their answers and verdicts of one model run."""
_UNFIT = re.compile(r"[^A-Za-z0-9.-]+")


def export_inspect(job: Job, folder: Path, vintage: str | None = None) -> StageReport:
    """Write a log for each model and judge (each model run) to a folder that is empty or not there.

    Args:
        job: its models and judges, all of them if it names none, on its splits.
        folder: where the logs are written.
        vintage: of which vintage the answers are; None for the latest of each model, `all` for a log of each.

    Raises:
        UsageError: the folder holds something, or nothing was judged in the selection.
        PipelineError: a file cannot be written.
    """
    refuse_filled(folder)
    with Warehouse(job.warehouse).reader() as reader:
        wanted = wanted_tasks(job, reader)
        chosen = {
            "benchmark": wanted.benchmark.name, "revision": wanted.dataset_revision, "vintage": vintage,
            "task_ids": list(wanted.task_ids), "models": list(job.named_models or ()),
            "judges": list(job.named_judges or ()),
        }  # fmt: skip
        model_runs = reader.rows(sql.read("questions/exports/inspect_model_runs"), chosen)
        if not model_runs:
            raise UsageError(f"{folder}: no model has a verdict in this selection; see `prbench status`")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            n_samples = sum(_write_log(reader, wanted, model_run, folder) for model_run in model_runs)
        except OSError as error:
            raise PipelineError(f"{folder}: cannot be written ({error.strerror}); free some space") from error
    notes = [
        f"{len(model_runs)} logs with {n_samples} samples in {folder}",
        f"`inspect view --log-dir {folder}` shows them",
    ]
    return StageReport("export", rows=n_samples, notes=notes)


def _write_log(reader: Reader, wanted: WantedTasks, model_run: Row, folder: Path) -> int:
    """Write the log of one model run, and return the number of its samples."""
    spec = spec_of(model_run, wanted.benchmark.title, wanted.task_ids)
    file = EvalFile(folder / _name_of(model_run))
    totals = Totals(wanted.benchmark.primary_score.score_name)
    try:
        file.start(spec, plan_of())
        for sample in _samples(reader, wanted, model_run):
            file.add(sample, summary_of(sample))
            totals.add(sample)
        figures = reader.rows(sql.read("questions/exports/inspect_results"), _asked(wanted, model_run))
        file.finish({
            "status": "success", "eval": spec, "plan": plan_of(),
            "results": results_of(figures, totals.n_samples, totals.n_failed, totals.n_scored),
            "stats": stats_of(model_run, totals.completed_at, totals.usages, totals.judged),
        })  # fmt: skip
    finally:
        file.discard()
    return totals.n_samples


def _samples(reader: Reader, wanted: WantedTasks, model_run: Row) -> Iterator[Row]:
    """The samples of a model run, by task and trial."""
    primary = wanted.benchmark.primary_score.score_name
    task_ids = sorted(wanted.task_ids)
    for start in range(0, len(task_ids), _TASKS_AT_ONCE):
        some = task_ids[start : start + _TASKS_AT_ONCE]
        key = {"model_run": model_run["model_run_id"]}
        responses = reader.rows(sql.read("questions/exports/inspect_responses"), key | {"task_ids": some})
        key["response_ids"] = [row["response_id"] for row in responses]
        criteria = _by_response(reader.rows(sql.read("questions/exports/inspect_criteria"), key))
        scores = _by_response(reader.rows(sql.read("questions/exports/inspect_scores"), key))
        conversations = complete_conversations(reader, wanted, {row["task_id"] for row in responses})
        for response in responses:
            task_id, response_id = response["task_id"], response["response_id"]
            of_response = sorted(scores[response_id], key=lambda row: row["score_name"] != primary)
            yield sample_of(model_run, response, conversations[task_id].messages, criteria[response_id], of_response)


def _by_response(rows: Sequence[Row]) -> Mapping[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["response_id"]].append(row)
    return found


def _asked(wanted: WantedTasks, model_run: Row) -> Row:
    return {
        "benchmark": wanted.benchmark.name, "revision": wanted.dataset_revision, "splits": list(wanted.splits),
        "model_run": model_run["model_run_id"],
    }  # fmt: skip


def _name_of(model_run: Row) -> str:
    """A name that says what a log is about; labels may hold anything, so the id tells apart what looks alike."""
    parts = (model_run["benchmark"], model_run["model"], model_run["judge"], eval_id_of(model_run)[:8])
    return "_".join(_UNFIT.sub("-", part)[:40] for part in parts) + SUFFIX
