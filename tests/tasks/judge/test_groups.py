"""Judges that decide several criteria in one call: their rows, costs, failures and further
attempts.
"""

import asyncio
import itertools
import json
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.aggregate import aggregate
from tasks.benchmarks import load_benchmark
from tasks.cascade import stored_pair
from tasks.config.job import Job
from tasks.config.models import Judge
from tasks.config.settings import Settings
from tasks.drift import choose_control_set, judge_control_set
from tasks.figures.scope import Scope
from tasks.figures.shown.leaderboard import LEADERBOARD
from tasks.judge.groups import equal_shares
from tasks.judge.neighbours import judge_arrangement, missing_arrangements
from tasks.llm.ledger.pruning import prune
from tasks.maintain.tidying import tidy
from tasks.plan.estimate import Planned
from tasks.plan.plan import plan
from tasks.prompts import FOLDER
from tasks.rules.errors import UsageError
from tasks.run.coverage import coverage
from tasks.run.judge_configs import configs_of
from tasks.run.run_context import open_run_context
from tasks.run.writing import StageReport
from tests.faults.behaviours import (
    ELSEWHERE,
    criteria_of,
    failed,
    prompt_of,
    well_behaved,
)
from tests.faults.server import (
    Behaviour,
    FaultServer,
    HttpResponse,
    Request,
    is_judge_request,
)
from tests.kit import (
    Row,
    copied,
    endpoint,
    few_published,
    good_row,
    job_on,
    judged,
    prepared,
    rows_in,
    sampled,
    values_in,
    write_jsonl,
)
from tests.tasks.judge.values import StoredResponses, distinct
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
PIECES = {
    "decisions": [12, 11],
    "systemone": [4, 4, 4, 4, 4, 3],
    "chat": [4, 4, 4, 4, 4, 3],
}
"""The sizes of the pieces into which the rubrics of the two tasks are divided."""
N_CRITERIA = 23
"""The criteria of both tasks."""
KEYS = ("OPENAI_API_KEY", "HOSTED_VLLM_API_KEY")
NEVER_READABLE = 10**6

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_scores")]
MakeJob = Callable[..., Job]


def job_of(
    server: FaultServer,
    warehouse: Path,
    judge: Mapping[str, Any],
    other_judges: Sequence[Mapping[str, Any]] = (),
    source: Path | str = "sample",
    **settings: Any,
) -> Job:
    """A job on two tasks with one model, a judge with these settings, and more judges."""
    first_judge = {
        "label": "judge",
        "api_base": server.api_base,
        "price": PRICE,
        **judge,
    }
    job = job_on(
        source,
        warehouse,
        models=[endpoint("a", server.api_base)],
        judges=[first_judge, *other_judges],
        **settings,
    )
    return job.model_copy(update={"limit": 2})


@contextmanager
def provider(port: int = 0) -> Iterator[FaultServer]:
    """A provider, and keys for it; the waits between attempts are short."""
    with pytest.MonkeyPatch.context() as patch, FaultServer(port=port) as server:
        patch.setattr("tasks.llm.calls.gateway.FIRST_BACKOFF_S", 0.01)
        for name in KEYS:
            patch.setenv(name, "none")
        yield server


@pytest.fixture(scope="module")
def responses(tmp_path_factory) -> StoredResponses:
    with provider() as server:
        job = job_of(server, tmp_path_factory.mktemp("sampled") / "warehouse", OPENAI)
        prepared(job.model_copy(update={"limit": None}))
        sampled(job)
        return StoredResponses(job.warehouse, urlsplit(server.api_base).port or 0)


# A second decision model (systemone): `first_run` tests it in every run, its repetitions
# only run with `-m long`.
KINDS = ["decisions", "chat", pytest.param("systemone", marks=pytest.mark.long)]


@pytest.fixture(params=KINDS)
def kind(request) -> str:
    return str(request.param)


@pytest.fixture
def server(responses: StoredResponses) -> Iterator[FaultServer]:
    """A new provider on the port of the responses' provider."""
    with provider(responses.port) as server:
        yield server


@pytest.fixture
def make(responses: StoredResponses, server: FaultServer, tmp_path) -> MakeJob:
    """Make jobs with the given judge on a copy of the warehouse."""
    warehouse = Path(shutil.copytree(responses.warehouse, tmp_path / "warehouse"))
    return lambda judge, **settings: job_of(server, warehouse, judge, **settings)


def second_judge(server: FaultServer, **settings: Any) -> dict[str, Any]:
    """The settings of a judge that decides criteria one by one."""
    return {
        "name": "hosted_vllm/second",
        "label": "second",
        "api_base": server.api_base,
        "price": PRICE,
        **settings,
    }


CASCADE = {
    "label": "cascade",
    "cascade": {
        "first": "judge",
        "then": "second",
        "when": {"confidence_below": 0.75},
    },
}


