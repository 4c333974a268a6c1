"""`prbench serve` as a process: nights by the clock, jobs at the press of a button, and cancelling one of them."""

import inspect
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from flows.serving import _settings
from tests.builders import job_on
from tests.faults.server import is_judging
from tests.flows.conftest import PRBENCH, PROJECT
from tests.flows.night_world import N_CRITERIA, N_TASKS, NightWorld, Weather, night_world

pytestmark = pytest.mark.slow
_ENDED = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}
DEPLOYMENTS = ("nightly", "backfill", "check", "compact")


class Api:
    """The Prefect server as a browser talks to it."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=60)

    def get(self, path: str) -> Any:
        return self._client.get(path).raise_for_status().json()

    def post(self, path: str, **content: Any) -> Any:
        answer = self._client.post(path, json=content).raise_for_status()
        return answer.json() if answer.content else None

    def deployment(self, name: str) -> Any:
        return self.get(f"/deployments/name/prbench-{name}/{name}")

    def runs_of(self, name: str) -> list[Any]:
        """The runs of a deployment, the earliest first."""
        only = {"id": {"any_": [self.deployment(name)["id"]]}}
        runs: list[Any] = self.post("/flow_runs/filter", deployments=only, sort="EXPECTED_START_TIME_ASC", limit=50)
        return runs

    def trigger(self, name: str, **parameters: Any) -> str:
        path = f"/deployments/{self.deployment(name)['id']}/create_flow_run"
        run_id: str = self.post(path, parameters=parameters, state={"type": "SCHEDULED"})["id"]
        return run_id

    def pause(self, name: str) -> None:
        """Let the clock start none from now on."""
        self.post(f"/deployments/{self.deployment(name)['id']}/pause_deployment")

    def run(self, run_id: str) -> Any:
        return self.get(f"/flow_runs/{run_id}")

    def ended(self, run_id: str, timeout_s: float = 120) -> Any:
        """The run once it has ended."""
        until(lambda: self.run(run_id)["state_type"] in _ENDED, timeout_s)
        return self.run(run_id)


def until(condition: Callable[[], object], timeout_s: float = 120) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come so far"
        time.sleep(0.25)


@pytest.fixture(scope="module")
def world(prefect_api: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NightWorld]:
    assert prefect_api
    with night_world(tmp_path_factory.mktemp("serve")) as made:
        made.server.behaviour = Weather()
        made.configure(nightly={"cron": "* * * * *"}, models=[made.endpoint("pinned")])
        yield made


@pytest.fixture(scope="module")
def api(prefect_api: str, world: NightWorld) -> Iterator[Api]:
    """The server, once everything is served there; it is served until the last test has ended."""
    api = Api(prefect_api)
    log = (world.command.folder / "serve.log").open("w")
    serving = subprocess.Popen(
        [PRBENCH, "serve", "--warehouse", "data"], cwd=world.command.folder, stderr=log, stdout=log,
        env=os.environ | {"PREFECT_RUNNER_POLL_FREQUENCY": "2"}, start_new_session=True,
    )  # fmt: skip
    try:
        until(lambda: "one by hand" in Path(log.name).read_text() or serving.poll() is not None)
        until(lambda: _is_there(api, DEPLOYMENTS[-1]) or serving.poll() is not None)
        assert serving.poll() is None, Path(log.name).read_text()
        yield api
        serving.send_signal(signal.SIGINT)
        assert serving.wait(timeout=60) == 0, Path(log.name).read_text()
    finally:
        with_children(serving)
        log.close()


def _is_there(api: Api, name: str) -> bool:
    try:
        return bool(api.deployment(name))
    except httpx.HTTPStatusError:
        return False


def with_children(process: "subprocess.Popen[bytes]") -> None:
    """End what is left of a process and of those that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def test_the_form_of_every_deployment_explains_each_of_its_parameters(api: Api) -> None:
    for name in DEPLOYMENTS:
        properties = api.deployment(name)["parameter_openapi_schema"]["properties"]
        assert {"config", "warehouse"} <= set(properties)
        assert all(each.get("description") for each in properties.values()), name
    assert {"models", "judges", "trials", "splits", "tasks"} <= set(
        api.deployment("backfill")["parameter_openapi_schema"]["properties"]
    )


