"""The sides of a comparison: names, their model runs, and the pairs of runs that are compared."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from itertools import product
from operator import attrgetter
from typing import Any, Literal, NoReturn, get_args

import sql
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.identity import BASE_VINTAGE, EVERY_VINTAGE
from tasks.rules.text.characters import did_you_mean, hint_on
from tasks.rules.text.numbers import some
from warehouse import Reader

Kind = Literal["model", "judge", "template", "run", "vintage", "revision"]
KINDS: tuple[Kind, ...] = get_args(Kind)
DIFFERING: dict[Kind, tuple[str, ...]] = {
    "model": ("model", "model_config_hash"),
    "judge": ("judge", "judge_config_hash", "template_hash"),
    "template": ("template_hash",),
    "run": ("vintage",),
    "vintage": ("vintage",),
    "revision": ("dataset_revision",),
}
"""Kind of name -> the attributes of model runs that may differ: what has the name (for all but
pipeline runs), and those that a label stands for.
"""
_SHORTEST = 6
_LISTED = 12
"""Number of vintages in a message; the others are only counted."""
_IDENTITY = (
    "dataset_revision",
    "model",
    "model_config_hash",
    "vintage",
    "judge",
    "judge_config_hash",
    "template_hash",
    "grading",
    "judge_trial",
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A requested comparison: each other name is compared with the first, on the splits of a job.

    If `kind` is None, it follows from the names. A model can be named with a vintage
    (`label@vintage`). The models and judges that the job names, its data-set revision (unless
    revisions are compared), and `vintage` select the model runs to pair: by default the current
    ones on each split, with `all` those of every vintage. In any other vintage, models that are not
    sampled every night stand with their base responses. If `score` is None, it is the primary one.
    """

    job: Job
    names: Sequence[str]
    kind: str | None = None
    score: str | None = None
    is_hard: bool = False
    vintage: str | None = None


@dataclass(frozen=True, slots=True)
class ModelRun:
    """A configured model, sampled in one vintage, under one judge configuration.

    `is_by_judge` is false for labels of people. `splits` have verdicts of it; on `current_splits`
    its vintage is the model's current one. If hard tasks are compared, both are names of own hard
    selections.
    """

    model_run_id: int
    dataset_revision: str
    model: str
    model_config_hash: str
    vintage: str
    judge: str
    judge_config_hash: str
    template_hash: str
    grading: str
    judge_trial: int
    n_trials: int
    is_by_judge: bool
    responded_at: datetime
    judged_at: datetime
    splits: frozenset[str]
    current_splits: frozenset[str]

    @property
    def in_vintage(self) -> str:
        """The name of the model in this vintage."""
        return f"{self.model}@{self.vintage}"


@dataclass(frozen=True, slots=True)
class Side:
    """A model run with its name in the comparison; of a pipeline run, only some tasks count
    (`only_tasks`).

    `is_dated` is true if a model is named with its vintage.
    """

    name: str
    model_run: ModelRun
    only_tasks: frozenset[str] | None = None
    is_dated: bool = False

    def splits(self, *, is_current: bool) -> frozenset[str]:
        """Return the splits on which it can be expected in a comparison, by default or of current
        vintages.
        """
        if self.only_tasks is not None:
            return frozenset()
        return (
            self.model_run.current_splits
            if is_current and not self.is_dated
            else self.model_run.splits
        )


@dataclass(frozen=True, slots=True)
class ModelRunPair:
    """Two model runs that differ only in the compared property; `splits` are those to compare, or
    None for all.
    """

    sides: tuple[Side, Side]
    notes: tuple[str, ...] = ()
    splits: frozenset[str] | None = None


def score_name_of(benchmark: Benchmark, score: str | None) -> str:
    """Return the name of a score: the given one, else that of the primary score.

    Raises:
        UsageError: the benchmark has no such score.
    """
    known = [definition.score_name for definition in (*benchmark.scores, benchmark.expected_score)]
    if score is not None and score not in known:
        hint = did_you_mean(score, known) or f"; {benchmark.name} has {', '.join(known)}"
        raise UsageError(f"--score {score}: no such score{hint}")
    return score or benchmark.primary_score.score_name