def verdicts(job: Job) -> list[Row]:
    """The verdicts, each task's in the order of its rubric."""
    query = """
        select verdicts.* exclude (run_id, created_at, latency_s)
        from verdicts inner join criteria using (task_id, criterion_id)
        order by task_id, position
    """
    return rows_in(job, query)


def requests_to_judge(
    server: FaultServer,
    job: Job,
    *,
    retry_failed: bool = False,
) -> list[Request]:
    """Judge what is missing, and return the requests that it took."""
    n_before = len(server.judge_requests)
    judged(job, retry_failed=retry_failed)
    return server.judge_requests[n_before:]


def paid_nano_usd(server: FaultServer, since: int = 0, model: str = "") -> int:
    """The cost of the paid calls of a judge in billionths of a dollar."""
    total = 0
    for prompt_tokens, reply_tokens in token_counts(server, since, model):
        prompt_price = PRICE["input_usd_per_mtok"] * prompt_tokens
        reply_price = PRICE["output_usd_per_mtok"] * reply_tokens
        total += round(1e3 * (prompt_price + reply_price))
    return total


def token_counts(
    server: FaultServer,
    since: int = 0,
    model: str = "",
) -> list[tuple[int, int]]:
    """The tokens of each paid call of a judge: prompt, reply.

    The server stores no replies: its present behaviour makes them again, so it must depend on
    request and number alone, and be the one that those calls met.
    """
    counts = []
    for entry in server.paid[since:]:
        if is_judge_request(entry.request) and model in entry.request["model"]:
            reply = server.behaviour(entry.request, entry.number)
            n_prompt = len(prompt_of(entry.request).split())
            counts.append((n_prompt, len((reply.text or "").split())))
    return counts


def nano_usd_of(rows: list[Row]) -> int:
    """The cost of rows in billionths of a dollar."""
    return sum(round(1e9 * row["cost_usd"]) for row in rows)


def total(rows: list[Row], column: str) -> float:
    return sum(row[column] for row in rows)


class FirstRun(NamedTuple):
    """The first run of a judge, which nothing disturbs."""

    kind: str
    planned: Planned
    report: StageReport
    rows: list[Row]
    requests: list[Request]
    token_counts: list[tuple[int, int]]
    paid_nano_usd: int


@pytest.fixture(scope="module", params=JUDGES)
def first_run(request, responses: StoredResponses, tmp_path_factory) -> FirstRun:
    warehouse = tmp_path_factory.mktemp("first") / "warehouse"
    shutil.copytree(responses.warehouse, warehouse)
    with few_published(), provider(responses.port) as server:
        job = job_of(server, warehouse, JUDGES[request.param])
        planned = plan(job)[-1]  # the row of the judge, after that of the model
        report = judged(job)
        return FirstRun(
            request.param,
            planned,
            report,
            verdicts(job),
            server.judge_requests,
            token_counts(server),
            paid_nano_usd(server),
        )


def entries_of(requests: Sequence[Request]) -> list[Row]:
    """The entries on criteria in the replies to requests."""
    entries = []
    for request in requests:
        entries += json.loads(well_behaved(request, 0).text or "")
    return entries


def test_each_criterion_has_a_verdict_of_its_own(first_run):
    assert first_run.report.failures == {}
    assert first_run.report.rows == N_CRITERIA
    assert len(first_run.rows) == N_CRITERIA


def test_each_piece_is_one_planned_request(first_run):
    n_pieces = len(PIECES[first_run.kind])

    assert len(first_run.requests) == n_pieces
    assert first_run.planned.calls == n_pieces


def test_a_row_has_the_size_of_its_piece_and_the_position_in_it(first_run):
    expected = []
    for size in PIECES[first_run.kind]:
        expected += [(size, position) for position in range(1, size + 1)]

    positions = [
        (row["n_in_call"], row["position_in_call"]) for row in first_run.rows
    ]

    assert positions == expected


@pytest.mark.parametrize("first_run", ["chat"], indirect=True)
def test_a_chat_model_gives_values_and_explanations(first_run):
    decided = [
        float(entry["criteria_met"]) for entry in entries_of(first_run.requests)
    ]

    assert sorted(row["value"] for row in first_run.rows) == sorted(decided)
    assert distinct(first_run.rows, "explanation") == {"as the test says"}


@pytest.mark.parametrize("first_run", ["decisions", "systemone"], indirect=True)
def test_a_decision_model_gives_probabilities_that_decide(first_run):
    decided = [entry["probability"] for entry in entries_of(first_run.requests)]

    assert sorted(row["probability"] for row in first_run.rows) == sorted(decided)
    for row in first_run.rows:
        is_met = row["probability"] >= 0.5
        assert row["value"] == (1.0 if is_met else 0.0)
        assert row["confidence"] == max(row["probability"], 1 - row["probability"])
        assert row["explanation"] is None


