"""Results as logs for Inspect View, one for each model and judge.

A sample is a response with its verdicts.
"""

import importlib.metadata
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from tasks.assemble import complete_conversations
from tasks.config.job import Job
from tasks.exports.inspect_names import name_or_label
from tasks.exports.tables import refuse_filled
from tasks.rules.conversation import Message
from tasks.rules.errors import UsageError, disk_errors
from tasks.rules.identity import IMPORTED, JUDGE_CONFIG, digest
from tasks.rules.text.numbers import counted
from tasks.rules.verdict import DECIDED
from tasks.run.judge_configs import templates_by_hash
from tasks.run.missing_work import WantedTasks, wanted_tasks
from tasks.run.writing import StageReport
from warehouse import Reader, Row, Warehouse, write_atomically

Document = dict[str, Any]
"""A part of a log, as Inspect reads it."""
_TASKS_AT_ONCE = 500
"""Number of tasks that are in memory at a time, with all their responses and verdicts in a model
run.
"""
NOTICE = (
    "Benchmark data with responses to it: do not train models on it. Markers against that"
    " (canaries) are left out."
)
_IDENTITY = (
    "judge",
    "judge_config_hash",
    "template_hash",
    "grading",
    "rubric",
    "judge_trial",
    "model_config_hash",
    "vintage",
    "dataset_revision",
)
"""The columns that identify a model run, besides benchmark and model."""
_METADATA_COLUMNS = (
    "split",
    "ci_low",
    "ci_high",
    "coverage",
    "n_tasks",
    "n_tasks_wanted",
    "is_complete",
    "mean_lower",
    "mean_upper",
)
"""Columns of the leaderboard in the metadata of a score. As metrics, readers of logs would take
them for scores.
"""
VERSION = 2
"""The version of Inspect's format of logs."""
SUFFIX = ".eval"
GRADER = "grader"
"""The name that Inspect gives the judge."""
_STOP_REASONS = {
    "truncated": "max_tokens",
    "context_length": "model_length",
    "refused": "content_filter",
}
_MOST_SHOWN = 1_000
"""Largest number of characters of a text in a summary."""
_TASK_COLUMNS = ("field", "topic", "expert", "splits", "decision_types", "economic_pathways")
_RESPONSE_COLUMNS = (
    "response_id",
    "source",
    "degraded",
    "finish_reason",
    "served_model",
    "cost_usd",
)
_CRITERION_COLUMNS = (
    "criterion_id",
    "title",
    "category",
    "severity",
    "weight",
    "status",
    "value",
    "explanation",
    "error",
    "cost_usd",
    "may_hide_failures",
)


def export_inspect(
    job: Job,
    folder: Path,
    vintage: str | None = None,
    *,
    is_scored_only: bool = False,
) -> StageReport:
    """Write a log for each model run (a model under a judge) to a new or empty folder.

    Args:
        job: selects the models and judges (all if it names none) and the splits.
        folder: where the logs are written.
        vintage: the vintage of the responses; None for each model's current one; `all` for one log
            for each vintage.
        is_scored_only: leave out samples without a score: failed responses, and those with
            undecided criteria.

    Raises:
        UsageError: the folder is not empty, or nothing was judged in the selection.
        PipelineError: a file cannot be written.
    """
    refuse_filled(folder)
    with Warehouse(job.warehouse).reader() as reader:
        selection = wanted_tasks(job, reader)
        parameters = {
            **selection.key,
            "vintage": vintage,
            "task_ids": selection.task_ids,
            "models": job.named_models or (),
            "judges": job.named_judges or (),
        }
        model_runs = reader.query("queries/exports/inspect_model_runs", parameters)
        if not model_runs:
            raise UsageError(
                f"{folder}: no model has a verdict in this selection; see `prbench status`"
            )
        are_scored = list[bool]()
        with disk_errors(folder):
            for model_run in model_runs:
                subject = _subject_of(job, selection, model_run)
                are_scored += _write_log(
                    reader,
                    selection,
                    subject,
                    folder,
                    is_scored_only=is_scored_only,
                )
    logs = counted(len(model_runs), "log")
    notes = [
        f"{logs} with {counted(len(are_scored), 'sample')} in {folder}",
        f"`inspect view --log-dir {folder}` shows them",
    ]
    n_unscored = are_scored.count(False)
    if n_unscored:
        notes.append(
            f"{n_unscored} samples have no score; for tools that refuse these, add --scored"
        )
    return StageReport("export", rows=len(are_scored), notes=notes)


