"""The commands for the setup and the stored data: report, checks, nights, backups, certificates."""

import json
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flows.cli.options import (
    PATH,
    WAREHOUSE,
    Context,
    Group,
    command,
    number,
    run_command,
    state_command,
)
from flows.cli.output import finish, report_done, run_flow, show, show_json, show_table

if TYPE_CHECKING:
    from tasks.certify.verifying import Verification


@command("split", "model", "judge", "vintage-shown")
@click.option(
    "--out",
    type=PATH,
    metavar="DIR",
    help=(
        "Folder to write to.  [default: `report.folder` in the configuration, else report/ in the "
        "warehouse]"
    ),
)
@click.option(
    "--serve",
    "is_served",
    is_flag=True,
    help="Serve the report on localhost afterwards, until interrupted.",
)
@click.option(
    "--live",
    "is_live",
    is_flag=True,
    help=(
        "With --serve: open a page that follows runs in progress. The report is not written first"
        " while a run is in progress."
    ),
)
@click.option(
    "--port",
    type=click.IntRange(min=0, max=65535),
    default=8000,
    show_default=True,
    metavar="PORT",
    help="Port for --serve; 0 uses any free port.",
)
def report(context: Context, out: Path | None, is_served: bool, is_live: bool, port: int) -> None:
    """Write the HTML report.

    The report is a folder of pages that open without a network: leaderboards, categories, data,
    judges, history, and every verdict. It shows all stored results of the benchmark, not only those
    of configured models and judges; --split, --model, --judge and --vintage narrow it. Each
    benchmark has its own subfolder, and the page above them lists all benchmarks. Other files in
    the folder are left alone. With --serve, the page Compare compares two models, vintages (such as
    two nights), runs or judges, on the configured splits as `prbench diff` does.

    Examples:
      prbench report                     to report/ in the warehouse
      prbench report --benchmark NAME    the report of another benchmark
      prbench report --out board/ --vintage all
      prbench report --serve             serve it on localhost until Ctrl-C
      prbench report --serve --live      follow a run in progress in the browser
    """
    if is_live and not is_served:
        raise click.UsageError("--live shows a page of the local server; add --serve")
    arguments = context.arguments
    with context.working():
        from flows.report import write_report
        from warehouse import Warehouse

        stored_job = context.stored_job()
        report_job = stored_job if arguments.splits else stored_job.on_splits(())
        index = (out or stored_job.report_folder) / stored_job.benchmark / "index.html"
        warehouse = Warehouse(stored_job.warehouse)
        n_bytes = None
        # A run in progress writes the report at its own end.
        if not is_live or (warehouse.database.exists() and not warehouse.living_runs()):
            n_bytes = write_report(report_job, out, arguments.vintage)
    if context.as_json:
        show_json(context, {"index": str(index), "bytes": n_bytes})
    elif n_bytes is not None and not arguments.is_quiet:
        click.echo(f"Report: {index} ({n_bytes / 1e6:,.1f} MB)")
    if is_served:
        from flows.report_server.server import serve_report

        # Compare and the ranking so far use the configured splits, as `prbench diff` and
        # `leaderboard` do.
        serve_report(stored_job, index, port, is_live=is_live)


_DOCTOR_WIDTH = 100
"""Largest number of characters in a line of `prbench doctor`."""


@state_command()
@click.option("--no-call", is_flag=True, help="Do not call the models.")
def doctor(context: Context, no_call: bool) -> int:
    """Check the setup.

    Checks the configuration, keys (never shown), endpoints, the Prefect server, the warehouse and
    the installed versions. Each model is called once, with one token, to test its key. All stored
    tables are read and verified, and so is every call and sum of costs in the ledger, which takes
    some seconds for a million calls. `prbench aggregate` repairs damage. The exit code is 2 if the
    configuration is broken, 3 if only stored data is damaged, and 1 for any other problem.

    Examples:
      prbench doctor --config prbench.yaml
      prbench doctor --no-call
      prbench doctor --json
    """
    from flows.cli.doctor_checks import examine

    findings = examine(context.job, may_call=not no_call)
    problems = [finding for finding in findings if finding.is_ok is False]
    rows = [(finding.subject, finding.state, finding.detail) for finding in findings]
    if context.as_json:
        show(context, ["what", "state", "detail"], rows)
    else:
        columns = ["subject", "state", "detail"]
        show_table(columns, rows, essential=columns, most_width=_DOCTOR_WIDTH)
    if not problems:
        return 0
    return 3 if all(finding.is_damage for finding in problems) else 1


