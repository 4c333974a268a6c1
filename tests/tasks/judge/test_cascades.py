"""A configured cascade makes the calls and verdicts that a replay of both judges' stored verdicts
predicts.
"""

import contextlib
import hashlib
import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tasks.config.job import Job
from tasks.llm.ledger.files import ledger_path
from tasks.plan.plan import plan
from tests.faults.behaviours import prompt_of
from tests.faults.server import (
    FaultServer,
    HttpResponse,
    is_judge_request,
    meets,
    well_behaved,
)
from tests.kit import (
    Row,
    endpoint,
    few_published,
    job_on,
    judged,
    prepared,
    rows_in,
    sampled,
)
from tests.tasks.judge.values import distinct

JudgeSettings = dict[str, Any]
"""Settings of a judge, or a part of them."""

STRONG: JudgeSettings = {"name": "hosted_vllm/strong", "label": "strong"}
CHEAP: JudgeSettings = {
    "name": "hosted_vllm/cheap",
    "label": "cheap",
    "trials": 2,
    "logprobs": True,
}
Key = tuple[str, str]
"""A task and a criterion."""


class Outcome(NamedTuple):
    """A cascade's verdict on a criterion: the judge that decides, its reasons, and the decision."""

    decided_by: str
    escalated_because: list[str] | None
    value: float | None
    explanation: str | None
    status: str


def cascade(**when: Any) -> JudgeSettings:
    """The configuration of the cascade."""
    return {
        "label": "careful",
        "cascade": {
            "first": "cheap",
            "then": "strong",
            "when": when,
        },
    }


def job_at(api_base: str, folder: Path, *judges: JudgeSettings) -> Job:
    """A job on a quarter of the sample, with one model and some judges."""
    configured = []
    for judge in judges:
        address = {} if "cascade" in judge else {"api_base": api_base}
        configured.append(judge | address)
    job = job_on(
        "sample",
        folder,
        models=[endpoint("a", api_base)],
        judges=configured,
        limits={"concurrency": 4, "attempts": 2},
    )
    return prepared(job).model_copy(update={"limit": 2})


def share_of(*parts: object) -> float:
    """A number from 0 to 1 that depends on these values alone."""
    return hashlib.sha256("|".join(map(str, parts)).encode()).digest()[0] / 256


def two_judges(request, number: int) -> HttpResponse:
    """A strong judge that never varies, and a cheap one that errs, wavers, fails, and varies in
    confidence.
    """
    is_cheap = is_judge_request(request) and request["model"] == "cheap"
    if is_cheap and share_of("fail", prompt_of(request)) < 0.1:
        return HttpResponse("I cannot say.")
    return two_sound_judges(request, number)


def two_sound_judges(request, number: int) -> HttpResponse:
    """The same, but the cheap judge never fails."""
    if not is_judge_request(request) or request["model"] == "strong":
        return well_behaved(request, number)
    prompt = prompt_of(request)
    # Both repetitions send the same prompt: of the requests with it, the odd ones are the second's.
    is_second = number % 2 == 1
    wavers = is_second and share_of("waver", prompt) < 0.3
    is_wrong = wavers or share_of("err", prompt) < 0.2
    decision = not meets(prompt) if is_wrong else meets(prompt)
    content = {"explanation": "cheaply", "criteria_met": decision}
    return HttpResponse(
        json.dumps(content), certainty=0.5 + share_of("sure", prompt) / 2
    )


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_scores")]

CONDITIONS: dict[str, JudgeSettings] = {
    "one call": {
        "weight_above": 8,
        "categories": ["Practical Utility"],
        "confidence_below": 0.6,
    },
    "several": {
        "disagreement": True,
        "weight_above": 8,
        "confidence_below": 0.6,
    },
}


@pytest.fixture(scope="module")
def provider() -> Iterator[FaultServer]:
    with FaultServer(two_judges) as server:
        yield server


@pytest.fixture(scope="module")
def all_verdicts(provider: FaultServer, tmp_path_factory) -> list[Row]:
    """The verdicts of both judges on everything, the cheap judge's twice."""
    job = job_at(provider.api_base, tmp_path_factory.mktemp("full"), CHEAP, STRONG)
    with few_published():
        sampled(job)
        judged(job)
    return verdicts_of(job)


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer(two_judges) as server:
        yield server