class _LogSubject(NamedTuple):
    """What a log is about: a model run, the names of model and judge in Inspect, the template.

    `litellm_name` is None if only the label of the model is known. `judge` is None for people and
    other imported graders: no model's name is known.
    """

    model_run: Row
    litellm_name: str | None
    model: str
    judge: str | None
    template: str | None

    @property
    def grader(self) -> str:
        """The judge in usages: its model, or the label of an imported grader."""
        return self.judge or str(self.model_run["judge"])

    @property
    def served_as(self) -> str:
        """The model's name without its provider, for replies that do not name a model."""
        return self.model.partition("/")[2]

    @property
    def scorer_parameters(self) -> Document:
        """The parameters of the scorer; the template is its hash if its text is unknown."""
        if self.judge is None:
            return {"judge": self.model_run["judge"]}
        return {
            "grader_model": {"model": self.judge},
            "grader_template": self.template or self.model_run["template_hash"],
            "judge": self.model_run["judge"],
        }


def _subject_of(job: Job, selection: WantedTasks, model_run: Row) -> _LogSubject:
    litellm_name = None
    if model_run["model_config_hash"] != IMPORTED:
        models = {model.label: model.name for model in job.settings.models}
        litellm_name = model_run["model_name"] or models.get(model_run["model"])
    judge = None
    if not model_run["is_imported"]:
        judges = {judge.label: judge.name for judge in job.settings.judges}
        judge_name = model_run["judge_name"] or judges.get(model_run["judge"])
        judge = name_or_label(judge_name, model_run["judge"])
    return _LogSubject(
        model_run=model_run,
        litellm_name=litellm_name,
        model=name_or_label(litellm_name, model_run["model"]),
        judge=judge,
        template=templates_by_hash(job, selection.benchmark).get(model_run["template_hash"]),
    )


def _write_log(
    reader: Reader,
    selection: WantedTasks,
    subject: _LogSubject,
    folder: Path,
    *,
    is_scored_only: bool,
) -> list[bool]:
    """Write the log of one model run; return for each of its samples whether it has a score."""
    primary = selection.benchmark.primary_score.score_name
    spec = _eval_spec(selection, subject)
    summaries = []
    content = BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED) as log:
        _put(log, "_journal/start.json", {"version": VERSION, "plan": _PLAN, "eval": spec})
        for sample in _samples(reader, selection, subject):
            if is_scored_only and not _is_scored(sample, primary):
                continue
            _put(log, f"samples/{sample['id']}_epoch_{sample['epoch']}.json", sample)
            summaries.append(_summary_of(sample))
        _put(log, "summaries.json", summaries)
        parameters = {
            "splits": list(selection.splits),
            "model_run": subject.model_run["model_run_id"],
        }
        figures = reader.query("queries/exports/inspect_results", parameters)
        header = {
            "version": VERSION,
            "status": "success",
            "plan": _PLAN,
            "eval": spec,
            "results": _results(figures, summaries, primary, subject.scorer_parameters),
            "stats": _stats(spec, summaries),
        }
        _put(log, "header.json", header)
    # A log gets its name when complete.
    write_atomically(folder / _file_name(subject.model_run, spec), content.getvalue())
    return [_is_scored(summary, primary) for summary in summaries]


_PLAN = {"name": "plan", "steps": [{"solver": "generate"}]}
"""The plan of a log: a response is one generation."""


def _eval_spec(selection: WantedTasks, subject: _LogSubject) -> Document:
    """Return Inspect's `EvalSpec`; ids are hashes of what identifies the log."""
    model_run = subject.model_run
    title = selection.benchmark.title
    task_ids = list(selection.task_ids)
    return {
        "eval_id": _id_of(model_run, "inspect eval"),
        "run_id": _id_of(model_run, "inspect run"),
        "created": model_run["first_response_at"].isoformat(),
        "task": model_run["benchmark"],
        # Unique, because Inspect View takes all but the last log with a task id for retried
        # attempts.
        "task_id": _id_of(model_run, "inspect task"),
        "task_version": model_run["dataset_revision"],
        "task_display_name": title,
        "solver": "generate",
        "tags": [model_run["model"], model_run["judge"], model_run["vintage"]],
        "dataset": {
            "name": title,
            "samples": len(task_ids),
            "sample_ids": task_ids,
            "shuffled": False,
        },
        "model": subject.model,
        "model_roles": {GRADER: {"model": subject.grader}},
        "config": {"epochs": model_run["n_trials"], "epochs_reducer": ["mean"]},
        "packages": {"prbench-pipeline": importlib.metadata.version("prbench-pipeline")},
        "metadata": {
            "model_label": model_run["model"],
            "model_name": subject.litellm_name,
            **_columns(model_run, (*_IDENTITY, "may_hide_failures")),
            "notice": NOTICE,
        },
    }


