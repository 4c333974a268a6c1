"""The differences between paired model runs: task by task, with the mean, its interval and its
test.

They and the verdicts behind them also become sentences, and rows of figures
(`tasks.figures.shown.comparisons`).
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

import polars as pl

import sql
from tasks.benchmarks import load_benchmark
from tasks.compare.pairs import (
    DIFFERING,
    Comparison,
    Kind,
    ModelRunPair,
    PairedRuns,
    pairs,
    score_name_of,
)
from tasks.rules.errors import PipelineError
from tasks.rules.statistics import comparison as rules
from tasks.rules.statistics.intervals import FEWEST_OTHERS
from tasks.rules.text.numbers import counted, some
from warehouse import Reader


@dataclass(
    frozen=True,
    slots=True,
    eq=False,
)
class ScoreDifference:
    """The second side's score minus the first side's on a set of tasks, before any clipping.

    Attributes:
        wanted: the tasks that both sides could have; `has_response` and `has_response_second` are
            true of those with a response on this side, complete or not.
        tasks: the compared tasks, which have a complete trial on both sides: `task_id`,
            `first_score` and `second_score`, where a score is the mean over the complete trials of
            that side.
        p_adjusted: the p-value, corrected for the number of differences in the result. Interval and
            smallest detectable difference are not corrected.
    """

    pair: ModelRunPair
    split: str
    wanted: pl.DataFrame
    tasks: pl.DataFrame
    paired: rules.PairedDifference
    p_adjusted: float | None = None


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """The result of a comparison: its kind and score, the differences by pair and split, and notes
    on all of them.

    `not_compared` has a sentence for each name and split with verdicts that are in no difference.
    """

    kind: Kind
    score: str
    differences: tuple[ScoreDifference, ...]
    notes: tuple[str, ...]
    not_compared: tuple[str, ...] = ()


def compare(reader: Reader, comparison: Comparison) -> ComparisonResult:
    """Return the differences of a comparison.

    Raises:
        UsageError: the names or options do not determine a comparison.
        PipelineError: there is nothing to compare.
    """
    settings = comparison.job.settings
    score = score_name_of(load_benchmark(settings.benchmark), comparison.score)
    paired = pairs(reader, comparison)
    kind = paired.kind
    paired_runs = paired.pairs
    # A row for each split, model run and wanted task: its value, if a trial is complete, and
    # whether it has a response.
    parameters = {
        "benchmark": settings.benchmark,
        "is_hard": comparison.is_hard,
        "splits": list(settings.dataset.splits),
        "model_runs": sorted(
            {side.model_run.model_run_id for pair in paired_runs for side in pair.sides}
        ),
        "score": score,
    }
    values = pl.DataFrame(reader.arrow(sql.read("queries/compare/values"), parameters))
    if values.is_empty():
        no_tasks = "the chosen splits have no admitted task; run `prbench check` to see why"
        no_subset = "no hard subset is selected yet; run `prbench select-hard` first"
        raise PipelineError(f"nothing to compare: {no_subset if comparison.is_hard else no_tasks}")
    splits = values["split"].unique(maintain_order=True).to_list()
    differences = list[ScoreDifference]()
    empty = list[str]()
    for pair in paired_runs:
        # For a pipeline run, only the tasks on which it made a verdict count.
        first, second = (
            (
                own
                if side.only_tasks is None
                else own.filter(pl.col("task_id").is_in(list(side.only_tasks)))
            )
            for side in pair.sides
            for own in [values.filter(model_run_id=side.model_run.model_run_id)]
        )
        wanted = first.join(
            second,
            on=["split", "task_id"],
            suffix="_second",
            maintain_order="left",
        )
        for split in splits:
            if pair.splits is not None and split not in pair.splits:
                continue
            difference = _difference(pair, split, wanted.filter(split=split))
            if difference is None:
                empty.append(_no_task(split, *(short(kind, side.name) for side in pair.sides)))
            else:
                differences.append(difference)
    not_compared = _not_compared(paired, differences, splits)
    without_task = [*dict.fromkeys([*empty, *not_compared])]
    if not differences:
        why = without_task[0] if without_task else f"no verdict on {', '.join(splits)}"
        raise PipelineError(f"nothing to compare: {why.removesuffix('.')}; {paired.existing}")
    notes = [*_on_random_parts(reader, paired_runs), *without_task]
    # Holm's correction covers all differences of the comparison.
    adjusted = rules.holm([difference.paired.p_value for difference in differences])
    corrected = tuple(
        replace(each, p_adjusted=p_value)
        for each, p_value in zip(differences, adjusted, strict=True)
    )
    return ComparisonResult(kind, score, corrected, tuple(notes), tuple(not_compared))


def _no_task(split: str, first: str, second: str) -> str:
    return f"{split}: no task is complete for both {first} and {second}."


def _not_compared(
    paired: PairedRuns, differences: Iterable[ScoreDifference], splits: Sequence[str]
) -> list[str]:
    """Return a sentence for each other name and chosen split with verdicts, but without a
    difference from the first.
    """
    compared = {(difference.pair.sides[1].name, difference.split) for difference in differences}
    first, *others = paired.names
    sentences = []
    for other in others:
        expected = paired.expected_splits[first] | paired.expected_splits[other]
        for split in splits:
            if split in expected and (other, split) not in compared:
                sentences.append(
                    _no_task(split, short(paired.kind, first), short(paired.kind, other))
                )
    return sentences


def _on_random_parts(reader: Reader, paired_runs: Iterable[ModelRunPair]) -> list[str]:
    """Return a note that names the models that were evaluated on a random part of the tasks
    only.
    """
    names = {
        side.model_run.model_run_id: side.model_run.model
        for pair in paired_runs
        for side in pair.sides
    }
    rows = reader.rows(
        sql.read("queries/stopping/stopped_model_runs"), {"model_runs": sorted(names)}
    )
    stopped = ", ".join(sorted({names[row["model_run_id"]] for row in rows}))
    note = "Intervals and p-values here do not allow for that; `stopped_comparisons` does."
    return (
        [f"Evaluated only until all comparisons were settled: {stopped}. {note}"] if stopped else []
    )


def short(kind: Kind, name: str) -> str:
    """Return the name of a side; only the beginning of a hash."""
    return name[:12] if kind in {"template", "revision"} else name


def _difference(pair: ModelRunPair, split: str, wanted: pl.DataFrame) -> ScoreDifference | None:
    """Return the difference of a pair on a split; None if no task is complete on both sides."""
    complete = wanted.drop_nulls(["value", "value_second"])
    if complete.is_empty():
        return None
    tasks = complete.select("task_id", first_score="value", second_score="value_second")
    paired = rules.paired_difference(
        tasks["first_score"].to_numpy(), tasks["second_score"].to_numpy()
    )
    return ScoreDifference(pair, split, wanted, tasks, paired)


_CONTEXT = {
    "model": "model",
    "judge": "judge",
    "judge_trial": "judge trial",
    "template_hash": "template",
    "vintage": "vintage",
    "dataset_revision": "revision",
}
"""Attribute of a model run -> its name for people."""
_DECISIONS = {
    1.0: "met",
    0.5: "partly met",
    0.0: "not met",
}


def sentence(result: ComparisonResult, difference: ScoreDifference) -> str:
    """Return a difference as a sentence."""
    first, second = (short(result.kind, side.name) for side in difference.pair.sides)
    where = f"on {difference.split}{where_in(result, difference)}"
    gap = difference.paired.difference or 0.0
    n_tasks = difference.paired.n_tasks
    n_differing = n_unequal(difference)
    if not n_differing:
        return (
            f"{second} and {first} have the same score {where}: no task differs"
            f" ({counted(n_tasks, 'task')})"
        )
    size = f"{figure(abs(gap))} {'lower' if gap < 0 else 'higher'}"
    if difference.p_adjusted is None:
        few = (
            counted(n_tasks, "task")
            if n_tasks <= FEWEST_OTHERS
            else f"{n_differing} of {n_tasks} tasks differ"
        )
        return f"{second} is {size} than {first} {where}, but this cannot be tested: only {few}"
    n_tested = sum(each.p_adjusted is not None for each in result.differences)
    corrected, alone = (
        (f" corrected for {n_tested} comparisons", "uncorrected ") if n_tested > 1 else ("", "")
    )
    low = difference.paired.ci_low
    high = difference.paired.ci_high
    why = why_no_interval(difference)
    interval = (
        f"no interval, since {why}" if why else f"{alone}95 % interval {low:+z.3f} to {high:+z.3f}"
    )
    p_value = "p < 0.001" if difference.p_adjusted < 0.001 else f"p = {difference.p_adjusted:.3f}"
    evidence = f"{interval}, {p_value}{corrected}"
    if rules.is_significant(difference.p_adjusted):
        return f"{second} is {size} than {first} {where} ({evidence}): significant"
    no_difference = (
        f"No significant difference between {first} and {second} {where} ({second} is {size};"
        f" {evidence})"
    )
    smallest = difference.paired.smallest_detectable
    if smallest is None:
        return no_difference
    return (
        f"{no_difference}; {alone}smallest detectable difference {figure(smallest)} (with a power"
        " of 80 %)"
    )


def n_unequal(difference: ScoreDifference) -> int:
    """Return the number of tasks with different scores on the two sides."""
    first, second = (difference.tasks[side].to_numpy() for side in ("first_score", "second_score"))
    return int((rules.task_differences(first, second) != 0).sum())


def why_no_interval(difference: ScoreDifference) -> str | None:
    """Return the reason why a difference has no interval; None if it has one."""
    paired = difference.paired
    if paired.ci_low is not None:
        return None
    if paired.p_value is not None:
        return "nearly all tasks change alike"
    return "too few tasks differ" if n_unequal(difference) else "no task differs"


def notes_on_all(result: ComparisonResult) -> list[str]:
    """Return the notes on all differences together, beginning with those on intervals and
    p-values.
    """
    notes = []
    if any(each.paired.p_value is None for each in result.differences):
        notes.append(f"No interval and no test: fewer than {FEWEST_OTHERS} tasks differ.")
    if len(result.differences) > 1:
        notes.append(
            "Intervals, p and smallest detectable differences are for each comparison alone; “p"
            " corrected” takes all of them into account (Holm)."
        )
    return [*notes, *result.notes]


def notes_on_verdicts(counts: Mapping[str, Any], difference: float) -> Iterator[str]:
    """Yield notes on criteria that could not be compared, and on the part of a difference that
    flips do not explain.
    """
    causes = {
        "undecided on one side": "n_undecided",
        "decided, but in incomplete tasks": "n_left_out",
        "in the rubric of one side only": "n_in_one",
    }
    listed = [f"{counts[column]} {cause}" for cause, column in causes.items() if counts[column]]
    if listed:
        missing = (
            f"{counts['n_criteria'] - counts['n_compared']} of {counts['n_criteria']} criteria"
        )
        yield f"{missing} could not be compared: {', '.join(listed)}."
    explained, total = (f"{value:+.3f}" for value in (counts["explained"], difference))
    if explained != total:
        yield (
            f"The flips explain {explained} of {total}; the rest is due to rubrics that changed"
            " between the two."
        )


def where_in(result: ComparisonResult, difference: ScoreDifference) -> str:
    """Return the attributes that vary between differences or between two sides, as the end of a
    phrase.

    The compared attribute is left out; two values of one difference have an arrow between them.
    """
    own = None if result.kind == "run" else DIFFERING[result.kind][0]
    of_all = {
        name: {_values(each.pair, name) for each in result.differences}
        for name in _CONTEXT
        if name != own
    }
    varying = [
        name for name, values in of_all.items() if len(values) > 1 or len(next(iter(values))) > 1
    ]
    return "".join(
        f", {_CONTEXT[name]} {' → '.join(_values(difference.pair, name))}" for name in varying
    )


def _values(pair: ModelRunPair, name: str) -> tuple[str, ...]:
    most = 12 if name in {"template_hash", "dataset_revision"} else None
    return tuple(dict.fromkeys(str(getattr(side.model_run, name))[:most] for side in pair.sides))


def decision(by_trial: Sequence[float]) -> str:
    """Return the decision on a criterion: one word if all trials agree, else the number of trials
    that met it.
    """
    counts = Counter(by_trial)
    if len(counts) == 1:
        return _DECISIONS[by_trial[0]]
    met = [f"{_DECISIONS[value]} in {counts[value]}" for value in (1.0, 0.5) if counts[value]]
    return f"{' and '.join(met)} of {counted(len(by_trial), 'trial')}"


def figure(size: float) -> str:
    """Return a size with three decimals, or with one digit if it would round to 0."""
    return f"{size:.3f}" if size >= 0.0005 or size == 0 else f"{size:.1g}"


Row = dict[str, Any]


def rows_of(result: ComparisonResult) -> list[Row]:
    """Return a row for each difference, in the order of the result."""
    return [
        _labels(result, each)
        | {
            "score": result.score,
            **{
                f"{at}_mean": math.fsum(each.tasks[f"{at}_score"]) / len(each.tasks)
                for at in ("first", "second")
            },
            **asdict(each.paired),
            "no_interval": why_no_interval(each),
            "n_tasks_wanted": len(each.wanted),
            "p_adjusted": each.p_adjusted,
            "is_significant": rules.is_significant(each.p_adjusted),
            "sentence": sentence(result, each),
            "notes": list(each.pair.notes),
            "notes_on_all": notes_on_all(result),
            "not_compared": list(result.not_compared),
            **{
                f"{prefix}_{name}": value
                for prefix, side in zip(("first", "second"), each.pair.sides, strict=True)
                for name, value in asdict(side.model_run).items()
                if name not in {"model_run_id", "splits", "current_splits"}
            },
        }
        for each in result.differences
    ]


def subject(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return one line that says what rows of differences compare: names, vintages, models, judges
    and splits.
    """
    vintages_by_name: dict[str, list[str]] = {}
    for row in rows:
        for side in ("first", "second"):
            vintages_by_name.setdefault(row[side], []).append(row[f"{side}_vintage"])
    vintages = {name: some(of_name) for name, of_name in vintages_by_name.items()}
    is_same = len(set(vintages.values())) == 1
    first, *others = (
        (
            name
            if is_same or name == of_name or name.endswith(f"@{of_name}")
            else f"{name} (vintage {of_name})"
        )
        for name, of_name in vintages.items()
    )
    parts = [f"Comparing {first} with {some(others)}"]
    if is_same:
        parts.append(f"in vintage {vintages[rows[0]['first']]}")
    kind = rows[0]["kind"]
    if kind != "model":
        parts.append(f"responses of {some(row['first_model'] for row in rows)}")
    if kind != "judge":
        parts.append(f"judged by {some(row['first_judge'] for row in rows)}")
    parts.append(f"on {some(row['split'] for row in rows)}")
    return ", ".join(parts) + "."


