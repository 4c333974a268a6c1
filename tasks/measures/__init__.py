"""Measures: values that are computed outside SQL and stored with an interval, in one table."""

from tasks.measures import agreement, scores
from tasks.measures.measure import Measure, Steps, renew
from tasks.rules.identity import JUDGE_CONFIG
from tasks.rules.statistics import debiased
from tasks.rules.statistics.agreement import VOTES_METHOD
from tasks.rules.statistics.calibration import METHOD as CALIBRATION_METHOD

_GRADERS = ("benchmark", "dataset_revision")
_JUDGED = f"benchmark, dataset_revision, {', '.join(JUDGE_CONFIG)}"
_CHECK = "benchmark, dataset_revision, review_check"
_TASK = "dense_rank() over (order by task_id) as task"
"""A task's index, which is much faster to read than its id."""
_COINCIDENCES = "unmet_unmet, unmet_partial, unmet_met, partial_partial, partial_met, met_met"
_DEBIASED = (
    f"{_TASK}, response_id, criterion_id, without_labels, n_labels, n_tasks_labelled,"
    " n_tasks_uncovered, n_tasks, known_offset, positive, negative, judged, contribution,"
    " label_value, judge_value, factor"
)

SCORE = Measure(
    "score",
    "intermediate.mean_scores",
    "intermediate.figure_values",
    "task, n_tasks_of_set, value, n_met, n_judged",
    scores.score_intervals,
    group_by=("task_set_id", "breakdown", "label"),
)
TRIALS = Measure(
    "trials",
    "intermediate.mean_scores",
    "intermediate.trial_means",
    "trial, mean_score",
    scores.trial_means,
)
CONDITION = Measure(
    "difference",
    "intermediate.condition_figures",
    "intermediate.condition_task_values",
    "task_id, baseline_value, value",
    scores.condition_test,
)
LABELS = Measure(
    "f1",
    "intermediate.annotation_figures",
    "intermediate.annotation_values",
    f"{_TASK}, is_annotated, is_compared",
    agreement.labels_agreement,
    agreement.METHOD,
    key="comparison_id, label",
    group_by=("comparison_id",),
)
MEASURES = (
    SCORE,
    TRIALS,
    Measure(
        "agreeing_share",
        "intermediate.review_figures",
        "intermediate.review_values",
        f"{_TASK}, weight_agreed, sample_weights",
        agreement.review_share,
        key="benchmark, dataset_revision, population_id, breakdown, label",
    ),
    Measure(
        "agreement",
        "intermediate.agreement_pairs",
        "intermediate.agreement_counts",
        f"{_TASK}, value_a, value_b, agreement_counts.n",
        agreement.pair_agreement,
        agreement.METHOD,
        key="benchmark, dataset_revision, grader_a, grader_b, breakdown, label",
        group_by=(*_GRADERS, "grader_a", "grader_b"),
    ),
    Measure(
        "agreement",
        "intermediate.reviewer_figures",
        "intermediate.reviewer_counts",
        f"{_TASK}, value_a, value_b, reviewer_counts.n",
        agreement.pair_agreement,
        agreement.METHOD,
        key=f"{_CHECK}, reviewer_a, reviewer_b",
        condition="reviewer_b is not null",
    ),
    Measure(
        "alpha",
        "grader_reliability",
        "intermediate.reliability_counts",
        f"{_TASK}, {_COINCIDENCES}",
        agreement.set_reliability,
        agreement.METHOD,
        key="benchmark, dataset_revision, grader_set, breakdown, label",
        group_by=(*_GRADERS, "grader_set"),
    ),
    Measure(
        "alpha",
        "intermediate.reviewer_figures",
        "intermediate.reviewer_sets",
        f"{_TASK}, fail_fail as unmet_unmet, fail_pass as unmet_met, pass_pass as met_met",
        agreement.set_reliability,
        agreement.METHOD,
        key=_CHECK,
        condition="reviewer_b is null",
    ),
    Measure(
        "effective_votes",
        "intermediate.voting_figures",
        "intermediate.voting_errors",
        f"{_TASK}, grader_a, grader_b, is_labelled, n, sum_a, sum_b, sum_aa, sum_bb, sum_ab",
        agreement.votes_of_set,
        VOTES_METHOD,
        key="benchmark, dataset_revision, grader_set",
    ),
    Measure(
        "brier",
        "intermediate.calibration_figures",
        "intermediate.calibration_bins",
        f"{_TASK}, bin, {', '.join(f'calibration_bins.{name}' for name in agreement.SUMS)}",
        agreement.calibration_of,
        CALIBRATION_METHOD,
        key="benchmark, dataset_revision, judge, reference, breakdown, label",
        group_by=(*_GRADERS, "judge", "reference"),
    ),
    Measure(
        "change",
        "intermediate.neighbour_figures",
        "intermediate.neighbour_changes",
        f"{_TASK}, neighbour_changes.n, sum_change",
        agreement.change_of,
        key=f"{_JUDGED}, arrangement, compared_with, measure_of, breakdown, label",
    ),
    CONDITION,
    Measure(
        "lead",
        "intermediate.lead_figures",
        "intermediate.lead_values",
        "task_id, leader_value, value",
        scores.lead_test,
    ),
    LABELS,
    Measure(
        "failing_rate",
        "intermediate.prediction_figures",
        "intermediate.check_outcomes",
        f"{_TASK}, fail_disagree, fail_agree, pass_disagree, pass_agree",
        agreement.check_prediction,
        agreement.METHOD,
        key="benchmark, dataset_revision, source, reviewer, review_check, outcome",
    ),
    Measure(
        "debiased",
        "intermediate.debiased_figures",
        "intermediate.debiased_values",
        _DEBIASED,
        scores.debiased_score,
        debiased.METHOD,
        condition="n_labels > 0",
    ),
    Measure(
        "debiased",
        "intermediate.debiased_pairs",
        "intermediate.debiased_values",
        _DEBIASED,
        scores.debiased_differences,
        debiased.METHOD,
        group_by=("task_set_id", "breakdown", "label", "score_name"),
        id_columns=("figure_a", "figure_b"),
    ),
)
"""All measures, in the order of computation."""

__all__ = ["CONDITION", "LABELS", "MEASURES", "SCORE", "Measure", "Steps", "renew"]