def resolved(
    reader: Reader, comparison: Comparison, model_runs: Sequence[ModelRun]
) -> tuple[Kind, tuple[str, ...]]:
    """Return the kind of the comparison, and the full names of its sides.

    Raises:
        UsageError: a name is unknown or ambiguous, or two names mean the same.
    """
    benchmark = comparison.job.settings.benchmark
    runs = [
        row["run_id"] for row in reader.select("verdicts", "distinct run_id", benchmark=benchmark)
    ]
    known: dict[Kind, Sequence[str]] = {
        kind: (
            runs
            if kind == "run"
            else sorted({getattr(each, DIFFERING[kind][0]) for each in model_runs})
        )
        for kind in KINDS
    }
    known["model"] = list(
        dict.fromkeys([*known["model"], *sorted({each.in_vintage for each in model_runs})])
    )
    kinds = [kind for kind in KINDS if kind == comparison.kind] or KINDS
    given = " and ".join(comparison.names)
    matches = {
        kind: [_matches(name, kind, known[kind]) for name in comparison.names] for kind in kinds
    }
    # A full name takes precedence over a prefix.
    full_names = [kind for kind in kinds if set(comparison.names) <= set(known[kind])]
    fitting = full_names or [kind for kind in kinds if all(matches[kind])]
    if not fitting:
        _refuse_names(comparison.names, {kind: known[kind] for kind in kinds}, model_runs)
    if len(fitting) > 1:
        raise UsageError(f"{given}: could be {' or '.join(fitting)}; say which with --of")
    kind = fitting[0]
    for name, full in zip(comparison.names, matches[kind], strict=True):
        if len(full) > 1:
            raise UsageError(
                f"{name}: {len(full)} {kind}s match ({', '.join(full)}); give more of the name"
            )
    names = tuple(full[0] for full in matches[kind])
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UsageError(f"{twice[0]}: given twice; compare different {kind}s")
    return kind, names


def _refuse_names(
    names: Sequence[str], known: Mapping[Kind, Sequence[str]], model_runs: Sequence[ModelRun]
) -> NoReturn:
    """Refuse names that are not all of one kind: with the first that is unknown, else with the kind
    of each.
    """
    kind_of_name = {name: kind for kind in reversed([*known]) for name in known[kind]}
    *first_kinds, last_kind = known
    wanted = f"{', '.join(first_kinds)} or {last_kind}" if first_kinds else last_kind
    for name in names:
        _refuse_missing_vintage(name, model_runs)
        if not any(_matches(name, kind, known[kind]) for kind in known):
            raise UsageError(
                f"{name}: no {wanted} with verdicts has this name{hint_on(name, kind_of_name)}"
            )
    kinds = ", ".join(f"{name} ({kind_of_name[name]})" for name in names if name in kind_of_name)
    raise UsageError(f"{' and '.join(names)}: must all be of one kind; given: {kinds}")


def _refuse_missing_vintage(name: str, model_runs: Sequence[ModelRun]) -> None:
    """Refuse a model's label with a vintage in which the model has no verdict."""
    label, _, vintage = name.rpartition("@")
    vintages = sorted({each.vintage for each in model_runs if each.model == label})
    if vintages and vintage not in vintages:
        raise UsageError(
            f"{name}: {label} has no verdict in vintage {vintage}; it has {some(vintages, _LISTED)}"
        )


def _matches(name: str, kind: Kind, known: Sequence[str]) -> list[str]:
    """Return the known names that a name stands for: itself, or those of a kind with long names
    that begin with it.
    """
    is_prefix = (
        kind in {"template", "run", "revision"} and len(name) >= _SHORTEST and name not in known
    )
    return [each for each in known if each == name or (is_prefix and each.startswith(name))]


@dataclass(frozen=True, slots=True)
class PairedRuns:
    """The pairs of model runs of a comparison: its kind, the names of its sides, and the pairs.

    `expected_splits` are those on which each name has verdicts in the compared vintages. `existing`
    says in words what is stored under the names, in any vintage.
    """

    kind: Kind
    names: Sequence[str]
    pairs: Sequence[ModelRunPair]
    expected_splits: Mapping[str, frozenset[str]]
    existing: str


