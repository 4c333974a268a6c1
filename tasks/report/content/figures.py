"""What a page of the report is made of: figures, each with its SQL, its numbers and its charts; columns, and words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import altair as alt

from tasks.benchmarks.base import Benchmark
from tasks.rules.records import ScoreDefinition

Kind = Literal[
    "text", "count", "number", "score", "signed", "share", "coverage", "usd", "price", "p", "time", "yes", "task"
]  # fmt: skip
"""How a column's values are written: a score with three decimals, a share in percent, a coverage rounded down, `yes`
for what is true.

`usd` is a sum, `price` what a single thing costs, with more decimals; `task` is a task's id, which leads to its page,
or to the row's `address`, where it has one.
"""


@dataclass(frozen=True)
class Column:
    """A column of a figure's table: its name in the rows, its heading, how it is written, and its group's heading."""

    name: str
    title: str
    kind: Kind = "text"
    group: str = ""


def columns(names: str, group: str = "", **headings: str) -> tuple[Column, ...]:
    """Columns by their names, which spaces separate.

    Args:
        names: as the rows have them.
        group: the common heading of all of them, where it is not the usual one.
        headings: by name, those that differ here from the usual ones.

    Raises:
        KeyError: a column has no usual heading.
    """
    found = []
    for name in names.split():
        kind, usual = _USUAL[name]
        above, _, title = headings.get(name, usual).rpartition(": ")
        found.append(Column(name, title, kind, group or above))
    return tuple(found)


def interval(name: str, title: str, kind: Kind = "score", value: str = "value") -> tuple[Column, ...]:
    """A value under a common heading with the ends of its interval."""
    return (Column(name, value, kind, title), *ends(f"{name}_ci", kind, title))


def ends(name: str, kind: Kind = "signed", title: str = "95 % interval") -> tuple[Column, ...]:
    """The two ends of an interval under a common heading."""
    return (Column(f"{name}_low", "from", kind, title), Column(f"{name}_high", "to", kind, title))


_BY_KIND: Mapping[Kind, Mapping[str, str]] = {
    "text": {
        "annotator": "Annotator", "baseline": "Compared with", "better_wording": "Better wording",
        "capability": "Capability", "cascade": "Judges", "changed_model": "Largest change of a mean score: of",
        "condition": "Condition", "criterion": "Criterion", "decided_by": "Decided by", "decision": "Decision",
        "effective_votes_note": "Effective votes: Note",
        "explanation": "Reason", "findings": "Verdicts", "judge": "Judged by", "no_figure": "No figure, because",
        "no_interval": "No interval, because", "reason": "Reason", "review_check": "Check", "reviewer": "Reviewer",
        "reviewer_a": "Reviewer", "reviewer_b": "Other reviewer", "rule": "Escalated", "shared_model": "Model",
        "title": "Criterion", "breakdown": "By", "called_model": "Model called", "cause": "Below",
        "changed": "What changed", "check_name": "Check", "command": "Command", "compared_with": "Compared with",
        "configuration": "Model configuration", "detail": "What was found", "earlier": "Earlier", "field": "Field",
        "first_day": "First day", "grader": "Grader", "grader_a": "Grader", "grader_b": "Other grader",
        "grader_set": "Graders", "grading": "Grading", "judge_configuration": "Judge configuration",
        "judged_by": "Judged by", "judging": "Judge", "kind": "Kind", "label": "Label", "last_day": "Last day",
        "later": "Latest", "meaning": "Expected", "model": "Model", "night": "Night", "outcome": "Outcome",
        "policy": "Policy", "purpose": "Purpose", "reference": "Compared with", "revision": "Data set",
        "rubric": "Rubric", "run_id": "Run", "says_a": "Grader: says", "says_b": "Other grader: says",
        "severity": "Severity", "some_keys": "Failing rows: Examples", "split": "Split", "splits": "Splits",
        "status": "Outcome", "suite": "Suite", "table_name": "Table", "template": "Template", "topic": "Topic",
        "vintage": "Vintage",
    },
    "task": {"task_id": "Task"},
    "time": {
        "answered_at": "Answered (UTC)", "looked_at": "Looked at (UTC)", "selected_at": "Selected at (UTC)",
        "started_at": "Started (UTC)",
    },
    "yes": {
        "effective_votes_is_small": "Effective votes: Few tasks",
        "is_border": "Chance decides", "is_critical_small": "Critical criteria: Few tasks",
        "is_drifted": "Judge drifted", "is_failure": "Failed", "is_member": "Majority and member",
        "is_met_small": "Few tasks", "is_mistake_small": "Critical mistakes: Few tasks",
        "is_official": "In the official split", "is_on_front": "No rule beats it", "is_selected": "Selected",
        "is_significant": "Significant", "is_small": "Few tasks",
    },
    "count": {
        "level": "Level", "n_annotated": "Given: by the annotator", "n_annotations": "Annotations",
        "n_both": "Given: by both", "n_changed": "Criteria: changed", "n_compared_with": "Given: by the other",
        "n_comparisons": "Comparisons", "n_failing": "Failing", "n_gained": "Gain: criteria",
        "n_labels": "Labels: Number", "n_paired": "Criteria", "n_people": "Labels: by people",
        "n_population": "Estimated for", "n_ranked_responses": "Ranking rests on: Responses",
        "n_released": "Tasks: with released labels", "n_reviews": "Reviews", "n_tasks_evaluated": "Tasks: Evaluated",
        "n_tasks_labelled": "Labels: in tasks", "n_tasks_planned": "Tasks: Of",
        "n_unsampled_labels": "Labels not used: Number", "n_used": "Tasks: with annotated labels",
        "cached_tokens": "Tokens: cached", "calls": "Calls", "completion_tokens": "Tokens: Response",
        "criteria_max": "Criteria of a task: Max", "criteria_min": "Criteria of a task: Min", "failed_calls": "Failed",
        "fifth": "Fifth", "max_chars_alnum": "Letters and digits: to", "mean_chars_alnum": "Letters and digits",
        "mean_completion_tokens": "Tokens", "min_chars_alnum": "Letters and digits: from", "minutes": "Minutes",
        "n": "Criteria", "n_answers": "Responses", "n_border": "Chance decides: in all",
        "n_border_inside": "Chance decides: inside", "n_chars": "Models", "n_chosen_from": "of", "n_compared": "there",
        "n_criteria": "Criteria", "n_critical": "Critical criteria: Decided", "n_decided": "Decided",
        "n_evaluated": "Checked", "n_failed": "Failed", "n_graders": "Number", "n_judged": "Decided criteria",
        "n_lost": "Lost", "n_members": "Members", "n_mistakes_possible": "Critical mistakes: Decided",
        "n_models": "Models", "n_more": "Failing rows: More", "n_refused": "Refused", "n_responses": "Responses",
        "n_voters": "Effective votes: Voters",
        "n_responses_at_risk": "Responses that could make one: Responses", "n_runs": "Runs", "n_selected": "Tasks",
        "n_shared": "in both", "n_tasks": "Tasks", "n_tasks_full": "Complete in all trials",
        "n_tasks_ranked": "Tasks ranked", "n_tasks_wanted": "All tasks", "n_trials": "Trials",
        "n_unpriced": "Price unknown", "n_unpriced_answers": "Price unknown", "n_verdicts": "Verdicts",
        "n_with_references": "References", "prompt_tokens": "Tokens: Prompt", "rank": "Rank",
        "rank_high": "Possible ranks: to", "rank_low": "Possible ranks: from", "reasoning_tokens": "Tokens: Thinking",
        "responses": "Made: Responses", "turns_max": "User turns: Max", "turns_min": "User turns: Min",
        "unpriced_calls": "Price unknown", "verdicts": "Made: Verdicts",
    },
    "number": {
        "baseline_value": "Met: baseline", "cheap_calls": "Calls for 1,000 verdicts: of the cheap judge",
        "effective_votes": "Effective votes: Value", "effective_votes_ci_high": "Effective votes: to",
        "effective_votes_ci_low": "Effective votes: from",
        "judge_power": "Use of the judge", "points": "Points", "points_gained": "Gain: points",
        "points_lost": "Loss: points", "points_net": "Points in all",
        "strong_calls": "Calls for 1,000 verdicts: of the strong judge", "attempts": "Calls per verdict",
        "criteria_25": "Criteria of a task: 25 %", "criteria_50": "Criteria of a task: Median",
        "criteria_75": "Criteria of a task: 75 %", "jaccard": "Jaccard", "latency_s": "Seconds",
        "turns_25": "User turns: 25 %", "turns_50": "User turns: Median", "turns_75": "User turns: 75 %",
        "weight": "Weight",
    },
    "score": {
        "baseline_mean_score": "Mean score: baseline", "compared_value": "Score: there",
        "judge_score": "Judge's own: Mean", "least_difference": "Least difference",
        "smallest_detectable": "Smallest detectable", "alpha": "Alpha", "alpha_ci_high": "95 % interval: to",
        "alpha_ci_low": "95 % interval: from", "ci_high": "95 % interval: to", "ci_low": "95 % interval: from",
        "earlier_mean": "Score: earlier", "earlier_score": "Score: earlier", "gap": "Mean score at the border: gap",
        "highest_inside": "Mean score at the border: inside", "kappa": "Kappa", "kappa_ci_high": "to",
        "kappa_ci_low": "from", "later_mean": "Score: latest", "later_score": "Score: latest",
        "lowest_outside": "Mean score at the border: outside", "macro_f1": "Macro-F1", "macro_f1_ci_high": "to",
        "macro_f1_ci_low": "from", "macro_f1_task_mean": "Mean over tasks, absent verdicts: left out",
        "macro_f1_task_mean_absent_as_0": "Mean over tasks, absent verdicts: as 0",
        "mean_lower": "Possible range: at least", "mean_score": "Score", "mean_upper": "Possible range: at most",
        "mean_value": "Score", "others_mean": "by the others", "own_mean": "by it",
        "raw_ci_high": "Before clipping: to", "raw_ci_low": "Before clipping: from",
        "raw_mean_score": "Before clipping: mean",
    },
    "signed": {
        "unbiased_difference": "Without the bias of stopping",
        "unsampled_mean_error": "Labels not used: Label minus judge", "change": "Change",
        "chars_ci_high": "95 % interval: to", "chars_ci_low": "95 % interval: from",
        "chars_correlation": "Rank correlation of the score: with letters and digits", "difference": "Difference",
        "favour": "Favour", "from_border": "Distance from border", "leniency": "Difference",
        "tokens_ci_high": "95 % interval: to", "tokens_ci_low": "95 % interval: from",
        "tokens_correlation": "Rank correlation of the score: with tokens",
    },
    "share": {
        "agreeing_share": "Agree", "failing_rate": "Rate of disagreement: where it fails", "pass_share": "Pass",
        "passing_rate": "Rate of disagreement: where it passes", "unweighted_share": "Agree, without weights",
        "agreement": "Share", "agreement_ci_high": "to", "agreement_ci_low": "from", "cached_share": "Tokens: Cached",
        "centre": "Expected", "expert_share": "Experts", "failure_rate": "Failure rate",
        "failure_share": "Share of all failures", "first_met_share": "Called met: at first",
        "inclusion_probability": "Selected by panels", "lower_limit": "Limit",
        "mean_inclusion": "Mean share of panels", "met_ci_high": "95 % interval: to",
        "met_ci_low": "95 % interval: from", "met_share": "Criteria met", "met_share_a": "Called met: by grader",
        "met_share_b": "Called met: by other grader", "min_agreement": "Minimum",
        "missed_ci_high": "Critical criteria: to", "missed_ci_low": "Critical criteria: from",
        "missed_share": "Critical criteria: Missed", "mistake_ci_high": "Critical mistakes: to",
        "mistake_ci_low": "Critical mistakes: from", "mistake_share": "Critical mistakes: Made",
        "multi_turn_share": "Multi-turn", "others_met_share": "Called met: by the others",
        "responses_with_mistake_share": "Responses that could make one: With a mistake", "selected_share": "Selected",
        "share": "Share", "shared_share": "Shared", "unanimous_share": "Unanimous", "with_negative_share": "Negative",
    },
    "coverage": {
        "coverage": "Coverage", "critical_coverage": "Critical criteria: Coverage",
        "mistake_coverage": "Critical mistakes: Coverage",
    },
    "usd": {"all_answers_usd": "All responses", "answers_usd": "Cost: responses", "cost_usd": "Cost"},
    "price": {
        "answer_usd": "Mean cost: Response", "judging_usd": "Mean cost: Judging", "task_usd": "Mean cost: Both",
        "thousand_usd": "Per 1,000",
    },
    "p": {
        "comparison_alpha": "Chance of a false decision", "p_adjusted": "Corrected p", "p_confirmed": "p corrected",
        "p_value": "p",
    },
}  # fmt: skip
_USUAL = {name: (kind, heading) for kind, headings in _BY_KIND.items() for name, heading in headings.items()}
"""The kind and the heading of each column; a group's heading stands before a colon."""