@run_command()
@click.option(
    "--list",
    "is_list",
    is_flag=True,
    help="List all checks with their policies without running them.",
)
@click.option(
    "--accept",
    is_flag=True,
    help="Print the lines of the configuration that accept all tasks left out.",
)
def check(context: Context, is_list: bool, accept: bool) -> int:
    """Run the data quality checks on all stored data.

    The policy of a check decides what happens if data fails it (quarantine: leave the task out;
    warn: only report; fail: stop the run). Policies are set under `quality` in the configuration.

    Examples:
      prbench check
      prbench check --list
      prbench check --accept
    """
    if accept:
        return _show_accepted(context)
    if not is_list:
        return finish(context, run_flow(context, "check"))
    from tasks.benchmarks import load_benchmark
    from tasks.check import expectations_of, policies_of

    job = context.job
    expectations = expectations_of(load_benchmark(job.benchmark))
    policies = policies_of(job, expectations)
    rows = []
    for expectation in expectations:
        check_name = expectation.check
        row = (check_name, expectation.suite, policies[check_name], expectation.meaning)
        if row not in rows:  # a check may have several expectations
            rows.append(row)
    show(context, ["check", "stage", "policy", "meaning"], rows)
    return 0


def _show_accepted(context: Context) -> int:
    """Print configuration lines that accept the tasks left out now.

    They then cause no exit code 3 and no alert.
    """
    from warehouse import Warehouse

    query = (
        "select task_id, string_agg(detail, '; ' order by check_name) as reasons from quarantine"
        " where benchmark = $benchmark and dataset_revision = $dataset_revision"
        " and severity = 'quarantine' group by task_id order by task_id"
    )
    job = context.job
    with Warehouse(job.warehouse).reader() as reader:
        rows = reader.rows(query, job.key)
    if context.as_json:
        show_json(context, [row["task_id"] for row in rows])
        return 0
    if not rows:
        click.echo("No task is left out.", err=True)
        return 0
    click.echo("quality:\n  accepted:")
    for row in rows:
        reason = row["reasons"].partition(";")[0]
        click.echo(f"    - {json.dumps(row['task_id'])}  # {reason}")
    return 0


@command(output_options=("verbose",))
@click.option(
    "--port",
    type=click.IntRange(min=1, max=65535),
    default=4200,
    show_default=True,
    metavar="PORT",
    help="Port of the Prefect server that is started if PREFECT_API_URL is not set.",
)
@click.option(
    "--name",
    metavar="NAME",
    help=(
        "Add -NAME to the names of deployments. By default, the name of the warehouse is added if"
        " another warehouse on the same server already has the plain names."
    ),
)
@click.option(
    "--work-pool",
    metavar="NAME",
    help="Register the deployments in this work pool and exit; the pool's workers run them.",
)
def serve(context: Context, port: int, name: str | None, work_pool: str | None) -> None:
    """Run the nights on schedule, until interrupted.

    Nights start on the schedule in the configuration. Runs, backfills, checks and compactions can
    be started in Prefect's UI.

    Examples:
      prbench serve --config prbench.yaml
      PREFECT_API_URL=http://prefect:4200/api prbench serve
      prbench serve --work-pool evals
    """
    from flows.execution import silence_libraries

    silence_libraries(is_verbose=context.is_verbose)  # before Prefect is imported, which reads it
    from flows.serving import serve as serve_deployments

    serve_deployments(context.job, context.arguments, port=port, name=name, work_pool=work_pool)


@command(location_options=WAREHOUSE)
@click.argument("target", metavar="FOLDER|ADDRESS")
@click.option(
    "--verify", is_flag=True, help="Also check the files copied earlier, and replace damaged ones."
)
def backup(context: Context, target: str, verify: bool) -> None:
    """Copy the warehouse to a folder or a store.

    The copy is consistent, even if a run is writing. `prbench restore` restores it.

    Examples:
      prbench backup /mnt/backup/prbench             only new files are copied
      prbench backup /mnt/backup/prbench --verify    also check earlier copies
      prbench backup s3://bucket/prbench             in a store
    """
    from tasks.bundles.stores import open_location
    from tasks.maintain.backup import backup as copy_warehouse

    report_done(context, copy_warehouse(context.job, open_location(target), must_verify=verify))


