"""Intervals over tasks, against a plain loop that resamples task by task."""

import math
import random
from collections import Counter
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from tasks.rules.statistics import intervals

SHAPE = st.tuples(st.integers(2, 12), st.integers(1, 3))
SCORES = arrays.arrays(
    np.float64, SHAPE, elements=st.floats(-1, 1, allow_subnormal=False)
)
GRADED = arrays.arrays(np.float64, SHAPE, elements=st.integers(-8, 20))
SINGLE = 1e-6
"""Resamples are computed in single precision, so ends agree to a millionth of the spread."""
FEW = 400
"""Few resamples, for properties that hold for any number."""


def random_scores(
    n_tasks: int, n_figures: int, missing_share: float = 0.0
) -> np.ndarray:
    dice = np.random.default_rng(7)
    values = dice.normal(0.4, 0.2, size=(n_tasks, n_figures))
    values[dice.random(values.shape) < missing_share] = np.nan
    return values


def by_hand(
    numerators: list[float], denominators: list[float], resamples: int
) -> tuple[float, float]:
    """The studentised bootstrap of a ratio of sums, one drawn task after another."""
    tasks = list(zip(numerators, denominators, strict=True))
    ratio, error = ratio_and_error(tasks)
    dice = random.Random(1)
    steps = []
    for _ in range(resamples):
        resampled_ratio, resampled_error = ratio_and_error(
            dice.choices(tasks, k=len(tasks))
        )
        steps.append((resampled_ratio - ratio) / resampled_error)
    low_step, high_step = np.quantile(steps, [0.025, 0.975])
    return ratio - high_step * error, ratio - low_step * error


def ratio_and_error(tasks: list[tuple[float, float]]) -> tuple[float, float]:
    """The ratio of sums of numerators and denominators, and its standard error."""
    total = sum(denominator for _, denominator in tasks)
    ratio = sum(numerator for numerator, _ in tasks) / total
    squares = sum(
        (numerator - ratio * denominator) ** 2 for numerator, denominator in tasks
    )
    return ratio, math.sqrt(squares) / total


@pytest.mark.parametrize("n_tasks", [2, 40])
def test_every_resample_draws_as_many_tasks_as_there_are(n_tasks):
    sampled = intervals.draws(n_tasks, resamples=2_500)

    assert sampled.shape == (2_500, n_tasks)
    assert sampled.dtype == np.float32
    assert (sampled.sum(axis=1) == n_tasks).all()
    assert sampled.mean(axis=0) == pytest.approx(1.0, abs=0.1)


def test_resamples_differ_and_depend_on_the_seed():
    sampled = intervals.draws(40, resamples=2)

    assert (sampled[0] != sampled[1]).any()
    assert (sampled != intervals.draws(40, resamples=2, seed=2)).any()


@settings(max_examples=50)
@given(SCORES)
def test_an_interval_lies_within_the_scores_and_around_their_mean(scores):
    scores = scores[:, intervals.n_differing(scores) >= intervals.FEWEST_DIFFERING]

    low, high = intervals.mean_intervals(
        scores, sampled=intervals.draws(len(scores), FEW)
    ).T

    ascending = np.stack(
        [scores.min(axis=0), low, scores.mean(axis=0), high, scores.max(axis=0)]
    )
    assert (np.diff(ascending, axis=0) >= -1e-12).all()


@settings(max_examples=50)
@given(SCORES)
def test_where_too_few_tasks_differ_from_the_commonest_value_there_is_no_interval(
    scores,
):
    scores = np.round(scores, 9)

    ends = intervals.mean_intervals(scores, sampled=intervals.draws(len(scores), FEW))

    for column, (low, high) in zip(scores.T, ends, strict=True):
        n_differing = len(column) - max(Counter(column.tolist()).values())
        assert np.isnan(low) == (n_differing < 5)
        assert np.isnan(high) == (n_differing < 5)


def test_values_that_are_equal_but_for_rounding_are_one_value():
    values = np.array([0.3, 0.1 + 0.2, 0.6 - 0.3, 0.5, np.nan])

    assert intervals.n_differing(values[:, None]).tolist() == [1]
    assert intervals.n_differing(np.array([[np.nan, 1.0]])).tolist() == [0, 0]
    assert intervals.n_differing(np.empty((0, 1))).tolist() == [0]