def test_the_shares_of_a_calls_tokens_and_cost_add_up(first_run):
    n_prompt = sum(prompt_tokens for prompt_tokens, _ in first_run.token_counts)
    n_reply = sum(reply_tokens for _, reply_tokens in first_run.token_counts)

    assert total(first_run.rows, "prompt_tokens") == n_prompt
    assert total(first_run.rows, "completion_tokens") == n_reply
    assert nano_usd_of(first_run.rows) == first_run.paid_nano_usd


@given(st.integers(0, 10**12), st.integers(1, 128))
def test_shares_add_up_and_differ_by_one_at_most(total, n_shares):
    parts = equal_shares(total, n_shares, is_own=True)

    assert len(parts) == n_shares
    assert sum(parts) == total
    assert max(parts) - min(parts) <= 1


def test_a_share_is_a_whole_number_of_billionths_of_a_dollar(first_run):
    for row in first_run.rows:
        share = 1e9 * row["cost_usd"]
        assert share == pytest.approx(round(share), rel=1e-9)


def test_the_planned_highest_cost_is_not_exceeded(first_run):
    assert first_run.planned.cost_usd_high is not None
    assert first_run.paid_nano_usd <= 1e9 * first_run.planned.cost_usd_high


def spoiled(spoil: Callable[[list[Any]], Any], n_replies: int) -> Behaviour:
    """A judge whose first `n_replies` about a piece are spoiled."""

    def behaviour(request, number):
        reply = well_behaved(request, number)
        if not is_judge_request(request) or number >= n_replies:
            return reply
        return replace(reply, text=json.dumps(spoil(json.loads(reply.text or ""))))

    return behaviour


def without_second(entries: list[Any]) -> list[Any]:
    return [*entries[:1], *entries[2:]]


def test_an_entry_that_cannot_be_read_fails_its_criterion_alone_and_is_requested_again(
    kind,
    make,
    server,
    monkeypatch,
):
    # Both replies of a run: to the prompt, and to the reminder.
    server.behaviour = spoiled(without_second, n_replies=2)
    job = make(JUDGES[kind], retention={"replies_days": 1})

    report = judged(job)

    rows = verdicts(job)
    undecided = [row for row in rows if row["status"] == "parse_error"]
    decided = [row for row in rows if row["status"] != "parse_error"]
    assert report.failures == {"parse_error": len(PIECES[kind])}
    assert distinct(undecided, "position_in_call") == {2}
    assert distinct(undecided, "attempts") == {2}
    assert distinct(decided, "attempts") == {1}

    # Two days later the replies of decided calls are pruned, those of undecided ones are not.
    with monkeypatch.context() as patch:
        patch.setattr(
            time, "time", lambda: datetime.now(UTC).timestamp() + 2 * 86_400
        )
        tidy(job)
    first_nano_usd = paid_nano_usd(server)
    n_paid = len(server.paid)
    server.behaviour = well_behaved

    requests = requests_to_judge(server, job, retry_failed=True)

    assert len(requests) == len(PIECES[kind])
    assert distinct(verdicts(job), "status") == {"met", "unmet"}
    paid_again = paid_nano_usd(server, since=n_paid)
    assert nano_usd_of(verdicts(job)) == first_nano_usd + paid_again


UNREADABLE: dict[str, Behaviour] = {
    "decisions": spoiled(without_second, NEVER_READABLE),
    "systemone": spoiled(lambda _: [], NEVER_READABLE),
    "chat": lambda _request, _number: HttpResponse(""),
}
"""A reply without an entry, one without any, and an empty one."""


N_RETRIES = {"decisions": 1, "systemone": 1, "chat": 2}
"""The requests for a settled piece with `retry_failed`: one more after its four stored replies; an
empty reply counts as none, so there are two.
"""


class SettledRuns(NamedTuple):
    """Two runs of a judge that never gives a readable verdict on some criteria.

    `n_planned` are the calls that were planned before the first, between them and after.
    """

    kind: str
    job: Job
    n_requests: list[int]
    n_planned: list[int]


@pytest.fixture(scope="module", params=KINDS)
def settled_runs(
    request, responses: StoredResponses, tmp_path_factory
) -> SettledRuns:
    kind = request.param
    warehouse = tmp_path_factory.mktemp("settled") / "warehouse"
    shutil.copytree(responses.warehouse, warehouse)
    n_requests = []
    with few_published(), provider(responses.port) as server:
        server.behaviour = UNREADABLE[kind]
        job = job_of(server, warehouse, JUDGES[kind], limits={"attempts": 2})
        n_planned = [plan(job)[-1].calls]
        for _ in range(2):
            n_requests.append(len(requests_to_judge(server, job)))
            n_planned.append(plan(job)[-1].calls)
    return SettledRuns(kind, job, n_requests, n_planned)


