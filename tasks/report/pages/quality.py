"""Figures of the data's quality: what was expected, what failed, and which tasks were refused for it."""

from datetime import UTC

from tasks.report.content.columns import Column, columns
from tasks.report.content.figures import Figure, Rows
from tasks.rules.text.numbers import counted

_MOST_REFUSALS = 200
"""Rows in the table; where there are more they have one cause, which these show."""


def _summary(rows: Rows) -> list[str]:
    n_failed = sum(row["outcome"] == "failed" for row in rows)
    all_passed = f"All {counted(len(rows), 'check')} passed."
    found = f"{n_failed} of {counted(len(rows), 'check')} failed; they come first." if n_failed else all_passed
    last = {row["suite"]: row["created_at"].astimezone(UTC) for row in rows}
    return [found, f"Checked: {', '.join(f'{suite} {at:%Y-%m-%d %H:%M} UTC' for suite, at in last.items())}."]


def _reasons(rows: Rows) -> list[str]:
    tasks = {row["task_id"] for row in rows}
    checks = dict.fromkeys(row["check_name"] for row in rows)
    found = [f"{sum(row['check_name'] == check for row in rows)} by {check}" for check in checks]
    return [f"{counted(len(tasks), 'task')} refused: {', '.join(found)}."]


QUALITY = Figure(
    "quality",
    "Data quality",
    "Every check of the last run of each suite. The policy says what happens when a check fails: quarantine refuses "
    "the task, warn only reports it, fail stops the run.",
    (
        *columns("outcome policy check_name meaning table_name"),
        *columns("n_evaluated n_failed", "Rows"),
        *columns("some_keys n_more suite"),
    ),
    empty="No check has been run yet; `prbench check` runs them.",
    is_table=True,
    notes=_summary,
    reach="warehouse",
    query="quality/checks",
)
REFUSALS = Figure(
    "refusals",
    "Refused tasks",
    "Tasks that failed a check with the policy quarantine or fail. They are not sampled and have no scores.",
    (
        *columns("check_name"),
        Column("task_id", "Task"),
        *columns("splits policy detail"),
    ),
    empty="No task was refused.",
    is_table=True,
    listed=lambda rows: rows[:_MOST_REFUSALS],
    notes=_reasons,
    query="quality/refusals",
)
