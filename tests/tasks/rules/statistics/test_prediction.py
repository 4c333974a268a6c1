"""What a check predicts: figures of a table of four, against scikit-learn and plain counts."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules.statistics.agreement import check_auc, failing_rate, odds_ratio, passing_rate, rate_difference

CELL = st.integers(1, 30)


@given(CELL, CELL, CELL, CELL)
def test_the_auc_is_the_chance_that_a_pair_is_put_in_order(a: int, b: int, c: int, d: int) -> None:
    table = np.array([[a, b], [c, d]])
    fails_of_cases, fails_of_others = [1] * a + [0] * c, [1] * b + [0] * d
    pairs = [(x > y) + (x == y) / 2 for x in fails_of_cases for y in fails_of_others]

    assert check_auc(table) == pytest.approx(sum(pairs) / len(pairs))


@given(CELL, CELL, CELL, CELL)
def test_rates_and_odds_are_those_of_plain_counts(a: int, b: int, c: int, d: int) -> None:
    table = np.array([[[a, b], [c, d]]])

    assert failing_rate(table)[0] == pytest.approx(a / (a + b))
    assert passing_rate(table)[0] == pytest.approx(c / (c + d))
    assert rate_difference(table)[0] == pytest.approx(a / (a + b) - c / (c + d))
    assert odds_ratio(table)[0] == pytest.approx((a / b) / (c / d))


def test_what_is_divided_by_nothing_is_not_defined() -> None:
    assert math.isnan(failing_rate(np.array([[0, 0], [1, 2]])))
    assert math.isnan(odds_ratio(np.array([[2, 0], [1, 2]])))
    assert math.isnan(check_auc(np.array([[0, 3], [0, 2]])))
