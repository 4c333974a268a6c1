"""Intervals over tasks, against a plain loop that resamples task by task."""

import math
import random
from collections import Counter
from statistics import NormalDist, fmean, stdev

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tasks.rules.statistics import intervals

SHAPE = st.tuples(st.integers(2, 12), st.integers(1, 3))
SCORES = arrays.arrays(np.float64, SHAPE, elements=st.floats(-1, 1, allow_subnormal=False))
GRADED = arrays.arrays(np.float64, SHAPE, elements=st.integers(-8, 20))
SINGLE = 1e-6
"""Resamples are computed in single precision, so ends agree to a millionth of the spread."""
FEW = 400
"""Few resamples, for properties that hold for any number."""


def random_scores(n_tasks: int, n_figures: int, missing: float = 0.0) -> np.ndarray:
    dice = np.random.default_rng(7)
    values = dice.normal(0.4, 0.2, size=(n_tasks, n_figures))
    values[dice.random(values.shape) < missing] = np.nan
    return values


def by_hand(
    numerators: list[float], denominators: list[float], resamples: int
) -> tuple[float, float]:
    """The studentised bootstrap of a ratio of sums, one drawn task after another."""
    pairs = list(zip(numerators, denominators, strict=True))

    def ratio_and_error(some: list[tuple[float, float]]) -> tuple[float, float]:
        under = sum(d for _, d in some)
        ratio = sum(n for n, _ in some) / under
        return ratio, math.sqrt(sum((n - ratio * d) ** 2 for n, d in some)) / under

    dice = random.Random(1)
    ratio, error = ratio_and_error(pairs)
    resampled = [ratio_and_error(dice.choices(pairs, k=len(pairs))) for _ in range(resamples)]
    steps = sorted((each - ratio) / spread for each, spread in resampled)
    return (
        ratio - steps[int(0.975 * resamples)] * error,
        ratio - steps[int(0.025 * resamples)] * error,
    )


@pytest.mark.parametrize("n_tasks", [2, 40])
def test_every_resample_draws_as_many_tasks_as_there_are(n_tasks: int) -> None:
    sampled = intervals.draws(n_tasks, resamples=2_500)

    assert (2_500, n_tasks) == sampled.shape
    assert np.float32 == sampled.dtype
    assert (sampled.sum(axis=1) == n_tasks).all()
    assert sampled.mean(axis=0) == pytest.approx(1.0, abs=0.1)
    assert not (sampled[:1_000] == sampled[1_000:2_000]).all(axis=1).all()
    assert (sampled != intervals.draws(n_tasks, resamples=2_500, seed=2)).any()


@settings(max_examples=50)
@given(SCORES)
def test_an_interval_lies_within_the_scores_and_around_their_mean(scores: np.ndarray) -> None:
    scores = scores[:, intervals.n_differing(scores) >= intervals.FEWEST_OTHERS]
    low, high = intervals.mean_intervals(scores, sampled=intervals.draws(len(scores), FEW)).T
    in_order = np.stack([scores.min(axis=0), low, scores.mean(axis=0), high, scores.max(axis=0)])

    assert (np.diff(in_order, axis=0) >= -1e-12).all()


@settings(max_examples=50)
@given(SCORES)
def test_where_too_few_tasks_differ_from_the_commonest_value_there_is_no_interval(
    scores: np.ndarray,
) -> None:
    others = [
        len(column) - max(Counter(column.tolist()).values()) for column in np.round(scores, 9).T
    ]
    has_interval = ~np.isnan(
        intervals.mean_intervals(np.round(scores, 9), sampled=intervals.draws(len(scores), FEW))
    )

    assert [[n >= intervals.FEWEST_OTHERS] * 2 for n in others] == has_interval.tolist()


def test_values_that_are_equal_but_for_rounding_are_one_value() -> None:
    values = np.array([0.3, 0.1 + 0.2, 0.6 - 0.3, 0.5, np.nan])

    assert intervals.n_differing(values[:, None]).tolist() == [1]
    assert intervals.n_differing(np.array([[np.nan, 1.0]])).tolist() == [0, 0]
    assert intervals.n_differing(np.empty((0, 1))).tolist() == [0]


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_a_figure_has_the_same_interval_alone_and_among_many(missing: float) -> None:
    scores = random_scores(50, 230, missing)
    sampled = intervals.draws(50, 1_000)
    among = intervals.mean_intervals(scores, sampled=sampled)
    alone = [
        intervals.mean_intervals(scores[:, i : i + 1], sampled=sampled)[0] for i in (0, 101, 229)
    ]

    assert pytest.approx(among[[0, 101, 229]], abs=SINGLE) == np.array(alone)


