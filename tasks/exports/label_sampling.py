"""Sampling of the verdicts whose labels narrow an interval most."""

from collections.abc import Mapping, Sequence
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
from warehouse import Reader, Row

LEADERBOARD = "leaderboard"


class Purpose(NamedTuple):
    """The interval that people's labels should narrow: of each model's mean, or of a difference.

    The score counts the criteria whose `breakdown` has the value `label`, such as a category.
    """

    models: tuple[str, ...]
    is_difference: bool
    score: str
    breakdown: str
    label: str
    name: str


@dataclass(frozen=True)
class Population:
    """The verdicts from which a sheet is sampled for a purpose, and the judge to correct.

    Besides the columns of `drawn_population`, `verdicts` has a `key`, the `contribution` of each to
    its model's mean, the expected squared `error` of the judge, and `is_known`: true if the verdict
    has a label. `responses` has the rows of `figures_to_correct`.
    """

    selection: WantedTasks
    purpose: Purpose
    verdicts: pl.DataFrame
    responses: pl.DataFrame
    judge: str

    @cached_property
    def unlabelled(self) -> pl.DataFrame:
        """The verdicts without a label."""
        return self.verdicts.filter(~pl.col("is_known"))

    def probabilities(self, n_wanted: int) -> Floats:
        """Return the probability of sampling each verdict without a label.

        Each model gets an equal share of the labels, since all need the same number.
        """
        contribution = self.unlabelled["contribution"].to_numpy()
        size = sampling.sampling_sizes(contribution, self.unlabelled["error"].to_numpy())
        _, model_index = np.unique(self.unlabelled["model"].to_list(), return_inverse=True)
        model_size = np.bincount(model_index, size)[model_index]
        return sampling.sampling_probabilities(size / model_size, n_wanted)

    def sample(self, probabilities: Floats, seed: int) -> pl.DataFrame:
        """Return sampled verdicts without a label, with the `probability` of each."""
        keys = self.unlabelled["key"].to_list()
        models = self.unlabelled["model"].to_list()
        positions = sampling.systematic_sample(probabilities, keys, seed, models)
        return self.unlabelled.with_columns(probability=pl.Series(probabilities))[positions]


def purpose_of(name: str, reader: Reader, selection: WantedTasks, models: Sequence[str]) -> Purpose:
    """Return the purpose that `--for` names: the leaderboard, two models, or a category.

    Raises:
        UsageError: it names none of these.
    """
    benchmark = selection.benchmark
    leaderboard = Purpose(
        models=tuple(models),
        is_difference=False,
        score=benchmark.primary_score.score_name,
        breakdown="all",
        label="",
        name=LEADERBOARD,
    )
    if name == LEADERBOARD:
        return leaderboard
    column = "distinct coalesce(category, '(none)') as category"
    categories = [row["category"] for row in reader.select("criteria", column, **selection.key)]
    if name in categories:
        return leaderboard._replace(
            score=benchmark.criteria_score.score_name,
            breakdown="category",
            label=name,
            name=f"category {name}",
        )
    for pair in permutations(models, 2):
        if name == " ".join(pair):
            return leaderboard._replace(models=pair, is_difference=True, name=" and ".join(pair))
    raise UsageError(
        f"--for {name!r}: neither `{LEADERBOARD}`, nor two models with usable responses"
        f" ({', '.join(models)}), nor a category ({', '.join(categories)})"
    )


def population_of(
    job: Job,
    reader: Reader,
    selection: WantedTasks,
    purpose: Purpose,
    response_ids: Sequence[str],
    *,
    is_latest: bool,
) -> Population:
    """Return the verdicts on some responses from which a sheet can be sampled.

    The judge is that of `first_judge_config`: a configured one that has verdicts on these
    responses; if there is none, the one with the most. With `--judge`, only named ones count. A
    label is used only if the judge decided the whole response. Responses without any verdict of the
    judge are left out; incomplete ones, such as after a failed call, are rarely sampled.

    Raises:
        UsageError: no judge has a verdict on these responses, or the judge has none on a model to
            be compared.
    """
    judge_config = _judge_config(job, reader, selection, response_ids)
    parameters = {
        **selection.key,
        "judging_id": judge_config["judging_id"],
        "steps": judge_config["steps"],
        "score": purpose.score,
        "breakdown": purpose.breakdown,
        "label": purpose.label,
    }
    verdict_parameters = parameters | {"response_ids": response_ids, "of_latest": is_latest}
    verdicts = _frame(reader, "queries/exports/drawn_population", verdict_parameters)
    if verdicts.is_empty():
        raise UsageError(f"--for {purpose.name}: no criterion of these responses counts for it")
    missing_models = set(purpose.models) - set(verdicts["model"])
    if purpose.is_difference and missing_models:
        raise UsageError(
            f"--for: {judge_config['judge']} has no verdict on {min(missing_models)}; run"
            " `prbench judge`"
        )
    verdicts = verdicts.with_columns(
        key=pl.concat_str("response_id", "criterion_id", "criterion_hash", separator="/"),
        contribution=_contribution(),
        error=pl.Series(_expected_errors(verdicts)),
        is_known=pl.col("label_value").is_not_null(),
    )
    response_parameters = parameters | {
        "response_ids": verdicts["response_id"].unique().to_list(),
        "splits": list(selection.splits),
    }
    responses = _frame(reader, "queries/exports/figures_to_correct", response_parameters)
    return Population(selection, purpose, verdicts, responses, judge_config["judge"])


