"""Results as logs for Inspect View, one for each model and judge; a sample is a response with its
verdicts.
"""

import importlib.metadata
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import sql
from tasks.assemble import complete_conversations
from tasks.config.job import Job
from tasks.exports.inspect_names import inspect_name, name_of_label
from tasks.exports.tables import refuse_filled
from tasks.rules.conversation import Message
from tasks.rules.errors import UsageError, disk_errors
from tasks.rules.identity import IMPORTED, digest
from tasks.rules.verdict import DECIDED
from tasks.run.judge_configs import templates_by_hash
from tasks.run.missing_work import WantedTasks, wanted_tasks
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse, write_atomically

Row = Mapping[str, Any]
Document = dict[str, Any]
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
_METRICS = {"mean": "mean_score", "stderr": "standard_error"}
"""Inspect's name of a metric -> column of the leaderboard."""
_BESIDE_METRICS = (
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
"""What stands beside the metrics of a score. As metrics, readers of logs would take it for scores.
"""
VERSION = 2
SUFFIX = ".eval"
GRADER = "grader"
"""The name that Inspect gives the judge."""
_STOPPED = {
    "truncated": "max_tokens",
    "context_length": "model_length",
    "refused": "content_filter",
}
_MOST_SHOWN = 1_000
"""Largest number of characters of a text in a summary."""
_OF_TASK = ("field", "topic", "expert", "splits", "decision_types", "economic_pathways")
_OF_RESPONSE = ("response_id", "source", "degraded", "finish_reason", "served_model", "cost_usd")
_OF_CRITERION = (
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
    job: Job, folder: Path, vintage: str | None = None, *, is_scored_only: bool = False
) -> StageReport:
    """Write a log for each model run (a model under a judge) to a folder that is empty or does not
    exist.

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
        wanted = wanted_tasks(job, reader)
        chosen = {
            **wanted.key,
            "vintage": vintage,
            "task_ids": wanted.task_ids,
            "models": job.named_models or (),
            "judges": job.named_judges or (),
        }
        model_runs = reader.rows(sql.read("queries/exports/inspect_model_runs"), chosen)
        if not model_runs:
            raise UsageError(
                f"{folder}: no model has a verdict in this selection; see `prbench status`"
            )
        with disk_errors(folder):
            logs = [_log_of(job, wanted, model_run) for model_run in model_runs]
            n_samples: Counter[bool] = Counter()
            for log_of in logs:
                n_samples += _write_log(
                    reader, wanted, log_of, folder, is_scored_only=is_scored_only
                )
    notes = [f"{len(model_runs)} logs with {n_samples.total()} samples in {folder}"]
    notes.append(f"`inspect view --log-dir {folder}` shows them")
    if n_samples[False]:
        notes.append(
            f"{n_samples[False]} samples have no score; for tools that refuse these, add --scored"
        )
    return StageReport("export", rows=n_samples.total(), notes=notes)


@dataclass(frozen=True)
class _LogOf:
    """What a log is about: a model run, the names of model and judge in Inspect, and the judge's
    template.

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
        """The parameters of the scorer; `grader_template` is the template's hash if its text is
        unknown.
        """
        if self.judge is None:
            return {"judge": self.model_run["judge"]}
        template = self.template or self.model_run["template_hash"]
        return {
            "grader_model": {"model": self.judge},
            "grader_template": template,
            "judge": self.model_run["judge"],
        }


def _log_of(job: Job, wanted: WantedTasks, model_run: Row) -> _LogOf:
    models = {model.label: model.name for model in job.settings.models}
    judges = {judge.label: judge.name for judge in job.settings.judges}
    label = model_run["model"]
    name = None
    if model_run["model_config_hash"] != IMPORTED:
        name = model_run["model_name"] or models.get(label)
    judge = None
    if not model_run["is_imported"]:
        judge_label = model_run["judge"]
        judge_name = model_run["judge_name"] or judges.get(judge_label)
        judge = inspect_name(judge_name) if judge_name else name_of_label(judge_label)
    template = templates_by_hash(job, wanted.benchmark).get(model_run["template_hash"])
    return _LogOf(
        model_run, name, inspect_name(name) if name else name_of_label(label), judge, template
    )


def _write_log(
    reader: Reader, wanted: WantedTasks, log_of: _LogOf, folder: Path, *, is_scored_only: bool
) -> Counter[bool]:
    """Write the log of one model run, and return the numbers of its samples with (True) and without
    a score.
    """
    title = wanted.benchmark.title
    task_ids = list(wanted.task_ids)
    model_run = log_of.model_run
    labels = {"model_label": model_run["model"], "model_name": log_of.litellm_name}
    # Inspect's `EvalSpec`. Ids are hashes of what identifies the log. A response is one generation.
    about = {
        "plan": {"name": "plan", "steps": [{"solver": "generate"}]},
        "eval": {
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
            "model": log_of.model,
            "model_roles": {GRADER: {"model": log_of.grader}},
            "config": {"epochs": model_run["n_trials"], "epochs_reducer": ["mean"]},
            "packages": {"prbench-pipeline": importlib.metadata.version("prbench-pipeline")},
            "metadata": {
                **labels,
                **{name: model_run[name] for name in (*_IDENTITY, "may_hide_failures")},
                "notice": NOTICE,
            },
        },
    }
    primary = wanted.benchmark.primary_score.score_name
    summaries: list[Document] = []
    content = BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED) as log:
        _put(log, "_journal/start.json", {"version": VERSION, **about})
        for sample in _samples(reader, wanted, log_of):
            if is_scored_only and not _is_scored(sample, primary):
                continue
            _put(log, f"samples/{sample['id']}_epoch_{sample['epoch']}.json", sample)
            summaries.append(_summary_of(sample))
        chosen = {"splits": list(wanted.splits), "model_run": model_run["model_run_id"]}
        figures = reader.rows(sql.read("queries/exports/inspect_results"), chosen)
        _put(log, "summaries.json", summaries)
        kinds = ("model_usage", "role_usage")
        usages = {
            kind: _usages(item for each in summaries for item in each[kind].items())
            for kind in kinds
        }
        # The times of the first response and the last verdict, and the usage of all samples.
        completed_at = max((each["completed_at"] for each in summaries), default="")
        stats = {
            "started_at": about["eval"]["created"],
            "completed_at": completed_at,
            **usages,
        }
        results = _results(figures, summaries, primary, log_of.scorer_parameters)
        header = {
            "version": VERSION,
            "status": "success",
            **about,
            "results": results,
            "stats": stats,
        }
        _put(log, "header.json", header)
    # The name contains the id, because different labels may look the same in it. A log gets its
    # name when complete.
    parts = (
        model_run["benchmark"],
        model_run["model"],
        model_run["judge"],
        about["eval"]["eval_id"][:8],
    )
    name = "_".join(re.sub(r"[^A-Za-z0-9.-]+", "-", part)[:40] for part in parts)
    write_atomically(folder / f"{name}{SUFFIX}", content.getvalue())
    return Counter(_is_scored(each, primary) for each in summaries)


