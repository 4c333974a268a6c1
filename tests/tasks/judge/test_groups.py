"""Judges that decide several criteria in one call: their rows, costs, failures and further
attempts.
"""

import asyncio
import json
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tasks.aggregate import aggregate
from tasks.benchmarks import load_benchmark
from tasks.cascade import stored_pair
from tasks.config.job import Job
from tasks.config.models import Judge
from tasks.config.settings import Settings
from tasks.drift import choose_control_set, judge_control_set
from tasks.figures.scope import Scope
from tasks.figures.shown.leaderboard import LEADERBOARD
from tasks.judge.neighbours import ARRANGEMENTS, judge_arrangement, missing
from tasks.llm.ledger.pruning import prune
from tasks.maintain.upkeep import tidy
from tasks.plan.plan import plan
from tasks.prompts import FOLDER
from tasks.rules.errors import UsageError
from tasks.run.coverage import coverage
from tasks.run.judge_configs import configs_of
from tasks.run.run_context import open_run_context
from tests.faults.behaviours import criteria_of, decisions, prompt_of, well_behaved
from tests.faults.server import Behaviour, FaultServer, HttpResponse, Request, is_judge_request
from tests.kit import (
    Patch,
    copied,
    endpoint,
    good_row,
    job_on,
    judged,
    prepared,
    rows_in,
    sampled,
    write_jsonl,
)
from warehouse import Warehouse

