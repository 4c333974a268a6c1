"""The pages of cascades (a cheap and a strong judge) and of scores that people's labels correct."""

from collections.abc import Mapping
from typing import Any

import yaml

from tasks.cascade import CascadeResult, bound_of, evaluated, figures_of, rows_of
from tasks.figures import charts
from tasks.figures.charts import on_full_splits
from tasks.figures.columns import Rows, columns
from tasks.figures.figure import Figure, Page, score_word
from tasks.figures.scope import Scope
from tasks.rules.cascades.evaluation import Evaluation
from tasks.rules.cascades.rules import When
from tasks.rules.errors import UsageError
from tasks.rules.statistics.intervals import SMALL
from tasks.run.judge_configs import judge_configs

_EXPENSES = {
    "thousand_usd": "USD for 1,000 verdicts", "strong_calls": "Calls of the strong judge for 1,000 verdicts",
}  # fmt: skip
"""Column with the expense of a rule -> its title. The expense is the cost, or calls of the strong judge if a cost is
unknown."""


def _expense(rows: Rows) -> str:
    return "thousand_usd" if all(row["thousand_usd"] for row in rows) else "strong_calls"


def _on_front(rows: Rows) -> list[dict[str, Any]]:
    """Return the rules that no other rule beats; their names leave out the categories, which the table lists."""
    return [{**row, "name": row["rule"].partition(" (")[0]} for row in rows if row["is_on_front"]]


DECISIONS = Figure(
    "cascade_decisions",
    "Who decided, and why",
    "Verdicts of configured cascades: the number that the first judge decided, and the reasons to ask the second "
    "judge for the others. A verdict with several reasons counts under each.",
    columns("judge reason decided_by n share n_failed cost_usd", judge="Cascade", n="Verdicts"),
    is_optional=True,
    reach="pooled",
)
"""On the page of judges."""

_RULES = (
    "rule escalated_share± thousand_usd± strong_calls cheap_calls agreement± is_small kappa± macro_f1± ranking_tau± "
    "score_change± changed_model n_ranked_responses is_on_front n_paired n_tasks"
)
_HEADINGS = {"agreement": "Agreement", "thousand_usd": "USD for 1,000 verdicts"}
CASCADES = Page(
    "cascades",
    "Cascades",
    "A cheap judge, and a strong judge for some criteria (prbench cascade): the cost, and the agreement with the "
    "strong judge alone.",
    (
        Figure(
            "cascade_rules",
            "Cost against agreement",
            "Rules were made and chosen on one half of the tasks; all figures are of the other half, in the latest "
            "evaluation of each pair of judges. The chart has the rules that no other one beats in both cost and "
            "agreement, the table has all. Lines are 95 % intervals for other tasks of the same kind. Tau compares the "
            "rankings of models: 1 is the same ranking as the strong judge's.",
            columns("cascade", _RULES, **_HEADINGS),
            charts.scatter(
                "cascade", rows=_on_front, x=_expense, x_title=lambda rows: _EXPENSES[_expense(rows)], y="agreement",
                y_title="Agreement with the strong judge", name="name", usd=lambda rows: _expense(rows)[-3:] == "usd",
            ),
            reach="pooled",
        ),
    ),
    has_judge=False,
    needs="cascade_rules",
)  # fmt: skip