Row = Mapping[str, Any]
Rows = Sequence[Row]
Reach = Literal["tasks", "pooled", "warehouse"]
"""What a figure is of: the tasks of the report; pooled over all tasks, so that a report of some splits leaves it out;
or the whole warehouse, whatever the splits (runs, checks, judges on their control sets), which it says then."""


@dataclass(frozen=True)
class Plot:
    """One chart of a figure, with the heading that distinguishes it from the others beside it."""

    title: str
    chart: alt.TopLevelMixin


@dataclass(frozen=True)
class Figure:
    """A question with its answer: a query gives the rows, `plots` draws them, `columns` lists them.

    Attributes:
        name: also the name of the CSV and SQL files, and of the anchor in the page.
        title: what is shown.
        says: how it is to be read, in a sentence or two; `$score` and the like stand for what a benchmark's scores are
            called (`words`), and where its paper shows the same is added (`Benchmark.figure_sources`).
        columns: the table of numbers.
        plots: the charts; none for a figure that is a table only.
        empty: what is said where there are no rows.
        is_table: whether the table is what is looked at first, and not folded away below the charts.
        query: the query below `sql/report/` that gives the rows, as `<page>/<name>`, where it has another name than the
            figure; it may serve several.
        given: what the query asks for beside what all may ask for.
        listed: the rows that the table has, where all of them would be too many to read; the CSV has all.
        notes: sentences about these very rows, below the charts.
        breakdown: the kind of label that it is about; it is left out where the data has none of this kind.
        is_optional: whether it is left out where it has no rows.
        reach: what it is of, where that is not the report's tasks.
    """

    name: str
    title: str
    says: str
    columns: tuple[Column, ...]
    plots: Callable[[Rows], Sequence[Plot]] | None = None
    empty: str = "There is nothing to show here yet."
    is_table: bool = False
    query: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)
    listed: Callable[[Rows], Rows] | None = None
    notes: Callable[[Rows], Sequence[str]] | None = None
    breakdown: str = ""
    is_optional: bool = False
    reach: Reach = "tasks"