def _stats(spec: Document, summaries: Sequence[Document]) -> Document:
    """Return the times of the first response and the last verdict, and the usage of all samples."""
    stats = {
        "started_at": spec["created"],
        "completed_at": max((summary["completed_at"] for summary in summaries), default=""),
    }
    for kind in ("model_usage", "role_usage"):
        usages = (summary[kind].items() for summary in summaries)
        stats[kind] = _sums_of(chain.from_iterable(usages))
    return stats


def _file_name(model_run: Row, spec: Document) -> str:
    """Return the name of a log, with its id, because different labels may look the same."""
    labels = [model_run[name] for name in ("benchmark", "model", "judge")]
    parts = [re.sub(r"[^A-Za-z0-9.-]+", "-", label)[:40] for label in labels]
    return "_".join([*parts, spec["eval_id"][:8]]) + SUFFIX


def _columns(row: Row, names: Iterable[str]) -> Document:
    return {name: row[name] for name in names}


def _put(log: ZipFile, name: str, document: Document | Sequence[Document]) -> None:
    """Write a member without its time.

    NaN is written as `NaN`, with which Inspect marks unscored samples.
    """
    log.writestr(ZipInfo(name), json.dumps(document, ensure_ascii=False), ZIP_DEFLATED)


def _samples(reader: Reader, selection: WantedTasks, subject: _LogSubject) -> Iterator[Document]:
    """Yield the samples of a model run, by task and trial."""
    task_ids = sorted(selection.task_ids)
    for start in range(0, len(task_ids), _TASKS_AT_ONCE):
        batch = task_ids[start : start + _TASKS_AT_ONCE]
        parameters = {
            "model_run": subject.model_run["model_run_id"],
            "primary": selection.benchmark.primary_score.score_name,
            "task_ids": batch,
        }
        responses = reader.query("queries/exports/inspect_responses", parameters)
        conversations = complete_conversations(reader, selection, batch)
        for response in responses:
            yield _sample_of(subject, response, conversations[response["task_id"]].messages)


def _id_of(model_run: Row, kind: str) -> str:
    columns = ("benchmark", "model", *_IDENTITY)
    return digest(kind, *(model_run[name] for name in columns))[:22]


def _results(
    figures: Sequence[Row],
    summaries: Sequence[Document],
    primary: str,
    scorer_parameters: Document,
) -> Document:
    """Return the results: each score on each split, as the leaderboard shows it.

    On several splits a score has several results, because readers take a metric's name in a result
    for unique.

    Args:
        figures: the rows of the leaderboard, the main score first; unknown values are left out of
            the metrics.
        summaries: the samples of the log.
        primary: the name of the main score, which decides whether a sample is scored.
        scorer_parameters: judge and template.
    """
    has_splits = len({row["split"] for row in figures}) > 1
    scores = []
    for row in figures:
        are_scored = [
            _is_scored(summary, primary)
            for summary in summaries
            if row["split"] in summary["metadata"]["splits"]
        ]
        score = {
            "name": f"{row['split']} {row['score_name']}" if has_splits else row["score_name"],
            "scorer": row["score_name"],
            "scored_samples": are_scored.count(True),
            "unscored_samples": are_scored.count(False),
            "params": scorer_parameters,
            "metrics": _metrics_of(row),
            "metadata": _columns(row, _METADATA_COLUMNS),
        }
        scores.append(score)
    n_failed = sum(summary["error"] is not None for summary in summaries)
    return {
        "total_samples": len(summaries),
        "completed_samples": len(summaries) - n_failed,
        "scores": scores,
    }


