"""Figures on the command line: those that commands show, a list of all, and any single one in any
format.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flows.cli.options import Context, show_command
from flows.cli.output import (
    markdown_text,
    put,
    put_bytes,
    say,
    show,
    show_json,
    show_nothing,
    show_records,
    wide_option,
    writing_table,
)
from tasks.rules.errors import UsageError

if TYPE_CHECKING:
    from tasks.benchmarks.base import Benchmark
    from tasks.config.job import Job
    from tasks.figures.figure import Figure, Rows
    from tasks.figures.scope import Scope
    from tasks.rules.records import ScoreDefinition


def show_parts(
    context: Context,
    job: "Job",
    parts: Mapping[str, str],
    parameters: Mapping[str, Any],
    *,
    empty: str = "",
    vintage: str | None = None,
    steps: Any = ({}, {}),
    lines_after: Callable[[Mapping[str, Any]], Sequence[str]] = lambda _: (),
) -> dict[str, list[dict[str, Any]]]:
    """Show figures on stored data, as tables or as JSON, or a sentence if they have no rows; return
    the rows by part.

    Args:
        context: the command's context.
        job: the job whose benchmark, data-set revision, splits, models and judges are shown.
        parts: name in the JSON -> figure; a single figure has the empty name, and its rows are the
            JSON.
        parameters: passed to each figure that has them; `is_hard` and `score` narrow all figures.
        empty: the sentence if no figure has a row; without one, the first figure's.
        vintage: the default of --vintage; None: the current one of each model.
        steps: the queries of views to replace, by name, and the values of their parameters
            (`tasks.figures.scope.Scope`).
        lines_after: returns the lines below all figures, from the rows by part.

    Raises:
        UsageError: the benchmark has no such score, or nothing stored has a name that was given.
    """
    from tasks.figures.shown import figure_of

    figures = {key: figure_of(name) for key, name in parts.items()}
    rows_by_part = rows_of_parts(context, job, parts, parameters, vintage=vintage, steps=steps)
    notes = lines_after(rows_by_part)
    if not context.as_json and not any(rows_by_part.values()):
        show_nothing(context, job, empty or next(iter(figures.values())).empty)
        figures = {}  # so that only the lines below them are shown
    present(context, figures, rows_by_part, notes, is_all=parameters.get("is_all", False), job=job)
    return rows_by_part


def rows_of_parts(
    context: Context,
    job: "Job",
    parts: Mapping[str, str],
    parameters: Mapping[str, Any],
    *,
    vintage: str | None = None,
    steps: Any = ({}, {}),
) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of figures on stored data, by part; the arguments are those of `show_parts`.

    Raises:
        UsageError: as `show_parts`.
    """
    from tasks.figures.scope import Scope
    from tasks.figures.shown import figure_of
    from warehouse import Warehouse

    rows_by_part = {}
    with Warehouse(job.warehouse).reader() as reader:
        scope = Scope(
            job,
            reader,
            context.arguments.vintage or vintage,
            is_hard=parameters.get("is_hard", False),
            score=parameters.get("score"),
            steps=steps,
        )
        for key, name in parts.items():
            figure = figure_of(name)
            names = figure.parameters.keys() & parameters.keys()
            rows_by_part[key] = scope.rows_of(figure, {name: parameters[name] for name in names})
    return rows_by_part


def present(
    context: Context,
    figures: "Mapping[str, Figure]",
    rows_by_part: "Mapping[str, Rows]",
    notes: Sequence[str] = (),
    *,
    is_all: bool = False,
    job: "Job | None" = None,
) -> None:
    """Show figures with their rows in the format of the command.

    A format for one table (CSV, JSON Lines, Parquet) has the first figure with rows; a line names
    the others.

    Args:
        context: the command's context.
        figures: name in the JSON -> figure.
        rows_by_part: name in the JSON -> rows.
        notes: lines below all figures.
        is_all: show all rows in a table, not only those that are usually listed.
        job: the job whose data set the figures are about, if they are about one.
    """
    if context.as_json:
        show_json(context, _as_json(figures, rows_by_part, notes))
        return
    if context.file_format == "table":
        with writing_table(context):
            _show_tables(context, figures, rows_by_part, is_all=is_all)
            for note in notes:
                say(note)
        return
    parts = [(figure, rows_by_part[key]) for key, figure in figures.items() if rows_by_part[key]]
    if parts:
        _write(context, parts, job)


