"""The last lines of a run: what it spent and left, its failures by cause, and the reason for its
exit code.
"""

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flows.cli.run_end import end_lines
from flows.execution import Execution
from flows.run import outcomes
from tasks.config.job import Job
from tasks.run.writing import StageReport
from tests.faults.server import FaultServer, HttpResponse, Request, is_judge_request, well_behaved
from tests.flows.conftest import N_CRITERIA, N_TASKS, Command, settings
from tests.kit import call_entry, job_on, recorded, row, written

NIGHT = "2026-11-22"
PRICE = {"input_usd_per_mtok": 100.0, "output_usd_per_mtok": 1000.0}


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """The job of the second run of a night; both made calls."""
    job = job_on("sample", tmp_path).model_copy(update={"is_quiet": False, "night": NIGHT})
    config = json.dumps({"benchmark": "prbench"})
    runs = [
        row(
            "runs",
            run_id=run_id,
            outcome="done",
            night=NIGHT,
            config=config,
        )
        for run_id in ("earlier", "a-run")
    ]
    written(tmp_path, {"runs": runs}).publish()
    return job


def ended(job: Job, *reports: StageReport, outcome: str = outcomes.DONE) -> list[str]:
    execution = Execution(job, outcome, [*reports], flow="night", seconds=75)
    return list(end_lines(execution))


def test_the_cost_is_that_of_the_run_and_of_all_runs_of_its_night(job: Job) -> None:
    recorded(
        job,
        call_entry("1", "earlier"),
        call_entry("2", cost_usd=0.25),
        call_entry("3", "other", cost_usd=9.0),
    )

    spent, reason = ended(job, StageReport("sample", rows=1))

    night = f"all 2 runs of the night of {NIGHT}: 0.7500 USD in 2 calls"
    assert spent == f"Spent: 0.2500 USD in 1 call; {night}; took 1 min 15 s"
    assert reason == "exit code 0 (done)"


@pytest.mark.parametrize(
    ("costs", "spent"),
    [
        ([], "nothing, no model call was made"),
        ([None], "an unknown sum in 1 call, because no price is known"),
        ([None, 0.5], "0.5000 USD in 2 calls (1 of them have no known price)"),
    ],
)
def test_calls_without_a_price_are_no_calls_for_nothing(
    costs: list[float | None], spent: str, job: Job
) -> None:
    recorded(job, *(call_entry(str(number), cost_usd=cost) for number, cost in enumerate(costs)))

    lines = ended(job.model_copy(update={"night": None}))

    assert lines[0] == f"Spent: {spent}; took 1 min 15 s"


def test_failures_are_counted_by_cause_in_one_line(job: Job) -> None:
    sampled = StageReport("sample", rows=9, failures=Counter(timeout=2))
    judged = StageReport("judge", rows=9, failures=Counter(refused=1, parse_error=4))

    _, failed, _ = ended(job, sampled, judged)

    assert failed == "Failed: responses 2 timeout; verdicts 4 parse_error, 1 refused"


def test_the_reason_for_exit_code_3_is_the_first_warning_of_a_stage_below_the_bar(job: Job) -> None:
    unrelated = StageReport("judge", warnings=["a remark"])
    coverage = StageReport(
        "coverage", warnings=["alpha: 1 of 2", "beta: 0 of 2"], is_below_bar=True
    )
    reviews = StageReport("review", notes=["2 reviews made"], is_below_bar=True)

    reason = ended(job, unrelated, coverage, outcome=outcomes.BELOW_BAR)[-1]
    reason_without_a_warning = ended(job, reviews, outcome=outcomes.BELOW_BAR)[-1]

    assert reason == "exit code 3 (below the bar): alpha: 1 of 2; and 1 more"
    assert reason_without_a_warning == "exit code 3 (below the bar): review: 2 reviews made"


