"""Agreement between graders, against scikit-learn and against enumerated pairs; effective votes of
graders.

Predictions by a check: figures of a two-by-two table, against scikit-learn and plain counts.
"""

import itertools
import math
import random
import statistics
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.metrics import cohen_kappa_score, f1_score

from tasks.rules.statistics import agreement
from tasks.rules.statistics.intervals import draws
from tests.tasks.rules.agreement_oracle import alpha_by_pairs

MEASURES = [agreement.kappa, agreement.macro_f1, agreement.raw_agreement]
PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60)
LABELLED = st.tuples(st.integers(2, 4), PAIRS).map(
    lambda of: (of[0], [(a % of[0], b % of[0]) for a, b in of[1]])
)
TABLES = arrays.arrays(np.float64, (4, 3, 3), elements=st.integers(0, 9))
FEW = 500

Units = Sequence[Sequence[int]]
TEXTBOOK: Units = [
    (1, 1, 1),
    (2, 2, 3, 2),
    (3, 3, 3, 3),
    (3, 3, 3, 3),
    (2, 2, 2, 2),
    (1, 2, 3, 4),
    (4, 4, 4, 4),
    (1, 1, 2, 1),
    (2, 2, 2, 2),
    (5, 5, 5),
    (1, 1),
    (3,),
]
"""Twelve units by four observers, some absent: example C of "Computing Krippendorff's
Alpha-Reliability".
"""


def table_of(pairs: Sequence[tuple[int, int]], k: int) -> np.ndarray:
    table = np.zeros((k, k))
    for first, second in pairs:
        table[first, second] += 1
    return table


def coincidences_of(units: Units, k: int) -> np.ndarray:
    matrix = np.zeros((k, k))
    for unit in units:
        for first, second in itertools.permutations(unit, 2):
            matrix[first, second] += 1 / (len(unit) - 1)
    return matrix


def task_tables(n_tasks: int, n_figures: int = 1, accuracy: float = 0.8) -> np.ndarray:
    dice = np.random.default_rng(4)
    truth = dice.integers(0, 2, size=(n_tasks, n_figures, 15))
    decided = np.where(dice.random(truth.shape) < accuracy, truth, 1 - truth)
    counts = [((truth == a) & (decided == b)).sum(axis=2) for a in (0, 1) for b in (0, 1)]
    return np.stack(counts, axis=2).reshape(n_tasks, n_figures, 2, 2)


@pytest.mark.filterwarnings("ignore")
@given(LABELLED)
def test_agreement_is_that_of_scikit_learn(labelled: tuple[int, list[tuple[int, int]]]) -> None:
    k, pairs = labelled
    first, second = map(list, zip(*pairs, strict=True))
    table = table_of(pairs, k)
    one_label = len({*first, *second}) == 1

    assert pytest.approx(agreement.raw_agreement(table)) == np.mean(np.array(first) == second)
    assert pytest.approx(agreement.macro_f1(table)) == f1_score(first, second, average="macro")
    assert pytest.approx(agreement.macro_f1(table)) == f1_score(second, first, average="macro")
    kappa = np.nan if one_label else cohen_kappa_score(first, second)
    assert pytest.approx(kappa, nan_ok=True) == agreement.kappa(table)


@pytest.mark.parametrize("measure", [*MEASURES, agreement.krippendorff_alpha])
def test_nothing_to_agree_on_has_no_agreement(measure) -> None:
    assert np.isnan(measure(np.zeros((2, 2))))
    assert measure(np.zeros((0, 2, 2))).shape == (0,)


@given(TABLES)
def test_leading_axes_are_figures_of_their_own(tables: np.ndarray) -> None:
    for measure in (*MEASURES, agreement.krippendorff_alpha):
        one_by_one = [float(measure(table)) for table in tables]
        assert pytest.approx(measure(tables), nan_ok=True) == one_by_one
        assert pytest.approx(one_by_one, nan_ok=True) == measure(tables.reshape(2, 2, 3, 3)).ravel()


def test_alpha_of_the_textbook_is_found() -> None:
    assert agreement.krippendorff_alpha(coincidences_of(TEXTBOOK, 6)) == pytest.approx(
        0.743, abs=5e-4
    )


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1, max_size=12))
def test_alpha_is_one_minus_observed_by_expected_disagreement(units: list[list[int]]) -> None:
    expected = alpha_by_pairs(units)

    assert pytest.approx(expected, nan_ok=True) == agreement.krippendorff_alpha(
        coincidences_of(units, 3)
    )


