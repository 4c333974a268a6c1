"""The report at the end of a run, and the command that writes and serves it."""

import re
import shutil
import signal
import urllib.request
from pathlib import Path

import pytest

from tasks.aggregate import aggregate
from tasks.imports.responses import import_responses
from tasks.imports.verdicts import import_verdicts
from tests.flows.conftest import PROJECT, Command
from tests.flows.prefect_server import artifacts_of
from tests.kit import Patch, job_on, prepared

pytestmark = pytest.mark.slow
SAMPLES = PROJECT / "warehouse/samples"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with the sample, its responses and labels, and no model to call."""
    job = prepared(job_on("sample", tmp_path_factory.mktemp("filled") / "data"))
    import_responses(job, SAMPLES / "responses.jsonl")
    import_verdicts(job, SAMPLES / "labels.csv")
    aggregate(job)
    return job.warehouse


@pytest.fixture
def filled(warehouse: Path, tmp_path: Path) -> Command:
    """The command in a folder with a warehouse of its own, and a configuration with the report enabled."""
    shutil.copytree(warehouse, tmp_path / "data")
    command = Command(tmp_path)
    command.configure(dataset={"source": "sample"}, report={"enabled": True})
    return command


def test_a_run_ends_with_the_report_of_all_there_is_and_prefect_links_to_it(filled: Command, prefect_api: str) -> None:
    done = filled.json("run", "--model", "brief", "--warehouse", "data", "-q")

    index = filled.folder / "data/report/prbench/index.html"
    assert "report" == done["stages"][-1]["stage"]
    assert "thorough" in index.read_text(encoding="utf-8")
    (link,) = artifacts_of(prefect_api, "report-link", done["run_id"])
    assert [index.resolve().as_uri()] == re.findall(r"\]\((.*?)\)", link)


@pytest.mark.usefixtures("prefect_api")
def test_a_report_that_cannot_be_written_fails_the_run_and_loses_no_results(filled: Command) -> None:
    taken = filled.folder / "pages"
    taken.mkdir()
    (taken / "thesis.tex").write_text("mine")
    filled.configure(dataset={"source": "sample"}, report={"folder": str(taken)})

    done = filled.json("run", "--warehouse", "data", "-q", code=1)

    warning = f"no report: {taken}: has files that are not a report; name an empty folder or a new one"
    assert [warning] == done["stages"][-1]["warnings"]
    assert ["thesis.tex"] == [path.name for path in taken.iterdir()]
    assert 2 == filled.sql("select count(*) as n from leaderboard where is_primary")[0]["n"]


def test_a_served_report_is_there_until_ctrl_c(filled: Command, monkeypatch: Patch) -> None:
    monkeypatch.setenv("BROWSER", "true")
    process = filled.start("report", "--serve", "--port", "0", "--warehouse", "data")
    try:
        assert process.stderr is not None
        address = next(line for line in process.stderr if "http://" in line).split()[0]
        with urllib.request.urlopen(address) as page:
            assert "Leaderboard" in page.read().decode()
        process.send_signal(signal.SIGINT)
        assert 0 == process.wait(timeout=120)
    finally:
        process.kill()
