"""Behaviours that a seed decides: always the same for the same call, as often as they are told."""

import random
import statistics
from collections import Counter

from tests.faults.answers import FAULTS, Answer, lognormal_latency, seeded_faults, slowed, well_behaved
from tests.faults.content import TakenRequest
from tests.faults.provider.clients import chat, post
from tests.faults.server import FaultServer

REQUESTS = [chat(f"question {number}") for number in range(4000)]


def test_about_as_many_calls_fail_as_are_to_fail_and_all_kinds_occur() -> None:
    behaviour = seeded_faults(7, 0.2)
    answers = [behaviour(request, 0) for request in REQUESTS]
    failed = [answer for request, answer in zip(REQUESTS, answers, strict=True) if answer != well_behaved(request, 0)]
    assert 0.17 < len(failed) / len(answers) < 0.23
    kinds = Counter((a.status, a.raw, a.cuts_connection, a.cuts_body, a.choices, a.text == "") for a in failed)
    assert len(kinds) == len(FAULTS)
    assert min(kinds.values()) > 0.5 * len(failed) / len(FAULTS)


def test_what_fails_depends_on_the_seed_the_request_and_its_number_alone() -> None:
    behaviour = seeded_faults(7, 0.5)
    expected = [behaviour(request, 0) for request in REQUESTS]
    places = list(range(len(REQUESTS)))
    random.Random(1).shuffle(places)
    again = {place: seeded_faults(7, 0.5)(TakenRequest(REQUESTS[place]), 0) for place in places}
    assert [again[place] for place in range(len(REQUESTS))] == expected
    for other in (seeded_faults(8, 0.5), lambda request, _number: behaviour(request, 1)):
        same = sum(other(request, 0) == answer for request, answer in zip(REQUESTS, expected, strict=True))
        assert 0.2 < same / len(REQUESTS) < 0.4


def test_only_the_kinds_that_were_named_occur_around_the_behaviour_that_was_named() -> None:
    behaviour = seeded_faults(7, 0.5, then=lambda _request, _number: Answer("good"), kinds=["cut_body", "rate_limit"])
    answers = [behaviour(request, 0) for request in REQUESTS[:200]]
    kinds = Counter((answer.status, answer.text, answer.cuts_body) for answer in answers)
    assert kinds.keys() == {(200, "good", False), (200, "good", True), (429, "", False)}
    assert answers[[answer.status for answer in answers].index(429)].headers == {"Retry-After": "0"}


def test_no_rate_means_no_fault_and_a_full_rate_nothing_else() -> None:
    assert all(seeded_faults(1, 0)(request, 0) == well_behaved(request, 0) for request in REQUESTS)
    assert not any(seeded_faults(1, 1)(request, 0) == well_behaved(request, 0) for request in REQUESTS)


def test_latencies_have_their_mean_and_their_spread_and_belong_to_the_call() -> None:
    latency = lognormal_latency(3, 2.0, 0.5)
    drawn = [latency(request, 0) for request in REQUESTS]
    assert 1.9 < statistics.fmean(drawn) < 2.1
    assert 0.45 < statistics.stdev(drawn) / statistics.fmean(drawn) < 0.62  # sqrt(exp(0.25) - 1) = 0.53
    assert drawn == [lognormal_latency(3, 2.0, 0.5)(request, 0) for request in REQUESTS]
    assert drawn[0] != latency(REQUESTS[0], 1) != lognormal_latency(4, 2.0, 0.5)(REQUESTS[0], 1)
    assert lognormal_latency(3, 2.0, 0)(REQUESTS[0], 0) == 2.0
    assert lognormal_latency(3, 0, 0.5)(REQUESTS[0], 0) == 0.0


def test_what_is_slowed_comes_later_and_is_otherwise_the_same() -> None:
    behaviour = slowed(lambda _request, number: 1.0 + number, then=lambda _request, _number: Answer("x", delay_s=0.5))
    assert behaviour(chat(), 0) == Answer("x", delay_s=1.5)
    assert behaviour(chat(), 1) == Answer("x", delay_s=2.5)
    assert slowed(lambda _request, _number: 1.0)(chat(), 0).text == well_behaved(chat(), 0).text


def test_every_kind_of_fault_can_be_served() -> None:
    for kind in FAULTS.keys() - {"cut_connection", "cut_body"}:
        with FaultServer(seeded_faults(1, 1, kinds=[kind])) as server:
            answer = post(server, chat())
        assert (answer.status_code == 200) == (kind in {"no_choices", "empty_text", "not_json", "half_json"})
