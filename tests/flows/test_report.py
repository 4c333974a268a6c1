"""The report at the end of a run, and the command that writes and serves it."""

import signal
import urllib.request
from pathlib import Path

import pytest

from tasks.config.job import Job
from tests.flows.conftest import Command
from tests.kit import Patch, copied

pytestmark = pytest.mark.slow


@pytest.fixture
def filled(sample_job: Job, tmp_path: Path) -> Command:
    """The command in a folder with responses and labels, no model to call, and the report
    enabled.
    """
    copied(sample_job, tmp_path / "data")
    command = Command(tmp_path)
    command.configure(dataset={"source": "sample"}, report={"enabled": True})
    return command


def test_a_report_that_cannot_be_written_fails_the_run_and_loses_no_results(
    filled: Command,
) -> None:
    taken = filled.folder / "pages"
    taken.mkdir()
    (taken / "thesis.tex").write_text("mine")
    filled.configure(dataset={"source": "sample"}, report={"folder": str(taken)})

    done = filled.json("run", "--warehouse", "data", "-q", code=1)

    warning = (
        f"no report: {taken}: has files that are not a report; name an empty folder or a new one"
    )
    assert [warning] == done["stages"][-1]["warnings"]
    assert [path.name for path in taken.iterdir()] == ["thesis.tex"]
    assert filled.sql("select count(*) as n from leaderboard where is_primary")[0]["n"] == 2


def test_a_served_report_is_there_until_ctrl_c(filled: Command, monkeypatch: Patch) -> None:
    monkeypatch.setenv("BROWSER", "true")
    process = filled.start("report", "--serve", "--port", "0", "--warehouse", "data")
    try:
        assert process.stderr is not None
        address = next(line for line in process.stderr if "http://" in line).split()[0]
        with urllib.request.urlopen(address) as page:
            assert "Leaderboard" in page.read().decode()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 0
    finally:
        process.kill()
