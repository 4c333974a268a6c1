"""Runs that the project's own Prefect server records: real processes, kills and cancellations."""

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from flows.run.outcomes import INTERRUPTED_MESSAGE
from flows.server import ADDRESS, own_server, secret_path
from tasks.config.job import Job
from tasks.rules.errors import PipelineError
from tasks.run.writing import StageReport
from tests.faults.server import (
    FaultServer,
    HttpResponse,
    is_judge_request,
    well_behaved,
)
from tests.flows.conftest import N_CRITERIA, Command
from tests.flows.prefect_server import artifacts_of, browser, take_database
from tests.kit import copied, endpoint, job_on, shared_folder, until

pytestmark = pytest.mark.slow

BELOW_BAR_REPORTS = [
    StageReport("sample"),
    StageReport("judge", warnings=["half is missing"], is_below_bar=True),
]
FAILED_REPORTS = [
    StageReport("fill", warnings=["a: wrong key"], has_failed=True),
    StageReport("coverage"),
]

# in this process, on the tests' server


def runs_on(url: str, **conditions: Any) -> list[dict[str, Any]]:
    """The flow runs that a server shows, the latest first."""
    query = {
        "sort": "START_TIME_DESC",
        "limit": 50,
        **conditions,
    }
    with closing(browser(url)) as client:
        return client.post("/flow_runs/filter", json=query).json()


def latest_run(url: str, flow_name: str) -> dict[str, Any]:
    """The latest run of a flow."""
    return runs_on(url, flows={"name": {"any_": [flow_name]}})[0]


def latest_state(url: str, flow_name: str) -> dict[str, Any]:
    """The state of the latest run of a flow."""
    return latest_run(url, flow_name)["state"]


def flow_of(name: str, work: Callable[[Job], Any]) -> Any:
    from flows.ui import recorded_flow  # it takes seconds to import

    async def run(job):
        return await work(job)

    return recorded_flow(name)(run)


def work_that_calls(stage: Any) -> Callable[[Job], Any]:
    """The work of a flow that calls another one."""
    from flows.recorded import call

    return lambda job: call(stage, job)


def run_flow(flow: Any, folder: Path) -> Any:
    from flows.ui import run_recorded

    return asyncio.run(run_recorded(flow, job_on("sample", folder)))


@pytest.mark.parametrize(
    ("reports", "state_type", "state_name", "message"),
    [
        (BELOW_BAR_REPORTS, "COMPLETED", "Below the bar", "half is missing"),
        (FAILED_REPORTS, "FAILED", "Failed", "a: wrong key"),
    ],
)
def test_a_flow_ends_in_its_outcome_s_state(
    prefect_api,
    tmp_path,
    reports,
    state_type,
    state_name,
    message,
):
    async def work(_):
        return list(reports)

    ends = flow_of("ends", work)

    assert run_flow(ends, tmp_path) == reports
    assert asyncio.run(ends.fn(job_on("sample", tmp_path))) == reports
    end = latest_state(prefect_api, "ends")
    assert end["type"] == state_type
    assert end["name"] == state_name
    assert end["message"] == message


def test_a_flow_that_raises_has_failed_and_so_has_the_flow_around_it(
    prefect_api, tmp_path
):
    async def fail():
        raise PipelineError("the file is gone")

    async def fail_in_a_group(_):
        async with asyncio.TaskGroup() as group:  # it cancels this task, too
            group.create_task(fail())

    inner = flow_of("raises-inside", fail_in_a_group)
    outer = flow_of("raises-outside", work_that_calls(inner))

    with pytest.raises(ExceptionGroup, match="in a TaskGroup") as raised:
        run_flow(outer, tmp_path)
    assert raised.group_contains(PipelineError, match="the file is gone")

    assert latest_state(prefect_api, "raises-inside")["name"] == "Failed"
    assert latest_state(prefect_api, "raises-outside")["name"] == "Failed"


def test_the_first_run_of_a_folder_can_be_cancelled(prefect_api, tmp_path):
    async def work(_):
        cancel(prefect_api, latest_run(prefect_api, "is-first")["id"])
        await asyncio.sleep(60)

    with pytest.raises(asyncio.CancelledError):
        run_flow(flow_of("is-first", work), tmp_path)


