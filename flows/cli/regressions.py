"""`--fail-if` and `--summary`: an exit code and a summary for CI, for commands that compare scores."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import click

from flows.run.outcomes import BELOW_BAR, ENDINGS, FAILED, INTERRUPTED, SKIPPED, first_exit_code
from tasks.rules.errors import PipelineError
from tasks.rules.text.numbers import some

if TYPE_CHECKING:
    from flows.execution import Execution

_NAMED = 3


@contextmanager
def summarised(summary: TextIO | None, title: str) -> Iterator[None]:
    """Append the reason to the summary if the work fails; a file that cannot be written is refused before."""
    from tasks.compare.regressions import as_markdown
    from warehouse import WarehouseError

    if summary is not None:
        summary.write("")  # opens it
    try:
        yield
    except (PipelineError, WarehouseError) as error:
        if summary is not None:
            summary.write(as_markdown(title, [f"Failed: {error}"], []))
        raise


def conclude_diff(
    rows: Sequence[dict[str, Any]], title: str, *, fail_if: str | None, least: float, summary: TextIO | None
) -> int:
    """Write the summary of a comparison, and return the exit code."""
    from tasks.compare.differences import subject
    from tasks.compare.regressions import untested, worse

    lower = [row["sentence"] for row in worse(rows, least)]
    missing = [*rows[0]["not_compared"], *untested(rows)]
    return _conclude(title, [subject(rows)], rows, lower, missing, is_gate=fail_if is not None, summary=summary)


def conclude_night(execution: "Execution", exit_code: int, *, fail_if: str | None, summary: TextIO | None) -> int:
    """Write the summary of a night compared with the last one, and return the exit code.

    The night is worse if an alert says that a score fell.
    """
    if fail_if is None and summary is None:
        return exit_code
    from flows.nightly import comparisons
    from tasks.compare.regressions import untested
    from tasks.rules.statistics.comparison import holm

    night = execution.job.night
    compared = [] if execution.outcome in {SKIPPED, INTERRUPTED} else comparisons(execution.job)
    adjusted = holm([each["p_value"] for each in compared])
    rows = []
    for each, p_adjusted in zip(compared, adjusted, strict=True):
        names = {side: f"{each['model']} {each[f'{side}_vintage']}" for side in ("first", "second")}
        counts = {"n_tasks_wanted": each["n_wanted"], "p_adjusted": p_adjusted}
        rows.append({**each, **names, **counts, "second_judge": each["judge"]})
    lower = [alert["line"] for alert in execution.alerts if alert["kind"] == "score_drop"]
    missing = untested(rows)
    if not rows and not lower:
        missing.append(f"the night of {night} has no earlier one to compare with")
    others = [f"{alert['kind']}: {alert['line']}" for alert in execution.alerts if alert["kind"] != "score_drop"]
    title = f"{execution.job.settings.benchmark}, night {night}"
    code = _conclude(title, others, rows, lower, missing, is_gate=fail_if is not None, summary=summary)
    return first_exit_code({exit_code, code})


def _conclude(
    title: str, lines: Sequence[str], rows: Sequence[dict[str, Any]], lower: Sequence[str], missing: Sequence[str], *,
    is_gate: bool, summary: TextIO | None,
) -> int:  # fmt: skip
    """Write the summary and, for a gate, the reason of its exit code; return that code."""
    from tasks.compare.regressions import as_markdown

    code = 0
    conclusion = "No score is significantly worse."
    if missing:
        code = ENDINGS[FAILED].exit_code
        conclusion = f"Not compared: {some(missing, _NAMED, '; ')}"
    elif lower:
        code = ENDINGS[BELOW_BAR].exit_code
        conclusion = f"Worse: {some(lower, _NAMED, '; ')}"
    if summary is not None:
        summary.write(as_markdown(title, [*lines, conclusion], rows))
    if not is_gate:
        return 0
    if code:
        kind, _, reason = conclusion.partition(": ")
        click.echo(f"exit code {code} ({kind.lower()}): {reason}", err=True)
    return code
