"""The commands that save a warehouse, publish and certify results, and remove responses."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flows.cli.options import RUNS, SHOWS, WAREHOUSE, Context, Group, command
from flows.cli.output import finish, report_done, run_flow, show, show_json, show_table

if TYPE_CHECKING:
    from tasks.certify.verifying import Difference


@command(place=WAREHOUSE)
@click.argument("target", metavar="FOLDER|ADDRESS")
@click.option("--verify", is_flag=True, help="Also check the files copied earlier, and replace damaged ones.")
def backup(context: Context, target: str, verify: bool) -> int:
    """Copy the warehouse to a folder or a store.

    The copy is consistent, even if a run is writing. `prbench restore` restores it.

    Examples:
      prbench backup /mnt/backup/prbench             only new files are copied
      prbench backup /mnt/backup/prbench --verify    also check earlier copies
      prbench backup s3://bucket/prbench             in a store
    """
    from tasks.bundles.stores import place
    from tasks.maintain.backup import backup as made

    return report_done(context, made(context.job, place(target), must_verify=verify))


@command(place=WAREHOUSE)
@click.argument("source", metavar="FOLDER|ADDRESS")
def restore(context: Context, source: str) -> int:
    """Restore a backup into an empty warehouse.

    Every file is verified before anything is written.

    Examples:
      prbench restore /mnt/backup/prbench --warehouse restored/
      prbench restore s3://bucket/prbench --warehouse restored/
    """
    from tasks.bundles.stores import place
    from tasks.maintain.backup import restore as restored

    return report_done(context, restored(context.job, place(source)))


@command(place=WAREHOUSE, output=RUNS)
def compact(context: Context) -> int:
    """Merge small files and delete old raw replies.

    `retention.replies_days` in the configuration sets how long raw replies (what providers sent) are kept. Results stay
    the same.

    Examples:
      prbench compact
      prbench compact --warehouse results/
    """
    return finish(context, run_flow(context, "compact"))


@command(place=WAREHOUSE)
@click.argument("target", metavar="FOLDER|ADDRESS")
@click.option("--keep", "n_kept", type=click.IntRange(min=1), metavar="N",
              help="Keep only the last N publications.  [default: all]")  # fmt: skip
def publish(context: Context, target: str, n_kept: int | None) -> int:
    """Publish database, report and tables to a folder or a store.

    Each publication has a folder of its own, which never changes: the database, the report, and each table as Parquet
    files. `current.json` names the latest one and is replaced last. An unchanged state is not published again. The
    address of a store is one that fsspec knows, such as s3://bucket/prefix or gs://bucket/prefix.

    Examples:
      prbench publish s3://bucket/results
      prbench publish s3://bucket/results --keep 30    delete older publications
      prbench publish /mnt/shared/results
    """
    from tasks.bundles.stores import place
    from tasks.exports.publishing import publish as published

    return report_done(context, published(context.job, place(target), n_kept=n_kept))


@command()
@click.argument("file", type=click.Path(path_type=Path))
def certify(context: Context, file: Path) -> int:
    """Write a certificate: figures that others can recheck.

    It is one ZIP file with the leaderboards and everything that they are computed from: weights, labels, verdicts,
    hashes of all texts, the runs' configurations, versions, and the SQL of the scores. It holds no texts and no keys.
    `prbench verify` computes every figure again.

    Publish the digest that is shown in another place than the file. Then a changed file is found, even if its own
    digest was changed too.

    Examples:
      prbench certify figures.zip
      prbench verify figures.zip      what somebody else does with it
    """
    from tasks.certify.certifying import certify as certified

    made = certified(context.stored_job(checked=()), file)
    if context.as_json:
        show_json(vars(made))
    elif not context.arguments.is_quiet:
        n_figures = sum(n for name, n in made.n_rows.items() if name.endswith("leaderboard"))
        click.echo(
            f"certify: {made.n_rows['verdicts']} verdicts on {made.n_rows['responses']} responses, and {n_figures} "
            f"leaderboard rows, in {made.file} ({made.n_bytes / 1e6:.1f} MB)"
        )
        click.echo(f"digest: {made.digest}")
    return 0


_MOST_SHOWN = 50
_ABOUT = ("split", "label", "judge", "vintage", "model", "score_name")


@command(place=(), output=SHOWS)
@click.argument("target", metavar="FILE|FOLDER|ADDRESS")
@click.option("--digest", metavar="HEX", help="Digest that was published with the certificate; another one is refused.")
@click.option("--texts", type=click.Path(path_type=Path), multiple=True, metavar="FILE|FOLDER",
              help="Also check that these texts are the certified ones: data-set files, responses as `prbench import "
              "responses` reads them, a folder of `prbench export`, or a warehouse (repeatable).")  # fmt: skip
def verify(context: Context, target: str, digest: str | None, texts: tuple[Path, ...]) -> int:
    """Recheck a certificate, a backup, an export or a publication.

    No warehouse, configuration or model is needed. Every changed byte is found. Of a certificate all figures are
    recomputed, and each that comes out differently is shown with its certified value. The exit code is 1 if anything
    differs.

    Examples:
      prbench verify figures.zip
      prbench verify figures.zip --digest $DIGEST      as it was published
      prbench verify figures.zip --texts finance.parquet --texts answers.jsonl
      prbench verify figures.zip --texts exported/
      prbench verify s3://bucket/prbench               not only certificates
    """
    from tasks.bundles.stores import place
    from tasks.certify import verifying

    given = place(target)
    if not isinstance(given, Path) or given.is_dir():
        if digest or texts:
            raise click.UsageError("--digest and --texts are for certificates")
        return report_done(context, verifying.verify_files(given))
    found = verifying.verify(given, digest=digest, texts=texts)
    if context.as_json:
        show_json(found.as_json)
    else:
        if found.differences:
            _show_differences(found.differences)
        for line in (*(found.texts.differing if found.texts else ()), *found.lines):
            click.echo(line)
    return 0 if found.is_confirmed else 1


def _show_differences(differences: Sequence["Difference"]) -> None:
    columns = ["leaderboard", *(name.removesuffix("_name") for name in _ABOUT), "figure", "certified", "recomputed"]
    rows = [
        [each.leaderboard, *(each.row.get(name) for name in _ABOUT), each.column or "row", *map(_exact, each.values)]
        for each in differences[:_MOST_SHOWN]
    ]
    show_table(columns, rows)
    if len(differences) > _MOST_SHOWN:
        click.echo(f"... and {len(differences) - _MOST_SHOWN} more (--json shows all)")


def _exact(value: Any) -> str:
    """A figure with the digits in which it may differ."""
    return f"{value:.10g}" if isinstance(value, float) else "–" if value is None else str(value)


_SHOWN = ["response_id", "model", "task_id", "trial", "vintage", "source", "status", "chars_alnum"]


@click.group(cls=Group)
def remove() -> None:
    """Remove single responses.

    `prbench remove COMMAND --help` lists the options.

    Examples:
      prbench remove response 4f1c2a9be0d37788 --reason 'endless repetition'
    """


@command("model", "task", "trial", "vintage-only", of=remove, name="response", place=WAREHOUSE)
@click.argument("response_ids", nargs=-1, metavar="[RESPONSE_ID]...")
@click.option("--longer-than", type=click.IntRange(min=0), metavar="N",
              help="Only responses with more than N letters and digits.")  # fmt: skip
@click.option("--reason", default="", metavar="TEXT", help="Reason, stored in the table `removals`.")
@click.option("--dry-run", is_flag=True, help="List the responses without removing any.")
def remove_response(
    context: Context, response_ids: tuple[str, ...], longer_than: int | None, reason: str, dry_run: bool
) -> int:
    """Remove responses with all their verdicts.

    A response is removed if it is one of the given ids (if any) and matches every option. This cannot be undone. The
    next run samples it again with a new call. No run may be using the warehouse.

    Examples:
      prbench remove response --longer-than 1000000 --dry-run
      prbench remove response 4f1c2a9be0d37788 --reason 'endless repetition'
      prbench remove response --model gpt-5-high --task t17 --trial 2
    """
    from tasks.maintain.upkeep import Choice, chosen
    from tasks.maintain.upkeep import remove as removed

    given = context.arguments
    choice = Choice(response_ids, given.models, given.tasks, given.trial_numbers, given.vintage, longer_than)
    if dry_run:
        shown = [tuple(row[name] for name in _SHOWN) for row in chosen(context.job, choice)]
        if shown or context.as_json:
            show(_SHOWN, shown, context.table_format)
        else:
            click.echo("No stored response matches.")
        return 0
    return report_done(context, removed(context.job, choice, reason))