@pytest.mark.usefixtures("prefect_api")
@pytest.mark.parametrize("is_lost_during_run", [True, False])
def test_a_lost_server_changes_no_work_and_is_reported_once(
    tmp_path,
    monkeypatch,
    capsys,
    is_lost_during_run,
):
    from prefect.client.orchestration import PrefectClient

    calls = []

    async def refuse(*_, **__):
        raise httpx.ConnectError("the server is gone")

    async def work(_):
        calls.append("stage")
        monkeypatch.setattr(PrefectClient, "set_flow_run_state", refuse)
        return BELOW_BAR_REPORTS

    stage = flow_of("is-lost", work)
    if not is_lost_during_run:
        monkeypatch.setattr(PrefectClient, "create_flow_run", refuse)

    assert (
        run_flow(flow_of("loses", work_that_calls(stage)), tmp_path)
        == BELOW_BAR_REPORTS
    )
    assert calls == ["stage"]
    notice = "does not record this run any more (ConnectError)"
    assert capsys.readouterr().err.count(notice) == 1


@pytest.mark.usefixtures("prefect_api")
def test_runs_go_on_when_the_server_is_lost(tmp_path, monkeypatch, capsys):
    from flows import serving

    lock = tmp_path / "runs.lock"
    monkeypatch.setenv(serving.RUNS_LOCK, str(lock))
    # A run in progress shares this lock.
    script = "echo held; sleep 3; touch finished"
    run = subprocess.Popen(
        ["flock", "-s", lock, "sh", "-c", script],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "held\n"

    async def lose():
        async with serving.ServingRunner(pause_on_shutdown=False):
            raise RuntimeError("Service exceeded error threshold.")

    with pytest.raises((RuntimeError, ExceptionGroup)):
        asyncio.run(lose())

    assert (tmp_path / "finished").exists()
    assert "runs in progress continue" in capsys.readouterr().err


def test_a_run_ends_with_the_report_of_all_there_is_and_prefect_links_to_it(
    command,
    sample_job,
    prefect_api,
):
    data = copied(sample_job, command.folder / "data").warehouse
    command.configure(dataset={"source": "sample"}, report={"enabled": True})

    result = command.json("run", "--model", "brief", "--warehouse", "data", "-q")

    index = data / "report/prbench/index.html"
    assert result["stages"][-1]["stage"] == "report"
    assert "thorough" in index.read_text()
    [link] = artifacts_of(prefect_api, "report-link", result["run_id"])
    assert f"]({index.resolve().as_uri()})" in link


# as processes, on a server of their own


@dataclass
class World:
    """The folder of a user without a Prefect configuration, and a provider whose verdicts take some
    time.
    """

    command: Command
    provider: FaultServer

    def slow_down(self, delay_s: float):
        self.provider.behaviour = lambda request, number: HttpResponse(
            well_behaved(request, number).text,
            delay_s=delay_s if is_judge_request(request) else 0.0,
        )

    @property
    def prefect(self) -> Path:
        return self.command.folder / "data" / "prefect"

    @property
    def url(self) -> str:
        return json.loads((self.prefect / ADDRESS).read_text())["url"]

    def log_in(self, monkeypatch) -> str:
        """Return the address of the server; from now on `browser` has its password."""
        monkeypatch.setenv(
            "PREFECT_API_AUTH_STRING",
            secret_path(self.prefect.resolve()).read_text(),
        )
        return self.url

    def servers(self) -> list[int]:
        """The processes of the folder's servers."""
        command = ["pgrep", "-f", f"flows.server .*{self.prefect}"]
        output = subprocess.run(command, capture_output=True, check=False).stdout
        return list(map(int, output.split()))

    def run_in_progress(self) -> "subprocess.Popen[str]":
        """Start a run, and return it once it has judged something and has much left to do."""
        run = self.command.start("run")
        until(lambda: sum(map(is_judge_request, self.provider.book)) > 12, run)
        return run


@pytest.fixture
def world(
    command: Command,
    provider: FaultServer,
    tmp_path_factory,
    monkeypatch,
) -> Iterator[World]:
    for name in list(os.environ):
        if name.startswith(("PREFECT_", "PRBENCH_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PREFECT_HOME", str(command.folder / "home"))
    command.configure(
        dataset={"source": "sample"},
        warehouse="data",
        models=[endpoint("a", provider.api_base)],
        judges=[endpoint("j", provider.api_base)],
        limits={"concurrency": 4},
    )
    world = World(command, provider)
    world.prefect.mkdir(parents=True, mode=0o700)
    take_database(shared_folder(tmp_path_factory), world.prefect)
    yield world
    for pid in world.servers():
        os.kill(pid, signal.SIGKILL)


@pytest.mark.long
def test_two_commands_at_once_are_recorded_by_one_server(world, monkeypatch):
    world.command("ingest", "--no-prefect")
    assert world.servers() == []

    processes = [
        world.command.start("run", "--limit", "2"),
        world.command.start("run", "--limit", "2", "--trials", "2"),
    ]
    errors = [process.communicate(timeout=300)[1] for process in processes]

    address = world.url.removeprefix("http://").removesuffix("/api")
    for process, error in zip(processes, errors, strict=True):
        assert process.returncode == 0, error
        assert error.count("Prefect") == 1
        assert f"Prefect records this run: {address}\n" in error
    assert len(world.servers()) == 1
    runs = top_runs(world.log_in(monkeypatch))
    assert [run["name"].split()[0] for run in runs] == ["evaluate", "evaluate"]
    assert [run["state_name"] for run in runs] == ["Completed", "Completed"]


def test_a_server_hides_its_secret_and_ends_by_itself_after_its_last_user(
    world, monkeypatch
):
    users = {}
    monkeypatch.setattr("flows.server.UNUSED_S", 1.5)
    monkeypatch.setattr("flows.server.HELD", users)
    server = own_server(job_on("sample", world.command.folder / "data"))
    assert server.wait_until_ready(180)

    time.sleep(4)  # longer than UNUSED_S, but it has a user

    assert server.wait_until_ready(60)
    command_lines = subprocess.check_output(["ps", "-eww", "-o", "args"], text=True)
    [pid] = world.servers()
    secret = server.secret.partition(":")[2]
    assert secret not in command_lines
    assert secret.encode() not in Path(f"/proc/{pid}/environ").read_bytes()

    users.popitem()[1].close()

    until(lambda: not (world.prefect / ADDRESS).exists(), within_s=60)
    os.waitpid(pid, 0)


@pytest.mark.long
def test_a_killed_run_is_shown_as_crashed_by_the_next_which_can_be_cancelled(
    world, monkeypatch
):
    world.slow_down(1.0)
    killed_run = world.run_in_progress()
    killed_run.kill()
    killed_run.communicate()
    n_paid = len(world.provider.book)
    run = world.command.start("run")
    until(lambda: len(world.provider.book) > n_paid + 8, run)
    url = world.log_in(monkeypatch)
    until(lambda: state_names(top_runs(url)) == ["Running", "Crashed"], run, 60)

    cancel(url, top_runs(url)[0]["id"])
    _, error = run.communicate(timeout=60)

    assert run.returncode == 130, error
    assert error.splitlines()[-2].startswith("interrupted: finished work is kept")
    assert set(state_names(runs_on(url))) == {"Completed", "Crashed", "Cancelled"}
    cancelled_runs = [row for row in runs_on(url) if row["state_name"] == "Cancelled"]
    assert len(cancelled_runs) > 1  # the run, and the stage in it
    assert {row["state"]["message"] for row in cancelled_runs} == {
        INTERRUPTED_MESSAGE
    }
    runs = world.command.sql("select outcome from runs order by started_at")
    assert [row["outcome"] for row in runs] == ["killed", "interrupted"]
    [row] = world.command.sql("select count(*) as n_verdicts from verdicts")
    assert 0 < row["n_verdicts"] < N_CRITERIA


def top_runs(url: str) -> list[dict[str, Any]]:
    """The runs that are no stage of another one, the latest first."""
    return [run for run in runs_on(url) if not run["parent_task_run_id"]]


def state_names(runs: list[dict[str, Any]]) -> list[str]:
    return [run["state_name"] for run in runs]


def cancel(url: str, run_id: str):
    """Cancel a run as a button of the server's page does."""
    state = {"type": "CANCELLING", "name": "Cancelling"}
    with closing(browser(url)) as client:
        reply = client.post(f"/flow_runs/{run_id}/set_state", json={"state": state})
    reply.raise_for_status()
