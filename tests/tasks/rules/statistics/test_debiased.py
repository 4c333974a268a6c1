"""Debiased means: a judge's values corrected by labels, in cases computed by hand and in
simulations.
"""

from dataclasses import replace

import numpy as np
import pytest

from tasks.rules.statistics.debiased import (
    Corrected,
    KnownTasks,
    Labels,
    corrected,
    estimate,
    estimated_difference,
    outweighed,
)

N = 200
ALL_TASKS = np.arange(N)


def one_verdict_a_task(
    people: np.ndarray, judge: np.ndarray, interval: int
) -> tuple[KnownTasks, Labels]:
    """Tasks with one verdict; one verdict of each `interval` has a label."""
    zeros = np.zeros(len(people))
    ones = np.ones(len(people))
    indices = np.arange(0, len(people), interval)
    labels = Labels(
        task=indices,
        contribution=ones[indices],
        label=people[indices],
        judge=judge[indices],
        factor=interval * ones[indices],
    )
    return KnownTasks(
        offset=zeros, positive=ones, negative=zeros, judged=judge
    ), labels


def random_verdicts(seed: int, share: float = 0.6) -> np.ndarray:
    return (np.random.default_rng(seed).random(N) < share).astype(float)


def test_with_a_label_for_every_verdict_the_judge_does_not_matter():
    people = random_verdicts(1)
    tasks, labels = one_verdict_a_task(people, random_verdicts(9, 0.3), interval=1)

    result = estimate(corrected(tasks, labels))

    assert result.mean == pytest.approx(people.mean())
    assert result.error == pytest.approx(people.std(ddof=1) / N**0.5, rel=0.02)


def test_a_judge_that_is_always_right_is_left_as_it_is_and_used_fully():
    people = random_verdicts(2)
    tasks, labels = one_verdict_a_task(people, people, interval=4)

    result = corrected(tasks, labels)

    labels_alone = corrected(tasks, labels, uses_judge=False)
    assert result.power == pytest.approx(1.0)
    assert estimate(result).mean == pytest.approx(people.mean())
    assert estimate(result).error < estimate(labels_alone).error


def test_a_judge_that_says_the_opposite_is_not_used():
    people = random_verdicts(3)
    tasks, labels = one_verdict_a_task(people, 1.0 - people, interval=4)

    result = corrected(tasks, labels)

    labels_alone = corrected(tasks, labels, uses_judge=False)
    assert result.power == 0.0
    assert estimate(result) == estimate(labels_alone)


@pytest.fixture(scope="module")
def two_models() -> tuple[Corrected, Corrected]:
    """Two models with shares of 0.4 and 0.7 and the same poor judge, a third of it labelled."""
    judge = random_verdicts(6, 0.5)
    model_a = corrected(
        *one_verdict_a_task(random_verdicts(7, 0.4), judge, interval=3)
    )
    model_b = corrected(
        *one_verdict_a_task(random_verdicts(8, 0.7), judge, interval=3)
    )
    return model_a, model_b


def test_a_difference_is_that_of_the_means_where_both_have_all_tasks(two_models):
    model_a, model_b = two_models

    result = estimated_difference(model_a, model_b, (ALL_TASKS, ALL_TASKS))

    assert result.mean == pytest.approx(
        estimate(model_b).mean - estimate(model_a).mean
    )
    assert result.low < 0.3 < result.high


def test_a_difference_is_over_the_common_tasks_alone(two_models):
    model_a, model_b = two_models
    half = ALL_TASKS[::2]

    result = estimated_difference(model_a, model_b, (half, half))

    differences = model_b.values[::2] - model_a.values[::2]
    assert result.mean == pytest.approx(np.mean(differences))


@pytest.mark.parametrize("uses_judge", [True, False])
def test_two_models_that_meet_everything_differ_by_nothing_with_an_interval_all_the_same(
    uses_judge,
):
    """No task differs from another, so no part has any variance."""
    all_met = np.ones(N)
    tasks, labels = one_verdict_a_task(all_met, all_met, interval=4)
    model = corrected(tasks, labels, uses_judge=uses_judge)

    result = estimated_difference(model, model, (ALL_TASKS, ALL_TASKS))

    assert result.mean == 0.0
    assert result.low < 0.0 < result.high


