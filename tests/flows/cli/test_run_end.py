"""The last lines of a run: what it spent and left, its failures by cause, and the reason for its
exit code.
"""

from collections import Counter
from datetime import UTC, datetime

import pytest

from flows.cli.run_end import end_lines
from flows.execution import Execution
from flows.run import outcomes
from tasks.config.job import Job
from tasks.run.writing import StageReport
from tests.faults.server import (
    FaultServer,
    HttpResponse,
    is_judge_request,
    well_behaved,
)
from tests.flows.conftest import N_CRITERIA, N_TASKS, settings
from tests.kit import add_calls, call_entry, job_on, row, written

NIGHT = "2026-11-22"
PRICE = {"input_usd_per_mtok": 100.0, "output_usd_per_mtok": 1000.0}


@pytest.fixture
def job(tmp_path) -> Job:
    """The job of the second run of a night; both made calls."""
    job = job_on("sample", tmp_path).model_copy(
        update={"is_quiet": False, "night": NIGHT}
    )
    values = {
        "outcome": "done",
        "night": NIGHT,
        "config": '{"benchmark": "prbench"}',
    }
    runs = [row("runs", run_id=run_id, **values) for run_id in ("earlier", "a-run")]
    written(tmp_path, {"runs": runs}).publish()
    return job


def lines_of(
    job: Job,
    *reports: StageReport,
    outcome: str = outcomes.DONE,
) -> list[str]:
    """The last lines of a run with these reports."""
    execution = Execution(
        job,
        outcome,
        [*reports],
        flow="night",
        seconds=75,
    )
    return list(end_lines(execution))


def test_the_cost_is_that_of_the_run_and_of_all_runs_of_its_night(job):
    add_calls(
        job,
        call_entry("1", "earlier"),
        call_entry("2", cost_usd=0.25),
        call_entry("3", "other", cost_usd=9.0),
    )

    costs, reason = lines_of(job, StageReport("sample", rows=1))

    night = f"all 2 runs of the night of {NIGHT}: 0.7500 USD in 2 calls"
    assert costs == f"Spent: 0.2500 USD in 1 call; {night}; took 1 min 15 s"
    assert reason == "exit code 0 (done)"


@pytest.mark.parametrize(
    ("costs", "sentence"),
    [
        ([], "nothing, no model call was made"),
        ([None], "an unknown sum in 1 call, because no price is known"),
        ([None, 0.5], "0.5000 USD in 2 calls (1 of them have no known price)"),
    ],
)
def test_calls_without_a_price_are_no_calls_for_nothing(costs, sentence, job):
    add_calls(
        job,
        *(
            call_entry(str(number), cost_usd=cost)
            for number, cost in enumerate(costs)
        ),
    )

    lines = lines_of(job.model_copy(update={"night": None}))

    assert lines[0] == f"Spent: {sentence}; took 1 min 15 s"


def test_failures_are_counted_by_cause_in_one_line(job):
    sample = StageReport(
        "sample",
        rows=9,
        failures=Counter(timeout=2),
    )
    judge = StageReport(
        "judge",
        rows=9,
        failures=Counter(refused=1, parse_error=4),
    )

    _, failures, _ = lines_of(job, sample, judge)

    assert (
        failures == "Failed: responses 2 timeout; verdicts 4 parse_error, 1 refused"
    )


def test_the_reason_for_exit_code_3_is_the_first_warning_of_a_stage_below_the_bar(
    job,
):
    unrelated = StageReport("judge", warnings=["a remark"])
    warnings = ["alpha: 1 of 2", "beta: 0 of 2"]
    coverage = StageReport("coverage", warnings=warnings, is_below_bar=True)

    reason = lines_of(job, unrelated, coverage, outcome=outcomes.BELOW_BAR)[-1]

    assert reason == "exit code 3 (below the bar): alpha: 1 of 2; and 1 more"


def test_the_reason_for_exit_code_3_without_a_warning_is_the_line_of_the_stage(job):
    report = StageReport(
        "review",
        notes=["2 reviews made"],
        is_below_bar=True,
    )

    reason = lines_of(job, report, outcome=outcomes.BELOW_BAR)[-1]

    assert reason == "exit code 3 (below the bar): review: 2 reviews made"


def test_the_reason_for_a_stop_is_the_time(job):
    job = job.model_copy(
        update={"stop_at": datetime(2026, 11, 22, 6, 30, tzinfo=UTC)}
    )
    report = StageReport(
        "review",
        rows=3,
        skipped=2,
        is_at_stop_time=True,
    )

    finished, gaps, reason = lines_of(job, report, outcome=outcomes.STOPPED_AT_TIME)

    assert finished.startswith("Done: 3 reviews of criteria; spent: ")
    assert gaps == "Missing: 2 reviews of criteria"
    assert reason == (
        "exit code 4 (stopped at the stop time): 06:30 UTC has passed; run it again to continue"
    )


