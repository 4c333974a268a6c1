"""The report at the end of a run, and the command that writes and serves it."""

import signal
import urllib.request

import pytest

from tasks.config.job import Job
from tests.flows.conftest import Command
from tests.kit import copied

pytestmark = pytest.mark.slow


@pytest.fixture
def command_with_report(sample_job: Job, tmp_path) -> Command:
    """The command in a folder with responses and labels, no model to call, and the report
    enabled.
    """
    copied(sample_job, tmp_path / "data")
    command = Command(tmp_path)
    command.configure(dataset={"source": "sample"}, report={"enabled": True})
    return command


def test_a_report_that_cannot_be_written_fails_the_run_and_loses_no_results(
    command_with_report,
):
    folder = command_with_report.folder / "pages"
    folder.mkdir()
    (folder / "thesis.tex").write_text("mine")
    command_with_report.configure(
        dataset={"source": "sample"}, report={"folder": str(folder)}
    )

    run = command_with_report.json("run", "--warehouse", "data", "-q", code=1)

    assert run["stages"][-1]["warnings"] == [
        f"no report: {folder}: has files that are not a report; name an empty folder or a new one"
    ]
    assert [path.name for path in folder.iterdir()] == ["thesis.tex"]
    assert len(command_with_report.sql("from leaderboard where is_primary")) == 2


def test_a_served_report_is_there_until_ctrl_c(command_with_report, monkeypatch):
    monkeypatch.setenv("BROWSER", "true")
    process = command_with_report.start(
        "report",
        "--serve",
        "--port",
        "0",
        "--warehouse",
        "data",
    )
    try:
        assert process.stderr is not None
        address = next(line for line in process.stderr if "http://" in line).split()[
            0
        ]
        with urllib.request.urlopen(address) as page:
            assert "Leaderboard" in page.read().decode()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 0
    finally:
        process.kill()