def verdicts_of(job: Job) -> list[Row]:
    query = """
        select verdicts.*, weight, category
        from verdicts inner join criteria
            using (benchmark, dataset_revision, task_id, criterion_id)
        order by response_id, criterion_id, judge, judge_trial
    """
    return rows_in(job, query)


def calls_of(server: FaultServer) -> Counter[tuple[str, str]]:
    """(model, prompt) of all first calls for a verdict, without the reminders after unreadable
    replies.
    """
    calls = Counter()
    for request in server.judge_requests:
        if len(request["messages"]) == 1:
            calls[request["model"], prompt_of(request)] += 1
    return calls


def n_calls_to(model: str, server: FaultServer) -> int:
    return sum(
        called_model == model for called_model, _ in calls_of(server).elements()
    )


def replayed_reasons(repetitions: list[Row], when: JudgeSettings) -> list[str]:
    """The reasons to escalate a criterion, computed from the cheap judge's stored rows alone."""
    first_row = repetitions[0]
    compared = repetitions if when.get("disagreement") else [first_row]
    values = distinct(compared, "value")
    has_failed = None in values
    reasons = []
    if has_failed:
        reasons.append("failed")
    if len(values) > 1 and not has_failed:
        reasons.append("disagreement")
    highest_weight = 10
    if abs(first_row["weight"]) > when.get("weight_above", highest_weight):
        reasons.append("weight")
    if first_row["category"] in when.get("categories", ()):
        reasons.append("category")
    if "confidence_below" in when and not has_failed:
        if first_row["confidence"] is None:
            reasons.append("confidence_unknown")
        elif first_row["confidence"] < when["confidence_below"]:
            reasons.append("confidence")
    return reasons


def replayed(rows: list[Row], when: JudgeSettings) -> dict[Key, Outcome]:
    """The outcomes of a cascade, from both judges' stored verdicts."""
    rows_by_judge = defaultdict(list)
    for row in rows:
        key = (row["task_id"], row["criterion_id"])
        rows_by_judge[key, row["judge"]].append(row)
    outcomes = {}
    for (key, judge), repetitions in rows_by_judge.items():
        if judge == "cheap":
            reasons = replayed_reasons(repetitions, when)
            deciding = rows_by_judge[key, "strong"][0] if reasons else repetitions[0]
            outcomes[key] = Outcome(
                deciding["judge"],
                reasons or None,
                deciding["value"],
                deciding["explanation"],
                deciding["status"],
            )
    return outcomes


def outcomes_of(job: Job) -> dict[Key, Outcome]:
    """The outcomes of the cascade, from its stored verdicts."""
    outcomes = {}
    for row in verdicts_of(job):
        if row["judge"] == "careful":
            key = (row["task_id"], row["criterion_id"])
            outcomes[key] = Outcome(*(row[name] for name in Outcome._fields))
    return outcomes


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_live_cascade_makes_the_calls_and_verdicts_that_a_replay_of_both_judges_predicts(
    name,
    all_verdicts,
    provider,
    server,
    tmp_path,
):
    when = CONDITIONS[name]
    expected = replayed(all_verdicts, when)
    job = job_at(server.api_base, tmp_path, CHEAP, STRONG, cascade(**when))
    sampled(job)

    report = judged(job)

    n_escalated = sum(outcome.decided_by == "strong" for outcome in expected.values())
    n_repetitions = 2 if "disagreement" in when else 1
    assert outcomes_of(job) == expected
    assert report.rows == len(expected)
    assert 0 < n_escalated < len(expected)
    assert n_calls_to("strong", server) == n_escalated
    assert n_calls_to("cheap", server) == n_repetitions * len(expected)
    # The cascade makes no call that the two judges on their own do not make.
    assert calls_of(server) <= calls_of(provider)


def test_calls_that_the_judges_have_made_for_themselves_are_not_made_again_and_were_free(
    server,
    tmp_path,
):
    when = {"disagreement": True, "weight_above": 8}
    server.behaviour = two_sound_judges  # failures would be tried again
    judges_job = job_at(server.api_base, tmp_path, CHEAP, STRONG)
    sampled(judges_job)
    judged(judges_job)
    n_before = len(server.book)
    expected = replayed(verdicts_of(judges_job), when)
    job = job_at(server.api_base, tmp_path, CHEAP, STRONG, cascade(**when))

    judged(job)

    rows = [row for row in verdicts_of(job) if row["judge"] == "careful"]
    assert len(server.book) == n_before
    assert outcomes_of(job) == expected
    assert distinct(rows, "prompt_tokens") == {0}  # repeated replies count as free


