"""The differences between paired model runs: task by task, with the mean, its interval and its test."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import polars as pl

import sql
from tasks.compare.pairs import Comparison, Kind, ModelRunPair, Side, pairs
from tasks.rules.errors import PipelineError
from tasks.rules.statistics.comparison import PairedDifference, holm, is_significant, paired_difference
from warehouse import Reader


@dataclass(frozen=True, slots=True, eq=False)
class ScoreDifference:
    """The second side's score minus the first side's on a set of tasks, before any clipping.

    Attributes:
        tasks: the compared tasks, which have a complete trial on both sides: `task_id`, `first_score` and
            `second_score`, where a score is the mean over the complete trials of that side.
        both_responded: the tasks with a response on both sides, complete or not.
        n_wanted: the number of tasks that both sides could have.
        p_adjusted: the p-value, corrected for the number of differences in the result. Interval and smallest detectable
            difference are not corrected.
    """

    pair: ModelRunPair
    split: str
    tasks: pl.DataFrame
    both_responded: pl.Series
    n_wanted: int
    first_mean: float
    second_mean: float
    paired: PairedDifference
    p_adjusted: float | None = None

    @property
    def is_significant(self) -> bool | None:
        """Whether `p_adjusted` is at most 5 %; None without a p-value."""
        return is_significant(self.p_adjusted)


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """The result of a comparison: its kind and score, the differences by pair and split, and notes on all of them."""

    kind: Kind
    score: str
    differences: tuple[ScoreDifference, ...]
    notes: tuple[str, ...]


def compare(reader: Reader, comparison: Comparison) -> ComparisonResult:
    """Return the differences of a comparison.

    Raises:
        UsageError: the names or options do not determine a comparison.
        PipelineError: there is nothing to compare.
    """
    kind, paired_runs = pairs(reader, comparison)
    # A row for each split, model run and wanted task: its value, if a trial is complete, and whether it has a response.
    parameters = {
        "benchmark": comparison.benchmark, "is_hard": comparison.is_hard, "splits": list(comparison.splits),
        "model_runs": sorted({side.model_run.model_run_id for pair in paired_runs for side in pair.sides}),
        "score": comparison.score,
    }  # fmt: skip
    values = pl.DataFrame(reader.arrow(sql.read("queries/compare/values"), parameters))
    if values.is_empty():
        no_tasks = "the chosen splits have no admitted task; run `prbench check` to see why"
        no_subset = "no hard subset is selected yet; run `prbench select-hard` first"
        raise PipelineError(f"nothing to compare: {no_subset if comparison.is_hard else no_tasks}")
    differences, empty = list[ScoreDifference](), list[str]()
    for pair in paired_runs:
        # For a pipeline run, only the tasks on which it made a verdict count.
        first, second = (
            own if side.only_tasks is None else own.filter(pl.col("task_id").is_in(list(side.only_tasks)))
            for side in pair.sides
            for own in [values.filter(model_run_id=side.model_run.model_run_id)]
        )
        wanted = first.join(second, on=["split", "task_id"], suffix="_second", maintain_order="left")
        for split in values["split"].unique(maintain_order=True):
            difference = _difference(pair, split, wanted.filter(split=split))
            if difference is None:
                sides = " and ".join(short(kind, side) for side in pair.sides)
                empty.append(f"{split}: no task is complete for both {sides}.")
            else:
                differences.append(difference)
    if not differences:
        raise PipelineError(f"nothing to compare: {empty[0].removesuffix('.')}")
    # Holm's correction covers all differences of the comparison.
    adjusted = holm([difference.paired.p_value for difference in differences])
    corrected = tuple(
        replace(difference, p_adjusted=p_value) for difference, p_value in zip(differences, adjusted, strict=True)
    )
    return ComparisonResult(kind, comparison.score, corrected, (*_on_random_parts(reader, paired_runs), *empty))


def _on_random_parts(reader: Reader, paired_runs: Iterable[ModelRunPair]) -> list[str]:
    """Return a note that names the models that were evaluated on a random part of the tasks only."""
    names = {side.model_run.model_run_id: side.model_run.model for pair in paired_runs for side in pair.sides}
    rows = reader.rows(sql.read("queries/stopping/stopped_model_runs"), {"model_runs": sorted(names)})
    stopped = ", ".join(sorted({names[row["model_run_id"]] for row in rows}))
    note = "Intervals and p-values here do not allow for that; `stopped_comparisons` does."
    return [f"Evaluated only until all comparisons were settled: {stopped}. {note}"] if stopped else []


def short(kind: Kind, side: Side) -> str:
    """Return the name of a side; only the beginning of a hash."""
    return side.name[:12] if kind in {"template", "revision"} else side.name


def _difference(pair: ModelRunPair, split: str, wanted: pl.DataFrame) -> ScoreDifference | None:
    """Return the difference of a pair on a split; None if no task is complete on both sides."""
    complete = wanted.drop_nulls(["value", "value_second"])
    if complete.is_empty():
        return None
    tasks = complete.select("task_id", first_score="value", second_score="value_second")
    means = [math.fsum(tasks[side]) / len(tasks) for side in ("first_score", "second_score")]
    paired = paired_difference(tasks["first_score"].to_numpy(), tasks["second_score"].to_numpy())
    both_responded = wanted.filter("has_response", "has_response_second")["task_id"]
    return ScoreDifference(pair, split, tasks, both_responded, len(wanted), means[0], means[1], paired)
