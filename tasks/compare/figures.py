"""Figures that are rows of one table: which columns, of which rows, in which order.

What a command shows of several tables is a query below `sql/questions/compare/`.
"""

from typing import NamedTuple

import sql

_OF_DATA_SET = "benchmark = $benchmark and dataset_revision = $revision"
_OF_SPLITS = f"""{_OF_DATA_SET} and is_own_hard = $is_hard
    and ($is_hard or $splits = [] or list_contains($splits::varchar[], split))"""
_OF_JUDGES = "counts_as_judge($judges, benchmark, dataset_revision, judge, judge_config_hash)"
_OF_VINTAGE = "if($vintage::varchar is null, is_latest, $vintage::varchar in ('all', vintage))"
_OF_MODEL = "($models = [] or list_contains($models::varchar[], model))"
_AS_ASKED = "grading <> 'ternary_as_binary'"
"""As the judge was asked: the binary reading of three steps holds the same verdicts."""
_CONFIGURATION = "grading, judge_config_hash, template_hash, model_config_hash, vintage"


class Figure(NamedTuple):
    """Columns of one relation, of the rows that meet a condition, in an order."""

    relation: str
    columns: str
    condition: str
    order: str


FIGURES = {
    # The leaderboard on chosen splits, whole (breakdown `all`) or under each label of a breakdown. What no comparison
    # needs is not wanted; the run itself compares what is with the bar.
    "leaderboard": Figure("staging.leaderboard_rows", f"""
        split, label,
        if($vintage::varchar is null, latest_rank, rank) as rank,
        if($vintage::varchar is null, latest_rank_low, rank_low) as rank_low,
        if($vintage::varchar is null, latest_rank_high, rank_high) as rank_high,
        model, mean_score, ci_low, ci_high, is_small, raw_mean_score, raw_ci_low, raw_ci_high, trials_mean,
        trials_ci_low, trials_ci_high, mean_lower, mean_upper, n_tasks, n_tasks_full, n_tasks_wanted,
        n_tasks_annotated, is_complete, coverage, coverage < $bar and n_tasks_skipped is null as is_below_bar,
        n_tasks_skipped, unbiased_mean_score, is_judged, may_hide_failures, n_trials,
        if($vintage::varchar is null, n_tasks_latest_ranked, n_tasks_ranked) as n_tasks_ranked,
        met_share, met_ci_low, met_ci_high, mean_chars_alnum, mean_completion_tokens, cost_usd,
        judge, judge_trial, {_CONFIGURATION}, score_name
        """,
        f"{_OF_SPLITS} and score_name = $score and breakdown = $breakdown and {_OF_MODEL} and {_OF_JUDGES} "
        f"and {_OF_VINTAGE}",
        "split, breakdown, try_cast(label as integer), label, judge, judge_trial, grading, judge_config_hash, "
        "template_hash, if($vintage::varchar is null, null, vintage), rank nulls last, model, vintage",
    ),
    # Critical criteria met and critical mistakes made, the fewest mistakes first.
    "severity": Figure("severity_leaderboard", f"""
        split, model, critical_met_share, critical_met_ci_low, critical_met_ci_high, is_critical_small, n_critical,
        n_tasks_critical, critical_coverage, mistake_share, mistake_ci_low, mistake_ci_high, is_mistake_small,
        n_mistakes_possible, n_tasks_mistakes, mistake_coverage, critical_coverage < $bar as is_critical_below_bar,
        mistake_coverage < $bar as is_mistake_below_bar,
        least(critical_coverage, mistake_coverage) < $bar as is_below_bar, responses_with_mistake_share,
        n_responses_at_risk, n_trials, judge, judge_trial, {_CONFIGURATION}
        """,
        f"{_OF_SPLITS} and {_OF_MODEL} and {_OF_JUDGES} and {_OF_VINTAGE}",
        "split, judge, judge_trial, grading, if($vintage::varchar is null, null, vintage), mistake_share, model, "
        "vintage",
    ),
    # How each condition scores against its baseline, over the whole rubric and by category; nothing is said of a split
    # that neither side was asked.
    "conditions": Figure("condition_differences", "*",
        f"{_OF_SPLITS} and {_AS_ASKED} and {_OF_JUDGES} and {_OF_VINTAGE} and n_answers + baseline_n_answers > 0 "
        f"and ({_OF_MODEL} or list_contains($models::varchar[], shared_model)) "
        "and score_name = if(breakdown = 'all', $score, $label_score)",
        "split, judge, judge_trial, grading, judge_config_hash, template_hash, vintage, breakdown, shared_model, "
        "position, label",
    ),
    # Rank correlation of length and score: of each model over its tasks, and over the models.
    "lengths": Figure("length_correlations",
        "split, coalesce(model, '(over the models)') as model, measure, rank_correlation, ci_low, ci_high, is_small, "
        "n, judge, judge_trial, vintage, score_name",
        f"{_OF_SPLITS} and score_name = $score and (model is null or {_OF_MODEL}) and {_OF_JUDGES} and {_AS_ASKED} "
        "and ($vintage::varchar is null or vintage = $vintage)",
        "split, judge, judge_trial, vintage, level, measure, model",
    ),
    # A model's score beside what labels make of it, under one label or over the whole rubric.
    "debiased/scores": Figure("debiased_scores", """
        split, label, model, judge, judge_config_hash, template_hash, grading, judge_trial, vintage,
        model_config_hash, score_name, judge_score, judge_ci_low, judge_ci_high, labels_alone, labels_alone_ci_low,
        labels_alone_ci_high, debiased, debiased_ci_low, debiased_ci_high, judge_power, n_labels, n_tasks_labelled,
        n_tasks, n_people, effective_labels, n_unsampled_labels, unsampled_mean_error, no_figure
        """,
        f"{_OF_SPLITS} and score_name = $score and breakdown = $breakdown and {_OF_MODEL} and {_OF_VINTAGE} "
        "and ($graders = [] or list_contains($graders::varchar[], judge))",
        "split, label, judge, judge_config_hash, template_hash, grading, judge_trial, "
        "coalesce(debiased, judge_score) desc, model, vintage",
    ),
    # How far pairs of graders agree, over all or under each label of a breakdown.
    "judges": Figure("staging.agreement_figures", """
        grader_a, grader_b, label, kappa, kappa_ci_low, kappa_ci_high, macro_f1, macro_f1_ci_low, macro_f1_ci_high,
        macro_f1_task_mean, macro_f1_task_mean_absent_as_0, agreement, agreement_ci_low, agreement_ci_high, n, n_tasks,
        met_share_a, met_share_b, kind_a, kind_b, is_member
        """,
        f"{_OF_DATA_SET} and breakdown = $breakdown and ($graders = [] "
        "or list_has_any($graders::varchar[], [grader_a, grader_b]))",
        "label, kappa desc nulls last, grader_a, grader_b",
    ),
    # How far all graders agree, each judge with itself, and the members of each majority.
    "reliability": Figure("grader_reliability",
        "grader_set, label, n_graders, alpha, alpha_ci_low, alpha_ci_high, unanimous_share, n_voters, effective_votes, "
        "effective_votes_ci_low, effective_votes_ci_high, effective_votes_is_small, effective_votes_note, n, n_tasks",
        f"{_OF_DATA_SET} and breakdown = $breakdown", "label, grader_set",
    ),
    # Who says "met" more often than the others on the same criteria.
    "leniency": Figure("judge_leniency", "grader, kind, leniency, met_share, others_met_share, n",
        _OF_DATA_SET, "leniency desc, grader",
    ),
    # How many criteria people agree with, over all and by label.
    "reviews/agreement": Figure("review_agreement",
        "breakdown, if(breakdown = 'all', 'all criteria', label) as label, agreeing_share, ci_low, ci_high, is_small, "
        "unweighted_share, n_criteria, n_reviews, n_tasks, n_population, population_id", _OF_DATA_SET,
        "population_id, array_position(['all', 'category', 'severity'], breakdown), agreeing_share, label",
    ),
    # How far reviewers of the same criteria agree, check by check.
    "reviews/reviewers": Figure("reviewer_agreement", "*", _OF_DATA_SET,
        "review_check <> 'agree', review_check, reviewer_b is not null, reviewer_a, reviewer_b",
    ),
    # How many criteria pass each check of each reviewer.
    "reviews/checks": Figure("staging.current_reviews",
        "if(source = 'imported', 'person', 'model') as kind, reviewer, review_check, "
        "count(distinct (task_id, criterion_id)) as n_criteria, count(distinct task_id) as n_tasks, "
        "count(distinct review_trial) as n_trials, avg(value) as pass_share",
        f"{_OF_DATA_SET} group by all", "kind desc, reviewer, pass_share, review_check",
    ),
    # Reviews that failed, by reviewer and cause.
    "reviews/failures": Figure("criterion_reviews", "reviewer, status, count(*) as n",
        f"{_OF_DATA_SET} and review_check is null group by all", "reviewer, status",
    ),
    # How well checks predict disagreement.
    "reviews/predictions": Figure("review_predictions", "* replace (round(n_failing)::bigint as n_failing)",
        _OF_DATA_SET, "outcome, reviewer, auc desc nulls last, review_check",
    ),
    # How many nodes a model was found weak in and how many of these are confirmed, by what it is compared with.
    "capabilities/compared": Figure("weakness_candidates semi join capability_analyses using (analysis_id)",
        "compared_model, count(*) as n_candidates, count(*) filter (is_confirmed) as n_confirmed",
        f"{_OF_DATA_SET} and model = $model and ($judges = [] or list_contains($judges::varchar[], judge)) "
        f"and {_AS_ASKED} group by compared_model", "compared_model",
    ),
    # Models with scores in capabilities.
    "capabilities/models": Figure("capability_scores", "distinct model", _OF_DATA_SET, "model"),
}  # fmt: skip


def query_of(name: str) -> str:
    """The query for a figure, or the one of that name below `sql/questions/compare/`."""
    if name not in FIGURES:
        return sql.read(f"questions/compare/{name}")
    figure = FIGURES[name]
    return f"select {figure.columns} from {figure.relation} where {figure.condition} order by {figure.order}"
