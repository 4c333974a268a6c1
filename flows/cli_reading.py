"""The commands that only read: they start no Prefect and import nothing heavy."""

import click

from flows.options import Context, examples, shared_options
from flows.output import show_rows


@click.command(epilog=examples("prbench status", "prbench status --json"))
@shared_options
def status(context: Context) -> int:
    """Show what is wanted, done, failed and missing: model x trial x judge."""
    from tasks.coverage import coverage

    columns = ["model", "trial", "judge", "judge_trial", "wanted", "done", "missing", "failed", "share", "causes"]
    rows = [
        (
            cell.model, cell.trial, cell.judge or "(responses)", cell.judge_trial, cell.wanted, cell.done,
            cell.missing, sum(cell.failures.values()), cell.share,
            ", ".join(f"{number} {cause}" for cause, number in sorted(cell.failures.items())),
        )
        for cell in coverage(context.job)
    ]  # fmt: skip
    show_rows(context.as_json, columns, rows)
    return 0


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
