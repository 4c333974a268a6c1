"""The command `verify`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flows.cli.common.help import Command, examples
from flows.cli.common.options import SHOWS, Context, shared_options
from flows.cli.common.output import show_json
from flows.cli.common.tables import show_table

if TYPE_CHECKING:
    from tasks.certify import Difference, Verification

_MOST_SHOWN = 50
_ABOUT = ("split", "label", "judge", "vintage", "model", "score_name")


@click.command(cls=Command, epilog=examples(
    "prbench verify figures.zip",
    "prbench verify figures.zip --digest $DIGEST      as it was published",
    "prbench verify figures.zip --texts finance.parquet --texts answers.jsonl",
    "prbench verify figures.zip --texts exported/",
))  # fmt: skip
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--digest", metavar="HEX", help="Digest that was published with the certificate; another one is refused.")
@click.option("--texts", type=click.Path(path_type=Path), multiple=True, metavar="FILE|FOLDER",
              help="Also check that these texts are the certified ones: data-set files, responses as `prbench import "
              "responses` reads them, a folder of `prbench export`, or a warehouse (repeatable).")  # fmt: skip
@shared_options(place=(), output=SHOWS)
def verify(context: Context, file: Path, digest: str | None, texts: tuple[Path, ...]) -> int:
    """Recheck a certificate: recompute all its figures.

    No warehouse, configuration or model is needed. Every changed byte is found. Each figure that comes out differently
    is shown with its certified value. The exit code is 1 if anything differs.
    """
    from tasks.certify import verify as verified

    found = verified(file, digest=digest, texts=texts)
    if context.as_json:
        show_json(found.as_json)
    else:
        _show(found)
    return 0 if found.is_confirmed else 1


def _show(found: "Verification") -> None:
    _show_differences(found.differences)
    if found.texts is not None:
        for line in found.texts.differing[:_MOST_SHOWN]:
            click.echo(line)
        if len(found.texts.differing) > _MOST_SHOWN:
            click.echo(f"... and {len(found.texts.differing) - _MOST_SHOWN} more")
    for line in found.lines:
        click.echo(line)


def _show_differences(differences: Sequence["Difference"]) -> None:
    if not differences:
        return
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
