"""What a succession shows: scores and ranks under the new judge, estimated from its sample.

The estimates are those of labels by people (`rules/statistics/debiased.py`), with the new judge's
verdicts as the labels. Effects and their intervals concern the evaluated tasks; the interval of a
score under the new judge is for other tasks of the same kind, as that of every score.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

import sql
from tasks.config.job import Job, Succession
from tasks.rules.statistics import debiased
from tasks.rules.statistics.effects import SampledModel, effects_on
from tasks.rules.statistics.intervals import LEVEL
from tasks.succession.sample import Sample
from warehouse import Reader, Row, Warehouse


def level_of_look(look: int | None) -> float:
    """Return the level of intervals at a look.

    A sample that grows until its intervals are narrow enough is looked at several times. Look k may
    use 1 / (k (k + 1)) of the allowed error; over all looks this sums to it.
    """
    return LEVEL if look is None else 1.0 - (1.0 - LEVEL) / (look * (look + 1))


def estimated_rows(reader: Reader, succession: Row) -> list[Row]:
    """Return a row for each model on each split, the best by the old judge first.

    Args:
        reader: the published state.
        succession: the row of `successions`, the latest of its judges.
    """
    parameters = {"succession_id": succession["succession_id"]}
    tasks = pl.DataFrame(reader.arrow(sql.read("queries/succession/figure_tasks"), parameters))
    labels = pl.DataFrame(reader.arrow(sql.read("queries/succession/labels"), parameters))
    rows = []
    for split_tasks in tasks.partition_by("split", maintain_order=True):
        figures = []
        for (figure_id,), figure_tasks in split_tasks.group_by("figure_id", maintain_order=True):
            figure_labels = labels.filter(pl.col("figure_id") == figure_id)
            figures.append(ModelFigure(figure_tasks, figure_labels))
        figures.sort(key=lambda figure: figure.old_mean, reverse=True)
        rows += _rows_of_split(figures, succession)
    return rows


@dataclass(frozen=True)
class ModelFigure:
    """A model on a split, with its tasks (rows of the query `figure_tasks`) and the sampled
    criteria (`labels`).
    """

    tasks: pl.DataFrame
    labels: pl.DataFrame

    @property
    def old_mean(self) -> float:
        """The mean score by the old judge, before clipping."""
        return float(self.tasks["judged"].to_numpy().mean())

    @property
    def is_complete(self) -> bool:
        """True if every criterion was sampled, so that nothing is estimated."""
        return self.n_verdicts == self.n_all_verdicts

    @property
    def n_verdicts(self) -> int:
        """The number of verdicts of the new judge that the sample asks for."""
        return int(self.labels["n_verdicts"].sum())

    @property
    def n_all_verdicts(self) -> int:
        """The number of verdicts on all criteria."""
        return int(self.tasks["n_verdicts"].sum())

    @property
    def no_figure(self) -> str | None:
        """The reason why there is no estimate; None if there is one."""
        if self.is_complete:
            return None
        return debiased.reason_without_figure(
            self.labels["contribution"].to_numpy(),
            self.labels["factor"].to_numpy(),
            n_tasks=len(self.tasks),
            n_tasks_uncovered=0,
            n_tasks_labelled=self.labels["task"].n_unique(),
        )

    def sampled_model(self) -> SampledModel:
        """Return the model with its values corrected by the new judge's verdicts."""
        known_tasks = debiased.KnownTasks(
            offset=self.tasks["known_offset"].to_numpy(),
            positive=self.tasks["positive"].to_numpy(),
            negative=self.tasks["negative"].to_numpy(),
            judged=self.tasks["judged"].to_numpy(),
        )
        contribution = self.labels["contribution"].to_numpy()
        factor = self.labels["factor"].to_numpy()
        labels = debiased.Labels(
            task=self.labels["task"].to_numpy(),
            contribution=contribution,
            label=self.labels["new_value"].to_numpy(),
            judge=self.labels["old_value"].to_numpy(),
            factor=factor,
        )
        # An undecided verdict counts half, so it could move the score by half its contribution.
        possible_changes = 0.5 * self.labels["undecided_share"].to_numpy() * np.abs(contribution)
        return SampledModel(
            corrected=debiased.corrected(known_tasks, labels),
            first_mean=self.old_mean,
            criterion=self.labels["criterion"].to_numpy(),
            is_complete=self.is_complete,
            undecided=float((factor * possible_changes).sum()) / len(self.tasks),
        )

    def known_columns(self) -> Row:
        """Return what is known without an estimate."""
        first_task = self.tasks.row(0, named=True)
        mean_usd = self.labels["mean_usd"].drop_nulls().to_numpy()
        rejudging_usd = None
        if len(mean_usd):
            rejudging_usd = float(mean_usd.mean()) * (self.n_all_verdicts - self.n_verdicts)
        return {
            "split": first_task["split"],
            "model": first_task["model"],
            "vintage": first_task["vintage"],
            "model_run_id": first_task["model_run_id"],
            "mean_floor": first_task["mean_floor"],
            "old_score": max(self.old_mean, first_task["mean_floor"]),
            "n_tasks": len(self.tasks),
            "n_verdicts": self.n_verdicts,
            "n_undecided": int(self.labels["n_undecided"].sum()),
            "n_all_verdicts": self.n_all_verdicts,
            "half_width_verdicts": _verdicts_to_halve_width(self.n_verdicts, self.n_all_verdicts),
            "rejudging_usd": rejudging_usd,
            "no_figure": self.no_figure,
        }

    def estimate_columns(self, model: SampledModel) -> Row:
        """Return the score under the new judge, clipped as every score; on one task it has no
        interval.
        """
        floor = self.tasks["mean_floor"][0]
        columns = {
            "undecided_width": 2.0 * model.undecided,
            "new_score": max(float(model.corrected.values.mean()), floor),
        }
        if len(self.tasks) > 1:
            estimate = debiased.estimate(model.corrected)
            columns["new_score_ci_low"] = max(estimate.low - model.undecided, floor)
            columns["new_score_ci_high"] = max(estimate.high + model.undecided, floor)
        return columns