def _is_scored(sample: Document, primary: str) -> bool:
    score = sample["scores"].get(primary)
    return score is not None and not math.isnan(score["value"])


def _metrics_of(row: Row) -> dict[str, Document]:
    """Return the metrics of a row of the leaderboard."""
    if row["mean_score"] is None:
        return {}  # Inspect View would show another metric, the first one, as the score
    # Inspect's name of a metric -> column of the leaderboard.
    columns = {"mean": "mean_score", "stderr": "standard_error"}
    if row["raw_mean_score"] != row["mean_score"]:
        # The leaderboard shows a mean below 0 as 0.
        columns["unclipped_mean"] = "raw_mean_score"
    metrics = {}
    for name, column in columns.items():
        if row[column] is not None:
            metrics[name] = {"name": name, "value": row[column]}
    return metrics


def _sample_of(subject: _LogSubject, response: Row, messages: Sequence[Message]) -> Document:
    """Return a sample: conversation, response, scores with every criterion, usage, and error.

    Args:
        subject: the model run, with the names of model and judge.
        response: the response, or its failure, with the labels of the task, every criterion with
            its verdict, and the scores.
        messages: the conversation as sent.
    """
    criteria = response["criteria"] or ()
    uid = _sample_id(subject.model_run, response)
    turns = _turns(uid, messages)
    response_turn = _response_turn(uid, subject, response)
    cause = _cause_of(response)
    scores = {} if cause else _scores(criteria, response["scores"] or ())
    judge_usages = []
    for row in criteria:
        if row["status"] not in {"not_judged", "no_response"}:
            judge_usages.append((subject.grader, _usage_of(row)))
    times = [row["created_at"] for row in (response, *criteria) if row["created_at"]]
    error = None
    if cause is not None:
        error = dict.fromkeys(("message", "traceback", "traceback_ansi"), cause)
    return {
        "id": response["task_id"],
        "epoch": response["trial"],
        "input": turns,
        "target": [],
        "messages": [*turns, response_turn] if response_turn else turns,
        "output": _output(subject, response, response_turn, cause),
        "scores": scores,
        "metadata": _columns(response, (*_TASK_COLUMNS, *_RESPONSE_COLUMNS)),
        # Model and judge may have the same name; then their usage is added up.
        "model_usage": _sums_of([(subject.model, _usage_of(response)), *judge_usages]),
        "role_usage": _sums_of((GRADER, usage) for _, usage in judge_usages),
        "completed_at": max(times).isoformat(),
        "uuid": uid,
        "error": error,
    }


def _cause_of(response: Row) -> str | None:
    """Return the cause of a failed response; None if it did not fail."""
    if response["text"] is not None:
        return None
    status = str(response["status"])
    return f"{status}: {response['error']}" if response["error"] else status


def _sample_id(model_run: Row, response: Row) -> str:
    judge = (model_run[name] for name in JUDGE_CONFIG)
    return digest("inspect sample", response["response_id"], *judge)[:22]


def _turns(uid: str, messages: Sequence[Message]) -> list[Document]:
    """Return the turns of the conversation as sent."""
    turns = []
    for index, (role, text) in enumerate(messages):
        turn = {"id": f"{uid}-{index}", "role": role, "content": text}
        if role == "user":
            turn["source"] = "input"
        turns.append(turn)
    return turns


def _response_turn(uid: str, subject: _LogSubject, response: Row) -> Document | None:
    """Return the turn of the response; None if it failed."""
    if response["text"] is None:
        return None
    return {
        "id": f"{uid}-response",
        "role": "assistant",
        "content": response["text"],
        "source": "generate",
        "model": response["served_model"] or subject.served_as,
    }


def _output(
    subject: _LogSubject,
    response: Row,
    response_turn: Document | None,
    cause: str | None,
) -> Document:
    """Return Inspect's `ModelOutput`; a failed response has a cause."""
    usages = _sums_of([(subject.model, _usage_of(response))])
    choice = {
        "message": response_turn or {"role": "assistant", "content": ""},
        "stop_reason": _STOP_REASONS.get(response["status"], "unknown" if cause else "stop"),
    }
    return {
        "model": response["served_model"] or subject.served_as,
        "completion": response["text"] or "",
        "choices": [choice],
        "usage": usages.get(subject.model),
        "time": response["latency_s"],
        "error": cause,
    }


