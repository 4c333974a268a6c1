"""The page Compare: the choices in its form, and the figures of the chosen comparison, as in
`prbench diff`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import NamedTuple

from tasks.benchmarks import load_benchmark
from tasks.compare.differences import apart, compare, rows_of, with_verdicts
from tasks.compare.pairs import Comparison, Kind, Side, comparable
from tasks.config.job import Job
from tasks.figures.addresses import task_address
from tasks.figures.figure import Column, Figure, table_columns
from tasks.figures.scope import SAMPLING
from tasks.figures.shown.comparisons import CATEGORIES, DIFF, FLIPS, TASKS
from tasks.report.rendering.page_figures import PageFigure, served
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
_LABELS = {*_SIDES, "where", "split"}


class Field(NamedTuple):
    """A choice: its name in the address, its heading, its options (value, text), and the chosen
    value.
    """

    name: str
    title: str
    options: Iterable[tuple[str, str]]
    chosen: str


class ComparePage(NamedTuple):
    """The content of the page: the form's fields, and figures or the reason why there are none.

    `about` names the first difference, which the figures below the first one explain.
    """

    kind: Kind
    fields: Sequence[Field] = ()
    figures: Sequence[PageFigure] = ()
    about: str = ""
    trouble: str | None = None


def compare_page(job: Job, given: Mapping[str, str], folder: Path) -> ComparePage:
    """Return the content of the page for an address; invalid parameters are ignored.

    Args:
        job: the job whose benchmark is compared, on its splits unless the address names one.
        given: the parameters in the address: the kind of comparison (`of`), the `first` and the
            `second` side, the model, judge, vintage and split that stay the same.
        folder: the folder of the benchmark's report; its task pages are linked, if they exist.
    """
    kind: Kind = next((kind for kind in KINDS if kind == given.get("of")), "model")
    fields: Sequence[Field] = ()
    try:
        with Warehouse(job.warehouse).reader() as reader:
            fields = fields_of(job, reader, kind, given)
            if not all(given.get(side) for side in _SIDES):
                return ComparePage(kind, fields)
            has_pages = (folder / "task.html").is_file()
            return ComparePage(
                kind, fields, *_figures(job, reader, kind, given, has_pages=has_pages)
            )
    except (PipelineError, WarehouseError) as error:
        return ComparePage(kind, fields, trouble=str(error))


def fields_of(job: Job, reader: Reader, kind: Kind, given: Mapping[str, str]) -> list[Field]:
    """Return the fields of the page's form, with likely choices if the address has none.

    Only names that can be compared with another one are offered.

    Raises:
        PipelineError: there is no verdict yet.
    """
    groups = comparable(reader, job.settings.benchmark, job.data.revision, kind)
    names = _options(reader, kind, groups)
    largest = max(groups, key=lambda group: len({side.name for side in group}), default=[])
    likely = _likely(kind, [*names], largest)
    chosen = {
        **dict(zip(_SIDES, likely, strict=False)),
        **{name: value for name, value in given.items() if value},
    }
    fields = [
        Field(side, side.capitalize(), names.items(), chosen.get(side, "")) for side in _SIDES
    ]
    for name in ("model", "judge", "vintage"):
        options = _options(reader, name, groups)
        if name != kind and (kind, name) != ("run", "vintage") and len(options) > 1:
            usual = (
                [("", "current"), (EVERY_VINTAGE, "all")] if name == "vintage" else [("", "all")]
            )
            fields.append(
                Field(name, name.capitalize(), [*usual, *options.items()], chosen.get(name, ""))
            )
    members = reader.select(
        "intermediate.task_set_members",
        "distinct split",
        benchmark=job.settings.benchmark,
        dataset_revision=job.data.revision,
        is_own_hard=False,
    )
    if len(members) > 1:
        splits = [("", "as configured"), *((row["split"], row["split"]) for row in members)]
        fields.append(Field("split", "Split", splits, given.get("split", "")))
    return fields


def _likely(kind: Kind, names: Sequence[str], sides: Sequence[Side]) -> list[str]:
    """Return the two names to begin with, of a group of sides; of vintages the current one is the
    second.
    """
    of_group = {side.name for side in sides}
    likely = [name for name in names if name in of_group]
    if kind not in {"vintage", "run"} or len(likely) < 2:
        return likely[:2]
    current = {side.name for side in sides if side.model_run.current_splits}
    second = next((name for name in likely if kind == "run" or name in current), likely[0])
    # The latest are first.
    earlier = likely[likely.index(second) + 1 :]
    return [earlier[0] if earlier else likely[0], second]


def _options(reader: Reader, name: str, groups: Sequence[Sequence[Side]]) -> dict[str, str]:
    """Return value -> text of a field's options: vintages and runs with the latest first, others by
    name.
    """
    sides = [side for group in groups for side in group]
    if name == "run":
        runs = sorted({side.name for side in sides})
        return {
            row["run_id"]: f"{row['started_at'].astimezone(UTC):%Y-%m-%d %H:%M:%S} {row['command']}"
            for row in reader.select("runs", order="started_at desc, run_id", run_id=runs)
        }
    values = sorted(
        ((side.model_run.responded_at, getattr(side.model_run, name)) for side in sides),
        reverse=True,
    )
    latest_first = dict.fromkeys(value for _, value in values)
    return {value: value for value in (latest_first if name == "vintage" else sorted(latest_first))}


def _figures(
    job: Job, reader: Reader, kind: Kind, given: Mapping[str, str], *, has_pages: bool
) -> tuple[list[PageFigure], str]:
    """Return the figures of a comparison, and the name of its first difference."""
    names = [given[side] for side in _SIDES]
    vintage = given.get("vintage") if kind != "vintage" else None
    narrowed = _narrowed(job, {name: value for name, value in given.items() if name != kind})
    result = compare(reader, Comparison(narrowed, names, kind, vintage=vintage))
    detail = apart(reader, result, result.differences[:1])
    differences = rows_of(result)
    chosen = differences[0] = with_verdicts(differences[0], detail["verdicts"][0])
    first, second = ({name: chosen[f"{side}_{name}"] for name in SAMPLING} for side in _SIDES)
    for flip in detail["flips"]:
        flip["address"] = task_address(
            flip["task_id"], first, second if second != first else None, flip["criterion_id"]
        )
        flip |= {
            f"{side}_explanations": " / ".join(flip[f"{side}_explanations"]) for side in _SIDES
        }
    reasons = table_columns("first_explanations second_explanations")
    parts = (
        (DIFF, differences),
        (_adapted(FLIPS, has_links=has_pages, more=reasons), detail["flips"]),
        (_adapted(CATEGORIES), detail["categories"]),
        (_adapted(TASKS), detail["tasks"]),
    )
    benchmark = load_benchmark(job.settings.benchmark)
    where = ", ".join(chosen[name] for name in ("split", "where") if chosen[name])
    about = f"From {chosen['first']} to {chosen['second']} on {where}"
    return [served(figure, rows, benchmark) for figure, rows in parts], about


def _adapted(figure: Figure, *, has_links: bool = False, more: Sequence[Column] = ()) -> Figure:
    """Return a figure about one difference: without its labels, with task ids as text or links,
    with `more` columns.
    """
    shown = (each for each in figure.columns if each.name not in _LABELS)
    as_text = (
        replace(each, kind="text") if each.name == "task_id" and not has_links else each
        for each in shown
    )
    return replace(figure, shows=(*as_text, *more))


def _narrowed(job: Job, given: Mapping[str, str]) -> Job:
    """Return the job narrowed by the parameters in the address."""
    model, judge, split = (given.get(name) for name in ("model", "judge", "split"))
    named = {
        "named_models": (model,) if model else None,
        "named_judges": (judge,) if judge else None,
    }
    return (job.on_splits((split,)) if split else job).model_copy(update=named)