def _verdicts_to_halve_width(n_verdicts: int, n_all_verdicts: int) -> int | None:
    """Return the number of verdicts with which an effect's interval would be half as wide.

    The variance is proportional to N / n - 1, with n of N verdicts sampled. None if there are none,
    or all.
    """
    if n_verdicts in {0, n_all_verdicts}:
        return None
    wanted_variance = (n_all_verdicts / n_verdicts - 1.0) / 4.0
    return round(n_all_verdicts / (1.0 + wanted_variance))


_NO_ESTIMATE = dict.fromkeys(
    (
        "undecided_width",
        "new_score",
        "new_score_ci_low",
        "new_score_ci_high",
        "effect",
        "effect_ci_low",
        "effect_ci_high",
        "new_rank_low",
        "new_rank_high",
        "keeps_order",
        "pair_widths",
        "undecided_pair_widths",
        "interaction_p_value",
    )
)


def _rows_of_split(figures: Sequence[ModelFigure], succession: Row) -> list[Row]:
    """Return the rows of models on a split, which are in the order of their scores."""
    rows = []
    estimated = []
    for rank, figure in enumerate(figures, start=1):
        row = {**figure.known_columns(), "old_rank": rank, **_NO_ESTIMATE}
        rows.append(row)
        if row["no_figure"] is None:
            estimated.append((row, figure, figure.sampled_model()))
    if estimated:
        effects = _effect_columns([model for _, _, model in estimated], succession)
        for (row, figure, model), columns in zip(estimated, effects.to_dicts(), strict=True):
            row.update(figure.estimate_columns(model) | columns)
            # A model without an estimate could be above or below.
            row["new_rank_high"] += len(rows) - len(estimated)
    return rows


def _effect_columns(models: Sequence[SampledModel], succession: Row) -> pl.DataFrame:
    """Return the effects on the models of a split, and their possible ranks under the new judge.

    Ranks are by intervals that hold for all pairs of models together.
    """
    level = level_of_look(succession["look"])
    effects = effects_on(models, succession["n_drawn"])
    half_widths = effects.half_widths(level)
    old_means = np.array([model.first_mean for model in models])
    new_means = old_means + effects.means
    # Of the model in the row from the one in the column, shape (n_models, n_models).
    old_leads = old_means[:, None] - old_means[None, :]
    new_leads = new_means[:, None] - new_means[None, :]
    pair_half_widths = effects.pair_half_widths(level)
    is_above = new_leads > pair_half_widths
    keeps_lead = is_above | (old_leads <= 0.0)
    n_above = is_above.sum(axis=0)
    n_below = is_above.sum(axis=1)
    return pl.DataFrame(
        {
            "effect": effects.means,
            "effect_ci_low": effects.means - half_widths,
            "effect_ci_high": effects.means + half_widths,
            "new_rank_low": 1 + n_above,
            "new_rank_high": len(models) - n_below,
            "keeps_order": keeps_lead.all(axis=0) & keeps_lead.all(axis=1),
            "pair_widths": (2.0 * pair_half_widths).tolist(),
            "undecided_pair_widths": (2.0 * effects.pair_undecided).tolist(),
            "interaction_p_value": effects.interaction_p_value,
        }
    )


def next_look(job: Job, sample: Sample) -> Succession | None:
    """Return the larger sample that the widths of intervals still ask for; None if none does."""
    succession = job.succession
    assert succession is not None
    is_complete = len(sample.criteria) == sample.succession["n_population"]
    if succession.width is None or succession.look is None or is_complete:
        return None
    with Warehouse(job.warehouse).reader() as reader:
        rows = estimated_rows(reader, sample.succession)
    if not any(_is_too_wide(row, succession) for row in rows):
        return None
    return succession.model_copy(
        update={"look": succession.look + 1, "n_verdicts": 2 * succession.n_verdicts}
    )


def _is_too_wide(row: Row, succession: Succession) -> bool:
    """Return whether a larger sample may narrow the interval of a model to the wanted width."""
    assert succession.width is not None
    if row["n_tasks"] < debiased.FEWEST_LABELLED_TASKS:
        return False
    if row["no_figure"] is not None:
        return True
    undecided_widths = [row["undecided_width"]]
    widths = [row["effect_ci_high"] - row["effect_ci_low"]]
    if succession.interval_of == "ranks":
        undecided_widths = row["undecided_pair_widths"]
        widths = row["pair_widths"]
    return any(
        undecided_width <= succession.width < width
        for undecided_width, width in zip(undecided_widths, widths, strict=True)
    )
