"""`prbench serve` as a process: nights on schedule, jobs at the press of a button, and cancelled
jobs.
"""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from flows.server import FOLDER
from tests.faults.server import is_judge_request
from tests.flows.conftest import (
    N_CRITERIA,
    N_TASKS,
    PRBENCH,
    put_packages_of_the_user,
)
from tests.flows.nights.night_world import NightWorld, Weather, night_world
from tests.flows.prefect_server import browser, take_database
from tests.kit import shared_folder, until

pytestmark = pytest.mark.slow
_ENDED = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}
DEPLOYMENTS = ("nightly", "run", "backfill", "check", "compact")


class Api:
    """The Prefect server's API, used as by a browser."""

    def __init__(self, url: str):
        self._client = browser(url)

    def get(self, path: str) -> Any:
        return self._client.get(path).raise_for_status().json()

    def post(self, path: str, **content: Any) -> Any:
        replies = []

        def has_replied():  # its database may be locked; Prefect's client retries, too
            replies.append(self._client.post(path, json=content))
            return replies[-1].status_code != httpx.codes.SERVICE_UNAVAILABLE

        until(has_replied, every_s=1.0)
        replies[-1].raise_for_status()
        return replies[-1].json() if replies[-1].content else None

    def deployment(self, name: str) -> Any:
        flow, _, _ = name.partition("-")
        return self.get(f"/deployments/name/prbench-{flow}/{name}")

    def runs_of(self, name: str) -> list[Any]:
        """The runs of a deployment, the earliest first."""
        deployments = {"id": {"any_": [self.deployment(name)["id"]]}}
        order = {"sort": "EXPECTED_START_TIME_ASC", "limit": 50}
        return self.post("/flow_runs/filter", deployments=deployments, **order)

    def trigger(self, name: str, **parameters: Any) -> str:
        path = f"/deployments/{self.deployment(name)['id']}/create_flow_run"
        return self.post(path, parameters=parameters, state={"type": "SCHEDULED"})[
            "id"
        ]

    def set_clock(self, name: str, action: str):
        """`pause` or `resume` a deployment's schedule."""
        self.post(f"/deployments/{self.deployment(name)['id']}/{action}_deployment")

    def run(self, run_id: str) -> Any:
        return self.get(f"/flow_runs/{run_id}")

    def ended(self, run_id: str) -> Any:
        """Wait until a run has ended, and return it."""
        until(lambda: self.run(run_id)["state_type"] in _ENDED, within_s=480)
        return self.run(run_id)


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Iterator[NightWorld]:
    """A world whose user has configured no Prefect server."""
    folder = tmp_path_factory.mktemp("serve")
    (folder / "data" / FOLDER).mkdir(parents=True, mode=0o700)
    take_database(shared_folder(tmp_path_factory), folder / "data" / FOLDER)
    with night_world(folder) as world, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREFECT_HOME", str(folder / "home"))
        patch.setenv("PRBENCH_PREFECT", "auto")
        world.server.behaviour = Weather()
        world.configure(
            nightly={"cron": "* * * * *"}, models=[world.endpoint("pinned")]
        )
        put_packages_of_the_user(folder)
        yield world
        subprocess.run(["pkill", "-f", f"flows.server .*{folder}"], check=False)


@dataclass(frozen=True)
class Served:
    """The Prefect server, and the process of `prbench serve`."""

    api: Api
    process: "subprocess.Popen[bytes]"
    log: Path