@pytest.mark.parametrize("missing_share", [0.0, 0.4])
def test_a_figure_has_the_same_interval_alone_and_among_many(missing_share):
    scores = random_scores(50, 230, missing_share)
    sampled = intervals.draws(50, 1_000)

    ends = intervals.mean_intervals(scores, sampled=sampled)

    for figure in (0, 101, 229):
        [expected] = intervals.mean_intervals(scores[:, [figure]], sampled=sampled)
        assert ends[figure] == pytest.approx(expected, abs=SINGLE)


def test_tasks_that_do_not_count_are_as_good_as_absent():
    scores = random_scores(60, 3)
    sampled = intervals.draws(60)
    scores[40:, 1] = np.nan

    low, high = intervals.mean_intervals(scores, sampled=sampled)[1]

    # A figure leaves out resamples without any of its tasks.
    no_draws = np.zeros((300, 40), dtype=np.float32)
    sampled_of_figure = np.concatenate([sampled[:, :40], no_draws])
    [expected] = intervals.mean_intervals(scores[:40, [1]], sampled=sampled_of_figure)
    [fresh] = intervals.mean_intervals(scores[:40, [1]])
    assert [low, high] == pytest.approx(expected, abs=SINGLE)
    assert [low, high] == pytest.approx(fresh, abs=0.05 * (high - low))


@pytest.mark.parametrize("n_tasks", [0, 1])
@pytest.mark.parametrize("n_missing", [0, 5])
def test_fewer_than_two_tasks_have_no_interval(n_tasks, n_missing):
    scores = np.repeat([[0.5, 0.5], [np.nan, np.nan]], [n_tasks, n_missing], axis=0)

    ends = intervals.mean_intervals(scores, sampled=intervals.draws(len(scores), FEW))

    assert np.isnan(ends).all()


@pytest.mark.parametrize("n_tasks", [8, 60])
def test_an_interval_is_the_wider_of_what_drawing_whole_tasks_gives_and_students_t(
    n_tasks,
):
    scores = random_scores(n_tasks, 1)
    error = scores.std(ddof=1) / math.sqrt(n_tasks)
    student_low, student_high = stats.t.interval(
        0.95, n_tasks - 2, scores.mean(), error
    )
    bootstrap_low, bootstrap_high = by_hand(
        scores[:, 0].tolist(), [1.0] * n_tasks, 6_000
    )
    low = max(min(bootstrap_low, student_low), scores.min())
    high = min(max(bootstrap_high, student_high), scores.max())

    [interval] = intervals.mean_intervals(scores)

    assert interval == pytest.approx([low, high], abs=0.06 * (high - low))


def test_students_t_has_the_degrees_of_freedom_of_the_tasks_that_differ():
    scores = np.zeros((100, 1))
    scores[:8, 0] = [1, -1, 1, -1, 1, -1, 1, -1]
    half = 2.364624 * scores.std(ddof=1) / 10  # 7 degrees

    [interval] = intervals.mean_intervals(scores)

    assert interval == pytest.approx([-half, half], abs=SINGLE)


@pytest.mark.parametrize("outlier", [1.0, 100.0])
@pytest.mark.parametrize("spread", [1e-6, 1e-3])
def test_one_task_far_from_nearly_equal_ones_does_not_blow_an_interval_up(
    outlier, spread
):
    # Many resamples miss this task and have hardly any spread.
    scores = np.random.default_rng(3).normal(0.0, spread, size=(100, 1))
    scores[0] = outlier
    error = scores.std(ddof=1) / 10

    ((low, high),) = intervals.mean_intervals(scores)

    assert scores.mean() + error < high < scores.mean() + 2 * intervals.WIDEST * error
    assert scores.mean() - 2 * intervals.WIDEST * error < low <= scores.mean()


