"""Running a flow for a command, and showing the result."""

from typing import TYPE_CHECKING

import click

from flows.cli.common.options import Context
from flows.cli.common.output import show_json

if TYPE_CHECKING:
    from flows.execution import Execution


def run_flow(context: Context, name: str, **options: bool) -> "Execution":
    """Run a flow with the options of the command."""
    from flows.execution import execute_flow

    return execute_flow(context.job, name, is_verbose=context.is_verbose, **options)


def finish(context: Context, execution: "Execution") -> int:
    """Show the result, and return the exit code."""
    if context.as_json:
        show_json(execution.as_json)
    elif not context.asked.is_quiet:
        for report in execution.reports:
            if report.stage in {"import", "export"}:
                click.echo(report.line)
    return execution.exit_code