def _as_json(
    figures: "Mapping[str, Figure]",
    rows_by_part: "Mapping[str, Rows]",
    notes: Sequence[str],
) -> Any:
    """Return the rows of the only figure, or the rows by part with all notes."""
    if "" in rows_by_part:
        return rows_by_part[""]
    sentences = []
    for key, figure in figures.items():
        rows = rows_by_part[key]
        sentences += figure.notes_on(rows) + figure.small_notes(rows)
    return {**rows_by_part, "notes": list(dict.fromkeys([*sentences, *notes]))}


def _show_tables(
    context: Context,
    figures: "Mapping[str, Figure]",
    rows_by_part: "Mapping[str, Rows]",
    *,
    is_all: bool,
) -> None:
    printed_notes = set[str]()
    for number, (key, figure) in enumerate(figures.items()):
        rows = rows_by_part[key]
        if number and (rows or figure.empty):
            click.echo()
        if not rows and figure.empty:
            say(f"{figure.title}: {figure.empty}")
        if rows and figure.heading is not None:
            heading = figure.heading(rows)
            say(heading)
            printed_notes.add(heading)
        listed_rows = rows if is_all else figure.listed(rows)
        if listed_rows:
            show_figure(figure, listed_rows, title=figure.title, is_wide=context.is_wide)
        for note in figure.notes_on(rows) + figure.small_notes(listed_rows):
            if note not in printed_notes:
                say(note)
                printed_notes.add(note)


def show_figure(figure: "Figure", rows: "Rows", *, title: str = "", is_wide: bool = False) -> None:
    """Show rows of a figure as a table for people (`print_table`)."""
    from tasks.console.tables import print_table
    from tasks.figures.figure import terminal_columns

    columns = terminal_columns(figure.columns, rows, figure.essential)
    boards = [column for column in columns if column.name in figure.boards]
    if not is_wide:
        columns = [column for column in columns if column not in boards]
    print_table(
        columns,
        boards,
        title=title,
        is_wide=is_wide,
        wide_option=wide_option() or f"prbench figure {figure.name} --wide",
    )


def _write(context: Context, parts: "Sequence[tuple[Figure, Rows]]", job: "Job | None") -> None:
    """Write figures with rows in a format for files."""
    from tasks.console import notice
    from tasks.exports.figure_files import figures_as_workbook, write_csv
    from tasks.figures.csv_rows import as_csv

    figure, rows = parts[0]
    key = {} if job is None else job.key
    if context.file_format == "markdown":
        has_headings = len(parts) > 1
        tables = [_markdown(figure, rows, has_heading=has_headings) for figure, rows in parts]
        put(context, "\n".join(tables))
        return
    if context.file_format == "xlsx":
        put_bytes(context, figures_as_workbook(key, parts))
        return
    if context.file_format != "csv":
        show_records(context, rows)
    elif context.output is None:
        put(context, as_csv(list(rows[0]), rows))
    else:
        click.echo(write_csv(key, figure, rows, context.output).line)
    if len(parts) > 1:
        names = ", ".join(figure.name for figure, _ in parts[1:])
        notice(
            f"{context.file_format} holds one table, {figure.name}; an .xlsx or .json file"
            f" also has {names}"
        )