def test_the_reports_of_all_blocks_of_a_stage_are_added_up(job):
    block = StageReport("derive", rows=3, skipped=2)

    finished, gaps, _ = lines_of(job, block, block, outcome=outcomes.STOPPED_AT_TIME)

    assert finished.startswith("Done: 6 rewritten criteria; ")
    assert gaps == "Missing: 4 rewritten criteria"


def test_the_reason_for_a_failure_is_its_error(job):
    report = StageReport(
        "report",
        warnings=["no report: the disk is full"],
        has_failed=True,
    )

    reason = lines_of(job, report, outcome=outcomes.FAILED)[-1]

    assert reason == "exit code 1 (failed): no report: the disk is full"


def test_a_quiet_run_gives_only_the_reason_for_an_exit_code_other_than_0(job):
    job = job.model_copy(update={"is_quiet": True})
    report = StageReport(
        "coverage",
        warnings=["alpha: 1 of 2"],
        is_below_bar=True,
    )

    lines = lines_of(job, report, outcome=outcomes.BELOW_BAR)

    assert lines == ["exit code 3 (below the bar): alpha: 1 of 2"]
    assert lines_of(job) == []


@pytest.mark.slow
@pytest.mark.long
def test_a_limited_run_is_done_with_its_tasks_and_has_no_word_of_a_hard_subset(
    command, provider
):
    command.configure(**settings(provider, trials=1))

    output = command("run", "--limit", "3", "--warehouse", "data")
    repeated_output = command("run", "--limit", "3", "--warehouse", "data")

    assert len(provider.samples) == 2 * 3
    assert output.stderr.endswith("exit code 0 (done)\n")
    assert "hard" not in output.stderr + output.stdout
    assert "nothing is missing" in repeated_output.stderr
    assert "hard" not in repeated_output.stderr + repeated_output.stdout


@pytest.mark.slow
def test_a_run_that_stops_at_its_budget_ends_in_three_lines(command, provider):
    configuration = settings(provider, trials=1)
    for endpoint in (*configuration["models"], *configuration["judges"]):
        endpoint |= {"price": PRICE, "max_tokens": 50}
    command.configure(**configuration)

    output = command("run", "--warehouse", "data", "--max-usd", "2", code=4)

    n_verdicts = len(provider.judge_requests)
    finished, gaps, reason = output.stderr.splitlines()[-3:]
    assert finished.startswith(
        f"Done: {2 * N_TASKS} of {2 * N_TASKS} responses, {n_verdicts} of {2 * N_CRITERIA}"
        " verdicts; "
    )
    assert gaps == f"Missing: {2 * N_CRITERIA - n_verdicts} verdicts of judge"
    assert reason.startswith("exit code 4 (stopped at the budget): ")
    assert "of 2 USD used, and the next call, which needs up to 0." in reason
    assert "the bar is" not in output.stderr
    assert "hard" not in output.stderr
    assert "Database: " in output.stdout
    [run_row] = command.sql("select outcome from runs")
    assert run_row["outcome"] == "stopped_at_budget"
    [price_row] = command.sql("select distinct price_table from verdicts")
    assert price_row["price_table"] == "configuration"

    quiet_output = command(
        "run",
        "--warehouse",
        "data",
        "--max-usd",
        "0.01",
        "-q",
        code=4,
    )

    assert quiet_output.stdout == ""
    [line] = quiet_output.stderr.splitlines()
    assert line.startswith(
        "exit code 4 (stopped at the budget): 0.0000 of 0.01 USD used"
    )


@pytest.mark.slow
def test_the_end_of_a_run_below_the_bar_names_causes_and_an_error(command):
    def unreadable(request, number):
        if is_judge_request(request):
            return HttpResponse("true")
        return well_behaved(request, number)

    with FaultServer(unreadable) as server:
        configuration = settings(server, trials=1)
        del configuration["models"][1:]
        command.configure(**configuration)
        output = command("run", "--warehouse", "data", code=3)

    failures, reason = output.stderr.splitlines()[-2:]
    assert failures.startswith(
        f"Failed: verdicts {N_CRITERIA} parse_error (most often: "
    )
    assert reason.startswith(
        f"exit code 3 (below the bar): verdicts of judge on alpha, trial 1: 0 of {N_CRITERIA}"
    )