def test_a_piece_that_is_unreadable_in_two_runs_is_requested_again_only_with_retry_failed(
    settled_runs,
    server,
    tmp_path,
):
    kind = settled_runs.kind
    server.behaviour = UNREADABLE[kind]
    job = copied(settled_runs.job, tmp_path / "warehouse")

    n_settled = len(requests_to_judge(server, job))
    n_retried = len(requests_to_judge(server, job, retry_failed=True))
    n_settled_again = len(requests_to_judge(server, job))

    n_pieces = len(PIECES[kind])
    assert settled_runs.n_requests == [2 * n_pieces, 2 * n_pieces]
    assert n_settled == 0
    assert n_retried == N_RETRIES[kind] * n_pieces
    assert n_settled_again == 0


def test_the_plan_has_an_unreadable_piece_until_it_is_settled_and_then_with_retry_failed(
    settled_runs,
    server,
    tmp_path,
):
    n_pieces = len(PIECES[settled_runs.kind])
    job = copied(settled_runs.job, tmp_path / "warehouse")
    with_retries = job.model_copy(update={"retry_failed": True})

    assert settled_runs.n_planned == [n_pieces, n_pieces, 0]
    assert plan(with_retries)[-1].calls == n_pieces
    undecided = [row for row in verdicts(job) if row["value"] is None]
    [verdict_cell] = [cell for cell in coverage(job) if cell.judge is not None]
    assert distinct(undecided, "status") == {"parse_error"}
    assert all("--retry-failed asks again" in row["error"] for row in undecided)
    assert verdict_cell.failures == {"parse_error": len(undecided)}

    requests = requests_to_judge(server, job, retry_failed=True)

    assert len(requests) == n_pieces
    assert distinct(verdicts(job), "status") == {"met", "unmet"}


def test_a_criterion_alone_that_is_unreadable_is_requested_again_in_each_run(
    make,
    server,
):
    def behaviour(request, number):
        if is_judge_request(request):
            return HttpResponse("I cannot say.")
        return well_behaved(request, number)

    server.behaviour = behaviour
    job = make({"name": "hosted_vllm/a-chat"}).model_copy(update={"limit": 1})

    n_calls = [len(requests_to_judge(server, job)) for _ in range(3)]

    assert n_calls == [24] * 3  # 12 criteria, each with a reminder


def reversing(request, number: int) -> HttpResponse:
    """A judge whose first reply lacks the second entry; the next one reverses every decision."""
    reply = well_behaved(request, 0)
    if not is_judge_request(request):
        return reply
    entries = json.loads(reply.text or "")
    if number == 0:
        return replace(reply, text=json.dumps(without_second(entries)))
    for entry in entries:  # each kind of judge reads one of the two keys
        entry["criteria_met"] = not entry.get("criteria_met")
        entry["probability"] = 1 - entry.get("probability", 0)
    return replace(reply, text=json.dumps(entries))


@pytest.mark.parametrize("first_run", KINDS, indirect=True)
def test_a_criterion_takes_the_first_attempt_in_which_it_can_be_read_also_if_rows_are_lost(
    first_run,
    make,
    server,
    tmp_path,
):
    server.behaviour = reversing
    job = make(JUDGES[first_run.kind])
    without_rows = copied(job, tmp_path / "without rows")

    judged(job)

    rows = verdicts(job)
    for row, expected in zip(rows, first_run.rows, strict=True):
        if row["position_in_call"] == 2:
            assert row["value"] == 1 - expected["value"]
            assert row["attempts"] == 2
        else:
            assert row["value"] == expected["value"]
            assert row["attempts"] == 1

    # Lost rows are restored from the ledger without a call.
    ledger = job.warehouse / "ledger"
    shutil.copytree(ledger, without_rows.warehouse / "ledger", dirs_exist_ok=True)

    requests = requests_to_judge(server, without_rows)

    assert requests == []
    assert verdicts(without_rows) == rows


def test_a_changed_threshold_decides_by_the_stored_probabilities_without_a_call(
    make,
    server,
):
    first_job = make(OPENAI)
    judged(first_job)
    n_first = len(verdicts(first_job))
    ledger = first_job.warehouse / "ledger"
    # Pruning everything must keep a decision model's replies: they hold the probabilities.
    prune(ledger, math.inf, lambda cells: dict.fromkeys(cells, True))
    job = make({**OPENAI, "threshold": 0.75})

    requests = requests_to_judge(server, job)

    free_rows = [row for row in verdicts(job) if row["cost_usd"] == 0]
    assert requests == []
    assert len(free_rows) == n_first
    for row in free_rows:
        is_met = row["probability"] >= 0.75
        assert row["value"] == (1.0 if is_met else 0.0)