def _markdown(figure: "Figure", rows: "Rows", *, has_heading: bool) -> str:
    from tasks.figures.figure import terminal_columns

    columns = terminal_columns(figure.columns, rows)
    rows_of_cells = list(zip(*(column.cells for column in columns), strict=True))
    heading = f"## {figure.title}\n\n" if has_heading else ""
    return heading + markdown_text([column.heading for column in columns], rows_of_cells)


@show_command(location_options=())
def figures(context: Context) -> None:
    """List all figures.

    The report and the commands that show results consist of these figures. `prbench figure NAME`
    shows one; parameters follow the name.

    Examples:
      prbench figures
      prbench figure judge_agreement --format csv
      prbench figure criteria which=never-met n_criteria=5
    """
    from tasks.figures.shown import FIGURES

    rows = []
    for figure in FIGURES.values():
        parameters = [f"{name}={value}" for name, value in figure.settable_parameters.items()]
        rows.append((figure.name, figure.title, parameters, figure.source))
    show(context, ["figure", "shows", "parameters", "source"], rows)


@show_command("split", "model", "judge", "vintage-shown", "hard", "score")
@click.argument("name", metavar="FIGURE")
@click.argument("parameters", nargs=-1, metavar="[PARAMETER=VALUE]...")
@click.option("--by", metavar="BREAKDOWN", help="Breakdown, if the figure has any.")
def figure(
    context: Context,
    name: str,
    parameters: tuple[str, ...],
    is_hard: bool,
    score: str | None,
    by: str | None,
) -> None:
    """Show one figure, in any format.

    `prbench figures` lists all figures with their parameters. A parameter that is a list can be
    repeated. Rows and columns are those of the file beside the figure in the report.

    Examples:
      prbench figure judge_agreement
      prbench figure leaderboard --by category --format csv
      prbench figure diff names=gpt-5.6-sol-high names=gpt-oss --format csv
      prbench figure critical -o critical.xlsx
    """
    from tasks.figures.scope import Scope
    from tasks.figures.shown import figure_of, parse_parameters, refuse_other_choice
    from tasks.figures.shown.leaderboard import board_parameters
    from warehouse import Warehouse

    chosen_figure = figure_of(name)
    values = parse_parameters(chosen_figure, parameters)
    if by is not None:
        if "breakdown" not in chosen_figure.parameters:
            raise UsageError(f"--by {by}: {name} cannot be broken down")
        refuse_other_choice(chosen_figure, "breakdown", by, f"--by {by}")
    job = _job_with_names(context, values)
    with Warehouse(job.warehouse).reader() as reader:
        scope = Scope(job, reader, context.arguments.vintage, is_hard=is_hard, score=score)
        if is_hard and "is_hard" in chosen_figure.parameters:
            values["is_hard"] = True
        _refuse_unknown_breakdown(scope, chosen_figure, values)
        if by and "of_criteria" in chosen_figure.parameters:
            values |= board_parameters(scope, by)
        elif by:
            values["breakdown"] = by
        rows = scope.rows_of(chosen_figure, values)
    if context.as_json:
        show_json(context, rows)
    elif not rows:
        show_nothing(context, job, chosen_figure.empty)
    else:
        present(context, {name: chosen_figure}, {name: rows}, job=job)


def _job_with_names(context: Context, values: Mapping[str, Any]) -> "Job":
    """Return the job on stored data, which has the models and people that parameters name.

    Raises:
        UsageError: it lacks one.
    """
    from tasks.run.stored_data import refuse_unknown_graders

    models = [values[name] for name in ("model", "than", "first") if values.get(name)]
    models += values.get("others", [])
    models += context.arguments.named_models or ()
    job = context.stored_job(model=models)
    if "people" in values:
        refuse_unknown_graders(job, people=values["people"])
    return job


