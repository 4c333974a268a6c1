"""The last lines of a run: what it spent, did and left, its failures, and its exit code."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC
from itertools import chain

from flows.execution import Execution
from flows.run.outcomes import BELOW_BAR, DONE, FAILED, STOPPED_AT_BUDGET, STOPPED_AT_TIME
from tasks.config.job import Job
from tasks.maintain.spend import total_cost
from tasks.rules.errors import PipelineError
from tasks.rules.text.characters import one_line
from tasks.rules.text.numbers import counted, duration, list_text
from tasks.run.coverage import CoverageCell, coverage
from tasks.run.writing import AT_BUDGET, STAGES, StageReport
from warehouse import Row, Warehouse

_CONTINUE = "run it again to continue"

_EXPLAINED = {
    DONE: "done",
    BELOW_BAR: "below the bar",
    FAILED: "failed",
    STOPPED_AT_BUDGET: AT_BUDGET,
    STOPPED_AT_TIME: "stopped at the stop time",
}
"""Outcomes whose exit code is explained at the end, in a few words. The others have been explained
when they happened.
"""


def end_lines(execution: Execution, *, is_explained: bool = True) -> Iterator[str]:
    """Yield lines on what was spent and failed, after a stop also on what is done and missing, and
    on the exit code.

    With `-q`, and for work that no flow does, such as an import, the only line is the reason for an
    exit code other than 0. Without `is_explained`, the reason is left out, because the command ends
    with an exit code of its own.
    """
    is_summed_up = bool(execution.flow) and not execution.job.is_quiet
    if is_summed_up:
        yield from _summary(execution)
    if is_explained and execution.outcome in _EXPLAINED and (is_summed_up or execution.exit_code):
        yield f"exit code {execution.exit_code} {_reason(execution)}"


def _summary(execution: Execution) -> Iterator[str]:
    costs = f"spent: {_costs(execution)}; took {duration(execution.seconds)}"
    failures = _failures(execution)
    if execution.outcome not in {STOPPED_AT_BUDGET, STOPPED_AT_TIME}:
        yield _sentence(costs)
        if failures:
            yield _sentence(failures)
        return
    finished, gaps = _progress(execution)
    yield f"Done: {finished}; {costs}"
    missing = f"Missing: {gaps}"
    yield f"{missing}; {failures}" if failures else missing


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _costs(execution: Execution) -> str:
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
    """Return the failed rows of the run by cause, and the most frequent error; empty: none."""
    parts = []
    for report in execution.reports:
        causes = [f"{count} {status}" for status, count in report.failures.most_common()]
        if causes:
            parts.append(f"{STAGES[report.stage].makes} {', '.join(causes)}")
    if not parts:
        return ""
    line = f"failed: {'; '.join(parts)}"
    # The cause of a stopped model has been printed.
    if any(report.stopped for report in execution.reports):
        return line
    error = _most_frequent_error(execution)
    return f"{line} (most often: {one_line(error, 120)})" if error else line


def _most_frequent_error(execution: Execution) -> str:
    """Return the most frequent error of the run's responses and verdicts; empty: none."""
    with Warehouse(execution.job.warehouse).reader() as reader:
        rows = reader.query("queries/look/errors_of_run", {"run_id": execution.job.run_id})
    return str(rows[0]["error"]) if rows else ""


def _progress(execution: Execution) -> tuple[str, str]:
    """Return what is done, and what is missing, of the work of a run that stopped."""
    finished = []
    gaps = []
    # With `stopping`, a stage has a report for each block.
    totals: dict[str, StageReport] = {}
    for report in execution.reports:
        totals.setdefault(report.stage, StageReport(report.stage)).add(report)
    # Coverage counts responses and verdicts of earlier runs too; the reports count all other rows.
    cells_by_stage = _cells_by_stage(execution.job) if "coverage" in totals else {}
    for stage, cells in cells_by_stage.items():
        if stage in totals:
            n_done = sum(cell.done for cell in cells)
            n_due = sum(cell.due for cell in cells)
            plural = STAGES[stage].makes
            finished.append(f"{n_done:,} of {n_due:,} {plural}")
            counts = _missing_by_label(cells)
            gaps += [f"{count:,} {plural} of {label}" for label, count in counts.items() if count]
    for stage, total in totals.items():
        if stage in STAGES and stage not in cells_by_stage:
            if total.rows or total.skipped:
                finished.append(f"{total.rows:,} {STAGES[stage].makes}")
            if total.skipped:
                gaps.append(f"{total.skipped:,} {STAGES[stage].makes}")
    return ", ".join(finished) or "nothing", list_text(gaps) or "nothing"


def _cells_by_stage(job: Job) -> dict[str, list[CoverageCell]]:
    """Return the cells of responses and of verdicts, by the stage that makes these."""
    cells = coverage(job)
    judges = job.settings.judge_labels
    return {
        "sample": [cell for cell in cells if cell.judge is None],
        "judge": [cell for cell in cells if cell.judge in judges],
    }


def _missing_by_label(cells: Sequence[CoverageCell]) -> Counter[str]:
    """Return the number of missing verdicts by judge, or of missing responses by model."""
    missing_by_label: Counter[str] = Counter()
    for cell in cells:
        n_missing = cell.due - cell.done - sum(cell.failures.values())
        missing_by_label[cell.judge or cell.model] += max(0, n_missing)
    return missing_by_label


def _reason(execution: Execution) -> str:
    """Return the reason for the exit code, in a few words and with its details."""
    if execution.has_no_scores:
        advice = "correct that and run it again; `prbench doctor` tests each model"
        return f"(no call succeeded): {_cause_of_no_success(execution)}; {advice}"
    reason = f"({_EXPLAINED[execution.outcome]})"
    details = _details(execution)
    return f"{reason}: {details}" if details else reason


def _details(execution: Execution) -> str:
    job = execution.job
    if execution.outcome == STOPPED_AT_TIME and job.stop_at is not None:
        return f"{job.stop_at.astimezone(UTC):%H:%M} UTC has passed; {_CONTINUE}"
    if execution.outcome == STOPPED_AT_BUDGET:
        return f"{_budget(execution)}; {_CONTINUE}"
    lines: list[str] = []
    for report in execution.reports:
        is_cause = report.is_below_bar if execution.outcome == BELOW_BAR else report.has_failed
        if is_cause:
            lines += report.warnings or [report.line]
    return list_text(lines, 1, "; ")


def _budget(execution: Execution) -> str:
    """Return what was spent of which cap, from the last warning that the budget ended a stage."""
    warnings = chain.from_iterable(report.warnings for report in execution.reports)
    lines = [line for line in warnings if line.startswith(AT_BUDGET)]
    return lines[-1].removeprefix(f"{AT_BUDGET}: ")


def _cause_of_no_success(execution: Execution) -> str:
    stopped = dict.fromkeys(chain.from_iterable(report.stopped for report in execution.reports))
    if not stopped:
        return _most_frequent_error(execution) or _failures(execution)
    return "; ".join(stopped) if execution.job.is_quiet else "the models were stopped, see above"
