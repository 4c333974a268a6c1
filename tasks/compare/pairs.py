"""The sides of a comparison: names, their model runs, and the pairs of runs that are compared."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from itertools import chain, product
from operator import attrgetter
from typing import Any, Literal, NoReturn, get_args

from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.identity import BASE_VINTAGE, EVERY_VINTAGE, JUDGE_CONFIG
from tasks.rules.text.characters import did_you_mean, hint_on
from tasks.rules.text.numbers import list_text
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
"""Kind of comparison -> the attributes in which the compared model runs may differ; the first has
the compared names, except for pipeline runs.
"""
_SHORTEST = 6
"""Fewest characters of a name that stand for the whole name."""
_MOST_LISTED = 12
"""Most vintages or models that a message lists; the others are only counted."""
_IDENTITY = ("dataset_revision", "model", "model_config_hash", "vintage", *JUDGE_CONFIG)


@dataclass(frozen=True)
class Comparison:
    """A requested comparison: each other name is compared with the first.

    Attributes:
        job: its splits are compared. Only its data-set revision counts (unless revisions are
            compared), and only the models and judges that it names, if any.
        names: at least two names of one kind; a model may be named with a vintage
            (`label@vintage`).
        kind: what is compared; None if it follows from the names.
        score: the name of the score; None for the primary one.
        is_hard: true if hard subsets are compared in place of the splits.
        vintage: None for the current vintages on each split; `all` for every vintage by itself; or
            one vintage, in which models that are not sampled every night are represented by their
            base responses.
    """

    job: Job
    names: Sequence[str]
    kind: str | None = None
    score: str | None = None
    is_hard: bool = False
    vintage: str | None = None

    @property
    def only_vintage(self) -> str | None:
        """The vintage of the model runs to pair; None if several are."""
        return None if self.vintage == EVERY_VINTAGE else self.vintage


@dataclass(frozen=True)
class ModelRun:
    """A configured model, sampled in one vintage, under one judge configuration.

    `is_by_judge` is false for labels of people. `splits` are those with verdicts on it, and
    `current_splits` those on which its vintage is the model's current one. If hard tasks are
    compared, both are names of hard subsets that this project selected.
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
    def dated_name(self) -> str:
        """The name of the model in this vintage."""
        return f"{self.model}@{self.vintage}"


@dataclass(frozen=True)
class Side:
    """A model run with its name in the comparison.

    Attributes:
        only_tasks: the tasks on which a pipeline run made verdicts, if pipeline runs are compared.
        is_dated: true if a model is named with its vintage.
    """

    name: str
    model_run: ModelRun
    only_tasks: frozenset[str] | None = None
    is_dated: bool = False

    def expected_splits(self, *, is_current: bool) -> frozenset[str]:
        """Return the splits on which a comparison can expect it; none for a pipeline run.

        With `is_current`, only current vintages are compared, and what is named with its vintage.
        """
        if self.only_tasks is not None:
            return frozenset()
        if is_current and not self.is_dated:
            return self.model_run.current_splits
        return self.model_run.splits


@dataclass(frozen=True)
class ModelRunPair:
    """Two model runs that differ only in the compared property; `splits` are those to compare, or
    None for all.
    """

    sides: tuple[Side, Side]
    notes: tuple[str, ...] = ()
    splits: frozenset[str] | None = None


SidesByName = Mapping[str, Sequence[Side]]
"""Name in the comparison -> its sides."""


def score_name_of(benchmark: Benchmark, score: str | None) -> str:
    """Return the name of a score: the given one, else that of the primary score.

    Raises:
        UsageError: the benchmark has no such score.
    """
    names = [definition.score_name for definition in (*benchmark.scores, benchmark.expected_score)]
    if score is not None and score not in names:
        hint = did_you_mean(score, names) or f"; {benchmark.name} has {', '.join(names)}"
        raise UsageError(f"--score {score}: no such score{hint}")
    return score or benchmark.primary_score.score_name


