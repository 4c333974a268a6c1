"""The commands `doctor` and `check`."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from flows.cli.flow_runner import finish, run_flow
from flows.cli.options import RUNS, SHOWS, Context, command
from flows.cli.output import show, show_json, show_rows

if TYPE_CHECKING:
    from flows.cli.doctor_checks import Finding


@command(output=SHOWS)
@click.option("--no-call", is_flag=True, help="Do not call the models.")
def doctor(context: Context, no_call: bool) -> int:
    """Check the setup.

    Checks the configuration, keys (never shown), endpoints, the Prefect server, the warehouse and the installed
    versions. Each model is called once, with one token, which shows whether its key is taken. All stored data is read
    and verified. The exit code is 2 if the configuration is broken, 3 if only stored data is damaged, and 1 for any
    other problem.

    Examples:
      prbench doctor --config prbench.yaml
      prbench doctor --no-call
      prbench doctor --json
    """
    from flows.cli.doctor_checks import examine, examine_broken
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
    show([subject, "state", "detail"], rows, "json" if context.as_json else "table")


@command(output=RUNS)
@click.option("--list", "only_list", is_flag=True, help="List all checks with their policies without running them.")
@click.option("--accept", is_flag=True, help="Print the lines of the configuration that accept all tasks left out.")
def check(context: Context, only_list: bool, accept: bool) -> int:
    """Run the data quality checks on all stored data.

    The policy of a check decides what happens if data fails it (quarantine: leave the task out; warn: only report;
    fail: stop the run). Policies are set under `quality` in the configuration.

    Examples:
      prbench check
      prbench check --list
      prbench check --accept
    """
    if accept:
        return _show_accepted(context)
    if not only_list:
        return finish(context, run_flow(context, "check"))
    from tasks.benchmarks import load_benchmark
    from tasks.check import expectations_of, policies_of

    job = context.job
    expectations = expectations_of(load_benchmark(job.settings.benchmark))
    policies = policies_of(job, expectations)
    rows = list(dict.fromkeys((each.check, each.suite, policies[each.check], each.meaning) for each in expectations))
    show_rows(context.as_json, ["check", "stage", "policy", "meaning"], rows)
    return 0


def _show_accepted(context: Context) -> int:
    """Print the configuration's lines by which no task that is left out now leads to exit code 3 or to an alert."""
    from warehouse import Warehouse

    query = "select task_id, string_agg(detail, '; ' order by check_name) as why from quarantine "
    where = "where benchmark = ? and dataset_revision = ? and severity = 'quarantine' group by task_id order by task_id"
    job = context.job
    with Warehouse(job.warehouse).reader() as reader:
        rows = reader.rows(query + where, [job.settings.benchmark, job.data.revision])
    if context.as_json:
        show_json([row["task_id"] for row in rows])
    elif rows:
        lines = [f"    - {json.dumps(row['task_id'])}  # {row['why'].partition(';')[0]}" for row in rows]
        click.echo("\n".join(["quality:", "  accepted:", *lines]))
    else:
        click.echo("No task is left out.", err=True)
    return 0