HOSTILE: dict[str, bytes] = {
    "ten thousand decisions": (
        json.dumps(
            {"answers": [{"name": "c1", "probability": 0.5}] * 10_000}
        ).encode()
    ),
    "deep nesting": b'{"answers": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "no decisions": b'{"answers": 3, "model": "m"}',
    "text": b"<html>",
    "a decision on another question": (
        b'{"answers": {"c1 ": {"noul": 0.9}}, "usage": {"input_tokens": "many"}}'
    ),
}


def test_a_hostile_body_is_a_failure_with_a_cause_and_never_a_verdict(make, server):
    bodies = itertools.cycle(HOSTILE.values())
    server.behaviour = lambda _request, _number: HttpResponse(raw=next(bodies))
    judge = {**OPENAI, "criteria_per_call": 4}
    job = make(judge, limits={"attempts": 1, "outage_s": 60.0})

    judged(job)

    rows = verdicts(job)
    assert len(server.judge_requests) >= len(HOSTILE)
    assert len(rows) == N_CRITERIA
    for row in rows:
        assert row["value"] is None
        assert row["status"] in {"parse_error", "provider_error"}
        assert row["error"]
        assert "\n" not in row["error"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"kind": "decisions", "criteria_per_call": 129}, "at most 128"),
    (
        {"kind": "decisions", "grading": "ternary", "threshold": 0.5},
        "of three values",
    ),
    ({"kind": "decisions", "temperature": 0.0}, "`temperature` is for `kind: chat`"),
    ({"kind": "decisions", "mode": "batch"}, "`mode` is for `kind: chat`"),
    ({"threshold": 0.5}, "`threshold` is for `kind: decisions`"),
    ({"criteria_per_call": 0}, "criteria_per_call"),
    ({"criteria_per_call": 2, "logprobs": True}, "`logprobs` needs"),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED)
def test_settings_that_no_provider_can_follow_are_refused(settings, message):
    judge = {"name": "openai/x", **settings}

    with pytest.raises(ValueError, match=message):
        Settings.model_validate({"dataset": {"source": "sample"}, "judges": [judge]})


TOO_LONG = failed(400, "maximum context length exceeded")


def refuses_groups(request, number: int) -> HttpResponse:
    """A judge for which each prompt with several criteria is too long."""
    is_group = "questions" in request or len(criteria_of(prompt_of(request))) > 1
    if is_judge_request(request) and is_group:
        return TOO_LONG
    return well_behaved(request, number)


def test_a_piece_that_does_not_fit_is_judged_one_by_one_by_a_chat_judge(make, server):
    server.behaviour = refuses_groups
    job = make(CHAT)

    judged(job)

    rows = verdicts(job)
    assert distinct(rows, "status") == {"met", "unmet"}
    assert {(row["n_in_call"], row["position_in_call"]) for row in rows} == {(1, 1)}
    assert nano_usd_of(rows) == paid_nano_usd(server)


@pytest.mark.parametrize("kind", ["decisions", "systemone"])
def test_a_piece_that_does_not_fit_is_a_failure_of_a_decision_model(
    kind, make, server
):
    server.behaviour = refuses_groups
    job = make(JUDGES[kind])

    judged(job)

    assert distinct(verdicts(job), "status") == {"context_length"}
    assert distinct(verdicts(job), "value") == {None}


def test_the_cost_of_a_partly_readable_reply_is_kept_where_its_piece_is_then_too_long(
    make,
    server,
):
    half = spoiled(lambda entries: entries[:2], n_replies=1)

    def behaviour(request, number):
        if not is_judge_request(request) or len(criteria_of(prompt_of(request))) == 1:
            return well_behaved(request, number)
        return half(request, number) if number == 0 else TOO_LONG

    server.behaviour = behaviour
    job = make(CHAT)

    judged(job)

    assert {1, 4} <= distinct(verdicts(job), "n_in_call")
    assert nano_usd_of(verdicts(job)) == paid_nano_usd(server)


@pytest.mark.parametrize(
    "threshold", [0.5, pytest.param(0.75, marks=pytest.mark.long)]
)
def test_a_cascade_is_evaluated_with_the_configured_threshold_at_the_price_of_its_calls(
    threshold,
    make,
    server,
):
    second = second_judge(server)
    for judged_threshold in (0.5, 0.75):  # the second threshold needs no call
        judged(make({**OPENAI, "threshold": judged_threshold}, other_judges=[second]))
    job = make({**OPENAI, "threshold": threshold})
    [config] = configs_of(job.settings.judges[0], load_benchmark("prbench"))
    parameters = {
        **job.key,
        "cheap": "judge",
        "strong": "second",
        "splits": [],
    }

    with Warehouse(job.warehouse).reader() as reader:
        pair = stored_pair(reader, parameters, {config.judge_config_hash})

    facts = pair.paired.facts
    n_verdicts = len(facts.probability)
    assert (facts.first[:, 0] == (facts.probability >= threshold)).all()
    assert pair.costs.cheap_usd is not None
    assert pair.costs.strong_usd is not None
    expected_cheap = paid_nano_usd(server, model="a-decider") / 1e9
    expected_strong = paid_nano_usd(server, model="second") / 1e9
    assert pair.costs.cheap_usd * n_verdicts == pytest.approx(expected_cheap)
    assert pair.costs.strong_usd * n_verdicts == pytest.approx(expected_strong)