@dataclass(frozen=True)
class Breakdown:
    """A kind of label that the data has: its name and title, and whether criteria carry it, or else tasks."""

    kind: str
    title: str
    of_criteria: bool


@dataclass(frozen=True)
class Page:
    """A page: its file's name, its title, one sentence of what it is about, and its figures.

    `n_chosen` is how many models its charts show at first, where all of them at once could not be distinguished.
    `template` is for a page that has more to say than its figures; `has_judging` is false for one on which a judge is
    not to be chosen. `needs` is the table without whose rows on the benchmark the page is left out. `own` makes a
    figure for each kind of label that the benchmark alone has, which stand last.
    """

    name: str
    title: str
    lead: str
    figures: tuple[Figure, ...] = ()
    n_chosen: int | None = None
    template: str = "figures.html"
    has_judging: bool = True
    needs: str = ""
    own: Callable[[Breakdown], Figure] | None = None


def score_word(score_name: str) -> str:
    """A score's name as it stands in a sentence or at an axis."""
    name = score_name.replace("_", " ")
    return name if name.endswith("score") else f"{name} score"


def formula(score: ScoreDefinition) -> str:
    """A score of one answer as a fraction of `points` and of the sums of `positive` and `negative` weights."""
    above = _sum((1.0, "points"), (score.numerator_negative, "negative"))
    below = _sum((score.denominator_positive, "positive"), (score.denominator_negative, "negative"))
    return f"{above} / {below}"


