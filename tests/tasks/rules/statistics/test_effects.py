"""The effects of another judge on several models that it judged on the same criteria."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tasks.rules.statistics import debiased
from tasks.rules.statistics.effects import Effects, SampledModel, effects_on

N_TASKS = 4


def corrected(
    values, sampling_errors, extra_variance: float = 0.0
) -> debiased.Corrected:
    return debiased.Corrected(
        values=np.array(values),
        spread=np.array(values),
        sampling_errors=np.array(sampling_errors),
        extra_variance=extra_variance,
        effective_labels=100.0,
        degrees=30.0,
        power=1.0,
    )


def model(values, sampling_errors, criterion, **changes) -> SampledModel:
    columns = {
        "corrected": corrected(values, sampling_errors),
        "first_mean": 0.5,
        "criterion": np.array(criterion),
        "is_complete": False,
        "undecided": 0.0,
        **changes,
    }
    return SampledModel(**columns)


def effects_with(covariance, means=(0.0, 0.0, 0.0), degrees: float = 20.0) -> Effects:
    return Effects(
        means=np.array(means),
        covariance=np.array(covariance),
        undecided=np.zeros(len(means)),
        degrees=degrees,
    )


def test_an_effect_is_the_corrected_mean_minus_the_first_judges_mean():
    effects = effects_on(
        [model([0.2, 0.4, 0.6, 0.8], [0.0], [0], first_mean=0.7)], n_criteria=1
    )

    assert effects.means == pytest.approx([-0.2])


def test_the_variance_of_an_effect_is_the_sum_of_squared_sampling_errors():
    effects = effects_on([model([0.5] * N_TASKS, [0.3, -0.4], [0, 1])], n_criteria=2)

    assert effects.covariance == pytest.approx(np.array([[0.25 / N_TASKS**2]]))


def test_errors_of_two_models_cancel_on_the_criteria_that_both_were_judged_on():
    model_a = model([0.5] * N_TASKS, [0.3, 0.4], [0, 1])
    model_b = model([0.5] * N_TASKS, [0.3, 0.4, 0.2], [0, 1, 2])

    effects = effects_on([model_a, model_b], n_criteria=3)

    assert effects.pair_errors[0, 1] == pytest.approx(0.2 / N_TASKS)


def test_rare_errors_widen_a_sample_but_not_a_full_judging():
    rare = corrected([0.5] * N_TASKS, [0.0], extra_variance=0.04)
    sample = model([], [], [0], corrected=rare)
    full = model([], [], [0], corrected=rare, is_complete=True)

    assert effects_on([sample], n_criteria=1).half_widths(0.95) == pytest.approx(
        stats.t.ppf(0.975, 30) * 0.2 / N_TASKS
    )
    assert effects_on([full], n_criteria=1).half_widths(0.95) == 0.0


def test_undecided_verdicts_widen_an_effect_and_differences():
    models = [
        model([0.5] * N_TASKS, [0.0], [0], undecided=0.01),
        model([0.5] * N_TASKS, [0.0], [0], undecided=0.02),
    ]

    effects = effects_on(models, n_criteria=1)

    assert effects.half_widths(0.95) == pytest.approx([0.01, 0.02])
    assert effects.pair_half_widths(0.95)[0, 1] == pytest.approx(0.03)
    assert effects.pair_half_widths(0.95)[0, 0] == 0.0


def test_one_difference_reaches_as_far_as_students_t():
    effects = effects_with([[1.0, 0.5], [0.5, 1.0]], means=(0.0, 0.0))

    quantile = effects.pair_half_widths(0.95)[0, 1] / effects.pair_errors[0, 1]

    assert quantile == pytest.approx(stats.t.ppf(0.975, 20), rel=0.02)


def test_all_differences_reach_as_far_as_tukeys_range_if_models_are_alike():
    effects = effects_with(np.eye(3), degrees=20.0)

    quantile = effects.pair_half_widths(0.95)[0, 1] / effects.pair_errors[0, 1]

    studentised_range = stats.studentized_range.ppf(0.95, 3, 20)
    assert quantile == pytest.approx(studentised_range / np.sqrt(2), rel=0.02)


def test_equal_effects_do_not_differ_between_models():
    assert effects_with(np.eye(3)).interaction_p_value == pytest.approx(1.0)


def test_effects_far_apart_differ_between_models():
    assert effects_with(np.eye(3), means=(0.0, 0.0, 9.0)).interaction_p_value < 0.001


def test_a_difference_that_undecided_verdicts_could_make_is_no_interaction():
    effects = replace(
        effects_with(np.eye(3), means=(0.0, 0.0, 9.0)), undecided=np.full(3, 4.5)
    )

    assert effects.interaction_p_value == pytest.approx(1.0)


def test_one_model_has_no_interaction():
    assert effects_with([[1.0]], means=(0.3,)).interaction_p_value is None
