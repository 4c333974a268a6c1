"""Measures: values that are computed outside SQL and stored with an interval, in one table."""

from tasks.measures import agreement, scores, uncertainty
from tasks.measures.measure import Measure, Steps, renew
from tasks.rules.identity import JUDGE_CONFIG
from tasks.rules.statistics import debiased
from tasks.rules.statistics.agreement import VOTES_METHOD
from tasks.rules.statistics.calibration import METHOD as CALIBRATION_METHOD
from tasks.rules.statistics.uncertainty import METHOD as UNCERTAINTY_METHOD

# Columns that several measures share: for `group_by`, for `key`, and for `columns`.
_DATASET = ("benchmark", "dataset_revision")
_CHECK = "benchmark, dataset_revision, review_check"
_TASK = "dense_rank() over (order by task_id) as task"
"""A task's index, which is much faster to read than its id."""
_DEBIASED = (
    f"{_TASK}, response_id, criterion_id, without_labels, n_labels, n_tasks_labelled,"
    " n_tasks_uncovered, n_tasks, known_offset, positive, negative, judged, contribution,"
    " label_value, judge_value, factor"
)

SCORE = Measure(
    "score",
    scores.score_intervals,
    figures="intermediate.mean_scores",
    values="intermediate.figure_values",
    columns="task, n_tasks_of_set, value, n_met, n_judged",
    group_by=("task_set_id", "breakdown", "label"),
)
TRIALS = Measure(
    "trials",
    scores.trial_means,
    figures="intermediate.mean_scores",
    values="intermediate.trial_means",
    columns="trial, mean_score",
)
CONDITION = Measure(
    "difference",
    scores.condition_test,
    figures="intermediate.condition_figures",
    values="intermediate.condition_task_values",
    columns="task_id, baseline_value, value",
)
LABELS = Measure(
    "f1",
    agreement.labels_agreement,
    figures="intermediate.annotation_figures",
    values="intermediate.annotation_values",
    columns=f"{_TASK}, is_annotated, is_compared",
    method=agreement.METHOD,
    key="comparison_id, label",
    group_by=("comparison_id",),
)
MEASURES = (
    SCORE,
    TRIALS,
    Measure(
        "agreeing_share",
        agreement.review_share,
        figures="intermediate.review_figures",
        values="intermediate.review_values",
        columns=f"{_TASK}, weight_agreed, sample_weights",
        key="benchmark, dataset_revision, population_id, breakdown, label",
    ),
    Measure(
        "agreement",
        agreement.pair_agreement,
        figures="intermediate.agreement_pairs",
        values="intermediate.agreement_counts",
        columns=f"{_TASK}, value_a, value_b, agreement_counts.n",
        method=agreement.METHOD,
        key="benchmark, dataset_revision, grader_a, grader_b, breakdown, label",
        group_by=(*_DATASET, "grader_a", "grader_b"),
    ),
    Measure(
        "agreement",
        agreement.pair_agreement,
        figures="intermediate.reviewer_figures",
        values="intermediate.reviewer_counts",
        columns=f"{_TASK}, value_a, value_b, reviewer_counts.n",
        method=agreement.METHOD,
        key=f"{_CHECK}, reviewer_a, reviewer_b",
        condition="reviewer_b is not null",
    ),
    Measure(
        "alpha",
        agreement.set_reliability,
        figures="grader_reliability",
        values="intermediate.reliability_counts",
        columns=(
            f"{_TASK}, unmet_unmet, unmet_partial, unmet_met, partial_partial, partial_met, met_met"
        ),
        method=agreement.METHOD,
        key="benchmark, dataset_revision, grader_set, breakdown, label",
        group_by=(*_DATASET, "grader_set"),
    ),
    Measure(
        "alpha",
        agreement.set_reliability,
        figures="intermediate.reviewer_figures",
        values="intermediate.reviewer_coincidences",
        columns=f"{_TASK}, fail_fail as unmet_unmet, fail_pass as unmet_met, pass_pass as met_met",
        method=agreement.METHOD,
        key=_CHECK,
        condition="reviewer_b is null",
    ),
    Measure(
        "effective_votes",
        agreement.votes_of_set,
        figures="intermediate.voting_figures",
        values="intermediate.voting_errors",
        columns=(
            f"{_TASK}, grader_a, grader_b, is_labelled, n, sum_a, sum_b, sum_aa, sum_bb, sum_ab"
        ),
        method=VOTES_METHOD,
        key="benchmark, dataset_revision, grader_set",
    ),
    Measure(
        "brier",
        agreement.calibration_of,
        figures="intermediate.calibration_figures",
        values="intermediate.calibration_bins",
        columns=f"{_TASK}, bin, {', '.join(f'calibration_bins.{name}' for name in agreement.SUMS)}",
        method=CALIBRATION_METHOD,
        key="benchmark, dataset_revision, judge, reference, breakdown, label",
        group_by=(*_DATASET, "judge", "reference"),
    ),
    Measure(
        "change",
        agreement.change_of,
        figures="intermediate.neighbour_figures",
        values="intermediate.neighbour_changes",
        columns=f"{_TASK}, neighbour_changes.n, sum_change",
        key=(
            f"benchmark, dataset_revision, {', '.join(JUDGE_CONFIG)}, arrangement, compared_with,"
            " measure_of, breakdown, label"
        ),
    ),
    CONDITION,
    Measure(
        "lead",
        scores.lead_test,
        figures="intermediate.lead_figures",
        values="intermediate.lead_values",
        columns="task_id, leader_value, value",
    ),
    LABELS,
    Measure(
        "failing_rate",
        agreement.check_prediction,
        figures="intermediate.prediction_figures",
        values="intermediate.check_outcomes",
        columns=f"{_TASK}, fail_disagree, fail_agree, pass_disagree, pass_agree",
        method=agreement.METHOD,
        key="benchmark, dataset_revision, source, reviewer, review_check, outcome",
    ),
    Measure(
        "debiased",
        scores.debiased_score,
        figures="intermediate.debiased_figures",
        values="intermediate.debiased_values",
        columns=_DEBIASED,
        method=debiased.METHOD,
        condition="n_labels > 0",
    ),
    Measure(
        "debiased",
        scores.debiased_differences,
        figures="intermediate.debiased_pairs",
        values="intermediate.debiased_values",
        columns=_DEBIASED,
        method=debiased.METHOD,
        group_by=("task_set_id", "breakdown", "label", "score_name"),
        id_columns=("figure_a", "figure_b"),
    ),
    Measure(
        "tasks:variance",
        uncertainty.score_sources,
        figures="intermediate.uncertainty_figures",
        values="intermediate.judge_trial_scores",
        columns="task, trial, value",
        method=UNCERTAINTY_METHOD,
        key="sampling_key, judge_key",
        condition="judge_key is not null",
    ),
    Measure(
        "judges:variance",
        uncertainty.judge_choice,
        figures="intermediate.uncertainty_figures",
        values="intermediate.judge_trial_scores",
        columns="task, trial, judge_trial_scores.judge_key, value",
        method=UNCERTAINTY_METHOD,
        key="sampling_key",
        condition="judge_key is null",
    ),
)
"""All measures, in the order of computation; those of one name have different relations."""

__all__ = ["CONDITION", "LABELS", "MEASURES", "SCORE", "Measure", "Steps", "renew"]
