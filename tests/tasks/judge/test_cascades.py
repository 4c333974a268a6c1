"""A configured cascade makes the calls and verdicts that a replay of both judges' stored verdicts
predicts.
"""

import contextlib
import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.llm.ledger.files import ledger_path
from tasks.plan.plan import plan
from tests.faults.behaviours import prompt_of
from tests.faults.server import (
    FaultServer,
    HttpResponse,
    Request,
    is_judge_request,
    meets,
    well_behaved,
)
from tests.kit import endpoint, job_on, judged, prepared, rows_in, sampled

STRONG: dict[str, Any] = {"name": "hosted_vllm/strong", "label": "strong"}
CHEAP: dict[str, Any] = {
    "name": "hosted_vllm/cheap",
    "label": "cheap",
    "trials": 2,
    "logprobs": True,
}
CONCURRENCY = 4


def cascade(**when: Any) -> dict[str, Any]:
    """The configuration of the cascade."""
    return {
        "label": "careful",
        "cascade": {
            "first": "cheap",
            "then": "strong",
            "when": when,
        },
    }


def job_at(api_base: str, folder: Path, *judges: dict[str, Any]) -> Job:
    """A job on half of the sample, with one model and some judges."""
    at = {"api_base": api_base}
    given = [judge if "cascade" in judge else judge | at for judge in judges]
    limits = {"concurrency": CONCURRENCY, "attempts": 2}
    job = prepared(
        job_on(
            "sample",
            folder,
            models=[endpoint("a", api_base)],
            judges=given,
            limits=limits,
        )
    )
    return job.model_copy(update={"limit": 4})


def random_values(*parts: object) -> float:
    """A number from 0 to 1 that depends on these values alone."""
    return hashlib.sha256("|".join(map(str, parts)).encode()).digest()[0] / 256


def two_judges(request: Request, number: int) -> HttpResponse:
    """A strong judge that never varies, and a cheap one that errs, wavers, fails, and varies in
    confidence.
    """
    if (
        is_judge_request(request)
        and request["model"] == "cheap"
        and random_values("fail", prompt_of(request)) < 0.1
    ):
        return HttpResponse("I cannot say.")
    return two_sound_judges(request, number)


def two_sound_judges(request: Request, number: int) -> HttpResponse:
    """The same, but the cheap judge never fails."""
    if not is_judge_request(request) or request["model"] == "strong":
        return well_behaved(request, number)
    prompt = prompt_of(request)
    # The second repetition sends the same prompt again.
    turns = random_values("err", prompt) < 0.2 or (
        random_values("waver", prompt) < 0.3 and number % 2 == 1
    )
    text = json.dumps({"explanation": "cheaply", "criteria_met": meets(prompt) != turns})
    return replace(HttpResponse(text), certainty=0.5 + random_values("sure", prompt) / 2)


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_scores")]

WHENS: dict[str, dict[str, Any]] = {
    "disagreement": {"disagreement": True},
    "weight": {"weight_above": 6},
    "categories": {"categories": ["Financial Accuracy", "Legal Accuracy"]},
    "confidence": {"confidence_below": 0.8},
    "several": {
        "disagreement": True,
        "weight_above": 8,
        "confidence_below": 0.6,
    },
}


@pytest.fixture(scope="module")
def provider() -> Iterator[FaultServer]:
    with FaultServer(two_judges) as running:
        yield running


@pytest.fixture(scope="module")
def in_full(
    provider: FaultServer, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, Any]]:
    """The verdicts of both judges on everything, the cheap judge's twice."""
    job = job_at(provider.api_base, tmp_path_factory.mktemp("full"), CHEAP, STRONG)
    sampled(job)
    judged(job)
    return verdicts_of(job)


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer(two_judges) as running:
        yield running


def verdicts_of(job: Job) -> list[dict[str, Any]]:
    joined = (
        "verdicts inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)"
    )
    order = "order by response_id, criterion_id, judge, judge_trial"
    return rows_in(job, f"select verdicts.*, weight, category from {joined} {order}")