def with_verdicts(row: Row, verdicts: Row) -> Row:
    """Return the row of a difference with the counts of its verdicts, as `apart` returns them."""
    return (
        row | verdicts | {"notes": [*row["notes"], *notes_on_verdicts(verdicts, row["difference"])]}
    )


def apart(
    reader: Reader,
    result: ComparisonResult,
    differences: Iterable[ScoreDifference],
    n_flips: int | None = None,
) -> dict[str, list[Row]]:
    """Return the verdicts behind differences.

    They are counted as `verdicts`, and listed as `categories`, `tasks` and `flips`, each with the
    largest loss first.

    A flip is a criterion that both sides decided differently; values are means over complete
    trials, and `effect` is the change of the task's score. `n_flips` limits the listed flips of
    each difference.

    `n_compared` is the number of compared criteria: those in both rubrics, of tasks that are
    complete on both sides. `explained` is the part of the difference that flips explain: all of it,
    unless the rubrics differ.
    """
    parts: dict[str, list[Row]] = {
        "verdicts": [],
        "categories": [],
        "tasks": [],
        "flips": [],
    }
    # Differences of one pair follow each other.
    for pair, of_pair in groupby(differences, key=lambda each: each.pair):
        first, second = (side.model_run.model_run_id for side in pair.sides)
        parameters = {
            "first": first,
            "second": second,
            "score": result.score,
        }
        cells = pl.DataFrame(reader.arrow(sql.read("queries/compare/flips"), parameters))
        for difference in of_pair:
            labels = _labels(result, difference)
            for name, rows in _parts(difference, cells, n_flips).items():
                parts[name] += [labels | row for row in rows]
    return parts