def pairs(reader: Reader, comparison: Comparison) -> PairedRuns:
    """Return the pairs of model runs to compare.

    Raises:
        UsageError: the names do not determine a comparison, or an option has no match.
        PipelineError: no two model runs can be compared.
    """
    job = comparison.job
    every = model_runs(reader, job.settings.benchmark, is_hard=comparison.is_hard)
    kind, names = resolved(reader, comparison, every)
    vintage = None if comparison.vintage == EVERY_VINTAGE else comparison.vintage
    if {
        "model": job.named_models,
        "judge": job.named_judges,
        "vintage": comparison.vintage,
    }.get(kind):
        raise UsageError(f"--{kind}: {kind}s are compared; leave the option out")
    requested = [
        each
        for each in every
        # If judges are compared, people count too.
        if (
            each.judge in job.named_judges
            if job.named_judges
            else each.is_by_judge or kind == "judge"
        )
        and (kind == "revision" or each.dataset_revision == job.data.revision)
        and (not job.named_models or each.model in job.named_models)
        and (kind != "run" or vintage in {None, each.vintage})
    ]
    of_names = _sides(reader, job.settings.benchmark, kind, requested, names)
    dated = [side.name for side in of_names if side.is_dated]
    if dated and comparison.vintage:
        raise UsageError(
            f"--vintage {comparison.vintage}: {dated[0]} names its vintage; leave the option out"
        )
    sides = {name: [side for side in of_names if side.name == name] for name in names}
    if vintage is not None and kind != "run":
        sides = {name: _standing(job, vintage, of_name) for name, of_name in sides.items()}
    equal = _equal(kind, is_every=comparison.vintage == EVERY_VINTAGE)
    is_current = comparison.vintage is None and kind not in {"run", "vintage"}
    first, *others = sides.values()
    paired = [pair for other in others for pair in _paired(kind, first, other, equal)]
    if is_current and not _are_apart(sides.values()):
        paired = [pair for other in others for pair in _current_pairs(kind, first, other)]
    existing = "; ".join(_existing(kind, names, of_names))
    if not paired:
        raise PipelineError(
            "; ".join(filter(None, [_nothing(kind, sides, vintage, equal), existing]))
        )
    expected_splits = {
        name: frozenset(split for side in of_name for split in side.splits(is_current=is_current))
        for name, of_name in sides.items()
    }
    return PairedRuns(kind, names, paired, expected_splits, existing)


def _are_apart(sides: Iterable[Sequence[Side]]) -> bool:
    """Return whether the first name has no split in common with another one; `compare` says so."""
    first, *others = (
        {split for side in of_name for split in side.model_run.splits} for of_name in sides
    )
    return first.isdisjoint(set().union(*others))


def _current_pairs(kind: Kind, first: Sequence[Side], second: Sequence[Side]) -> list[ModelRunPair]:
    """Return the pairs of one name with another in current vintages, each with its splits."""
    pair_by_sides: dict[tuple[Side, Side], ModelRunPair] = {}
    for split in sorted({split for side in (*first, *second) for split in side.model_run.splits}):
        for pair in _paired(kind, *_current(kind, first, second, split), _equal(kind)):
            known = pair_by_sides.get(pair.sides, replace(pair, splits=frozenset()))
            splits = frozenset({*(known.splits or ()), split})
            pair_by_sides[pair.sides] = replace(known, splits=splits)
    return [*pair_by_sides.values()]


def _standing(job: Job, vintage: str, sides: Sequence[Side]) -> list[Side]:
    """Return the sides that stand in a vintage: those of it, and the base ones of pinned models
    that have none of it.

    A model is pinned if its configuration says so, or if it is not configured and has no other
    responses.
    """
    resampling = {model.label: model.resample for model in job.settings.models}
    vintages: dict[str, set[str]] = {}
    for side in sides:
        vintages.setdefault(side.model_run.model, set()).add(side.model_run.vintage)
    standing = []
    for side in sides:
        of_model = vintages[side.model_run.model]
        is_pinned = (
            resampling.get(side.model_run.model, "never" if of_model == {BASE_VINTAGE} else "")
            == "never"
        )
        stands_in = is_pinned and vintage not in of_model and side.model_run.vintage == BASE_VINTAGE
        if stands_in or side.model_run.vintage == vintage:
            standing.append(side)
    return standing


