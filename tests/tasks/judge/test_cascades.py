"""A configured cascade: its calls and verdicts are those that a replay of the stored verdicts of both judges foretells."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tests.builders import job_on
from tests.faults.content import prompt_of
from tests.faults.server import Answer, FaultServer, Request, is_judging, meets, well_behaved
from tests.tasks.run.runs import judged, prepared, sampled
from warehouse import Warehouse

pytestmark = pytest.mark.slow

STRONG = {"name": "hosted_vllm/strong", "label": "strong"}
CHEAP = {"name": "hosted_vllm/cheap", "label": "cheap", "trials": 2, "logprobs": True}
WHENS: dict[str, dict[str, Any]] = {
    "disagreement": {"disagreement": True},
    "weight": {"weight_above": 6},
    "categories": {"categories": ["Financial Accuracy", "Legal Accuracy"]},
    "confidence": {"confidence_below": 0.8},
    "several": {"disagreement": True, "weight_above": 8, "confidence_below": 0.6},
}


def drawn(*parts: object) -> float:
    """A number from 0 to 1 that these decide."""
    return hashlib.sha256("|".join(map(str, parts)).encode()).digest()[0] / 256


def two_judges(request: Request, number: int) -> Answer:
    """A strong judge that is always the same, and a cheap one that errs, wavers, fails and is more or less sure."""
    if not is_judging(request) or request["model"] == "strong":
        return well_behaved(request, number)
    prompt = prompt_of(request)
    # The second repetition sends the same words once more.
    turns = drawn("err", prompt) < 0.2 or (drawn("waver", prompt) < 0.3 and number % 2 == 1)
    if drawn("fail", prompt) < 0.1:
        return Answer("I cannot say.")
    text = json.dumps({"explanation": "cheaply", "criteria_met": meets(prompt) != turns})
    return replace(Answer(text), certainty=0.5 + drawn("sure", prompt) / 2)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    monkeypatch.setenv("HOSTED_VLLM_API_KEY", "none")
    with FaultServer(two_judges) as running:
        yield running


def job_at(server: FaultServer, folder: Path, *judges: dict[str, Any]) -> Job:
    at = {"api_base": server.api_base}
    return prepared(
        job_on(
            "sample", folder, models=[{"name": "hosted_vllm/a", "label": "a", **at}],
            judges=[judge if "cascade" in judge else judge | at for judge in judges],
            limits={"concurrency": 4, "attempts": 2},
        )
    )  # fmt: skip


def cascade(**when: Any) -> dict[str, Any]:
    return {"label": "careful", "cascade": {"first": "cheap", "then": "strong", "when": when}}


def verdicts_of(job: Job) -> list[dict[str, Any]]:
    with Warehouse(job.warehouse).reader() as reader:
        return reader.rows(
            "select verdicts.*, weight, category from verdicts inner join criteria using (benchmark, dataset_revision, "
            "task_id, criterion_id) order by response_id, criterion_id, judge, judge_trial"
        )


def calls_of(server: FaultServer) -> Counter[tuple[str, str]]:
    """(model, prompt) of all first calls for a verdict; a reminder after a reply that cannot be read is left out."""
    return Counter(
        (request["model"], request["messages"][0]["content"])
        for request in server.judgings
        if len(request["messages"]) == 1
    )


def replayed(first: list[dict[str, Any]], when: dict[str, Any]) -> list[str]:
    """Why a criterion is escalated, worked out from the stored rows of the cheap judge's repetitions alone."""
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


@pytest.mark.parametrize("name", WHENS)
def test_a_live_cascade_makes_the_calls_and_verdicts_that_a_replay_of_both_judges_foretells(
    name: str, server: FaultServer, tmp_path: Path
) -> None:
    when = WHENS[name]
    full = job_at(server, tmp_path / "full", CHEAP, STRONG)
    sampled(full)
    judged(full)
    rows = verdicts_of(full)
    by_criterion: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for row in rows:
        by_criterion.setdefault((row["task_id"], row["criterion_id"]), {}).setdefault(row["judge"], []).append(row)
    expected = {}
    for key, judges in by_criterion.items():
        why = replayed(judges["cheap"], when)
        decided = judges["strong" if why else "cheap"][0]
        expected[key] = (decided["judge"], why or None, decided["value"], decided["explanation"], decided["status"])
    every, server_book = calls_of(server), len(server.book)

    with FaultServer(two_judges) as fresh:
        live = job_at(fresh, tmp_path / "live", CHEAP, STRONG, cascade(**when))
        sampled(live)
        report = judged(live)
        made = verdicts_of(live)
        calls = calls_of(fresh)

    assert {
        (row["task_id"], row["criterion_id"]):
        (row["decided_by"], row["escalated_because"], row["value"], row["explanation"], row["status"])
        for row in made
    } == expected  # fmt: skip
    assert {"careful"} == {row["judge"] for row in made}
    assert len(made) == report.rows
    n_strong = sum(1 for judge, *_ in expected.values() if judge == "strong")
    n_cheap = len(expected) * (2 if when.get("disagreement") else 1)
    assert {"strong": n_strong, "cheap": n_cheap} == {
        model: sum(n for (named, _), n in calls.items() if named == model) for model in ("strong", "cheap")
    }
    assert 0 < n_strong < len(expected)
    assert all(every[call] >= n for call, n in calls.items())
    assert len(server.book) == server_book
