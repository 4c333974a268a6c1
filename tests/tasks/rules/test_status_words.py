"""A ternary judge's words as they are written in practice."""

import json

import pytest

from tasks.rules.verdict import TERNARY, VerdictError, parse_verdict, status_of


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("satisfied", "met"), (" Satisfied\n", "met"), ("partially_satisfied", "partial"),
        ("PARTIALLY-SATISFIED", "partial"), ("Partially  Satisfied", "partial"), ("not_satisfied", "unmet"),
        ("Not Satisfied", "unmet"), ("not-satisfied", "unmet"),
    ],
)  # fmt: skip
def test_a_word_is_read_however_its_parts_are_joined(word: str, status: str) -> None:
    assert status_of(word) == status
    assert parse_verdict(json.dumps({"verdict": word}), TERNARY).status == status


@pytest.mark.parametrize(
    "word",
    [
        "",
        "_",
        "notsatisfied",
        "not",
        "satisfied_not",
        "satisfied, partially satisfied",
        "satisfied.",
        "not\u00a0satisfied",
        "sat\u0131sfied",
    ],
)
def test_another_word_is_no_verdict(word: str) -> None:
    assert status_of(word) is None
    with pytest.raises(VerdictError):
        parse_verdict(json.dumps({"verdict": word}), TERNARY)
