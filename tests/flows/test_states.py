"""The state that each outcome of a run has in Prefect, on a real server."""

import asyncio
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flows.run.outcomes import ENDINGS, outcome_of
from tasks.rules.errors import PipelineError
from tasks.run.writing import StageReport
from tests.builders import job_on
from tests.faults.server import Answer, FaultServer, Request, is_judging, well_behaved
from tests.flows.conftest import Command
from tests.flows.prefect_server import browser
from tests.tasks.alerts.servers import serving_hook
from warehouse import Warehouse

REPORTS = {
    "done": [StageReport("judge", notes=["9 verdicts made"])],
    "below_bar": [StageReport("sample"), StageReport("judge", warnings=["half is missing"], is_below_bar=True)],
    "stopped_at_budget": [StageReport("judge", warnings=["the cap"], is_at_budget=True, is_below_bar=True)],
    "stopped_at_time": [StageReport("judge", warnings=["07:00"], is_at_stop_time=True, is_below_bar=True)],
    "failed": [StageReport("fill", warnings=["a: wrong key"], has_failed=True), StageReport("coverage")],
}


def latest(api: str, flow_name: str) -> dict[str, Any]:
    """The run of a flow that started last."""
    with closing(browser(api)) as client:
        of_flow = {"flows": {"name": {"any_": [flow_name]}}, "sort": "START_TIME_DESC", "limit": 1}
        run: dict[str, Any] = client.post("/flow_runs/filter", json=of_flow).raise_for_status().json()[0]
        return run


def state(api: str, flow_name: str) -> tuple[str, str]:
    """Type and name of the state of the latest run of a flow."""
    run = latest(api, flow_name)
    return run["state_type"], run["state_name"]


@pytest.mark.parametrize("outcome", REPORTS)
def test_a_flow_ends_in_the_state_of_its_outcome_and_gives_its_reports(
    prefect_api: str, tmp_path: Path, outcome: str
) -> None:
    from flows.job_flow import job_flow
    from tasks.config.job import Job

    @job_flow(f"ends-{outcome}")
    async def work(job: Job) -> list[StageReport]:
        return REPORTS[outcome]

    assert asyncio.run(work(job_on("sample", tmp_path))) == REPORTS[outcome]
    assert state(prefect_api, f"ends-{outcome}") == ENDINGS[outcome][1:]
    message = latest(prefect_api, f"ends-{outcome}")["state"]["message"]
    assert message == (REPORTS[outcome][-1].warnings or REPORTS[outcome][0].warnings or ["9 verdicts made"])[0]


@pytest.mark.usefixtures("prefect_api")
@pytest.mark.parametrize("begins", [True, False])
def test_what_prefect_makes_of_a_flow_or_task_changes_nothing_about_its_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begins: bool
) -> None:
    from flows.job_flow import batch_task, job_flow
    from flows.recorded import runs
    from tasks.config.job import Job

    n_done = []

    async def fails(*_: Any, **__: Any) -> None:
        if begins:
            await runs._work.get().run()
        raise ConnectionError("the server is gone")

    class Task:
        def with_options(self, **_: Any) -> Any:
            return fails

    @job_flow("fails")
    async def stage(job: Job) -> list[StageReport]:
        n_done.append("stage")
        return REPORTS["done"]

    @batch_task(retries=1)
    async def batch(label: str) -> StageReport:
        n_done.append(label)
        raise PipelineError("the file is gone")

    monkeypatch.setattr(runs, "_flow", lambda *_: fails)
    monkeypatch.setattr(runs, "_task", lambda *_: Task())
    assert asyncio.run(stage(job_on("sample", tmp_path))) == REPORTS["done"]
    with pytest.raises(PipelineError, match="the file is gone"):
        asyncio.run(batch.named("judge a 1", "batch")())
    assert n_done == ["stage", "batch"]


@pytest.mark.parametrize(
    ("applying", "outcome"),
    [
        ({"is_at_budget", "is_at_stop_time", "has_failed", "is_below_bar"}, "stopped_at_budget"),
        ({"is_at_stop_time", "has_failed", "is_below_bar"}, "stopped_at_time"),
        ({"has_failed", "is_below_bar"}, "failed"),
        ({"is_below_bar"}, "below_bar"),
        (set[str](), "done"),
    ],
)
def test_of_all_outcomes_that_apply_the_first_in_the_order_of_the_exit_codes_counts(
    applying: set[str], outcome: str
) -> None:
    assert outcome_of([StageReport("judge", **{name: True}) for name in sorted(applying)]) == outcome  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("failures", "n_rows", "more", "outcome"),
    [
        ({"provider_error": 3, "timeout": 1}, 4, {"is_below_bar": True}, "failed"),
        ({"provider_error": 4}, 4, {"stopped": ["m: wrong key"]}, "failed"),
        ({"provider_error": 4}, 4, {}, "done"),
        ({"provider_error": 3}, 4, {"is_below_bar": True, "stopped": ["m: wrong key"]}, "below_bar"),
        ({"parse_error": 4}, 4, {"is_below_bar": True}, "below_bar"),
        ({}, 0, {"is_below_bar": True}, "below_bar"),
    ],
)
def test_a_run_fails_in_which_no_call_was_answered_and_something_is_missing_for_it(
    failures: dict[str, int], n_rows: int, more: dict[str, Any], outcome: str
) -> None:
    sampled = StageReport("sample", rows=n_rows, failures=Counter(failures))
    assert outcome_of([StageReport("ingest", rows=9), sampled, StageReport("coverage", **more)]) == outcome


