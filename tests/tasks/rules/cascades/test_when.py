"""The rule that says when a criterion goes to the second judge."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules.cascades.rules import Facts, When, escalations, reasons_to_escalate

Case = tuple[list[float | None], int, str, float | None]
VALUES = st.sampled_from([None, 0.0, 0.5, 1.0])
CATEGORIES = ("Accuracy", "Style", "(none)")
WHENS = st.builds(
    When, st.booleans(), st.none() | st.integers(0, 10).map(float),
    st.lists(st.sampled_from(CATEGORIES), unique=True, max_size=2).map(tuple), st.none() | st.floats(0.01, 1.0),
)  # fmt: skip
CRITERIA = st.tuples(
    st.lists(VALUES, min_size=2, max_size=3), st.integers(-10, 10), st.sampled_from(CATEGORIES),
    st.none() | st.floats(0.0, 1.0),
)  # fmt: skip


@given(WHENS, CRITERIA)
def test_a_criterion_stays_with_the_first_judge_only_if_no_condition_holds(when: When, criterion: Case) -> None:
    first, weight, category, confidence = criterion
    counted = first if when.disagreement else first[:1]
    may_stay = (
        None not in counted and (not when.disagreement or len(set(counted)) == 1)
        and (when.weight_above is None or abs(weight) <= when.weight_above) and category not in when.categories
        and (when.confidence_below is None or (confidence is not None and confidence >= when.confidence_below))
    )  # fmt: skip
    assert may_stay is not bool(reasons_to_escalate(when, first, weight, category, confidence))


@given(WHENS, st.lists(CRITERIA, min_size=1, max_size=8))
def test_many_criteria_are_decided_as_each_alone(when: When, criteria: list[Case]) -> None:
    n = min(len(first) for first, *_ in criteria)
    facts = Facts(
        np.array([[math.nan if v is None else v for v in first[:n]] for first, *_ in criteria]),
        np.array([float(weight) for _, weight, _, _ in criteria]),
        np.array([category for _, _, category, _ in criteria]),
        np.array([math.nan if c is None else c for *_, c in criteria]),
    )
    at_once = escalations(when, facts)
    for i, (first, weight, category, confidence) in enumerate(criteria):
        alone = reasons_to_escalate(when, first[:n], weight, category, confidence)
        assert alone == [reason for reason, which in at_once.items() if which[i]]


def test_repetitions_are_asked_only_where_they_are_compared() -> None:
    assert 3 == When(disagreement=True).n_repetitions(3)
    assert 1 == When(weight_above=7).n_repetitions(3)
