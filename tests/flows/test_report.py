"""The report as a run ends with it, and the command that writes and serves it."""

import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tasks.aggregate import aggregate
from tasks.imports.responses import import_responses
from tasks.imports.verdicts import import_verdicts
from tests.flows.conftest import PROJECT, Command
from tests.flows.prefect_server import browser
from tests.kit import job_on, prepared

pytestmark = pytest.mark.slow
SAMPLES = PROJECT / "warehouse/samples"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with the sample, its answers and labels, and no model to call."""
    job = prepared(job_on("sample", tmp_path_factory.mktemp("filled") / "data"))
    import_responses(job, SAMPLES / "responses.jsonl")
    import_verdicts(job, SAMPLES / "labels.csv")
    aggregate(job)
    return job.warehouse


@pytest.fixture
def filled(warehouse: Path, tmp_path: Path) -> Command:
    """The command beside a warehouse of its own, and a configuration that asks for the report."""
    shutil.copytree(warehouse, tmp_path / "data")
    command = Command(tmp_path)
    command.configure(dataset={"source": "sample"}, report={"enabled": True})
    return command


def links_of(prefect_api: str, run_id: str) -> list[str]:
    wanted = {"artifacts": {"key": {"like_": "report-link"}}}
    answered = browser(prefect_api).post("/artifacts/filter", json=wanted).raise_for_status().json()
    found = [each for each in answered if run_id in (each["description"] or "")]
    return [match for each in found for match in re.findall(r"\]\((.*?)\)", each["data"])]


def test_a_run_ends_with_the_report_of_all_there_is_and_prefect_links_to_it(filled: Command, prefect_api: str) -> None:
    done = filled.json("run", "--model", "brief", "--warehouse", "data", "-q")

    index = filled.folder / "data/report/prbench/index.html"
    assert done["stages"][-1]["stage"] == "report"
    assert "thorough" in index.read_text(encoding="utf-8")
    assert links_of(prefect_api, done["run_id"]) == [index.resolve().as_uri()]


@pytest.mark.usefixtures("prefect_api")
def test_a_report_that_cannot_be_written_fails_the_run_and_takes_nothing_from_it(filled: Command) -> None:
    taken = filled.folder / "pages"
    taken.mkdir()
    (taken / "thesis.tex").write_text("mine")
    filled.configure(dataset={"source": "sample"}, report={"folder": str(taken)})

    done = filled.json("run", "--warehouse", "data", "-q", code=1)

    assert done["stages"][-1]["warnings"] == [
        f"no report: {taken}: holds other files than a report; name an empty folder or a new one"
    ]
    assert [path.name for path in taken.iterdir()] == ["thesis.tex"]
    assert filled.sql("select count(*) as n from leaderboard where is_primary")[0]["n"] == 2


@contextmanager
def serving(command: Command) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    process = command.start("report", "--serve", "--port", "0", "--warehouse", "data")
    try:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "http://" in line)
        yield line.split()[0], process
    finally:
        process.kill()
        process.wait()


def test_a_served_report_answers_only_here_until_ctrl_c(filled: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER", "true")
    with serving(filled) as (address, process):
        with urllib.request.urlopen(address) as page:
            assert "Leaderboard" in page.read().decode()
            assert page.headers["X-Content-Type-Options"] == "nosniff"
        foreign = urllib.request.Request(address, headers={"Host": "evil.example:80"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(foreign)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{address}figures/")

        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 0