def _current(
    kind: Kind, first: Sequence[Side], second: Sequence[Side], split: str
) -> tuple[list[Side], list[Side]]:
    """Return the sides whose vintages are compared on a split.

    Models are compared in the current vintage of each, unless a name has a vintage. All else is
    compared on the same responses: in the vintage of a model that is current on most of the sides
    that have it, else in the latest one.
    """
    sides = [side for side in (*first, *second) if split in side.model_run.splits]
    current = [side for side in sides if split in side.model_run.current_splits]
    if kind == "model":
        compared = [side for side in sides if side in current or side.is_dated]
    else:
        compared = []
        equal = [name for name in _equal(kind) if name != "vintage"]
        for group in _grouped(sides, *equal).values():
            by_vintage = _grouped(group, "vintage")
            shared = [
                of_vintage
                for of_vintage in by_vintage.values()
                if len({side.name for side in of_vintage}) > 1
            ]
            if shared:
                preferred = max(shared, key=lambda of_vintage: _preference(of_vintage, current))
                compared += preferred
    return [side for side in compared if side in first], [
        side for side in compared if side in second
    ]


def _preference(sides: Sequence[Side], current: Sequence[Side]) -> tuple[int, datetime]:
    """Return the number of current sides, and the time of the last response."""
    n_current = sum(side in current for side in sides)
    return n_current, max(side.model_run.responded_at for side in sides)


def model_runs(reader: Reader, benchmark: str, *, is_hard: bool = False) -> list[ModelRun]:
    """Return the model runs of a benchmark that have a verdict; `is_hard` is about their splits.

    Raises:
        PipelineError: no model run has a verdict.
    """
    rows = reader.rows(
        sql.read("queries/compare/model_runs"), {"benchmark": benchmark, "is_hard": is_hard}
    )
    if not rows:
        raise PipelineError(
            f"nothing to compare: no verdict on {benchmark} yet; run `prbench run` first"
        )
    for row in rows:
        row["splits"] = frozenset(row["splits"])
        row["current_splits"] = frozenset(row["current_splits"])
    return [ModelRun(**{field.name: row[field.name] for field in fields(ModelRun)}) for row in rows]


def _grouped(sides: Iterable[Side], *equal: str) -> dict[Any, list[Side]]:
    """Return the sides grouped by the values of some attributes of their model runs."""
    groups: dict[Any, list[Side]] = {}
    for side in sides:
        groups.setdefault(attrgetter(*equal)(side.model_run), []).append(side)
    return groups


def _equal(kind: Kind, *, is_every: bool = False) -> list[str]:
    """Return the attributes that must be equal on both sides: all except the compared property.

    Models are compared in the vintages that were chosen for each, unless every vintage is compared
    by itself.
    """
    differing = DIFFERING[kind]
    if kind == "model" and not is_every:
        differing = (*differing, "vintage")
    return [name for name in _IDENTITY if name not in differing]


def _sides(
    reader: Reader,
    benchmark: str,
    kind: Kind,
    every: Sequence[ModelRun],
    names: Sequence[str] | None = None,
) -> list[Side]:
    """Return the model runs as sides, named by the attribute of this kind; `names` selects some."""
    if kind != "run":
        named = [Side(getattr(each, DIFFERING[kind][0]), each) for each in every]
        if kind == "model":
            labels = {each.model for each in every}
            dated = [each for each in every if names is not None and each.in_vintage not in labels]
            named += [Side(each.in_vintage, each, is_dated=True) for each in dated]
        return [side for side in named if names is None or side.name in names]
    by_id = {each.model_run_id: each for each in every}
    parameters = {"benchmark": benchmark, "runs": None if names is None else list(names)}
    return [
        Side(row["run_id"], by_id[row["model_run_id"]], frozenset(row["task_ids"]))
        for row in reader.rows(sql.read("queries/compare/runs"), parameters)
        if row["model_run_id"] in by_id
    ]


