"""Reads logs with Inspect itself, and prints what it finds as JSON. Run by an interpreter that has `inspect_ai`."""

import json
import sys
from typing import Any

from inspect_ai.log import list_eval_logs, read_eval_log, read_eval_log_sample_summaries


def content(path: str) -> dict[str, Any]:
    """Return the content of one log as Inspect reads it."""
    log = read_eval_log(path)
    return {
        "status": log.status, "model": log.eval.model, "judge": (log.eval.metadata or {})["judge"],
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
    print(json.dumps([content(info.name) for info in list_eval_logs(sys.argv[1])]))