def evaluated_rules(scope: Scope, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each rule for two judges, computed now, cheapest first.

    A row has the rule's figures on both halves of the tasks.

    Raises:
        UsageError: one judge is given as both, or both have judged too few of the same criteria.
    """
    cheap, strong = given["cheap"], given["strong"]
    if cheap == strong:
        raise UsageError(f"{cheap}: is given as both judges; name a cheap and a strong one")
    bound = bound_of(given["bound"]) if given["bound"] else None
    own = next((judge for judge in scope.job.settings.judges if judge.label == cheap), None)
    settings = {"label": cheap} if own is None else own.model_dump(mode="json", exclude_unset=True)
    parameters = {"benchmark": scope.benchmark.name, "revision": scope.revision, "cheap": cheap, "strong": strong,
                  "splits": list(given["splits"])}  # fmt: skip
    configured = {each.judge_config_hash for each in judge_configs(scope.job, scope.benchmark)}
    result = evaluated(scope.reader, parameters, bound, configured=configured)
    notes = _notes_on(result, cheap, strong)
    return [
        {**row, "is_within_bound": bound.is_kept(each) if bound else None, "notes": notes,
         "configuration": _as_configured(each, settings, strong),
         **{f"chosen_{name}": value for name, value in figures_of(each.chosen_on).items()}}
        for row, each in zip(rows_of(parameters, result), result.evaluations, strict=True)
    ]  # fmt: skip


def _as_configured(evaluation: Evaluation, settings: Mapping[str, Any], strong: str) -> str | None:
    """Return a rule as an entry of `judges:`, with comments on further settings that the cheap judge needs.

    None for a rule that uses a single judge as it is.
    """
    cheap, when = settings.get("label") or settings["name"], evaluation.candidate.when or When()
    if (threshold := evaluation.candidate.threshold) is not None:
        return str(yaml.safe_dump([{**settings, "label": cheap, "threshold": threshold}], sort_keys=False))
    if not when.given:
        return None
    given = {name: list(value) if isinstance(value, tuple) else value for name, value in when.given.items()}
    entry = {"label": f"{cheap}-then-{strong}", "cascade": {"first": cheap, "then": strong, "when": given}}
    is_chat = settings.get("kind") != "decisions"
    needed = {"trials: 2": when.disagreement, "logprobs: true": when.confidence_below is not None and is_chat}
    needs = "".join(f"# {cheap} needs `{setting}`\n" for setting, is_needed in needed.items() if is_needed)
    return needs + str(yaml.safe_dump([entry], sort_keys=False, allow_unicode=True, width=100))


def _notes_on(result: CascadeResult, cheap: str, strong: str) -> list[str]:
    stored, halves = result.stored, result.evaluations[0]
    n_chosen = len(stored.paired.tasks) // 2
    sentences = {
        f"{cheap} first, then {strong}; figures are against {strong} alone.": True,
        f"{halves.chosen_on.n_tasks} tasks to choose rules on, {halves.held_out.n_tasks} held out; "
        f"{len(stored.paired.strong)} criteria that {strong} decided.": True,
        f"Warning: rules made from {n_chosen} tasks are unreliable; below {SMALL} so are their intervals.":
            n_chosen < SMALL,
        f"{cheap} failed on {stored.n_first_failed} of them: each rule escalates these; for {cheap} alone they count "
        "as not agreeing.": stored.n_first_failed,
        f"Left out: {stored.n_strong_failed} criteria that {strong} failed on.": stored.n_strong_failed,
        f"Left out: {stored.n_without_second} criteria without a second verdict of {cheap}, from rules with "
        "disagreement.": stored.n_without_second,
        f"{cheap} has one verdict a criterion, so disagreement of repetitions is not tried.":
            not stored.has_repetitions,
        f"{cheap} has no stored confidence (`logprobs: true` asks for it), so that is not tried.":
            not stored.has_confidence,
        "The cost of a judge is not known, so rules are ordered by calls of the strong judge.":
            stored.costs.cheap_usd is None,
    }  # fmt: skip
    return [*(sentence for sentence, applies in sentences.items() if applies), *(f"{note}." for note in stored.notes)]


CASCADE = Figure(
    "cascade",
    "Rules to ask a strong judge after a cheap one",
    "The cost of each rule, and the agreement of its verdicts with those of the strong judge alone. Rules are made "
    "and chosen on one half of the tasks; the figures are of the other half, except those that begin with `chosen`. "
    "The table has the rules that no other one beats in both cost and the measure.",
    columns(_RULES, "is_within_bound is_picked", **_HEADINGS),
    compute=evaluated_rules,
    given={"cheap": "", "strong": "", "splits": [], "bound": None, "is_all": False},
    listed=lambda rows: [row for row in rows if row["is_on_front"] or row["is_picked"]],
    notes=lambda rows: rows[0]["notes"],
)
"""The figures of `prbench cascade`."""


_ESTIMATES = {"judge": "judge's own", "labels_alone": "labels alone", "debiased": "debiased"}
"""The values of each model in charts: prefixes of column names."""
_EMPTY = (
    "No verdict of a judge has a label of known probability. prbench export labelling --for leaderboard writes a sheet."
)
_COLUMNS = (
    "judge_score judge_ci~ labels_alone± debiased± expected_score± expected_difference no_figure judge_power n_labels "
    "n_tasks_labelled n_people n_tasks n_unsampled_labels unsampled_mean_error"
)


def _estimates(rows: Rows) -> list[dict[str, Any]]:
    """Return a row for each estimate of a model's score: the judge's own, from labels alone, and debiased."""
    return [
        {
            **{key: row[key] for key in ("model", "judge_config", "split", "is_hard", "score_name")},
            "estimate": name, "mean": row["judge_score" if column == "judge" else column],
            "ci_low": row[f"{column}_ci_low"], "ci_high": row[f"{column}_ci_high"],
        }
        for row in rows
        if row["debiased"] is not None
        for column, name in _ESTIMATES.items()
    ]  # fmt: skip


def _mean(rows: Rows) -> str:
    return f"Mean {score_word(rows[0]['score_name'])}, before clipping"


def advice(rows: Rows) -> list[str]:
    """Return sentences that say how to get the missing figures."""
    without = [row for row in rows if row["no_figure"]]
    label = min((row.get("label") or "" for row in without), default="")
    wanted = f'"{label}"' if label else "leaderboard"
    how = f"`prbench export labelling sheet.csv --for {wanted}` writes a sheet of verdicts to label"
    return [f"Where there is no figure, more labels give one: {how}."] if without else []


_TRUST = (
    "Labels correct the judge. A label is weighted by one over its probability of being sampled. The judge's verdicts "
    "stand in for missing labels as far as this narrows the interval (use of the judge: 0 none, 1 full). Lines are 95 "
    "% intervals for other tasks of the same kind. Means are not clipped here. There is no figure with fewer than 30 "
    "labels, labels in fewer than 15 tasks, or a few labels that outweigh the others."
)

DIFFERENCES = Figure(
    "debiased_differences",
    "Differences corrected by labels",
    "The difference of the first model from each of the others, before any clipping: by the judge, by labels alone, "
    "and debiased.",
    columns(
        "judge_config split first_model second_model judge_difference labels_alone_difference labels_alone_ci~ "
        "debiased_difference debiased_ci~ n_labels_first n_labels_second n_tasks no_figure",
        judge_difference=("signed", "Judge's own"), labels_alone_difference=("signed", "Labels alone: value"),
        labels_alone_ci="Labels alone", debiased_difference=("signed", "Debiased: value"), debiased_ci="Debiased",
    ),
    given={"first": "", "others": []},
    empty="No two of these models have labels under one judge. prbench export labelling --for leaderboard writes a "
    "sheet.",
    notes=advice,
    measured=("debiased_difference", "no_figure"),
)  # fmt: skip
"""The figures of `prbench diff --debiased`."""

DEBIASED = Page(
    "debiased",
    "Debiased scores",
    "A judge's scores corrected by people's labels on a part of the verdicts: the judge's own score, the score from "
    "labels alone, and the corrected score.",
    (
        Figure(
            "debiased_scores",
            "Scores corrected by labels",
            f"Mean $score of each model. {_TRUST}",
            columns("judge_config split model", _COLUMNS, judge_ci=("score", "Judge's own")),
            charts.intervals(
                "split", rows=_estimates, label="model", value="mean", name="estimate",
                title=_mean,
            ),
            empty=_EMPTY,
            listed=on_full_splits,
            query="debiased_scores",
            notes=advice,
            measured=("debiased", "no_figure"),
            given={"breakdown": "all"},
        ),
        Figure(
            "debiased_categories",
            "Categories",
            f"The same over the criteria of one category ($criteria_score: $criteria_formula). {_TRUST}",
            columns("judge_config split model label", _COLUMNS, label="Category", judge_ci=("score", "Judge's own")),
            empty=_EMPTY,
            listed=on_full_splits,
            breakdown="category",
            query="debiased_scores",
            notes=advice,
            measured=("debiased", "no_figure"),
            given={"breakdown": "category"},
        ),
    ),
    needs="debiased_scores",
)  # fmt: skip