@command(location_options=WAREHOUSE)
@click.argument("source", metavar="FOLDER|ADDRESS")
def restore(context: Context, source: str) -> None:
    """Restore a backup into an empty warehouse.

    Every file is verified before anything is written.

    Examples:
      prbench restore /mnt/backup/prbench --warehouse restored/
      prbench restore s3://bucket/prbench --warehouse restored/
    """
    from tasks.bundles.stores import open_location
    from tasks.maintain.backup import restore as restore_backup

    report_done(context, restore_backup(context.job, open_location(source)))


@command()
@click.option(
    "--api-base",
    "address",
    required=True,
    metavar="URL",
    help="Address that the environment gives the models, exactly as `prbench doctor` shows it.",
)
def adopt(context: Context, address: str) -> None:
    """Take over results that were stored without the address of their model.

    An address from the environment (such as OPENAI_BASE_URL) is part of a model's identity, as a
    configured `api_base` is. Results stored before that was so are not used, because they may come
    from another server. If they come from this one, this command gives them the identity with the
    address: responses, verdicts and raw replies of all configured models and judges that the
    environment sends there. No model is called, and running it again changes nothing. No run may be
    using the warehouse.

    Examples:
      prbench adopt --api-base http://localhost:8000/v1
    """
    from tasks.maintain.adoption import adopt as adopt_results

    report_done(context, adopt_results(context.job, address))


@run_command(location_options=WAREHOUSE)
def compact(context: Context) -> int:
    """Merge small files and delete old raw replies.

    `retention.replies_days` in the configuration sets how long raw replies (what providers sent)
    are kept. Results stay the same.

    Examples:
      prbench compact
      prbench compact --warehouse results/
    """
    return finish(context, run_flow(context, "compact"))


@command(location_options=WAREHOUSE)
@click.argument("target", metavar="FOLDER|ADDRESS")
@number("--keep n_kept", None, "Keep only the last N publications.  [default: all]")
def publish(context: Context, target: str, n_kept: int | None) -> None:
    """Publish database, report and tables to a folder or a store.

    Each publication has a folder of its own, which never changes: the database, the report, and
    each table as Parquet files. `current.json` names the latest one and is replaced last. An
    unchanged state is not published again. The address of a store is one that fsspec knows, such as
    s3://bucket/prefix or gs://bucket/prefix.

    Examples:
      prbench publish s3://bucket/results
      prbench publish s3://bucket/results --keep 30    delete older publications
      prbench publish /mnt/shared/results
    """
    from tasks.bundles.stores import open_location
    from tasks.exports.tables import publish as write_publication

    report_done(context, write_publication(context.job, open_location(target), n_kept=n_kept))


@command()
@click.argument("file", type=PATH)
def certify(context: Context, file: Path) -> None:
    """Write a certificate: figures that others can recheck.

    It is one ZIP file with the leaderboards and everything that they are computed from: weights,
    labels, verdicts, hashes of all texts, the runs' configurations, versions, and the SQL of the
    scores. It holds no texts and no keys. `prbench verify` computes every figure again.

    Publish the printed digest elsewhere than the file. Then a changed file is detected, even if the
    digest in it was changed too.

    Examples:
      prbench certify figures.zip
      prbench verify figures.zip      recheck it, on any machine
    """
    from tasks.certify.certifying import certify as write_certificate

    certificate = write_certificate(context.stored_job(), file)
    if context.as_json:
        show_json(context, certificate)
    elif not context.arguments.is_quiet:
        counts = "{verdicts} verdicts on {responses} responses".format(**certificate["n_rows"])
        click.echo(
            f"certify: {counts}, in {certificate['file']} ({certificate['n_bytes'] / 1e6:.1f} MB)"
        )
        click.echo(f"digest: {certificate['digest']}")


