"""A reviewer's reply: one JSON object with an answer to each check, or a failure."""

import json
from typing import Any

import pytest

from tasks.analyses.review import CHECKS, read_findings, reply_shape
from tasks.rules.verdict import VerdictError

GOOD: dict[str, Any] = {name: {"reason": f"about {name}", "passes": name != "atomic"} for name in CHECKS}


def test_a_reply_has_a_finding_for_each_check_in_order_whatever_the_order_of_the_keys() -> None:
    found = read_findings(json.dumps(dict(reversed(GOOD.items()))))

    assert [each["name"] for each in found] == list(CHECKS)
    assert [each["passes"] for each in found] == [False, True, True, True, True]
    assert found[0]["reason"] == "about atomic"


def test_a_fenced_reply_and_one_behind_thinking_are_read() -> None:
    text = json.dumps(GOOD)

    assert read_findings(f"```json\n{text}\n```") == read_findings(f"<think>hm</think>\n{text}") == read_findings(text)


def changed(name: str, finding: Any) -> str:
    return json.dumps(GOOD | {name: finding})


WRONG = {
    "not JSON": "atomic: yes",
    "a list": json.dumps([GOOD]),
    "a check is missing": json.dumps({name: GOOD[name] for name in CHECKS[1:]}),
    "another key": json.dumps(GOOD | {"important": GOOD["atomic"]}),
    "a bare boolean": changed("atomic", True),
    "a number": changed("atomic", {"reason": "x", "passes": 1}),
    "a word": changed("atomic", {"reason": "x", "passes": "true"}),
    "null": changed("atomic", {"reason": "x", "passes": None}),
    "no decision": changed("atomic", {"reason": "x"}),
    "another key inside": changed("atomic", {"reason": "x", "passes": True, "fails": False}),
    "a failed check without a reason": changed("atomic", {"reason": " ", "passes": False}),
    "a reason that is no text": changed("objective", {"reason": ["x"], "passes": True}),
    "a key twice": json.dumps(GOOD)[:-1] + ', "atomic": {"reason": "x", "passes": true}}',
    "a key twice inside": json.dumps(GOOD).replace('"passes": false', '"passes": true, "passes": false'),
    "text behind it": json.dumps(GOOD) + "\nThat is all.",
    "two objects": json.dumps(GOOD) * 2,
    "cut off": json.dumps(GOOD)[:-3],
}


@pytest.mark.parametrize("case", WRONG)
def test_anything_else_is_no_review(case: str) -> None:
    with pytest.raises(VerdictError):
        read_findings(WRONG[case])


def test_a_reason_can_be_stored_whatever_it_holds() -> None:
    found = read_findings(changed("atomic", {"reason": "a\0b \ud800", "passes": False}))

    assert found[0]["reason"] == "a\N{REPLACEMENT CHARACTER}b \N{REPLACEMENT CHARACTER}"


def test_the_shape_that_is_asked_for_has_what_is_read_and_nothing_else() -> None:
    schema = reply_shape()["json_schema"]["schema"]

    assert schema["required"] == list(CHECKS)
    assert schema["additionalProperties"] is False
    assert all(each["required"] == ["reason", "passes"] for each in schema["properties"].values())