def test_tasks_that_do_not_count_are_as_good_as_absent() -> None:
    scores = random_scores(60, 3)
    sampled = intervals.draws(60)
    scores[40:, 1] = np.nan
    among = intervals.mean_intervals(scores, sampled=sampled)[1]
    # A figure leaves out resamples without any of its tasks.
    own = np.concatenate([sampled[:, :40], np.zeros((300, 40), dtype=np.float32)])

    assert (
        pytest.approx(among, abs=SINGLE)
        == intervals.mean_intervals(scores[:40, [1]], sampled=own)[0]
    )
    assert (
        pytest.approx(among, abs=0.05 * (among[1] - among[0]))
        == intervals.mean_intervals(scores[:40, [1]])[0]
    )


@pytest.mark.parametrize("n_tasks", [0, 1])
def test_fewer_than_two_tasks_have_no_interval(n_tasks: int) -> None:
    few = np.full((n_tasks, 2), 0.5)
    for scores in (few, np.concatenate([few, np.full((5, 2), np.nan)])):
        assert np.isnan(
            intervals.mean_intervals(scores, sampled=intervals.draws(len(scores), FEW))
        ).all()


@pytest.mark.parametrize("n_tasks", [8, 60])
def test_an_interval_is_the_wider_of_what_drawing_whole_tasks_gives_and_students_t(
    n_tasks: int,
) -> None:
    scores = random_scores(n_tasks, 1)
    low, high = by_hand(scores[:, 0].tolist(), [1.0] * n_tasks, 6_000)
    half = (
        float(intervals.student_quantile(0.975, np.asarray(n_tasks - 2.0)))
        * scores.std(ddof=1)
        / math.sqrt(n_tasks)
    )
    low = min(low, scores.mean() - half)
    high = max(high, scores.mean() + half)
    low = max(low, scores.min())
    high = min(high, scores.max())

    assert (
        pytest.approx((low, high), abs=0.06 * (high - low)) == intervals.mean_intervals(scores)[0]
    )


def test_students_t_has_the_degrees_of_freedom_of_the_tasks_that_differ() -> None:
    scores = np.zeros((100, 1))
    scores[:8, 0] = [1, -1, 1, -1, 1, -1, 1, -1]
    half = 2.364624 * scores.std(ddof=1) / 10  # 7 degrees

    assert pytest.approx((-half, half), abs=SINGLE) == intervals.mean_intervals(scores)[0]


@pytest.mark.parametrize("outlier", [1.0, 100.0])
@pytest.mark.parametrize("spread", [1e-6, 1e-3])
def test_one_task_far_from_nearly_equal_ones_does_not_blow_an_interval_up(
    outlier: float, spread: float
) -> None:
    # Many resamples miss this task and have hardly any spread.
    scores = np.random.default_rng(3).normal(0.0, spread, size=(100, 1))
    scores[0] = outlier
    ((low, high),) = intervals.mean_intervals(scores)

    error = scores.std(ddof=1) / 10
    assert scores.mean() + error < high < scores.mean() + 2 * intervals.WIDEST * error
    assert scores.mean() - 2 * intervals.WIDEST * error < low <= scores.mean()


def test_a_pooled_share_has_the_interval_that_drawing_whole_tasks_gives() -> None:
    dice = np.random.default_rng(2)
    cases = dice.integers(0, 12, size=(50, 1)).astype(float)
    met = dice.binomial(cases.astype(int), 0.3).astype(float)
    low, high = by_hand(met[:, 0].tolist(), cases[:, 0].tolist(), 6_000)

    assert (
        pytest.approx((low, high), abs=0.06 * (high - low))
        == intervals.ratio_intervals(met, cases)[0]
    )


@settings(max_examples=40)
@given(GRADED)
def test_a_pooled_share_of_one_case_a_task_is_a_mean(values: np.ndarray) -> None:
    sampled = intervals.draws(len(values), FEW)
    shares = intervals.ratio_intervals(3 * values, np.full(values.shape, 3.0), sampled=sampled)

    means = intervals.mean_intervals(values, sampled=sampled)
    assert pytest.approx(means, abs=SINGLE * max(1.0, np.ptp(values)), nan_ok=True) == shares


@given(arrays.arrays(np.float64, (2, 30), elements=st.floats(-5, 5)), st.floats(0.001, 0.4))
def test_quantiles_are_those_of_numpy_without_the_missing(rows: np.ndarray, tail: float) -> None:
    rows[1, ::3] = np.nan
    rows = rows[:, ::-1].copy()
    expected = [np.quantile(row[~np.isnan(row)], [tail, 1 - tail]) for row in rows]

    assert pytest.approx(np.array(expected), abs=1e-12) == intervals.quantile_pairs(
        rows, np.full(2, tail)
    )
    assert np.isnan(intervals.quantile_pairs(np.full((1, 5), np.nan), np.array([tail]))).all()