@pytest.mark.parametrize(("n_tasks", "student"), [(8, 2.3646), (30, 2.0452)])
def test_an_interval_of_agreement_is_what_drawing_whole_tasks_gives(
    n_tasks: int, student: float
) -> None:
    # `student` is the 97.5 % quantile of Student's t with `n_tasks - 1` degrees of freedom.
    tables = task_tables(n_tasks)
    dice = random.Random(2)
    result = sorted(
        float(agreement.kappa(sum(dice.choices(list(tables[:, 0]), k=n_tasks))))
        for _ in range(8_000)
    )
    tail = NormalDist().cdf(-((n_tasks / (n_tasks - 1)) ** 0.5) * student)
    low = result[int(tail * 8_000)]
    high = result[int((1 - tail) * 8_000)]

    actual = agreement.agreement_intervals(tables, agreement.kappa)[0][0]
    assert pytest.approx((low, high), abs=0.06 * (high - low)) == actual


def test_agreement_has_the_same_interval_alone_and_among_many() -> None:
    tables = task_tables(20, 230)
    sampled = draws(20, FEW)
    figures = [5, 105, 205]
    among = agreement.agreement_intervals(tables, agreement.kappa, sampled=sampled)[0]
    alone = agreement.agreement_intervals(tables[:, figures], agreement.kappa, sampled=sampled)[0]

    assert among[figures] == pytest.approx(alone, abs=1e-9)


def test_a_resample_without_agreement_is_left_out_and_a_single_task_has_no_interval() -> None:
    tables = np.zeros((6, 1, 2, 2))
    tables[:3, 0] = [[3, 1], [1, 3]]
    low, high = agreement.agreement_intervals(tables, agreement.kappa, sampled=draws(6, FEW))[0][0]

    assert (low, high) == pytest.approx((0.5, 0.5))
    tables[1:] = 0
    for too_few in (tables, tables[:0]):
        assert np.isnan(agreement.agreement_intervals(too_few, agreement.kappa)[0]).all()


CELL = st.integers(1, 30)


@given(CELL, CELL, CELL, CELL)
def test_the_auc_and_the_rates_are_those_of_plain_counts(a: int, b: int, c: int, d: int) -> None:
    table = np.array([[a, b], [c, d]])
    fails_of_cases = [1] * a + [0] * c
    fails_of_others = [1] * b + [0] * d
    pairs = [(x > y) + (x == y) / 2 for x in fails_of_cases for y in fails_of_others]

    assert pytest.approx(sum(pairs) / len(pairs)) == agreement.check_auc(table)
    assert pytest.approx(a / (a + b)) == agreement.failing_rate(table)
    assert pytest.approx(c / (c + d)) == agreement.passing_rate(table)
    assert pytest.approx(a / (a + b) - c / (c + d)) == agreement.rate_difference(table)
    assert pytest.approx((a / b) / (c / d)) == agreement.odds_ratio(table)


def test_what_is_divided_by_nothing_is_not_defined() -> None:
    assert math.isnan(agreement.failing_rate(np.array([[0, 0], [1, 2]])))
    assert math.isnan(agreement.odds_ratio(np.array([[2, 0], [1, 2]])))
    assert math.isnan(agreement.check_auc(np.array([[0, 3], [0, 2]])))


ERRORS = st.integers(2, 5).flatmap(
    lambda k: st.lists(
        st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=k, max_size=k), min_size=2, max_size=30
    )
)
"""Cases, each with the errors of all voters."""


def moments_of(errors: np.ndarray) -> np.ndarray:
    """The sums of each pair of voters, from errors of shape (n_cases, n_voters)."""
    return np.array(
        [
            [len(errors), a.sum(), b.sum(), (a * a).sum(), (b * b).sum(), (a * b).sum()]
            for a, b in itertools.combinations(errors.T, 2)
        ]
    )


def votes_of(errors: np.ndarray) -> float:
    return float(agreement.effective_votes(moments_of(errors), n_voters=errors.shape[1]))


def votes_by_hand(errors: list[list[float]]) -> float | None:
    voters = list(zip(*errors, strict=True))
    varying = [
        pair
        for pair in itertools.combinations(voters, 2)
        if all(len(set(each)) > 1 for each in pair)
    ]
    if not varying:
        return None
    rho = min(1.0, max(0.0, statistics.fmean(itertools.starmap(statistics.correlation, varying))))
    return len(voters) / (1 + (len(voters) - 1) * rho)


@given(ERRORS)
def test_votes_are_kishs_with_the_mean_correlation_of_all_pairs_that_have_one(
    errors: list[list[float]],
) -> None:
    expected = votes_by_hand(errors)
    result = votes_of(np.array(errors))

    assert math.isnan(result) if expected is None else pytest.approx(expected) == result
    assert expected is None or 1.0 <= result <= len(errors[0]) + 1e-9
