"""Which model runs stand against each other: those that are equal in everything but what is compared."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from itertools import product

import sql
from tasks.compare.model_run import COLUMN_OF, Kind, ModelRun, Pair, Question, Side
from tasks.compare.names import resolved
from tasks.rules.errors import PipelineError, UsageError
from warehouse import Reader

_IDENTITY = (
    "dataset_revision", "model", "model_config_hash", "vintage", "judge", "judge_config_hash", "template_hash",
    "grading", "judge_trial",
)  # fmt: skip
_MAY_DIFFER: dict[Kind, frozenset[str]] = {
    # A label stands for what was configured under it.
    "model": frozenset({"model", "model_config_hash"}),
    "judge": frozenset({"judge", "judge_config_hash", "template_hash"}),
    "template": frozenset({"template_hash"}),
    "run": frozenset({"vintage"}),
    "vintage": frozenset({"vintage"}),
    "revision": frozenset({"dataset_revision"}),
}

_Key = tuple[object, ...]


def pairs(reader: Reader, question: Question) -> tuple[Kind, list[Pair], list[str]]:
    """What is compared, the pairs of model runs, and what must be known about their choice.

    Raises:
        UsageError: the names do not say what to compare, or an option asks for what is not there.
        PipelineError: no two model runs can be compared.
    """
    every = model_runs(reader, question.benchmark)
    kind, names = resolved(reader, question, every)
    _refuse_options(question, kind, every)
    meant = every if kind == "revision" else of_revision(every, question.revision)
    notes = []
    if question.revision and kind != "revision" and question.revision not in {each.dataset_revision for each in meant}:
        notes.append(f"No verdict on the configured revision {question.revision[:12]}; another one is compared.")
    sides = _sides(reader, question, kind, names, [each for each in meant if _is_asked_for(each, question, kind)])
    found = [pair for name in names[1:] for pair in _paired(kind, sides[names[0]], sides[name])]
    if not found:
        raise PipelineError(_nothing(kind, names, sides))
    return kind, found, notes


def model_runs(reader: Reader, benchmark: str) -> list[ModelRun]:
    """The model runs of a benchmark that have a verdict.

    Raises:
        PipelineError: there is none.
    """
    names = [field.name for field in fields(ModelRun)]
    rows = reader.rows(sql.read("questions/compare/model_runs"), {"benchmark": benchmark})
    if not rows:
        raise PipelineError(f"nothing to compare: no verdict on {benchmark} yet; run `prbench run` first")
    return [ModelRun(**{name: row[name] for name in names}) for row in rows]


def of_revision(every: Sequence[ModelRun], revision: str | None) -> Sequence[ModelRun]:
    """The model runs of a revision; all where it has none."""
    return [each for each in every if each.dataset_revision == revision] or every


def grouped(kind: Kind, sides: Iterable[Side]) -> dict[_Key, list[Side]]:
    """The sides in groups that are equal in everything but what is compared."""
    groups: dict[_Key, list[Side]] = {}
    for side in sides:
        key = tuple(getattr(side.model_run, name) for name in _IDENTITY if name not in _MAY_DIFFER[kind])
        groups.setdefault(key, []).append(side)
    return groups


def _refuse_options(question: Question, kind: Kind, every: Sequence[ModelRun]) -> None:
    narrowing = {
        "model": question.models,
        "judge": question.judges,
        "vintage": (question.vintage,) if question.vintage else (),
    }
    for option, values in narrowing.items():
        if values and option == kind:
            raise UsageError(f"--{option}: {option}s are what is compared; leave the option out")
        known = sorted({getattr(each, option) for each in every})
        unknown = [value for value in values if value not in known]
        if unknown:
            raise UsageError(f"--{option} {unknown[0]}: no verdict has it; there are {', '.join(known)}")


def _is_asked_for(model_run: ModelRun, question: Question, kind: Kind) -> bool:
    # Who is compared by name need not be a judge.
    is_by_judge = model_run.judge in question.judges if question.judges else model_run.is_by_judge or kind == "judge"
    return (
        is_by_judge
        and (not question.models or model_run.model in question.models)
        and (not question.vintage or model_run.vintage == question.vintage)
    )


def _sides(
    reader: Reader, question: Question, kind: Kind, names: Sequence[str], every: Sequence[ModelRun]
) -> dict[str, list[Side]]:
    if kind != "run":
        return {name: [Side(name, each) for each in every if getattr(each, COLUMN_OF[kind]) == name] for name in names}
    by_id = {each.model_run_id: each for each in every}
    sides: dict[str, list[Side]] = {name: [] for name in names}
    parameters = {"benchmark": question.benchmark, "runs": list(names)}
    for row in reader.rows(sql.read("questions/compare/runs"), parameters):
        if row["model_run_id"] in by_id:
            sides[row["run_id"]].append(Side(row["run_id"], by_id[row["model_run_id"]], frozenset(row["task_ids"])))
    return sides


def _paired(kind: Kind, first: Sequence[Side], second: Sequence[Side]) -> list[Pair]:
    of_first, of_second = grouped(kind, first), grouped(kind, second)
    # The order of the model runs, not that of their keys.
    return [
        pair
        for key, group in of_first.items()
        if key in of_second
        for pair in _pairs_of_group(kind, group, of_second[key])
    ]


def _pairs_of_group(kind: Kind, first: list[Side], second: list[Side]) -> list[Pair]:
    if kind == "run":
        # Two runs that worked on the same responses have no difference to show: a verdict is stored once.
        return [Pair(a, b) for a, b in product(first, second) if a.model_run.model_run_id != b.model_run.model_run_id]
    if kind != "judge":
        return [_latest(kind, first, second)]
    # With one template for both, the judges alone differ.
    shared = {side.model_run.template_hash for side in first} & {side.model_run.template_hash for side in second}
    if not shared:
        return [_latest(kind, first, second)]
    used = (side.model_run.template_hash for side in first)
    templates = list(dict.fromkeys(template for template in used if template in shared))
    return [
        _latest(
            kind, *([side for side in sides if side.model_run.template_hash == template] for sides in (first, second))
        )
        for template in templates
    ]


def _latest(kind: Kind, first: Sequence[Side], second: Sequence[Side]) -> Pair:
    """The newest of each; more than one there is only where a label has been configured again."""
    chosen, notes = [], []
    for sides in (first, second):
        newest = max(sides, key=lambda side: _age(kind, side))
        chosen.append(newest)
        if len(sides) > 1:
            notes.append(
                f"{newest.name} has {len(sides)} configurations; the latest counts ({_configuration_of(kind, newest)})."
            )
    return Pair(chosen[0], chosen[1], tuple(notes))


def _configuration_of(kind: Kind, side: Side) -> str:
    if kind == "model":
        return side.model_run.model_config_hash[:12]
    return f"{side.model_run.judge_config_hash[:12]}, template {side.model_run.template_hash[:12]}"


def _age(kind: Kind, side: Side) -> tuple[object, ...]:
    model_run = side.model_run
    if kind == "model":
        return model_run.answered_at, model_run.model_config_hash
    return model_run.judged_at, model_run.judge_config_hash, model_run.template_hash


def _nothing(kind: Kind, names: Sequence[str], sides: dict[str, list[Side]]) -> str:
    absent = [name for name in names if not sides[name]]
    if absent:
        return f"nothing to compare: {absent[0]} has no verdict under these options"
    if kind == "run":
        same = {side.model_run.model_run_id for side in sides[names[0]]}
        if any(side.model_run.model_run_id in same for name in names[1:] for side in sides[name]):
            return (
                "nothing to compare: the runs worked on the same responses under the same judging, "
                "and a verdict is stored once; runs differ where their vintages do"
            )
    equal = [name for name in _IDENTITY if name not in _MAY_DIFFER[kind]]
    in_words = [name.removesuffix("_hash").replace("config", "configuration").replace("_", " ") for name in equal]
    return f"nothing to compare: {' and '.join(names)} share no combination of {', '.join(in_words)}"
