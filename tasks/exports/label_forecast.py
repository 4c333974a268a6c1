"""Forecast of a sampled sheet: which figures its labels give, and how wide intervals will be.

Which figures exist is decided by the rule of `tasks/rules/statistics/debiased.py`, which later
decides in `tasks/measures/scores.py`; here it is applied to the labels that each figure will have.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from tasks.exports.label_sampling import Population
from tasks.rules.statistics import debiased, sampling
from tasks.rules.text.numbers import counted, some
from warehouse import Reader

Row = dict[str, Any]


@dataclass(frozen=True)
class Outlook:
    """A figure once a sheet is filled in: its number of labels, and why it is missing (None: it
    exists).
    """

    figure_id: str
    model: str
    split: str
    n_labels: int
    no_figure: str | None


def outlooks(population: Population, n_rows: int, seed: int) -> list[Outlook]:
    """Return the outlook of each figure once a sheet of `n_rows` is filled in, by split and
    model.
    """
    sampled = population.sample(n_rows, seed)
    labelled = pl.concat([sampled, population.verdicts.filter("is_known")], how="diagonal")
    labelled = labelled.with_columns(factor=_factors(population, len(sampled)))
    is_covered = pl.col("is_covered") | pl.col("response_id").is_in(
        population.verdicts["response_id"].implode()
    )
    result = []
    for (figure_id,), responses in population.responses.group_by("figure_id", maintain_order=True):
        labels = labelled.join(responses.select("response_id"), on="response_id")
        n_tasks_uncovered = responses.filter(~is_covered)["task"].n_unique()
        reason = debiased.too_few_labels(
            n_tasks=responses["task"].n_unique(),
            n_tasks_uncovered=n_tasks_uncovered,
            n_labels=len(labels),
            n_tasks_labelled=labels["task"].n_unique(),
        ) or debiased.outweighed(
            debiased.effective_labels(
                labels["contribution"].to_numpy(), labels["factor"].to_numpy()
            )
        )
        first = responses.row(0, named=True)
        result.append(Outlook(figure_id, first["model"], first["split"], len(labels), reason))
    return result


def _factors(population: Population, n_sampled: int) -> pl.Expr:
    """Return the number of verdicts that each label represents once the sheet is filled in.

    As in `sql/intermediate/debiased/sampled_labels.sql`: the mean over sheets, weighted by the
    labelled shares of their populations. In this sheet a label that was known before represents
    itself.
    """
    share = n_sampled / len(population.free)
    in_sheet = pl.when("is_known").then(1.0).otherwise(1.0 / pl.col("probability"))
    return (pl.col("factor") * pl.col("density") + in_sheet * share) / (pl.col("density") + share)


def fewest_rows(population: Population, possible: set[str], seed: int) -> int:
    """Return the size of a sheet that gives all `possible` figures, while one row fewer does not.

    Args:
        population: the verdicts to sample from.
        possible: ids of figures that exist if every verdict is labelled.
        seed: the seed of the sheet.
    """
    n_enough = len(population.free)
    n_too_few = 0
    while n_enough - n_too_few > 1:
        n_rows = (n_enough + n_too_few) // 2
        missing = {each.figure_id for each in outlooks(population, n_rows, seed) if each.no_figure}
        if possible & missing:
            n_too_few = n_rows
        else:
            n_enough = n_rows
    return n_enough


def outlook_notes(population: Population, n_rows: int, seed: int) -> list[str]:
    """Return what the labels of a sheet of `n_rows` give, how many are needed, and what no sheet
    can give.
    """
    figures = outlooks(population, n_rows, seed)
    at_most = outlooks(population, len(population.free), seed)
    missing = {each.figure_id for each in figures if each.no_figure}
    impossible = [each for each in at_most if each.no_figure]
    possible = {each.figure_id for each in at_most} - {each.figure_id for each in impossible}
    given = (
        f"{len(figures) - len(missing)} of {counted(len(figures), 'score')} (of a model on a split)"
    )
    notes = [f"filled in, it gives {given} an interval"]
    if possible & missing:
        n_needed = fewest_rows(population, possible, seed)
        needs = f"{debiased.FEWEST_LABELS} labels in {debiased.FEWEST_LABELLED_TASKS} tasks"
        notes.append(
            f"each score needs {needs}: -n {n_needed} gives an interval to all {len(possible)} that"
            " can have one"
        )
    causes = defaultdict(list)
    for each in impossible:
        causes[each.split, each.no_figure].append(each.model)
    n_models = Counter(each.split for each in at_most)
    for (split, cause), models in causes.items():
        named = "any model" if len(models) == n_models[split] else some(models)
        notes.append(f"no sheet gives an interval on {split} to {named}: {cause}")
    return notes


def expected_widths(reader: Reader, population: Population, n_rows: int, seed: int) -> list[Row]:
    """Return the mean `width` of the chosen intervals now (`n_labels` 0), and as expected after
    `n_labels` more.

    `is_enough` states whether a sheet of that many gives each of the intervals on each split. The
    width now is None if one of them is missing. Labels of earlier sheets are included through the
    current width, or if there is none, by their number.
    """
    now = _widths_now(reader, population)
    purpose = population.purpose
    models = [[each] for each in population.verdicts["model"].unique().sort()]
    groups = [list(purpose.models)] if purpose.is_difference else models
    known = [now[name]["width"] for name in map(" ".join, groups) if name in now]
    has_figures = len(known) == len(groups)
    width = float(np.mean(known)) if has_figures else None
    expected: list[Row] = [
        {
            "n_labels": 0,
            "width": width,
            "is_enough": has_figures,
        }
    ]
    for n in sorted({50, 100, 200, n_rows}):
        labelled = population.free.with_columns(probability=pl.Series(population.probabilities(n)))
        widths = [_width(population, labelled, group, now.get(" ".join(group))) for group in groups]
        is_enough = all(each.no_figure is None for each in outlooks(population, n, seed))
        expected.append(
            {
                "n_labels": n,
                "width": float(np.mean(widths)),
                "is_enough": is_enough,
            }
        )
    return expected


def _widths_now(reader: Reader, population: Population) -> dict[str, Row]:
    """Return the widths of the debiased intervals on the largest task set, and the numbers of
    labels behind them.
    """
    purpose = population.purpose
    vintages = population.verdicts["vintage"].unique().to_list()
    key = {
        **population.wanted.key,
        "judge": population.judge,
        "vintage": vintages,
        "score_name": purpose.score,
        "breakdown": purpose.breakdown,
    }
    width = "debiased_ci_high - debiased_ci_low as width, n_tasks, split"
    if purpose.is_difference:
        columns = f"model_a, model_b, n_labels_a + n_labels_b as n_labels, {width}"
        order = "n_tasks desc, split"
        rows = reader.select("debiased_differences", columns, order=order, **key)
        both = set(purpose.models)
        rows = [
            row | {"model": " ".join(purpose.models)}
            for row in rows
            if {row["model_a"], row["model_b"]} == both
        ]
    else:
        columns = f"model, n_labels, {width}"
        order = "is_latest desc, n_tasks desc, split"
        rows = reader.select("debiased_scores", columns, order=order, label=purpose.label, **key)
    # The first row of each model counts.
    return {row["model"]: row for row in reversed(rows) if row["width"] is not None}


def _width(
    population: Population, labelled: pl.DataFrame, group: Sequence[str], now: Row | None
) -> float:
    """Return the expected width of the interval of a model's mean, or of a difference, with these
    labels.
    """
    is_own = pl.col("model").is_in(group)
    own = population.verdicts.filter(is_own)
    labelled = labelled.filter(is_own)
    sign = pl.when((pl.col("model") == group[0]) & (len(group) > 1)).then(-1.0).otherwise(1.0)
    points = (sign * pl.col("contribution") * pl.col("judge_value")).sum().alias("value")
    values = (
        own.filter("is_counted")
        .group_by("task", maintain_order=True)
        .agg(points)["value"]
        .to_numpy()
    )
    of_tasks = len(values) * float(np.var(values, ddof=1)) if len(values) > 1 else 0.0
    names = ("contribution", "error", "probability")
    contributions, errors, probabilities = (labelled[name].to_numpy() for name in names)
    added = sampling.label_variance(contributions, errors, probabilities)
    n_new = float(probabilities.sum())
    if now is None:
        return sampling.expected_width(of_tasks, [added], [n_new], int(own["is_known"].sum()))
    before = max(0.0, (now["width"] / 2.0 / 1.96) ** 2 - of_tasks)
    return sampling.expected_width(of_tasks, [before, added], [now["n_labels"], n_new])
