"""Prefect records a run where a server is known and there is work; elsewhere a flow is a plain function."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from flows.cli.main import main
from flows.job_flow import batch_task, job_flow
from flows.pending import has_work
from flows.report_basis import basis_of, forget_basis, is_up_to_date, note_basis, whole_of
from flows.run.arguments import Arguments
from flows.run.config import load_job
from flows.run.recording import be_patient, give_up_recording, has_given_up, is_recorded, patience_s, recording
from flows.server.known_server import may_know_a_server
from flows.server.settings_files import settings_files
from tasks.config.job import Job
from tasks.config.settings import Limits
from tasks.rules.errors import PipelineError
from tasks.run.writing import StageReport
from tests.builders import job_on
from tests.faults.server import FaultServer
from warehouse import Warehouse

HEAVY = {"prefect", "litellm", "great_expectations", "datasets", "altair", "sklearn"}
_MODULES = "import json, sys; from flows.cli.main import main; code = main(json.loads(sys.argv[1])); " + (
    f"print(code, sorted({HEAVY!r} & set(sys.modules)))"
)


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which no server is known."""
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_a_server_a_flow_is_a_plain_function(alone: Path) -> None:
    @job_flow("plain")
    async def work(job: Job) -> StageReport:
        return StageReport("judge", rows=7)

    assert not is_recorded()
    assert asyncio.run(work(job_on("sample", alone))).rows == 7


def test_a_server_in_the_environment_records_unless_it_was_decided_otherwise(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    assert is_recorded()
    with recording(False):
        assert not is_recorded()
    assert is_recorded()


def test_a_batch_that_crashes_is_run_once_more_and_one_that_says_why_is_not(
    alone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    errors: list[Exception] = []

    @batch_task(retries=1)
    async def batch(label: str) -> StageReport:
        if errors:
            raise errors.pop()
        return StageReport("judge", rows=1)

    errors += [ValueError("a bug")]
    assert asyncio.run(batch.named("judge a 1", "a")()).rows == 1
    assert "judge a 1 is run again after ValueError: a bug" in capsys.readouterr().err
    errors += [ValueError("a bug"), ValueError("a bug")]
    with pytest.raises(ValueError, match="a bug"):
        asyncio.run(batch.named("judge a 1", "a")())
    errors += [PipelineError("the file is gone")]
    with pytest.raises(PipelineError, match="the file is gone"):
        asyncio.run(batch.named("judge a 1", "a")())
    assert errors == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("prefect/profiles.toml", '[profiles.team]\nPREFECT_API_URL = "http://127.0.0.1:1/api"\n'),
        ("prefect.toml", '[api]\nurl = "http://127.0.0.1:1/api"\n'),
        (".env", "PREFECT_API_URL=http://127.0.0.1:1/api\n"),
        ("pyproject.toml", '[tool.prefect.api]\nurl = "http://127.0.0.1:1/api"\n'),
    ],
)
def test_a_server_that_a_settings_file_could_name_is_asked_for(alone: Path, file: str, text: str) -> None:
    assert not may_know_a_server()
    (alone / file).parent.mkdir(exist_ok=True)
    (alone / file).write_text(text, encoding="utf-8")
    assert may_know_a_server()