def _refuse_unknown_breakdown(scope: "Scope", figure: "Figure", values: Mapping[str, Any]) -> None:
    """Refuse a parameter `breakdown` that the benchmark does not have."""
    from tasks.figures.shown.leaderboard import board_parameters

    breakdown = values.get("breakdown", "all")
    # All figures know `all`, and those of counted labels two that have no board.
    if "of_criteria" in figure.parameters and breakdown not in {"all", "n_criteria", "weight"}:
        board_parameters(scope, breakdown)


@show_command(location_options=())
@click.argument("name", required=False)
def benchmarks(context: Context, name: str | None) -> None:
    """List the benchmarks.

    With a NAME, show what that benchmark declares: checks, gradings, scores, weight classes and
    breakdowns.

    A benchmark is one Python module; tasks/benchmarks/guide.md describes how to write one. The
    environment variable PRBENCH_BENCHMARKS lists folders with more benchmarks, as absolute paths.

    Examples:
      prbench benchmarks
      prbench benchmarks prbench --json
      prbench run --benchmark NAME
      PRBENCH_BENCHMARKS=$PWD/mine prbench benchmarks    include your own
    """
    import yaml

    from tasks.benchmarks import load_benchmark
    from tasks.figures.shown.operations import BENCHMARKS, benchmark_rows

    if name is None:
        present(context, {"": BENCHMARKS}, {"": benchmark_rows()})
    elif context.as_json:
        show_json(context, _declared(load_benchmark(name)))
    elif context.file_format != "table" or context.output is not None:
        raise UsageError(
            f"benchmarks {name}: shows no table; give --json, or leave --format and -o out"
        )
    else:
        text = yaml.safe_dump(
            _declared(load_benchmark(name)),
            sort_keys=False,
            allow_unicode=True,
            default_flow_style=None,
            width=110,
        )
        click.echo(text, nl=False)


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
        "benchmark": benchmark.name,
        "module": str(module),
        "hub": benchmark.default_dataset_id,
        "licence": benchmark.licence,
        "sample": None if sample is None else str(sample),
        "columns": list(benchmark.columns),
        "checks": [
            {
                "check": expectation.check,
                "policy": default_policy(expectation),
                "meaning": expectation.meaning,
            }
            for expectation in expectations_of(benchmark)
            if expectation.check in benchmark.invariants
        ],
        "gradings": [
            {
                "grading": grading,
                "default": grading == benchmark.grading,
                "template": Path(template).name,
            }
            for grading, template in benchmark.gradings.items()
        ],
        "scores": [
            {
                "score": score.score_name,
                "ranks": score.is_primary,
                "formula": _formula(score),
            }
            for score in benchmark.scores
        ],
        "weight_classes": [
            {
                "class": name,
                "lowest": low,
                "highest": high,
            }
            for name, (low, high) in benchmark.severities.items()
        ],
        "breakdowns": [
            {"breakdown": kind, "title": title} for kind, title in benchmark.own_breakdowns.items()
        ],
        # Labels without a field apply to every field.
        "labels": [
            {
                "field": field or None,
                "kind": kind,
                "labels": sorted(labels),
            }
            for field, kinds in benchmark.vocabularies.items()
            for kind, labels in kinds.items()
        ],
        "hard_splits": [
            {"field": field, "split": split} for field, split in benchmark.hard_splits.items()
        ],
    }


def _formula(score: "ScoreDefinition") -> str:
    """Return the formula of a score, with the meaning of its words."""
    from tasks.figures.page import formula

    meanings = {
        "points": "sum of weight x verdict",
        "positive": "sum of positive weights",
        "negative": "sum of negative weights",
    }
    text = formula(score)
    terms = [f"{word} = {meaning}" for word, meaning in meanings.items() if word in text]
    clipping = "; a model's mean is at least 0" if score.clips_mean else ""
    return f"{text} with {', '.join(terms)}{clipping}"


_CANNOT_BE_COMBINED = (
    ("--by", "--risk"),
    ("--by", "--selection"),
    ("--risk", "--selection"),
    ("--hard", "--selection"),
    ("--score", "--risk"),
    ("--debiased", "--risk"),
    ("--debiased", "--selection"),
)