def test_without_any_variance_a_difference_has_no_error():
    all_met = np.ones(N)
    labelled = corrected(*one_verdict_a_task(all_met, all_met, interval=1))
    model = replace(labelled, values=all_met, spread=all_met, extra_variance=0.0)

    assert estimated_difference(model, model, (ALL_TASKS, ALL_TASKS)).error == 0.0


def test_labels_of_equal_weight_are_enough():
    tasks, labels = one_verdict_a_task(np.ones(N), np.ones(N), interval=4)

    assert outweighed(corrected(tasks, labels).effective_labels) is None


def test_few_labels_that_outweigh_all_others_are_too_few():
    tasks, labels = one_verdict_a_task(np.ones(N), np.ones(N), interval=4)
    contribution = np.where(np.arange(len(labels.task)) < 3, 50.0, 0.1)

    result = corrected(tasks, replace(labels, contribution=contribution))

    reason = "a few labels outweigh the others, which are worth 3 equal ones"
    assert outweighed(result.effective_labels) == reason


def test_an_interval_reaches_further_to_the_side_that_few_tasks_show():
    """Nine in ten tasks are right; a sample that misses the few others gives too high a mean."""
    shares = np.random.default_rng(7).beta(9.0, 0.3, 40)

    result = estimate(corrected(*one_verdict_a_task(shares, shares, interval=1)))

    assert result.mean - result.low > 1.2 * (result.high - result.mean)
    assert result.high - result.mean > 2.0 * result.error


def labelled_alone(
    people: np.ndarray, contribution: np.ndarray, factor: float
) -> Corrected:
    """Correct tasks with one label each, without a judge."""
    n_tasks = len(people)
    zeros = np.zeros(n_tasks)
    tasks = KnownTasks(
        offset=zeros,
        positive=np.maximum(contribution, 0.0),
        negative=np.minimum(contribution, 0.0),
        judged=zeros,
    )
    labels = Labels(
        task=np.arange(n_tasks),
        contribution=contribution,
        label=people,
        judge=zeros,
        factor=np.full(n_tasks, factor),
    )
    return corrected(tasks, labels, uses_judge=False)


def test_a_residual_counts_more_for_standard_errors_the_more_its_label_has_pulled_the_fit():
    """One label weighs as much as nine others in the fit; HC2 divides by the root of one minus the
    leverage.
    """
    contribution = np.array([3.0] + 19 * [1.0])
    people = np.array(10 * [1.0, 0.0])

    result = labelled_alone(people, contribution, factor=1.0)

    constant = (9.0 + 9.0) / 28.0
    leverage = np.array([9.0] + 19 * [1.0]) / 28.0
    residual = people - constant
    assert result.values == pytest.approx(contribution * people)
    assert result.spread == pytest.approx(
        contribution * (constant + residual / np.sqrt(1.0 - leverage))
    )


@pytest.mark.parametrize(("n_negative", "prediction"), [(9, 10 / 19), (10, 1.0)])
def test_ten_labels_of_a_sign_have_a_constant_of_their_own(n_negative, prediction):
    """All desired criteria are met, and no undesired one."""
    people = np.array([1.0] * 10 + [0.0] * n_negative)
    contribution = np.array([1.0] * 10 + [-1.0] * n_negative)

    result = labelled_alone(people, contribution, factor=2.0)

    # A task's value is its prediction + 2 * (label - prediction).
    assert result.values[0] == pytest.approx(prediction + 2.0 * (1.0 - prediction))


@pytest.mark.parametrize(
    ("n_errors", "expected"),
    [
        # A label weighs 4 * 3 = 12. One error in 101 labels counts as one; 5/3 more are assumed.
        (1, 12 * (101**2 * (1 + 5 / 3) / (101 + 10 / 3) ** 2 - 1)),
        (10, 0.0),
    ],
)
def test_errors_are_assumed_only_beside_few_that_labels_show(n_errors, expected):
    people = np.ones(101)
    people[:n_errors] = 0.0

    result = labelled_alone(people, np.ones(101), factor=4.0)

    assert result.extra_variance == pytest.approx(expected, abs=1e-9)
