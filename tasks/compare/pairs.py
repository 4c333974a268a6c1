"""The sides of a comparison: names, their model runs, and the pairs of runs that are compared."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import product
from operator import attrgetter
from typing import Any, Literal, get_args

import sql
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.text.characters import did_you_mean, hint_on
from warehouse import Reader

Kind = Literal["model", "judge", "template", "run", "vintage", "revision"]
KINDS: tuple[Kind, ...] = get_args(Kind)
DIFFERING: dict[Kind, tuple[str, ...]] = {
    "model": ("model", "model_config_hash"), "judge": ("judge", "judge_config_hash", "template_hash"),
    "template": ("template_hash",), "run": ("vintage",), "vintage": ("vintage",), "revision": ("dataset_revision",),
}  # fmt: skip
"""Kind of name -> the attributes of model runs that may differ: what has the name (for all but pipeline runs), and
those that a label stands for."""
_SHORTEST = 6
_IDENTITY = (
    "dataset_revision", "model", "model_config_hash", "vintage", "judge", "judge_config_hash", "template_hash",
    "grading", "judge_trial",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """A requested comparison: each other name is compared with the first, on the splits of a job.

    If `kind` is None, it follows from the names. The models and judges that the job names, its data-set revision
    (unless revisions are compared), and `vintage` select the model runs to pair. If `score` is None, it is the primary
    one.
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

    `is_by_judge` is false for labels of people.
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


@dataclass(frozen=True, slots=True)
class Side:
    """A model run with its name in the comparison; of a pipeline run, only some tasks count (`only_tasks`)."""

    name: str
    model_run: ModelRun
    only_tasks: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class ModelRunPair:
    """Two model runs that differ only in the compared property."""

    sides: tuple[Side, Side]
    notes: tuple[str, ...] = ()


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


def resolved(reader: Reader, comparison: Comparison, model_runs: Sequence[ModelRun]) -> tuple[Kind, tuple[str, ...]]:
    """Return the kind of the comparison, and the full names of its sides.

    Raises:
        UsageError: a name is unknown or ambiguous, or two names mean the same.
    """
    benchmark = comparison.job.settings.benchmark
    runs = [row["run_id"] for row in reader.select("verdicts", "distinct run_id", benchmark=benchmark)]
    known: dict[Kind, Sequence[str]] = {
        kind: runs if kind == "run" else sorted({getattr(each, DIFFERING[kind][0]) for each in model_runs})
        for kind in KINDS
    }
    kinds, given = [kind for kind in KINDS if kind == comparison.kind] or KINDS, " and ".join(comparison.names)
    matches = {kind: [_matches(name, kind, known[kind]) for name in comparison.names] for kind in kinds}
    # A full name takes precedence over a prefix.
    full_names = [kind for kind in kinds if set(comparison.names) <= set(known[kind])]
    fitting = full_names or [kind for kind in kinds if all(matches[kind])]
    if not fitting:
        kind_of = {each: kind for kind in reversed(kinds) for each in known[kind]}
        wanted = " or ".join(filter(None, (", ".join(kinds[:-1]), kinds[-1])))
        for name in comparison.names:
            if not any(_matches(name, kind, known[kind]) for kind in kinds):
                raise UsageError(f"{name}: no {wanted} with verdicts has this name{hint_on(name, kind_of)}")
        named = ", ".join(f"{name} ({kind_of[name]})" for name in comparison.names if name in kind_of)
        raise UsageError(f"{given}: must all be of one kind; given: {named}")
    if len(fitting) > 1:
        raise UsageError(f"{given}: could be {' or '.join(fitting)}; say which with --of")
    kind = fitting[0]
    for name, full in zip(comparison.names, matches[kind], strict=True):
        if len(full) > 1:
            raise UsageError(f"{name}: {len(full)} {kind}s match ({', '.join(full)}); give more of the name")
    names = tuple(full[0] for full in matches[kind])
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"{twice[0]}: given twice; compare different {kind}s")
    return kind, names


def _matches(name: str, kind: Kind, known: Sequence[str]) -> list[str]:
    """Return the known names that a name stands for: itself, or those of a kind with long names that begin with it."""
    is_prefix = kind in {"template", "run", "revision"} and len(name) >= _SHORTEST and name not in known
    return [each for each in known if each == name or (is_prefix and each.startswith(name))]


def pairs(reader: Reader, comparison: Comparison) -> tuple[Kind, list[ModelRunPair]]:
    """Return the kind of the comparison, and the pairs of model runs.

    Raises:
        UsageError: the names do not determine a comparison, or an option has no match.
        PipelineError: no two model runs can be compared.
    """
    job, vintage = comparison.job, comparison.vintage
    every = model_runs(reader, job.settings.benchmark)
    kind, names = resolved(reader, comparison, every)
    if {"model": job.named_models, "judge": job.named_judges, "vintage": vintage}.get(kind):
        raise UsageError(f"--{kind}: {kind}s are compared; leave the option out")
    requested = [
        each
        for each in every
        # If judges are compared, people count too.
        if (each.judge in job.named_judges if job.named_judges else each.is_by_judge or kind == "judge")
        and (kind == "revision" or each.dataset_revision == job.data.revision)
        and (not job.named_models or each.model in job.named_models)
        and (not vintage or each.vintage == vintage)
    ]
    of_names = _sides(reader, job.settings.benchmark, kind, requested, names)
    sides = {name: [side for side in of_names if side.name == name] for name in names}
    paired = [pair for name in names[1:] for pair in _paired(kind, sides[names[0]], sides[name])]
    if not paired:
        raise PipelineError(_nothing(kind, names, sides))
    return kind, paired


