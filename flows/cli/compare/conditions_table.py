"""Comparisons of conditions in tables, for people."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from flows.cli.common.output import show_nothing
from flows.cli.common.tables import show_table
from flows.cli.compare.conditions_notes import notes_on
from flows.cli.look.leaderboard_columns import is_worth_showing
from tasks.compare import INTERVAL, Changes, ConditionsAnswer, ConditionTable, decision, figure, p_value
from tasks.config.job import Job
from tasks.rules.text.numbers import SMALL_MARK

Row = Mapping[str, Any]
_MEANS = {
    "letters and digits": ("mean_chars_alnum", ",.0f"),
    "tokens": ("mean_completion_tokens", ",.0f"),
    "cost in USD": ("mean_cost_usd", ",.4g"),
    "seconds": ("mean_latency_s", ",.1f"),
}
"""What is shown of responses: a heading -> the column, and how its values are written."""


def show(job: Job, answer: ConditionsAnswer) -> None:
    """All tables, and the notes on them."""
    if not answer.tables:
        show_nothing(job, "No two conditions of a model have been judged in this selection yet.")
    several = {name for name in ("judge_trial", "grading", "judge_config_hash", "template_hash", "vintage")
               if is_worth_showing(name, [table.key for table in answer.tables])}  # fmt: skip
    for table in answer.tables:
        where = _where(table, several)
        _show_differences(f"Whole rubric, {answer.score}: {where}", table.whole)
        if table.categories:
            _show_differences(f"By category, {answer.label_score}: {where}", table.categories)
        _show_responses(f"Mean response, baseline → condition: {where}", table.whole)
        _show_changes(where, table.changes)
    for note in notes_on(answer):
        click.echo(note)


def _where(table: ConditionTable, several: set[str]) -> str:
    """The split and the judge of a table, and what distinguishes it from others."""
    key = table.key
    further = "".join(f", {name.removesuffix('_hash').replace('_', ' ')} {str(key[name])[:12]}" for name in key
                      if name in several)  # fmt: skip
    return f"{key['split']}, judge {key['judge']}{further}"


def _show_differences(title: str, rows: Sequence[Row]) -> None:
    cells = [_difference_cells(row) for row in rows]
    columns = [name for name in cells[0] if any(row[name] is not None for row in cells)]
    groups = [(row["shared_model"], row["condition"]) for row in rows]
    show_table(
        columns, [[row[name] for name in columns] for row in cells], title=title,
        n_least=columns.index(INTERVAL) + 1, groups=groups if rows[0]["breakdown"] == "category" else (),
    )  # fmt: skip


def _difference_cells(row: Row) -> dict[str, Any]:
    smallest = row["smallest_detectable"]
    return {
        "model": row["shared_model"],
        "condition": row["condition"],
        "compared with": row["baseline"],
        "category": row["label"] or None,
        "difference": _signed(row["difference"]),
        INTERVAL: interval_in_words(row),
        "p": p_value(row["p_value"]),
        "p corrected": p_value(row["p_holm"]),
        "significant": row["is_significant"],
        "tasks": f"{row['n_tasks']} of {row['n_tasks_wanted']}",
        "baseline mean": _score(row["baseline_mean_score"]),
        "mean": _score(row["mean_score"]),
        "smallest detectable difference": None if smallest is None else figure(smallest),
    }


def interval_in_words(row: Row) -> str:
    """The interval of a difference, or why there is none."""
    if row["ci_low"] is not None:
        return f"{row['ci_low']:+z.3f} to {row['ci_high']:+z.3f}{SMALL_MARK if row['is_small'] else ''}"
    if not row["n_tasks"]:
        return "no task is complete on both sides"
    if row["p_value"] is not None:
        return "nearly all tasks change alike"
    return "too few tasks differ" if row["n_differing"] or row["difference"] else "no task differs"


def _signed(value: float | None) -> str | None:
    return None if value is None else f"{value:+z.3f}"


def _score(value: float | None) -> str | None:
    return None if value is None else f"{value:z.3f}"


def _show_responses(title: str, rows: Sequence[Row]) -> None:
    cells = [
        {
            "model": row["shared_model"],
            "condition": row["condition"],
            **{name: _change(row, column, form) for name, (column, form) in _MEANS.items()},
            "failed": f"{row['baseline_n_failed']} of {row['baseline_n_answers']} → "
            f"{row['n_failed']} of {row['n_answers']}",
        }
        for row in rows
    ]
    columns = [name for name in cells[0] if any(row[name] is not None for row in cells)]
    show_table(columns, [[row[name] for name in columns] for row in cells], title=title)


def _change(row: Row, column: str, form: str) -> str | None:
    """A mean of the baseline, that of the condition, and the second by the first."""
    before, after = row[f"baseline_{column}"], row[column]
    if before is None or after is None:
        return None
    ratio = f" (× {after / before:.2f})" if before else ""
    return f"{before:{form}} → {after:{form}}{ratio}"


def _points(value: float) -> str:
    return f"{value:+g}" if value else "0"


def _show_changes(where: str, changes: Sequence[Changes]) -> None:
    show_table(
        ["model", "condition", "category", "criteria", "changed", "gain points", "lose points", "points gained",
         "points lost"],
        [[each.shared_model, each.condition, c["category"], c["n_compared"], c["n_changed"], c["n_gained"],
          c["n_lost"], _points(c["points_gained"]), _points(c["points_lost"])]
         for each in changes for c in each.categories],
        title=f"Changed criteria: {where}",
        groups=[(each.shared_model, each.condition) for each in changes for _ in each.categories],
    )  # fmt: skip
    for each in changes:
        shown = [*each.gained, *each.lost]
        if shown:
            show_table(
                ["points", "title", "category", "baseline", "condition", "task"],
                [[_points(c["points"]), c["title"], c["category"], decision(c["baseline_by_trial"]),
                  decision(c["by_trial"]), c["task_id"]] for c in shown],
                title=f"{each.shared_model}, {each.condition}: criteria that gain and lose most points",
            )  # fmt: skip
