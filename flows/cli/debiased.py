"""Scores and differences as people's labels correct them: `leaderboard --debiased` and `diff --debiased`."""

from collections.abc import Sequence

import click

from flows.cli.figures import Part, say_missing, shown
from flows.cli.options import Context

_HOW = "`prbench export labelling sheet.csv --for {}` writes a sheet of verdicts to label"


def show_debiased_scores(context: Context, *, score: str | None, by: str | None, is_hard: bool) -> int:
    """Show each model's score by the judge, by labels alone, and debiased."""
    from tasks.rules.errors import UsageError

    if by not in {None, "category"}:
        raise UsageError(f"--by {by}: --debiased knows --by category only")
    part: Part = ("debiased_categories" if by else "debiased_scores", {})
    nothing = f"No verdict of a judge has a label here yet; {_HOW.format(by or 'leaderboard')}."
    return _show(context, part, nothing, score=score, is_hard=is_hard)


def show_debiased_differences(context: Context, names: Sequence[str], *, score: str | None, is_hard: bool) -> int:
    """Show the differences of the first model from each of the others, by the judge, by labels alone, and debiased."""
    first, *others = names
    nothing = f"No two of these models have labels under one judge; {_HOW.format('leaderboard')}."
    part = ("debiased_differences", {"first": first, "others": others})
    return _show(context, part, nothing, names, score=score, is_hard=is_hard)


def _show(
    context: Context, part: Part, nothing: str, names: Sequence[str] = (), *, score: str | None, is_hard: bool
) -> int:
    from tasks.rules.errors import UsageError
    from warehouse import Warehouse

    job = context.stored_job(checked=("split", "judge") if names else ("split", "model", "judge", "vintage"))
    with Warehouse(job.warehouse).reader() as reader:
        stored = reader.select("responses", "distinct model", benchmark=job.settings.benchmark) if names else []
    known = [row["model"] for row in stored]
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise UsageError(f"{unknown}: --debiased compares models; no such model; known: {', '.join(known) or 'none'}")
    found = shown(context, job, part, nothing=nothing, vintage=context.arguments.vintage, score=score, is_hard=is_hard)
    value = "debiased_difference" if names else "debiased"
    say_missing(row[value] is None and row["no_figure"] is None for row in found.get("", ()))
    if without := [row for row in found.get("", ()) if row["no_figure"]]:
        label = min(row.get("label") or "" for row in without)
        wanted = f'"{label}"' if label else "leaderboard"
        click.echo(f"Where there is no figure, more labels give one: {_HOW.format(wanted)}.")
    if found:
        click.echo("Intervals are 95 % intervals for other tasks of the same kind.")
    return 0
