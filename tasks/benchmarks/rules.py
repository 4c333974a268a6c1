"""Rules that benchmarks have in common, for each to declare with its own bounds."""

from collections.abc import Collection
from typing import Any

from tasks.rules.records import Invariant

Rules = tuple[Invariant, ...]


def rule(check_name: str, frame: str, kind: str, policy: str, meaning: str, **arguments: Any) -> Invariant:
    """A rule about the ingested rows of a frame (a query under `sql/checks/`)."""
    return Invariant(check_name, "ingest", frame, kind, arguments, policy, meaning)


def weight_range(lowest: float, highest: float) -> Rules:
    """Weights are numbers within bounds, and not 0."""
    bounds = f"weights are from {lowest:g} to {highest:g}"
    return (
        rule("weight_range", "criteria", "between", "quarantine", bounds,
             column="weight", min_value=lowest, max_value=highest),
        rule("weight_range", "criteria", "not_null", "quarantine", "weights are numbers", column="weight"),
        rule("weight_range", "criteria", "not_in", "quarantine", "weights are not 0", column="weight", values=[0]),
    )  # fmt: skip


def whole_weights() -> Rules:
    """Weights are whole numbers."""
    return (
        rule("weight_range", "criteria", "in", "quarantine", "weights are whole numbers",
             column="weight_fraction", values=[0]),
    )  # fmt: skip


def positive_criterion() -> Rules:
    """There is something to gain."""
    return (
        rule("positive_criterion", "rubrics", "at_least", "quarantine", "a task has at least one positive criterion",
             column="n_positive", min_value=1),
    )  # fmt: skip


def criteria_per_task(fewest: int, most: int | None = None) -> Rules:
    """A rubric has a number of criteria within bounds."""
    if most is None:
        meaning = f"a task has at least {fewest} criteria" if fewest > 1 else "a task has a criterion"
        return (
            rule("criteria_per_task", "rubrics", "at_least", "quarantine", meaning,
                 column="n_criteria", min_value=fewest),
        )  # fmt: skip
    return (
        rule("criteria_per_task", "rubrics", "between", "quarantine", f"a task has {fewest} to {most} criteria",
             column="n_criteria", min_value=fewest, max_value=most),
    )  # fmt: skip


def weight_classes(severities: Collection[str]) -> Rules:
    """Weight classes that the data states are known, and their weights in their bands."""
    return (
        rule("weight_class_known", "criteria", "in", "quarantine", f"a weight class is one of the {len(severities)}",
             column="severity", values=list(severities)),
        rule("weight_in_band", "criteria", "in", "warn", "a weight lies in the band of its class",
             column="is_in_band", values=[True]),
    )  # fmt: skip


def known_labels() -> Rules:
    """Categories and labels are in the benchmark's vocabularies."""
    return (
        rule("category_known", "criteria", "in", "warn", "a category belongs to the vocabulary of its field",
             column="is_category_known", values=[True]),
        rule("labels_known", "rubrics", "in", "warn", "the labels of a task are known",
             column="are_labels_known", values=[True]),
    )  # fmt: skip


def unique_ids() -> Rules:
    """Tasks and criteria have ids of their own."""
    return (
        rule("unique_task_id", "rubrics", "in", "quarantine", "a task id appears once in a split, with one content",
             column="n_rows", values=[1]),
        rule("unique_criterion_id", "criteria", "in", "quarantine", "a criterion id appears once in a task",
             column="n_same_id", values=[1]),
    )  # fmt: skip


def one_of_each_title() -> Rules:
    """No criterion is asked twice."""
    return (
        rule("title_once", "criteria", "in", "warn", "a criterion's title appears once in a task",
             column="n_same_title", values=[1]),
    )  # fmt: skip


def titles() -> Rules:
    """Criteria have a text."""
    return (
        rule("title_not_empty", "criteria", "in", "quarantine", "a criterion's title is not empty",
             column="is_title_blank", values=[False]),
    )  # fmt: skip


def whole_conversation() -> Rules:
    """The conversation alternates and ends with the user."""
    return (
        rule("turns_contiguous", "rubrics", "matches", "quarantine",
             "user and assistant turns alternate without a gap and end with the user",
             column="turn_pattern", regex=r"^[ue](?:a[ue])*$"),
    )  # fmt: skip


def last_word_of_the_user() -> Rules:
    """The conversation ends with the user, however it went before."""
    return (
        rule("turns_contiguous", "rubrics", "matches", "quarantine", "the conversation ends with the user",
             column="turn_pattern", regex=r"[ue]$"),
    )  # fmt: skip


def stated_turns() -> Rules:
    """The row counts its turns rightly."""
    return (
        rule("turns_contiguous", "rubrics", "in", "quarantine", "there are as many user turns as the row says",
             column="is_turn_count_right", values=[True]),
    )  # fmt: skip


def prompts() -> Rules:
    """The user says something in each turn."""
    return (
        rule("prompt_not_empty", "rubrics", "in", "quarantine", "no user turn is empty",
             column="has_empty_prompt", values=[False]),
    )  # fmt: skip
