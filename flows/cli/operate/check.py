"""The command `check`."""

import click

from flows.cli.common.flow_runner import finish, run_flow
from flows.cli.common.help import Command, examples
from flows.cli.common.options import Context, shared_options
from flows.cli.common.output import show_rows


@click.command(cls=Command, epilog=examples("prbench check", "prbench check --list"))
@click.option("--list", "only_list", is_flag=True, help="List all checks with their policies without running them.")
@shared_options()
def check(context: Context, only_list: bool) -> int:
    """Run the data quality checks on all stored data.

    The policy of a check decides what happens if data fails it (quarantine: leave the task out; warn: only report;
    fail: stop the run). Policies are set under `quality` in the configuration.
    """
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
