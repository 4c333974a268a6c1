"""The pages of cascades (a cheap and a strong judge) and of scores that people's labels correct."""

from collections.abc import Mapping
from typing import Any

import yaml

from tasks.cascade import CascadeResult, bound_of, evaluated, figures_of, rows_of
from tasks.figures import charts
from tasks.figures.figure import Column, Figure, Interval, Rows
from tasks.figures.page import Page
from tasks.figures.scope import Scope
from tasks.rules.cascades.evaluation import Evaluation
from tasks.rules.cascades.rules import When
from tasks.rules.errors import UsageError
from tasks.rules.statistics.intervals import SMALL
from tasks.run.judge_configs import judge_configs


def _on_front(rows: Rows) -> list[dict[str, Any]]:
    """Return the rules that no other rule beats; their names leave out the categories, which the
    table lists.
    """
    return [{**row, "name": row["rule"].partition(" (")[0]} for row in rows if row["is_on_front"]]


def _priced(rows: Rows) -> list[dict[str, Any]]:
    return [row for row in _on_front(rows) if row["thousand_usd"]]


DECISIONS = Figure(
    "cascade_decisions",
    "Who decided, and why",
    "Verdicts of cascades that the first judge decided, and the reasons to ask the second judge for"
    " the others. A verdict with several reasons counts under each.",
    (
        Column("judge", "Cascade"),
        "reason decided_by",
        Column("n", "Verdicts"),
        "share n_failed cost_usd",
    ),
    reach="pooled",
    essential="reason decided_by n share n_failed cost_usd",
    boards="judge",
    query="cascades/cascade_decisions",
)
"""On the page of judges."""

_RULES = (
    "rule",
    Column("escalated_share", interval=True),
    Column("thousand_usd", interval=True),
    "strong_calls cheap_calls",
    Column("agreement", "Agreement", interval=True, few="is_small"),
    Column("kappa", interval=True),
    Column("macro_f1", interval=True),
    Column("ranking_tau", interval=True),
    Column("score_change", interval=True),
    "changed_model n_ranked_responses is_on_front n_paired n_tasks",
)
_AGREEMENT = {
    "y": "agreement",
    "y_title": "Agreement",
    "name": "name",
}
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
                    rows=_priced,
                    x="thousand_usd",
                    usd=True,
                    **_AGREEMENT,
                ),
                charts.scatter("cascade", "Calls", rows=_on_front, x="strong_calls", **_AGREEMENT),
            ),
            reach="pooled",
            essential="rule strong_calls thousand_usd agreement",
            boards="cascade",
            query="cascades/cascade_rules",
        ),
    ),
    has_judge=False,
    needs="cascade_rules",
    group="Judges",
)


