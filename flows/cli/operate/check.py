"""The command `check`."""

import json

import click

from flows.cli.common.flow_runner import finish, run_flow
from flows.cli.common.help import Command, examples
from flows.cli.common.options import RUNS, Context, shared_options
from flows.cli.common.output import show_json, show_rows


@click.command(cls=Command, epilog=examples("prbench check", "prbench check --list", "prbench check --accept"))
@click.option("--list", "only_list", is_flag=True, help="List all checks with their policies without running them.")
@click.option("--accept", is_flag=True, help="Print the lines of the configuration that accept all tasks left out.")
@shared_options(output=RUNS)
def check(context: Context, only_list: bool, accept: bool) -> int:
    """Run the data quality checks on all stored data.

    The policy of a check decides what happens if data fails it (quarantine: leave the task out; warn: only report;
    fail: stop the run). Policies are set under `quality` in the configuration.
    """
    if accept:
        return _show_accepted(context)
    if not only_list:
        return finish(context, run_flow(context, "check"))
    from tasks.benchmarks import load_benchmark
    from tasks.config import expectations_of, policies_of

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