def test_files_that_prefect_reads_are_known_to_all_who_ask(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (alone / "pyproject.toml").write_text("[tool.ruff]\n", encoding="utf-8")
    (alone / ".env").write_text("OPENAI_API_KEY=k\n", encoding="utf-8")
    assert settings_files() == [Path(".env")]
    assert not may_know_a_server()
    (alone / "team.toml").write_text('[profiles.team]\nPREFECT_API_URL = "http://127.0.0.1:1/api"\n', encoding="utf-8")
    monkeypatch.setenv("PREFECT_PROFILES_PATH", str(alone / "team.toml"))
    assert settings_files() == [alone / "team.toml", Path(".env")]
    assert may_know_a_server()


def test_recording_is_given_up_once_and_until_the_next_run(alone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    give_up_recording("nothing is recorded")
    assert capsys.readouterr().err == ""
    with recording(True):
        give_up_recording("the server is gone")
        give_up_recording("the server is gone")
        assert not is_recorded()
    assert has_given_up()
    assert capsys.readouterr().err.count("the server is gone; the rest of this run is not recorded in Prefect") == 1
    with recording(True):
        assert is_recorded()


def test_only_a_task_that_nothing_waits_for_is_patient_with_a_server() -> None:
    async def in_background() -> float:
        be_patient()
        return patience_s()

    async def both() -> tuple[float, float]:
        background = await asyncio.create_task(in_background())
        return background, patience_s()

    background_s, own_s = asyncio.run(both())
    assert 0 < own_s < background_s


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_said_without_its_password_and_records_nothing(alone: Path) -> None:
    code = "from flows.server.known_server import known_server; print(known_server())"
    named = {"PREFECT_API_URL": "http://me:a-password@127.0.0.1:1/api"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | named, capture_output=True, text=True, check=True
    )
    assert done.stdout == "None\n"
    assert "Prefect's server at 127.0.0.1:1 does not answer; this run is not recorded there" in done.stderr
    assert "a-password" not in done.stderr


@pytest.mark.slow
def test_a_finished_run_imports_nothing_heavy_also_where_a_server_is_named(alone: Path) -> None:
    with FaultServer() as server:
        model = {"name": "hosted_vllm/candidate", "api_base": server.api_base}
        settings = {
            "dataset": {"source": "sample"},
            "models": [{**model, "label": "a"}],
            "judges": [{**model, "label": "j"}],
        }
        (alone / "prbench.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        job = load_job(Arguments())
        assert has_work(job, "evaluate")
        assert main(["run", "-q"]) == 0
        n_calls = len(server.book)
        assert n_calls > 0
        assert not has_work(job, "evaluate")
        assert has_work(job, "night")
        assert is_up_to_date(job)
        named = {"PREFECT_API_URL": "http://127.0.0.1:1/api"}
        for command in ("run", "judge", "select-hard"):
            done = subprocess.run(
                [sys.executable, "-c", _MODULES, json.dumps([command, "-q"])], env=os.environ | named,
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            assert done.stdout.splitlines()[-1] == "0 []", (command, done.stderr)
        assert len(server.book) == n_calls


def test_a_report_is_up_to_date_until_something_else_than_a_run_is_stored(alone: Path) -> None:
    job = job_on("sample", alone)
    warehouse = Warehouse(job.warehouse)
    warehouse.publish()
    job.report_index.parent.mkdir(parents=True)
    job.report_index.write_text("a report", encoding="utf-8")
    assert not is_up_to_date(job)
    note_basis(job, basis_of(whole_of(job)))
    assert is_up_to_date(job)
    capped = job.settings.model_copy(update={"limits": Limits(max_usd=1.0)})
    assert is_up_to_date(job.model_copy(update={"settings": capped}))
    assert not is_up_to_date(job.model_copy(update={"vintage": "later"}))
    warehouse.write("labels", [{"benchmark": "prbench", "field": "f", "kind": "k", "label": "l"}])
    warehouse.publish()
    assert not is_up_to_date(job)
    note_basis(job, basis_of(whole_of(job)))
    forget_basis(job)
    assert not is_up_to_date(job)


def test_a_report_of_which_a_page_is_gone_or_harmed_is_not_up_to_date(alone: Path) -> None:
    job = job_on("sample", alone)
    Warehouse(job.warehouse).publish()
    folder = job.report_index.parent
    (folder / "data").mkdir(parents=True)
    pages = [job.report_folder / "index.html", job.report_index, folder / "data/task.js"]
    for page in pages:
        page.write_text("a page", encoding="utf-8")
    (folder / "report-files.txt").write_text("data/task.js\nindex.html\n", encoding="utf-8")
    note_basis(job, basis_of(whole_of(job)))
    assert is_up_to_date(job)

    (folder / "data/of-somebody.txt").write_text("not listed", encoding="utf-8")
    assert is_up_to_date(job)
    pages[2].write_text("a pag", encoding="utf-8")
    assert not is_up_to_date(job)
    pages[2].write_text("a page", encoding="utf-8")
    for page in pages:
        page.unlink()
        assert not is_up_to_date(job), page
        page.write_text("a page", encoding="utf-8")
    assert is_up_to_date(job)


def test_a_report_is_not_up_to_date_when_the_ledger_has_deleted_replies(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_on("sample", alone)
    Warehouse(job.warehouse).publish()
    job.report_index.parent.mkdir(parents=True)
    job.report_index.write_text("a page", encoding="utf-8")
    (job.report_folder / "index.html").write_text("a page", encoding="utf-8")
    note_basis(job, basis_of(whole_of(job)))
    assert is_up_to_date(job)

    monkeypatch.setattr("flows.report_basis.deletion_mark", lambda folder: 1_000)
    assert not is_up_to_date(job)


def test_a_cancellation_while_the_server_hangs_begins_no_work(
    prefect_api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import httpx

    from flows.recorded import runs

    begun: list[str] = []

    async def work() -> StageReport:
        begun.append("work")
        return StageReport("stage")

    async def hung(**_: object) -> None:
        """What Prefect does: cancelled before it began the work, it tries to say so to the server."""
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(0)
        raise httpx.ConnectError("the server does not answer")

    monkeypatch.setattr(runs, "_flow", lambda *_: hung)
    with recording(True), pytest.raises(asyncio.CancelledError):
        asyncio.run(runs.run_flow("a-flow", work))
    assert begun == []
