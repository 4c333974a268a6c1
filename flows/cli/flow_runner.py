"""Running a flow for a command, and reporting what it did."""

from typing import TYPE_CHECKING

import click

from flows.cli.options import Context
from flows.cli.output import show_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from flows.execution import Execution
    from tasks.config.job import Job
    from tasks.run.writing import StageReport


def run_flow(context: Context, name: str) -> "Execution":
    """Run a flow with the options of the command."""
    from flows.execution import execute_flow
    from flows.work import FLOWS

    refuse_early(context, must_be_stored=not FLOWS[name].loads)
    return execute_flow(context.job, name, is_verbose=context.is_verbose, **context.repairs)


def refuse_early(context: Context, *, must_be_stored: bool = False) -> None:
    """Refuse what cannot succeed before a warehouse is made for it.

    Raises:
        UsageError: the data set is not there, or has no split that is named.
        PipelineError: nothing was ever stored where something must be.
    """
    from tasks.dataset.source import source_of
    from tasks.rules.errors import PipelineError
    from warehouse import nothing_in, refuse_other_version

    job = context.job
    if context.arguments.splits:
        source_of(job)
    if refuse_other_version(job.warehouse) is not None:
        return
    if must_be_stored:
        raise PipelineError(nothing_in(job.warehouse, "stored"))
    _ = job.data  # looked up now, which says if it is not there


def explain_exit(execution: "Execution") -> None:
    """Say why the exit code is 3, since everything was done; or 1, where no call succeeded."""
    from flows.run.outcomes import BELOW_BAR

    if execution.outcome == BELOW_BAR and not execution.job.is_quiet:
        below = [report for report in execution.reports if report.is_below_bar]
        stages = ", ".join(dict.fromkeys(report.stage for report in below))
        why = "quality or coverage below the configured minimum, or damaged data"
        seen = "; see the warnings above" if any(report.warnings for report in below) else ""
        click.echo(f"exit code 3 ({why}): {stages}{seen}", err=True)
    if execution.has_nothing:
        advice = "correct that and run it again; `prbench doctor` tests each model"
        click.echo(f"exit code 1 (no call succeeded): {_cause(execution)}; {advice}", err=True)


def _cause(execution: "Execution") -> str:
    """Why no call succeeded, unless that was said before."""
    import sql
    from warehouse import Warehouse

    if stopped := dict.fromkeys(line for report in execution.reports for line in report.stopped):
        return "; ".join(stopped) if execution.job.is_quiet else "the models were stopped, see above"
    run_id = execution.job.run_id
    with Warehouse(execution.job.warehouse).reader() as reader:
        rows = reader.rows(sql.read("queries/look/errors_of_run"), {"run_id": run_id})
    return str(rows[0]["error"])


def finish(context: Context, execution: "Execution") -> int:
    """Show the result, and return the exit code."""
    explain_exit(execution)
    if context.as_json:
        show_json(execution.as_json)
    elif not context.arguments.is_quiet:
        for report in execution.reports:
            if report.stage in {"import", "export"}:
                click.echo(report.line)
                for warning in report.warnings:
                    click.echo(warning, err=True)
    return execution.exit_code


def write(context: Context, job: "Job", work: "Callable[[], list[StageReport]]") -> int:
    """Do work that writes to the warehouse as a run of its own, and show its result."""
    from flows.execution import execute

    return finish(context, execute(job, work))


def report_done(context: Context, report: "StageReport") -> int:
    """Show what work outside a run did: it has no row in `runs`."""
    if context.as_json:
        show_json(vars(report))
    elif not context.arguments.is_quiet:
        click.echo(report.line)
    for warning in report.warnings:
        click.echo(warning, err=True)
    return 0
