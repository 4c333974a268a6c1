"""Evaluation of cascades: the effect of each rule to escalate, from stored verdicts of a cheap and
a strong judge.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import sql
from tasks.rules.cascades.evaluation import (
    MEASURES,
    Bound,
    Costs,
    Evaluation,
    evaluate,
    for_choosing,
    front,
    picked,
)
from tasks.rules.cascades.rules import Facts, PairedVerdicts, candidates
from tasks.rules.errors import UsageError
from tasks.rules.identity import digest
from tasks.rules.text.characters import did_you_mean
from warehouse import TABLES, Reader, Warehouse

Row = Mapping[str, Any]


@dataclass(frozen=True)
class StoredPair:
    """The stored verdicts of two judges on the criteria that the strong judge decided.

    `n_first_failed` of these criteria are those that the cheap judge failed on. `n_without_second`
    are those without a second verdict of the cheap judge, which rules with `disagreement` leave
    out. `n_strong_failed` are criteria that all rules leave out, because the strong judge failed.
    `notes` say which of several configurations of a judge is used.
    """

    paired: PairedVerdicts
    costs: Costs
    has_repetitions: bool
    n_first_failed: int
    n_strong_failed: int
    n_without_second: int
    has_confidence: bool
    notes: tuple[str, ...]


def stored_pair(
    reader: Reader, parameters: Mapping[str, Any], configured: Collection[str] = ()
) -> StoredPair:
    """Return the stored verdicts of `cheap` and `strong` in a data-set revision.

    Args:
        configured: hashes of the judge configurations that are configured now.
        reader: reads the published database.
        parameters: `benchmark`, `dataset_revision`, `cheap`, `strong` (labels), and `splits` (none:
            all).

    Raises:
        UsageError: one of the judges has no verdicts, or they grade in different ways.
    """
    judged = reader.rows(sql.read("queries/cascade/judge_configs"), parameters)
    cheap, strong = (
        _configs_of(judged, parameters[name], configured) for name in ("cheap", "strong")
    )
    if cheap[0]["grading"] != strong[0]["grading"]:
        each = (
            f"{parameters['cheap']} is {cheap[0]['grading']}, {parameters['strong']}"
            f" {strong[0]['grading']}"
        )
        raise UsageError(f"the judges grade in different ways: {each}; a cascade needs one grading")
    first, second, *_ = [*(row["judging_id"] for row in cheap), None]
    given = {
        "first": first,
        "second": second,
        "strong_first": strong[0]["judging_id"],
    }
    verdicts = pl.DataFrame(
        reader.arrow(sql.read("queries/cascade/verdicts"), {**parameters, **given})
    )
    notes = [
        f"{label} has verdicts under several configurations or templates; those of the one with"
        " most verdicts count"
        for label, rows in ((parameters["cheap"], cheap), (parameters["strong"], strong))
        if len(rows) < sum(row["judge"] == label for row in judged)
    ]
    costs = Costs(_mean_usd(cheap), _mean_usd(strong))
    # If only one cost is known, rules with one judge cannot be compared with rules with both.
    return _pair(
        verdicts, costs if None not in vars(costs).values() else Costs(None, None), tuple(notes)
    )


def _configs_of(judged: Sequence[Row], label: str, configured: Collection[str]) -> list[Row]:
    """Return the repetitions of a judge, in their order, under the configuration and template with
    the most verdicts.

    If several have the most, the one that is configured now is used.
    """
    own = [row for row in judged if row["judge"] == label]
    if not own:
        hint = did_you_mean(label, {row["judge"] for row in judged})
        raise UsageError(
            f"{label}: no verdicts of such a judge are stored{hint}; `prbench judges` shows all"
            " graders"
        )
    keys = itemgetter("judge_config_hash", "template_hash", "grading")
    sizes = Counter[tuple[str, ...]]()
    for row in own:
        sizes[keys(row)] += row["n_verdicts"]
    most = min(sizes, key=lambda key: (-sizes[key], key[0] not in configured, key))
    return sorted((row for row in own if keys(row) == most), key=itemgetter("judge_trial"))


def _mean_usd(rows: Sequence[Row]) -> float | None:
    priced = [(row["mean_usd"], row["n_verdicts"]) for row in rows if row["mean_usd"] is not None]
    return sum(usd * n for usd, n in priced) / sum(n for _, n in priced) if priced else None


def _pair(verdicts: pl.DataFrame, costs: Costs, notes: tuple[str, ...]) -> StoredPair:
    kept = verdicts.drop_nulls("strong_value")
    n_second = int(kept["has_second"].sum())
    # Disagreement is tried if at least half of the criteria have a second verdict of the cheap
    # judge.
    has_repetitions = n_second >= 0.5 * max(1, len(kept))
    is_binary = kept["strong_value"].is_in([0.0, 1.0]).all()
    facts = Facts(
        kept.select("first_value", "second_value").to_numpy(),
        kept["weight"].to_numpy(),
        kept["category"].to_numpy().astype(str),
        kept["confidence"].to_numpy(),
        kept["probability"].to_numpy() if is_binary else np.full(len(kept), np.nan),
        kept["severity"].to_numpy().astype(str),
        kept["kinds"].list.join(" ").to_numpy().astype(str),
    )
    return StoredPair(
        _paired(kept, facts),
        costs,
        has_repetitions,
        kept["first_value"].null_count(),
        len(verdicts) - len(kept),
        len(kept) - n_second if has_repetitions else 0,
        kept["confidence"].null_count() < len(kept),
        notes,
    )


def _paired(kept: pl.DataFrame, facts: Facts) -> PairedVerdicts:
    """Return the kept verdicts with the indices of their tasks, responses and models; nulls become
    NaN.
    """
    tasks, task = np.unique(kept["task_id"].to_numpy().astype(str), return_inverse=True)
    response_ids = kept["response_id"].to_numpy().astype(str)
    _, response_at, response = np.unique(response_ids, return_index=True, return_inverse=True)
    first = kept[response_at]
    is_whole = np.bincount(response, minlength=len(first)) == first["n_wanted"].to_numpy()
    runs = [*first.select("model", "vintage").iter_rows()]
    models = sorted(set(runs))
    n_vintages = Counter(model for model, _ in models)
    return PairedVerdicts(
        facts,
        kept["strong_value"].to_numpy(),
        task,
        response,
        tuple(tasks.tolist()),
        task[response_at],
        np.array([models.index(run) for run in runs], dtype=np.int64),
        tuple(
            model if n_vintages[model] == 1 else f"{model} ({vintage})" for model, vintage in models
        ),
        first["offset_points"].to_numpy(),
        np.where(is_whole, first["denominator"].to_numpy(), np.nan),
        kept["has_second"].to_numpy(),
    )


FEWEST_TASKS = 4
"""With fewer tasks, a half would have one task or none."""


@dataclass(frozen=True)
class CascadeResult:
    """The effects of cascade rules: all rules, cheapest first, those that no other rule beats, and
    the one picked.
    """

    stored: StoredPair
    evaluations: Sequence[Evaluation]
    front: Sequence[Evaluation]
    picked: Evaluation | None


def evaluated(
    reader: Reader,
    parameters: Mapping[str, Any],
    bound: Bound | None,
    resamples: int = 10_000,
    configured: Collection[str] = (),
) -> CascadeResult:
    """Evaluate the rules for two judges (arguments as in `stored_pair`), and pick the cheapest
    within a bound.

    Rules are made and chosen on one half of the tasks and measured on the other.

    Raises:
        UsageError: both judges have judged criteria of too few tasks.
    """
    stored = stored_pair(reader, parameters, configured)
    paired = stored.paired
    if len(paired.tasks) < FEWEST_TASKS:
        both = f"{parameters['cheap']} and {parameters['strong']}"
        raise UsageError(
            f"{both} have both judged criteria of {len(paired.tasks)} tasks; "
            f"to evaluate a cascade, {FEWEST_TASKS} tasks or more are needed"
        )
    tried = candidates(
        paired.of_tasks(for_choosing(paired.tasks)), has_repetitions=stored.has_repetitions
    )
    evaluations = evaluate(paired, tried, stored.costs, resamples)
    ordered = sorted(evaluations, key=lambda each: each.expense)
    measure = "agreement" if bound is None else bound.measure
    return CascadeResult(
        stored, ordered, front(evaluations, measure), picked(evaluations, bound) if bound else None
    )


def bound_of(text: str) -> Bound:
    """Return the bound that a text such as `agreement=0.95` means.

    Raises:
        UsageError: the text is not a bound.
    """
    measure, _, number = text.partition("=")
    with suppress(ValueError):
        if measure in MEASURES and -1.0 <= float(number) <= 1.0:
            return Bound(measure, float(number))
    known = ", ".join(f"{each}=NUMBER" for each in MEASURES)
    raise UsageError(f"--bound: {text!r} is no bound; write {known}, with a number up to 1")


TABLE = "cascade_rules"
_KEY = ("benchmark", "dataset_revision", "cheap_judge", "strong_judge", "evaluated_splits")
_SAME_PAIR = " and ".join(f"{name} = ${name}" for name in _KEY)


def store(root: Path, rows: Sequence[Row]) -> None:
    """Store the rules of an evaluation (`rows_of`) and publish them, unless the last stored
    evaluation is the same.
    """
    warehouse = Warehouse(root)
    with warehouse.reader() as reader:
        last = f"select arg_max(evaluation_id, created_at) from {TABLE} where {_SAME_PAIR}"
        if reader.value(last, {name: rows[0][name] for name in _KEY}) == rows[0]["evaluation_id"]:
            return
    warehouse.write(
        TABLE, [{name: row[name] for name in TABLES[TABLE].columns if name in row} for row in rows]
    )
    warehouse.publish()


def rows_of(parameters: Mapping[str, Any], result: CascadeResult) -> list[dict[str, Any]]:
    """Return the rows of an evaluation, cheapest rule first."""
    common = {
        "benchmark": parameters["benchmark"],
        "dataset_revision": parameters["dataset_revision"],
        "cheap_judge": parameters["cheap"],
        "strong_judge": parameters["strong"],
        "evaluated_splits": sorted(parameters["splits"]),
    }
    rows = [
        {
            **common,
            "position": position,
            "is_picked": each is result.picked,
            "is_on_front": each in result.front,
            "rule": each.candidate.name,
            **figures_of(each.held_out),
        }
        for position, each in enumerate(result.evaluations)
    ]
    # Rounded, because the last digits depend on the machine.
    rounded = [
        {name: round(each, 9) if isinstance(each, float) else each for name, each in row.items()}
        for row in rows
    ]
    record = {"evaluation_id": digest("cascade", rounded), "created_at": datetime.now(UTC)}
    return [row | record for row in rows]


def figures_of(figures: Row) -> dict[str, Any]:
    """Return the figures of a rule on one half of the tasks that are stored and shown."""
    return {name: value for name, value in figures.items() if name != "n_differing"}