def _kind_and_names(
    reader: Reader, comparison: Comparison, model_runs: Sequence[ModelRun]
) -> tuple[Kind, tuple[str, ...]]:
    """Return the kind of the comparison, and the full names of its sides.

    Raises:
        UsageError: a name is unknown or ambiguous, or two names mean the same.
    """
    names_by_kind = _names_by_kind(reader, comparison.job.benchmark, model_runs)
    if comparison.kind is not None:
        if comparison.kind not in KINDS:
            raise UsageError(f"--of {comparison.kind}: must be one of {', '.join(KINDS)}")
        names_by_kind = {comparison.kind: names_by_kind[comparison.kind]}
    matches: dict[Kind, list[list[str]]] = {}
    for kind, names in names_by_kind.items():
        matches[kind] = [_matches(name, kind, names) for name in comparison.names]
    # A full name takes precedence over a prefix.
    kinds = [kind for kind, names in names_by_kind.items() if set(names) >= set(comparison.names)]
    if not kinds:
        kinds = [kind for kind in matches if all(matches[kind])]
    if not kinds:
        _refuse_names(comparison.names, names_by_kind, model_runs)
    if len(kinds) > 1:
        names_in_words = " and ".join(comparison.names)
        raise UsageError(f"{names_in_words}: could be {' or '.join(kinds)}; say which with --of")
    [kind] = kinds
    return kind, _full_names(comparison.names, kind, matches[kind])


def _full_names(
    names: Sequence[str], kind: Kind, matches: Sequence[Sequence[str]]
) -> tuple[str, ...]:
    """Return the full name of each side.

    Raises:
        UsageError: a name is ambiguous, or two names mean the same.
    """
    for name, matching in zip(names, matches, strict=True):
        if len(matching) > 1:
            raise UsageError(
                f"{name}: {len(matching)} {kind}s match ({', '.join(matching)}); give more of the"
                " name"
            )
    full_names = tuple(matching[0] for matching in matches)
    for name in full_names:
        if full_names.count(name) > 1:
            raise UsageError(f"{name}: given twice; compare different {kind}s")
    return full_names


def _names_by_kind(
    reader: Reader, benchmark: str, model_runs: Sequence[ModelRun]
) -> dict[Kind, list[str]]:
    """Return all names of each kind; a model can also be named with a vintage."""
    names_by_kind: dict[Kind, list[str]] = {}
    for kind in KINDS:
        if kind == "run":
            rows = reader.select("verdicts", "distinct run_id", benchmark=benchmark)
            names_by_kind[kind] = [row["run_id"] for row in rows]
        else:
            names_by_kind[kind] = sorted({_name_of(run, kind) for run in model_runs})
    names_by_kind["model"] += sorted({run.dated_name for run in model_runs})
    return names_by_kind


def _name_of(model_run: ModelRun, kind: Kind) -> str:
    """Return the name of a model run in a comparison of a kind (not of pipeline runs)."""
    return str(getattr(model_run, DIFFERING[kind][0]))


def _refuse_names(
    names: Sequence[str], names_by_kind: Mapping[Kind, list[str]], model_runs: Sequence[ModelRun]
) -> NoReturn:
    """Refuse names that are not all of one kind: with the first that is unknown, else with the
    kinds of each.
    """
    *kinds, last_kind = names_by_kind
    kinds_in_words = f"{', '.join(kinds)} or {last_kind}" if kinds else last_kind
    listing = []
    for name in names:
        _refuse_missing_vintage(name, model_runs)
        kinds_of_name = [
            kind for kind in names_by_kind if _matches(name, kind, names_by_kind[kind])
        ]
        if not kinds_of_name:
            hint = hint_on(name, chain.from_iterable(names_by_kind.values()))
            raise UsageError(f"{name}: no {kinds_in_words} with verdicts has this name{hint}")
        listing.append(f"{name} ({' or '.join(kinds_of_name)})")
    raise UsageError(f"{' and '.join(names)}: must all be of one kind; given: {', '.join(listing)}")


def _refuse_missing_vintage(name: str, model_runs: Sequence[ModelRun]) -> None:
    """Refuse a model's label with a vintage in which the model has no verdict."""
    label, _, vintage = name.rpartition("@")
    vintages = sorted({run.vintage for run in model_runs if run.model == label})
    if vintages and vintage not in vintages:
        raise UsageError(
            f"{name}: {label} has no verdict in vintage {vintage}; it has"
            f" {list_text(vintages, _MOST_LISTED)}"
        )


