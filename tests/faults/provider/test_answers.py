"""Behaviours that a seed decides: always the same for the same call, as often as they are told."""

import random
from collections import Counter

from tests.faults.answers import FAULTS, seeded_faults, well_behaved
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


def test_every_kind_of_fault_can_be_served() -> None:
    for kind in FAULTS.keys() - {"cut_connection", "cut_body"}:
        with FaultServer(seeded_faults(1, 1, kinds=[kind])) as server:
            answer = post(server, chat())
        assert (answer.status_code == 200) == (kind in {"no_choices", "empty_text", "not_json", "half_json"})
