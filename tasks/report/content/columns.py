"""The columns of tables: what each is called, and how its values are written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

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


_BY_KIND: Mapping[Kind, Mapping[str, str]] = {
    "text": {
        "breakdown": "By", "called_model": "Model called", "cause": "Below", "changed": "What changed",
        "check_name": "Check", "command": "Command", "compared_with": "Compared with",
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
    "time": {"answered_at": "Answered (UTC)", "selected_at": "Selected at (UTC)", "started_at": "Started (UTC)"},
    "yes": {
        "is_border": "Chance decides", "is_critical_small": "Critical criteria: Few tasks",
        "is_drifted": "Judge drifted", "is_failure": "Failed", "is_member": "Majority and member",
        "is_met_small": "Few tasks", "is_mistake_small": "Critical mistakes: Few tasks",
        "is_official": "In the official split", "is_selected": "Selected", "is_significant": "Significant",
        "is_small": "Few tasks",
    },
    "count": {
        "cached_tokens": "Tokens: cached", "calls": "Calls", "completion_tokens": "Tokens: Response",
        "criteria_max": "Criteria of a task: Max", "criteria_min": "Criteria of a task: Min",
        "failed_calls": "Failed", "fifth": "Fifth", "max_chars_alnum": "Letters and digits: to",
        "mean_chars_alnum": "Letters and digits", "mean_completion_tokens": "Tokens",
        "min_chars_alnum": "Letters and digits: from", "minutes": "Minutes", "n": "Criteria",
        "n_answers": "Responses", "n_border": "Chance decides: in all", "n_border_inside": "Chance decides: inside",
        "n_chars": "Models", "n_chosen_from": "of", "n_compared": "there", "n_criteria": "Criteria",
        "n_critical": "Critical criteria: Decided", "n_decided": "Decided", "n_evaluated": "Checked",
        "n_failed": "Failed", "n_graders": "Number", "n_judged": "Decided criteria", "n_lost": "Lost",
        "n_members": "Members", "n_mistakes_possible": "Critical mistakes: Decided", "n_models": "Models",
        "n_more": "Failing rows: More", "n_refused": "Refused", "n_responses": "Responses",
        "n_responses_at_risk": "Responses that could make one: Responses", "n_runs": "Runs", "n_selected": "Tasks",
        "n_shared": "in both", "n_tasks": "Tasks", "n_tasks_full": "Complete in all trials",
        "n_tasks_ranked": "Tasks ranked", "n_tasks_wanted": "All tasks", "n_trials": "Trials",
        "n_unpriced": "Price unknown",
        "n_unpriced_answers": "Price unknown", "n_verdicts": "Verdicts", "n_with_references": "References",
        "prompt_tokens": "Tokens: Prompt", "rank": "Rank", "rank_high": "Possible ranks: to",
        "rank_low": "Possible ranks: from", "reasoning_tokens": "Tokens: Thinking", "responses": "Made: Responses",
        "turns_max": "User turns: Max", "turns_min": "User turns: Min", "unpriced_calls": "Price unknown",
        "verdicts": "Made: Verdicts",
    },
    "number": {
        "attempts": "Calls per verdict", "criteria_25": "Criteria of a task: 25 %",
        "criteria_50": "Criteria of a task: Median", "criteria_75": "Criteria of a task: 75 %", "jaccard": "Jaccard",
        "latency_s": "Seconds", "turns_25": "User turns: 25 %", "turns_50": "User turns: Median",
        "turns_75": "User turns: 75 %", "weight": "Weight",
    },
    "score": {
        "alpha": "Alpha", "alpha_ci_high": "95 % interval: to", "alpha_ci_low": "95 % interval: from",
        "ci_high": "95 % interval: to", "ci_low": "95 % interval: from", "earlier_mean": "Score: earlier",
        "earlier_score": "Score: earlier", "gap": "Mean score at the border: gap",
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
        "change": "Change", "chars_ci_high": "95 % interval: to", "chars_ci_low": "95 % interval: from",
        "chars_correlation": "Rank correlation of the score: with letters and digits", "difference": "Difference",
        "favour": "Favour", "from_border": "Distance from border", "leniency": "Difference",
        "tokens_ci_high": "95 % interval: to", "tokens_ci_low": "95 % interval: from",
        "tokens_correlation": "Rank correlation of the score: with tokens",
    },
    "share": {
        "agreement": "Share", "agreement_ci_high": "to", "agreement_ci_low": "from", "cached_share": "Tokens: Cached",
        "centre": "Expected", "expert_share": "Experts",
        "failure_rate": "Failure rate", "failure_share": "Share of all failures",
        "first_met_share": "Called met: at first", "inclusion_probability": "Selected by panels",
        "lower_limit": "Limit", "mean_inclusion": "Mean share of panels", "met_ci_high": "95 % interval: to",
        "met_ci_low": "95 % interval: from", "met_share": "Criteria met", "met_share_a": "Called met: by grader",
        "met_share_b": "Called met: by other grader", "min_agreement": "Minimum",
        "missed_ci_high": "Critical criteria: to", "missed_ci_low": "Critical criteria: from",
        "missed_share": "Critical criteria: Missed", "mistake_ci_high": "Critical mistakes: to",
        "mistake_ci_low": "Critical mistakes: from",
        "mistake_share": "Critical mistakes: Made", "multi_turn_share": "Multi-turn",
        "others_met_share": "Called met: by the others",
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
    "p": {"p_adjusted": "Corrected p"},
}  # fmt: skip
_USUAL = {name: (kind, heading) for kind, headings in _BY_KIND.items() for name, heading in headings.items()}
"""The kind and the heading of each column; a group's heading stands before a colon."""
