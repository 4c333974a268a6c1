"""The command `certify`."""

from pathlib import Path

import click

from flows.cli.common.help import Command, examples
from flows.cli.common.options import Context, shared_options
from flows.cli.common.output import show_json


@click.command(cls=Command, epilog=examples(
    "prbench certify figures.zip",
    "prbench verify figures.zip      what somebody else does with it",
))  # fmt: skip
@click.argument("file", type=click.Path(path_type=Path))
@shared_options()
def certify(context: Context, file: Path) -> int:
    """Write a certificate: figures that others can recheck.

    It is one ZIP file with the leaderboards and everything that they are computed from: weights, labels, verdicts,
    hashes of all texts, the runs' configurations, versions, and the SQL of the scores. It holds no texts and no keys.
    `prbench verify` computes every figure again.

    Publish the digest that is shown in another place than the file. Then a changed file is found, even if its own
    digest was changed too.
    """
    from tasks.certify import certify as certified

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