def _summary_of(sample: Document) -> Document:
    """Return the entry of a sample in the list of samples; long texts are cut."""
    summary = {
        **sample,
        "input": "",
        "scores": {},
        "completed": True,
    }
    del summary["messages"]
    del summary["output"]
    for turn in sample["input"]:
        if turn["role"] == "user":  # the last one is shown
            summary["input"] = turn["content"][:_MOST_SHOWN]
    for name, score in sample["scores"].items():
        explanation = score["explanation"][:_MOST_SHOWN]
        summary["scores"][name] = {"value": score["value"], "explanation": explanation}
    if sample["error"]:
        summary["error"] = sample["error"]["message"]
    return summary


def _scores(criteria: Sequence[Row], scores: Sequence[Row]) -> dict[str, Document]:
    """Return each score by its name; the first one carries the criteria."""
    documents: dict[str, Document] = {}
    for score in scores:
        document = {
            "value": score["value"],
            "explanation": "",
            "reason": None,
            "metadata": {},
        }
        if score["value"] is None:
            # Inspect leaves a sample with NaN out of all metrics.
            document["value"] = math.nan
            document["reason"] = _reason_of(criteria)
            document["metadata"] = _columns(score, ("value_lower", "value_upper"))
        if not documents:
            document["explanation"] = explanation_of(criteria)
            document["metadata"]["criteria"] = [
                _columns(row, _CRITERION_COLUMNS) for row in criteria
            ]
        documents[score["score_name"]] = document
    return documents


def _reason_of(criteria: Sequence[Row]) -> str | None:
    """Return why there is no score: criteria that are not judged, or failed calls of the judge."""
    undecided = {row["status"] for row in criteria} - set(DECIDED)
    if not undecided:
        return None
    return "not_judged" if undecided == {"not_judged"} else "grader_failed"


def explanation_of(criteria: Sequence[Row]) -> str:
    """Return a Markdown table of the criteria, with their verdicts and explanations."""
    lines = ["| Verdict | Weight | Criterion | Explanation |", "| --- | --- | --- | --- |"]
    for row in criteria:
        status = row["status"].replace("_", " ")
        weight = "" if row["weight"] is None else f"{row['weight']:g}"
        explanation = _as_cell(row["explanation"] or row["error"] or "")
        lines.append(f"| {status} | {weight} | {_as_cell(row['title'])} | {explanation} |")
    return "\n".join(lines)


def _as_cell(text: str) -> str:
    """Return a text for a cell of a table, with the special characters of Markdown escaped.

    Inspect View escapes HTML itself.
    """
    return re.sub(r"([\\`*_\[\]|~$])", r"\\\1", " ".join(text.split()))


def _usage_of(row: Row) -> Document:
    """Return the usage of one call, of a response or of a verdict, as Inspect's `ModelUsage`.

    Verdicts have no reasoning tokens. If the provider reported no tokens, it is only the cost.
    `input_tokens` excludes tokens from the provider's cache, which are in
    `input_tokens_cache_read`.
    """
    prompt_tokens = row["prompt_tokens"]
    completion_tokens = row["completion_tokens"]
    usage = {"total_cost": row["cost_usd"]}
    if prompt_tokens is not None and completion_tokens is not None:
        usage["input_tokens"] = prompt_tokens - (row["cached_tokens"] or 0)
        usage["output_tokens"] = completion_tokens
        usage["total_tokens"] = prompt_tokens + completion_tokens
        usage["input_tokens_cache_read"] = row["cached_tokens"]
        usage["reasoning_tokens"] = row.get("reasoning_tokens")
    return usage


def _sums_of(usages: Iterable[tuple[str, Document]]) -> dict[str, Document]:
    """Return the sums of usages by name, without names that have no tokens.

    One unknown cost makes a sum unknown.
    """
    sums: dict[str, Document] = {}
    for name, usage in usages:
        total = sums.setdefault(name, {"total_cost": 0.0})
        costs = (total["total_cost"], usage["total_cost"])
        for column, value in usage.items():
            if column != "total_cost" and value is not None:
                total[column] = total.get(column, 0) + value
        # Adding up leaves digits that are not in the costs.
        total["total_cost"] = None if None in costs else round(sum(costs), 15)
    return {name: total for name, total in sums.items() if "total_tokens" in total}
