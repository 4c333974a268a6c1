"""The command `doctor`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from flows.cli.common.help import Command, examples
from flows.cli.common.options import SHOWS, Context, shared_options
from flows.cli.common.output import show

if TYPE_CHECKING:
    from flows.cli.operate.findings import Finding


@click.command(cls=Command, epilog=examples(
    "prbench doctor --config prbench.yaml", "prbench doctor --no-call", "prbench doctor --json",
))  # fmt: skip
@click.option("--no-call", is_flag=True, help="Do not call the models.")
@shared_options(output=SHOWS)
def doctor(context: Context, no_call: bool) -> int:
    """Check the setup.

    Checks the configuration, keys (never shown), endpoints, the Prefect server, the warehouse and the installed
    versions. Each model is called once, with one token, which shows whether its key is taken. All stored data is read
    and verified. The exit code is 2 if the configuration is broken, 3 if only stored data is damaged, and 1 for any
    other problem.
    """
    from flows.cli.operate.doctor_checks import examine, examine_broken
    from flows.run.validation import ConfigurationError

    try:
        findings = examine(context.job, may_call=not no_call)
    except ConfigurationError as error:
        _show(context, examine_broken(error))
        return error.exit_code
    _show(context, findings)
    problems = [finding for finding in findings if finding.is_ok is False]
    if problems and all(finding.is_damage for finding in problems):
        return 3
    return 1 if problems else 0


def _show(context: Context, findings: "Sequence[Finding]") -> None:
    marks = {True: "ok", False: "PROBLEM", None: "unknown"}
    rows = [(f.subject, marks[f.is_ok], f.detail) for f in findings]
    subject = "what" if context.as_json else "subject"
    show([subject, "state", "detail"], rows, "json" if context.as_json else "table", is_cut=False)
