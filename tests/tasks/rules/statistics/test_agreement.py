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
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.metrics import cohen_kappa_score, f1_score, roc_auc_score

from tasks.rules.statistics import agreement
from tasks.rules.statistics.intervals import draws
from tests.tasks.rules.agreement_oracle import alpha_by_pairs

MEASURES = [agreement.kappa, agreement.macro_f1, agreement.raw_agreement]
LABEL = st.integers(0, 3)
PAIRS = st.lists(st.tuples(LABEL, LABEL), min_size=1, max_size=60)
"""Labels of two graders."""
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


def coincidences_of(units: Units, n_values: int) -> np.ndarray:
    matrix = np.zeros((n_values, n_values))
    for unit in units:
        for value_a, value_b in itertools.permutations(unit, 2):
            matrix[value_a, value_b] += 1 / (len(unit) - 1)
    return matrix


def task_tables(n_tasks: int, n_figures: int = 1) -> np.ndarray:
    """The tables of a grader who is right in 80 % of 15 cases of each task."""
    dice = np.random.default_rng(4)
    truth = dice.integers(0, 2, size=(n_tasks, n_figures, 15))
    decided = np.where(dice.random(truth.shape) < 0.8, truth, 1 - truth)
    counts = []
    for label_a, label_b in itertools.product((0, 1), repeat=2):
        counts.append(((truth == label_a) & (decided == label_b)).sum(axis=2))
    return np.stack(counts, axis=2).reshape(n_tasks, n_figures, 2, 2)


@given(PAIRS)
def test_agreement_is_that_of_scikit_learn(pairs):
    labels_a, labels_b = np.array(pairs).T
    table = np.zeros((4, 4))
    np.add.at(table, (labels_a, labels_b), 1)

    f1 = f1_score(labels_a, labels_b, average="macro")
    equal_share = np.mean(labels_a == labels_b)
    assert agreement.raw_agreement(table) == pytest.approx(equal_share)
    assert agreement.macro_f1(table) == pytest.approx(f1)
    assert agreement.macro_f1(table.T) == pytest.approx(f1)


@given(PAIRS)
def test_kappa_is_that_of_scikit_learn(pairs):
    labels_a, labels_b = np.array(pairs).T
    assume(len({*labels_a, *labels_b}) > 1)
    table = np.zeros((4, 4))
    np.add.at(table, (labels_a, labels_b), 1)

    expected = cohen_kappa_score(labels_a, labels_b)

    assert agreement.kappa(table) == pytest.approx(expected, nan_ok=True)


def test_two_graders_with_the_same_single_label_have_no_kappa():
    assert np.isnan(agreement.kappa(np.diag([7, 0])))


@pytest.mark.parametrize("measure", [*MEASURES, agreement.krippendorff_alpha])
def test_nothing_to_agree_on_has_no_agreement(measure):
    assert np.isnan(measure(np.zeros((2, 2))))
    assert measure(np.zeros((0, 2, 2))).shape == (0,)


@given(TABLES)
def test_leading_axes_are_figures_of_their_own(tables):
    for measure in (*MEASURES, agreement.krippendorff_alpha):
        figures = [measure(table) for table in tables]
        assert measure(tables) == pytest.approx(np.array(figures), nan_ok=True)
        square = measure(tables.reshape(2, 2, 3, 3))
        assert square.ravel() == pytest.approx(np.array(figures), nan_ok=True)


def test_alpha_is_that_of_the_textbook():
    alpha = agreement.krippendorff_alpha(coincidences_of(TEXTBOOK, 6))

    assert alpha == pytest.approx(0.743, abs=5e-4)


@given(
    st.lists(
        st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1, max_size=12
    )
)
def test_alpha_is_one_minus_observed_by_expected_disagreement(units):
    alpha = agreement.krippendorff_alpha(coincidences_of(units, 3))

    assert alpha == pytest.approx(alpha_by_pairs(units), nan_ok=True)