@state_command(location_options=())
@click.argument("target", metavar="FILE|FOLDER|ADDRESS")
@click.option(
    "--digest",
    metavar="HEX",
    help="Digest that was published with the certificate; another one is refused.",
)
@click.option(
    "--texts",
    type=PATH,
    multiple=True,
    metavar="FILE|FOLDER",
    help=(
        "Also check that these texts are the certified ones: data-set files, responses as `prbench"
        " import responses` reads them, a folder of `prbench export`, or a warehouse (repeatable)."
    ),
)
def verify(context: Context, target: str, digest: str | None, texts: tuple[Path, ...]) -> int:
    """Recheck a certificate, a backup, an export or a publication.

    No warehouse, configuration or model is needed. Every changed byte is detected. All figures of a
    certificate are recomputed, and each different result is shown with its certified value. The
    exit code is 1 if anything differs.

    Examples:
      prbench verify figures.zip
      prbench verify figures.zip --digest $DIGEST      with the published digest
      prbench verify figures.zip --texts finance.parquet --texts responses.jsonl
      prbench verify figures.zip --texts exported/
      prbench verify s3://bucket/prbench               not only certificates
    """
    from tasks.bundles.stores import open_location
    from tasks.certify import verifying

    location = open_location(target)
    if not isinstance(location, Path) or location.is_dir():
        if digest or texts:
            raise click.UsageError("--digest and --texts are for certificates")
        report_done(context, verifying.verify_files(location))
        return 0
    verification = verifying.verify(location, digest=digest, texts=texts)
    if context.as_json:
        show_json(context, verification.as_json)
    else:
        _show_verification(verification)
    return 0 if verification.is_confirmed else 1


_FIGURE_KEY = ["leaderboard", "split", "label", "judge", "vintage", "model", "score_name"]
_FIGURE_VALUES = ["figure", "certified", "recomputed"]


def _show_verification(verification: "Verification") -> None:
    if verification.differences:
        rows = []
        for difference in verification.differences:
            key: list[Any] = [difference.leaderboard]
            key += [difference.row.get(name) for name in _FIGURE_KEY[1:]]
            # With all digits, which may differ.
            values = [difference.column, str(difference.certified), str(difference.recomputed)]
            rows.append(key + values)
        essential = ["leaderboard", "split", "judge", "model", *_FIGURE_VALUES]
        show_table([*_FIGURE_KEY, *_FIGURE_VALUES], rows, essential=essential)
    if verification.texts:
        for line in verification.texts.differing:
            click.echo(line)
    for line in verification.lines:
        click.echo(line)


_RESPONSE_COLUMNS = [
    "response_id",
    "model",
    "task_id",
    "trial",
    "vintage",
    "source",
    "status",
    "chars_alnum",
]
_ESSENTIAL_RESPONSE_COLUMNS = ["response_id", "model", "task_id", "trial", "vintage", "chars_alnum"]


@click.group(cls=Group)
def remove() -> None:
    """Remove single responses.

    `prbench remove COMMAND --help` lists the options.

    Examples:
      prbench remove response 4f1c2a9be0d37788 --reason 'endless repetition'
    """


@command(
    "model",
    "task",
    "trial",
    "vintage-only",
    group=remove,
    name="response",
    location_options=WAREHOUSE,
)
@click.argument("response_ids", nargs=-1, metavar="[RESPONSE_ID]...")
@number("--longer-than", None, "Only responses with more than N letters and digits.", least=0)
@click.option(
    "--reason",
    default="",
    metavar="TEXT",
    help="Reason, stored in the table `removals`.",
)
@click.option("--dry-run", is_flag=True, help="List the responses without removing any.")
def remove_response(
    context: Context,
    response_ids: tuple[str, ...],
    longer_than: int | None,
    reason: str,
    dry_run: bool,
) -> int:
    """Remove responses with all their verdicts.

    A response is removed if it is one of the given ids (if any) and matches every option. This
    cannot be undone. The next run samples it again with a new call. No run may be using the
    warehouse.

    Examples:
      prbench remove response --longer-than 1000000 --dry-run
      prbench remove response 4f1c2a9be0d37788 --reason 'endless repetition'
      prbench remove response --model gpt-5.6-sol-high --task t17 --trial 2
    """
    from tasks.maintain.removal import ResponseChoice, chosen_responses
    from tasks.maintain.removal import remove as remove_responses

    arguments = context.arguments
    choice = ResponseChoice(
        response_ids,
        arguments.named_models,
        arguments.named_tasks,
        arguments.named_trials,
        arguments.vintage,
        longer_than,
    )
    if not dry_run:
        report_done(context, remove_responses(context.job, choice, reason))
        return 0
    rows = list(map(itemgetter(*_RESPONSE_COLUMNS), chosen_responses(context.job, choice)))
    if rows or context.as_json:
        show(context, _RESPONSE_COLUMNS, rows, essential=_ESSENTIAL_RESPONSE_COLUMNS)
    else:
        click.echo("No stored response matches.")
    return 0
