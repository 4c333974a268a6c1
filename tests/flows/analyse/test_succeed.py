"""`prbench succeed` with a real provider: what it calls, what it pays, and what it shows."""

import json
from collections.abc import Iterator

import pytest

from tests.faults.behaviours import HttpResponse, is_judge_request, meets, prompt_of
from tests.faults.server import FaultServer
from tests.flows.conftest import Command
from tests.kit import endpoint, good_row, write_jsonl

N_TASKS = 20
N_VERDICTS = 400
"""Of 10 criteria in the responses of two models."""

pytestmark = pytest.mark.slow


def stricter(request, _number: int) -> HttpResponse:
    """The old judge decides by the prompt; the new one meets half of what the old one meets."""
    prompt = prompt_of(request)
    if not is_judge_request(request):
        return HttpResponse(f"A text by {request['model']} to {prompt}")
    is_met = meets(prompt)
    if request["model"] == "newer":
        is_met = is_met and meets(f"again {prompt}")
    return HttpResponse(
        json.dumps({"explanation": "because", "criteria_met": is_met})
    )


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        running.behaviour = stricter
        yield running


@pytest.fixture(scope="module")
def command(server, tmp_path_factory) -> Command:
    """A warehouse that the old judge has judged."""
    command = Command(tmp_path_factory.mktemp("succeed"))
    rows = [good_row(f"task-{number}") for number in range(N_TASKS)]
    write_jsonl(command.folder / "data.jsonl", rows)
    command.configure(
        dataset={"source": str(command.folder / "data.jsonl")},
        warehouse="data",
        models=[
            endpoint("alpha", server.api_base),
            endpoint("beta", server.api_base),
        ],
        judges=[
            *(
                endpoint(label, server.api_base)
                for label in ("older", "newer", "third")
            ),
            {"label": "panel", "majority": ["older", "newer", "third"]},
        ],
    )
    command("run", "--judge", "older", "--no-prefect")
    return command


def n_calls_of_newer(server: FaultServer) -> int:
    return [request["model"] for request in server.judge_requests].count("newer")


def test_a_dry_run_plans_the_calls_and_makes_none(command, server):
    n_before = len(server.judge_requests)

    calls = command.json(
        "succeed",
        "older",
        "newer",
        "-n",
        "100",
        "--dry-run",
    )

    assert [(row["label"], row["calls"]) for row in calls] == [("newer", 50)] * 2
    assert len(server.judge_requests) == n_before


@pytest.mark.long
def test_a_sample_a_larger_one_and_a_full_judging_pay_for_no_verdict_twice(
    command, server
):
    n_before = n_calls_of_newer(server)
    command(
        "succeed",
        "older",
        "newer",
        "-n",
        "100",
        "--no-prefect",
    )
    n_small = n_calls_of_newer(server) - n_before
    result = command.json(
        "succeed", "older", "newer", "-n", "200", "-q", "--no-prefect"
    )
    n_large = n_calls_of_newer(server) - n_before
    command("backfill", "--judge", "newer", "--no-prefect")
    n_full = n_calls_of_newer(server) - n_before
    complete_rows = command.json("figure", "succession")
    boards = command.sql(
        "select model, mean_score from leaderboard"
        " where judge = 'newer' and is_primary order by model"
    )

    assert (n_small, n_large, n_full) == (100, 200, N_VERDICTS)
    scores = {row["model"]: row["mean_score"] for row in boards}
    for row in result["models"]:
        assert (
            row["new_score_ci_low"] < scores[row["model"]] < row["new_score_ci_high"]
        )
        assert row["effect_ci_high"] < 0
    assert {row["n_verdicts"] for row in complete_rows} == {100}


@pytest.mark.long
def test_a_sample_grows_until_its_intervals_are_as_narrow_as_wanted(command):
    result = command.json(
        "succeed",
        "older",
        "newer",
        "-n",
        "60",
        "--width",
        "0.12",
        "-q",
        "--no-prefect",
    )

    [look] = command.sql("select max(look) as look from successions")
    widths = [
        row["effect_ci_high"] - row["effect_ci_low"] for row in result["models"]
    ]
    assert look["look"] > 1
    assert max(widths) <= 0.12


def test_a_panel_succeeds_by_the_votes_of_its_members(command, server):
    planned = command.json("succeed", "older", "panel", "-n", "100", "--dry-run")
    n_before = len(server.judge_requests)

    result = command.json(
        "succeed", "older", "panel", "-n", "100", "-q", "--no-prefect"
    )
    n_calls = len(server.judge_requests) - n_before
    command("succeed", "older", "panel", "-n", "100", "--no-prefect")

    # Two members decide as the old judge does, so the panel does too.
    assert {row["effect"] for row in result["models"]} == {0.0}
    assert {row["n_verdicts"] for row in result["models"]} == {50}
    assert result["stages"][0]["warnings"] == []
    assert sum(row["calls"] for row in planned) == n_calls
    assert len(server.judge_requests) == n_before + n_calls


def test_an_unknown_judge_is_refused_before_anything_starts(command):
    refusal = command("succeed", "olde", "newer", code=2).stderr

    assert "prbench: olde: no other judge of this name has verdicts here" in refusal