@pytest.fixture(scope="module")
def served(world: NightWorld) -> Iterator[Served]:
    """The server with all deployments; the last test ends it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ("--port", str(port), "--warehouse", "data")
    with serving(world.command.folder, *options) as (process, log):
        until(
            lambda: "nights start at" in log.read_text() or process.poll() is not None
        )
        text = log.read_text()
        assert process.poll() is None, text
        [access] = re.findall(r"Prefect: (\S+), the password is in (\S+)", text)
        address, password_file = access
        url = f"{address}/api"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PREFECT_API_URL", url)
            patch.setenv("PREFECT_API_AUTH_STRING", Path(password_file).read_text())
            api = Api(url)
            # A night every minute would slow down the other tests.
            api.set_clock("nightly", "pause")
            yield Served(api, process, log)


@contextmanager
def serving(
    folder: Path, *options: str
) -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
    """`prbench serve` in a process group of its own, as on a terminal, and its log."""
    path = folder / f"serve-{options[-1]}.log"
    with path.open("w") as log:
        process = subprocess.Popen(
            [PRBENCH, "serve", *options],
            cwd=folder,
            stderr=log,
            stdout=log,
            env=os.environ | {"PREFECT_RUNNER_POLL_FREQUENCY": "2"},
            start_new_session=True,
        )
        try:
            yield process, path
        finally:
            kill_with_children(process)


@pytest.fixture
def api(served: Served) -> Api:
    return served.api


def is_deployed(api: Api, name: str) -> bool:
    with suppress(httpx.HTTPStatusError):
        return bool(api.deployment(name))
    return False


def kill_with_children(process: "subprocess.Popen[bytes]"):
    """Kill a process and those that it started, if any is left."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_the_form_of_every_deployment_explains_each_of_its_parameters(api, name):
    properties = api.deployment(name)["parameter_openapi_schema"]["properties"]

    assert properties.keys() >= {"config", "warehouse"}
    for parameter in properties.values():
        assert parameter["description"]


def test_a_backfill_can_be_narrowed(api):
    properties = api.deployment("backfill")["parameter_openapi_schema"]["properties"]

    assert properties.keys() >= {
        "models",
        "judges",
        "trials",
        "splits",
        "tasks",
        "night",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [("night", "not a date"), ("stop_at", "soon"), ("max_usd", -1)],
)
def test_an_impossible_parameter_is_refused_in_one_line_before_a_run_begins(
    api,
    name,
    value,
):
    with pytest.raises(httpx.HTTPStatusError, match="409") as caught:
        api.trigger("nightly", **{name: value})

    detail = caught.value.response.json()["detail"]
    assert f"{name}'" in detail
    assert "\n" not in detail


def test_a_night_that_is_no_date_is_refused(api):
    run = api.ended(api.trigger("nightly", night="2026-13-40"))

    sentence = "night 2026-13-40: is not a date; write 2026-11-22"
    assert run["state"]["message"].endswith(sentence)


def test_a_second_serve_of_the_same_deployments_is_refused(served, world):
    assert f"process {served.process.pid} is at work" in refusal(world, "data", 1)


def refusal(world: NightWorld, warehouse: str, code: int) -> str:
    """The last line of a `prbench serve` that refuses; it is a process, since Prefect reads its
    settings only once.
    """
    with world.command.start("serve", "--warehouse", warehouse) as process:
        _, error = process.communicate(timeout=240)
    assert process.returncode == code, error
    return error.splitlines()[-1]


def test_the_clock_starts_a_night_and_a_triggered_run_does_what_its_parameters_say(
    api, world
):
    world.server.behaviour = Weather()
    run_id = api.trigger(
        "backfill",
        models=["pinned"],
        trials=[2],
        tasks=["sample-leg-2"],
    )
    backfill = api.ended(run_id)
    api.set_clock("nightly", "resume")
    until(lambda: scheduled_nights(api, "COMPLETED"), within_s=480)
    api.set_clock("nightly", "pause")
    until(lambda: not scheduled_nights(api, "RUNNING"))

    assert backfill["state_name"] == "Completed", backfill["state"]
    query = "select task_id, model from responses where trial = 2"
    responses = world.command.sql(query)
    assert responses == [{"task_id": "sample-leg-2", "model": "pinned"}]
    night = scheduled_nights(api, "COMPLETED")[0]
    label = night["expected_start_time"][:16]
    [row] = world.command.sql(f"select * from runs where night = '{label}'")
    assert row["outcome"] == "done"
    assert row["responses_made"] == N_TASKS
    assert row["verdicts_made"] == N_CRITERIA
    tags = set(night["tags"]) - {"auto-scheduled", row["run_id"]}
    assert "prbench" in tags
    words = [
        "nightly",
        *sorted(tags),
        label.replace("T", " "),
    ]
    assert night["name"] == " ".join(words)
    # Only the control set was judged twice, as it should be.
    n_repeated = 0
    for entry in world.server.entries:
        n_repeated += entry.number > 0 and is_judge_request(entry.request)
    [row] = world.command.sql("select count(*) as n from control_verdicts")
    assert row["n"] == n_repeated