def _paired(
    kind: Kind, first: Sequence[Side], second: Sequence[Side], equal: Sequence[str]
) -> Iterator[ModelRunPair]:
    """Yield the pairs of a name with another one that are equal in some attributes, in the order of
    the model runs.
    """
    of_second = _grouped(second, *equal)
    for key, group in _grouped(first, *equal).items():
        others = of_second.get(key, [])
        if kind == "run":
            # Two pipeline runs on the same responses share their verdicts, because a verdict is
            # stored once.
            for a, b in product(group, others):
                if a.model_run.model_run_id != b.model_run.model_run_id:
                    yield ModelRunPair((a, b))
        elif others:
            # Prefer pairs of judges with the same template, in which only the judges differ.
            by_template, with_template = (
                _grouped(sides, "template_hash") for sides in (group, others)
            )
            shared = [
                (by_template[each], with_template[each])
                for each in by_template
                if each in with_template
            ]
            for both in shared or [(group, others)]:
                pair = _latest(*both)
                if len({side.model_run.model_run_id for side in pair.sides}) > 1:
                    yield pair


def _latest(first: Sequence[Side], second: Sequence[Side]) -> ModelRunPair:
    """Return the pair of the newest sides.

    There are several only if a label has had several configurations.
    """
    names = ("responded_at", "judged_at", "model_config_hash", "judge_config_hash", "template_hash")
    newest = attrgetter(*(f"model_run.{name}" for name in names))
    several = [sides for sides in (first, second) if len(sides) > 1]
    notes = tuple(
        f"{sides[0].name} has {len(sides)} configurations; the latest counts." for sides in several
    )
    return ModelRunPair((max(first, key=newest), max(second, key=newest)), notes)


def _nothing(
    kind: Kind, sides: Mapping[str, Sequence[Side]], vintage: str | None, equal: Sequence[str]
) -> str:
    """Return the reason why there is nothing to compare."""
    absent = next((name for name, of_name in sides.items() if not of_name), None)
    ids = [{side.model_run.model_run_id for side in of_name} for of_name in sides.values()]
    if absent is not None and vintage is not None:
        why = f"{absent} has no verdict in vintage {vintage} under these options"
    elif absent is not None:
        why = f"{absent} has no verdict under these options"
    elif kind == "model" and all(ids[0] & other for other in ids[1:]):
        why = f"{' and '.join(sides)} are the same responses"
    else:
        words = [name.removesuffix("_hash").replace("config", "configuration") for name in equal]
        why = f"{' and '.join(sides)} share no combination of {', '.join(words).replace('_', ' ')}"
    if kind == "run" and absent is None:
        why += ", or worked on the same responses; compare runs of different vintages"
    return f"nothing to compare: {why}"


def _existing(kind: Kind, names: Iterable[str], stored: Sequence[Side]) -> Iterator[str]:
    """Yield for each name the vintages that it has verdicts in, or the models of a vintage, and
    their judges.
    """
    for name in names:
        runs = sorted(
            (side.model_run for side in stored if side.name == name), key=attrgetter("responded_at")
        )
        if runs:
            listed = dict.fromkeys(
                each.model if kind in {"run", "vintage"} else each.vintage for each in runs
            )
            judges = dict.fromkeys(each.judge for each in runs)
            by = "" if kind == "judge" else f" by {some(judges)}"
            yield (
                f"{name} has verdicts {'of' if kind in {'run', 'vintage'} else 'in'}"
                f" {some(listed, _LISTED)}{by}"
            )


def comparable(reader: Reader, benchmark: str, revision: str, kind: Kind) -> list[list[Side]]:
    """Return the sides that can be compared, in groups that differ only in the compared property.

    Two sides need not have a task in common.

    Raises:
        PipelineError: there is no verdict yet.
    """
    every = [
        each
        for each in model_runs(reader, benchmark)
        if each.dataset_revision == revision and each.is_by_judge
    ]
    return [
        group
        for group in _grouped(_sides(reader, benchmark, kind, every), *_equal(kind)).values()
        if len({side.name for side in group}) > 1
        and len({side.model_run.model_run_id for side in group}) > 1
    ]
