"""What can be compared on the page, and what an address asks for."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

import sql
from tasks.compare import Kind, ModelRun, model_runs
from tasks.config import Job
from warehouse import Reader

KINDS: dict[Kind, str] = {"model": "Models", "vintage": "Nights", "run": "Runs", "judge": "Judges"}
"""What can be compared, as the page calls it."""
_NARROWED = {"model": "Model", "judge": "Judge", "vintage": "Night"}
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
        names: the two to compare; empty where nothing is asked yet.
        narrowed: the values of what stays equal on both sides, and of the split; empty for all.
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
    """The choices of the page; before anything is asked for, likely ones are chosen.

    Raises:
        PipelineError: there is no verdict yet.
    """
    every = model_runs(reader, job.settings.benchmark)
    narrowed = dict(asked.narrowed) if asked.names else _likely_narrowed(job, asked.kind, every)
    sides = _sides(job, reader, asked.kind, every)
    vintage = narrowed.get("vintage")
    there = {getattr(each, asked.kind, "") for each in every if not vintage or each.vintage == vintage}
    likely = [value for value, _ in sides if value in there] or [value for value, _ in sides]
    first, second = asked.names or _likely(asked.kind, likely)
    fields = [Field("first", "First", sides, first), Field("second", "Second", sides, second)]
    for name, title in _NARROWED.items():
        values = _in_order(name, every)
        if name != asked.kind and (asked.kind, name) != ("run", "vintage") and len(values) > 1:
            fields.append(Field(name, title, [_ALL, *((value, value) for value in values)], narrowed.get(name, "")))
    splits = _splits(job, reader)
    if len(splits) > 1:
        options = [_ALL, *((split, split) for split in splits)]
        fields.append(Field("split", "Split", options, narrowed.get("split", "")))
    return fields


def _sides(job: Job, reader: Reader, kind: Kind, every: Sequence[ModelRun]) -> list[tuple[str, str]]:
    """What can be picked on each side, latest nights and runs first."""
    if kind != "run":
        return [(value, value) for value in _in_order(kind, every)]
    rows = reader.rows(sql.read("questions/look/runs_to_choose"), {"benchmark": job.settings.benchmark})
    return [(row["run_id"], f"{row['started_at'].astimezone(UTC):%Y-%m-%d %H:%M} {_what(row)}") for row in rows]


def _what(row: Mapping[str, Any]) -> str:
    """What a run was."""
    return f"night {row['night']}" if row["night"] else str(row["command"])


def _in_order(attribute: str, every: Sequence[ModelRun]) -> list[str]:
    """The values of an attribute: nights from the latest, others by name."""
    if attribute != "vintage":
        return sorted({getattr(each, attribute) for each in every})
    latest = {each.vintage: each.answered_at for each in sorted(every, key=lambda each: each.answered_at)}
    return sorted(latest, key=lambda vintage: (latest[vintage], vintage), reverse=True)


def _likely(kind: Kind, values: Sequence[str]) -> tuple[str, str]:
    """The first two; of nights and runs, which stand latest first, the earlier one is the first side."""
    first, second = [*values, "", ""][:2]
    return (second, first) if kind in {"vintage", "run"} and second else (first, second)


def _likely_narrowed(job: Job, kind: Kind, every: Sequence[ModelRun]) -> dict[str, str]:
    """The first configured judge; beside models, the night that most of them have, the latest of several."""
    judges = {each.judge for each in every}
    chosen = {"judge": next((each.label for each in job.settings.judges if each.label in judges), "")}
    if kind == "model":
        models = {(each.vintage, each.model) for each in every}
        n_models = Counter(vintage for vintage, _ in models)
        chosen["vintage"] = max(_in_order("vintage", every), key=lambda vintage: n_models[vintage])
    return chosen


def _splits(job: Job, reader: Reader) -> list[str]:
    rows = reader.rows(
        "select distinct split from staging.task_set_members where benchmark = ? and not is_own_hard order by split",
        [job.settings.benchmark],
    )
    return [row["split"] for row in rows]
