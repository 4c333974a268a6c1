"""The columns of tables: what each is called, and how its values are written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "count", "number", "score", "signed", "share", "usd", "price", "p", "time", "yes", "task"]
"""How a column's values are written: a score with three decimals, a share in percent, `yes` for what is true.

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


def columns(names: str, group: str = "", **titles: str) -> tuple[Column, ...]:
    """Columns by their names, which spaces separate, under a common heading.

    Args:
        names: as the rows have them.
        group: the common heading, if any.
        titles: by name, the headings that are others here than everywhere else.

    Raises:
        KeyError: nothing below says what a column is called.
    """
    return tuple(Column(name, titles.get(name, _TITLES[name][1]), _TITLES[name][0], group) for name in names.split())


_BY_KIND: Mapping[Kind, Mapping[str, str]] = {
    "text": {
        "breakdown": "By", "called_model": "Called", "cause": "Below", "changed": "Changed before it",
        "check_name": "Check", "command": "Command", "compared_with": "Compared with",
        "configuration": "Model configuration", "detail": "What was found", "earlier": "Since", "field": "Field",
        "first_day": "First day", "grader": "Grader", "grader_a": "Grader", "grader_b": "Other grader",
        "grader_set": "Graders", "grading": "Grading", "judge_configuration": "Judge configuration",
        "judged_by": "Judged by", "judging": "Judge", "kind": "Kind", "label": "Label", "last_day": "Last day",
        "later": "Now", "meaning": "What is expected", "model": "Model", "night": "Night", "outcome": "Outcome",
        "policy": "Policy", "purpose": "For", "reference": "Held against", "revision": "Data set", "rubric": "Rubric",
        "run_id": "Run", "says_a": "says", "says_b": "says", "severity": "Severity", "some_keys": "Some keys",
        "split": "Split", "splits": "Splits", "status": "Outcome", "suite": "Suite", "table_name": "Rows of",
        "template": "Template", "topic": "Topic", "vintage": "Sampling",
    },
    "task": {"task_id": "Task"},
    "time": {
        "answered_at": "Answered (UTC)", "selected_at": "Selected at (UTC)", "started_at": "Started (UTC)",
    },
    "yes": {
        "is_border": "Chance decides", "is_critical_small": "Few", "is_drifted": "Judge out of control",
        "is_failure": "Failed", "is_member": "By making", "is_met_small": "Few", "is_mistake_small": "Few",
        "is_official": "In the official split", "is_selected": "Selected", "is_significant": "Significant",
        "is_small": "Few",
    },
    "count": {
        "cached_tokens": "cached", "calls": "Calls", "completion_tokens": "Reply", "criteria_max": "Max",
        "criteria_min": "Min", "failed_calls": "Failed", "fifth": "Fifth", "max_chars_alnum": "to",
        "mean_chars_alnum": "Letters and digits", "mean_completion_tokens": "Tokens", "min_chars_alnum": "from",
        "minutes": "Minutes", "n": "Criteria", "n_answers": "Answers", "n_border": "in all",
        "n_border_inside": "inside", "n_chars": "Models", "n_chosen_from": "of", "n_compared": "there",
        "n_criteria": "Criteria", "n_critical": "Decided", "n_decided": "Decided", "n_evaluated": "Checked",
        "n_failed": "Failed", "n_graders": "Number", "n_judged": "Decided criteria", "n_lost": "Lost",
        "n_members": "Members", "n_mistakes_possible": "Decided", "n_models": "Models", "n_more": "More",
        "n_refused": "Refused", "n_responses": "Answers", "n_responses_at_risk": "Answers", "n_runs": "Runs",
        "n_selected": "Tasks", "n_shared": "in both", "n_tasks": "Tasks", "n_tasks_full": "In all trials",
        "n_tasks_wanted": "Wanted", "n_trials": "Trials", "n_unpriced": "Without a price",
        "n_unpriced_answers": "Without a price", "n_verdicts": "Verdicts", "n_with_references": "References",
        "prompt_tokens": "Prompt", "rank": "Rank", "rank_high": "to", "rank_low": "from",
        "reasoning_tokens": "Thinking", "responses": "Answers", "turns_max": "Max", "turns_min": "Min",
        "unpriced_calls": "Without a price", "verdicts": "Verdicts",
    },
    "number": {
        "attempts": "Calls each", "criteria_25": "25 %", "criteria_50": "Median", "criteria_75": "75 %",
        "jaccard": "Jaccard", "latency_s": "Seconds", "turns_25": "25 %", "turns_50": "Median", "turns_75": "75 %",
        "weight": "Weight",
    },
    "score": {
        "alpha": "Alpha", "alpha_ci_high": "to", "alpha_ci_low": "from", "ci_high": "to", "ci_low": "from",
        "earlier_mean": "then", "earlier_score": "then", "gap": "gap", "highest_inside": "inside", "kappa": "Kappa",
        "kappa_ci_high": "to", "kappa_ci_low": "from", "later_mean": "now", "later_score": "now",
        "lowest_outside": "outside", "macro_f1": "Macro-F1", "macro_f1_ci_high": "to", "macro_f1_ci_low": "from",
        "macro_f1_task_mean": "that occur", "macro_f1_task_mean_absent_as_0": "absent as 0", "mean_lower": "at least",
        "mean_score": "Score", "mean_upper": "at most", "mean_value": "Score", "others_mean": "by the others",
        "own_mean": "by it", "raw_ci_high": "to", "raw_ci_low": "from", "raw_mean_score": "mean",
    },
    "signed": {
        "change": "Change", "chars_ci_high": "to", "chars_ci_low": "from",
        "chars_correlation": "with letters and digits", "difference": "Difference", "favour": "Favour",
        "from_border": "From the border", "leniency": "Difference", "tokens_ci_high": "to", "tokens_ci_low": "from",
        "tokens_correlation": "with tokens",
    },
    "share": {
        "agreement": "Share", "agreement_ci_high": "to", "agreement_ci_low": "from", "cached_share": "Cached",
        "centre": "Expected", "coverage": "Coverage", "critical_coverage": "Coverage", "expert_share": "Experts",
        "failure_rate": "Fails, of its category", "failure_share": "Of all that fails", "first_met_share": "at first",
        "inclusion_probability": "Selected by", "lower_limit": "Limit", "mean_inclusion": "Mean certainty inside",
        "met_ci_high": "to", "met_ci_low": "from", "met_share": "Criteria met", "met_share_a": "by the one",
        "met_share_b": "by the other", "min_agreement": "Bar", "missed_ci_high": "to", "missed_ci_low": "from",
        "missed_share": "Missed", "mistake_ci_high": "to", "mistake_ci_low": "from", "mistake_coverage": "Coverage",
        "mistake_share": "Made", "multi_turn_share": "Multi-turn", "others_met_share": "by the others",
        "responses_with_mistake_share": "With a mistake", "selected_share": "Selected", "share": "Share",
        "shared_share": "Shared", "unanimous_share": "All alike", "with_negative_share": "Negative",
    },
    "usd": {"all_answers_usd": "All answers", "answers_usd": "of its answers", "cost_usd": "Cost"},
    "price": {
        "answer_usd": "Answer", "judging_usd": "Judging", "task_usd": "Both", "thousand_usd": "A thousand",
    },
    "p": {"p_adjusted": "Corrected p"},
}  # fmt: skip
_TITLES = {name: (kind, title) for kind, titles in _BY_KIND.items() for name, title in titles.items()}

INTERVAL = columns("ci_low ci_high", "95 % interval")
UNCLIPPED = columns("raw_mean_score raw_ci_low raw_ci_high", "Before clipping")
"""A mean and its interval without the clipping at 0, where that hides something."""