def _judge_config(
    job: Job,
    reader: Reader,
    selection: WantedTasks,
    response_ids: Sequence[str],
) -> Mapping[str, Any]:
    parameters = {"response_ids": response_ids, "judges": job.named_judges}
    candidates = reader.query("queries/exports/sampled_judge_configs", parameters)
    judge_config = first_judge_config(job, selection.benchmark, candidates)
    if judge_config is None:
        raise UsageError(
            "--for: no judge has a verdict on these responses; run `prbench judge`, or leave"
            " --for out"
        )
    return judge_config


def _frame(reader: Reader, query: str, parameters: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(reader.arrow(sql.read(query), parameters))


def _contribution() -> pl.Expr:
    """Return the contribution of each verdict to its model's mean.

    It is its `worth`, the contribution to the score of the response, divided by the trials of the
    task and by the tasks of the model that count.
    """
    is_decided = pl.col("is_decided")
    n_trials = pl.col("response_id").filter(is_decided).n_unique().over("model", "task")
    n_tasks = pl.col("task").filter(is_decided).n_unique().over("model")
    return pl.when(is_decided).then(pl.col("worth") / n_trials / n_tasks).otherwise(0.0)


def _expected_errors(verdicts: pl.DataFrame) -> Floats:
    """Return the expected squared error of the judge on each verdict."""
    kinds = verdicts.select(pl.struct("category", "severity").rank("dense") - 1).to_series()
    groups = kinds.cast(pl.Int64).to_numpy()
    squared_errors = (verdicts["label_value"] - verdicts["judge_value"]) ** 2
    is_labelled = squared_errors.is_not_null().to_numpy()
    group_errors = sampling.group_errors(
        label_groups=groups[is_labelled],
        squared_errors=squared_errors.drop_nulls().to_numpy(),
        verdict_groups=groups,
    )
    return sampling.expected_errors(
        group_errors, verdicts["disagreement"].to_numpy(), verdicts["n_others"].to_numpy()
    )


def sampled_sheet(
    job: Job,
    population: Population,
    n_rows: int,
    seed: int,
) -> tuple[Row, list[Row]]:
    """Sample verdicts without a label; the same population, number and seed give the same sample.

    Return the row of `label_sheets`, and the rows of `label_draws`: the sampled verdicts and all
    those with a label.

    Raises:
        UsageError: all verdicts have a label.
    """
    purpose = population.purpose
    if population.unlabelled.is_empty():
        raise UsageError(f"--for {purpose.name}: every verdict has a label already")
    sampling_probabilities = population.probabilities(n_rows)
    keys = population.sample(sampling_probabilities, seed)["key"]
    is_labelled = population.verdicts["is_known"].to_numpy()
    probabilities = np.ones(len(is_labelled))
    probabilities[~is_labelled] = sampling_probabilities
    verdicts = population.verdicts.with_columns(probability=pl.Series(probabilities))
    sheet_id = _sheet_id(population, verdicts, n_rows, seed)
    sheet = {
        **population.selection.key,
        "sheet_id": sheet_id,
        "covered_breakdown": purpose.breakdown,
        "covered_label": purpose.label,
        "design": (
            f"{len(keys)} verdicts drawn for {purpose.name}, judged by {population.judge}, seed"
            f" {seed}"
        ),
        "covered_responses": verdicts["response_id"].unique(maintain_order=True).to_list(),
        "n_population": len(population.unlabelled),
        "n_drawn": len(keys),
        "seed": seed,
        "import_batch": None,
        "run_id": job.run_id,
        "created_at": datetime.now(UTC),
    }
    stored_verdicts = verdicts.filter(pl.col("key").is_in(keys) | pl.col("is_known"))
    columns = ("response_id", "criterion_id", "criterion_hash", "probability", "is_known")
    draws = stored_verdicts.select(*columns, task_id="task").to_dicts()
    for row in draws:
        row.update(population.selection.key, sheet_id=sheet_id)
    return sheet, draws


def _sheet_id(population: Population, verdicts: pl.DataFrame, n_rows: int, seed: int) -> str:
    """Return the id of a sheet; `verdicts` have the probabilities of being sampled."""
    purpose = population.purpose
    return digest(
        "label sheet",
        population.selection.benchmark.name,
        population.selection.dataset_revision,
        (
            purpose.models,
            purpose.is_difference,
            purpose.score,
            purpose.breakdown,
            purpose.label,
            purpose.name,
        ),
        n_rows,
        seed,
        [f"{key}/{share!r}" for key, share in verdicts.select("key", "probability").iter_rows()],
    )
