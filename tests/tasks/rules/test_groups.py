"""Replies about several criteria: each entry is read by itself."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules.verdict import (
    WORDS,
    VerdictError,
    parse_decisions,
    parse_group,
    parse_only,
    shares,
)

GOOD = [
    {
        "number": n,
        "explanation": "so",
        "criteria_met": n != 2,
    }
    for n in (1, 2, 3)
]
DECIDED = [
    {
        "type": "predicate",
        "name": f"c{n}",
        "probability": p,
    }
    for n, p in ((1, 0.9), (2, 0.1), (3, 0.5))
]
ODD: list[Any] = [
    None,
    True,
    "0.9",
    -0.1,
    1.5,
    float("nan"),
    float("inf"),
    [0.5],
    {"value": 0.5},
    10**400,
]
Read = list[float | None]


def of_chat(reply: Any) -> Read:
    text = reply if isinstance(reply, str) else json.dumps(reply)
    return [getattr(each, "value", None) for each in parse_group(text, 3, "binary")]


def of_decisions(given: Any, grading: str = "binary") -> Read:
    text = given if isinstance(given, str) else json.dumps({"answers": given})
    return [getattr(each, "value", None) for each in parse_decisions(text, 3, grading, 0.5)]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (GOOD, [1.0, 0.0, 1.0]),
        (GOOD[::-1], [1.0, 0.0, 1.0]),
        ({"verdicts": GOOD}, [1.0, 0.0, 1.0]),
        (GOOD[:2], [1.0, 0.0, None]),
        ([*GOOD, GOOD[0]], [None, 0.0, 1.0]),
        ([*GOOD, {"number": 9}], [1.0, 0.0, 1.0]),
        ([{**GOOD[0], "criteria_met": "true"}, *GOOD[1:]], [None, 0.0, 1.0]),
        ([{**GOOD[0], "number": "1"}, *GOOD[1:]], [None, 0.0, 1.0]),
        ([{**GOOD[0], "number": True}, *GOOD[1:]], [None, 0.0, 1.0]),
        ([{**GOOD[0], "more": {"criteria_met": False}}, *GOOD[1:]], [None, 0.0, 1.0]),
        (
            (
                '[{"number": 1, "criteria_met": true, "criteria_met": false}, {"number": 3,'
                ' "criteria_met": true}]'
            ),
            [None, None, 1.0],
        ),
    ],
)
def test_a_missing_doubled_or_malformed_entry_is_no_verdict_and_the_others_are(
    entries: Any, expected: Read
) -> None:
    assert of_chat(entries) == expected
    assert (
        of_chat(f"```json\n{entries if isinstance(entries, str) else json.dumps(entries)}\n```")
        == expected
    )


@pytest.mark.parametrize(
    "reply",
    [
        (
            '{"verdicts": [{"number": 1, "criteria_met": true}], "verdicts": [{"number": 1,'
            ' "criteria_met": false}]}'
        ),
        '[{"number": 1, "criteria_met": true, "confidence": NaN}]',
    ],
)
def test_a_list_that_is_doubled_or_holds_no_number_decides_nothing(reply: str) -> None:
    with pytest.raises(VerdictError):
        parse_only(reply, "binary")


@pytest.mark.parametrize("odds", [(0, 0, 0), (1, 1, 1), (0.5, 0.2, 0.1)])
def test_probabilities_of_three_values_that_do_not_add_up_decide_nothing(
    odds: tuple[float, ...],
) -> None:
    given = [{"value": word, "probability": each} for word, each in zip(WORDS, odds, strict=True)]
    reply = json.dumps({"answers": [{"name": "c1", "probabilities": given}]})
    (entry,) = parse_decisions(reply, 1, "ternary", 0.5)
    assert isinstance(entry, VerdictError)


def test_decisions_that_are_given_twice_decide_nothing() -> None:
    reply = '{"answers": {"c1": {"noul": 0.9}}, "answers": {"c1": {"noul": 0.1}}}'
    with pytest.raises(VerdictError, match="no list or mapping"):
        parse_decisions(reply, 1, "binary", 0.5)
    doubled = (
        '{"answers": {"c1": {"noul": 1}, "c1": {"noul": 0}, "c2": {"noul": 0}, "c3": {"noul": 1}}}'
    )
    first, *others = parse_decisions(doubled, 3, "binary", 0.5)
    assert isinstance(first, VerdictError)
    assert [each.value for each in others if not isinstance(each, VerdictError)] == [0.0, 1.0]


@pytest.mark.parametrize("probability", ODD)
def test_a_probability_that_is_none_fails_its_criterion_alone(probability: Any) -> None:
    assert of_decisions([DECIDED[0], {**DECIDED[1], "probability": probability}, DECIDED[2]]) == [
        1.0,
        None,
        1.0,
    ]
    assert of_decisions(
        {
            "c1": {"type": "noul", "noul": 0.9},
            "c2": {"type": "noul", "noul": probability},
            "c3": {"type": "noul", "noul": 0.5},
        }
    ) == [1.0, None, 1.0]


@pytest.mark.parametrize(
    ("decisions", "expected"),
    [
        (DECIDED[::-1], [1.0, 0.0, 1.0]),
        (DECIDED[1:], [None, 0.0, 1.0]),
        ([*DECIDED, DECIDED[1]], [1.0, None, 1.0]),
        ([{**each, "name": None} for each in DECIDED], [1.0, 0.0, 1.0]),
        ([{**each, "name": None} for each in DECIDED[1:]], [None, None, None]),
        (
            [
                {
                    **DECIDED[0],
                    "type": "refusal",
                    "probability": None,
                },
                *DECIDED[1:],
            ],
            [None, 0.0, 1.0],
        ),
    ],
)
def test_decisions_are_matched_by_name_and_by_order_only_if_none_has_a_name(
    decisions: Any, expected: Read
) -> None:
    assert of_decisions(decisions) == expected


@pytest.mark.parametrize(
    ("odds", "value"),
    [
        ((0.2, 0.2, 0.6), 0.0),
        ((0.4, 0.4, 0.2), 0.5),
        ((0.4, 0.2, 0.4), 0.0),
        ((0.6, 0.2, 0.2), 1.0),
    ],
)
def test_of_three_values_the_likeliest_counts_or_the_lower_of_two(
    odds: tuple[float, ...], value: float
) -> None:
    of_values = dict(zip(("satisfied", "partially satisfied", "not satisfied"), odds, strict=True))
    listed = [{"value": word, "probability": p} for word, p in of_values.items()]
    for probabilities in (of_values, listed):
        reply = json.dumps({"answers": [{"name": "c1", "probabilities": probabilities}]})
        (read,) = parse_decisions(reply, 1, "ternary", 0.5)
        assert not isinstance(read, VerdictError)
        assert value == read.value
        assert odds[0] + odds[1] / 2 == read.probability
        assert max(odds) == read.confidence


@pytest.mark.parametrize(
    "reply", ["", "[", "{}", "3", "[" * 100_000, '{"answers": 3}', '{"verdicts": 1}']
)
def test_a_reply_that_is_no_list_is_refused_whole(reply: str) -> None:
    with pytest.raises(VerdictError):
        parse_group(reply, 3, "binary")
    with pytest.raises(VerdictError):
        parse_decisions(reply, 3, "binary", 0.5)


@given(st.integers(0, 10**12), st.integers(1, 128))
def test_shares_add_up_and_differ_by_one_at_most(total: int, n: int) -> None:
    each = shares(total, n)
    assert total == sum(each)
    assert n == len(each)
    assert max(each) - min(each) <= 1


def test_an_expected_value_is_never_above_1() -> None:
    """Rounded probabilities may add up to a little more than 1."""
    probabilities = dict(zip(WORDS, (1.0, 0.04, 0.0), strict=True))
    reply = json.dumps({"answers": [{"name": "c1", "probabilities": probabilities}]})

    (read,) = parse_decisions(reply, 1, "ternary", 0.5)

    assert not isinstance(read, VerdictError)
    assert read.probability == 1.0