def random_cases(fewest: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of met and of all cases of 50 tasks."""
    dice = np.random.default_rng(2)
    cases = dice.integers(fewest, 12, size=(50, 1))
    return dice.binomial(cases, 0.3).astype(float), cases.astype(float)


def test_a_pooled_share_has_the_interval_that_drawing_whole_tasks_gives():
    met, cases = random_cases(fewest=0)
    low, high = by_hand(met[:, 0].tolist(), cases[:, 0].tolist(), 6_000)

    [interval] = intervals.ratio_intervals(met, cases)

    assert interval == pytest.approx([low, high], abs=0.06 * (high - low))


@settings(max_examples=40)
@given(GRADED)
def test_a_pooled_share_of_one_case_a_task_is_a_mean(values):
    sampled = intervals.draws(len(values), FEW)
    tolerance = SINGLE * max(1.0, np.ptp(values))

    ends = intervals.ratio_intervals(
        3 * values, np.full(values.shape, 3.0), sampled=sampled
    )

    expected = intervals.mean_intervals(values, sampled=sampled)
    assert ends == pytest.approx(expected, abs=tolerance, nan_ok=True)


@given(
    arrays.arrays(np.float64, (2, 30), elements=st.floats(-5, 5)),
    st.floats(0.001, 0.4),
)
def test_quantiles_are_those_of_numpy_without_the_missing(rows, tail):
    rows[1, ::3] = np.nan
    rows.sort(axis=1)
    expected = np.nanquantile(rows, [tail, 1 - tail], axis=1).T

    quantiles = intervals.quantile_pairs(rows, np.full(2, tail))

    assert quantiles == pytest.approx(expected, abs=1e-12)


def test_a_row_without_any_value_has_no_quantiles():
    quantiles = intervals.quantile_pairs(np.full((1, 5), np.nan), np.array([0.1]))

    assert np.isnan(quantiles).all()


@pytest.mark.parametrize(
    ("n_tasks", "student"),
    [(2.0, 12.7062), (5.0, 2.77645), (10.0, 2.26216), (1e9, 1.95996)],
)
def test_expanded_tails_are_wider_for_few_tasks_and_nominal_for_many(
    n_tasks, student
):
    # `student` is the 97.5 % quantile of Student's t with `n_tasks - 1` degrees of freedom.
    expected = NormalDist().cdf(-math.sqrt(n_tasks / (n_tasks - 1)) * student)

    assert intervals.expanded_tails(n_tasks) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("scores", "mean", "half"),
    [
        # Student's t with one degree of freedom: 12.706 for 95 %. The standard error is 0.1.
        ([0.4, 0.6], 0.5, 1.27062),
        # Two degrees: 4.303. The standard error is 0.01 / sqrt(3).
        ([0.50, 0.52, 0.51], 0.51, 0.024841),
    ],
)
def test_repetitions_have_the_interval_of_the_tables(scores, mean, half):
    result = intervals.repeated_interval(scores)

    assert result == pytest.approx((mean, mean - half, mean + half), abs=1e-5)


def test_one_repetition_has_no_interval():
    assert intervals.repeated_interval([0.5]) is None


def test_a_figure_has_few_tasks_when_tasks_are_few_or_hardly_any_differs():
    rare = np.zeros((200, 4))
    rare[:9, 0] = 1.0  # nine tasks that differ
    rare[:10, 1] = 1.0  # ten tasks that differ
    rare[:, 2] = np.arange(200)
    rare[49:, 2] = np.nan  # 49 tasks
    rare[:, 3] = 0.5  # no spread at all

    assert intervals.have_few_tasks(rare).tolist() == [True, False, True, True]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_unit_of_the_values_does_not_decide_which_are_equal(scale):
    values = scale * np.array([0.3, 0.1 + 0.2, 0.6 - 0.3, 0.5, 0.5])

    assert intervals.n_differing(values[:, None]).tolist() == [2]


def test_a_pooled_share_has_the_same_interval_if_every_case_counts_twice():
    met, cases = random_cases(fewest=1)

    ends = intervals.ratio_intervals(2.0 * met, 2.0 * cases)

    assert ends == pytest.approx(intervals.ratio_intervals(met, cases), abs=SINGLE)


def studentised(
    ratio: float, steps: np.ndarray, n_tasks: int
) -> intervals.Studentised:
    """Return the parts of a figure with the standard error 1, all of whose tasks differ."""
    return intervals.Studentised(
        ratio=np.array([ratio]),
        error=np.ones(1),
        n_counted=np.array([float(n_tasks)]),
        n_differing=np.array([float(n_tasks)]),
        steps=steps[None].astype(np.float32),
    )


def test_an_end_is_at_most_twice_as_far_away_as_by_students_t():
    # Student's t with 4 degrees of freedom: 2.776 for 95 %.
    result = studentised(0.0, np.array([-100.0, 0.0, 100.0]), n_tasks=5)

    lows, highs = result.ends(0.95)
    assert lows == pytest.approx([-2 * 2.77645], abs=1e-4)
    assert highs == pytest.approx([2 * 2.77645], abs=1e-4)


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
    ratio, steps, expected
):
    result = studentised(ratio, steps, n_tasks=11)

    assert result.p_values() == pytest.approx([expected], abs=1e-4)