def test_a_night_whose_process_is_killed_before_it_begins_is_said_and_alerted(
    served, world
):
    n_messages = len(world.receiver.seen)
    run_id = served.api.trigger("nightly", night="2026-11-19")
    until(lambda: killed_run(run_id), every_s=0.05)

    crashed = served.api.ended(run_id)
    until(lambda: len(world.receiver.seen) > n_messages)

    assert crashed["state_type"] == "CRASHED"
    log_lines = served.log.read_text().splitlines()
    [line] = [line for line in log_lines if " UTC crashed: " in line]
    assert line.startswith("nightly of ")
    assert "SIGKILL" in line
    [alert] = world.receiver.seen[n_messages].json["alerts"]
    assert alert["kind"] == "failure"
    cause = "Process exited with status code: -9"
    sentence = f"the night of 2026-11-19 crashed before it began: {cause}"
    assert alert["line"].startswith(sentence)


def killed_run(run_id: str) -> bool:
    """Kill the process of a run, and return whether there was one."""
    variable = f"PREFECT__FLOW_RUN_ID={run_id}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if variable in (process / "environ").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)
                return True
    return False


def scheduled_nights(api: Api, state_type: str) -> list[Any]:
    """The scheduled nights in a state, without those that did nothing: they were late, or another
    one was at work.
    """
    runs = []
    for run in api.runs_of("nightly"):
        did_nothing = run["state_name"] in {"Missed", "Skipped"}
        is_in_state = run["state_type"] == state_type
        if run["auto_scheduled"] and is_in_state and not did_nothing:
            runs.append(run)
    return runs


@pytest.mark.long
def test_another_warehouse_has_its_name_and_a_killed_serve_ends_its_night(
    served, world
):
    deployment = served.api.deployment("nightly")
    with serving(world.command.folder, "--warehouse", "other") as (process, _):
        until(
            lambda: (
                is_deployed(served.api, "compact-other") or process.poll() is not None
            )
        )
        served.api.set_clock("nightly-other", "pause")
        parameters = served.api.deployment("nightly-other")["parameters"]
        assert parameters["warehouse"] == str(world.command.folder / "other")
        later_deployment = served.api.deployment("nightly")
        assert later_deployment["parameters"] == deployment["parameters"]
        assert later_deployment["updated"] == deployment["updated"]
        assert refusal(world, "elsewhere/other", 2).endswith(
            "; choose another --name"
        )
        n_messages = len(world.receiver.seen)
        run_id = run_in_progress(
            served.api, world, "nightly-other", night="2026-11-20"
        )
        process.kill()
        assert served.api.ended(run_id)["state_type"] == "CANCELLED"
    runs = world.command.json(
        "sql", "select outcome from runs", "--warehouse", "other"
    )
    assert runs == [{"outcome": "interrupted"}]
    [call] = world.receiver.seen[n_messages:]
    [alert] = call.json["alerts"]
    assert "stopped" in alert["line"]


@pytest.mark.long
def test_ctrl_c_ends_a_run_in_order_and_leaves_the_schedule_as_it_is(served, world):
    run_id = run_in_progress(
        served.api,
        world,
        "backfill",
        models=["pinned"],
        trials=[4],
    )
    served.api.set_clock("nightly", "resume")
    os.killpg(served.process.pid, signal.SIGINT)

    assert served.process.wait(timeout=60) == 0, served.log.read_text()
    assert served.api.run(run_id)["state_type"] == "CANCELLED"
    query = (
        "from runs where command like '%backfill%' order by started_at desc limit 1"
    )
    [run] = world.command.sql(query)
    [verdicts] = world.command.sql(
        "select count(*) as n from verdicts where trial = 4"
    )
    assert run["outcome"] == "interrupted"
    assert run["verdicts_made"] == verdicts["n"]
    assert 0 < verdicts["n"] < N_CRITERIA
    nightly = served.api.deployment("nightly")
    assert not nightly["paused"]
    [schedule] = nightly["schedules"]
    assert schedule["active"]
    served.api.set_clock("nightly", "pause")


def run_in_progress(
    api: Api, world: NightWorld, deployment: str, **parameters: Any
) -> str:
    """A run that has judged something and has much to do still."""
    world.server.behaviour = Weather(delay_s=1.0)
    n_requests = len(world.server.book)
    run_id = api.trigger(deployment, **parameters)
    until(lambda: sum(map(is_judge_request, world.server.book[n_requests:])) > 10)
    return run_id