def calls_of(server: FaultServer) -> Counter[tuple[str, str]]:
    """(model, prompt) of all first calls for a verdict, without the reminders after unreadable
    replies.
    """
    return Counter(
        (request["model"], request["messages"][0]["content"])
        for request in server.judge_requests
        if len(request["messages"]) == 1
    )


def replayed(first: list[dict[str, Any]], when: dict[str, Any]) -> list[str]:
    """The reasons to escalate a criterion, computed from the cheap judge's stored rows alone."""
    counted = first if when.get("disagreement") else first[:1]
    values = [row["value"] for row in counted]
    why = []
    if None in values:
        why.append("failed")
    if when.get("disagreement") and None not in values and len(set(values)) > 1:
        why.append("disagreement")
    if "weight_above" in when and abs(first[0]["weight"]) > when["weight_above"]:
        why.append("weight")
    if first[0]["category"] in when.get("categories", ()):
        why.append("category")
    if "confidence_below" in when and None not in values:
        if first[0]["confidence"] is None:
            why.append("confidence_unknown")
        elif first[0]["confidence"] < when["confidence_below"]:
            why.append("confidence")
    return why


def foretold(
    rows: list[dict[str, Any]], when: dict[str, Any]
) -> dict[tuple[str, str], tuple[Any, ...]]:
    """(task, criterion) -> the judge that decides, the reasons, and the decision, from both judges'
    stored verdicts.
    """
    by_criterion: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for row in rows:
        by_criterion.setdefault((row["task_id"], row["criterion_id"]), {}).setdefault(
            row["judge"], []
        ).append(row)
    rows = {}
    for key, judges in by_criterion.items():
        why = replayed(judges["cheap"], when)
        decided = judges["strong" if why else "cheap"][0]
        rows[key] = (
            decided["judge"],
            why or None,
            decided["value"],
            decided["explanation"],
            decided["status"],
        )
    return rows


def owner_of(job: Job) -> dict[tuple[str, str], tuple[Any, ...]]:
    """The same, from the stored verdicts of the cascade."""
    columns = ("decided_by", "escalated_because", "value", "explanation", "status")
    return {
        (row["task_id"], row["criterion_id"]): tuple(row[name] for name in columns)
        for row in verdicts_of(job)
        if row["judge"] == "careful"
    }


def n_foretold(
    expected: dict[tuple[str, str], tuple[Any, ...]], when: dict[str, Any]
) -> dict[str, int]:
    """Return the expected number of calls of each judge."""
    n_strong = sum(judge == "strong" for judge, *_ in expected.values())
    assert 0 < n_strong < len(expected)
    return {"strong": n_strong, "cheap": len(expected) * (2 if when.get("disagreement") else 1)}


def by_model(calls: Counter[tuple[str, str]]) -> dict[str, int]:
    return {
        model: sum(n for (named, _), n in calls.items() if named == model)
        for model in ("strong", "cheap")
    }


@pytest.mark.parametrize("name", WHENS)
def test_a_live_cascade_makes_the_calls_and_verdicts_that_a_replay_of_both_judges_foretells(
    name: str,
    in_full: list[dict[str, Any]],
    provider: FaultServer,
    server: FaultServer,
    tmp_path: Path,
) -> None:
    when = WHENS[name]
    expected = foretold(in_full, when)
    all_calls = calls_of(provider)

    live = job_at(server.api_base, tmp_path, CHEAP, STRONG, cascade(**when))
    sampled(live)
    report = judged(live)

    assert owner_of(live) == expected
    assert len(expected) == report.rows
    calls = calls_of(server)
    assert n_foretold(expected, when) == by_model(calls)
    assert all(all_calls[call] >= n for call, n in calls.items())
    again = judged(live)
    assert again.rows == 0
    assert calls == calls_of(server)


def test_calls_that_the_judges_have_made_for_themselves_are_not_made_again_and_were_free(
    server: FaultServer, tmp_path: Path
) -> None:
    when = {"disagreement": True, "weight_above": 8}
    server.behaviour = two_sound_judges  # failures would be tried again
    full = job_at(server.api_base, tmp_path, CHEAP, STRONG)
    sampled(full)
    judged(full)
    n_before = len(server.book)
    rows = verdicts_of(full)

    both = job_at(server.api_base, tmp_path, CHEAP, STRONG, cascade(**when))
    judged(both)

    assert n_before == len(server.book)
    assert foretold(rows, when) == owner_of(both)
    assert {row["prompt_tokens"] for row in verdicts_of(both) if row["judge"] == "careful"} == {0}


