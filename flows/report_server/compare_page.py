"""The page that compares: what its form offers, and what is chosen in it, compared as `prbench diff` does."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tasks.compare.differences import Difference, Flip, Flips, compare, flips_of, short, with_explanations
from tasks.compare.pairs import Kind, Side, comparable, question_of
from tasks.compare.sentences import decision, notes_on, sentence, table_of, where_in
from tasks.config.job import Job
from tasks.figures.scope import task_address
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.text.numbers import counted, number, true_minus
from warehouse import Reader, Warehouse, WarehouseError

KINDS: dict[Kind, tuple[str, str]] = {
    "model": ("Models", "Two models under the same judge, in the same vintage."),
    "vintage": (
        "Vintages",
        "Two samplings of the same model, such as two nights. A night samples the nightly models again; the vintage of "
        "these responses is the night's date. All others are of the vintage base.",
    ),
    "run": (
        "Runs",
        "Two runs, each with the verdicts that it made. Runs can be compared where they judged different vintages of a "
        "model, as two nights do.",
    ),
    "judge": ("Judges", "Two judges on the same responses."),
}
"""What can be compared: as the page calls it, and what is meant."""
_NARROWED = {"model": "Model", "judge": "Judge", "vintage": "Vintage"}
_ALL = ("", "all")
CHANGES = {"": "all", "lost": "lower the score", "gained": "raise the score"}


@dataclass(frozen=True)
class Field:
    """A choice: its name in the address, its heading, its options (value, text), and the chosen value."""

    name: str
    title: str
    options: Sequence[tuple[str, str]]
    chosen: str


@dataclass(frozen=True)
class Asked:
    """What an address asks for.

    Attributes:
        names: the two to compare; empty where nothing is chosen yet.
        narrowed: the values of what stays equal on both sides, empty for all; and the split, empty for the job's.
        place: which of the differences is taken apart.
        change: which of the changed verdicts are listed, a key of `CHANGES`.
        is_whole: whether all of them are listed.
    """

    kind: Kind
    names: tuple[str, ...]
    narrowed: Mapping[str, str]
    place: int = 0
    change: str = ""
    is_whole: bool = False


def asked_in(given: Mapping[str, str]) -> Asked:
    """What an address asks for; what it cannot mean is left out."""
    kind: Kind = next((kind for kind in KINDS if kind == given.get("of")), "model")
    names = tuple(given[side] for side in ("first", "second") if given.get(side))
    narrowed = {name: given.get(name, "") for name in (*_NARROWED, "split") if name != kind}
    place = given.get("show", "")
    return Asked(
        kind,
        names if len(names) == len(("first", "second")) else (),
        narrowed,
        int(place) if place.isdecimal() and len(place) < len("10000") else 0,
        given["change"] if given.get("change") in CHANGES else "",
        given.get("whole") == "yes",
    )


def fields_of(job: Job, reader: Reader, asked: Asked) -> list[Field]:
    """The fields of the page's form; where an address chooses nothing, likely values are chosen.

    Only names that can be compared with another one are offered.

    Raises:
        PipelineError: there is no verdict yet.
    """
    groups = comparable(reader, job.settings.benchmark, job.data.revision, asked.kind)
    names = _names(reader, asked.kind, groups)
    narrowed = dict(asked.narrowed) if asked.names else _likely_narrowed(job, asked.kind, groups)
    first, second = asked.names or _likely(job, asked.kind, list(names), _fitting(groups, narrowed))
    sides = list(names.items())
    fields = [Field("first", "First", sides, first), Field("second", "Second", sides, second)]
    for name, title in _NARROWED.items():
        options = _options(reader, name, groups)
        if name != asked.kind and (asked.kind, name) != ("run", "vintage") and len(options) > 1:
            fields.append(Field(name, title, [_ALL, *options.items()], narrowed.get(name, "")))
    if splits := _splits(job, reader):
        fields.append(Field("split", "Split", splits, narrowed.get("split", "")))
    return fields


_Groups = Sequence[Sequence[Side]]


def _names(reader: Reader, kind: Kind, groups: _Groups) -> dict[str, str]:
    """What can be picked on each side, as the page calls it; latest vintages and runs first."""
    if kind != "run":
        return _options(reader, kind, groups)
    there = {side.name for group in groups for side in group}
    rows = reader.select("runs", order="started_at desc, run_id")
    return {
        row["run_id"]: f"{row['started_at'].astimezone(UTC):%Y-%m-%d %H:%M:%S} "
        + (f"night {row['night']}" if row["night"] else str(row["command"]))
        for row in rows
        if row["run_id"] in there
    }


def _options(reader: Reader, attribute: str, groups: _Groups) -> dict[str, str]:
    """The values of an attribute, as the page calls them: vintages from the latest, others by name."""
    values = _in_order(attribute, groups)
    if attribute != "vintage":
        return {value: value for value in values}
    nights = {row["night"] for row in reader.rows("select distinct night from runs")}
    return {value: f"{value} (night)" if value in nights else value for value in values}


def _in_order(attribute: str, groups: _Groups) -> list[str]:
    every = [side.model_run for group in groups for side in group]
    if attribute != "vintage":
        return sorted({getattr(each, attribute) for each in every})
    latest = {each.vintage: each.answered_at for each in sorted(every, key=lambda each: each.answered_at)}
    return sorted(latest, key=lambda vintage: (latest[vintage], vintage), reverse=True)


def _likely_narrowed(job: Job, kind: Kind, groups: _Groups) -> dict[str, str]:
    """The first configured judge; beside models, the vintage that most of them have, the latest of several."""
    every = [side.model_run for group in groups for side in group]
    judges = {each.judge for each in every}
    chosen = {"judge": next((each.label for each in job.settings.judges if each.label in judges), "")}
    if kind == "model" and every:
        n_models = Counter(vintage for vintage, _ in {(each.vintage, each.model) for each in every})
        chosen["vintage"] = max(_in_order("vintage", groups), key=lambda vintage: n_models[vintage])
    return {name: value for name, value in chosen.items() if name != kind}


def _fitting(groups: _Groups, narrowed: Mapping[str, str]) -> set[str]:
    """Names that can be compared with each other under these choices: those of the largest group."""
    asked = {name: value for name, value in narrowed.items() if value}
    fitting = (
        {side.name for side in group if all(getattr(side.model_run, name) == asked[name] for name in asked)}
        for group in groups
    )
    return max(fitting, key=len, default=set())


def _likely(job: Job, kind: Kind, names: Sequence[str], fitting: set[str]) -> tuple[str, str]:
    """The first two, configured ones before others; of vintages and runs, the earlier one is the first side."""
    configured = [each.label for each in (*job.settings.models, *job.settings.judges)]
    ordered = sorted(names, key=lambda name: name not in configured)
    first, second = [*(name for name in ordered if name in fitting), "", ""][:2]
    return (second, first) if kind in {"vintage", "run"} and second else (first, second)


def _splits(job: Job, reader: Reader) -> list[tuple[str, str]]:
    """The splits to choose from, none where there is one; first, as an empty value, those of `prbench diff`."""
    members = reader.select(
        "intermediate.task_set_members", "distinct split", benchmark=job.settings.benchmark,
        dataset_revision=job.data.revision, is_own_hard=False,
    )  # fmt: skip
    stored = [row["split"] for row in members]
    if len(stored) < 2:
        return []
    configured = [split for split in job.settings.dataset.splits if split in stored]
    if not configured or len(configured) == len(stored):
        return [_ALL, *((split, split) for split in stored)]
    others = [split for split in stored if configured != [split]]
    return [("", f"{', '.join(configured)} (as configured)"), *((split, split) for split in others)]


_MOST_FLIPS = 300
"""So many changed verdicts are listed at first; a link leads to all."""
_MOST_TASKS = 10


@dataclass(frozen=True)
class Comparison:
    """What the page shows: the choices, and the result if anything is chosen, or why there is none.

    `kinds` are what can be compared, each with its title and what it means.
    """

    asked: Asked
    kinds: Mapping[Kind, tuple[str, str]]
    fields: Sequence[Field] = ()
    result: Mapping[str, Any] | None = None
    trouble: str | None = None


def comparison(job: Job, given: Mapping[str, str], folder: Path) -> Comparison:
    """What an address asks for, compared.

    Args:
        job: whose benchmark is compared, on its splits unless the address names one.
        given: the parameters in the address.
        folder: the folder of the benchmark's report; task pages are linked if they are there.
    """
    asked = asked_in(given)
    fields: Sequence[Field] = ()
    try:
        with Warehouse(job.warehouse).reader() as reader:
            fields = fields_of(job, reader, asked)
            result = _result(job, reader, asked, has_pages=(folder / "task.html").is_file()) if asked.names else None
            return Comparison(asked, KINDS, fields, result)
    except (PipelineError, UsageError, WarehouseError) as error:
        return Comparison(asked, KINDS, fields, trouble=_capitalised(str(error)))


def _result(job: Job, reader: Reader, asked: Asked, *, has_pages: bool) -> dict[str, Any]:
    answer = compare(reader, question_of(_narrowed(job, asked), asked.names, asked.kind, score=None, is_hard=False,
                                         vintage=asked.narrowed.get("vintage") or None))  # fmt: skip
    place = min(asked.place, len(answer.differences) - 1)
    chosen = answer.differences[place]
    (flips,) = flips_of(reader, answer.score, [chosen])
    listed = [flip for flip in flips.flips if _is_listed(flip, asked.change)]
    shown = with_explanations(reader, chosen.pair, listed if asked.is_whole else listed[:_MOST_FLIPS])
    table = table_of(answer)
    return {
        "sentence": true_minus(_capitalised(sentence(answer, chosen))),
        # The first two columns are the names, which are the same in all rows here.
        "columns": table.columns[2:],
        "rows": [([_cell(cell) for cell in row[2:]], _link(asked, show=str(n))) for n, row in enumerate(table.rows)],
        "table_notes": [true_minus(note) for note in table.notes],
        "place": place,
        "first": short(answer.kind, chosen.pair.first),
        "second": short(answer.kind, chosen.pair.second),
        "where": f"{chosen.split}{where_in(answer, chosen)}",
        "compared": counted(flips.n_compared, "criterion", "criteria"),
        "changes": list(_changes(asked, flips, place)),
        "flips": [_flip(each, chosen, has_pages=has_pages) for each in shown],
        "n_listed": len(listed),
        "whole": _link(asked, show=str(place), change=asked.change, whole="yes"),
        "categories": [asdict(each) for each in flips.categories if each.n_gained or each.n_lost],
        "tasks": [each for each in flips.tasks if each.difference][:_MOST_TASKS],
        "n_tasks": sum(bool(each.difference) for each in flips.tasks),
        "notes": [true_minus(note) for note in notes_on(flips, chosen)],
    }


def _narrowed(job: Job, asked: Asked) -> Job:
    """The job with what the address narrows; the question is made of it."""
    model, judge, split = (asked.narrowed.get(name) for name in ("model", "judge", "split"))
    dataset = job.settings.dataset.model_copy(update={"splits": (split,)}) if split else job.settings.dataset
    return job.model_copy(update={
        "settings": job.settings.model_copy(update={"dataset": dataset}),
        "named_models": (model,) if model else None,
        "named_judges": (judge,) if judge else None,
    })  # fmt: skip


def _link(asked: Asked, **more: str) -> str:
    first, second = asked.names
    values = {"of": asked.kind, "first": first, "second": second, **asked.narrowed, **more}
    return "?" + urlencode({name: value for name, value in values.items() if value})


def _cell(value: str | bool | None) -> str:
    """A cell of the table as the page shows it."""
    if isinstance(value, str):
        return true_minus(value)
    return {True: "yes", False: "no", None: "–"}[value]


def _is_listed(flip: Flip, change: str) -> bool:
    return not change or (flip.effect < 0) == (change == "lost")


def _changes(asked: Asked, flips: Flips, place: int) -> Iterator[dict[str, Any]]:
    """The ways to list the changed verdicts, each with its number and its link."""
    for change, title in CHANGES.items():
        n_listed = sum(_is_listed(flip, change) for flip in flips.flips)
        link = _link(asked, show=str(place), change=change)
        yield {"title": title, "n": n_listed, "link": link, "is_current": change == asked.change}


def _flip(flip: Flip, found: Difference, *, has_pages: bool) -> dict[str, Any]:
    sides = [{name: getattr(side.model_run, name) for name in ("model", "model_config_hash", "vintage")}
             for side in (found.pair.first, found.pair.second)]  # fmt: skip
    second = sides[1] if sides[1] != sides[0] else None
    return {
        "task": flip.task_id,
        "title": flip.title,
        "category": flip.category,
        "weight": number(flip.weight, "+g"),
        "first": decision(flip.first_by_trial),
        "second": decision(flip.second_by_trial),
        "effect": number(flip.effect, "+z.3f"),
        "is_loss": flip.effect < 0,
        "link": task_address(flip.task_id, sides[0], second, flip.criterion_id) if has_pages else None,
        "explanations": [[text for text in texts if text] for texts in flip.explanations],
    }


def _capitalised(text: str) -> str:
    """A sentence that begins with a word of ours; one that begins with a name stays as it is."""
    return text[0].upper() + text[1:] if text.startswith(("no ", "nothing ")) else text