PRICE = {"input_usd_per_mtok": 0.7, "output_usd_per_mtok": 1.3}
OPENAI = {
    "name": "openai/a-decider",
    "kind": "decisions",
    "criteria_per_call": "all",
}
SYSTEM_ONE = {
    "name": "hosted_vllm/a-decider",
    "kind": "decisions",
    "criteria_per_call": 4,
}
CHAT = {
    "name": "hosted_vllm/a-chat",
    "criteria_per_call": 4,
    "temperature": 0.0,
}
JUDGES = {
    "decisions": OPENAI,
    "systemone": SYSTEM_ONE,
    "chat": CHAT,
}
COLUMNS = (
    "verdict_id, response_id, task_id, criterion_id, status, value, explanation, probability,"
    " confidence, n_in_call, position_in_call, prompt_tokens, completion_tokens, cost_usd,"
    " attempts, error"
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_scores")]
Make = Callable[..., Job]


@pytest.fixture(params=JUDGES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def job_of(
    server: FaultServer,
    warehouse: Path,
    judge: Mapping[str, Any],
    more: Sequence[Mapping[str, Any]] = (),
    **settings: Any,
) -> Job:
    """A job on two tasks with one model, a judge with these settings, and more judges."""
    own = {
        "label": "judge",
        "api_base": server.api_base,
        "price": PRICE,
        **judge,
    }
    given = {
        "models": [endpoint("a", server.api_base)],
        "judges": [own, *more],
        **settings,
    }
    job = job_on(given.pop("dataset", {"source": "sample"})["source"], warehouse, **given)
    return job.model_copy(update={"limit": 2})


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A warehouse with responses, and the port of their provider."""
    with FaultServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOSTED_VLLM_API_KEY", "none")
        patch.setenv("OPENAI_API_KEY", "none")
        job = job_of(server, tmp_path_factory.mktemp("sampled") / "warehouse", OPENAI)
        sampled(prepared(job))
        return job.warehouse, int(server.api_base.rpartition(":")[2].partition("/")[0])


@pytest.fixture
def server(shared: tuple[Path, int]) -> Iterator[FaultServer]:
    """A new provider on the same port, and keys for it."""
    with pytest.MonkeyPatch.context() as patched, FaultServer(port=shared[1]) as running:
        for name in ("OPENAI_API_KEY", "HOSTED_VLLM_API_KEY"):
            patched.setenv(name, "none")
        yield running


@pytest.fixture
def make(shared: tuple[Path, int], server: FaultServer, tmp_path: Path) -> Make:
    """Make jobs with the given judge on a copy of the warehouse."""
    warehouse = Path(shutil.copytree(shared[0], tmp_path / "warehouse"))
    return lambda judge, **settings: job_of(server, warehouse, judge, **settings)


def verdicts(job: Job) -> list[dict[str, Any]]:
    """The verdicts, each task's in the order of its rubric."""
    order = "(select position from criteria where criteria.criterion_id = verdicts.criterion_id)"
    return rows_in(job, f"select {COLUMNS} from verdicts order by task_id, {order}")


def usages(server: FaultServer, since: int = 0, model: str = "") -> list[tuple[int, int]]:
    """The numbers of tokens of each paid call of a judge: prompt, reply."""
    replies = [
        (each.request, server.behaviour(each.request, each.number)) for each in server.paid[since:]
    ]
    return [
        (len(prompt_of(request).split()), len((reply.text or "").split()))
        for request, reply in replies
        if is_judge_request(request) and model in request["model"]
    ]


def nano(used: Sequence[tuple[int, int]]) -> int:
    """The cost of these calls in billionths of a dollar."""
    return sum(round(1e3 * (0.7 * prompt + 1.3 * reply)) for prompt, reply in used)


def nano_of(rows: Sequence[Mapping[str, Any]]) -> int:
    return sum(round(1e9 * row["cost_usd"]) for row in rows)


def test_each_criterion_has_a_verdict_of_its_own_and_a_share_of_the_cost_from_one_planned_request_for_its_piece(
    kind: str, make: Make, server: FaultServer
) -> None:
    job = make(JUDGES[kind])
    planned = plan(job)[-1]
    report = judged(job)
    rows = verdicts(job)
    requests = server.judge_requests
    used = usages(server)

    assert report.failures == {}
    assert len(rows) == report.rows > 20
    size = {"decisions": 99}.get(kind, 4)
    sizes = [
        sum(row["task_id"] == task for row in rows)
        for task in dict.fromkeys(row["task_id"] for row in rows)
    ]
    assert sum(-(-n // size) for n in sizes) == len(requests)
    assert [(min(size, n - i // size * size), i % size + 1) for n in sizes for i in range(n)] == [
        (row["n_in_call"], row["position_in_call"]) for row in rows
    ]
    if kind == "chat":
        decided = [
            each for request in requests for each in json.loads(well_behaved(request, 0).text or "")
        ]
        assert sorted(float(each["criteria_met"]) for each in decided) == sorted(
            row["value"] for row in rows
        )
        assert {row["explanation"] for row in rows} == {"as the test says"}
    else:
        decided = [each["probability"] for request in requests for each in decisions(request)]
        assert sorted(decided) == sorted(row["probability"] for row in rows)
        assert [float(row["probability"] >= 0.5) for row in rows] == [row["value"] for row in rows]
        assert all(
            row["confidence"] == max(row["probability"], 1 - row["probability"]) for row in rows
        )
        assert {row["explanation"] for row in rows} == {None}

    assert sum(prompt for prompt, _ in used) == sum(row["prompt_tokens"] for row in rows)
    assert sum(reply for _, reply in used) == sum(row["completion_tokens"] for row in rows)
    assert nano(used) == nano_of(rows)
    assert all(math.isclose(1e9 * row["cost_usd"], round(1e9 * row["cost_usd"])) for row in rows)
    assert planned.calls == len(requests)
    assert nano(used) <= 1e9 * (planned.cost_usd_high or 0.0)


def spoiled(spoil: Callable[[list[Any]], Any], until: int = 1) -> Behaviour:
    """A judge whose first `until` replies about a piece are spoiled."""

    def behaviour(request: Request, number: int) -> HttpResponse:
        reply = well_behaved(request, number)
        if not is_judge_request(request) or number >= until:
            return reply
        return replace(reply, text=json.dumps(spoil(json.loads(reply.text or ""))))

    return behaviour


def test_an_entry_that_cannot_be_read_fails_its_criterion_alone_and_the_piece_is_asked_again(
    kind: str, make: Make, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.behaviour = spoiled(lambda given: [*given[:1], *given[2:]], until=2)
    job = make(JUDGES[kind], retention={"replies_days": 1})
    report = judged(job)
    rows = verdicts(job)
    failed = [row for row in rows if row["status"] == "parse_error"]

    assert {row["position_in_call"] for row in failed} == {2}
    assert report.failures == {"parse_error": len(failed)}
    assert {row["attempts"] for row in rows if row["status"] != "parse_error"} == {1}
    assert {row["attempts"] for row in failed} == {2}
    with monkeypatch.context() as later:  # replies of undecided calls are not pruned
        later.setattr(time, "time", lambda: datetime.now(UTC).timestamp() + 2 * 86_400)
        tidy(job)
    n_before = len(server.judge_requests)
    paid_nano = nano(usages(server))
    n_paid = len(server.paid)
    server.behaviour = well_behaved
    assert judged(job, retry_failed=True).failures == {}
    assert len(failed) == len(server.judge_requests) - n_before
    assert {row["status"] for row in verdicts(job)} == {"met", "unmet"}
    assert paid_nano + nano(usages(server, n_paid)) == nano_of(verdicts(job))


UNREADABLE: dict[str, Behaviour] = {
    "an entry is lacking": spoiled(lambda given: [*given[:1], *given[2:]], until=10**6),
    "no entry": spoiled(lambda _: [], until=10**6),
    "an empty reply": lambda request, _number: HttpResponse(""),
}


@pytest.mark.parametrize(("name", "kind"), zip(UNREADABLE, JUDGES, strict=True))
def test_a_piece_that_is_unreadable_in_two_runs_is_asked_again_only_with_retry_failed(
    name: str, kind: str, make: Make, server: FaultServer, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("tasks.llm.calls.gateway.FIRST_BACKOFF_S", 0.01)
    server.behaviour = UNREADABLE[name]
    job = make(JUDGES[kind], limits={"attempts": 2})
    with_option = job.model_copy(update={"retry_failed": True})
    n_calls = []
    n_planned = []
    for run in (job, job, job, with_option, job):
        n_before = len(server.judge_requests)
        n_planned.append(plan(run)[-1].calls)
        judged(run, retry_failed=run.retry_failed)
        n_calls.append(len(server.judge_requests) - n_before)
    n_pieces = n_planned[0]
    failed = [row for row in verdicts(job) if row["value"] is None]
    (of_verdicts,) = [cell for cell in coverage(job) if cell.judge is not None]

    assert n_calls[:3] == [2 * n_pieces, 2 * n_pieces, 0]
    assert n_calls[3] <= 2 * n_pieces
    assert n_calls[4] == 0
    assert n_planned == [n_pieces, n_pieces, 0, n_pieces, 0]
    assert {row["status"] for row in failed} == {"parse_error"}
    assert all("--retry-failed asks again" in row["error"] for row in failed)
    assert of_verdicts.failures == {"parse_error": len(failed)}

    server.behaviour = well_behaved
    n_before = len(server.judge_requests)
    assert judged(job, retry_failed=True).failures == {}
    assert len(server.judge_requests) - n_before == n_pieces


def test_a_criterion_alone_that_is_unreadable_is_asked_again_in_each_run(
    make: Make, server: FaultServer
) -> None:
    server.behaviour = lambda request, number: (
        HttpResponse("I cannot say.")
        if is_judge_request(request)
        else well_behaved(request, number)
    )
    job = make({"name": "hosted_vllm/a-chat"})
    n_calls = []
    for _ in range(3):
        n_before = len(server.judge_requests)
        judged(job)
        n_calls.append(len(server.judge_requests) - n_before)

    assert n_calls[0] > 0
    assert n_calls[1:] == [n_calls[0], n_calls[0]]


def test_each_criterion_takes_the_first_attempt_in_which_its_entry_can_be_read(
    kind: str, make: Make, server: FaultServer, tmp_path: Path
) -> None:
    def changing(request: Request, number: int) -> HttpResponse:
        """The first reply lacks the second entry; the next one reverses every decision."""
        reply = well_behaved(request, 0)
        if not is_judge_request(request):
            return reply
        given = json.loads(reply.text or "")
        if number == 0:
            return replace(reply, text=json.dumps([given[0], *given[2:]]))
        turned = [
            {
                **each,
                "criteria_met": not each.get("criteria_met"),
                "probability": 1 - each.get("probability", 0),
            }
            for each in given
        ]
        return replace(reply, text=json.dumps(turned))

    server.behaviour = changing
    job = make(JUDGES[kind])
    empty = copied(job, tmp_path / "before")
    judged(job)
    rows = verdicts(job)
    n_calls = len(server.judge_requests)

    server.behaviour = well_behaved
    right = copied(empty, tmp_path / "right")
    judged(right)
    for row, expected in zip(rows, verdicts(right), strict=True):
        is_second = row["position_in_call"] == 2
        assert expected["value"] == (1 - row["value"] if is_second else row["value"])
        assert 1 + is_second == row["attempts"]

    # If the rows are lost but not the ledger, they are restored without a call.
    n_calls = len(server.judge_requests)
    (tmp_path / "before/ledger").rename(tmp_path / "before/ledger.old")
    (job.warehouse / "ledger").rename(tmp_path / "before/ledger")
    judged(empty)
    assert n_calls == len(server.judge_requests)
    assert rows == verdicts(empty)


def test_another_threshold_makes_its_verdicts_of_stored_probabilities_without_a_call(
    make: Make, server: FaultServer
) -> None:
    judged(make(OPENAI))
    n_calls = len(server.book)
    prune(make(OPENAI).warehouse / "ledger", math.inf, lambda cells: dict.fromkeys(cells, True))
    job = make({**OPENAI, "threshold": 0.75})
    judged(job)
    rows = rows_in(
        job,
        "select threshold, cost_usd, probability, value from (select *, dense_rank() over (order by"
        " cost_usd > 0) as threshold from verdicts)",
    )

    assert n_calls == len(server.book)
    free = [row for row in rows if row["cost_usd"] == 0]
    assert len(rows) == 2 * len(free)
    assert [float(row["probability"] >= 0.75) for row in free] == [row["value"] for row in free]


HOSTILE: dict[str, bytes] = {
    "ten thousand decisions": (
        json.dumps({"answers": [{"name": "c1", "probability": 0.5}] * 10_000}).encode()
    ),
    "deep nesting": b'{"answers": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "no decisions": b'{"answers": 3, "model": "m"}',
    "text": b"<html>",
    "a decision on another question": (
        b'{"answers": {"c1 ": {"noul": 0.9}}, "usage": {"input_tokens": "many"}}'
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_body_is_a_failure_with_a_cause_and_never_a_verdict(
    name: str, make: Make, server: FaultServer
) -> None:
    server.behaviour = lambda _request, _number: HttpResponse(raw=HOSTILE[name])
    job = make(OPENAI, limits={"attempts": 1, "outage_s": 1.0})
    judged(job)
    rows = verdicts(job)

    assert {row["value"] for row in rows} == {None}
    assert {"parse_error", "provider_error"} >= {row["status"] for row in rows}
    assert all(row["error"] and "\n" not in row["error"] for row in rows)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"kind": "decisions", "criteria_per_call": 129}, "at most 128"),
    (
        {
            "kind": "decisions",
            "grading": "ternary",
            "threshold": 0.5,
        },
        "of three values",
    ),
    ({"kind": "decisions", "temperature": 0.0}, "`temperature` is for `kind: chat`"),
    ({"kind": "decisions", "mode": "batch"}, "`mode` is for `kind: chat`"),
    ({"threshold": 0.5}, "`threshold` is for `kind: decisions`"),
    ({"criteria_per_call": 0}, "criteria_per_call"),
    ({"criteria_per_call": 2, "logprobs": True}, "`logprobs` needs"),
]


@pytest.mark.parametrize(("judge", "message"), REFUSED)
def test_settings_that_no_provider_can_follow_are_refused(
    judge: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Settings.model_validate(
            {"dataset": {"source": "sample"}, "judges": [{"name": "openai/x", **judge}]}
        )


TOO_LONG = HttpResponse(
    status=400,
    error={
        "message": "maximum context length exceeded",
        "type": "invalid_request_error",
        "code": None,
    },
)


def test_a_piece_that_does_not_fit_is_judged_one_by_one_by_a_chat_judge_and_fails_for_a_decision_model(
    kind: str, make: Make, server: FaultServer
) -> None:
    def behaviour(request: Request, number: int) -> HttpResponse:
        is_group = "questions" in request or len(criteria_of(prompt_of(request))) > 1
        return TOO_LONG if is_judge_request(request) and is_group else well_behaved(request, number)

    server.behaviour = behaviour
    job = make(JUDGES[kind])
    judged(job)
    rows = verdicts(job)

    if kind == "chat":
        assert {(row["status"], row["n_in_call"], row["position_in_call"]) for row in rows} == {
            ("met", 1, 1),
            ("unmet", 1, 1),
        }
        assert nano(usages(server)) == nano_of(rows)
        return
    assert {(row["status"], row["value"]) for row in rows} == {("context_length", None)}


def test_what_a_partly_readable_reply_cost_is_kept_where_its_piece_is_then_too_long(
    make: Make, server: FaultServer
) -> None:
    def behaviour(request: Request, number: int) -> HttpResponse:
        if not is_judge_request(request) or len(criteria_of(prompt_of(request))) == 1:
            return well_behaved(request, number)
        return TOO_LONG if number else spoiled(lambda given: given[:2], until=1)(request, number)

    server.behaviour = behaviour
    job = make(CHAT)
    judged(job)

    assert {1, 4} <= {row["n_in_call"] for row in verdicts(job)}
    assert nano(usages(server)) == nano_of(verdicts(job))


def test_a_cascade_is_evaluated_with_the_configured_threshold_at_the_price_of_its_calls(
    make: Make, server: FaultServer, monkeypatch: Patch
) -> None:
    monkeypatch.undo()  # here scores are published
    second = {
        "name": "hosted_vllm/second",
        "label": "second",
        "api_base": server.api_base,
        "price": PRICE,
    }
    for threshold in (0.5, 0.75):  # the second threshold needs no call
        judged(make({**OPENAI, "threshold": threshold}, more=[second]))
    expected = [nano(usages(server, model=name)) / 1e9 for name in ("a-decider", "second")]
    for threshold in (0.5, 0.75):
        job = make({**OPENAI, "threshold": threshold})
        given = {
            **job.key,
            "cheap": "judge",
            "strong": "second",
        }
        configured = {
            each.judge_config_hash
            for each in configs_of(job.settings.judges[0], load_benchmark("prbench"))
        }
        with Warehouse(job.warehouse).reader() as reader:
            pair = stored_pair(reader, {**given, "splits": []}, configured)
        facts = pair.paired.facts

        assert [(p >= threshold) * 1.0 for p in facts.probability] == list(facts.first[:, 0])
        costs_usd = [
            each * len(facts.probability) for each in (pair.costs.cheap_usd, pair.costs.strong_usd)
        ]
        assert pytest.approx(expected) == costs_usd


@pytest.mark.parametrize("of_second", [{}, {"kind": "decisions"}])
def test_a_judge_of_groups_is_first_in_a_cascade_and_its_confidence_decides(
    of_second: dict[str, Any], make: Make, server: FaultServer
) -> None:
    second = {
        "name": "hosted_vllm/second",
        "label": "second",
        "api_base": server.api_base,
        "price": PRICE,
        **of_second,
    }
    when = {
        "first": "judge",
        "then": "second",
        "when": {"confidence_below": 0.75},
    }
    job = make(OPENAI, more=[second, {"label": "cascade", "cascade": when}])
    judged(job)
    rows = rows_in(
        job, "select decided_by, escalated_because, confidence, n_in_call, value from verdicts"
    )
    sure = [
        max(each["probability"], 1 - each["probability"])
        for request in server.judge_requests
        if request["model"] == "a-decider"
        for each in decisions(request)
    ]

    assert len(sure) == len(rows)
    assert (
        sum(each < 0.75 for each in sure) == sum(row["decided_by"] == "second" for row in rows) > 0
    )
    assert {tuple(row["escalated_because"]) for row in rows if row["decided_by"] == "second"} == {
        ("confidence",)
    }
    assert {1 if of_second else None} == {
        row["n_in_call"] for row in rows if row["decided_by"] == "second"
    }
    assert len(server.judge_requests) == 2 + sum(row["decided_by"] == "second" for row in rows)
    assert all(row["confidence"] >= 0.75 for row in rows if row["decided_by"] == "judge")


def test_where_only_the_second_judge_failed_the_next_run_calls_it_alone_as_planned(
    make: Make, server: FaultServer
) -> None:
    second = {
        "name": "hosted_vllm/second",
        "label": "second",
        "api_base": server.api_base,
        "price": PRICE,
    }
    when = {
        "first": "judge",
        "then": "second",
        "when": {"confidence_below": 0.75},
    }
    job = make(SYSTEM_ONE, more=[second, {"label": "cascade", "cascade": when}])

    def unreadable(request: Request, number: int) -> HttpResponse:
        is_second = (
            is_judge_request(request) and request["model"] == "second" and "[" in prompt_of(request)
        )
        return HttpResponse("I cannot say.") if is_second else well_behaved(request, number)

    server.behaviour = unreadable
    failed = judged(job).failures
    planned = {each.cascade.partition(",")[0]: each.calls for each in plan(job) if each.cascade}
    n_before = len(server.judge_requests)
    server.behaviour = well_behaved
    judged(job)
    again = server.judge_requests[n_before:]

    assert judged(job).failures == {}
    assert planned["first judge of cascade"] == 0 < len([*failed])
    assert planned["second judge of cascade"] == len({prompt_of(request) for request in again})
    assert {request["model"] for request in again} == {"second"}


def test_an_unused_threshold_is_refused_and_part_of_no_identity() -> None:
    benchmark = load_benchmark("researchrubrics")  # ternary by default
    judges = [
        Judge(
            name="openai/judge",
            kind="decisions",
            grading=grading,
        )
        for grading in (None, "ternary")
    ]
    assert len({configs_of(judge, benchmark)[0].judge_config_hash for judge in judges}) == 1
    with pytest.raises(UsageError, match="threshold"):
        configs_of(
            Judge(
                name="openai/judge",
                kind="decisions",
                threshold=0.7,
            ),
            benchmark,
        )


@pytest.mark.parametrize("name", ["mine.txt", "mine_v3.txt"])
def test_a_benchmark_of_ones_own_has_a_template_for_groups_beside_its_own(
    name: str, tmp_path: Path
) -> None:
    judge = Judge(name="openai/judge", criteria_per_call=4)
    of_benchmark = replace(load_benchmark("prbench"), gradings={"binary": str(tmp_path / name)})
    with pytest.raises(UsageError, match=r"mine_group_v1\.txt is neither a file nor one of"):
        configs_of(judge, of_benchmark)
    shutil.copy(FOLDER / "binary_group_v1.txt", tmp_path / "mine_group_v1.txt")
    assert "<<rubric_items>>" in configs_of(judge, of_benchmark)[0].template


def test_provider_batches_hold_one_line_for_each_piece(make: Make, server: FaultServer) -> None:
    live = make(CHAT)
    judged(live)
    expected = [(row["criterion_id"], row["value"]) for row in verdicts(live)]
    job = make(
        {
            **CHAT,
            "mode": "batch",
            "label": "batched",
        }
    )
    n_before = len(server.judge_requests)
    server.behaviour = well_behaved
    judged(job)
    rows = rows_in(
        job, "select criterion_id, value, cost_usd from verdicts where judge = 'batched'"
    )

    assert {tuple(each) for each in expected} == {
        (row["criterion_id"], row["value"]) for row in rows
    }
    assert n_before == len(
        server.judge_requests
    )  # the same calls, so their replies are in the ledger
    assert {row["cost_usd"] for row in rows} == {0.0}


@pytest.mark.long
def test_neighbours_measures_the_effect_that_the_judge_has(
    make: Make, server: FaultServer, tmp_path: Path, monkeypatch: Patch
) -> None:
    monkeypatch.undo()  # here scores are published

    def influenced(request: Request, number: int) -> HttpResponse:
        """A decision model that calls every criterion but the first of a call unmet."""
        reply = well_behaved(request, number)
        if "questions" not in request:
            return reply
        first, *others = json.loads(reply.text or "")
        return replace(
            reply, text=json.dumps([first, *({**each, "probability": 0.0} for each in others)])
        )

    server.behaviour = influenced
    job = make(SYSTEM_ONE).model_copy(update={"n_responses": 2})
    judged(job)
    n_before = len(server.judge_requests)
    compared(job)
    columns = "arrangement, response_id, criterion_id, value, position_in_call"
    rows = rows_in(job, f"select {columns} from neighbour_verdicts")
    of = {(row["arrangement"], row["response_id"], row["criterion_id"]): row for row in rows}
    change = [
        row["value"] - of["alone", row["response_id"], row["criterion_id"]]["value"]
        for row in rows
        if row["arrangement"] == "grouped"
    ]
    (effect,) = rows_in(
        job,
        "select before, after, change, n from neighbour_effects where arrangement = 'grouped' "
        "and compared_with = 'alone' and measure_of = 'met' and breakdown = 'all'",
    )

    assert len(change) == effect["n"] > 20
    assert math.isclose(sum(change) / len(change), effect["change"])
    assert effect["change"] < -0.2
    assert {
        row["value"]
        for row in rows
        if row["arrangement"] == "shuffled" and row["position_in_call"] > 1
    } == {0.0}
    # The groups are those of the run, and its calls are not repeated.
    n_alone = len(change)
    n_shuffled = len({entry.digest for entry in server.paid}) - n_before - len(change)
    assert n_alone + n_shuffled == len(server.judge_requests) - n_before
    compared(job)
    assert n_alone + n_shuffled == len(server.judge_requests) - n_before
    assert rows_in(job, "select 1 from verdicts where judge like '%(alone)%'") == []

    # The leaderboard shows the effects, but only for the data set that they were measured on.
    write_jsonl(tmp_path / "other.jsonl", [good_row("other")])
    other = make(SYSTEM_ONE, dataset={"source": str(tmp_path / "other.jsonl")})
    sampled(prepared(other))
    judged(other)
    compared(other)
    with Warehouse(job.warehouse).reader() as reader:
        shown = list(Scope(job, reader).rows_of(LEADERBOARD))
    assert len({row["split"] for row in shown}) == len(shown)
    assert {(4, effect["change"])} == {
        (row["criteria_per_call"], row["neighbour_effect"]) for row in shown
    }


@pytest.mark.parametrize("has_own_template", [False, True])
def test_neighbours_tries_again_what_failed_for_a_temporary_cause(
    has_own_template: bool, make: Make, server: FaultServer, tmp_path: Path
) -> None:
    own = Path(shutil.copy(FOLDER / "binary_group_v1.txt", tmp_path / "own.txt"))
    job = make({**CHAT, "template": str(own)} if has_own_template else SYSTEM_ONE)
    job = job.model_copy(update={"n_responses": 1})
    server.behaviour = lambda _request, _number: HttpResponse("[]")
    compared(job)
    statuses = (
        "select distinct arrangement, status, value is null as is_open from neighbour_verdicts"
        " order by all"
    )
    failed = [
        {
            "status": "parse_error",
            "is_open": True,
            "arrangement": name,
        }
        for name in sorted(ARRANGEMENTS)
    ]
    assert failed == rows_in(job, statuses)

    server.behaviour = well_behaved
    compared(job)
    assert {(row["arrangement"], row["is_open"]) for row in rows_in(job, statuses)} == {
        ("alone", False),
        ("grouped", False),
        ("shuffled", False),
    }


def compared(job: Job) -> None:
    """Make the missing verdicts of all arrangements, and measure."""

    async def run() -> None:
        with Warehouse(job.warehouse).reader() as reader:
            arranged = missing(job, reader)
        async with open_run_context(job) as context:
            for each in arranged:
                await judge_arrangement(job, context, each)

    asyncio.run(run())
    Warehouse(job.warehouse).publish()
    aggregate(job)


@pytest.mark.parametrize("is_lacking", [False, True])
def test_a_control_set_holds_whole_pieces_and_a_night_asks_for_each_once(
    is_lacking: bool, make: Make, server: FaultServer, tmp_path: Path
) -> None:
    def without_second(request: Request, number: int) -> HttpResponse:
        """A judge whose replies always lack the second entry, so that no control set has that
        criterion.
        """
        reply = well_behaved(request, number)
        given = json.loads(reply.text or "") if is_judge_request(request) else []
        return replace(reply, text=json.dumps([*given[:1], *given[2:]])) if given else reply

    server.behaviour = without_second if is_lacking else well_behaved
    job = make(SYSTEM_ONE, drift={"verdicts": 6})
    judged(job)
    choose_control_set(job)
    members = rows_in(
        job, "select verdicts.* from control_set inner join verdicts using (verdict_id)"
    )
    n_before = len(server.judge_requests)
    n_paid = len(server.paid)
    tonight = job.model_copy(update={"night": "2026-11-26"})
    killed = copied(tonight, tmp_path / "killed")
    planned = sum(each.calls for each in plan(tonight) if each.purpose == "drift")
    asyncio.run(judge_control_set(tonight))
    again = rows_in(job, "select * from control_verdicts")

    # After a kill between two rows of a piece, the next attempt writes the same rows.
    Warehouse(killed.warehouse).write("control_verdicts", again[:1])
    Warehouse(killed.warehouse).publish()
    shutil.copytree(job.warehouse / "ledger", killed.warehouse / "ledger", dirs_exist_ok=True)
    asyncio.run(judge_control_set(killed))
    assert nano_of(again) == nano_of(rows_in(killed, "select * from control_verdicts"))

    pieces = {(row["response_id"], row["piece_hash"]): row["n_in_call"] for row in members}
    assert len(members) == sum(pieces.values()) - is_lacking * len(pieces) >= 6
    assert nano(usages(server, n_paid)) == nano_of(again)
    assert planned == len(pieces)
    assert len(pieces) == len(server.judge_requests) - n_before
    assert sorted(row["value"] for row in members) == sorted(row["value"] for row in again)


AWAY = HttpResponse(
    status=307,
    raw=b"",
    headers={"Location": "http://elsewhere.example/v1/decisions"},
)
SECRET = "sk-of-a-test-1234567890"
WRONG_KEY = HttpResponse(
    status=401, error={"message": f"Incorrect API key provided: {SECRET}", "type": None}
)


@pytest.mark.parametrize(
    ("http_response", "status"), [(AWAY, "redirected"), (WRONG_KEY, "provider_error")]
)
def test_a_request_that_no_repetition_helps_is_made_once_and_tells_no_secret(
    http_response: HttpResponse,
    status: str,
    kind: str,
    make: Make,
    server: FaultServer,
    monkeypatch: Patch,
) -> None:
    for name in ("OPENAI_API_KEY", "HOSTED_VLLM_API_KEY"):
        monkeypatch.setenv(name, SECRET)
    server.behaviour = lambda _request, _number: http_response
    job = make(JUDGES[kind])
    judged(job)
    rows = rows_in(job, "select status, value, error from verdicts")

    assert {(status, None)} == {(row["status"], row["value"]) for row in rows}
    assert not any(SECRET in row["error"] for row in rows)
    assert len(server.book) == len({entry.digest for entry in server.entries})