@pytest.mark.parametrize(
    ("settings_of_second", "n_in_call"),
    [({}, None), ({"kind": "decisions"}, 1)],
)
def test_a_judge_of_groups_is_first_in_a_cascade_and_its_confidence_decides(
    settings_of_second,
    n_in_call,
    make,
    server,
):
    second = second_judge(server, **settings_of_second)
    job = make(OPENAI, other_judges=[second, CASCADE])

    judged(job)

    rows = rows_in(job, "from verdicts where judge = 'cascade'")
    first_requests = [
        request
        for request in server.judge_requests
        if request["model"] == "a-decider"
    ]
    first_probabilities = [
        entry["probability"] for entry in entries_of(first_requests)
    ]
    n_unsure = sum(0.25 < probability < 0.75 for probability in first_probabilities)
    escalated = [row for row in rows if row["decided_by"] == "second"]
    decided_at_once = [row for row in rows if row["decided_by"] == "judge"]
    assert len(rows) == len(first_probabilities)
    assert n_unsure > 0
    assert len(escalated) == n_unsure
    assert {tuple(row["escalated_because"]) for row in escalated} == {("confidence",)}
    assert distinct(escalated, "n_in_call") == {n_in_call}
    assert all(row["confidence"] >= 0.75 for row in decided_at_once)


def test_where_only_the_second_judge_failed_the_next_run_calls_it_alone_as_planned(
    make,
    server,
):
    def second_is_unreadable(request, number):
        if is_judge_request(request) and request["model"] == "second":
            return HttpResponse("I cannot say.")
        return well_behaved(request, number)

    job = make(SYSTEM_ONE, other_judges=[second_judge(server), CASCADE])
    server.behaviour = second_is_unreadable
    failures = judged(job).failures
    planned = {
        row.cascade.partition(",")[0]: row.calls for row in plan(job) if row.cascade
    }
    server.behaviour = well_behaved
    n_before = len(server.judge_requests)

    report = judged(job)

    requests = server.judge_requests[n_before:]
    assert failures["parse_error"] > 0
    prompts = {prompt_of(request) for request in requests}
    assert planned["first judge of cascade"] == 0
    assert planned["second judge of cascade"] == len(prompts)
    assert {request["model"] for request in requests} == {"second"}
    assert report.failures == {}


def test_a_grading_by_default_and_by_name_are_the_same_configuration():
    benchmark = load_benchmark("researchrubrics")  # ternary by default
    by_default = Judge(name="openai/judge", kind="decisions")
    ternary = Judge(name="openai/judge", kind="decisions", grading="ternary")

    [default_config] = configs_of(by_default, benchmark)
    [ternary_config] = configs_of(ternary, benchmark)

    assert default_config.judge_config_hash == ternary_config.judge_config_hash


def test_a_threshold_is_refused_where_the_grading_is_ternary_by_default():
    judge = Judge(name="openai/judge", kind="decisions", threshold=0.7)

    with pytest.raises(UsageError, match="threshold"):
        configs_of(judge, load_benchmark("researchrubrics"))


@pytest.mark.parametrize("name", ["mine.txt", "mine_v3.txt"])
def test_a_benchmark_of_ones_own_has_a_template_for_groups_beside_its_own(
    name,
    tmp_path,
):
    judge = Judge(name="openai/judge", criteria_per_call=4)
    benchmark = replace(
        load_benchmark("prbench"), gradings={"binary": str(tmp_path / name)}
    )
    message = r"mine_group_v1\.txt is neither a file nor one of"
    with pytest.raises(UsageError, match=message):
        configs_of(judge, benchmark)
    shutil.copy(FOLDER / "binary_group_v1.txt", tmp_path / "mine_group_v1.txt")

    [config] = configs_of(judge, benchmark)

    assert "<<rubric_items>>" in config.template


def test_provider_batches_take_the_replies_of_the_same_live_calls(make, server):
    live_job = make(CHAT)
    judged(live_job)
    live_values = {(row["criterion_id"], row["value"]) for row in verdicts(live_job)}
    job = make(
        {
            **CHAT,
            "mode": "batch",
            "label": "batched",
        }
    )

    requests = requests_to_judge(server, job)

    rows = rows_in(job, "from verdicts where judge = 'batched'")
    assert requests == []
    assert {(row["criterion_id"], row["value"]) for row in rows} == live_values
    assert distinct(rows, "cost_usd") == {0.0}