@show_command("split", "model", "judge", "vintage-shown", "hard", "score")
@click.option(
    "--by",
    metavar="BREAKDOWN",
    help=(
        "Break scores down by category, severity, turns, reference_texts, subset, topic, expert,"
        " decision_type, economic_pathway, or a breakdown that only this benchmark has (see"
        " `prbench benchmarks NAME`). A task with several labels counts for each."
    ),
)
@click.option(
    "--risk",
    "is_severity",
    is_flag=True,
    help="Show critical criteria missed and mistakes made, not scores.",
)
@click.option(
    "--selection",
    metavar="ID",
    help=(
        "Show only the tasks of one stored hard subset, by split, without ranks. ID: its id, a"
        " prefix of it, or `latest`."
    ),
)
@click.option(
    "--debiased",
    "is_debiased",
    is_flag=True,
    help="Also show each score corrected by people's labels on a part of the verdicts.",
)
def leaderboard(context: Context, is_debiased: bool, **choices: Any) -> None:
    """Rank the models.

    Each score is of a model's current vintage: the latest that covers enough of the split
    (`coverage.min`). It comes with its interval, its coverage, and the all-task range: the lowest
    and the highest mean once no verdict is missing. The score is the mean of complete tasks, so it
    may lie outside of this range.

    With --debiased, labels from sheets of `prbench export labelling --for` (or imported with
    --random-sample) correct the judge's scores. Beside the debiased score are the judge's own score
    and the score from the labels alone.

    Examples:
      prbench leaderboard --by category --json
      prbench leaderboard --by topic --hard
      prbench leaderboard --benchmark NAME --by BREAKDOWN
      prbench leaderboard --risk
      prbench leaderboard --selection latest
      prbench leaderboard --wide            all columns
      prbench leaderboard -o board.xlsx     with a sheet of explanations
      prbench leaderboard --debiased      scores that people's labels correct
    """
    breakdown = choices["by"]
    options = {
        "--by": breakdown,
        "--risk": choices["is_severity"],
        "--hard": choices["is_hard"],
        "--selection": choices["selection"],
        "--score": choices["score"],
        "--debiased": is_debiased,
    }
    for option, second_option in _CANNOT_BE_COMBINED:
        if options[option] and options[second_option]:
            raise UsageError(f"{option} and {second_option} cannot be combined; leave one out")
    if is_debiased and breakdown not in {None, "category"}:
        raise UsageError(f"--by {breakdown}: --debiased knows --by category only")
    job = context.stored_job()
    if is_debiased:
        name = "debiased_categories" if breakdown else "debiased_scores"
        show_parts(context, job, {"": name}, choices)
        return
    rows = leaderboard_of(context, job, **choices)
    if context.as_json:
        show_json(context, rows)
    else:
        show_leaderboard(context, job, rows)


def leaderboard_of(context: Context, job: "Job", **choices: Any) -> "Rows":
    """Return the leaderboard of a job in the vintage of --vintage (see `leaderboard`)."""
    from tasks.figures.shown.leaderboard import leaderboard as ranked

    return ranked(job, vintage=context.arguments.vintage, **choices)


def show_leaderboard(context: Context, job: "Job", rows: "Rows") -> None:
    """Show a leaderboard to people, or write it in another format than JSON."""
    if not rows:
        show_nothing(context, job, "No model has a verdict in this selection yet.")
        return
    from tasks.figures.shown.categories import CRITICAL
    from tasks.figures.shown.leaderboard import LEADERBOARD
    from tasks.report.rendering.notices import terminal_notes

    # Only rows of --risk have that column.
    figure = CRITICAL if "mistake_share" in rows[0] else LEADERBOARD
    untitled = replace(figure, title="")
    present(context, {"": untitled}, {"": rows}, terminal_notes(job, rows), is_all=True, job=job)
