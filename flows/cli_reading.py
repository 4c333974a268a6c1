"""The commands that only read: they start no Prefect and import nothing heavy."""

import click

from flows.cli_status import status
from flows.options import Context, examples, shared_options
from flows.output import show_rows


@click.command(epilog=examples("prbench doctor --config prbench.yaml"))
@shared_options
def doctor(context: Context) -> int:
    """Look whether everything is in place: configuration, keys, endpoints, warehouse, versions."""
    from flows.doctor import examine

    findings = examine(context.job)
    marks = {True: "ok", False: "PROBLEM", None: "unknown"}
    show_rows(context.as_json, ["what", "state", "detail"], [(f.subject, marks[f.is_ok], f.detail) for f in findings])
    return 1 if any(finding.is_ok is False for finding in findings) else 0


READING_COMMANDS = (status, doctor)