@pytest.mark.slow
def test_a_night_at_its_budget_in_which_a_stage_failed_exits_with_4_and_calls_no_dead_mans_switch(
    command: Command, prefect_api: str
) -> None:
    with FaultServer(well_behaved) as server, serving_hook() as switch:
        (command.folder / "pages").touch()  # where the report's folder should be
        alerts = {"ping": switch.address, "attempts": 1}
        command.configure(**settings(server), report={"folder": "pages"}, alerts=alerts)
        options = ("--warehouse", "data", "--max-tokens", "5000")
        night = command.json("nightly", "--night", "2026-11-01", *options, code=4)
        assert night["outcome"] == "stopped_at_budget"
        assert {alert["kind"] for alert in night["alerts"]} >= {"failure", "budget"}
        assert state(prefect_api, "night") == ("COMPLETED", "Stopped at the budget")
        assert switch.calls == []
        command.configure(**settings(server), alerts=alerts)
        command("nightly", "--night", "2026-11-01", *options, code=4)
        assert len(switch.calls) == 1


def test_the_states_of_outcomes_that_are_not_completed_have_names_of_their_own() -> None:
    names = [ending.state_name for ending in ENDINGS.values()]
    assert len(set(names)) == len(names)
    assert [outcome for outcome, ending in ENDINGS.items() if ending.state_name == "Completed"] == ["done"]


def test_a_flow_that_raises_has_failed_and_so_has_the_flow_around_it(prefect_api: str, tmp_path: Path) -> None:
    from flows.job_flow import job_flow
    from tasks.config.job import Job

    @job_flow("raises-inside")
    async def inner(job: Job) -> StageReport:
        raise PipelineError("the file is gone")

    @job_flow("raises-outside")
    async def outer(job: Job) -> list[StageReport]:
        return [await inner(job)]

    with pytest.raises(PipelineError, match="the file is gone"):
        asyncio.run(outer(job_on("sample", tmp_path)))
    assert [state(prefect_api, f"raises-{name}") for name in ("inside", "outside")] == [("FAILED", "Failed")] * 2


def test_a_flow_that_is_cancelled_in_prefect_stops_with_its_stages_and_none_of_them_crashed(
    prefect_api: str, tmp_path: Path
) -> None:
    from prefect import get_client
    from prefect.runtime import flow_run
    from prefect.states import Cancelling

    from flows.job_flow import job_flow
    from tasks.config.job import Job

    @job_flow("stopped-stage")
    async def stage(job: Job) -> StageReport:
        async with get_client() as client:
            parent = (await client.read_flow_run(flow_run.root_flow_run_id)).id
            await client.set_flow_run_state(parent, Cancelling())
        await asyncio.sleep(120)
        return StageReport("judge")

    @job_flow("stopped-run")
    async def run(job: Job) -> list[StageReport]:
        return [await stage(job)]

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run(job_on("sample", tmp_path)))
    assert [state(prefect_api, f"stopped-{name}") for name in ("stage", "run")] == [("CANCELLED", "Cancelled")] * 2


def settings(server: FaultServer) -> dict[str, Any]:
    at = {"api_base": server.api_base, "params": {"max_tokens": 50}}
    return {
        "dataset": {"source": "sample"},
        "models": [{"name": "hosted_vllm/alpha", "label": "alpha", **at}],
        "judges": [{"name": "hosted_vllm/judge", "label": "judge", **at}],
        "limits": {"attempts": 1},
    }


@pytest.mark.long
@pytest.mark.slow
def test_runs_have_the_state_of_their_exit_code(command: Command, prefect_api: str) -> None:
    has_healed = False

    def refusing(request: Request, number: int) -> Answer:
        is_refused = is_judging(request) and not has_healed
        return Answer("no", finish_reason="content_filter") if is_refused else well_behaved(request, number)

    with FaultServer(refusing) as server:
        command.configure(**settings(server))
        where = ("--warehouse", "data", "-q")
        command("run", *where, "--max-tokens", "5000", code=4)
        assert state(prefect_api, "evaluate") == ("COMPLETED", "Stopped at the budget")
        command("run", *where, code=3)
        assert state(prefect_api, "evaluate") == ("COMPLETED", "Below the bar")
        command("judge", *where, "--retry-failed", code=3)
        assert state(prefect_api, "judge-missing") == ("COMPLETED", "Below the bar")
        assert "the bar is 99.0%" in latest(prefect_api, "judge-missing")["state"]["message"]

        from flows import deployments

        config, warehouse = (str(command.folder / name) for name in ("prbench.yaml", "data"))
        deployments.backfill(config, warehouse, retry_failed=True)
        assert state(prefect_api, "backfill") == ("COMPLETED", "Below the bar")
        assert state(prefect_api, "prbench-backfill") == ("COMPLETED", "Below the bar")
        has_healed = True
        deployments.nightly(config, warehouse, night="2026-11-01", retry_failed=True)
        assert state(prefect_api, "night") == ("COMPLETED", "Completed")
        assert state(prefect_api, "prbench-nightly") == ("COMPLETED", "Completed")
        with Warehouse(command.folder / "data").only_one("night-prbench", wait=False):
            deployments.nightly(config, warehouse, night="2026-11-02")
        assert state(prefect_api, "prbench-nightly") == ("COMPLETED", "Skipped")