def _labels(result: ComparisonResult, difference: ScoreDifference) -> Row:
    """Return the labels that distinguish a difference from the others.

    `where` holds the attributes that both sides share and that vary between differences.
    """
    first, second = (short(result.kind, side.name) for side in difference.pair.sides)
    where = where_in(result, difference).removeprefix(", ") or None
    return {
        "kind": result.kind,
        "first": first,
        "second": second,
        "where": where,
        "split": difference.split,
    }


_SIGNS = (
    (pl.col("effect") > 0).sum().alias("n_gained"),
    (pl.col("effect") < 0).sum().alias("n_lost"),
)
"""The number of flips that raise or lower the score."""


def _parts(
    difference: ScoreDifference, cells: pl.DataFrame, n_flips: int | None
) -> dict[str, list[Row]]:
    tasks = difference.tasks
    responded = difference.wanted.filter("has_response", "has_response_second")["task_id"]
    both_responded = cells.filter(pl.col("task_id").is_in(responded.implode()))
    shared = both_responded.filter("is_in_both")
    decided = shared.drop_nulls(["first_value", "second_value"])
    compared = decided.join(
        tasks,
        on="task_id",
        how="semi",
        maintain_order="left",
    )
    flips = compared.filter(pl.col("first_value") != pl.col("second_value"))
    categories = compared.group_by("category").agg(
        pl.len().alias("n_criteria"),
        *_SIGNS,
        (pl.col("effect").sum() / len(tasks)).alias("contribution"),
    )
    of_tasks = tasks.join(
        flips.group_by("task_id").agg(_SIGNS), on="task_id", how="left"
    ).with_columns(
        pl.col("n_gained", "n_lost").fill_null(0),
        difference=pl.col("second_score") - pl.col("first_score"),
    )
    verdicts = {
        "n_flips": len(flips),
        "n_flips_lost": flips.select(_SIGNS)["n_lost"].item(),
        "n_criteria": len(both_responded),
        "n_compared": len(compared),
        "n_undecided": len(shared) - len(decided),
        "n_left_out": len(decided) - len(compared),
        "n_in_one": len(both_responded) - len(shared),
        "explained": flips["effect"].sum() / len(tasks),
    }
    return {
        "verdicts": [verdicts],
        "categories": categories.sort("contribution", "category").to_dicts() if len(flips) else [],
        "tasks": of_tasks.sort("difference", "task_id").to_dicts(),
        "flips": [
            flip
            | {
                f"{side}_decision": decision(flip[f"{side}_by_trial"])
                for side in ("first", "second")
            }
            for flip in flips.drop("is_in_both")[:n_flips].to_dicts()
        ],
    }
