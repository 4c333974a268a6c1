"""The commands that only read: they start no Prefect and import nothing heavy."""

import click

from flows.cli.common.options import Context, examples, shared_options
from flows.cli.common.output import show
from flows.cli.look.status import status


@click.command(epilog=examples("prbench doctor --config prbench.yaml"))
@shared_options
def doctor(context: Context) -> int:
    """Look whether everything is in place: configuration, keys, endpoints, warehouse, versions.

    All that is stored is read and verified. The exit code is 3 if something of it is damaged, and 1 for other problems.
    """
    from flows.cli.operate.doctor_checks import examine

    findings = examine(context.job)
    marks = {True: "ok", False: "PROBLEM", None: "unknown"}
    rows = [(f.subject, marks[f.is_ok], f.detail) for f in findings]
    show(["what", "state", "detail"], rows, "json" if context.as_json else "table", is_cut=False)
    problems = [finding for finding in findings if finding.is_ok is False]
    if problems and all(finding.is_damage for finding in problems):
        return 3
    return 1 if problems else 0


READING_COMMANDS = (status, doctor)
