"""Check: what is wrong with responses and verdicts is found row by row."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import sql
from expectations.run import run_suite
from expectations.suites import all_expectations
from tests.kit import REVISION, admitted, criterion, response, row, verdict
from tests.tasks.check.test_check import WHITE_SPACE
from warehouse import Reader

Rows = dict[str, list[dict[str, Any]]]
Fill = Callable[[Rows], Reader]
ASKED = {"benchmark": "prbench", "revision": REVISION}
TASK = admitted(["t"], n_criteria=2) | {"criteria": [criterion("t", 0, 5), criterion("t", 1, 5)]}


def failing(published: Fill, **tables: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The keys that fail, by check; checks that hold are left out."""
    reader = published(TASK | tables)
    findings = run_suite(all_expectations({}), lambda table: reader.frame(sql.read(f"checks/{table}"), ASKED))
    found: dict[str, list[str]] = defaultdict(list)
    for each in findings:
        found[each.expectation.check] += [row.key for row in each.failures]
    return {check: keys for check, keys in found.items() if keys}


TEXTS = [
    ("ok", "An answer.", set()),
    ("ok", "0", set()),
    ("ok", "\n a", set()),
    ("refused", None, set()),
    ("ok", None, {"response_not_empty", "response_status"}),
    ("ok", "", {"response_not_empty"}),
    *(("ok", text, {"response_not_empty"}) for text in WHITE_SPACE),
    ("refused", "No.", {"response_status"}),
    ("empty", "", {"response_status"}),
    (None, "No status.", set()),
]


def test_a_response_is_complete_and_not_empty(published: Fill) -> None:
    responses = [
        response("t", trial=trial) | {"status": status, "text": text}
        for trial, (status, text, _) in enumerate(TEXTS, start=1)
    ]
    found = failing(published, responses=responses)

    for each, (status, text, checks) in zip(responses, TEXTS, strict=True):
        assert checks == {check for check, keys in found.items() if each["response_id"] in keys}, (status, text)


VALUES = [
    ("met", 1.0, True), ("partial", 0.5, True), ("unmet", 0.0, True), ("timeout", None, True), ("odd", None, True),
    ("met", 0.0, False), ("met", None, False), ("partial", 1.0, False), ("unmet", 0.5, False), ("unmet", None, False),
    ("timeout", 0.0, False), (None, 1.0, False),
]  # fmt: skip


def test_a_verdict_has_the_value_of_its_status(published: Fill) -> None:
    of_response, of_criterion = response("t"), TASK["criteria"][0]
    verdicts = [
        verdict(of_response, of_criterion, None, judge_trial=trial) | {"status": status, "value": value}
        for trial, (status, value, _) in enumerate(VALUES, start=1)
    ]
    found = failing(published, responses=[of_response], verdicts=verdicts)

    wrong = [row["verdict_id"] for row, (_, _, is_right) in zip(verdicts, VALUES, strict=True) if not is_right]
    assert sorted(wrong) == sorted(found["verdict_value"])


def test_a_verdict_without_its_response_or_its_criterion_is_found(published: Fill) -> None:
    of_response, (first, second) = response("t"), TASK["criteria"]
    orphan = verdict(response("t", trial=9), first, 1.0)
    unasked = verdict(of_response, first | {"criterion_id": "another"}, 1.0)
    foreign = verdict(of_response | {"task_id": "u"}, second, 1.0) | {"verdict_id": "f"}
    whole = [verdict(of_response, each, 1.0) for each in (first, second)]
    found = failing(published, responses=[of_response], verdicts=[*whole, orphan, unasked, foreign])

    assert [orphan["verdict_id"]] == found.pop("verdict_has_response")
    assert sorted(["f", unasked["verdict_id"]]) == sorted(found.pop("verdict_has_criterion"))
    assert {} == found


def test_a_response_that_lacks_verdicts_is_a_warning_once_judging_began(published: Fill) -> None:
    begun, untouched, done = (response("t", trial=trial) for trial in (1, 2, 3))
    first, second = TASK["criteria"]
    verdicts = [verdict(begun, first, 1.0), verdict(done, first, 1.0), verdict(done, second, 0.0)]
    found = failing(published, responses=[begun, untouched, done], verdicts=verdicts)

    assert {"verdict_count"} == set(found)
    assert [begun["response_id"]] == [key.rpartition("/")[0] for key in found["verdict_count"]]


def test_what_people_did_not_label_is_not_missing_beside_a_judge(published: Fill) -> None:
    answer, (first, second) = response("t"), TASK["criteria"]
    judged = [verdict(answer, each, 1.0) for each in (first, second)]
    label = verdict(answer, first, 1.0, judge="eva", judge_config_hash="imported", source="imported")
    labellers = [row("labellers", judge="eva", import_batch="a-sheet")]

    assert {} == failing(published, responses=[answer], verdicts=[*judged, label], labellers=labellers)
