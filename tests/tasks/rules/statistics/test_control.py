"""Control limits of a judge's agreement with its first verdicts."""

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tasks.rules.statistics.control import (
    FALSE_ALARMS,
    change_evidence,
    design_effect,
    joint_limits,
    least_agreeing,
    limits,
    people_clause,
)

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


def test_the_evidence_of_one_agreement_and_then_one_difference_is_2():
    # Beta functions: B(1.5, .5) B(.5, 1.5) / (B(1.5, 1.5) B(.5, .5))
    # = (pi / 2) (pi / 2) / (pi / 8 * pi).
    evidence = change_evidence(np.array([1.0, 0.0]), np.array([0.0, 1.0]))

    assert math.exp(evidence) == pytest.approx(2)


def test_evidence_is_the_sum_over_nights_at_which_the_change_may_have_begun():
    # 1 for a change in the second night, 3 for one in the third.
    evidence = change_evidence(np.array([1.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0]))

    assert math.exp(evidence) == pytest.approx(4)


def test_a_rise_of_agreement_is_no_evidence():
    assert change_evidence(np.array([0.0, 9.0]), np.array([9.0, 0.0])) == -math.inf


def test_the_design_effect_is_the_variance_over_tasks_by_that_of_independent_decisions():
    differing = np.array([[0.0, 0.0], [2.0, 0.0]])

    effect = design_effect(differing, np.array([4.0, 4.0]))

    share = 2.5 / 9
    assert effect == pytest.approx(2 / (4 * share * (1 - share)))


def alarms_of(differing: np.ndarray, n_decided: int) -> dict[str, list[int]]:
    """Return the indices of the nights below each bound; `differing` has the shape
    (n_nights, n_tasks).
    """
    nights = []
    for index, n_differing in enumerate(differing.sum(axis=1)):
        night = {
            "night": f"{index:03}",
            "n_decided": n_decided,
            "n_agreeing": n_decided - int(n_differing),
            "min_agreement": None,
        }
        nights.append(night)
    for night, limit in zip(nights, joint_limits(nights, differing), strict=True):
        night["joint_limit"] = limit
    alarms = defaultdict(list)
    for index, causes in enumerate(causes_of(limits(nights))):
        for cause in str(causes).split(" and "):
            alarms[cause].append(index)
    return alarms


def years_of_noise(seed: int, n_verdicts: int) -> np.ndarray:
    """Return differing decisions of a steady judge on 20 tasks, all of a task together, shape
    (n_nights, n_tasks); each task has its own chance to differ from its noisy first verdicts.
    """
    dice = np.random.default_rng(seed)
    chances = dice.beta(0.5, 4.0, 20)
    is_met = dice.random((366, 20)) < chances
    return n_verdicts * (is_met[1:] != is_met[0]).astype(float)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_verdicts", [1, 8])
def test_a_steady_judge_is_not_below_its_joint_limit_in_a_year(seed, n_verdicts):
    differing = years_of_noise(seed, n_verdicts)

    assert alarms_of(differing, 20 * n_verdicts)["joint limit"] == []


def small_change(n_steady: int, n_changed: int, n_back: int = 0) -> np.ndarray:
    """Return differing decisions on 50 tasks, of which 2 to 4 differ in steady nights, and 6 to 8
    after a change.
    """
    differing = np.zeros((n_steady + n_changed + n_back, 50))
    for index in range(len(differing)):
        n_more = 4 if n_steady <= index < n_steady + n_changed else 0
        differing[index, : 2 + index % 3 + n_more] = 1
    return differing


def test_a_change_of_two_points_is_below_the_joint_limit_and_not_below_those_of_nights():
    alarms = alarms_of(small_change(n_steady=30, n_changed=30), 200)

    assert alarms["limit"] == []
    assert 30 < alarms["joint limit"][0] < 45


def test_nights_are_below_the_joint_limit_as_long_as_the_change_lasts():
    alarms = alarms_of(small_change(n_steady=30, n_changed=30, n_back=5), 200)

    assert alarms["joint limit"][-5:] == [55, 56, 57, 58, 59]


def test_the_first_night_and_one_without_a_decision_have_no_joint_limit():
    nights = [{"n_decided": 8, "n_agreeing": 8} for _ in range(3)]
    nights[1] = {"n_decided": 0, "n_agreeing": 0}

    bounds = joint_limits(nights, np.zeros((3, 2)))

    assert bounds[:2] == [None, None]


def test_a_night_below_its_joint_limit_is_out_of_control():
    night = {
        "night": "2026-01-01",
        "n_decided": 100,
        "n_agreeing": 94,
        "joint_limit": 0.95,
        "min_agreement": None,
    }

    assert causes_of(limits([night])) == ["joint limit"]


@pytest.mark.parametrize(
    ("first", "now", "text"),
    [
        (
            0.91,
            0.84,
            "fell from 91.0% to 84.0%{}, so the first decisions were better",
        ),
        (0.84, 0.91, "rose from 84.0% to 91.0%{}, so the new decisions are better"),
        (0.91, 0.9, "fell from 91.0% to 90.0%{}, which may be chance"),
        (0.91, 0.91, "stayed at 91.0%{}"),
    ],
)
def test_labels_say_which_decisions_are_better(first, now, text):
    night = {
        "agreement": 0.9,
        "n_labelled": 57,
        "first_people_agreement": first,
        "people_agreement": now,
        "labels_represent": "these items only",
    }

    clause = people_clause(night)

    labels = " on 57 labelled verdicts (these items only)"
    assert clause == f"; agreement with people {text.format(labels)}"


def test_without_labels_no_side_is_named():
    assert people_clause({"n_labelled": 0}) == ""