def _matches(name: str, kind: Kind, names: Sequence[str]) -> list[str]:
    """Return the names that a name stands for: itself, or those of a kind with long names that
    begin with it.
    """
    if name in names:
        return [name]
    if kind in {"template", "run", "revision"} and len(name) >= _SHORTEST:
        return [full_name for full_name in names if full_name.startswith(name)]
    return []


@dataclass(frozen=True)
class PairedRuns:
    """The pairs of model runs of a comparison, of one kind.

    Attributes:
        names: the full names of the sides, that of the base first.
        expected_splits: name -> the splits on which it has verdicts in the compared vintages; none
            in a comparison of pipeline runs.
        stored_verdicts: what is stored under the names, in any vintage, in words.
    """

    kind: Kind
    names: Sequence[str]
    pairs: Sequence[ModelRunPair]
    expected_splits: Mapping[str, frozenset[str]]
    stored_verdicts: str

    @property
    def model_run_ids(self) -> list[int]:
        """The ids of all model runs in the pairs."""
        return sorted(_model_run_ids(chain.from_iterable(pair.sides for pair in self.pairs)))


def pair_model_runs(reader: Reader, comparison: Comparison) -> PairedRuns:
    """Return the pairs of model runs to compare.

    Raises:
        UsageError: the names do not determine a comparison, or an option contradicts it.
        PipelineError: no two model runs can be compared.
    """
    benchmark = comparison.job.benchmark
    all_runs = load_model_runs(reader, benchmark, is_hard=comparison.is_hard)
    kind, names = _kind_and_names(reader, comparison, all_runs)
    _refuse_option_of(kind, comparison)
    requested = [run for run in all_runs if _is_requested(run, comparison, kind)]
    sides = _sides(reader, benchmark, kind, requested, names)
    _refuse_two_vintages(sides, comparison)
    sides_by_name = _sides_by_name(comparison, kind, names, sides)
    is_current = comparison.vintage is None and kind not in {"run", "vintage"}
    equal_attributes = _equal_attributes(kind, is_each_vintage=comparison.vintage == EVERY_VINTAGE)
    # Names without a common split are paired over all splits, so that `compare` can report it.
    are_paired_by_split = is_current and _share_a_split(sides_by_name)
    first_sides, *other_sides = sides_by_name.values()
    model_run_pairs = list[ModelRunPair]()
    for second_sides in other_sides:
        if are_paired_by_split:
            model_run_pairs += _current_pairs(kind, first_sides, second_sides)
        else:
            model_run_pairs += _matching_pairs(kind, first_sides, second_sides, equal_attributes)
    stored_verdicts = list(_stored_verdicts(kind, names, sides))
    if not model_run_pairs:
        cause = _why_nothing_to_compare(
            kind, sides_by_name, comparison.only_vintage, equal_attributes
        )
        raise PipelineError("; ".join([cause, *stored_verdicts]))
    expected_splits = {
        name: _expected_splits(sides_of_name, is_current=is_current)
        for name, sides_of_name in sides_by_name.items()
    }
    return PairedRuns(kind, names, model_run_pairs, expected_splits, "; ".join(stored_verdicts))


def _expected_splits(sides: Iterable[Side], *, is_current: bool) -> frozenset[str]:
    """Return the splits on which a comparison can expect any of the sides of a name."""
    return frozenset[str]().union(*(side.expected_splits(is_current=is_current) for side in sides))


def _sides_by_name(
    comparison: Comparison, kind: Kind, names: Sequence[str], sides: Sequence[Side]
) -> dict[str, list[Side]]:
    """Return the sides of each name, only those that represent the vintage of the comparison."""
    sides_by_name = {}
    for name in names:
        sides_of_name = [side for side in sides if side.name == name]
        if comparison.only_vintage is not None and kind != "run":
            sides_of_name = _sides_in_vintage(
                comparison.job, comparison.only_vintage, sides_of_name
            )
        sides_by_name[name] = sides_of_name
    return sides_by_name


def _refuse_option_of(kind: Kind, comparison: Comparison) -> None:
    """Refuse an option that selects by the property that is compared."""
    options = {
        "model": comparison.job.named_models,
        "judge": comparison.job.named_judges,
        "vintage": comparison.vintage,
    }
    if options.get(kind):
        raise UsageError(f"--{kind}: {kind}s are compared; leave the option out")


