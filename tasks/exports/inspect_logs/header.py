"""What an Inspect log says of the whole evaluation: what was evaluated, by whom it was judged, and the results."""

import importlib.metadata
from collections.abc import Mapping, Sequence
from typing import Any

from tasks.exports.inspect_logs.sample import GRADER
from tasks.exports.inspect_logs.usage import Usage
from tasks.rules.identity import digest

Document = dict[str, Any]
Row = Mapping[str, Any]
NOTICE = "Benchmark data with answers to it: do not train models on it. Markers against that (canaries) are left out."
_PACKAGE = "prbench-pipeline"
_SAID = (
    "judge", "judge_config_hash", "template_hash", "grading", "rubric", "judge_trial", "model_config_hash", "vintage",
    "dataset_revision",
)  # fmt: skip
_METRICS = {
    "mean": "mean_score", "stderr": "standard_error", "ci_low": "ci_low", "ci_high": "ci_high", "coverage": "coverage",
}  # fmt: skip
"""Metric -> the column of the leaderboard. The first two are named as in Inspect."""
_OF_TASKS = ("coverage", "n_tasks", "n_tasks_wanted", "is_complete", "mean_lower", "mean_upper")


def spec_of(model_run: Row, title: str, task_ids: Sequence[str]) -> Document:
    """What was evaluated: Inspect's `EvalSpec`. Ids are hashes of what the log is about."""
    benchmark, revision = model_run["benchmark"], model_run["dataset_revision"]
    return {
        "eval_id": eval_id_of(model_run),
        "run_id": digest("inspect run", *_identity(model_run))[:22],
        "created": model_run["first_answered_at"].isoformat(),
        "task": benchmark,
        # Of logs with one task id, Inspect View takes all but the last for attempts that were retried.
        "task_id": digest("inspect task", *_identity(model_run))[:22],
        "task_version": revision,
        "task_display_name": title,
        "solver": "generate",
        "tags": [model_run["judge"], model_run["vintage"]],
        "dataset": {"name": title, "samples": len(task_ids), "sample_ids": list(task_ids), "shuffled": False},
        "model": model_run["model"],
        "model_roles": {GRADER: {"model": model_run["judge"]}},
        "config": {"epochs": model_run["n_trials"], "epochs_reducer": ["mean"]},
        "packages": {_PACKAGE: importlib.metadata.version(_PACKAGE)},
        "metadata": {
            **{name: model_run[name] for name in _SAID},
            "may_hide_failures": model_run["may_hide_failures"],
            "notice": NOTICE,
        },
    }


def plan_of() -> Document:
    """How answers were made: one generation on the conversation."""
    return {"name": "plan", "steps": [{"solver": "generate"}]}


def eval_id_of(model_run: Row) -> str:
    """The id of a log."""
    return digest("inspect eval", *_identity(model_run))[:22]


def results_of(figures: Sequence[Row], n_samples: int, n_failed: int, n_scored: int) -> Document:
    """The results: for each score its figures on each split, as the leaderboard shows them.

    Args:
        figures: the rows of the leaderboard, the main score first; a figure that is not known has no metric.
        n_samples: how many samples the log has.
        n_failed: those of them without an answer.
        n_scored: those with a score.
    """
    splits = list(dict.fromkeys(row["split"] for row in figures))
    scores = []
    for name in dict.fromkeys(row["score_name"] for row in figures):
        of_score = [row for row in figures if row["score_name"] == name]
        metrics: dict[str, Document] = {}
        for row in of_score:
            metrics |= _metrics(row, has_group=len(splits) > 1)
        scores.append({
            "name": name, "scorer": name, "scored_samples": n_scored, "unscored_samples": n_samples - n_scored,
            "metrics": metrics, "metadata": {row["split"]: {each: row[each] for each in _OF_TASKS} for row in of_score},
        })  # fmt: skip
    return {"total_samples": n_samples, "completed_samples": n_samples - n_failed, "scores": scores}


def stats_of(model_run: Row, completed_at: str, usages: Mapping[str, Usage], judged: Usage | None) -> Document:
    """The usage of all samples; when the first answer and the last verdict were stored."""
    return {
        "started_at": model_run["first_answered_at"].isoformat(),
        "completed_at": completed_at,
        "model_usage": dict(usages),
        "role_usage": {GRADER: judged} if judged else {},
    }


def _metrics(row: Row, *, has_group: bool) -> dict[str, Document]:
    """The figures of one row that are known; of several splits each is a group.

    Without a mean there are none: Inspect View shows a log's first metric as its score, whatever that is.
    """
    found: dict[str, Document] = {}
    if row["mean_score"] is None:
        return found
    # Of a mean below 0 the leaderboard shows 0.
    unclipped = {"unclipped_mean": "raw_mean_score"} if row["raw_mean_score"] != row["mean_score"] else {}
    for name, column in {**_METRICS, **unclipped}.items():
        if row[column] is not None:
            label = f"{row['split']} {name}" if has_group else name
            found[label] = {"name": name if has_group else label, "value": row[column]}
            if has_group:
                found[label]["group"] = row["split"]
    return found


def _identity(model_run: Row) -> list[Any]:
    return [model_run[name] for name in ("benchmark", "model", *_SAID)]
