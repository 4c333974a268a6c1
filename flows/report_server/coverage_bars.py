"""How much of what a run wants is there: by model, and by judge and model."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sql
from tasks.config.job import Job
from tasks.config.models import Endpoint
from tasks.run.coverage import Covered, coverage
from warehouse import Reader


@dataclass(frozen=True)
class Bar:
    """The responses of a model (no `judge`), the verdicts of a judge, or those on one model.

    Attributes:
        model: with its vintage where that is not the base one; None for all models.
        label: of the model or judge whose calls fill the bar.
        is_part: whether it is a part of the bar of its judge.
        n_made: cells that this very run has done, as far as is published.
        n_fresh: calls of this run that were answered since then, as far as that is known.
    """

    wanted: int
    done: int
    failures: Counter[str]
    model: str | None
    judge: str | None
    label: str
    is_part: bool = False
    n_made: int = 0
    n_fresh: int = 0

    @property
    def n_failed(self) -> int:
        """Cells that failed."""
        return sum(self.failures.values())


def bars_of(job: Job, reader: Reader) -> list[Bar]:
    """The bars of a run, responses first; none before there are admitted tasks.

    Raises:
        PipelineError: the data set is not ingested.
    """
    cells: dict[tuple[str | None, str], list[Covered]] = {}
    judges = {None, *(judge.label for judge in job.settings.judges)}
    # What was judged elsewhere, or answered elsewhere in part, is not for the run to do.
    for cell in (cell for cell in coverage(job) if cell.due and cell.judge in judges):
        cells.setdefault((cell.judge, cell.model_name), []).append(cell)
    rows = reader.rows(sql.read("questions/look/rows_of_run_by_label"), {"run_id": job.run_id})
    made = {(row["purpose"], row["label"]): row["n_done"] for row in rows}
    by_judge: dict[str | None, list[Bar]] = {}
    for (judge, model), of_bar in cells.items():
        failures = sum((cell.failures for cell in of_bar), Counter[str]())
        wanted, done = sum(cell.due for cell in of_bar), sum(cell.done for cell in of_bar)
        label = of_bar[0].model
        n_made = 0 if judge else made.get(("sample", label), 0)
        bar = Bar(wanted, done, failures, model, judge, judge or label, is_part=bool(judge), n_made=n_made)
        by_judge.setdefault(judge, []).append(bar)
    bars = by_judge.pop(None, [])
    for judge, parts in by_judge.items():
        bars += [_whole(parts, made.get(("judge", judge), 0)), *(parts if len(parts) > 1 else ())]
    return bars


def _whole(parts: Sequence[Bar], n_made: int) -> Bar:
    """The bar of a judge."""
    failures = sum((part.failures for part in parts), Counter[str]())
    wanted, done = sum(part.wanted for part in parts), sum(part.done for part in parts)
    model = parts[0].model if len(parts) == 1 else None
    return Bar(wanted, done, failures, model, parts[0].judge, parts[0].label, n_made=n_made)


def with_fresh(bars: Iterable[Bar], calls: Iterable[Mapping[str, Any]], job: Job | None) -> list[Bar]:
    """The bars with the calls that were answered since the last publishing.

    The ledger knows the name that a model was called by. Where several labels have one name, it is not known
    whose calls they were.
    """
    if job is None:
        return list(bars)
    answered: Counter[tuple[str, str]] = Counter()
    for call in calls:
        answered[call["purpose"], call["called_model"]] += call["calls"] - call["failed_calls"]
    names = {"sample": _names(job.settings.models), "judge": _names(job.settings.judges)}

    def fresh(bar: Bar) -> int:
        purpose = "judge" if bar.judge else "sample"
        name = names[purpose].get(bar.label)
        missing = bar.wanted - bar.done - bar.n_failed
        return 0 if name is None or bar.is_part else min(missing, max(0, answered[purpose, name] - bar.n_made))

    return [replace(bar, n_fresh=fresh(bar)) for bar in bars]


def _names(endpoints: Sequence[Endpoint]) -> dict[str, str]:
    """By label, the name that no other one is called by."""
    counted = Counter(each.name for each in endpoints)
    return {each.label: each.name for each in endpoints if counted[each.name] == 1}