def _is_requested(model_run: ModelRun, comparison: Comparison, kind: Kind) -> bool:
    """Return whether the options of a comparison select a model run."""
    job = comparison.job
    if job.named_judges:
        has_wanted_judge = model_run.judge in job.named_judges
    else:
        # If judges are compared, people count too.
        has_wanted_judge = model_run.is_by_judge or kind == "judge"
    return (
        has_wanted_judge
        and (kind == "revision" or model_run.dataset_revision == job.data.revision)
        and (not job.named_models or model_run.model in job.named_models)
        and (kind != "run" or comparison.only_vintage in {None, model_run.vintage})
    )


def _refuse_two_vintages(sides: Sequence[Side], comparison: Comparison) -> None:
    """Refuse the option `--vintage` beside a name with a vintage."""
    dated = [side.name for side in sides if side.is_dated]
    if dated and comparison.vintage:
        raise UsageError(
            f"--vintage {comparison.vintage}: {dated[0]} names its vintage; leave the option out"
        )


def _share_a_split(sides_by_name: SidesByName) -> bool:
    """Return whether the first name has a split in common with any other name."""
    splits = [_splits_of(sides) for sides in sides_by_name.values()]
    return not splits[0].isdisjoint(set().union(*splits[1:]))


def _splits_of(sides: Iterable[Side]) -> set[str]:
    """Return all splits on which sides have verdicts."""
    return set[str]().union(*(side.model_run.splits for side in sides))


def _current_pairs(
    kind: Kind, first_sides: Sequence[Side], second_sides: Sequence[Side]
) -> list[ModelRunPair]:
    """Return the pairs of one name with another in current vintages, each with its splits.

    No vintage is named then, so models need not be of the same one.
    """
    pair_by_sides: dict[tuple[Side, Side], ModelRunPair] = {}
    splits: dict[tuple[Side, Side], set[str]] = defaultdict(set)
    sides = [*first_sides, *second_sides]
    for split in sorted(_splits_of(sides)):
        current = _current_sides(kind, sides, split)
        first_current = [side for side in current if side in first_sides]
        second_current = [side for side in current if side in second_sides]
        for pair in _matching_pairs(kind, first_current, second_current, _equal_attributes(kind)):
            pair_by_sides.setdefault(pair.sides, pair)
            splits[pair.sides].add(split)
    return [replace(pair, splits=frozenset(splits[pair.sides])) for pair in pair_by_sides.values()]


def _sides_in_vintage(job: Job, vintage: str, sides: Sequence[Side]) -> list[Side]:
    """Return the sides that represent a vintage: those of it, and the base responses of pinned
    models without responses in it.

    A model is pinned if its configuration says so, or if it is not configured and has no other
    responses.
    """
    resampling = {model.label: model.resample for model in job.settings.models}
    vintages_by_model: dict[str, set[str]] = defaultdict(set)
    for side in sides:
        vintages_by_model[side.model_run.model].add(side.model_run.vintage)
    representatives = []
    for side in sides:
        run = side.model_run
        vintages = vintages_by_model[run.model]
        if run.model in resampling:
            is_pinned = resampling[run.model] == "never"
        else:
            is_pinned = vintages == {BASE_VINTAGE}
        is_substitute = is_pinned and vintage not in vintages and run.vintage == BASE_VINTAGE
        if is_substitute or run.vintage == vintage:
            representatives.append(side)
    return representatives


def _current_sides(kind: Kind, sides: Sequence[Side], split: str) -> list[Side]:
    """Return the sides whose vintages are compared on a split.

    Models are compared in the current vintage of each, unless a name has a vintage. All else is
    compared on the same responses: in the vintage of a model that is current on most of the sides
    that have it, else in the latest one.
    """
    sides = [side for side in sides if split in side.model_run.splits]
    current = [side for side in sides if split in side.model_run.current_splits]
    if kind == "model":
        return [side for side in sides if side in current or side.is_dated]

    def preference(candidates: Sequence[Side]) -> tuple[int, datetime]:
        """Return the number of current sides, and the time of the last response."""
        n_current = sum(side in current for side in candidates)
        return n_current, max(side.model_run.responded_at for side in candidates)

    compared = list[Side]()
    equal_attributes = [name for name in _equal_attributes(kind) if name != "vintage"]
    for group in _grouped(sides, *equal_attributes).values():
        sides_by_vintage = _grouped(group, "vintage").values()
        # A vintage of one name alone cannot be compared.
        shared = [candidates for candidates in sides_by_vintage if len(_names(candidates)) > 1]
        preferred = max(shared, key=preference, default=[])
        compared += preferred
    return compared


