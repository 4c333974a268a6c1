"""The pages of cascades (a cheap and a strong judge) and of scores that people's labels correct."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import yaml

from tasks.figures import charts
from tasks.figures.figure import (
    BY_LABEL,
    WHOLE_OR_CATEGORIES,
    Column,
    Figure,
    Interval,
    Parameters,
    Rows,
)
from tasks.figures.page import Page
from tasks.figures.scope import Scope
from tasks.rules.cascades.evaluation import Evaluation
from tasks.rules.cascades.rules import When
from tasks.rules.errors import UsageError
from tasks.rules.statistics.intervals import SMALL
from tasks.run.judge_configs import judge_configs
from warehouse import Row

if TYPE_CHECKING:
    from tasks.cascade import CascadeResult


def _on_front(rows: Rows) -> Rows:
    """Return the rules that no other rule beats; their names leave out the categories, which the
    table lists.
    """
    front_rows = []
    for row in rows:
        if row["is_on_front"]:
            front_rows.append({**row, "name": row["rule"].partition(" (")[0]})
    return front_rows


DECISIONS = Figure(
    "cascade_decisions",
    "Who decided, and why",
    "Verdicts of cascades that the first judge decided, and the reasons to ask the second judge for"
    " the others. A verdict with several reasons counts under each.",
    (
        Column("judge", "Cascade"),
        "reason",
        "decided_by",
        Column("n", "Verdicts"),
        "share",
        "n_failed",
        "cost_usd",
    ),
    reach="pooled",
    boards=["judge"],
    query="cascades/cascade_decisions",
)
"""On the page of judges."""

_RULES = (
    "rule",
    Column("escalated_share", interval=True),
    Column("thousand_usd", interval=True),
    "strong_calls",
    "cheap_calls",
    Column("agreement", "Agreement", interval=True, few="is_small"),
    Column("kappa", interval=True),
    Column("macro_f1", interval=True),
    Column("ranking_tau", interval=True),
    Column("score_change", interval=True),
    "changed_model",
    "n_ranked_responses",
    "is_on_front",
    "n_paired",
    "n_tasks",
)
_AGREEMENT: dict[str, Any] = {"y": "agreement", "y_title": "Agreement", "name": "name"}
CASCADES = Page(
    "cascades",
    "Cascades",
    "A cheap judge, and a strong judge for some criteria (prbench cascade).",
    (
        Figure(
            "cascade_rules",
            "Cost against agreement",
            "Rules were made and chosen on one half of the tasks; all figures are of the other"
            " half, in the latest evaluation of each pair of judges. The charts have the rules that"
            " no other one beats in both cost and agreement, the table has all. Lines are 95 %"
            " intervals for other tasks. Tau compares the rankings of models: 1 is the same ranking"
            " as the strong judge's.",
            ("cascade", *_RULES),
            (
                charts.scatter(
                    "cascade",
                    "Cost",
                    rows=_on_front,
                    only=lambda row: row["thousand_usd"],
                    x="thousand_usd",
                    usd=True,
                    **_AGREEMENT,
                ),
                charts.scatter("cascade", "Calls", rows=_on_front, x="strong_calls", **_AGREEMENT),
            ),
            reach="pooled",
            essential=["rule", "strong_calls", "thousand_usd", "agreement"],
            boards=["cascade"],
            query="cascades/cascade_rules",
        ),
    ),
    has_judge=False,
    required_table="cascade_rules",
    group="Judges",
)


def evaluated_rules(scope: Scope, parameters: Parameters) -> list[Row]:
    """Return a row for each rule for two judges, computed now, cheapest first.

    A row has the rule's figures on both halves of the tasks.

    Raises:
        UsageError: one judge is given as both, or both have judged too few of the same criteria.
    """
    # It imports Polars, which few figures need.
    from tasks.cascade import bound_of, cascade_result, rule_rows, shown_figures

    cheap = parameters["cheap"]
    strong = parameters["strong"]
    if cheap == strong:
        raise UsageError(f"{cheap}: is given as both judges; name a cheap and a strong one")
    bound = bound_of(parameters["bound"]) if parameters["bound"] else None
    settings: dict[str, Any] = {}
    for judge in scope.job.settings.judges:
        if judge.label == cheap:
            settings = judge.model_dump(mode="json", exclude_unset=True)
    settings["label"] = cheap
    query_parameters = {
        **scope.job.key,
        "cheap": cheap,
        "strong": strong,
        "splits": list(parameters["splits"]),
    }
    configs = judge_configs(scope.job, scope.benchmark)
    config_hashes = {config.judge_config_hash for config in configs}
    result = cascade_result(scope.reader, query_parameters, bound, configured_hashes=config_hashes)
    notes = _notes_on(result, cheap, strong)
    rows = rule_rows(query_parameters, result)
    for row, evaluation in zip(rows, result.evaluations, strict=True):
        row["is_within_bound"] = bound.is_kept(evaluation) if bound else None
        row["notes"] = notes
        row["configuration"] = _configuration(evaluation, settings, strong)
        for name, value in shown_figures(evaluation.chosen_on).items():
            row[f"chosen_{name}"] = value
    return rows


def _configuration(evaluation: Evaluation, settings: dict[str, Any], strong: str) -> str | None:
    """Return a rule as an entry of `judges:`, with comments on further settings that the cheap
    judge needs.

    None for a rule that uses a single judge as it is.
    """
    cheap = settings["label"]
    when = evaluation.candidate.when or When()
    threshold = evaluation.candidate.threshold
    if threshold is not None:
        return judge_entry(settings | {"threshold": threshold})
    if not when.conditions:
        return None
    conditions = {}
    for name, value in when.conditions.items():
        conditions[name] = list(value) if isinstance(value, tuple) else value
    cascade = {"first": cheap, "then": strong, "when": conditions}
    comments = ""
    if when.disagreement:
        comments += f"# {cheap} needs `trials: 2`\n"
    if when.confidence_below is not None and settings.get("kind") != "decisions":
        comments += f"# {cheap} needs `logprobs: true`\n"
    return comments + judge_entry({"label": f"{cheap}-then-{strong}", "cascade": cascade})


def judge_entry(judge: dict[str, Any]) -> str:
    """Return a judge as an entry of `judges:`, for people to paste."""
    return str(yaml.safe_dump([judge], sort_keys=False, allow_unicode=True, width=100))


def _notes_on(result: "CascadeResult", cheap: str, strong: str) -> list[str]:
    pair = result.pair
    n_tasks = len(pair.paired.tasks)
    n_for_choosing = n_tasks // 2
    notes = [
        f"{cheap} first, then {strong}; figures are against {strong} alone.",
        f"{n_for_choosing} tasks to choose rules on, {n_tasks - n_for_choosing} held out;"
        f" {len(pair.paired.strong)} criteria that {strong} decided.",
    ]
    if n_for_choosing < SMALL:
        notes.append(
            f"Warning: rules made from {n_for_choosing} tasks are unreliable; below {SMALL} so are"
            " their intervals."
        )
    if pair.n_first_failed:
        notes.append(
            f"{cheap} failed on {pair.n_first_failed} of them: each rule escalates these; for"
            f" {cheap} alone they count as not agreeing."
        )
    if pair.n_strong_failed:
        notes.append(f"Left out: {pair.n_strong_failed} criteria that {strong} failed on.")
    if pair.n_without_second:
        notes.append(
            f"Left out: {pair.n_without_second} criteria without a second verdict of {cheap},"
            " from rules with disagreement."
        )
    if not pair.has_confidence:
        notes.append(
            f"{cheap} has no stored confidence (`logprobs: true` asks for it), so that is not"
            " tried."
        )
    return notes + [f"{note}." for note in pair.notes]


CASCADE = Figure(
    "cascade",
    "Rules to ask a strong judge after a cheap one",
    "The cost of each rule, and the agreement of its verdicts with those of the strong judge alone,"
    " on the half of the tasks that it was not chosen on. The table has the rules that no other one"
    " beats in both.",
    (*_RULES, "is_within_bound", "is_picked"),
    compute=evaluated_rules,
    parameters={"cheap": "", "strong": "", "splits": [], "bound": None},
    required=["cheap", "strong"],
    listed=lambda rows: [row for row in rows if row["is_on_front"] or row["is_picked"]],
    notes=lambda rows: rows[0]["notes"],
    essential=["rule", "thousand_usd", "agreement", "is_picked"],
)
"""The figure of `prbench cascade`."""


_ESTIMATES = {
    "judge's own": ("judge_score", "judge_ci"),
    "labels alone": ("labels_alone", "labels_alone_ci"),
    "debiased": ("debiased", "debiased_ci"),
}
"""The estimates of each model's score in charts: the columns of the mean, and of its interval."""
_EMPTY = (
    "No verdict of a judge has a label of known probability. prbench export labelling --for"
    " leaderboard writes a sheet."
)
_COLUMNS = (
    "judge_score",
    Interval("judge_ci", "score", group="Judge's own"),
    Column("labels_alone", interval=True),
    Column("debiased", interval=True),
    Column("expected_score", interval=True),
    "expected_difference",
    "no_figure",
    "judge_power",
    "n_labels",
    "n_tasks_labelled",
    "n_people",
    "n_tasks",
    "n_unsampled_labels",
    "unsampled_mean_error",
)