def test_expanded_tails_are_wider_for_few_tasks_and_nominal_for_many() -> None:
    # Student's t is 12.706, 2.776 and 2.262 with 1, 4 and 9 degrees of freedom, and 1.960 with
    # many.
    normal = NormalDist()
    expected = [
        normal.cdf(-math.sqrt(n / (n - 1)) * t)
        for n, t in ((2, 12.7062), (5, 2.77645), (10, 2.26216))
    ]

    actual = intervals.expanded_tails(np.array([2.0, 5.0, 10.0, 1e9]), 0.95)
    assert pytest.approx([*expected, 0.025], abs=1e-6) == actual


def test_three_repetitions_have_the_interval_of_the_tables() -> None:
    # Student's t with two degrees of freedom: 4.303 for 95 %.
    scores = [0.50, 0.52, 0.51]
    half = 4.302653 * stdev(scores) / math.sqrt(3)

    assert pytest.approx(
        (fmean(scores), 0.51 - half, 0.51 + half), abs=1e-6
    ) == intervals.repeated_interval(scores)
    assert intervals.repeated_interval(scores[:1]) is None


def test_a_figure_rests_on_few_when_tasks_are_few_or_hardly_any_differs() -> None:
    rare = np.zeros((200, 4))
    rare[:9, 0], rare[:10, 1] = 1.0, 1.0  # nine and ten tasks that differ
    rare[:, 2] = np.arange(200)
    rare[49:, 2] = np.nan  # 49 tasks
    rare[:, 3] = 0.5  # no spread at all

    assert intervals.rest_on_few(rare).tolist() == [True, False, True, True]


def test_two_repetitions_have_an_interval() -> None:
    # Student's t with one degree of freedom: 12.706 for 95 %. The standard error is 0.1.
    result = intervals.repeated_interval([0.4, 0.6])

    assert result == pytest.approx((0.5, 0.5 - 1.27062, 0.5 + 1.27062), abs=1e-5)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_unit_of_the_values_does_not_decide_which_are_equal(scale: float) -> None:
    values = scale * np.array([0.3, 0.1 + 0.2, 0.6 - 0.3, 0.5, 0.5])

    assert intervals.n_differing(values[:, None]).tolist() == [2]


def test_a_pooled_share_has_the_same_interval_if_every_case_counts_twice() -> None:
    dice = np.random.default_rng(2)
    cases = dice.integers(1, 12, size=(50, 1)).astype(float)
    met = dice.binomial(cases.astype(int), 0.3).astype(float)

    once = intervals.ratio_intervals(met, cases)
    twice = intervals.ratio_intervals(2.0 * met, 2.0 * cases)

    assert twice == pytest.approx(once, abs=SINGLE)


def studentised(ratio: float, steps: np.ndarray, n_tasks: int) -> intervals.Studentised:
    """Return the parts of a figure with the standard error 1, all of whose tasks differ."""
    return intervals.Studentised(
        ratio=np.array([ratio]),
        error=np.ones(1),
        n_counted=np.array([float(n_tasks)]),
        n_differing=np.array([float(n_tasks)]),
        steps=steps[None].astype(np.float32),
    )


def test_an_end_is_at_most_twice_as_far_away_as_by_students_t() -> None:
    # Student's t with 4 degrees of freedom: 2.776 for 95 %.
    result = studentised(0.0, np.array([-100.0, 0.0, 100.0]), n_tasks=5)

    assert np.ravel(result.ends(0.95)) == pytest.approx([-2 * 2.77645, 2 * 2.77645], abs=1e-4)


@pytest.mark.parametrize(
    ("ratio", "steps", "expected"),
    [
        # 62 of 64 gaps between resamples are below the figure.
        (3.0, np.linspace(-3.2, 3.2, 65), 2 * (1 - 62 / 64)),
        # Twice the probability that Student's t with 10 degrees is above 3 / 2.
        (3.0, np.linspace(-9.0, 9.0, 65), 0.164507),
        # No resample, or one, is below the figure: 0.1 / 2.
        (0.1, np.array([1.0, 1.001, 1.002]), 0.961106),
        (0.1, np.array([-1.0, 1.0, 2.0, 3.0]), 0.961106),
    ],
)
def test_the_p_value_is_that_of_the_interval_that_just_reaches_zero(
    ratio: float, steps: np.ndarray, expected: float
) -> None:
    result = studentised(ratio, steps, n_tasks=11)

    assert result.p_values() == pytest.approx([expected], abs=1e-4)