@pytest.mark.parametrize(("n_tasks", "student"), [(8, 2.3646), (30, 2.0452)])
def test_an_interval_of_agreement_is_what_drawing_whole_tasks_gives(n_tasks, student):
    # `student` is the 97.5 % quantile of Student's t with `n_tasks - 1` degrees of freedom.
    tables = task_tables(n_tasks)
    dice = random.Random(2)
    resampled = []
    for _ in range(8_000):
        sampled_tables = dice.choices(list(tables[:, 0]), k=n_tasks)
        resampled.append(agreement.kappa(sum(sampled_tables)))
    tail = NormalDist().cdf(-((n_tasks / (n_tasks - 1)) ** 0.5) * student)
    low, high = np.quantile(resampled, [tail, 1 - tail])

    ((interval,),) = agreement.agreement_intervals(tables, agreement.kappa)

    assert interval == pytest.approx([low, high], abs=0.06 * (high - low))


def test_agreement_has_the_same_interval_alone_and_among_many():
    tables = task_tables(20, 230)
    sampled = draws(20, FEW)
    figures = [5, 105, 205]

    [many] = agreement.agreement_intervals(tables, agreement.kappa, sampled=sampled)
    [few] = agreement.agreement_intervals(
        tables[:, figures], agreement.kappa, sampled=sampled
    )

    assert many[figures] == pytest.approx(few, abs=1e-9)


def test_a_resample_without_agreement_is_left_out():
    tables = np.zeros((6, 1, 2, 2))
    tables[:3, 0] = [[3, 1], [1, 3]]

    ((interval,),) = agreement.agreement_intervals(
        tables, agreement.kappa, sampled=draws(6, FEW)
    )

    assert interval == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("n_tasks", [0, 6])
def test_a_single_task_with_counts_has_no_interval(n_tasks):
    tables = np.zeros((n_tasks, 1, 2, 2))
    tables[:1, 0] = [[3, 1], [1, 3]]

    ((interval,),) = agreement.agreement_intervals(tables, agreement.kappa)

    assert np.isnan(interval).all()


COUNT = st.integers(1, 30)


@given(COUNT, COUNT, COUNT, COUNT)
def test_the_rates_of_a_check_are_those_of_plain_counts(a, b, c, d):
    table = np.array([[a, b], [c, d]])

    assert agreement.failing_rate(table) == pytest.approx(a / (a + b))
    assert agreement.passing_rate(table) == pytest.approx(c / (c + d))
    assert agreement.rate_difference(table) == pytest.approx(
        a / (a + b) - c / (c + d)
    )
    assert agreement.odds_ratio(table) == pytest.approx((a / b) / (c / d))


@given(COUNT, COUNT, COUNT, COUNT)
def test_the_auc_of_a_check_is_that_of_scikit_learn(a, b, c, d):
    has_outcome = [True] * a + [False] * b + [True] * c + [False] * d
    is_failing = [True] * (a + b) + [False] * (c + d)

    auc = agreement.check_auc(np.array([[a, b], [c, d]]))

    assert auc == pytest.approx(roc_auc_score(has_outcome, is_failing))


def test_what_is_divided_by_nothing_is_not_defined():
    assert math.isnan(agreement.failing_rate(np.array([[0, 0], [1, 2]])))
    assert math.isnan(agreement.odds_ratio(np.array([[2, 0], [1, 2]])))
    assert math.isnan(agreement.check_auc(np.array([[0, 3], [0, 2]])))


ERRORS = st.integers(2, 5).flatmap(
    lambda k: st.lists(
        st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=k, max_size=k),
        min_size=2,
        max_size=30,
    )
)
"""Cases, each with the errors of all voters."""


def effective_votes(errors: list[list[float]]) -> float:
    moments = []
    for a, b in itertools.combinations(np.array(errors).T, 2):
        moments.append([len(a), a.sum(), b.sum(), a @ a, b @ b, a @ b])
    return float(
        agreement.effective_votes(np.array(moments), n_voters=len(errors[0]))
    )


def votes_by_hand(errors: list[list[float]]) -> float:
    """Kish's number of votes; NaN if no pair of voters has a correlation."""
    voters = list(zip(*errors, strict=True))
    varying = [voter for voter in voters if len(set(voter)) > 1]
    if len(varying) < 2:
        return math.nan
    pairs = itertools.combinations(varying, 2)
    rho = statistics.fmean(itertools.starmap(statistics.correlation, pairs))
    return len(voters) / (1 + (len(voters) - 1) * min(1.0, max(0.0, rho)))


@given(ERRORS)
def test_votes_are_kishs_with_the_mean_correlation_of_all_pairs_that_have_one(errors):
    assert effective_votes(errors) == pytest.approx(
        votes_by_hand(errors), nan_ok=True
    )
