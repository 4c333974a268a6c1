"""Differences, and what they consist of, as the rows of figures (`tasks.figures.shown.comparisons`)."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import polars as pl

import sql
from tasks.compare.differences import Answer, Difference, short
from tasks.compare.sentences import decision, notes_on_all, notes_on_verdicts, sentence, where_in, why_no_interval
from warehouse import Reader

Row = dict[str, Any]


def rows_of(answer: Answer) -> list[Row]:
    """A row for each difference, in the order of the answer."""
    return [
        _labels(answer, each) | {
            "score": answer.score, "first_mean": each.first_mean, "second_mean": each.second_mean,
            **asdict(each.paired), "no_interval": why_no_interval(each), "n_tasks_wanted": each.n_wanted,
            "p_adjusted": each.p_adjusted, "is_significant": each.is_significant, "sentence": sentence(answer, each),
            "notes": list(each.notes), "notes_on_all": notes_on_all(answer),
            **{
                f"{place}_{name}": value
                for place, side in (("first", each.pair.first), ("second", each.pair.second))
                for name, value in asdict(side.model_run).items()
                if name != "model_run_id"
            },
        }
        for each in answer.differences
    ]  # fmt: skip


def with_verdicts(row: Row, verdicts: Row) -> Row:
    """The row of a difference with its verdicts as counted (`apart`)."""
    return row | verdicts | {"notes": [*row["notes"], *notes_on_verdicts(verdicts, row["difference"])]}


def apart(
    reader: Reader, answer: Answer, differences: Iterable[Difference], n_flips: int | None = None
) -> dict[str, list[Row]]:
    """What differences consist of: verdicts as counted, and by category, task and flip, each the largest loss first.

    A flip is a criterion that both sides decided, and not alike; values are means over the trials that are complete,
    `effect` is what the change is worth to the task's score. `n_flips` is how many are given of each difference.

    Of the criteria of tasks that both sides answered, `n_compared` are compared: those that stand in both rubrics, of
    tasks that are complete on both sides. `explained` is the part of the difference that flips make; all of it unless
    the rubrics differ.
    """
    found: dict[str, list[Row]] = {"verdicts": [], "categories": [], "tasks": [], "flips": []}
    cells_of: dict[tuple[int, int], pl.DataFrame] = {}
    for difference in differences:
        ids = difference.pair.first.model_run.model_run_id, difference.pair.second.model_run.model_run_id
        if ids not in cells_of:
            # Differences of one pair follow each other; the cells of more than one are not kept.
            parameters = {"first": ids[0], "second": ids[1], "score": answer.score}
            cells_of = {ids: pl.DataFrame(reader.arrow(sql.read("queries/compare/flips"), parameters))}
        labels = _labels(answer, difference)
        for name, rows in _parts(difference, cells_of[ids], n_flips).items():
            found[name] += [labels | row for row in rows]
    return found


def _labels(answer: Answer, difference: Difference) -> Row:
    """What distinguishes a difference from others; `where` is what both sides have in common, where it varies."""
    first, second = (short(answer.kind, side) for side in (difference.pair.first, difference.pair.second))
    where = where_in(answer, difference).removeprefix(", ") or None
    return {"kind": answer.kind, "first": first, "second": second, "where": where, "split": difference.split}


_SIGNS = ((pl.col("effect") > 0).sum().alias("n_gained"), (pl.col("effect") < 0).sum().alias("n_lost"))
"""How many flips raise or lower the score."""


def _parts(difference: Difference, cells: pl.DataFrame, n_flips: int | None) -> dict[str, list[Row]]:
    tasks = difference.tasks
    answered = cells.filter(pl.col("task_id").is_in(difference.answered.implode()))
    shared = answered.filter("is_in_both")
    decided = shared.drop_nulls(["first_value", "second_value"])
    compared = decided.join(tasks, on="task_id", how="semi", maintain_order="left")
    flips = compared.filter(pl.col("first_value") != pl.col("second_value"))
    categories = compared.group_by("category").agg(
        pl.len().alias("n_criteria"), *_SIGNS, (pl.col("effect").sum() / len(tasks)).alias("contribution")
    )
    of_tasks = tasks.join(flips.group_by("task_id").agg(_SIGNS), on="task_id", how="left").with_columns(
        pl.col("n_gained", "n_lost").fill_null(0), difference=pl.col("second_score") - pl.col("first_score")
    )
    verdicts = {
        "n_flips": len(flips), "n_flips_lost": flips.select(_SIGNS)["n_lost"].item(), "n_criteria": len(answered),
        "n_compared": len(compared), "n_undecided": len(shared) - len(decided),
        "n_left_out": len(decided) - len(compared), "n_in_one": len(answered) - len(shared),
        "explained": flips["effect"].sum() / len(tasks),
    }  # fmt: skip
    shown = flips.drop("is_in_both").head(len(flips) if n_flips is None else n_flips).to_dicts()
    return {
        "verdicts": [verdicts],
        "categories": categories.sort("contribution", "category").to_dicts() if len(flips) else [],
        "tasks": of_tasks.sort("difference", "task_id").to_dicts(),
        "flips": [
            flip | {f"{side}_decision": decision(flip[f"{side}_by_trial"]) for side in ("first", "second")}
            for flip in shown
        ],
    }