def _sum(*terms: tuple[float, str]) -> str:
    """Terms that are not 0, each with its sign, in parentheses where they are several."""
    shown = [(factor, name) for factor, name in terms if factor]
    parts = [
        f"{'−' if factor < 0 else '+'} {'' if abs(factor) == 1 else f'{abs(factor):g} × '}{name}"
        for factor, name in shown
    ]
    text = " ".join(parts).removeprefix("+ ")
    return f"({text})" if len(shown) > 1 else text


def words(benchmark: Benchmark) -> dict[str, str]:
    """What the sentences below figures say of a benchmark, by the name that stands for it there."""
    primary, of_criteria = benchmark.primary_score, benchmark.criteria_score
    return {
        "score": score_word(primary.score_name),
        "formula": formula(primary),
        "criteria_score": score_word(of_criteria.score_name),
        "criteria_formula": formula(of_criteria),
        "explained": _explained(benchmark),
    }


def _explained(benchmark: Benchmark) -> str:
    """What the words of the primary score's formula mean."""
    half = " (half the weight of those partly met)" if "ternary" in benchmark.gradings else ""
    sums = "positive is the sum of all weights above 0"
    if "negative" in formula(benchmark.primary_score):
        sums += " and negative the sum of all weights below 0"
    clipped = " A mean below 0 counts as 0." if benchmark.primary_score.clips_mean else ""
    return f"points is the sum of the weights of the criteria that are met{half}; {sums}.{clipped}"