def load_model_runs(reader: Reader, benchmark: str, *, is_hard: bool = False) -> list[ModelRun]:
    """Return the model runs of a benchmark that have a verdict; `is_hard` is about their splits.

    Raises:
        PipelineError: no model run has a verdict.
    """
    parameters = {"benchmark": benchmark, "is_hard": is_hard}
    rows = reader.query("queries/compare/model_runs", parameters)
    if not rows:
        raise PipelineError(
            f"nothing to compare: no verdict on {benchmark} yet; run `prbench run` first"
        )
    runs = []
    for row in rows:
        attributes = {field.name: row[field.name] for field in fields(ModelRun)}
        attributes["splits"] = frozenset(row["splits"])
        attributes["current_splits"] = frozenset(row["current_splits"])
        runs.append(ModelRun(**attributes))
    return runs


def _grouped(sides: Iterable[Side], *equal_attributes: str) -> dict[Any, list[Side]]:
    """Return the sides grouped by the values of some attributes of their model runs."""
    groups: dict[Any, list[Side]] = defaultdict(list)
    for side in sides:
        groups[attrgetter(*equal_attributes)(side.model_run)].append(side)
    return groups


def _equal_attributes(kind: Kind, *, is_each_vintage: bool = False) -> list[str]:
    """Return the attributes that must be equal on both sides: all except the compared property.

    Models are compared in the vintages that were chosen for each, unless every vintage is compared
    by itself.
    """
    differing = DIFFERING[kind]
    if kind == "model" and not is_each_vintage:
        differing = (*differing, "vintage")
    return [name for name in _IDENTITY if name not in differing]


def _sides(
    reader: Reader,
    benchmark: str,
    kind: Kind,
    model_runs: Sequence[ModelRun],
    names: Sequence[str] | None = None,
) -> list[Side]:
    """Return model runs as sides, named by the attribute of this kind; `names` selects some."""
    if kind == "run":
        return _sides_of_pipeline_runs(reader, benchmark, model_runs, names)
    sides = [Side(_name_of(run, kind), run) for run in model_runs]
    if names is None:
        return sides
    if kind == "model":
        # A label that is like a label with a vintage takes precedence.
        labels = {run.model for run in model_runs}
        for run in model_runs:
            if run.dated_name not in labels:
                sides.append(Side(run.dated_name, run, is_dated=True))
    return [side for side in sides if side.name in names]


def _sides_of_pipeline_runs(
    reader: Reader, benchmark: str, model_runs: Sequence[ModelRun], names: Sequence[str] | None
) -> list[Side]:
    """Return model runs named by each pipeline run that made verdicts, with its tasks."""
    model_run_by_id = {run.model_run_id: run for run in model_runs}
    parameters = {"benchmark": benchmark, "runs": None if names is None else list(names)}
    sides = []
    for row in reader.query("queries/compare/runs", parameters):
        model_run = model_run_by_id.get(row["model_run_id"])
        if model_run is not None:
            sides.append(Side(row["run_id"], model_run, frozenset(row["task_ids"])))
    return sides


def _matching_pairs(
    kind: Kind,
    first_sides: Sequence[Side],
    second_sides: Sequence[Side],
    equal_attributes: Sequence[str],
) -> Iterator[ModelRunPair]:
    """Yield the pairs of a name with another one that are equal in some attributes, in the order of
    the model runs.
    """
    second_groups = _grouped(second_sides, *equal_attributes)
    for key, first_group in _grouped(first_sides, *equal_attributes).items():
        if key not in second_groups:
            continue
        if kind == "run":
            # Two pipeline runs on the same responses share their verdicts, because a verdict is
            # stored once.
            paired = [ModelRunPair(sides) for sides in product(first_group, second_groups[key])]
        else:
            paired = _latest_pairs(first_group, second_groups[key])
        for pair in paired:
            if len(_model_run_ids(pair.sides)) > 1:
                yield pair


