"""Sampling of the verdicts whose labels narrow an interval most."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import sql
from tasks.config.job import Job
from tasks.rules.errors import UsageError
from tasks.rules.identity import digest
from tasks.rules.statistics import sampling
from tasks.rules.statistics.intervals import Floats
from tasks.run.judge_configs import first_judge_config
from tasks.run.missing_work import WantedTasks
from warehouse import Reader

LEADERBOARD = "leaderboard"
Row = dict[str, Any]


class Purpose(NamedTuple):
    """The interval that labels should narrow: of each model's mean or of a difference, for a score
    on some criteria.
    """

    models: tuple[str, ...]
    is_difference: bool
    score: str
    breakdown: str
    label: str
    named: str


@dataclass(frozen=True)
class Population:
    """The verdicts from which a sheet is sampled for a purpose, and the judge to correct.

    Besides the columns of the query, `verdicts` has a `key`, the `contribution` of the verdict to
    its model's mean, the expected squared `error` of the judge, and `is_known`: true if the verdict
    has a label. `responses` are those that count in the figures to correct.
    """

    wanted: WantedTasks
    purpose: Purpose
    verdicts: pl.DataFrame
    responses: pl.DataFrame
    judge: str

    @cached_property
    def free(self) -> pl.DataFrame:
        """The verdicts without a label."""
        return self.verdicts.filter(~pl.col("is_known"))

    def probabilities(self, n_wanted: int) -> Floats:
        """Return the probability of sampling each verdict without a label.

        Each model gets an equal share of the labels, since all need the same number.
        """
        size = sampling.sizes(self.free["contribution"].to_numpy(), self.free["error"].to_numpy())
        _, of_model = np.unique(self.free["model"].to_list(), return_inverse=True)
        return sampling.inclusion_probabilities(
            size / np.bincount(of_model, size)[of_model], n_wanted
        )

    def sample(self, n_wanted: int, seed: int) -> pl.DataFrame:
        """Return sampled verdicts without a label, with the `probability` of each."""
        free = self.free.with_columns(probability=pl.Series(self.probabilities(n_wanted)))
        keys = free["key"].to_list()
        models = free["model"].to_list()
        sampled = sampling.systematic_sample(free["probability"].to_numpy(), keys, seed, models)
        return free[sampled]


def purpose_of(named: str, reader: Reader, wanted: WantedTasks, models: Sequence[str]) -> Purpose:
    """Return the purpose that `--for` names: the leaderboard, two models, or a category.

    Raises:
        UsageError: it names none of these.
    """
    benchmark = wanted.benchmark
    primary = benchmark.primary_score.score_name
    of_criteria = benchmark.criteria_score.score_name
    if named == LEADERBOARD:
        return Purpose(tuple(models), False, primary, "all", "", LEADERBOARD)
    names = "distinct coalesce(category, '(none)') as category"
    categories = [row["category"] for row in reader.select("criteria", names, **wanted.key)]
    if named in categories:
        return Purpose(tuple(models), False, of_criteria, "category", named, f"category {named}")
    if pair := next((pair for pair in permutations(models, 2) if " ".join(pair) == named), None):
        return Purpose(pair, True, primary, "all", "", " and ".join(pair))
    known = (
        f"nor two models with usable responses ({', '.join(models)}), nor a category"
        f" ({', '.join(categories)})"
    )
    raise UsageError(f"--for {named!r}: neither `{LEADERBOARD}`, {known}")


def population_of(
    job: Job,
    reader: Reader,
    wanted: WantedTasks,
    purpose: Purpose,
    response_ids: Sequence[str],
    *,
    of_latest: bool,
) -> Population:
    """Return the verdicts on some responses from which a sheet can be sampled.

    The judge is the first configured one (or with `--judge`, the first named one) that has verdicts
    on these responses; if there is none, the judge with the most verdicts on them. A label is used
    only if the judge decided the whole response. Responses without any verdict of the judge are
    left out; incomplete ones, such as after a failed call, are rarely sampled.

    Raises:
        UsageError: no judge has a verdict on these responses, or the judge has none on a model to
            be compared.
    """
    of_judges = {"response_ids": response_ids, "judges": job.named_judges}
    judge_configs = reader.rows(sql.read("queries/exports/sampled_judge_configs"), of_judges)
    judge_config = first_judge_config(job, wanted.benchmark, judge_configs)
    if judge_config is None:
        raise UsageError(
            "--for: no judge has a verdict on these responses; run `prbench judge`, or leave"
            " --for out"
        )
    parameters = {
        **wanted.key,
        "judging_id": judge_config["judging_id"],
        "steps": judge_config["steps"],
        "score": purpose.score,
        "breakdown": purpose.breakdown,
        "label": purpose.label,
    }
    frame = pl.DataFrame(
        reader.arrow(
            sql.read("queries/exports/drawn_population"),
            {
                **parameters,
                "response_ids": response_ids,
                "of_latest": of_latest,
            },
        )
    )
    if frame.is_empty():
        raise UsageError(f"--for {purpose.named}: no criterion of these responses counts for it")
    lacking = {*purpose.models} - {*frame["model"]}
    if purpose.is_difference and lacking:
        raise UsageError(
            f"--for: {judge_config['judge']} has no verdict on {min(lacking)}; run `prbench judge`"
        )
    # The contribution of each verdict to its model's mean: its worth / trials of the task / tasks
    # of the model.
    is_counted = pl.col("is_counted")
    n_trials = pl.col("response_id").filter(is_counted).n_unique().over("model", "task")
    n_tasks = pl.col("task").filter(is_counted).n_unique().over("model")
    share = pl.when(is_counted).then(pl.col("worth") / n_trials / n_tasks).otherwise(0.0)
    # The expected squared error of the judge on each verdict.
    groups = (
        frame.select(pl.struct("category", "severity").rank("dense") - 1)
        .to_series()
        .cast(pl.Int64)
        .to_numpy()
    )
    squared = (frame["label_value"] - frame["judge_value"]) ** 2
    of_group = sampling.group_errors(
        groups[squared.is_not_null().to_numpy()], squared.drop_nulls().to_numpy(), groups
    )
    errors = sampling.expected_errors(
        of_group, frame["disagreement"].to_numpy(), frame["n_others"].to_numpy()
    )
    key = pl.concat_str("response_id", "criterion_id", "criterion_hash", separator="/")
    is_known = pl.col("label_value").is_not_null()
    verdicts = frame.with_columns(
        key=key,
        contribution=share,
        error=pl.Series(errors),
        is_known=is_known,
    )
    responses = pl.DataFrame(
        reader.arrow(
            sql.read("queries/exports/figures_to_correct"),
            {
                **parameters,
                "response_ids": frame["response_id"].unique().to_list(),
                "splits": list(wanted.splits),
            },
        )
    )
    return Population(wanted, purpose, verdicts, responses, judge_config["judge"])


def draw(job: Job, population: Population, n_rows: int, seed: int) -> tuple[Row, list[Row]]:
    """Sample verdicts without a label; the same population, number and seed give the same sample.

    Return the row of `label_sheets`, and the rows of `label_draws`: the sampled verdicts and all
    those with a label.

    Raises:
        UsageError: all verdicts have a label.
    """
    verdicts = population.verdicts
    free = population.free
    purpose = population.purpose
    key = population.wanted.key
    if free.is_empty():
        raise UsageError(f"--for {purpose.named}: every verdict has a label already")
    sampled = population.sample(n_rows, seed)["key"]
    probabilities = np.ones(len(verdicts))
    probabilities[~verdicts["is_known"].to_numpy()] = population.probabilities(n_rows)
    listed = [
        f"{name}/{p!r}" for name, p in zip(verdicts["key"], probabilities.tolist(), strict=True)
    ]
    sheet_id = digest(
        "label sheet",
        key["benchmark"],
        key["dataset_revision"],
        tuple(purpose),
        n_rows,
        seed,
        listed,
    )
    sheet = {
        **key,
        "sheet_id": sheet_id,
        "covered_breakdown": purpose.breakdown,
        "covered_label": purpose.label,
        "design": (
            f"{len(sampled)} verdicts drawn for {purpose.named}, judged by {population.judge}, seed"
            f" {seed}"
        ),
        "covered_responses": verdicts["response_id"].unique(maintain_order=True).to_list(),
        "n_population": len(free),
        "n_drawn": len(sampled),
        "seed": seed,
        "import_batch": None,
        "run_id": job.run_id,
        "created_at": datetime.now(UTC),
    }
    is_listed = pl.col("key").is_in(sampled) | pl.col("is_known")
    drawn = verdicts.with_columns(probability=pl.Series(probabilities)).filter(is_listed)
    columns = ("response_id", "criterion_id", "criterion_hash", "probability", "is_known")
    of_sheet = {**key, "sheet_id": sheet_id}
    return sheet, [of_sheet | row for row in drawn.select(*columns, task_id="task").to_dicts()]
