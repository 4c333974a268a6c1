"""The end of a run for people: what it spent, did and left, its failures by cause, and the reason
for its exit code.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC

import sql
from flows.execution import Execution
from flows.run.outcomes import BELOW_BAR, DONE, FAILED, STOPPED_AT_BUDGET, STOPPED_AT_TIME
from tasks.maintain.upkeep import Row, total_cost
from tasks.rules.errors import PipelineError
from tasks.rules.text.characters import one_line
from tasks.rules.text.numbers import counted, duration, some
from tasks.run.coverage import CoverageCell, coverage
from tasks.run.writing import AT_BUDGET, STAGES
from warehouse import Warehouse

_CONTINUE = "run it again to continue"

_EXPLAINED = {
    DONE: "done",
    BELOW_BAR: "below the bar",
    FAILED: "failed",
    STOPPED_AT_BUDGET: AT_BUDGET,
    STOPPED_AT_TIME: "stopped at the stop time",
}
"""Outcomes whose exit code is explained at the end, in a few words. A line of its own explains the
others.
"""


def end_lines(execution: Execution, *, is_explained: bool = True) -> Iterator[str]:
    """Yield two or three lines: what was spent and done, what failed or is missing, and the reason
    for the exit code.

    With `-q`, and for work that no flow does, such as an import, it is only the reason for an exit
    code other than 0. The reason is left out if not `is_explained`: then another exit code counts.
    """
    is_summed_up = bool(execution.flow) and not execution.job.is_quiet
    if is_summed_up:
        yield from _summary(execution)
    if is_explained and execution.outcome in _EXPLAINED and (is_summed_up or execution.exit_code):
        yield f"exit code {execution.exit_code} {_reason(execution)}"


def _summary(execution: Execution) -> Iterator[str]:
    spent = f"spent: {_spent(execution)}; took {duration(execution.seconds)}"
    failed = _failures(execution)
    if execution.outcome in {STOPPED_AT_BUDGET, STOPPED_AT_TIME}:
        done, missing = _progress(execution)
        spent = f"done: {done}; {spent}"
        failed = "; ".join(filter(None, (f"missing: {missing}", failed)))
    for line in filter(None, (spent, failed)):
        yield line[0].upper() + line[1:]


def _spent(execution: Execution) -> str:
    """Return the cost of the run, and that of its night if it had other runs."""
    job = execution.job
    try:
        text = _cost(total_cost(job))
        if job.night is not None:
            night = total_cost(job, job.night)
            if night["n_runs"] > 1:
                text += f"; all {night['n_runs']} runs of the night of {job.night}: {_cost(night)}"
    except PipelineError as error:
        return f"unknown ({error})"
    return text


def _cost(total: Row) -> str:
    n_calls = total["calls"]
    n_unpriced = total["unpriced_calls"]
    if not n_calls:
        return "nothing, no model call was made"
    calls = counted(n_calls, "call")
    if total["cost_usd"] is None:
        return f"an unknown sum in {calls}, because no price is known"
    aside = f" ({n_unpriced:,} of them have no known price)" if n_unpriced else ""
    return f"{total['cost_usd']:,.4f} USD in {calls}{aside}"


def _failures(execution: Execution) -> str:
    """Return the failed rows of the run by cause, and the most frequent error, in a line; empty if
    none failed.
    """
    parts: list[str] = []
    for report in execution.reports:
        if report.failures:
            causes = ", ".join(
                f"{count} {status}" for status, count in report.failures.most_common()
            )
            parts.append(f"{STAGES[report.stage].makes} {causes}")
    if not parts:
        return ""
    # The cause of a stopped model has been printed.
    error = (
        ""
        if any(report.stopped for report in execution.reports)
        else _most_frequent_error(execution)
    )
    return f"failed: {'; '.join(parts)}{error and f' (most often: {one_line(error, 120)})'}"


def _most_frequent_error(execution: Execution) -> str:
    """Return the most frequent error of the run's responses and verdicts; empty if they have
    none.
    """
    with Warehouse(execution.job.warehouse).reader() as reader:
        rows = reader.rows(sql.read("queries/look/errors_of_run"), {"run_id": execution.job.run_id})
    return str(rows[0]["error"]) if rows else ""


def _progress(execution: Execution) -> tuple[str, str]:
    """Return what is done, and what is missing, of the work of a run that stopped."""
    done: list[str] = []
    missing: list[str] = []
    stages = {report.stage: report for report in execution.reports if report.stage in STAGES}
    if any(report.stage == "coverage" for report in execution.reports):
        cells = coverage(execution.job)
        judges = {judge.label for judge in execution.job.settings.judges}
        if stages.pop("sample", None):
            responses = [cell for cell in cells if cell.judge is None]
            _add_progress("responses", responses, done, missing)
        if stages.pop("judge", None):
            verdicts = [cell for cell in cells if cell.judge in judges]
            _add_progress("verdicts", verdicts, done, missing)
    for name, report in stages.items():
        if report.rows or report.skipped:
            done.append(f"{report.rows:,} {STAGES[name].makes}")
        if report.skipped:
            missing.append(f"{report.skipped:,} {STAGES[name].makes}")
    return ", ".join(done) or "nothing", some(missing) or "nothing"


def _add_progress(
    plural: str, cells: Sequence[CoverageCell], done: list[str], missing: list[str]
) -> None:
    """Add what is done of some cells, and what is missing by judge, or of responses by model."""
    n_done = sum(cell.done for cell in cells)
    n_due = sum(cell.due for cell in cells)
    done.append(f"{n_done:,} of {n_due:,} {plural}")
    n_missing: Counter[str] = Counter()
    for cell in cells:
        n_failed = sum(cell.failures.values())
        n_missing[cell.judge or cell.model] += max(0, cell.due - cell.done - n_failed)
    missing += [f"{n:,} {plural} of {label}" for label, n in n_missing.items() if n]


def _reason(execution: Execution) -> str:
    """Return the reason for the exit code, in a few words and with its details."""
    if execution.has_nothing:
        advice = "correct that and run it again; `prbench doctor` tests each model"
        return f"(no call succeeded): {_cause_of_nothing(execution)}; {advice}"
    reason = f"({_EXPLAINED[execution.outcome]})"
    details = _details(execution)
    return f"{reason}: {details}" if details else reason


def _details(execution: Execution) -> str:
    job = execution.job
    if execution.outcome == STOPPED_AT_TIME and job.stop_at is not None:
        return f"{job.stop_at.astimezone(UTC):%H:%M} UTC has passed; {_CONTINUE}"
    if execution.outcome == STOPPED_AT_BUDGET:
        stopped = [report for report in execution.reports if report.is_at_budget]
        lines = [
            line for report in stopped for line in report.warnings if line.startswith(AT_BUDGET)
        ]
        return f"{lines[-1].removeprefix(f'{AT_BUDGET}: ')}; {_CONTINUE}"
    if execution.outcome == BELOW_BAR:
        responsible = [report for report in execution.reports if report.is_below_bar]
    else:
        responsible = [report for report in execution.reports if report.has_failed]
    lines = [line for report in responsible for line in report.warnings or [report.line]]
    return some(lines, 1, "; ")


def _cause_of_nothing(execution: Execution) -> str:
    stopped = dict.fromkeys(line for report in execution.reports for line in report.stopped)
    if not stopped:
        return _most_frequent_error(execution)
    return "; ".join(stopped) if execution.job.is_quiet else "the models were stopped, see above"