def evaluated_rules(scope: Scope, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each rule for two judges, computed now, cheapest first.

    A row has the rule's figures on both halves of the tasks.

    Raises:
        UsageError: one judge is given as both, or both have judged too few of the same criteria.
    """
    cheap = given["cheap"]
    strong = given["strong"]
    if cheap == strong:
        raise UsageError(f"{cheap}: is given as both judges; name a cheap and a strong one")
    bound = bound_of(given["bound"]) if given["bound"] else None
    own = next((judge for judge in scope.job.settings.judges if judge.label == cheap), None)
    settings = {"label": cheap} if own is None else own.model_dump(mode="json", exclude_unset=True)
    parameters = {
        **scope.job.key,
        "cheap": cheap,
        "strong": strong,
        "splits": list(given["splits"]),
    }
    configured = {each.judge_config_hash for each in judge_configs(scope.job, scope.benchmark)}
    result = evaluated(scope.reader, parameters, bound, configured=configured)
    notes = _notes_on(result, cheap, strong)
    return [
        {
            **row,
            "is_within_bound": bound.is_kept(each) if bound else None,
            "notes": notes,
            "configuration": _as_configured(each, settings, strong),
            **{f"chosen_{name}": value for name, value in figures_of(each.chosen_on).items()},
        }
        for row, each in zip(rows_of(parameters, result), result.evaluations, strict=True)
    ]


def _as_configured(evaluation: Evaluation, settings: Mapping[str, Any], strong: str) -> str | None:
    """Return a rule as an entry of `judges:`, with comments on further settings that the cheap
    judge needs.

    None for a rule that uses a single judge as it is.
    """
    cheap = settings.get("label") or settings["name"]
    when = evaluation.candidate.when or When()
    threshold = evaluation.candidate.threshold
    if threshold is not None:
        return str(
            yaml.safe_dump(
                [
                    {
                        **settings,
                        "label": cheap,
                        "threshold": threshold,
                    }
                ],
                sort_keys=False,
            )
        )
    if not when.conditions:
        return None
    given = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in when.conditions.items()
    }
    entry = {
        "label": f"{cheap}-then-{strong}",
        "cascade": {
            "first": cheap,
            "then": strong,
            "when": given,
        },
    }
    is_chat = settings.get("kind") != "decisions"
    needed = {
        "trials: 2": when.disagreement,
        "logprobs: true": when.confidence_below is not None and is_chat,
    }
    needs = "".join(
        f"# {cheap} needs `{setting}`\n" for setting, is_needed in needed.items() if is_needed
    )
    return needs + str(
        yaml.safe_dump(
            [entry],
            sort_keys=False,
            allow_unicode=True,
            width=100,
        )
    )


def _notes_on(result: CascadeResult, cheap: str, strong: str) -> list[str]:
    stored = result.stored
    halves = result.evaluations[0]
    n_chosen = len(stored.paired.tasks) // 2
    sentences = {
        f"{cheap} first, then {strong}; figures are against {strong} alone.": True,
        f"{halves.chosen_on['n_tasks']} tasks to choose rules on, {halves.held_out['n_tasks']} held out; {len(stored.paired.strong)} criteria that {strong} decided.": (
            True
        ),
        f"Warning: rules made from {n_chosen} tasks are unreliable; below {SMALL} so are their intervals.": (
            n_chosen < SMALL
        ),
        f"{cheap} failed on {stored.n_first_failed} of them: each rule escalates these; for {cheap} alone they count as not agreeing.": (
            stored.n_first_failed
        ),
        f"Left out: {stored.n_strong_failed} criteria that {strong} failed on.": (
            stored.n_strong_failed
        ),
        f"Left out: {stored.n_without_second} criteria without a second verdict of {cheap}, from rules with disagreement.": (
            stored.n_without_second
        ),
        f"{cheap} has no stored confidence (`logprobs: true` asks for it), so that is not tried.": (
            not stored.has_confidence
        ),
    }
    return [
        *(sentence for sentence, applies in sentences.items() if applies),
        *(f"{note}." for note in stored.notes),
    ]


CASCADE = Figure(
    "cascade",
    "Rules to ask a strong judge after a cheap one",
    "The cost of each rule, and the agreement of its verdicts with those of the strong judge alone,"
    " on the half of the tasks that it was not chosen on. The table has the rules that no other one"
    " beats in both.",
    (*_RULES, "is_within_bound is_picked"),
    compute=evaluated_rules,
    given={
        "cheap": "",
        "strong": "",
        "splits": [],
        "bound": None,
        "is_all": False,
    },
    listed=lambda rows: [row for row in rows if row["is_on_front"] or row["is_picked"]],
    notes=lambda rows: rows[0]["notes"],
    essential="rule thousand_usd agreement is_picked",
)
"""The figures of `prbench cascade`."""


_ESTIMATES = {
    "judge": "judge's own",
    "labels_alone": "labels alone",
    "debiased": "debiased",
}
"""The values of each model in charts: prefixes of column names."""
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
    "expected_difference no_figure judge_power n_labels n_tasks_labelled n_people n_tasks n_unsampled_labels unsampled_mean_error",
)


def _estimates(rows: Rows) -> list[dict[str, Any]]:
    """Return a row for each estimate of a model's score: the judge's own, from labels alone, and
    debiased.
    """
    return [
        {
            **row,
            "estimate": name,
            "mean": row["judge_score" if column == "judge" else column],
            "ci_low": row[f"{column}_ci_low"],
            "ci_high": row[f"{column}_ci_high"],
        }
        for row in rows
        if row["debiased"] is not None
        for column, name in _ESTIMATES.items()
    ]


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
        "judge_config split first_model second_model",
        Column("judge_difference", "Judge's own", "signed"),
        Column("labels_alone_difference", "value", "signed", group="Labels alone"),
        Interval("labels_alone_ci", "signed", group="Labels alone"),
        Column("debiased_difference", "value", "signed", group="Debiased"),
        Interval("debiased_ci", "signed", group="Debiased"),
        "n_labels_first n_labels_second n_tasks no_figure",
    ),
    given={"first": "", "others": []},
    empty=_EMPTY,
    essential="first_model second_model debiased_difference no_figure",
    query="debiased/debiased_differences",
)
"""The figures of `prbench diff --debiased`."""

DEBIASED = Page(
    "debiased",
    "Debiased scores",
    "A judge's scores corrected by people's labels on a part of the verdicts.",
    (
        Figure(
            "debiased_scores",
            "Scores corrected by labels",
            f"Mean $score of each model. {_TRUST}",
            ("judge_config split model", *_COLUMNS),
            charts.intervals(
                "split",
                rows=_estimates,
                label="model",
                value="mean",
                name="estimate",
                title="Mean, before clipping",
            ),
            empty=_EMPTY,
            query="debiased/debiased_scores",
            mart="debiased_scores",
            given={"breakdown": "all"},
            essential="model judge_score debiased no_figure",
        ),
        Figure(
            "debiased_categories",
            "Categories",
            "The same over the criteria of one category ($criteria_score: $criteria_formula)."
            f" {_TRUST}",
            ("judge_config split model", Column("label", "Category"), *_COLUMNS),
            breakdown="category",
            query="debiased/debiased_scores",
            mart="debiased_scores",
            given={"breakdown": "category"},
            essential="model judge_score debiased no_figure",
            boards="judge_config split label",
        ),
    ),
    needs="debiased_scores",
    group="Judges",
)
