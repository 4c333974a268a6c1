"""Control limits of a judge's agreement with its first verdicts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tasks.rules.statistics.control import FALSE_ALARMS, least_agreeing, limits

Row = dict[str, Any]


@st.composite
def judged_nights(draw: st.DrawFn) -> list[Row]:
    labels = draw(st.sets(st.dates().map(str), min_size=1, max_size=8))
    bar = draw(st.none() | st.floats(0.5, 1))
    nights = []
    for label in labels:
        n_decided = draw(st.integers(0, 60))
        night = {
            "night": label,
            "n_decided": n_decided,
            "n_agreeing": draw(st.integers(0, n_decided)),
            "joint_limit": None,
            "min_agreement": bar,
        }
        nights.append(night)
    return nights


def limits_of(*counts: tuple[int, int], bar: float | None = None) -> list[Row]:
    """The limits of successive nights, each with its numbers of decided and of agreeing
    verdicts.
    """
    nights = []
    for day, (n_decided, n_agreeing) in enumerate(counts, start=1):
        night = {
            "night": f"2026-01-{day:02}",
            "n_decided": n_decided,
            "n_agreeing": n_agreeing,
            "joint_limit": None,
            "min_agreement": bar,
        }
        nights.append(night)
    return limits(nights)


def causes_of(rows: list[Row]) -> list[str | None]:
    return [row["cause"] for row in rows]


def test_the_first_night_has_no_limits():
    [night] = limits_of((200, 20))

    assert night["centre"] is None
    assert night["lower_limit"] is None
    assert night["cause"] is None


def test_a_judge_that_decides_otherwise_from_a_night_on_is_out_of_control_from_that_night_on():
    rows = limits_of((200, 194), (200, 195), (200, 170), (200, 171), (200, 194))

    assert causes_of(rows) == [None, None, "limit", "limit", None]


def test_nights_out_of_control_do_not_lower_the_expected_agreement():
    rows = limits_of((200, 194), (200, 195), (200, 170), (200, 171), (200, 194))

    assert rows[-1]["centre"] == pytest.approx((194 + 195 + 0.5) / (400 + 1))


@pytest.mark.parametrize(("n_below", "cause"), [(0, None), (1, "limit")])
def test_the_limit_itself_is_in_control_and_one_less_is_not(n_below, cause):
    n_agreeing = least_agreeing(400, 390, 100) - n_below

    assert causes_of(limits_of((400, 390), (100, n_agreeing))) == [None, cause]


def test_the_bar_holds_in_the_first_night_and_is_a_cause_of_its_own():
    rows = limits_of((100, 89), (100, 98), (100, 60), (100, 88), bar=0.9)

    assert causes_of(rows) == ["bar", None, "limit and bar", "bar"]


def test_a_night_without_a_decision_says_nothing_and_changes_nothing():
    rows = limits_of((50, 49), (0, 0), (50, 50), bar=0.5)

    assert causes_of(rows) == [None, None, None]
    assert rows[1]["lower_limit"] is None
    assert rows[2]["centre"] == limits_of((50, 49), (50, 50))[1]["centre"]


@given(judged_nights(), st.randoms())
def test_the_order_of_judging_nights_does_not_matter(nights, random):
    shuffled = random.sample(nights, len(nights))

    rows = limits(shuffled)

    labels = [row["night"] for row in rows]
    assert rows == limits(nights)
    assert labels == sorted(labels)


@given(st.integers(1, 2000), st.floats(0, 1), st.integers(1, 300))
def test_the_limit_is_the_lowest_number_that_is_likely_enough(n_pooled, share, n):
    n_agreeing = round(share * n_pooled)
    predicted = stats.betabinom(n, n_agreeing + 0.5, n_pooled - n_agreeing + 0.5)

    limit = least_agreeing(n_pooled, n_agreeing, n)

    assert predicted.cdf(limit) >= FALSE_ALARMS * (1 - 1e-6)
    assert limit == 0 or predicted.cdf(limit - 1) < FALSE_ALARMS * (1 + 1e-6)
