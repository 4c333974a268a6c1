"""Inspect itself reads the logs, comes to the same results, and shows them in Inspect View.

It cannot be installed beside everything else here (it needs an older fsspec than s3fs does), so it runs by an
interpreter of its own, which uv makes.
"""

import importlib.util
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasks.exports import export_inspect
from tests.tasks.exports.inspected import HARD, TASKS, job_of_world, values_of

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
    splits = json.dumps({"finance": TASKS, "finance_hard": HARD})
    done = subprocess.run([*interpreter, str(READER), str(folder), splits], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
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


def test_inspects_own_mean_and_standard_error_are_ours(read: list[dict[str, Any]]) -> None:
    for log in read:
        for split, figures in log["recomputed"].items():
            for name, value in figures.items():
                assert log["metrics"][f"{split} {name}"] == pytest.approx(value, abs=1e-12)


def test_inspect_sees_failures_as_errors_and_as_samples_without_a_score(read: list[dict[str, Any]]) -> None:
    by_name = {(log["model"], log["judge"]): log["samples"] for log in read}
    failed = [each for each in by_name["poor", "strict"] if each["error"]]
    assert [("t7", "timeout: no reply in 60 s")] * 2 == [(each["id"], each["error"]) for each in failed]
    undecided = [each for each in by_name["good", "strict"] if each["reasons"].get("score")]
    assert [("t2", 1, "grader_failed")] == [(each["id"], each["epoch"], each["reasons"]["score"]) for each in undecided]
    assert ["met", "parse_error", "unmet"] == undecided[0]["criteria"]


def test_inspect_sees_conversation_answer_verdicts_and_cost(read: list[dict[str, Any]]) -> None:
    (samples,) = [log["samples"] for log in read if (log["model"], log["judge"]) == ("good", "mild")]
    shown = samples[1]
    assert ["user", "assistant", "user", "assistant"] == [role for role, _ in shown["messages"]]
    assert "An answer." == shown["answer"] == shown["messages"][-1][1]
    words = {1.0: "met", 0.0: "unmet"}
    assert [words[value] for value in values_of("good", "mild", 1, 1) if value is not None] == shown["criteria"]
    assert {"good": 0.001, "mild": 0.003} == shown["cost"]


@pytest.fixture
def address(interpreter: list[str], folder: Path) -> Iterator[str]:
    """Where Inspect View shows the logs."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    code = "from inspect_ai._cli.main import main; main()"
    started = subprocess.Popen(
        [*interpreter, "-c", code, "view", "start", "--log-dir", str(folder), "--port", str(port)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        for _ in range(300):
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert started.poll() is None, "Inspect View ended"
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        started.terminate()
        started.wait()


def test_inspect_view_shows_every_log_and_its_answers_and_verdicts(address: str, folder: Path) -> None:
    api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    (log,) = folder.glob("prbench_good_mild_*.eval")
    with api.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"{address}/#/logs")
        for path in folder.iterdir():
            page.get_by_text(path.name).first.wait_for()
        sample = f"{address}/#/logs/{log.name}/samples/sample/t1/1"
        page.goto(f"{sample}/messages")
        page.get_by_text("An answer.").first.wait_for()
        page.goto(f"{sample}/scoring")
        page.get_by_role("cell", name="t1 needs point 2").wait_for()
        # An explanation is text, whatever it holds.
        assert page.get_by_role("cell", name="because of 1.0 | <b>it</b>").first.is_visible()
        browser.close()
