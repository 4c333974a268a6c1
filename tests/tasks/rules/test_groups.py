"""Replies about several criteria: each entry is read by itself."""

import json
from typing import Any

import pytest

from tasks.rules.verdict import (
    VALUES,
    WORDS,
    Verdict,
    VerdictError,
    VerdictOrError,
    parse_decisions,
    parse_group,
    parse_group_of_one,
)

MET = {"number": 1, "explanation": "so", "criteria_met": True}
UNMET = {"number": 2, "explanation": "so", "criteria_met": False}
THIRD = {"number": 3, "explanation": "so", "criteria_met": True}
LIKELY = {"type": "predicate", "name": "c1", "probability": 0.9}
UNLIKELY = {"type": "predicate", "name": "c2", "probability": 0.1}
AT_THRESHOLD = {"type": "predicate", "name": "c3", "probability": 0.5}
UNNAMED = {"name": None}
Values = list[float | None]
"""The value of each criterion; None for an error."""


def values_of(verdicts: list[VerdictOrError]) -> Values:
    return [
        verdict.value if isinstance(verdict, Verdict) else None
        for verdict in verdicts
    ]


def group_values(reply: str) -> Values:
    return values_of(parse_group(reply, 3, "binary"))


def decision_values(decisions: Any) -> Values:
    return values_of(
        parse_decisions(json.dumps({"answers": decisions}), 3, "binary", 0.5)
    )


@pytest.mark.parametrize("template", ["{}", "```json\n{}\n```"])
@pytest.mark.parametrize(
    ("entries", "values"),
    [
        ([MET, UNMET, THIRD], [1.0, 0.0, 1.0]),
        ([THIRD, UNMET, MET], [1.0, 0.0, 1.0]),
        ({"verdicts": [MET, UNMET, THIRD]}, [1.0, 0.0, 1.0]),
        ([MET, UNMET], [1.0, 0.0, None]),
        ([MET, UNMET, THIRD, MET], [None, 0.0, 1.0]),
        ([MET, UNMET, THIRD, {"number": 9}], [1.0, 0.0, 1.0]),
        ([MET | {"criteria_met": "true"}, UNMET, THIRD], [None, 0.0, 1.0]),
        ([MET | {"number": "1"}, UNMET, THIRD], [None, 0.0, 1.0]),
        ([MET | {"number": True}, UNMET, THIRD], [None, 0.0, 1.0]),
        ([MET | {"more": {"criteria_met": False}}, UNMET, THIRD], [None, 0.0, 1.0]),
    ],
)
def test_a_missing_doubled_or_malformed_entry_is_no_verdict_and_the_others_are(
    entries, values, template
):
    assert group_values(template.format(json.dumps(entries))) == values


@pytest.mark.parametrize(
    "entry",
    [
        '{"number": 1, "criteria_met": true, "criteria_met": false}',
        '{"number": 1, "criteria_met": true, "more": {"a": 1, "a": 2}}',
    ],
)
def test_an_entry_with_a_duplicate_key_is_no_verdict(entry):
    reply = f'[{entry}, {{"number": 3, "criteria_met": true}}]'

    assert group_values(reply) == [None, None, 1.0]


@pytest.mark.parametrize(
    "reply",
    [
        (
            '{"verdicts": [{"number": 1, "criteria_met": true}],'
            ' "verdicts": [{"number": 1, "criteria_met": false}]}'
        ),
        '[{"number": 1, "criteria_met": true, "confidence": NaN}]',
    ],
)
def test_a_reply_with_two_lists_or_with_nan_decides_nothing(reply):
    with pytest.raises(VerdictError):
        parse_group_of_one(reply, "binary")


def ternary(probabilities: Any) -> VerdictOrError:
    reply = json.dumps({"answers": [{"name": "c1", "probabilities": probabilities}]})
    [verdict] = parse_decisions(reply, 1, "ternary", 0.5)
    return verdict


def as_choices(probabilities: tuple[float, ...]) -> list[dict[str, Any]]:
    return [
        {"value": word, "probability": probability}
        for word, probability in zip(WORDS, probabilities, strict=True)
    ]


