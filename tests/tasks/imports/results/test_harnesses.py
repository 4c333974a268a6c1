"""Logs that the harnesses write while the test runs, where an interpreter has them."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.imports import import_results
from tests.faults.server import FaultServer
from tests.tasks.imports.results.conftest import asked, notes_of
from tests.tasks.imports.results.workload import JUDGE, MODELS, UNANSWERED, Provider, rows, true_score

PYTHON = os.environ.get("PRBENCH_TEST_HARNESSES", "")
WRITES = Path(__file__).parent / "write_logs.py"
README = """---
configs:
- config_name: default
  data_files:
  - split: finance
    path: finance.jsonl
---
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="PRBENCH_TEST_HARNESSES names no Python with inspect-ai and evalscope"),
]


def _written(harness: str, folder: Path) -> Path:
    """The logs of the workload, by a harness that asks a provider over a socket."""
    lines = [_neutral(row) for row in rows()] if harness == "inspect" else rows()
    (folder / "data").mkdir()
    (folder / "data" / "README.md").write_text(README)
    file = folder / "data" / "finance.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with FaultServer(Provider(rows())) as server:
        command = [PYTHON, str(WRITES), harness, server.api_base, str(file), "prbench", str(folder / "log")]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
    assert 0 == done.returncode, done.stderr[-2000:]
    return folder / "log"


def _neutral(row: dict[str, object]) -> dict[str, object]:
    from tasks.rules.conversation import build_messages

    task = load_benchmark("prbench").parse_row(row)
    return {
        "task": task.task_id,
        "messages": [{"role": role, "content": content} for role, content in build_messages(task.conversation)],
        "rubric": [{"id": c.criterion_id, "title": c.title, "weight": c.weight} for c in task.criteria],
    }


@pytest.mark.parametrize("harness", ["inspect", "evalscope"])
def test_a_log_that_a_harness_writes_now_comes_in_with_its_true_scores(job: Job, tmp_path: Path, harness: str) -> None:
    log = _written(harness, tmp_path)
    files = sorted(log.glob("*.eval")) if harness == "inspect" else [log]
    said = notes_of(import_results(job, files, judge=JUDGE))

    assert "equal on 2 tasks" in said
    assert "differs" not in said
    found = asked(job, "select model, task_id, trial, value from scores where score_name = 'score'")
    for row in found:
        given = next(each for each in rows() if each["task"] == row["task_id"])
        true = true_score(row["model"].rpartition("/")[2], given)
        assert row["value"] == (None if true is None else pytest.approx(true))
    n_answers = {"inspect": 2 * len(MODELS) * 3, "evalscope": len(MODELS) * 3 - 1}[harness]
    assert n_answers == len(asked(job, "select * from responses"))
    failed = asked(job, "select distinct task_id from responses where status <> 'ok'")
    assert ([{"task_id": UNANSWERED[1]}] if harness == "inspect" else []) == failed