def _estimates(rows: Rows) -> Rows:
    """Return a row for each estimate of a model's score: the judge's own, from labels alone, and
    debiased.
    """
    estimates = []
    for row in rows:
        for name, (mean, interval) in _ESTIMATES.items():
            estimates.append(
                {
                    **row,
                    "estimate": name,
                    "mean": row[mean],
                    "ci_low": row[f"{interval}_low"],
                    "ci_high": row[f"{interval}_high"],
                }
            )
    return estimates


_TRUST = (
    "A label is weighted by one over its probability of being sampled. The judge's verdicts stand"
    " in for missing labels as far as this narrows the interval (use of the judge: 0 none, 1 full)."
    " Means are not clipped here. There is no figure with fewer than 30 labels, labels in fewer"
    " than 15 tasks, or a few labels that outweigh the others."
)

DIFFERENCES = Figure(
    "debiased_differences",
    "Differences corrected by labels",
    "The difference of the first model from each of the others, before any clipping.",
    (
        "judge_config",
        "split",
        "first_model",
        "second_model",
        Column("judge_difference", "Judge's own", "signed"),
        Column("labels_alone_difference", "value", "signed", group="Labels alone"),
        Interval("labels_alone_ci", "signed", group="Labels alone"),
        Column("debiased_difference", "value", "signed", group="Debiased"),
        Interval("debiased_ci", "signed", group="Debiased"),
        "n_labels_first",
        "n_labels_second",
        "n_tasks",
        "no_figure",
    ),
    parameters={"first": "", "others": []},
    required=["first", "others"],
    empty=_EMPTY,
    essential=["first_model", "second_model", "debiased_difference", "no_figure"],
    query="debiased/debiased_differences",
)
"""The figure of `prbench diff --debiased`."""

