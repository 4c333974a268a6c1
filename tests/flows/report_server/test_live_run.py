"""The live page beside a real run: it has begun, it waits for its judge, it is interrupted."""

import signal
from collections import Counter

import pytest

from flows.report_server.live import LiveView
from flows.run.arguments import Arguments
from flows.run.config import load_job
from tests.faults.server import FaultServer, HttpResponse, Request, is_judge_request, well_behaved
from tests.flows.conftest import Command, until
from tests.flows.test_pipeline import N_CRITERIA, N_TASKS, settings

pytestmark = pytest.mark.slow


def test_a_run_is_followed_from_its_first_sign_to_its_end(command: Command, provider: FaultServer) -> None:
    def patient_judge(request: Request, number: int) -> HttpResponse:
        return HttpResponse(delay_s=3600) if is_judge_request(request) else well_behaved(request, number)

    provider.behaviour = patient_judge
    command.configure(**settings(provider))
    job = load_job(Arguments(config=command.folder / "prbench.yaml", warehouse=command.folder / "data"))
    view = LiveView(job)

    def is_at_judge() -> bool:
        return bool(provider.judge_requests) and sum(cell.done for cell in view.now().in_progress[0].cells) > 0

    assert not view.now().in_progress
    assert view.now().last is None
    process = command.start("run", "--warehouse", "data")
    try:
        until(lambda: view.now().in_progress)
        until(is_at_judge)
        (run,) = view.now().in_progress
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    finally:
        process.kill()
        process.wait()
    ended = view.now()

    assert Counter((cell.model, cell.judge) for cell in run.cells for _ in range(cell.done)) == {
        ("alpha", None): 2 * N_TASKS, ("beta", None): 2 * N_TASKS,
    }  # fmt: skip
    assert sum(cell.due for cell in run.cells) == 4 * N_TASKS + 4 * N_CRITERIA
    assert {call["called_model"]: call["calls"] for call in run.calls} == {
        "hosted_vllm/alpha": 2 * N_TASKS, "hosted_vllm/beta": 2 * N_TASKS,
    }  # fmt: skip
    assert run.row["command"] == "prbench run --warehouse data"
    assert not ended.in_progress
    assert ended.last is not None
    assert (ended.last.run_id, ended.last.outcome) == (run.run_id, "interrupted")