def strong_is_unreadable(request, number: int) -> HttpResponse:
    if is_judge_request(request) and request["model"] == "strong":
        return HttpResponse("I cannot say.")
    return two_judges(request, number)


@pytest.fixture
def failed_job(server: FaultServer, tmp_path) -> Job:
    """A job with a cascade whose second judge has failed."""
    server.behaviour = strong_is_unreadable
    job = job_at(server.api_base, tmp_path, CHEAP, STRONG, cascade(weight_above=6))
    sampled(job)
    judged(job)
    return job


def test_a_second_judge_s_failure_is_the_verdict_s(failed_job):
    failed = [row for row in verdicts_of(failed_job) if row["escalated_because"]]

    assert distinct(failed, "decided_by") == {"strong"}
    assert distinct(failed, "status") == {"parse_error"}
    assert distinct(failed, "value") == {None}


def test_a_second_judge_s_failure_is_tried_again_as_planned_and_a_decision_is_not(
    failed_job,
    server,
):
    n_failed = sum(row["value"] is None for row in verdicts_of(failed_job))
    n_cheap = n_calls_to("cheap", server)
    planned = {
        row.label: row.calls for row in plan(failed_job) if row.purpose == "judge"
    }
    server.behaviour = two_judges

    report = judged(failed_job)

    n_calls = len(server.book)
    assert n_failed > 0
    assert planned == {"cheap": 0, "strong": n_failed}
    assert report.rows == n_failed
    assert n_calls_to("cheap", server) == n_cheap
    assert None not in distinct(verdicts_of(failed_job), "value")
    assert judged(failed_job).rows == 0
    assert len(server.book) == n_calls


def price(usd: float) -> JudgeSettings:
    return {"price": {"input_usd_per_mtok": usd, "output_usd_per_mtok": usd}}


def test_a_verdict_has_the_cost_and_attempts_of_all_its_calls(server, tmp_path):
    cheap = CHEAP | price(1.0)
    strong = STRONG | price(10.0)
    job = job_at(server.api_base, tmp_path, cheap, strong, cascade(disagreement=True))
    sampled(job)

    judged(job)

    query = """
        select sum(cost_usd) from calls where model in ('hosted_vllm/strong', 'hosted_vllm/cheap')
    """
    path = ledger_path(job.warehouse / "ledger")
    with contextlib.closing(sqlite3.connect(path)) as ledger:
        [spent_usd] = ledger.execute(query).fetchone()
    rows = verdicts_of(job)
    decided_at_once = [row for row in rows if row["escalated_because"] is None]
    escalated = [row for row in rows if row["escalated_because"] == ["disagreement"]]
    assert sum(row["cost_usd"] for row in rows) == pytest.approx(spent_usd)
    assert distinct(decided_at_once, "attempts") == {2}
    assert distinct(decided_at_once, "input_usd_per_mtok") == {1.0}
    assert distinct(escalated, "attempts") == {3}
    assert distinct(escalated, "input_usd_per_mtok") == {None}
    assert all(row["served_model"].startswith("strong") for row in escalated)


WITHOUT_LOGPROBS: JudgeSettings = {"name": "hosted_vllm/cheap", "label": "cheap"}


def test_a_reply_that_was_stored_without_log_probabilities_has_no_confidence_and_is_kept(
    server,
    tmp_path,
):
    server.behaviour = two_sound_judges
    job = job_at(server.api_base, tmp_path, WITHOUT_LOGPROBS)
    sampled(job)
    judged(job)
    n_before = len(server.book)
    judge = {**WITHOUT_LOGPROBS, "logprobs": True}
    later_job = job_at(server.api_base, tmp_path, judge)

    report = judged(later_job)

    assert distinct(verdicts_of(later_job), "confidence") == {None}
    assert report.rows == 0
    assert len(server.book) == n_before


def test_log_probabilities_of_a_stream_give_verdicts_a_confidence(server, tmp_path):
    server.behaviour = two_sound_judges
    judge = {**WITHOUT_LOGPROBS, "logprobs": True, "stream": True}
    job = job_at(server.api_base, tmp_path, judge)
    sampled(job)

    judged(job)

    confidences = {
        row["confidence"] for row in verdicts_of(job) if row["value"] is not None
    }
    assert len(confidences) > 5
    assert all(0.5 <= confidence <= 1 for confidence in confidences)