@pytest.mark.parametrize("probabilities", [(0, 0, 0), (1, 1, 1), (0.5, 0.2, 0.1)])
def test_probabilities_of_three_values_that_do_not_add_up_decide_nothing(
    probabilities,
):
    assert isinstance(ternary(as_choices(probabilities)), VerdictError)


@pytest.mark.parametrize(
    ("probabilities", "status", "probability", "confidence"),
    [
        ((0.25, 0.25, 0.5), "unmet", 0.375, 0.5),
        ((0.375, 0.375, 0.25), "partial", 0.5625, 0.375),
        ((0.375, 0.25, 0.375), "unmet", 0.5, 0.375),
        ((0.5, 0.25, 0.25), "met", 0.625, 0.5),
    ],
)
def test_of_three_values_the_likeliest_counts_or_the_lower_of_two(
    probabilities, status, probability, confidence
):
    verdict = Verdict(status, VALUES[status], None, probability, confidence)

    assert ternary(as_choices(probabilities)) == verdict
    assert ternary(dict(zip(WORDS, probabilities, strict=True))) == verdict


def test_an_expected_value_is_never_above_1():
    """Rounded probabilities may add up to a little more than 1."""
    expected = Verdict("met", 1.0, probability=1.0, confidence=1.0)

    assert ternary(as_choices((1.0, 0.04, 0.0))) == expected


def test_decisions_that_are_stated_twice_decide_nothing():
    reply = '{"answers": {"c1": {"noul": 0.9}}, "answers": {"c1": {"noul": 0.1}}}'

    with pytest.raises(VerdictError, match="no list or mapping"):
        parse_decisions(reply, 1, "binary", 0.5)


def test_a_criterion_with_two_decisions_is_undecided_alone():
    reply = (
        '{"answers": {"c1": {"noul": 1}, "c1": {"noul": 0},'
        ' "c2": {"noul": 0}, "c3": {"noul": 1}}}'
    )

    assert values_of(parse_decisions(reply, 3, "binary", 0.5)) == [None, 0.0, 1.0]


@pytest.mark.parametrize(
    "probability",
    [
        None,
        True,
        "0.9",
        -0.1,
        1.5,
        float("nan"),
        float("inf"),
        [0.5],
        {"value": 0.5},
        10**400,  # more than a float can be
    ],
)
def test_what_is_no_probability_fails_its_criterion_alone(probability):
    decision = UNLIKELY | {"probability": probability}
    noul_by_name = {
        "c1": {"noul": 0.9},
        "c2": {"noul": probability},
        "c3": {"noul": 0.5},
    }

    assert decision_values([LIKELY, decision, AT_THRESHOLD]) == [1.0, None, 1.0]
    assert decision_values(noul_by_name) == [1.0, None, 1.0]


@pytest.mark.parametrize(
    ("decisions", "values"),
    [
        ([AT_THRESHOLD, UNLIKELY, LIKELY], [1.0, 0.0, 1.0]),
        ([UNLIKELY, AT_THRESHOLD], [None, 0.0, 1.0]),
        ([LIKELY, UNLIKELY, AT_THRESHOLD, UNLIKELY], [1.0, None, 1.0]),
        (
            [LIKELY | UNNAMED, UNLIKELY | UNNAMED, AT_THRESHOLD | UNNAMED],
            [1.0, 0.0, 1.0],
        ),
        ([UNLIKELY | UNNAMED, AT_THRESHOLD | UNNAMED], [None, None, None]),
        (
            [
                LIKELY | {"type": "refusal", "probability": None},
                UNLIKELY,
                AT_THRESHOLD,
            ],
            [None, 0.0, 1.0],
        ),
    ],
)
def test_decisions_are_matched_by_name_and_by_order_only_if_none_has_a_name(
    decisions, values
):
    assert decision_values(decisions) == values


@pytest.mark.parametrize(
    "reply", ["", "[", "{}", "3", "[" * 100_000, '{"answers": 3}', '{"verdicts": 1}']
)
def test_a_reply_that_is_no_list_is_refused_whole(reply):
    with pytest.raises(VerdictError):
        parse_group(reply, 3, "binary")
    with pytest.raises(VerdictError):
        parse_decisions(reply, 3, "binary", 0.5)
