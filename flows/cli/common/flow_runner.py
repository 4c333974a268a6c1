"""Running a flow for a command, and reporting what it did."""

from typing import TYPE_CHECKING

import click

from flows.cli.common.options import Context
from flows.cli.common.output import show_json

if TYPE_CHECKING:
    from flows.execution import Execution
    from tasks.run import StageReport


def run_flow(context: Context, name: str, **options: bool) -> "Execution":
    """Run a flow with the options of the command."""
    from flows.execution import execute_flow

    return execute_flow(context.job, name, is_verbose=context.is_verbose, **options)


def finish(context: Context, execution: "Execution") -> int:
    """Show the result, and return the exit code."""
    if context.as_json:
        show_json(execution.as_json)
    elif not context.arguments.is_quiet:
        for report in execution.reports:
            if report.stage in {"import", "export"}:
                click.echo(report.line)
    return execution.exit_code


def report_done(context: Context, report: "StageReport") -> int:
    """Show what work outside a run did: it has no row in `runs`."""
    if context.as_json:
        show_json(vars(report))
    elif not context.arguments.is_quiet:
        click.echo(report.line)
    for warning in report.warnings:
        click.echo(warning, err=True)
    return 0
