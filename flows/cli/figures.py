"""Figures on the command line: those that commands show, a list of all, and any single one in any format."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flows.cli.options import SHOWS, Context, command
from flows.cli.output import ENDINGS, FORMATS, show, show_json, show_nothing, show_table
from tasks.rules.errors import UsageError

if TYPE_CHECKING:
    from tasks.benchmarks.base import Benchmark
    from tasks.config.job import Job
    from tasks.figures.figure import Column, Figure, Rows
    from tasks.rules.records import ScoreDefinition


After = Callable[[Mapping[str, Any]], Sequence[str]]


def show_parts(
    context: Context, job: "Job", parts: Mapping[str, str], given: Mapping[str, Any], *, nothing: str = "",
    vintage: str | None = None, steps: Any = ({}, {}), after: After | None = None,
) -> None:  # fmt: skip
    """Show figures on stored data, as tables or as JSON, or a sentence if they have no rows.

    Args:
        context: the command's context.
        job: the job whose benchmark, data-set revision, splits, models and judges are shown.
        parts: name in the JSON -> figure; a single figure has the empty name, and its rows are the JSON.
        given: parameters, passed to each figure that has them; `is_hard` and `score` narrow all figures.
        nothing: the sentence if no figure has a row; empty: the first figure's sentence.
        vintage: the default of --vintage; None: the latest of each model.
        steps: views that replace those of the same names (`tasks.figures.scope.Scope`).
        after: returns the lines below all figures, from the rows by part.

    Raises:
        UsageError: the benchmark has no such score, or nothing stored has a name that was given.
    """
    from tasks.figures.scope import Scope
    from tasks.figures.shown import figure_of
    from warehouse import Warehouse

    figures = {key: figure_of(name) for key, name in parts.items()}
    with Warehouse(job.warehouse).reader() as reader:
        scope = Scope(
            job, reader, context.arguments.vintage or vintage, is_hard=given.get("is_hard", False),
            score=given.get("score"), steps=steps,
        )  # fmt: skip
        rows_by_part = {
            key: scope.rows_of(each, {name: given[name] for name in each.given if name in given})
            for key, each in figures.items()
        }
    notes = [*after(rows_by_part)] if after else []
    if not context.as_json and not any(rows_by_part.values()):
        show_nothing(job, nothing or next(iter(figures.values())).empty)
        figures = {}
    present(context, figures, rows_by_part, notes, is_all=bool(given.get("is_all")))


def present(
    context: Context, figures: "Mapping[str, Figure]", rows_by_part: "Mapping[str, Rows]", notes: Sequence[str] = (), *,
    is_all: bool = False,
) -> None:  # fmt: skip
    """Show figures with their rows, as JSON or as tables.

    Args:
        context: the command's context.
        figures: name in the JSON -> figure.
        rows_by_part: name in the JSON -> rows.
        notes: lines below all figures.
        is_all: show all rows, not only those that are usually listed.
    """
    if context.as_json:
        of_figures = [note for key, each in figures.items() for note in each.notes_on(rows_by_part[key])]
        with_notes = {**rows_by_part, "notes": list(dict.fromkeys([*of_figures, *notes]))}
        show_json(rows_by_part.get("", with_notes))
        return
    shown = set[str]()
    for key, figure in figures.items():
        rows = rows_by_part[key]
        if not rows and figure.empty:
            click.echo(f"{figure.title}: {figure.empty}")
        listed = rows if is_all else figure.listed(rows)
        show_columns(figure.columns, listed, figure.title)
        for note in (note for note in dict.fromkeys(figure.notes_on(rows, listed)) if note not in shown):
            click.echo(note)
            shown.add(note)
    for note in notes:
        click.echo(note)


def show_columns(columns: "Sequence[Column]", rows: "Rows", title: str | None = None) -> None:
    """Show some columns of rows; a judge that all rows share is named below them."""
    from tasks.figures.rendering import as_text

    if not rows:
        return
    judges = {row["judge_config"] for row in rows} if "judge_config" in rows[0] else set()
    titles, cells, right = as_text([each for each in columns if each.name != "judge_config" or len(judges) > 1], rows)
    boards = [(row.get("judge_config"), row.get("split")) for row in rows]
    show_table(titles, cells, title=title, right=right, groups=boards)
    if len(judges) == 1:
        click.echo(f"Judge: {judges.pop()}")


@command(location=(), output=("json", "verbose"))
def figures(context: Context) -> None:
    """List all figures.

    The report and the commands that show results consist of these figures. `prbench figure NAME` shows one; parameters
    follow the name.

    Examples:
      prbench figures
      prbench figure judge_agreement --format csv
      prbench figure criteria which=never-met n_criteria=5
    """
    from tasks.figures.queries import relation_of
    from tasks.figures.shown import FIGURES

    rows = [
        (figure.name, figure.title, [f"{name}={value}" for name, value in figure.given.items()],
         "Python" if figure.compute else relation_of(figure) or figure.query or "its own query")
        for figure in FIGURES.values()
    ]  # fmt: skip
    show(["figure", "shows", "parameters", "source"], rows, context.table_format)


@command("split", "model", "judge", "vintage-shown", "hard", "score", output=("json", "verbose"))
@click.argument("name", metavar="FIGURE")
@click.argument("parameters", nargs=-1, metavar="[PARAMETER=VALUE]...")
@click.option("--by", metavar="BREAKDOWN", help="Breakdown, if the figure has any.")
@click.option("--format", "file_format", type=click.Choice([*FORMATS, "xlsx"]),
              help="Format.  [default: by the ending of the file, else table]")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write to this file.")  # fmt: skip
def figure(
    context: Context, name: str, parameters: tuple[str, ...], is_hard: bool, score: str | None, by: str | None,
    file_format: str | None, output: Path | None,
) -> None:  # fmt: skip
    """Show one figure, in any format.

    `prbench figures` lists all figures with their parameters. A parameter that is a list can be repeated. Rows and
    columns are those of the file beside the figure in the report.

    Examples:
      prbench figure judge_agreement
      prbench figure leaderboard --by category --format csv
      prbench figure diff names=gpt-5.6-sol-high names=gpt-oss --format csv
      prbench figure critical -o critical.xlsx
    """
    from tasks.figures.leaderboard import chosen
    from tasks.figures.scope import Scope
    from tasks.figures.shown import figure_of, parsed
    from warehouse import Warehouse

    shows, job = figure_of(name), context.stored_job()
    given = parsed(shows, parameters)
    if by is not None and "breakdown" not in shows.given:
        raise UsageError(f"--by {by}: {name} cannot be broken down")
    shape = file_format or ("json" if context.as_json else ENDINGS.get(output.suffix if output else "", "table"))
    if shape in {"parquet", "xlsx"} and output is None:
        raise UsageError(f"--format {shape}: cannot be shown; write it to a file with -o")
    with Warehouse(job.warehouse).reader() as reader:
        scope = Scope(job, reader, context.arguments.vintage, is_hard=is_hard, score=score)
        if is_hard and "is_hard" in shows.given:
            given["is_hard"] = True
        if by:
            is_board = "of_criteria" in shows.given
            given |= chosen(scope, by)[1] if is_board else {"breakdown": by}
        rows = scope.rows_of(shows, given)
    _write(context, job, shows, rows, shape, output)


def _write(context: Context, job: "Job", shows: "Figure", rows: "Rows", file_format: str, output: Path | None) -> None:
    from tasks.figures.rendering import as_csv, as_text

    if not rows:
        show_nothing(job, shows.empty)
    elif file_format == "table" and output is None:
        present(context, dict.fromkeys([shows.name], shows), {shows.name: rows})
    elif file_format == "parquet" and output is not None:
        import polars

        polars.from_dicts(rows, infer_schema_length=None).write_parquet(output)
    elif output is not None and file_format in {"csv", "xlsx"}:
        from tasks.exports.result_files import write_board
        from tasks.figures.queries import relation_of

        click.echo(write_board(job, rows, output, name=shows.name, relation=relation_of(shows)).line)
    elif file_format == "csv":
        click.echo(as_csv(list(rows[0]), rows), nl=False)
    elif file_format == "markdown":
        titles, cells, _ = as_text(shows.columns, rows)
        show(titles, cells, file_format, output)
    else:
        show(list(rows[0]), [list(row.values()) for row in rows], file_format, output)


@command(location=(), output=SHOWS)
@click.argument("name", required=False)
def benchmarks(context: Context, name: str | None) -> None:
    """List the benchmarks.

    With a NAME, show what that benchmark declares: checks, gradings, scores, weight classes and breakdowns.

    A benchmark is one Python module; tasks/benchmarks/guide.md describes how to write one. The environment variable
    PRBENCH_BENCHMARKS lists folders with more benchmarks, as absolute paths.

    Examples:
      prbench benchmarks
      prbench benchmarks prbench --json
      prbench run --benchmark NAME
      PRBENCH_BENCHMARKS=$PWD/mine prbench benchmarks    include your own
    """
    import yaml

    from tasks.benchmarks import load_benchmark
    from tasks.figures.shown.operations import BENCHMARKS, declared

    if name is None:
        present(context, {"": BENCHMARKS}, {"": declared(None, {})})
    elif context.as_json:
        show_json(_declared(load_benchmark(name)))
    else:
        style: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "default_flow_style": None, "width": 110}
        click.echo(yaml.safe_dump(_declared(load_benchmark(name)), **style), nl=False)


def _declared(benchmark: "Benchmark") -> dict[str, Any]:
    """Return everything that a benchmark declares."""
    from tasks.benchmarks import folder_of
    from tasks.check import default_policy, expectations_of
    from tasks.dataset.source import sample_of
    from tasks.prompts import load_template

    for template in benchmark.gradings.values():
        load_template("default", template)  # raises if it is missing
    sample = sample_of(benchmark.name)
    module = folder_of(benchmark.name) / f"{benchmark.name}.py"
    return {
        "benchmark": benchmark.name, "module": str(module), "hub": benchmark.default_dataset_id,
        "licence": benchmark.licence, "sample": None if sample is None else str(sample),
        "columns": list(benchmark.columns),
        "checks": [
            {"check": each.check, "policy": default_policy(each), "meaning": each.meaning}
            for each in expectations_of(benchmark) if each.check in benchmark.invariants
        ],
        "gradings": [
            {"grading": grading, "default": grading == benchmark.grading, "template": Path(template).name}
            for grading, template in benchmark.gradings.items()
        ],
        "scores": [
            {"score": score.score_name, "ranks": score.is_primary, "formula": _formula(score)}
            for score in benchmark.scores
        ],
        "weight_classes": [
            {"class": name, "lowest": low, "highest": high} for name, (low, high) in benchmark.severities.items()
        ],
        "breakdowns": [{"breakdown": kind, "title": title} for kind, title in benchmark.own_breakdowns.items()],
        # Labels without a field apply to every field.
        "labels": [
            {"field": field or None, "kind": kind, "labels": sorted(labels)}
            for field, kinds in benchmark.vocabularies.items() for kind, labels in kinds.items()
        ],
        "hard_splits": [{"field": field, "split": split} for field, split in benchmark.hard_splits.items()],
    }  # fmt: skip


def _formula(score: "ScoreDefinition") -> str:
    """Return the formula of a score, with the meaning of its words."""
    from tasks.figures.figure import formula

    words = "points = sum of weight x verdict, positive = sum of positive weights, negative = sum of negative weights"
    used = [meaning for meaning in words.split(", ") if meaning.partition(" ")[0] in formula(score)]
    clipped = "; a model's mean is at least 0" if score.clips_mean else ""
    return f"{formula(score)} with {', '.join(used)}{clipped}"


_CANNOT_BE_COMBINED = (
    ("--by", "--risk"), ("--by", "--selection"), ("--risk", "--selection"), ("--hard", "--selection"),
    ("--score", "--risk"), ("--output", "--json"), ("--debiased", "--risk"), ("--debiased", "--selection"),
    ("--debiased", "--output"),
)  # fmt: skip


@command("split", "model", "judge", "vintage-shown", "hard", "score", output=SHOWS)
@click.option("--by", metavar="BREAKDOWN",
              help="Break scores down by category, severity, turns, reference_texts, subset, topic, expert, "
              "decision_type, economic_pathway, or a breakdown that only this benchmark has (see `prbench benchmarks "
              "NAME`). A task with several labels counts for each.")  # fmt: skip
@click.option("--risk", "is_severity", is_flag=True, help="Show critical criteria met and mistakes made, not scores.")
@click.option("--selection", metavar="ID",
              help="Show only the tasks of one stored hard subset, by split, without ranks. ID: its id, a prefix of "
              "it, or `latest`.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write a file for spreadsheets instead, .csv or .xlsx, with a line that explains each column: in "
              "Excel on a second sheet, beside a CSV file in FILE-columns.csv.")  # fmt: skip
@click.option("--debiased", "is_debiased", is_flag=True,
              help="Also show each score corrected by people's labels on a part of the verdicts.")  # fmt: skip
def leaderboard(context: Context, output: Path | None, is_debiased: bool, **own: Any) -> None:
    """Rank the models.

    Each score comes with its interval, its coverage, and its possible range: the lowest and the highest value once no
    verdict is missing.

    With --debiased, labels from sheets of `prbench export labelling --for` (or imported with --random-sample) correct
    the judge's scores. Beside the debiased score are the judge's own score and the score from the labels alone.

    Examples:
      prbench leaderboard --by category --json
      prbench leaderboard --by topic --hard
      prbench leaderboard --benchmark NAME --by BREAKDOWN
      prbench leaderboard --risk
      prbench leaderboard --selection latest
      prbench leaderboard -o board.xlsx     with a sheet of explanations
      prbench leaderboard --debiased      scores that people's labels correct
    """
    by = own["by"]
    given = {"--risk": own["is_severity"], "--hard": own["is_hard"], "--json": context.as_json, "--output": output}
    given |= {"--debiased": is_debiased, **{f"--{name}": own[name] for name in ("by", "selection", "score")}}
    for first, second in _CANNOT_BE_COMBINED:
        if given[first] and given[second]:
            raise UsageError(f"{first} and {second} cannot be combined; leave one out")
    if is_debiased:
        if by not in {None, "category"}:
            raise UsageError(f"--by {by}: --debiased knows --by category only")
        parts = {"": "debiased_categories" if by else "debiased_scores"}
        show_parts(context, context.stored_job(), parts, own)
        return
    job = context.stored_job()
    rows = leaderboard_of(job, context.arguments.vintage, **own)
    if output is not None:
        from tasks.exports.result_files import write_board

        click.echo(write_board(job, rows, output).line)
    elif context.as_json:
        show_json(rows)
    else:
        show_leaderboard(job, rows)


def leaderboard_of(job: "Job", vintage: str | None, **own: Any) -> "Rows":
    """Return the leaderboard of a job, by default on its splits."""
    from tasks.figures.leaderboard import leaderboard as ranked

    return ranked(job, vintage=vintage, **own)


def show_leaderboard(job: "Job", rows: "Rows") -> None:
    """Show a leaderboard to people."""
    if not rows:
        show_nothing(job, "No model has a verdict in this selection yet.")
        return
    from tasks.figures.shown.categories import CRITICAL
    from tasks.figures.shown.overview import LEADERBOARD
    from tasks.report.rendering.notices import terminal_notes

    figure = CRITICAL if "mistake_share" in rows[0] else LEADERBOARD
    show_columns(figure.columns, rows)
    for line in [*terminal_notes(job, rows), *figure.notes_on(rows)]:
        click.echo(line)