def model_runs(reader: Reader, benchmark: str) -> list[ModelRun]:
    """Return the model runs of a benchmark that have a verdict.

    Raises:
        PipelineError: no model run has a verdict.
    """
    rows = reader.rows(sql.read("queries/compare/model_runs"), {"benchmark": benchmark})
    if not rows:
        raise PipelineError(f"nothing to compare: no verdict on {benchmark} yet; run `prbench run` first")
    return [ModelRun(**{field.name: row[field.name] for field in fields(ModelRun)}) for row in rows]


def _grouped(sides: Iterable[Side], *equal: str) -> dict[Any, list[Side]]:
    """Return the sides grouped by the values of some attributes of their model runs."""
    groups: dict[Any, list[Side]] = {}
    for side in sides:
        groups.setdefault(attrgetter(*equal)(side.model_run), []).append(side)
    return groups


def _equal(kind: Kind) -> list[str]:
    """Return the attributes that must be equal on both sides: all except the compared property."""
    return [name for name in _IDENTITY if name not in DIFFERING[kind]]


def _sides(
    reader: Reader, benchmark: str, kind: Kind, every: Sequence[ModelRun], names: Sequence[str] | None = None
) -> list[Side]:
    """Return the model runs as sides, named by the attribute of this kind; `names` selects some."""
    if kind != "run":
        named = [Side(getattr(each, DIFFERING[kind][0]), each) for each in every]
        return [side for side in named if names is None or side.name in names]
    by_id = {each.model_run_id: each for each in every}
    parameters = {"benchmark": benchmark, "runs": None if names is None else list(names)}
    return [
        Side(row["run_id"], by_id[row["model_run_id"]], frozenset(row["task_ids"]))
        for row in reader.rows(sql.read("queries/compare/runs"), parameters)
        if row["model_run_id"] in by_id
    ]


def _paired(kind: Kind, first: Sequence[Side], second: Sequence[Side]) -> Iterator[ModelRunPair]:
    """Yield the pairs of a name with another one, in the order of the model runs."""
    of_second = _grouped(second, *_equal(kind))
    for key, group in _grouped(first, *_equal(kind)).items():
        others = of_second.get(key, [])
        if kind == "run":
            # Two pipeline runs on the same responses share their verdicts, because a verdict is stored once.
            for a, b in product(group, others):
                if a.model_run.model_run_id != b.model_run.model_run_id:
                    yield ModelRunPair((a, b))
        elif others:
            # Prefer pairs of judges with the same template, in which only the judges differ.
            by_template, with_template = (_grouped(sides, "template_hash") for sides in (group, others))
            shared = [(by_template[each], with_template[each]) for each in by_template if each in with_template]
            for both in shared or [(group, others)]:
                yield _latest(*both)


def _latest(first: Sequence[Side], second: Sequence[Side]) -> ModelRunPair:
    """Return the pair of the newest sides. There are several only if a label has had several configurations."""
    names = ("responded_at", "judged_at", "model_config_hash", "judge_config_hash", "template_hash")
    newest = attrgetter(*(f"model_run.{name}" for name in names))
    several = [sides for sides in (first, second) if len(sides) > 1]
    notes = tuple(f"{sides[0].name} has {len(sides)} configurations; the latest counts." for sides in several)
    return ModelRunPair((max(first, key=newest), max(second, key=newest)), notes)


def _nothing(kind: Kind, names: Sequence[str], sides: dict[str, list[Side]]) -> str:
    if absent := [name for name in names if not sides[name]]:
        return f"nothing to compare: {absent[0]} has no verdict under these options"
    words = [name.removesuffix("_hash").replace("config", "configuration").replace("_", " ") for name in _equal(kind)]
    same = ", or worked on the same responses; compare runs of different vintages" if kind == "run" else ""
    return f"nothing to compare: {' and '.join(names)} share no combination of {', '.join(words)}{same}"


def comparable(reader: Reader, benchmark: str, revision: str, kind: Kind) -> list[list[Side]]:
    """Return the sides that can be compared, in groups that differ only in the compared property.

    Two sides need not have a task in common.

    Raises:
        PipelineError: there is no verdict yet.
    """
    every = [each for each in model_runs(reader, benchmark) if each.dataset_revision == revision and each.is_by_judge]
    return [
        group
        for group in _grouped(_sides(reader, benchmark, kind, every), *_equal(kind)).values()
        if len({side.name for side in group}) > 1 and len({side.model_run.model_run_id for side in group}) > 1
    ]