def test_a_run_that_is_cancelled_in_the_ui_ends_soon_and_keeps_what_was_done(api: Api, world: NightWorld) -> None:
    world.server.behaviour = Weather(delay_s=1.0)
    before = len(world.server.book)
    run_id = api.trigger("backfill", models=["pinned"], trials=[3])
    until(lambda: sum(map(is_judging, world.server.book[before:])) > 10)
    api.post(f"/flow_runs/{run_id}/set_state", state={"type": "CANCELLING", "name": "Cancelling"})

    assert api.ended(run_id, 30)["state_type"] == "CANCELLED"
    assert world.command.sql("select count(*) as n from responses where trial = 3") == [{"n": N_TASKS}]
    (kept,) = world.command.sql("select count(*) as n from verdicts where trial = 3")
    assert 0 < kept["n"] < N_CRITERIA
    (run,) = world.command.sql("select verdicts_made from runs where outcome = 'interrupted'")
    assert run == {"verdicts_made": kept["n"]}


def test_the_clock_starts_a_night_and_a_run_that_is_triggered_does_what_its_parameters_say(
    api: Api, world: NightWorld
) -> None:
    world.server.behaviour = Weather()
    triggered = api.trigger("backfill", models=["pinned"], trials=[2], tasks=["sample-leg-2"])
    until(lambda: by_the_clock(api, "COMPLETED"), 240)
    filled = api.ended(triggered)
    api.pause("nightly")
    until(lambda: not by_the_clock(api, "RUNNING"), 180)
    night = by_the_clock(api, "COMPLETED")[0]

    assert night["name"] == f"nightly {night['expected_start_time'][:16].replace('T', ' ')}"
    label = night["expected_start_time"][:16]
    of_night = f"select outcome, responses_made, verdicts_made from runs where night = '{label}'"
    assert world.command.sql(of_night) == [{"outcome": "done", "responses_made": N_TASKS, "verdicts_made": N_CRITERIA}]
    assert (filled["state_type"], filled["state_name"]) == ("COMPLETED", "Completed"), filled["state"]
    assert world.command.sql("select distinct task_id, model, trial from responses where trial = 2") == [
        {"task_id": "sample-leg-2", "model": "pinned", "trial": 2}
    ]
    # Nothing was called for twice but the control set, which is to be.
    again = sum(entry.number > 0 and is_judging(entry.request) for entry in world.server.entries)
    assert world.command.sql("select count(*) as n from control_verdicts") == [{"n": again}]


def by_the_clock(api: Api, state_type: str) -> list[Any]:
    """The nights in a state that the clock started, but those that did nothing: too late, or another one at work."""
    return [
        run for run in api.runs_of("nightly")
        if run["auto_scheduled"] and run["state_type"] == state_type and run["state_name"] not in {"Missed", "Skipped"}
    ]  # fmt: skip


def test_a_server_of_its_own_takes_the_configured_retention(tmp_path: Path) -> None:
    # The server itself is not started here: that takes half a minute.
    given = _settings(job_on("sample", tmp_path, retention={"prefect_days": 3}), "http://127.0.0.1:4200/api")
    read = (
        "from prefect.settings import get_current_settings as current; s = current().server; "
        "print(s.services.db_vacuum.retention_period.days, s.events.retention_period.days)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", read], env=os.environ | given, capture_output=True, text=True, check=False
    )
    assert shown.stdout.split() == ["3", "3"], shown.stderr


def test_what_a_work_pool_deploys_is_there_and_takes_the_parameters_that_it_is_given() -> None:
    from flows import deployments as flows_of

    stated = yaml.safe_load((PROJECT / "prefect.yaml").read_text(encoding="utf-8"))
    assert [each["name"] for each in stated["deployments"]] == list(DEPLOYMENTS)
    for each in stated["deployments"]:
        module, name = each["entrypoint"].rsplit(".", 1)
        assert module == "flows.deployments"
        taken = inspect.signature(getattr(flows_of, name).fn).parameters
        assert set(each["parameters"]) <= set(taken)
        assert each["work_pool"] == {"name": "prbench"}