def test_a_second_judge_s_failure_is_the_verdict_s_and_is_tried_again(
    server: FaultServer, tmp_path: Path
) -> None:
    def strong_is_down(request: Request, number: int) -> HttpResponse:
        if is_judge_request(request) and request["model"] == "strong":
            return HttpResponse("I cannot say.")
        return two_judges(request, number)

    server.behaviour = strong_is_down
    job = job_at(server.api_base, tmp_path, CHEAP, STRONG, cascade(weight_above=6))
    sampled(job)
    judged(job)
    failed = [row for row in verdicts_of(job) if row["escalated_because"]]
    assert failed
    assert {(r["decided_by"], r["status"], r["value"]) for r in failed} == {
        ("strong", "parse_error", None)
    }
    n_cheap = by_model(calls_of(server))["cheap"]

    planned = {each.label: each.calls for each in plan(job) if each.purpose == "judge"}
    assert {"cheap": 0, "strong": len(failed)} == planned
    server.behaviour = two_judges
    assert len(failed) == judged(job).rows
    assert n_cheap == by_model(calls_of(server))["cheap"]
    assert all(row["value"] is not None for row in verdicts_of(job))


def test_a_verdict_holds_what_all_calls_for_it_came_to(server: FaultServer, tmp_path: Path) -> None:
    job = job_at(
        server.api_base,
        tmp_path,
        CHEAP | {"price": {"input_usd_per_mtok": 1.0, "output_usd_per_mtok": 1.0}},
        STRONG | {"price": {"input_usd_per_mtok": 10.0, "output_usd_per_mtok": 10.0}},
        cascade(disagreement=True),
    )
    sampled(job)
    judged(job)
    rows = verdicts_of(job)

    spent = sum(row["cost_usd"] for row in rows)
    with contextlib.closing(sqlite3.connect(ledger_path(job.warehouse / "ledger"))) as ledger:
        query = (
            "select sum(cost_usd) from calls where model in ('hosted_vllm/strong',"
            " 'hosted_vllm/cheap')"
        )
        assert spent == pytest.approx(ledger.execute(query).fetchone()[0])
    decided_at_once = [row for row in rows if row["escalated_because"] is None]
    assert {row["attempts"] for row in decided_at_once} == {2}
    assert {row["input_usd_per_mtok"] for row in decided_at_once} == {1.0}
    escalated = [row for row in rows if row["escalated_because"] == ["disagreement"]]
    assert {row["attempts"] for row in escalated} == {3}
    assert {row["input_usd_per_mtok"] for row in escalated} == {None}
    assert all(row["served_model"].startswith("strong") for row in escalated)


def test_log_probabilities_are_asked_for_without_changing_the_call(
    server: FaultServer, tmp_path: Path
) -> None:
    """A reply that was stored without them is used; its confidence is unknown."""
    server.behaviour = two_sound_judges
    plain = {key: value for key, value in CHEAP.items() if key not in {"logprobs", "trials"}}
    job = job_at(server.api_base, tmp_path / "a", plain)
    sampled(job)
    judged(job)
    assert {row["confidence"] for row in verdicts_of(job)} == {None}
    asking = job_at(server.api_base, tmp_path / "a", plain | {"logprobs": True})
    n_before = len(server.book)
    assert judged(asking).rows == 0
    assert n_before == len(server.book)

    for name, more in (("b", {}), ("c", {"stream": True})):
        fresh = job_at(server.api_base, tmp_path / name, plain | {"logprobs": True} | more)
        sampled(fresh)
        judged(fresh)
        rows = [row for row in verdicts_of(fresh) if row["value"] is not None]
        assert rows
        assert all(0.5 <= row["confidence"] <= 1 for row in rows)
        assert len({row["confidence"] for row in rows}) > 5
        identity = {row["judge_config_hash"] for row in rows}
        assert identity == {row["judge_config_hash"] for row in verdicts_of(asking)}