def test_the_reason_for_a_stop_is_the_time_and_for_a_failure_its_error(job: Job) -> None:
    stopped = job.model_copy(update={"stop_at": datetime(2026, 11, 22, 6, 30, tzinfo=UTC)})
    report = StageReport(
        "review",
        rows=3,
        skipped=2,
        is_at_stop_time=True,
    )
    failed = StageReport("report", warnings=["no report: the disk is full"], has_failed=True)

    lines = ended(stopped, report, outcome=outcomes.STOPPED_AT_TIME)
    reason_of_failure = ended(job, failed, outcome=outcomes.FAILED)[-1]

    assert lines[0].startswith("Done: 3 reviews of criteria; spent: ")
    assert lines[1] == "Missing: 2 reviews of criteria"
    assert (
        lines[2]
        == "exit code 4 (stopped at the stop time): 06:30 UTC has passed; run it again to continue"
    )
    assert reason_of_failure == "exit code 1 (failed): no report: the disk is full"


def test_a_quiet_run_gives_only_the_reason_for_an_exit_code_other_than_0(job: Job) -> None:
    quiet = job.model_copy(update={"is_quiet": True})
    failed = StageReport("coverage", warnings=["alpha: 1 of 2"], is_below_bar=True)

    assert ended(quiet) == []
    assert ended(quiet, failed, outcome=outcomes.BELOW_BAR) == [
        "exit code 3 (below the bar): alpha: 1 of 2"
    ]


@pytest.mark.slow
@pytest.mark.long
def test_a_limited_run_is_done_with_its_tasks_and_has_no_word_of_a_hard_subset(
    command: Command, provider: FaultServer
) -> None:
    command.configure(**settings(provider, trials=1))

    first = command("run", "--limit", "3", "--warehouse", "data")
    second = command("run", "--limit", "3", "--warehouse", "data")

    assert len(provider.samples) == 2 * 3
    assert "hard" not in first.stderr + first.stdout
    assert first.stderr.splitlines()[-1] == "exit code 0 (done)"
    assert "nothing is missing" in second.stderr
    assert "hard" not in second.stderr + second.stdout


@pytest.mark.slow
def test_a_run_that_stops_at_its_budget_ends_in_three_lines(
    command: Command, provider: FaultServer
) -> None:
    given = settings(provider, trials=1)
    for endpoint in (*given["models"], *given["judges"]):
        endpoint |= {"price": PRICE, "max_tokens": 50}
    command.configure(**given)

    stopped = command("run", "--warehouse", "data", "--max-usd", "2", code=4)
    quiet = command("run", "--warehouse", "data", "--max-usd", "0.01", "-q", code=4)

    n_verdicts = len(provider.judge_requests)
    done, missing, reason = stopped.stderr.splitlines()[-3:]
    assert done.startswith(
        f"Done: {2 * N_TASKS} of {2 * N_TASKS} responses, {n_verdicts} of {2 * N_CRITERIA}"
        " verdicts; "
    )
    assert missing == f"Missing: {2 * N_CRITERIA - n_verdicts} verdicts of judge"
    assert reason.startswith("exit code 4 (stopped at the budget): ")
    assert "of 2 USD used, and the next call, which needs up to 0." in reason
    assert "the bar is" not in stopped.stderr
    assert "hard" not in stopped.stderr
    assert "Database: " in stopped.stdout
    assert quiet.stdout == ""
    assert len(quiet.stderr.splitlines()) == 1
    assert quiet.stderr.startswith("exit code 4 (stopped at the budget): 0.0000 of 0.01 USD used")


@pytest.mark.slow
def test_the_end_of_a_run_below_the_bar_names_causes_and_an_error(command: Command) -> None:
    def faulty(request: Request, number: int) -> HttpResponse:
        return HttpResponse("true") if is_judge_request(request) else well_behaved(request, number)

    with FaultServer(faulty) as server:
        given = settings(server, trials=1)
        command.configure(**given | {"models": given["models"][:1]})
        done = command("run", "--warehouse", "data", code=3)

    failed, reason = done.stderr.splitlines()[-2:]
    assert failed.startswith(f"Failed: verdicts {N_CRITERIA} parse_error (most often: ")
    assert reason.startswith(
        f"exit code 3 (below the bar): verdicts of judge on alpha, trial 1: 0 of {N_CRITERIA}"
    )