def _latest_pairs(first_sides: Sequence[Side], second_sides: Sequence[Side]) -> list[ModelRunPair]:
    """Return the newest pair with each template that both names have, else the newest pair.

    With the same template only the judges of a pair differ.
    """
    first_by_template = _grouped(first_sides, "template_hash")
    second_by_template = _grouped(second_sides, "template_hash")
    shared = [key for key in first_by_template if key in second_by_template]
    if not shared:
        return [_latest(first_sides, second_sides)]
    return [_latest(first_by_template[key], second_by_template[key]) for key in shared]


def _latest(first_sides: Sequence[Side], second_sides: Sequence[Side]) -> ModelRunPair:
    """Return the pair of the newest sides.

    There are several only if a label has had several configurations.
    """
    recency = attrgetter(
        "model_run.responded_at",
        "model_run.judged_at",
        "model_run.model_config_hash",
        "model_run.judge_config_hash",
        "model_run.template_hash",
    )
    notes = tuple(
        f"{sides[0].name} has {len(sides)} configurations; the latest counts."
        for sides in (first_sides, second_sides)
        if len(sides) > 1
    )
    return ModelRunPair((max(first_sides, key=recency), max(second_sides, key=recency)), notes)


def _why_nothing_to_compare(
    kind: Kind, sides_by_name: SidesByName, vintage: str | None, equal_attributes: Sequence[str]
) -> str:
    """Return the reason why no pair was found; `vintage` is the only one compared, if any."""
    absent = [name for name, sides in sides_by_name.items() if not sides]
    names = " and ".join(sides_by_name)
    if absent:
        in_vintage = "" if vintage is None else f" in vintage {vintage}"
        return f"nothing to compare: {absent[0]} has no verdict{in_vintage} under these options"
    if kind == "model" and _are_same_responses(sides_by_name):
        return f"nothing to compare: {names} are the same responses"
    words = [
        name.removesuffix("_hash").replace("config", "configuration") for name in equal_attributes
    ]
    combination = ", ".join(words).replace("_", " ")
    cause = f"nothing to compare: {names} share no combination of {combination}"
    if kind == "run":
        cause += ", or worked on the same responses; compare runs of different vintages"
    return cause


def _are_same_responses(sides_by_name: SidesByName) -> bool:
    """Return whether each other name shares a model run with the first."""
    first_ids, *other_ids = [_model_run_ids(sides) for sides in sides_by_name.values()]
    return all(first_ids & model_run_ids for model_run_ids in other_ids)


def _stored_verdicts(kind: Kind, names: Iterable[str], sides: Sequence[Side]) -> Iterator[str]:
    """Yield for each name the vintages that it has verdicts in, or the models of a vintage, and
    their judges.
    """
    for name in names:
        runs = [side.model_run for side in sides if side.name == name]
        if not runs:
            continue
        runs.sort(key=attrgetter("responded_at"))
        if kind in {"run", "vintage"}:
            content = f"of {list_text((run.model for run in runs), _MOST_LISTED)}"
        else:
            content = f"in {list_text((run.vintage for run in runs), _MOST_LISTED)}"
        judges = ""
        if kind != "judge":
            judges = f" by {list_text(run.judge for run in runs)}"
        yield f"{name} has verdicts {content}{judges}"


def comparable(reader: Reader, benchmark: str, revision: str, kind: Kind) -> list[list[Side]]:
    """Return the sides that can be compared, grouped by all attributes except the compared one (and
    the vintage of models).

    People are left out. Two sides need not have a task in common.

    Raises:
        PipelineError: there is no verdict yet.
    """
    judged_runs = [
        run
        for run in load_model_runs(reader, benchmark)
        if run.dataset_revision == revision and run.is_by_judge
    ]
    sides = _sides(reader, benchmark, kind, judged_runs)
    groups = _grouped(sides, *_equal_attributes(kind)).values()
    return [group for group in groups if len(_names(group)) > 1 and len(_model_run_ids(group)) > 1]


def _names(sides: Iterable[Side]) -> set[str]:
    return {side.name for side in sides}


def _model_run_ids(sides: Iterable[Side]) -> set[int]:
    return {side.model_run.model_run_id for side in sides}
