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


def one_verdict_a_task(
    people: np.ndarray, judge: np.ndarray, every: int
) -> tuple[KnownTasks, Labels]:
    """Tasks with one verdict; one verdict in `every` has a label."""
    indices = np.arange(0, len(people), every)
    nothing = np.zeros(len(people))
    ones = np.ones(len(people))
    labels = Labels(indices, ones[indices], people[indices], judge[indices], every * ones[indices])
    return KnownTasks(nothing, ones, nothing, judge), labels


def test_with_a_label_for_every_verdict_the_judge_does_not_matter() -> None:
    dice = np.random.default_rng(1)
    people = dice.random(N) < 0.6
    judge = dice.random(N) < 0.3
    known, labels = one_verdict_a_task(people.astype(float), judge.astype(float), every=1)
    result = estimate(corrected(known, labels))

    assert pytest.approx(people.mean()) == result.mean
    assert pytest.approx(people.std(ddof=1) / N**0.5, rel=0.02) == result.error


def test_a_judge_that_is_always_right_is_left_as_it_is_and_used_fully() -> None:
    people = (np.random.default_rng(2).random(N) < 0.6).astype(float)
    known, labels = one_verdict_a_task(people, people, every=4)
    result = corrected(known, labels)

    assert result.power == pytest.approx(1.0)
    assert pytest.approx(people.mean()) == estimate(result).mean
    assert estimate(result).error < estimate(corrected(known, labels, uses_judge=False)).error


def test_a_judge_that_says_the_opposite_is_not_used() -> None:
    people = (np.random.default_rng(3).random(N) < 0.6).astype(float)
    known, labels = one_verdict_a_task(people, 1.0 - people, every=4)
    debiased = corrected(known, labels)
    alone = corrected(known, labels, uses_judge=False)

    assert debiased.power == 0.0
    assert estimate(alone) == estimate(debiased)


def test_a_difference_is_that_of_the_means_where_both_have_all_tasks() -> None:
    dice = np.random.default_rng(6)
    values = [[(dice.random(N) < p).astype(float) for p in (share, 0.5)] for share in (0.4, 0.7)]
    resampled = [corrected(*one_verdict_a_task(*each, every=3)) for each in values]
    everywhere = np.arange(N)
    result = estimated_difference(resampled[0], resampled[1], (everywhere, everywhere))

    assert pytest.approx(estimate(resampled[1]).mean - estimate(resampled[0]).mean) == result.mean
    assert result.low < 0.3 < result.high
    some = np.arange(0, N, 2)
    of_some = estimated_difference(resampled[0], resampled[1], (some, some))
    assert pytest.approx((resampled[1].values - resampled[0].values)[some].mean()) == of_some.mean


def test_two_models_that_meet_everything_differ_by_nothing_with_an_interval_all_the_same() -> None:
    """All verdicts and labels are met: no task differs from another, so no part has any
    variance.
    """
    all_met = np.ones(N)
    known, labels = one_verdict_a_task(all_met, all_met, every=4)
    everywhere = np.arange(N)
    for uses_judge in (True, False):
        some = corrected(known, labels, uses_judge=uses_judge)
        result = estimated_difference(some, some, (everywhere, everywhere))
        assert result.mean == 0.0
        assert result.low < 0.0 < result.high
    # With a label for every verdict nothing is unknown.
    whole = corrected(*one_verdict_a_task(all_met, all_met, every=1))
    nothing = replace(
        whole,
        values=all_met,
        spread=all_met,
        extra_variance=0.0,
    )
    assert estimated_difference(nothing, nothing, (everywhere, everywhere)).error == 0.0


def test_few_labels_that_outweigh_all_others_are_too_few() -> None:
    known, labels = one_verdict_a_task(np.ones(N), np.ones(N), every=4)
    heavy = np.where(np.arange(len(labels.task)) < 3, 50.0, 0.1)

    assert outweighed(corrected(known, labels).effective_labels) is None
    weighed = Labels(
        labels.task, labels.contribution * heavy, labels.label, labels.judge, labels.factor
    )
    assert "3 equal ones" in (outweighed(corrected(known, weighed).effective_labels) or "")


def test_an_interval_reaches_further_to_the_side_that_few_tasks_show() -> None:
    """Nine in ten tasks are right; a sample that misses the few others gives too high a mean."""
    share = np.random.default_rng(7).beta(9.0, 0.3, 40)
    everything = np.arange(40)
    known = KnownTasks(np.zeros(40), np.ones(40), np.zeros(40), share)
    result = estimate(corrected(known, Labels(everything, np.ones(40), share, share, np.ones(40))))

    assert result.mean - result.low > 1.2 * (result.high - result.mean)
    assert result.high - result.mean > 2.0 * result.error


def test_a_residual_counts_more_for_standard_errors_the_more_its_label_has_pulled_the_fit() -> None:
    """One label weighs as much as nine others in the fit; HC2 divides by the root of one minus the
    leverage.
    """
    contribution = np.array([3.0] + 19 * [1.0])
    people = np.array(10 * [1.0, 0.0])
    nothing = np.zeros(20)
    known = KnownTasks(
        offset=nothing,
        positive=contribution,
        negative=nothing,
        judged=nothing,
    )
    labels = Labels(
        task=np.arange(20),
        contribution=contribution,
        label=people,
        judge=nothing,
        factor=np.ones(20),
    )

    result = corrected(known, labels, uses_judge=False)

    constant = (9.0 + 9.0) / 28.0
    leverage = np.array([9.0] + 19 * [1.0]) / 28.0
    residual = people - constant
    assert result.values == pytest.approx(contribution * people)
    assert result.spread == pytest.approx(
        contribution * (constant + residual / np.sqrt(1.0 - leverage))
    )


def labelled_alone(people: np.ndarray, contribution: np.ndarray, factor: float) -> Corrected:
    """Correct tasks with one label each, without a judge."""
    n_tasks = len(people)
    nothing = np.zeros(n_tasks)
    known = KnownTasks(
        offset=nothing,
        positive=np.maximum(contribution, 0.0),
        negative=np.minimum(contribution, 0.0),
        judged=nothing,
    )
    labels = Labels(
        task=np.arange(n_tasks),
        contribution=contribution,
        label=people,
        judge=nothing,
        factor=np.full(n_tasks, factor),
    )
    return corrected(known, labels, uses_judge=False)


@pytest.mark.parametrize(
    ("n_negative", "prediction"),
    [(9, 10 / 19), (10, 1.0)],
)
def test_ten_labels_of_a_sign_have_a_constant_of_their_own(
    n_negative: int, prediction: float
) -> None:
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
def test_errors_are_assumed_only_beside_few_that_labels_show(
    n_errors: int, expected: float
) -> None:
    people = np.ones(101)
    people[:n_errors] = 0.0

    result = labelled_alone(people, np.ones(101), factor=4.0)

    assert result.extra_variance == pytest.approx(expected, abs=1e-9)
