"""The commands `report`, `doctor`, `check` and `serve`."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from flows.cli.options import RUNS, SHOWS, Context, command
from flows.cli.output import finish, run_flow, show, show_json

if TYPE_CHECKING:
    from flows.cli.doctor_checks import Finding


@command("split", "model", "judge", "vintage-shown")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR",
              help="Folder to write to.  [default: `report.folder` in the configuration, else report/ in the "
              "warehouse]")  # fmt: skip
@click.option("--serve", "is_served", is_flag=True, help="Serve the report on localhost afterwards, until interrupted.")
@click.option("--live", "is_live", is_flag=True,
              help="With --serve: open a page that follows runs in progress. The report is not written first while a "
              "run is in progress.")  # fmt: skip
@click.option("--port", type=click.IntRange(min=0, max=65535), default=8000, show_default=True, metavar="PORT",
              help="Port for --serve; 0 uses any free port.")  # fmt: skip
def report(context: Context, out: Path | None, is_served: bool, is_live: bool, port: int) -> int:
    """Write the HTML report.

    The report is a folder of pages that open without a network: leaderboards, categories, data, judges, history, and
    every verdict. It shows all stored results of the benchmark, not only those of configured models and judges;
    --split, --model, --judge and --vintage narrow it. Each benchmark has its own subfolder, and the page above them
    lists all benchmarks. Other files in the folder are left alone. With --serve, the page Compare compares two models,
    vintages (such as two nights), runs or judges, on the configured splits as `prbench diff` does.

    Examples:
      prbench report                     to report/ in the warehouse
      prbench report --benchmark NAME    the report of another benchmark
      prbench report --out board/ --vintage all
      prbench report --serve             serve it on localhost until Ctrl-C
      prbench report --serve --live      follow a run in progress in the browser
    """
    from flows.report import of_all_splits, write_report
    from warehouse import Warehouse

    if is_live and not is_served:
        raise click.UsageError("--live shows a page of the local server; add --serve")
    given = context.arguments
    stored = context.stored_job()
    job = stored if given.splits else of_all_splits(stored)
    index = (out or job.report_folder) / job.settings.benchmark / "index.html"
    warehouse = Warehouse(job.warehouse)
    # A run in progress writes the report at its end.
    if is_live and (warehouse.living_runs() or not warehouse.database.exists()):
        if context.as_json:
            show_json({"index": str(index), "bytes": None})
    else:
        written = write_report(job, out, given.vintage)
        if context.as_json:
            show_json({"index": str(written.index), "bytes": written.n_bytes})
        elif not given.is_quiet:
            click.echo(f"Report: {written.index} ({written.n_bytes / 1e6:,.1f} MB)")
    if is_served:
        from flows.report_server.server import serve_report

        # Compare and the ranking so far are about the configured splits, as `prbench diff` and `leaderboard` are.
        serve_report(stored, index, port, is_live=is_live)
    return 0


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
    show([subject, "state", "detail"], rows, context.table_format)


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
    show(["check", "stage", "policy", "meaning"], rows, context.table_format)
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


def _name_checked(_context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    if name is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise click.BadParameter(f"{name!r}: letters, digits, dots, hyphens and underscores only")
    return name


@command(output=("verbose",))
@click.option("--port", type=click.IntRange(min=1, max=65535), default=4200, show_default=True, metavar="PORT",
              help="Port of the Prefect server that is started if PREFECT_API_URL is not set.")  # fmt: skip
@click.option("--name", metavar="NAME", callback=_name_checked,
              help="Add -NAME to the names of deployments. By default, the name of the warehouse is added where the "
                   "plain names belong to another one on the same server.")  # fmt: skip
@click.option("--work-pool", metavar="NAME",
              help="Register the deployments in this work pool and exit; the pool's workers run them.")  # fmt: skip
def serve(context: Context, port: int, name: str | None, work_pool: str | None) -> int:
    """Run the nights on schedule, until interrupted.

    Nights start on the schedule in the configuration. Backfills, checks and compactions can be started in Prefect's UI.

    Examples:
      prbench serve --config prbench.yaml
      PREFECT_API_URL=http://prefect:4200/api prbench serve
      prbench serve --work-pool evals
    """
    from flows.execution import prepare

    prepare(is_verbose=context.is_verbose)
    from flows.serving import serve as serve_deployments

    return serve_deployments(context.job, context.arguments, port=port, name=name, work_pool=work_pool)
