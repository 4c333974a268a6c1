"""The differences between paired model runs: task by task, with the mean, its interval and its
test.

They and the verdicts behind them also become sentences, and rows of figures
(`tasks.figures.shown.comparisons`).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import groupby
from typing import Any

import polars as pl

import sql
from tasks.benchmarks import load_benchmark
from tasks.compare.pairs import (
    DIFFERING,
    Comparison,
    Kind,
    ModelRun,
    ModelRunPair,
    PairedRuns,
    Side,
    pair_model_runs,
    score_name_of,
)
from tasks.rules.errors import PipelineError
from tasks.rules.statistics import comparison as rules
from tasks.rules.statistics.intervals import FEWEST_DIFFERING
from tasks.rules.text.numbers import counted
from warehouse import Reader, Row


@dataclass(frozen=True, eq=False)
class ScoreDifference:
    """The second side's score minus the first side's on a set of tasks, before any clipping.

    Attributes:
        wanted_tasks: the tasks that both sides could have; `has_response` (of the first side) and
            `has_response_second` are true if this side has a response, complete or not.
        tasks: the compared tasks, which have a complete trial on both sides: `task_id`,
            `first_score` and `second_score`, where a score is the mean over the complete trials of
            that side.
        p_adjusted: the p-value, corrected for the number of differences in the result. Interval and
            smallest detectable difference are not corrected.
    """

    pair: ModelRunPair
    split: str
    wanted_tasks: pl.DataFrame
    tasks: pl.DataFrame
    paired: rules.PairedDifference
    p_adjusted: float | None = None


@dataclass(frozen=True)
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
    score = score_name_of(load_benchmark(comparison.job.benchmark), comparison.score)
    paired_runs = pair_model_runs(reader, comparison)
    values = _stored_values(reader, comparison, paired_runs, score)
    splits = values["split"].unique(maintain_order=True).to_list()
    differences, without_task = _differences(paired_runs, values, splits)
    not_compared = _not_compared(paired_runs, differences, splits)
    sentences = list(dict.fromkeys([*without_task, *not_compared]))
    if not differences:
        cause = sentences[0] if sentences else f"no verdict on {', '.join(splits)}"
        raise PipelineError(
            f"nothing to compare: {cause.removesuffix('.')}; {paired_runs.stored_verdicts}"
        )
    # Holm's correction covers all differences of the comparison.
    adjusted = rules.holm([difference.paired.p_value for difference in differences])
    return ComparisonResult(
        kind=paired_runs.kind,
        score=score,
        differences=tuple(
            replace(difference, p_adjusted=p_value)
            for difference, p_value in zip(differences, adjusted, strict=True)
        ),
        notes=(*_notes_on_random_parts(reader, paired_runs), *sentences),
        not_compared=tuple(not_compared),
    )


def _stored_values(
    reader: Reader,
    comparison: Comparison,
    paired_runs: PairedRuns,
    score: str,
) -> pl.DataFrame:
    """Return a row for each split, compared model run and wanted task.

    It has the task's value, if a trial is complete, and whether the run has a response.
    """
    settings = comparison.job.settings
    parameters = {
        "benchmark": settings.benchmark,
        "is_hard": comparison.is_hard,
        "splits": list(settings.dataset.splits),
        "model_runs": paired_runs.model_run_ids,
        "score": score,
    }
    values = pl.DataFrame(reader.arrow(sql.read("queries/compare/values"), parameters))
    if values.is_empty():
        cause = "the chosen splits have no admitted task; run `prbench check` to see why"
        if comparison.is_hard:
            cause = "no hard subset is selected yet; run `prbench select-hard` first"
        raise PipelineError(f"nothing to compare: {cause}")
    return values


def _differences(
    paired_runs: PairedRuns,
    values: pl.DataFrame,
    splits: Sequence[str],
) -> tuple[list[ScoreDifference], list[str]]:
    """Return the differences of all pairs on all splits, and a sentence for each without a task."""
    differences = list[ScoreDifference]()
    without_task = list[str]()
    for pair in paired_runs.pairs:
        wanted_tasks = _wanted_tasks(values, pair)
        for split in splits:
            if pair.splits is not None and split not in pair.splits:
                continue
            difference = _difference(pair, split, wanted_tasks.filter(split=split))
            if difference is None:
                without_task.append(_no_task_sentence(split, _short_names(paired_runs.kind, pair)))
            else:
                differences.append(difference)
    return differences, without_task


def _wanted_tasks(values: pl.DataFrame, pair: ModelRunPair) -> pl.DataFrame:
    """Return the tasks that both sides of a pair could have, with the values of both."""
    first_side, second_side = pair.sides
    return _values_of(values, first_side).join(
        _values_of(values, second_side),
        on=["split", "task_id"],
        suffix="_second",
        maintain_order="left",
    )


def _values_of(values: pl.DataFrame, side: Side) -> pl.DataFrame:
    """Return the values of a side; for a pipeline run, only of tasks on which it made a verdict."""
    values_of_run = values.filter(model_run_id=side.model_run.model_run_id)
    if side.only_tasks is None:
        return values_of_run
    return values_of_run.filter(pl.col("task_id").is_in(list(side.only_tasks)))


def _no_task_sentence(split: str, names: tuple[str, str]) -> str:
    return f"{split}: no task is complete for both {names[0]} and {names[1]}."


def _not_compared(
    paired_runs: PairedRuns,
    differences: Iterable[ScoreDifference],
    splits: Sequence[str],
) -> list[str]:
    """Return a sentence for each other name and chosen split with verdicts, but without a
    difference from the first.
    """
    compared = {(difference.pair.sides[1].name, difference.split) for difference in differences}
    base = paired_runs.names[0]
    sentences = []
    for name in paired_runs.names[1:]:
        expected = paired_runs.expected_splits[base] | paired_runs.expected_splits[name]
        for split in splits:
            if split in expected and (name, split) not in compared:
                names = (short_name(paired_runs.kind, base), short_name(paired_runs.kind, name))
                sentences.append(_no_task_sentence(split, names))
    return sentences


def _notes_on_random_parts(reader: Reader, paired_runs: PairedRuns) -> list[str]:
    """Return a note that names the models that were evaluated on a random part of the tasks
    only.
    """
    parameters = {"model_runs": paired_runs.model_run_ids}
    rows = reader.query("queries/compare/models_on_random_parts", parameters)
    if not rows:
        return []
    labels = ", ".join(row["model"] for row in rows)
    return [
        f"Evaluated only until all comparisons were settled: {labels}. Intervals and p-values here"
        " do not allow for that; `stopped_comparisons` does."
    ]


def short_name(kind: Kind, name: str) -> str:
    """Return the name of a side, cut if it is a hash."""
    return name[:12] if kind in {"template", "revision"} else name


def _short_names(kind: Kind, pair: ModelRunPair) -> tuple[str, str]:
    """Return the names of both sides of a pair."""
    return short_name(kind, pair.sides[0].name), short_name(kind, pair.sides[1].name)


def _difference(
    pair: ModelRunPair,
    split: str,
    wanted_tasks: pl.DataFrame,
) -> ScoreDifference | None:
    """Return the difference of a pair on a split; None if no task is complete on both sides."""
    complete = wanted_tasks.drop_nulls(["value", "value_second"])
    if complete.is_empty():
        return None
    tasks = complete.select("task_id", first_score="value", second_score="value_second")
    paired = rules.paired_difference(
        tasks["first_score"].to_numpy(), tasks["second_score"].to_numpy()
    )
    return ScoreDifference(pair, split, wanted_tasks, tasks, paired)


_CONTEXT = {
    "model": "model",
    "judge": "judge",
    "judge_config_hash": "judge configuration",
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
    first_name, second_name = _short_names(result.kind, difference.pair)
    scope = f"on {difference.split}{varying_attributes(result, difference)}"
    gap = difference.paired.difference or 0.0
    n_tasks = difference.paired.n_tasks
    n_differing = n_unequal(difference)
    if not n_differing:
        return (
            f"{second_name} and {first_name} have the same score {scope}: no task differs"
            f" ({counted(n_tasks, 'task')})"
        )
    size = f"{size_text(abs(gap))} {'lower' if gap < 0 else 'higher'}"
    if gap == 0:
        size = "on average neither lower nor higher"
    if difference.p_adjusted is None:
        few = counted(n_tasks, "task")
        if n_tasks > FEWEST_DIFFERING:
            few = f"{n_differing} of {n_tasks} tasks differ"
        return (
            f"{second_name} is {size} than {first_name} {scope}, but this cannot be tested: only"
            f" {few}"
        )
    n_tested = sum(tested.p_adjusted is not None for tested in result.differences)
    evidence = _evidence(difference, difference.p_adjusted, n_tested)
    if rules.is_significant(difference.p_adjusted):
        return f"{second_name} is {size} than {first_name} {scope} ({evidence}): significant"
    no_difference = (
        f"No significant difference between {first_name} and {second_name} {scope} ({second_name}"
        f" is {size}; {evidence})"
    )
    smallest = difference.paired.smallest_detectable
    if smallest is None:
        return no_difference
    return (
        f"{no_difference}; {_uncorrected(n_tested)}smallest detectable difference"
        f" {size_text(smallest)} (with a power of 80 %)"
    )


def _evidence(difference: ScoreDifference, p_adjusted: float, n_tested: int) -> str:
    """Return the interval and the p-value of a difference in words."""
    paired = difference.paired
    reason = why_no_interval(difference)
    if reason:
        interval = f"no interval, since {reason}"
    else:
        ends = f"{paired.ci_low:+z.3f} to {paired.ci_high:+z.3f}"
        interval = f"{_uncorrected(n_tested)}95 % interval {ends}"
    p_value = "p < 0.001" if p_adjusted < 0.001 else f"p = {p_adjusted:.3f}"
    if n_tested > 1:
        p_value += f" corrected for {n_tested} comparisons"
    return f"{interval}, {p_value}"


def _uncorrected(n_tested: int) -> str:
    return "uncorrected " if n_tested > 1 else ""


def n_unequal(difference: ScoreDifference) -> int:
    """Return the number of tasks with different scores on the two sides."""
    first_scores = difference.tasks["first_score"].to_numpy()
    second_scores = difference.tasks["second_score"].to_numpy()
    return int((rules.task_differences(first_scores, second_scores) != 0).sum())


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
    if any(difference.paired.p_value is None for difference in result.differences):
        notes.append("No interval and no test: too few tasks differ.")
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
    reasons = [f"{counts[column]} {cause}" for cause, column in causes.items() if counts[column]]
    if reasons:
        n_criteria = counts["n_criteria"]
        n_uncompared = n_criteria - counts["n_compared"]
        yield (
            f"{n_uncompared} of {n_criteria} criteria could not be compared: {', '.join(reasons)}."
        )
    explained = f"{counts['explained']:+z.3f}"
    total = f"{difference:+z.3f}"
    if explained != total and abs(counts["explained"] - difference) >= 0.0005:
        yield (
            f"The flips explain {explained} of {total}; the rest is due to rubrics that changed"
            " between the two."
        )


def varying_attributes(result: ComparisonResult, difference: ScoreDifference) -> str:
    """Return the attributes that vary between differences or between two sides, as the end of a
    phrase.

    The compared attribute is left out; two values of one difference have an arrow between them.
    """
    compared = "" if result.kind == "run" else DIFFERING[result.kind][0]
    phrases = []
    for name, word in _CONTEXT.items():
        if name in {compared, f"{compared}_config_hash"}:
            continue
        differences: Sequence[ScoreDifference] = result.differences
        if name == "judge_config_hash":
            # Those of different judges differ anyway.
            judge = _attributes(difference.pair, "judge")
            differences = [
                other for other in differences if _attributes(other.pair, "judge") == judge
            ]
        values = {_attributes(varying.pair, name) for varying in differences}
        if len(values) > 1 or any(len(attributes) > 1 for attributes in values):
            phrases.append(f", {word} {' → '.join(_attributes(difference.pair, name))}")
    return "".join(phrases)


def _attributes(pair: ModelRunPair, name: str) -> tuple[str, ...]:
    """Return the values of an attribute on both sides, only one if they are equal."""
    values = [str(getattr(side.model_run, name)) for side in pair.sides]
    if name.endswith("_hash") or name == "dataset_revision":
        values = [value[:12] for value in values]
    return tuple(dict.fromkeys(values))


def decision(by_trial: Sequence[float]) -> str:
    """Return the decision on a criterion in words: "met" if all trials agree, else the number of
    trials that met it, such as "met in 1 of 2 trials".
    """
    counts = Counter(by_trial)
    if len(counts) == 1:
        return _DECISIONS[by_trial[0]]
    met = [f"{_DECISIONS[value]} in {counts[value]}" for value in (1.0, 0.5) if counts[value]]
    return f"{' and '.join(met)} of {counted(len(by_trial), 'trial')}"


def size_text(size: float) -> str:
    """Return a size with three decimals, or with one digit if it would round to 0."""
    return f"{size:.3f}" if size >= 0.0005 or size == 0 else f"{size:.1g}"


_RUN_COLUMNS = [
    field.name
    for field in fields(ModelRun)
    if field.name not in {"model_run_id", "splits", "current_splits"}
]
"""The attributes of both model runs in a row."""


def rows_of(result: ComparisonResult) -> list[Row]:
    """Return a row for each difference, in the order of the result."""
    return [_row_of(result, difference) for difference in result.differences]


def _row_of(result: ComparisonResult, difference: ScoreDifference) -> Row:
    tasks = difference.tasks
    row = {
        **_labels(result, difference),
        "score": result.score,
        "first_mean": math.fsum(tasks["first_score"]) / len(tasks),
        "second_mean": math.fsum(tasks["second_score"]) / len(tasks),
        **asdict(difference.paired),
        "no_interval": why_no_interval(difference),
        "n_tasks_wanted": len(difference.wanted_tasks),
        "p_adjusted": difference.p_adjusted,
        "is_significant": rules.is_significant(difference.p_adjusted),
        "sentence": sentence(result, difference),
        "notes": list(difference.pair.notes),
        "notes_on_all": notes_on_all(result),
        "not_compared": list(result.not_compared),
    }
    for prefix, side in zip(("first", "second"), difference.pair.sides, strict=True):
        for name in _RUN_COLUMNS:
            row[f"{prefix}_{name}"] = getattr(side.model_run, name)
    return row


def with_verdicts(row: Row, verdicts: Row) -> Row:
    """Return the row of a difference with the counts of its verdicts (see `difference_details`)."""
    notes = [*row["notes"], *notes_on_verdicts(verdicts, row["difference"])]
    return row | verdicts | {"notes": notes}


def difference_details(
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
    parts: dict[str, list[Row]] = defaultdict(list)
    # Differences of one pair follow each other.
    for pair, differences_of_pair in groupby(differences, key=lambda difference: difference.pair):
        parameters = {
            "first": pair.sides[0].model_run.model_run_id,
            "second": pair.sides[1].model_run.model_run_id,
            "score": result.score,
        }
        cells = pl.DataFrame(reader.arrow(sql.read("queries/compare/flips"), parameters))
        for difference in differences_of_pair:
            labels = _labels(result, difference)
            for name, rows in _parts(difference, cells, n_flips).items():
                parts[name] += [labels | row for row in rows]
    return parts


def _labels(result: ComparisonResult, difference: ScoreDifference) -> Row:
    """Return the labels that distinguish a difference from the others.

    `where` holds the attributes that both sides share and that vary between differences.
    """
    first_name, second_name = _short_names(result.kind, difference.pair)
    return {
        "kind": result.kind,
        "first": first_name,
        "second": second_name,
        "where": varying_attributes(result, difference).removeprefix(", ") or None,
        "split": difference.split,
    }


_FLIP_COUNTS = (
    (pl.col("effect") > 0).sum().alias("n_gained"),
    (pl.col("effect") < 0).sum().alias("n_lost"),
)
"""The numbers of flips that raise and that lower the score."""


def _parts(
    difference: ScoreDifference,
    cells: pl.DataFrame,
    n_flips: int | None,
) -> dict[str, list[Row]]:
    """Return the verdicts behind a difference.

    `cells` has a row for each criterion of each task of its pair, with the values of both sides.
    """
    tasks = difference.tasks
    responded = difference.wanted_tasks.filter("has_response", "has_response_second")["task_id"]
    criteria = cells.filter(pl.col("task_id").is_in(responded.implode()))
    shared = criteria.filter("is_in_both")
    decided = shared.drop_nulls(["first_value", "second_value"])
    compared = decided.join(tasks, on="task_id", how="semi", maintain_order="left")
    flips = compared.filter(pl.col("first_value") != pl.col("second_value"))
    verdicts = {
        "n_flips": len(flips),
        "n_flips_lost": flips.select(_FLIP_COUNTS)["n_lost"].item(),
        "n_criteria": len(criteria),
        "n_compared": len(compared),
        "n_undecided": len(shared) - len(decided),
        "n_left_out": len(decided) - len(compared),
        "n_in_one": len(criteria) - len(shared),
        "explained": flips["effect"].sum() / len(tasks),
    }
    return {
        "verdicts": [verdicts],
        "categories": _category_rows(compared, len(tasks)) if len(flips) else [],
        "tasks": _task_rows(tasks, flips),
        "flips": _flip_rows(flips[:n_flips]),
    }


def _category_rows(compared: pl.DataFrame, n_tasks: int) -> list[Row]:
    """Return the flips of each category, and its part in the difference."""
    contribution = pl.col("effect").sum() / n_tasks
    categories = compared.group_by("category").agg(
        pl.len().alias("n_criteria"),
        *_FLIP_COUNTS,
        contribution.alias("contribution"),
    )
    return categories.sort("contribution", "category").to_dicts()


def _task_rows(tasks: pl.DataFrame, flips: pl.DataFrame) -> list[Row]:
    """Return the scores of each task and its flips."""
    flips_by_task = flips.group_by("task_id").agg(_FLIP_COUNTS)
    tasks = tasks.join(flips_by_task, on="task_id", how="left").with_columns(
        pl.col("n_gained", "n_lost").fill_null(0),
        difference=pl.col("second_score") - pl.col("first_score"),
    )
    return tasks.sort("difference", "task_id").to_dicts()


def _flip_rows(flips: pl.DataFrame) -> list[Row]:
    """Return flips with the decisions of both sides in words."""
    rows = flips.drop("is_in_both").to_dicts()
    for row in rows:
        row["first_decision"] = decision(row["first_by_trial"])
        row["second_decision"] = decision(row["second_by_trial"])
    return rows
