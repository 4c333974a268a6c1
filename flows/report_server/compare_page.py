"""The page Compare: its form, and the figures of the chosen comparison, as in `prbench diff`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any, NamedTuple

from tasks.benchmarks import load_benchmark
from tasks.compare.differences import compare, difference_details, rows_of, with_verdicts
from tasks.compare.pairs import Comparison, Kind, Side, comparable
from tasks.config.job import Job
from tasks.figures.addresses import task_address
from tasks.figures.figure import Column, Figure, Row, table_columns
from tasks.figures.scope import SAMPLING
from tasks.figures.shown.comparisons import CATEGORIES, DIFF, FLIPS, TASKS
from tasks.report.rendering.page_figures import PageFigure, page_figure_of
from tasks.rules.errors import PipelineError
from tasks.rules.identity import EVERY_VINTAGE
from warehouse import Reader, Warehouse, WarehouseError

KINDS: dict[Kind, tuple[str, str]] = {
    "model": (
        "Models",
        (
            "Two models under the same judge, each in its current vintage unless another one is"
            " chosen."
        ),
    ),
    "vintage": (
        "Vintages",
        (
            "Two samplings of the same model, such as two nights. A night samples the nightly"
            " models again; the vintage of these responses is the night's date. All others are of"
            " the vintage base."
        ),
    ),
    "run": (
        "Runs",
        (
            "Two runs, each with the verdicts that it made. Runs can be compared where they judged"
            " different vintages of a model, as two nights do."
        ),
    ),
    "judge": ("Judges", "Two judges on the same responses."),
}
"""Kind of comparison -> its heading on the page, and an explanation."""
_SIDES = ("first", "second")
_DIFFERENCE_COLUMNS = {*_SIDES, "where", "split"}
"""The columns that say which difference a row is about."""


class Field(NamedTuple):
    """A field: its name in the address, its options, and the chosen value.

    An option is a value and its text.
    """

    name: str
    options: Iterable[tuple[str, str]]
    choice: str


class ComparePage(NamedTuple):
    """The content of the page: the form's fields, and figures or the reason why there are none.

    `about` names the first difference, which the figures below the first one explain.
    """

    kind: Kind
    fields: Sequence[Field] = ()
    figures: Sequence[PageFigure] = ()
    about: str = ""
    trouble: str | None = None


def compare_page(job: Job, choices: Mapping[str, str], folder: Path) -> ComparePage:
    """Return the content of the page for an address.

    Unknown parameters and an unknown kind are ignored; other invalid values give a page that says
    what is wrong (`trouble`).

    Args:
        job: the job whose benchmark is compared, on its splits unless the address names one.
        choices: the parameters in the address: the kind of comparison (`of`), the `first` and the
            `second` side, the model, judge, vintage and split that stay the same.
        folder: the folder of the benchmark's report; its task pages are linked, if they exist.
    """
    kind: Kind = next((name for name in KINDS if name == choices.get("of")), "model")
    fields: Sequence[Field] = ()
    try:
        with Warehouse(job.warehouse).reader() as reader:
            fields = fields_of(job, reader, kind, choices)
            if not (choices.get("first") and choices.get("second")):
                return ComparePage(kind, fields)
            has_pages = (folder / "task.html").is_file()
            figures, about = _figures(job, reader, kind, choices, has_pages=has_pages)
            return ComparePage(kind, fields, figures, about)
    except (PipelineError, WarehouseError) as error:
        return ComparePage(kind, fields, trouble=str(error))


def fields_of(job: Job, reader: Reader, kind: Kind, choices: Mapping[str, str]) -> list[Field]:
    """Return the fields of the page's form, with likely choices if the address has none.

    Only names that can be compared with another one are offered.

    Raises:
        PipelineError: there is no verdict yet.
    """
    groups = comparable(reader, job.benchmark, job.data.revision, kind)
    fields = _side_fields(reader, kind, choices, groups)
    for name in ("model", "judge", "vintage"):
        options = _options(reader, name, groups)
        differs_by_side = name == kind or (kind == "run" and name == "vintage")
        if not differs_by_side and len(options) > 1:
            # An empty choice means all models or judges, but of vintages only the current ones.
            defaults = {"": "all"}
            if name == "vintage":
                defaults = {"": "current", EVERY_VINTAGE: "all"}
            options = defaults | options
            fields.append(Field(name, options.items(), choices.get(name, "")))
    splits = _splits(job, reader)
    if len(splits) > 1:
        options = {"": "as configured"} | dict(zip(splits, splits, strict=True))
        fields.append(Field("split", options.items(), choices.get("split", "")))
    return fields


def _side_fields(
    reader: Reader,
    kind: Kind,
    choices: Mapping[str, str],
    groups: Sequence[Sequence[Side]],
) -> list[Field]:
    options = _options(reader, kind, groups)
    suggestions = dict(zip(_SIDES, _suggested_names(kind, list(options), groups), strict=False))
    return [
        Field(side, options.items(), choices.get(side) or suggestions.get(side, ""))
        for side in _SIDES
    ]


def _splits(job: Job, reader: Reader) -> list[str]:
    """Return the splits of the data set, without the hard subsets that this project selected."""
    rows = reader.select(
        "intermediate.task_set_members",
        "distinct split",
        **job.key,
        is_own_hard=False,
    )
    return [row["split"] for row in rows]


def _suggested_names(
    kind: Kind, names: Sequence[str], groups: Sequence[Sequence[Side]]
) -> list[str]:
    """Return the two names to begin with, of the largest group.

    If vintages are compared, the second name is the current vintage.
    """
    group = max(groups, key=lambda sides: len({side.name for side in sides}), default=())
    members = {side.name for side in group}
    likely = [name for name in names if name in members]
    if kind not in {"vintage", "run"} or len(likely) < 2:
        return likely[:2]
    second_index = 0
    if kind == "vintage":
        current = {side.name for side in group if side.model_run.current_splits}
        second_index = next((index for index, name in enumerate(likely) if name in current), 0)
    # The latest are first. For the second, take the one before it; the earliest has none before it,
    # so it is compared with the latest.
    first_index = (second_index + 1) % len(likely)
    return [likely[first_index], likely[second_index]]


def _options(reader: Reader, name: str, groups: Sequence[Sequence[Side]]) -> dict[str, str]:
    """Return value -> text of a field's options.

    Vintages and runs are listed with the latest first, others by name.
    """
    sides = [side for group in groups for side in group]
    if name == "run":
        run_ids = sorted({side.name for side in sides})
        runs = reader.select("runs", order="started_at desc, run_id", run_id=run_ids)
        return {
            run["run_id"]: f"{run['started_at'].astimezone(UTC):%Y-%m-%d %H:%M:%S} {run['command']}"
            for run in runs
        }
    sides.sort(
        key=lambda side: (side.model_run.responded_at, getattr(side.model_run, name)), reverse=True
    )
    values = dict.fromkeys(getattr(side.model_run, name) for side in sides)
    return {value: value for value in (values if name == "vintage" else sorted(values))}


def _figures(
    job: Job,
    reader: Reader,
    kind: Kind,
    choices: Mapping[str, str],
    *,
    has_pages: bool,
) -> tuple[list[PageFigure], str]:
    """Return the figures of a comparison, and the name of its first difference."""
    # The model, judge, vintage and split, except what is compared; other parameters are not read.
    filters = {name: value for name, value in choices.items() if name != kind}
    comparison = Comparison(
        _narrowed(job, filters),
        [choices[side] for side in _SIDES],
        kind,
        vintage=filters.get("vintage"),
    )
    result = compare(reader, comparison)
    detail = difference_details(reader, result, result.differences[:1])
    differences = rows_of(result)
    difference = with_verdicts(differences[0], detail["verdicts"][0])
    # The details are those of the first difference only.
    differences[0] = difference
    for flip in detail["flips"]:
        _add_link_and_reasons(flip, difference)
    reasons = table_columns("first_explanations", "second_explanations")
    parts = [
        (DIFF, differences),
        (_adapted(FLIPS, reasons, has_links=has_pages), detail["flips"]),
        (_adapted(CATEGORIES), detail["categories"]),
        (_adapted(TASKS), detail["tasks"]),
    ]
    benchmark = load_benchmark(job.benchmark)
    figures = [page_figure_of(figure, rows, benchmark) for figure, rows in parts]
    scope = ", ".join(difference[name] for name in ("split", "where") if difference[name])
    return figures, f"From {difference['first']} to {difference['second']} on {scope}"


def _add_link_and_reasons(flip: dict[str, Any], difference: Row) -> None:
    """Add the link to a flipped criterion, and join the explanations of each side."""
    samplings = []
    for side in _SIDES:
        samplings.append({name: difference[f"{side}_{name}"] for name in SAMPLING})
        flip[f"{side}_explanations"] = " / ".join(flip[f"{side}_explanations"])
    first_sampling, second_sampling = samplings
    flip["address"] = task_address(
        flip["task_id"],
        first_sampling,
        second_sampling if second_sampling != first_sampling else None,
        flip["criterion_id"],
    )


def _adapted(
    figure: Figure,
    extra_columns: Sequence[Column] = (),
    *,
    has_links: bool = False,
) -> Figure:
    """Return a figure about one difference: without its labels, with task ids as text or links."""
    adapted_columns = []
    for column in figure.columns:
        if column.name == "task_id" and not has_links:
            adapted_columns.append(replace(column, kind="text"))
        elif column.name not in _DIFFERENCE_COLUMNS:
            adapted_columns.append(column)
    return replace(figure, shows=(*adapted_columns, *extra_columns))


def _narrowed(job: Job, choices: Mapping[str, str]) -> Job:
    """Return the job narrowed by the parameters in the address."""
    if choices.get("split"):
        job = job.on_splits((choices["split"],))
    model = choices.get("model")
    judge = choices.get("judge")
    names = {
        "named_models": (model,) if model else None,
        "named_judges": (judge,) if judge else None,
    }
    return job.model_copy(update=names)
