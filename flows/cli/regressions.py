"""`--fail-if` and `--summary`: an exit code and a summary for CI, for commands that compare
scores.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import click

from flows.run.outcomes import BELOW_BAR, ENDINGS, FAILED, INTERRUPTED, SKIPPED
from tasks.rules.errors import PipelineError
from tasks.rules.text.numbers import list_text

if TYPE_CHECKING:
    from flows.execution import Execution

_MOST_REASONS = 3


class Gate(NamedTuple):
    """What `--fail-if` has found: an exit code, and a line with its reason.

    0 and an empty line if everything was compared and nothing fell, or without the option.
    """

    exit_code: int
    line: str


OPEN = Gate(0, "")


@contextmanager
def reporting_errors_in(summary_file: TextIO | None, title: str) -> Iterator[None]:
    """Append the error to the summary's file if the block raises one.

    A file that cannot be written is refused before the block begins.
    """
    from tasks.compare.regressions import as_markdown
    from warehouse import WarehouseError

    if summary_file is not None:
        summary_file.write("")  # opens it
    try:
        yield
    except (PipelineError, WarehouseError) as error:
        if summary_file is not None:
            summary_file.write(as_markdown(title, [f"Failed: {error}"], []))
        raise


def conclude_diff(
    rows: Sequence[dict[str, Any]],
    title: str,
    *,
    fail_if: str | None,
    least_difference: float,
    summary_file: TextIO | None,
) -> int:
    """Write the summary of a comparison, and return the exit code."""
    from tasks.compare.regressions import untested, worse
    from tasks.figures.shown.comparisons import subject

    lower = [row["sentence"] for row in worse(rows, least_difference)]
    uncompared = [*rows[0]["not_compared"], *untested(rows)]
    gate = _conclude(
        title,
        [subject(rows)],
        rows,
        lower,
        uncompared,
        fail_if=fail_if,
        summary_file=summary_file,
    )
    if gate.line:
        click.echo(gate.line, err=True)
    return gate.exit_code


def gate_of_night(
    execution: "Execution", *, fail_if: str | None, summary_file: TextIO | None
) -> Gate:
    """Write the summary of a night compared with the last one, and return its gate.

    The night is worse if an alert says that a score fell.
    """
    if fail_if is None and summary_file is None:
        return OPEN
    from flows.nightly import comparisons_with_last_night
    from tasks.compare.regressions import untested

    night = execution.job.night
    rows = []
    if execution.outcome not in {SKIPPED, INTERRUPTED}:
        rows = _diff_rows(comparisons_with_last_night(execution.job))
    lower = []
    lines = []
    for alert in execution.alerts:
        if alert["kind"] == "score_drop":
            lower.append(alert["line"])
        else:
            lines.append(f"{alert['kind']}: {alert['line']}")
    uncompared = untested(rows)
    if not rows and not lower:
        uncompared.append(f"no score of the night of {night} can be compared with an earlier one")
    title = f"{execution.job.benchmark}, night {night}"
    return _conclude(
        title, lines, rows, lower, uncompared, fail_if=fail_if, summary_file=summary_file
    )


def _diff_rows(night_rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a night's comparisons as rows of `prbench diff`, with corrected p-values."""
    from tasks.alerts.findings import judge_name
    from tasks.rules.statistics.comparison import holm

    adjusted = holm([row["p_value"] for row in night_rows])
    rows = []
    for row, p_adjusted in zip(night_rows, adjusted, strict=True):
        diff_row = {
            **row,
            "first": f"{row['model']} {row['first_vintage']}",
            "second": f"{row['model']} {row['second_vintage']}",
            "n_tasks_wanted": row["n_wanted"],
            "p_adjusted": p_adjusted,
            "second_judge": judge_name(row),
        }
        rows.append(diff_row)
    return rows


def _conclude(
    title: str,
    lines: Sequence[str],
    rows: Sequence[dict[str, Any]],
    lower: Sequence[str],
    uncompared: Sequence[str],
    *,
    fail_if: str | None,
    summary_file: TextIO | None,
) -> Gate:
    """Write the summary, and return the gate, which is open without `--fail-if`.

    `lower` are sentences about scores that fell, `uncompared` those about scores that could not be
    compared, which count more: any of these may have fallen.
    """
    from tasks.compare.regressions import as_markdown

    exit_code = 0
    kind = ""
    if uncompared:
        exit_code = ENDINGS[FAILED].exit_code
        kind = "Not compared"
    elif lower:
        exit_code = ENDINGS[BELOW_BAR].exit_code
        kind = "Worse"
    reason = list_text(uncompared or lower, _MOST_REASONS, "; ")
    conclusion = f"{kind}: {reason}" if kind else "No score is significantly worse."
    if summary_file is not None:
        summary_file.write(as_markdown(title, [*lines, conclusion], rows))
    if fail_if is None or exit_code == 0:
        return OPEN
    return Gate(exit_code, f"exit code {exit_code} ({kind.lower()}): {reason}")
