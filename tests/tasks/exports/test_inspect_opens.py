"""Inspect itself reads the logs, and comes to the same results.

It cannot be installed beside everything else here (it needs an older fsspec than s3fs does), so it runs by an
interpreter of its own, which uv makes.
"""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tasks.exports.inspect_logs import export_inspect
from tests.tasks.exports.inspected import TASKS, job_of_world

VERSION = "inspect-ai==0.3.285"
READER = Path(__file__).with_name("inspect_reader.py")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def interpreter() -> list[str]:
    """The command of an interpreter that has Inspect."""
    if importlib.util.find_spec("inspect_ai") is not None:
        return [sys.executable]
    if shutil.which("uv") is None:
        pytest.skip("inspect_ai is not installed, and there is no uv to run it with")
    command = ["uv", "run", "--no-project", "--quiet", "--python", sys.executable, "--with", VERSION, "python"]
    tried = subprocess.run([*command, "-c", "import inspect_ai"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"uv cannot install {VERSION}: {tried.stderr.strip()[-300:]}")
    return command


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("opened")
    export_inspect(job_of_world(folder), folder / "logs")
    return folder / "logs"


@pytest.fixture(scope="module")
def read(interpreter: list[str], folder: Path) -> list[dict[str, Any]]:
    done = subprocess.run([*interpreter, str(READER), str(folder)], capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    documents: list[dict[str, Any]] = json.loads(done.stdout)
    return documents


def test_inspect_reads_every_log_and_sample(read: list[dict[str, Any]]) -> None:
    assert {(model, judge) for model in ("good", "poor") for judge in ("strict", "mild")} == {
        (log["model"], log["judge"]) for log in read
    }
    for log in read:
        assert "success" == log["status"]
        assert [(task, trial) for trial in (1, 2) for task in TASKS] == [
            (each["id"], each["epoch"]) for each in log["samples"]
        ]
        assert 16 == log["n_summaries"]


def test_inspect_sees_failures_as_errors_and_as_samples_without_a_score(read: list[dict[str, Any]]) -> None:
    by_name = {(log["model"], log["judge"]): log["samples"] for log in read}
    failed = [each for each in by_name["poor", "strict"] if each["error"]]
    assert [("t7", "timeout: no reply in 60 s")] * 2 == [(each["id"], each["error"]) for each in failed]
    undecided = [each for each in by_name["good", "strict"] if each["reasons"].get("score")]
    assert [("t2", 1, "grader_failed")] == [(each["id"], each["epoch"], each["reasons"]["score"]) for each in undecided]
    assert ["met", "parse_error", "unmet"] == undecided[0]["criteria"]