def judge_arrangements(job: Job):
    """Make the missing verdicts of all arrangements."""

    async def run():
        with Warehouse(job.warehouse).reader() as reader:
            arrangements = missing_arrangements(job, reader)
        async with open_run_context(job) as context:
            for arranged in arrangements:
                await judge_arrangement(job, context, arranged)

    asyncio.run(run())
    Warehouse(job.warehouse).publish()


def influenced(request, number: int) -> HttpResponse:
    """A decision model that decides all criteria of a call but the first as unmet."""
    reply = well_behaved(request, number)
    if "questions" not in request:
        return reply
    entries = json.loads(reply.text or "")
    for entry in entries[1:]:
        entry["probability"] = 0.0
    return replace(reply, text=json.dumps(entries))


@dataclass
class Neighbours:
    """A sample that an influenced judge has decided in all arrangements.

    Attributes:
        n_pieces: requests of the run that judged the responses before.
        n_requests: requests of the first `judge_arrangements`.
        n_repeated: requests of the second one.
    """

    job: Job
    n_pieces: int
    n_requests: int
    n_repeated: int

    def rows(self, arrangement: str) -> list[Row]:
        query = "from neighbour_verdicts where arrangement = ?"
        return rows_in(self.job, query, arrangement)

    def effect(self) -> dict[str, Any]:
        """The measured effect of the configured groups."""
        query = """
            from neighbour_effects
            where
                arrangement = 'grouped' and compared_with = 'alone'
                and measure_of = 'met' and breakdown = 'all'
        """
        [row] = rows_in(self.job, query)
        return row


@pytest.fixture(scope="module")
def neighbours(responses: StoredResponses, tmp_path_factory) -> Neighbours:
    warehouse = tmp_path_factory.mktemp("neighbours") / "warehouse"
    shutil.copytree(responses.warehouse, warehouse)
    with provider(responses.port) as server:
        server.behaviour = influenced
        job = job_of(server, warehouse, SYSTEM_ONE)
        job = job.model_copy(update={"n_neighbour_responses": 2})
        judged(job)
        n_before = len(server.judge_requests)
        judge_arrangements(job)
        n_after = len(server.judge_requests)
        judge_arrangements(job)
        n_repeated = len(server.judge_requests) - n_after
        aggregate(job)
        return Neighbours(job, n_before, n_after - n_before, n_repeated)


@pytest.mark.long
def test_neighbours_measures_the_effect_that_the_judge_has(neighbours):
    values_alone = {}
    for row in neighbours.rows("alone"):
        values_alone[row["response_id"], row["criterion_id"]] = row["value"]
    changes = []
    for row in neighbours.rows("grouped"):
        value_alone = values_alone[row["response_id"], row["criterion_id"]]
        changes.append(row["value"] - value_alone)

    effect = neighbours.effect()

    assert effect["n"] == len(changes) == N_CRITERIA
    assert effect["change"] == pytest.approx(sum(changes) / len(changes))
    assert effect["change"] < -0.2


@pytest.mark.long
def test_shuffled_groups_have_the_effect_of_the_judge_too(neighbours):
    rows = neighbours.rows("shuffled")

    assert {row["value"] for row in rows if row["position_in_call"] > 1} == {0.0}


@pytest.mark.long
def test_neighbours_repeats_no_call(neighbours):
    n_shuffled = neighbours.n_pieces

    assert neighbours.n_requests == len(neighbours.rows("alone")) + n_shuffled
    assert neighbours.n_repeated == 0


@pytest.mark.long
def test_the_table_of_verdicts_that_scores_read_has_none_of_neighbours(neighbours):
    assert distinct(verdicts(neighbours.job), "judge") == {"judge"}
    assert len(verdicts(neighbours.job)) == N_CRITERIA


@pytest.mark.long
def test_the_leaderboard_shows_the_effect_only_for_the_data_set_that_it_was_measured_on(
    neighbours,
    server,
    tmp_path,
):
    server.behaviour = influenced
    job = copied(neighbours.job, tmp_path / "copy")
    source = write_jsonl(tmp_path / "other.jsonl", [good_row("other")])
    other_job = job_of(server, job.warehouse, SYSTEM_ONE, source=source)
    with few_published("leaderboard", "hard_leaderboard", "breakdown_leaderboard"):
        sampled(prepared(other_job))
        judged(other_job)
        judge_arrangements(other_job)
        aggregate(other_job)

    with Warehouse(job.warehouse).reader() as reader:
        rows = list(Scope(job, reader).rows_of(LEADERBOARD))

    assert len(distinct(rows, "split")) == len(rows)
    assert distinct(rows, "criteria_per_call") == {4}
    assert distinct(rows, "neighbour_effect") == {neighbours.effect()["change"]}