_SCORES = Figure(
    "debiased_scores",
    "Scores corrected by labels",
    f"Mean $score of each model. {_TRUST}",
    ("judge_config", "split", "model", *_COLUMNS),
    charts.intervals(
        "split",
        rows=_estimates,
        required="debiased",
        label="model",
        value="mean",
        name="estimate",
        title="Mean, before clipping",
    ),
    empty=_EMPTY,
    query="debiased/debiased_scores",
    mart="debiased_scores",
    parameters={"breakdown": "all"},
    choices=WHOLE_OR_CATEGORIES,
    essential=["model", "judge_score", "debiased", "no_figure"],
)
_CATEGORY_SCORES = replace(
    _SCORES,
    name="debiased_categories",
    title="Categories",
    says="The same over the criteria of one category ($criteria_score: $criteria_formula)."
    f" {_TRUST}",
    shows=("judge_config", "split", "model", Column("label", "Category"), *_COLUMNS),
    charts=(),
    empty="",
    breakdown="category",
    parameters={"breakdown": "category"},
    boards=BY_LABEL,
)
DEBIASED = Page(
    "debiased",
    "Debiased scores",
    "A judge's scores corrected by people's labels on a part of the verdicts.",
    (_SCORES, _CATEGORY_SCORES),
    required_table="debiased_scores",
    group="Judges",
)