def _put(log: ZipFile, name: str, document: Document | Sequence[Document]) -> None:
    """Write a member without its time; NaN is written as `NaN`, with which Inspect marks unscored
    samples.
    """
    log.writestr(ZipInfo(name), json.dumps(document, ensure_ascii=False), ZIP_DEFLATED)


def _samples(reader: Reader, wanted: WantedTasks, log_of: _LogOf) -> Iterator[Document]:
    """Yield the samples of a model run, by task and trial."""
    key = {
        "model_run": log_of.model_run["model_run_id"],
        "primary": wanted.benchmark.primary_score.score_name,
    }
    task_ids = sorted(wanted.task_ids)
    for start in range(0, len(task_ids), _TASKS_AT_ONCE):
        some = task_ids[start : start + _TASKS_AT_ONCE]
        responses = reader.rows(
            sql.read("queries/exports/inspect_responses"), key | {"task_ids": some}
        )
        conversations = complete_conversations(reader, wanted, some)
        for response in responses:
            yield _sample_of(log_of, response, conversations[response["task_id"]].messages)


def _id_of(model_run: Row, what: str) -> str:
    return digest(what, *(model_run[name] for name in ("benchmark", "model", *_IDENTITY)))[:22]


def _results(
    figures: Sequence[Row], summaries: Sequence[Document], primary: str, scorer_parameters: Document
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
        of_split = [each for each in summaries if row["split"] in each["metadata"]["splits"]]
        n_scored = sum(_is_scored(each, primary) for each in of_split)
        scores.append(
            {
                "name": f"{row['split']} {row['score_name']}" if has_splits else row["score_name"],
                "scorer": row["score_name"],
                "scored_samples": n_scored,
                "unscored_samples": len(of_split) - n_scored,
                "params": scorer_parameters,
                "metrics": _metrics_of(row),
                "metadata": {name: row[name] for name in _BESIDE_METRICS},
            }
        )
    n_failed = sum(each["error"] is not None for each in summaries)
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
    columns = dict(_METRICS)
    if row["raw_mean_score"] != row["mean_score"]:
        columns["unclipped_mean"] = (
            "raw_mean_score"  # where the leaderboard shows a mean below 0 as 0
        )
    known = {name: row[column] for name, column in columns.items() if row[column] is not None}
    return {name: {"name": name, "value": value} for name, value in known.items()}


def _sample_of(log_of: _LogOf, response: Row, messages: Sequence[Message]) -> Document:
    """Return a sample: conversation, response, scores with every criterion, usage, and the error of
    a failed response.

    Args:
        log_of: the model run, with the names of model and judge.
        response: the response, or its failure, with the labels of the task, every criterion with
            its verdict, and the scores.
        messages: the conversation as sent.
    """
    criteria = response["criteria"] or ()
    model_run = log_of.model_run
    served_model = response["served_model"] or log_of.served_as
    judge_columns = ("judge", "judge_config_hash", "template_hash", "grading", "judge_trial")
    uid = digest(
        "inspect sample", response["response_id"], *(model_run[name] for name in judge_columns)
    )[:22]
    turns = [
        {
            "id": f"{uid}-{index}",
            "role": role,
            "content": text,
            **({"source": "input"} if role == "user" else {}),
        }
        for index, (role, text) in enumerate(messages)
    ]
    response_message = (
        None
        if response["text"] is None
        else {
            "id": f"{uid}-response",
            "role": "assistant",
            "content": response["text"],
            "source": "generate",
            "model": served_model,
        }
    )
    calls = [row for row in criteria if row["status"] not in {"not_judged", "no_response"}]
    cause = (
        f"{response['status']}: {response['error']}"
        if response["error"]
        else str(response["status"])
    )
    sampled = (log_of.model, _usage_of(response))
    judged = list(map(_usage_of, calls))
    return {
        "id": response["task_id"],
        "epoch": response["trial"],
        "input": turns,
        "target": [],
        "messages": [*turns, *([response_message] if response_message else [])],
        "output": {
            "model": served_model,
            "completion": response["text"] or "",
            "choices": [
                {
                    "message": response_message or {"role": "assistant", "content": ""},
                    "stop_reason": _STOPPED.get(
                        response["status"], "stop" if response_message else "unknown"
                    ),
                }
            ],
            "usage": _usages([sampled]).get(sampled[0]),
            "time": response["latency_s"],
            "error": None if response_message else cause,
        },
        "scores": _scores(criteria, response["scores"] or ()) if response_message else {},
        "metadata": {name: response[name] for name in (*_OF_TASK, *_OF_RESPONSE)},
        # Model and judge may have the same name; then their usage is added up.
        "model_usage": _usages([sampled, *((log_of.grader, usage) for usage in judged)]),
        "role_usage": _usages((GRADER, usage) for usage in judged),
        "completed_at": (
            max(row["created_at"] for row in (response, *criteria) if row["created_at"]).isoformat()
        ),
        "uuid": uid,
        "error": (
            None
            if response_message
            else dict.fromkeys(("message", "traceback", "traceback_ansi"), cause)
        ),
    }


def _summary_of(sample: Document) -> Document:
    """Return the entry of a sample in the list of samples; long texts are cut."""
    prompt = next(
        (turn["content"] for turn in reversed(sample["input"]) if turn["role"] == "user"), ""
    )
    scores = {
        name: {"value": score["value"], "explanation": score["explanation"][:_MOST_SHOWN]}
        for name, score in sample["scores"].items()
    }
    kept = {name: value for name, value in sample.items() if name not in {"messages", "output"}}
    error = sample["error"] and sample["error"]["message"]
    return {
        **kept,
        "input": prompt[:_MOST_SHOWN],
        "scores": scores,
        "error": error,
        "completed": True,
    }


def _scores(criteria: Sequence[Row], scores: Sequence[Row]) -> dict[str, Document]:
    """Return each score by its name; the first one carries the criteria."""
    # Why there is no score: criteria that are not judged, or failed calls of the judge.
    undecided = {row["status"] for row in criteria} - set(DECIDED)
    reason = (
        None if not undecided else "not_judged" if undecided == {"not_judged"} else "grader_failed"
    )
    documents = {}
    for index, score in enumerate(scores):
        value = score["value"]
        bounds = (
            {}
            if value is not None
            else {name: score[name] for name in ("value_lower", "value_upper")}
        )
        more = (
            {"criteria": [{name: row[name] for name in _OF_CRITERION} for row in criteria]}
            if index == 0
            else {}
        )
        documents[score["score_name"]] = {
            # Inspect leaves a sample with NaN out of all metrics.
            "value": float("nan") if value is None else value,
            "explanation": explanation_of(criteria) if index == 0 else "",
            "reason": reason if value is None else None,
            "metadata": {**bounds, **more},
        }
    return documents


def explanation_of(criteria: Sequence[Row]) -> str:
    """Return a Markdown table of the criteria, with their verdicts and explanations."""
    lines = ["| Verdict | Weight | Criterion | Explanation |", "| --- | --- | --- | --- |"]
    for row in criteria:
        status = row["status"].replace("_", " ")
        weight = "" if row["weight"] is None else f"{row['weight']:g}"
        explanation = _text(row["explanation"] or row["error"] or "")
        lines.append(f"| {status} | {weight} | {_text(row['title'])} | {explanation} |")
    return "\n".join(lines)


def _text(text: str) -> str:
    """Return a text for one cell of a table, with all characters escaped that Markdown would
    interpret.

    Inspect View escapes HTML itself.
    """
    return re.sub(r"([\\`*_\[\]|~$])", r"\\\1", " ".join(text.split()))


def _usage_of(row: Row) -> Document:
    """Return the usage of one call, as Inspect's `ModelUsage`; only the cost if the provider
    reported no tokens.

    `input_tokens` excludes tokens from the provider's cache, which are in
    `input_tokens_cache_read`.
    """
    prompt, cached, completion = (
        row[name] for name in ("prompt_tokens", "cached_tokens", "completion_tokens")
    )
    return {"total_cost": row["cost_usd"]} | (
        {}
        if prompt is None or completion is None
        else {
            "input_tokens": prompt - (cached or 0),
            "output_tokens": completion,
            "total_tokens": prompt + completion,
            "input_tokens_cache_read": cached,
            "reasoning_tokens": row.get("reasoning_tokens"),
        }
    )


def _usages(usages: Iterable[tuple[str, Document]]) -> dict[str, Document]:
    """Return the sums of usages by name, without names that have no tokens; one unknown cost makes
    a sum unknown.
    """
    sums: dict[str, Document] = {}
    for name, usage in usages:
        before = sums.get(name, {"total_cost": 0.0})
        costs = before["total_cost"], usage["total_cost"]
        known = {
            column: (before.get(column) or 0) + value
            for column, value in usage.items()
            if value is not None
        }
        # Adding up leaves digits that are not in the costs.
        sums[name] = (
            before | known | {"total_cost": None if None in costs else round(sum(costs), 15)}
        )
    return {name: usage for name, usage in sums.items() if "total_tokens" in usage}
