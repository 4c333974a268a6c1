"""Reads logs with Inspect itself, and prints what it finds as JSON. Run by an interpreter that has `inspect_ai`."""

import json
import math
import sys
from collections import defaultdict
from typing import Any

from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log, read_eval_log_sample_summaries
from inspect_ai.scorer import SampleScore, Score, mean, mean_score, stderr


def recomputed(log: EvalLog, tasks: set[str]) -> dict[str, float]:
    """Inspect's own mean and standard error of the main score over some tasks, of each the mean over its trials."""
    of_task: dict[str, list[Score]] = defaultdict(list)
    for sample in log.samples or ():
        score = (sample.scores or {}).get("score")
        if str(sample.id) in tasks and score is not None and not math.isnan(score.as_float()):
            of_task[str(sample.id)].append(score)
    reduced = [SampleScore(score=mean_score()(scores)) for scores in of_task.values()]
    return {"mean": float(mean()(reduced)), "stderr": float(stderr()(reduced))}


def found(path: str, splits: dict[str, list[str]]) -> dict[str, Any]:
    """Return the content of one log as Inspect reads it."""
    log = read_eval_log(path)
    assert log.results is not None
    (score, *_) = log.results.scores
    return {
        "status": log.status, "model": log.eval.model, "judge": (log.eval.metadata or {})["judge"],
        "metrics": {name: metric.value for name, metric in score.metrics.items()},
        "recomputed": {split: recomputed(log, set(tasks)) for split, tasks in splits.items()},
        "samples": [
            {
                "id": sample.id, "epoch": sample.epoch,
                "error": sample.error.message if sample.error else None,
                "reasons": {name: each.reason for name, each in (sample.scores or {}).items()},
                "criteria": [each["status"] for each in sample.scores["score"].metadata["criteria"]]
                if sample.scores and sample.scores["score"].metadata else [],
            }
            for sample in log.samples or ()
        ],
        "n_summaries": len(read_eval_log_sample_summaries(path)),
    }  # fmt: skip


if __name__ == "__main__":
    folder, splits = sys.argv[1], json.loads(sys.argv[2])
    print(json.dumps([found(info.name, splits) for info in list_eval_logs(folder)]))