@pytest.mark.parametrize(
    "has_own_template", [False, pytest.param(True, marks=pytest.mark.long)]
)
def test_neighbours_tries_again_what_failed_for_a_temporary_cause(
    has_own_template,
    make,
    server,
    tmp_path,
):
    judge = SYSTEM_ONE
    if has_own_template:
        template = shutil.copy(FOLDER / "binary_group_v1.txt", tmp_path / "own.txt")
        judge = {**CHAT, "template": str(template)}
    job = make(judge).model_copy(update={"n_neighbour_responses": 1})
    query = """
        select distinct arrangement, value is null as is_undecided from neighbour_verdicts
        order by arrangement
    """
    server.behaviour = lambda _request, _number: HttpResponse("[]")
    judge_arrangements(job)
    undecided = values_in(job, query)
    server.behaviour = well_behaved

    judge_arrangements(job)

    arrangements = ("alone", "grouped", "shuffled")
    assert undecided == [(name, True) for name in arrangements]
    assert values_in(job, query) == [(name, False) for name in arrangements]


NIGHT = "2026-11-26"
OF_CONTROL_SET = "from control_set inner join verdicts using (verdict_id)"
CONTROL_VERDICTS = "select * exclude (created_at) from control_verdicts order by all"


def job_with_control_set(
    make: MakeJob, server: FaultServer, *, is_lacking: bool
) -> Job:
    """A job with a control set; if it is lacking, no piece has a verdict on its second criterion."""
    if is_lacking:
        server.behaviour = spoiled(without_second, NEVER_READABLE)
    job = make(SYSTEM_ONE, drift={"verdicts": 6})
    judged(job)
    choose_control_set(job)
    return job


@pytest.mark.parametrize("is_lacking", [False, True])
def test_a_control_set_holds_whole_pieces_and_a_night_calls_once_for_each(
    is_lacking, make, server
):
    job = job_with_control_set(make, server, is_lacking=is_lacking)
    members = rows_in(job, f"select verdicts.* {OF_CONTROL_SET}")
    pieces = {
        (row["response_id"], row["piece_hash"]): row["n_in_call"] for row in members
    }
    tonight = job.model_copy(update={"night": NIGHT})
    n_planned = sum(row.calls for row in plan(tonight) if row.purpose == "drift")
    n_before = len(server.judge_requests)
    n_paid = len(server.paid)

    asyncio.run(judge_control_set(tonight))

    n_lacking = len(pieces) if is_lacking else 0
    assert len(members) >= 6
    assert len(members) == sum(pieces.values()) - n_lacking
    rows = rows_in(tonight, "from control_verdicts")
    values = sorted(row["value"] for row in rows)
    assert n_planned == len(pieces)
    assert len(server.judge_requests) - n_before == len(pieces)
    assert values == sorted(row["value"] for row in members)
    assert nano_usd_of(rows) == paid_nano_usd(server, since=n_paid)


def test_after_a_kill_between_two_rows_of_a_piece_a_night_writes_the_same_rows(
    make,
    server,
    tmp_path,
):
    job = job_with_control_set(make, server, is_lacking=False)
    tonight = job.model_copy(update={"night": NIGHT})
    killed = copied(tonight, tmp_path / "killed")
    asyncio.run(judge_control_set(tonight))
    first_row = rows_in(tonight, "from control_verdicts")[0]
    Warehouse(killed.warehouse).write("control_verdicts", [first_row])
    Warehouse(killed.warehouse).publish()
    shutil.copytree(
        tonight.warehouse / "ledger",
        killed.warehouse / "ledger",
        dirs_exist_ok=True,
    )

    asyncio.run(judge_control_set(killed))

    assert rows_in(killed, CONTROL_VERDICTS) == rows_in(tonight, CONTROL_VERDICTS)


SECRET = "sk-of-a-test-1234567890"
WRONG_KEY = failed(401, f"Incorrect API key provided: {SECRET}")


@pytest.mark.parametrize(
    "kind",
    ["decisions", pytest.param("systemone", marks=pytest.mark.long)],
)
@pytest.mark.parametrize(
    ("http_response", "status"),
    [(ELSEWHERE, "redirected"), (WRONG_KEY, "provider_error")],
)
def test_a_request_that_no_repetition_helps_is_made_once_and_tells_no_secret(
    http_response,
    status,
    kind,
    make,
    server,
    monkeypatch,
):
    for name in KEYS:
        monkeypatch.setenv(name, SECRET)
    server.behaviour = lambda _request, _number: http_response
    job = make(JUDGES[kind])

    judged(job)

    rows = verdicts(job)
    assert distinct(rows, "status") == {status}
    assert distinct(rows, "value") == {None}
    assert not any(SECRET in row["error"] for row in rows)
    assert len(server.book) == len({entry.digest for entry in server.entries})
