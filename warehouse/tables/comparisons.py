"""The tables of configured comparisons, and of runs that stop when comparisons are settled."""

from warehouse.tables.table import BY_JUDGE, BY_MODEL, CRITERION, DATA_SET, StoredTable

_IS_CURRENT = "is_second_minus_first or compared_vintage = 'earlier nights'"
_SECOND_MINUS_FIRST = {
    "is_second_minus_first": "true",
    "mean_difference": f"if({_IS_CURRENT}, mean_difference, 0 - mean_difference)",
    "unbiased_difference": f"if({_IS_CURRENT}, unbiased_difference, 0 - unbiased_difference)",
    "sequence_low": f"if({_IS_CURRENT}, sequence_low, 0 - sequence_high)",
    "sequence_high": f"if({_IS_CURRENT}, sequence_high, 0 - sequence_low)",
}
"""Looks of earlier versions have differences of two models as first minus second. `0 -` instead of
`-` keeps a difference of 0 from becoming -0.
"""
_STOPPED_SCORE = (*DATA_SET, "split", *BY_JUDGE, *BY_MODEL, "score_name")

TABLES = (
    StoredTable(
        "grader_sets",
        "A configured majority: several judges that together are one grader.",
        columns=("benchmark", "majority", "members", "created_at"),
        key=("benchmark", "majority"),
    ),
    StoredTable(
        "successions",
        "A sample of criteria for a new judge that is compared with the judge of the row.",
        columns=(
            "succession_id",
            *DATA_SET,
            *BY_JUDGE,
            "new_judge",
            "new_judge_config_hash",
            "new_template_hash",
            "n_population",
            "n_drawn",
            "seed",
            "look",
            "sampled_tasks",
            "sampled_runs",
            "run_id",
            "created_at",
        ),
        key=("succession_id",),
    ),
    StoredTable(
        "succession_draws",
        "A criterion in the sample of a succession, with its probability of being sampled.",
        columns=("succession_id", *CRITERION, "stratum", "probability"),
        key=("succession_id", "task_id", "criterion_id"),
    ),
    StoredTable(
        "condition_sets",
        "A model with its conditions, as configured.",
        columns=(
            "benchmark",
            "shared_model",
            "condition_names",
            "condition_models",
            "created_at",
        ),
        key=("benchmark", "shared_model"),
    ),
    StoredTable(
        "coverage_rules",
        "The trials that a configuration wants of a model in a vintage, and the coverage that a"
        " current vintage needs; an empty model stands for all others of the benchmark.",
        columns=(
            "benchmark",
            "model",
            "model_config_hash",
            "vintage",
            "wanted_trials",
            "min_coverage",
            "created_at",
        ),
        key=("benchmark", "model", "model_config_hash", "vintage"),
    ),
    StoredTable(
        "stopping_looks",
        "A comparison after one block of tasks, in a run that stops when comparisons are settled.",
        columns=(
            "stopping_id",
            *DATA_SET,
            *BY_JUDGE,
            "score_name",
            "model",
            "model_config_hash",
            "vintage",
            "compared_model",
            "compared_config_hash",
            "compared_vintage",
            "block",
            "n_tasks",
            "n_tasks_evaluated",
            "n_tasks_planned",
            "is_second_minus_first",
            "mean_difference",
            "unbiased_difference",
            "sequence_low",
            "sequence_high",
            "comparison_alpha",
            "least_difference",
            "decision",
            "run_id",
            "created_at",
        ),
        key=("stopping_id", "model", "vintage", "compared_model", "compared_vintage", "block"),
        conversions=_SECOND_MINUS_FIRST,
    ),
    StoredTable(
        "stopping_scores",
        "A model's score on the random part of a split that was evaluated when a run stopped.",
        columns=(
            *_STOPPED_SCORE,
            "stopping_id",
            "n_tasks",
            "n_tasks_evaluated",
            "n_tasks_skipped",
            "sequence_low",
            "sequence_high",
            "unbiased_mean_score",
            "run_id",
            "created_at",
        ),
        key=_STOPPED_SCORE,
    ),
)
