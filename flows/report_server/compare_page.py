"""The page that compares: what is chosen in its form is compared when the page is opened, as `prbench diff` does."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from flows.report_server.choices import CHANGES, KINDS, Asked, Field, asked_in, fields_of
from tasks.compare import (
    Difference,
    Flip,
    Flips,
    Kind,
    compare,
    decision,
    flips_of,
    notes_on,
    question_of,
    sentence,
    short,
    table_of,
    where_in,
    with_explanations,
)
from tasks.config import Job
from tasks.report.content.edition import task_address
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.text.numbers import counted, number, true_minus
from warehouse import Reader, Warehouse, WarehouseError

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
