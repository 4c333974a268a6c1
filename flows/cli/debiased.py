"""Scores and differences as people's labels correct them: `leaderboard --debiased` and `diff --debiased`."""

from collections.abc import Sequence

import click

from flows.cli.figures import Records, answer, say_small, show_figures
from flows.cli.leaderboard_table import TITLES, is_worth_showing
from flows.cli.options import Context
from flows.cli.output import shows_records

_HOW = "`prbench export labelling sheet.csv --for {}` writes a sheet of verdicts to label"


def show_debiased_scores(context: Context, *, score: str | None, by: str | None, is_hard: bool) -> int:
    """Show each model's score by the judge, by labels alone, and debiased."""
    from tasks.benchmarks import load_benchmark
    from tasks.rules.errors import UsageError

    if by not in {None, "category"}:
        raise UsageError(f"--by {by}: --debiased knows --by category only")
    job = context.stored_job()
    if by is not None and score is None:
        score = load_benchmark(job.settings.benchmark).criteria_score.score_name
    records = answer(job, "debiased/scores", _selection(context) | {
        "models": list(context.arguments.models), "breakdown": by or "all", "is_hard": is_hard,
    }, score=score)  # fmt: skip
    if_empty = f"No verdict of a judge has a label here yet; {_HOW.format(by or 'leaderboard')}."
    if not shows_records(job, records, context.as_json, if_empty):
        return 0
    tables: dict[tuple[str, str], Records] = {}
    for row in records:
        tables.setdefault((row["split"], row["judge"]), []).append(row)
    for (split, judge), rows in tables.items():
        show_figures(f"{split}: {rows[0]['score_name']}, judged by {judge}, before clipping", rows, {
            **({by: "label"} if by else {}), "model": "model", **_told_apart(rows),
            "judge's own": ("judge_score", "judge_ci_low", "judge_ci_high"),
            "labels alone": "labels_alone±",
            "debiased": "debiased±",
            "use of the judge": "judge_power", "labels": "n_labels", "in tasks": "n_tasks_labelled", "tasks": "n_tasks",
            "people": "n_people", "no figure": "no_figure",
        })  # fmt: skip
        # What labels say that are in no figure, since nobody knows how they were chosen.
        for row in rows:
            if row["n_unsampled_labels"]:
                click.echo(
                    f"{row['model']}{', ' + row['label'] if row['label'] else ''}: {row['n_unsampled_labels']} more "
                    "labels without a known probability, not used; "
                    f"label minus judge {row['unsampled_mean_error']:+.3f}"
                )
    _show_notes(records, "debiased")
    return 0


def _selection(context: Context) -> dict[str, object]:
    given = context.arguments
    return {"graders": list(given.judges), "splits": list(given.splits), "vintage": given.vintage}


def _show_notes(records: Records, value: str) -> None:
    if any(row[value] is None and row["no_figure"] is None for row in records):
        click.echo("Some figures are missing; `prbench aggregate` computes them.")
    elif any(row["no_figure"] for row in records):
        without = sorted({row.get("label") or "" for row in records if row["no_figure"]})
        drawn_for = f'"{without[0]}"' if without[0] else "leaderboard"
        click.echo(f"Where there is no figure, more labels give one: {_HOW.format(drawn_for)}.")
    click.echo("Intervals are 95 % intervals for other tasks of the same kind.")
    say_small(records)


def _told_apart(records: Records) -> dict[str, str]:
    """The columns that tell rows apart which have the same judge and model, titled as on the leaderboard."""
    names = ("vintage", "judge_trial", "grading", "judge_config_hash", "template_hash")
    return {TITLES.get(name, name): name for name in names if is_worth_showing(name, records)}


def show_debiased_differences(context: Context, names: Sequence[str], *, score: str | None, is_hard: bool) -> int:
    """Show the differences of the first model from each of the others, by the judge, by labels alone, and debiased."""
    from tasks.rules.errors import UsageError
    from warehouse import Warehouse

    job = context.stored_job(checked=("split", "judge"))
    with Warehouse(job.warehouse).reader() as reader:
        query = "select distinct model from responses where benchmark = ? order by 1"
        known = [row["model"] for row in reader.rows(query, [job.settings.benchmark])]
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise UsageError(f"{unknown}: --debiased compares models; no such model; known: {', '.join(known) or 'none'}")
    first, *others = names
    records = answer(job, "debiased/differences", _selection(context) | {
        "first": first, "others": others, "is_hard": is_hard,
    }, score=score)  # fmt: skip
    if_empty = f"No two of these models have labels under one judge; {_HOW.format('leaderboard')}."
    if shows_records(job, records, context.as_json, if_empty):
        show_figures(f"Difference from {first}: {records[0]['score_name']}, before clipping", records, {
            "second": "second_model", "split": "split", "judge": "judge", **_told_apart(records),
            "judge's own": "judge_difference",
            "labels alone": ("labels_alone_difference", "labels_alone_ci_low", "labels_alone_ci_high"),
            "debiased": ("debiased_difference", "debiased_ci_low", "debiased_ci_high"),
            "labels of first": "n_labels_first", "of second": "n_labels_second", "tasks": "n_tasks",
            "no figure": "no_figure",
        })  # fmt: skip
        _show_notes(records, "debiased_difference")
    return 0
