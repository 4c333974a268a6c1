"""Forecast of a sampled sheet: which figures its labels give, and how wide intervals will be.

Which figures exist is decided by the rule of `tasks/rules/statistics/debiased.py`, which later
decides in `tasks/measures/scores.py`; here it is applied to the labels that each figure will have.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from tasks.exports.label_sampling import Population
from tasks.rules.statistics import debiased, sampling
from tasks.rules.text.numbers import counted, list_text
from warehouse import Reader, Row


class Outlook(NamedTuple):
    """A figure once a sheet is filled in.

    `no_figure` is the reason why it is missing; None if it exists.
    """

    figure_id: str
    model: str
    split: str
    n_labels: int
    no_figure: str | None


def outlooks(population: Population, n_rows: int, seed: int) -> list[Outlook]:
    """Return the outlook of each figure once a sheet of `n_rows` is filled in."""
    sampled = population.sample(population.probabilities(n_rows), seed)
    labelled = pl.concat([sampled, population.verdicts.filter("is_known")], how="diagonal")
    labelled = labelled.with_columns(factor=_factors(population, len(sampled)))
    will_be_covered = pl.col("is_covered") | pl.col("response_id").is_in(
        population.verdicts["response_id"].implode()
    )
    sheet_outlooks = []
    for (figure_id,), responses in population.responses.group_by("figure_id", maintain_order=True):
        labels = labelled.join(responses.select("response_id"), on="response_id")
        uncovered = responses.filter(~will_be_covered)
        reason = debiased.reason_without_figure(
            labels["contribution"].to_numpy(),
            labels["factor"].to_numpy(),
            n_tasks=responses["task"].n_unique(),
            n_tasks_uncovered=uncovered["task"].n_unique(),
            n_tasks_labelled=labels["task"].n_unique(),
        )
        # All responses of a figure have its model and split.
        response = responses.row(0, named=True)
        sheet_outlooks.append(
            Outlook(
                figure_id,
                response["model"],
                response["split"],
                len(labels),
                reason,
            )
        )
    return sheet_outlooks


def _factors(population: Population, n_sampled: int) -> pl.Expr:
    """Return the number of verdicts that each label represents once the sheet is filled in.

    As in `sql/intermediate/debiased/sampled_labels.sql`: the mean over sheets, weighted by the
    labelled shares of their populations. In this sheet a label that was known before represents
    itself.
    """
    share = n_sampled / len(population.unlabelled)
    density = pl.col("density")
    factor_in_sheet = pl.when("is_known").then(1.0).otherwise(1.0 / pl.col("probability"))
    return (pl.col("factor") * density + factor_in_sheet * share) / (density + share)


def fewest_rows(population: Population, possible: set[str], seed: int) -> int:
    """Return the size of a sheet that gives all `possible` figures, while one row fewer does not.

    Args:
        population: the verdicts to sample from.
        possible: ids of figures that exist if every verdict is labelled.
        seed: the seed of the sheet.
    """
    n_enough = len(population.unlabelled)
    n_too_few = 0
    while n_enough - n_too_few > 1:
        n_rows = (n_enough + n_too_few) // 2
        if possible & _missing_ids(outlooks(population, n_rows, seed)):
            n_too_few = n_rows
        else:
            n_enough = n_rows
    return n_enough


def _missing_ids(sheet_outlooks: Sequence[Outlook]) -> set[str]:
    """Return the ids of the figures that a sheet does not give."""
    return {outlook.figure_id for outlook in sheet_outlooks if outlook.no_figure}


def outlook_notes(
    population: Population, sheet_outlooks: Sequence[Outlook], seed: int
) -> list[str]:
    """Return what the labels of a sheet give, how many are needed, and what no sheet can give.

    Args:
        population: the verdicts to sample from.
        sheet_outlooks: the outlook of each figure once the sheet is filled in.
        seed: the seed of the sheet.
    """
    missing_ids = _missing_ids(sheet_outlooks)
    n_given = len(sheet_outlooks) - len(missing_ids)
    notes = [
        f"filled in, it gives {n_given} of {counted(len(sheet_outlooks), 'score')}"
        " (of a model on a split) an interval"
    ]
    full_outlooks = outlooks(population, len(population.unlabelled), seed)
    possible = {outlook.figure_id for outlook in full_outlooks} - _missing_ids(full_outlooks)
    if possible & missing_ids:
        n_needed = fewest_rows(population, possible, seed)
        notes.append(
            f"each score needs {debiased.FEWEST_LABELS} labels in"
            f" {debiased.FEWEST_LABELLED_TASKS} tasks: -n {n_needed} gives an interval to all"
            f" {len(possible)} that can have one"
        )
    n_models = Counter(outlook.split for outlook in full_outlooks)
    models_by_cause = defaultdict(list)
    for outlook in full_outlooks:
        if outlook.no_figure:
            models_by_cause[outlook.split, outlook.no_figure].append(outlook.model)
    for (split, cause), models in models_by_cause.items():
        names = "any model" if len(models) == n_models[split] else list_text(models)
        notes.append(f"no sheet gives an interval on {split} to {names}: {cause}")
    return notes


def expected_widths(
    reader: Reader,
    population: Population,
    n_rows: int,
    seed: int,
) -> list[Row]:
    """Return the mean `width` of the chosen intervals now, and as expected after more labels.

    The first row is about now (`n_labels` 0): its width is None if an interval is missing. The
    others are about `n_labels` more; `is_enough` states whether a sheet of that many gives each of
    the intervals on each split. Labels of earlier sheets are included through the current width, or
    if there is none, by their number.
    """
    current_rows = _current_intervals(reader, population)
    groups = _groups(population)
    intervals = [current_rows.get(" ".join(models)) for models in groups]
    current_widths = [row["width"] for row in intervals if row]
    has_figures = len(current_widths) == len(groups)
    current_width = float(np.mean(current_widths)) if has_figures else None
    expected: list[Row] = [{"n_labels": 0, "width": current_width, "is_enough": has_figures}]
    # Usual sizes of a sheet, and the chosen one.
    for n_labels in sorted({50, 100, 200, n_rows}):
        probabilities = pl.Series(population.probabilities(n_labels))
        labelled = population.unlabelled.with_columns(probability=probabilities)
        widths = [
            _expected_width(population, labelled, models, row)
            for models, row in zip(groups, intervals, strict=True)
        ]
        is_enough = not _missing_ids(outlooks(population, n_labels, seed))
        width = float(np.mean(widths))
        expected.append({"n_labels": n_labels, "width": width, "is_enough": is_enough})
    return expected


def _groups(population: Population) -> list[Sequence[str]]:
    """Return the models of each interval: the two of a difference, or each one alone."""
    if population.purpose.is_difference:
        return [population.purpose.models]
    return [[model] for model in population.verdicts["model"].unique().sort()]


def _current_intervals(reader: Reader, population: Population) -> dict[str, Row]:
    """Return the widths of the debiased intervals on the largest task set, with their labels.

    The key is the model, or the two models of a difference with a space between them.
    """
    purpose = population.purpose
    key = {
        **population.selection.key,
        "judge": population.judge,
        "vintage": population.verdicts["vintage"].unique().to_list(),
        "score_name": purpose.score,
        "breakdown": purpose.breakdown,
        "label": purpose.label,
    }
    width_columns = "debiased_ci_high - debiased_ci_low as width, n_tasks, split"
    if purpose.is_difference:
        columns = f"model_a, model_b, n_labels_a + n_labels_b as n_labels, {width_columns}"
        differences = reader.select(
            "debiased_differences",
            columns,
            order="n_tasks desc, split",
            **key,
        )
        rows = []
        for row in differences:
            if {row["model_a"], row["model_b"]} == set(purpose.models):
                row["model"] = " ".join(purpose.models)
                rows.append(row)
    else:
        columns = f"model, n_labels, {width_columns}"
        rows = reader.select(
            "debiased_scores",
            columns,
            order="is_latest desc, n_tasks desc, split",
            **key,
        )
    # Reversed, because the last row of a key stays, and the first of this order should.
    return {row["model"]: row for row in reversed(rows) if row["width"] is not None}


def _expected_width(
    population: Population,
    labelled: pl.DataFrame,
    models: Sequence[str],
    current: Row | None,
) -> float:
    """Return the expected width of the interval of a mean, or of a difference.

    `labelled` are the verdicts that may get labels, with the `probability` of each; `current` is
    the row of `_current_intervals`.
    """
    is_included = pl.col("model").is_in(models)
    verdicts = population.verdicts.filter(is_included)
    labelled = labelled.filter(is_included)
    task_variance = _task_variance(verdicts, models)
    probabilities = labelled["probability"].to_numpy()
    added_variance = sampling.label_variance(
        contributions=labelled["contribution"].to_numpy(),
        errors=labelled["error"].to_numpy(),
        probabilities=probabilities,
    )
    n_new = float(probabilities.sum())
    if current is None:
        n_known = int(verdicts["is_known"].sum())
        return sampling.expected_width(task_variance, [added_variance], [n_new], n_known)
    # Half the width of a 95 % interval is 1.96 standard errors; the rest of the variance is from
    # labels.
    current_variance = max(0.0, (current["width"] / 2.0 / 1.96) ** 2 - task_variance)
    return sampling.expected_width(
        task_variance, [current_variance, added_variance], [current["n_labels"], n_new]
    )


def _task_variance(verdicts: pl.DataFrame, models: Sequence[str]) -> float:
    """Return the variance of the mean, or of the difference, with a label for every verdict."""
    is_subtracted = (pl.col("model") == models[0]) & (len(models) > 1)
    sign = pl.when(is_subtracted).then(-1.0).otherwise(1.0)
    points = sign * pl.col("contribution") * pl.col("judge_value")
    tasks = verdicts.filter("is_decided").group_by("task", maintain_order=True)
    task_points = tasks.agg(points.sum().alias("points"))["points"].to_numpy()
    if len(task_points) < 2:
        return 0.0
    return len(task_points) * float(np.var(task_points, ddof=1))
