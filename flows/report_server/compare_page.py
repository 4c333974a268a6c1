"""The page that compares: what is picked in its form is compared when it is asked for, as `prbench diff` does it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from flows.report_server.choices import CHANGES, KINDS, Asked, Field, asked_in, fields_of
from tasks.compare import (
    CONTEXT,
    Answer,
    Difference,
    Flip,
    Flips,
    Kind,
    compare,
    counted,
    distinguishing,
    figure,
    flips_of,
    n_unequal,
    notes_on,
    on_both,
    p_value,
    question_of,
    sentence,
    short,
    with_explanations,
)
from tasks.config import Job
from tasks.report import task_address
from tasks.rules.errors import PipelineError, UsageError
from warehouse import Reader, Warehouse, WarehouseError

_MOST_FLIPS = 300
"""So many changed verdicts are listed at first; a link leads to all."""
_MOST_TASKS = 10


@dataclass(frozen=True)
class Comparison:
    """What the page shows: the choices, and what came out, if anything was asked; else why nothing came out."""

    asked: Asked
    kinds: Mapping[Kind, str]
    fields: Sequence[Field] = ()
    result: Mapping[str, Any] | None = None
    trouble: str | None = None


def comparison(job: Job, given: Mapping[str, str], folder: Path) -> Comparison:
    """What an address asks for, compared.

    Args:
        job: whose benchmark is compared, on which splits.
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
        return Comparison(asked, KINDS, fields, trouble=str(error))


def _result(job: Job, reader: Reader, asked: Asked, *, has_pages: bool) -> dict[str, Any]:
    answer = compare(reader, question_of(_narrowed(job, asked), asked.names, asked.kind, score=None, is_hard=False,
                                         vintage=asked.narrowed.get("vintage") or None))  # fmt: skip
    place = min(asked.place, len(answer.differences) - 1)
    chosen = answer.differences[place]
    (flips,) = flips_of(reader, answer.score, [chosen])
    listed = [flip for flip in flips.flips if _is_listed(flip, asked.change)]
    shown = with_explanations(reader, chosen.pair, listed if asked.is_whole else listed[:_MOST_FLIPS])
    return {
        "sentence": _capitalised(sentence(answer, chosen)),
        "columns": _columns(answer),
        "rows": [(_row(answer, each), _link(asked, show=str(n))) for n, each in enumerate(answer.differences)],
        "place": place,
        "first": short(answer.kind, chosen.pair.first),
        "second": short(answer.kind, chosen.pair.second),
        "split": chosen.split,
        "compared": counted(flips.n_compared, "criterion", "criteria"),
        "changes": list(_changes(asked, flips, place)),
        "flips": [_flip(each, chosen, has_pages=has_pages) for each in shown],
        "n_listed": len(listed),
        "whole": _link(asked, show=str(place), change=asked.change, whole="yes"),
        "categories": [asdict(each) for each in flips.categories if each.n_gained or each.n_lost],
        "tasks": [each for each in flips.tasks if each.difference][:_MOST_TASKS],
        "notes": list(dict.fromkeys([*answer.notes, *chosen.notes, *notes_on(flips, chosen)])),
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


def _columns(answer: Answer) -> list[str]:
    tested = ["p", "p corrected"] if len(answer.differences) > 1 else ["p"]
    context = (CONTEXT[name].capitalize() for name in distinguishing(answer))
    return [
        "First", "Second", *context, "Split", "Difference", "95 % interval", *tested, "Significant", "Tasks",
        "Smallest detectable", "First mean", "Second mean",
    ]  # fmt: skip


def _row(answer: Answer, found: Difference) -> list[str]:
    pair, paired = found.pair, found.paired
    p_values = [paired.p_value, found.p_adjusted] if len(answer.differences) > 1 else [paired.p_value]
    return [
        short(answer.kind, pair.first),
        short(answer.kind, pair.second),
        *(on_both(pair.first, pair.second, name) for name in distinguishing(answer)),
        found.split,
        signed(found.difference),
        _interval(found),
        *(p_value(value) or "–" for value in p_values),
        {True: "yes", False: "no", None: "–"}[found.is_significant],
        f"{paired.n_tasks} of {found.n_wanted}",
        "–" if paired.smallest_detectable is None else figure(paired.smallest_detectable),
        _minus(f"{found.first_mean:.3f}"),
        _minus(f"{found.second_mean:.3f}"),
    ]


def _interval(found: Difference) -> str:
    paired = found.paired
    if paired.ci_low is None or paired.ci_high is None:
        return "too few tasks differ" if n_unequal(found) else "no task differs"
    return f"{signed(paired.ci_low)} to {signed(paired.ci_high)}"


def _is_listed(flip: Flip, change: str) -> bool:
    return not change or (flip.effect < 0) == (change == "lost")


def _changes(asked: Asked, flips: Flips, place: int) -> Iterator[dict[str, Any]]:
    """The ways to list the changed verdicts, each with its number and its link."""
    for change, title in CHANGES.items():
        number = sum(_is_listed(flip, change) for flip in flips.flips)
        link = _link(asked, show=str(place), change=change)
        yield {"title": title, "n": number, "link": link, "is_current": change == asked.change}


def _flip(flip: Flip, found: Difference, *, has_pages: bool) -> dict[str, Any]:
    sides = [{name: getattr(side.model_run, name) for name in ("model", "model_config_hash", "vintage")}
             for side in (found.pair.first, found.pair.second)]  # fmt: skip
    second = sides[1] if sides[1] != sides[0] else None
    return {
        "task": flip.task_id,
        "title": flip.title,
        "category": flip.category,
        "weight": _minus(f"{flip.weight:+g}"),
        "first": _decision(flip.first_value, found.pair.first.model_run.grading),
        "second": _decision(flip.second_value, found.pair.second.model_run.grading),
        "effect": signed(flip.effect),
        "is_loss": flip.effect < 0,
        "link": task_address(flip.task_id, sides[0], second, flip.criterion_id) if has_pages else None,
        "explanations": [[text for text in texts if text] for texts in flip.explanations],
    }


def _decision(value: float, grading: str) -> str:
    """The mean over trials, as words where the trials agree."""
    words = {1.0: "met", 0.0: "not met"} | ({0.5: "partly met"} if grading == "ternary" else {})
    return words.get(value, f"{value:.0%} met")


def _capitalised(text: str) -> str:
    """A sentence that begins with a word of ours; one that begins with a name stays as it is."""
    return text[0].upper() + text[1:] if text.startswith("no ") else text


def signed(value: float) -> str:
    """A difference with its sign."""
    return _minus(f"{value:+.3f}")


def _minus(text: str) -> str:
    """A number with a true minus sign."""
    return text.replace("-", "−")
