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
from warehouse import TABLES, Reader, Row, Warehouse


@dataclass(frozen=True)
class StoredPair:
    """The stored verdicts of two judges on the criteria that the strong judge decided.

    First and second verdicts are those of the cheap judge in its first and second repetition.

    Attributes:
        paired: the verdicts.
        costs: the mean cost of a verdict of each judge.
        has_repetitions: true if enough criteria have a second verdict to try `disagreement`.
        n_first_failed: the number of these criteria that the cheap judge failed on.
        n_strong_failed: the number of criteria that are left out, because the strong judge failed.
        n_without_second: the number of these criteria without a second verdict, which rules with
            `disagreement` leave out.
        has_confidence: true if the cheap judge gave any confidence.
        notes: say which of several configurations of a judge is used.
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
    reader: Reader,
    parameters: Mapping[str, Any],
    configured_hashes: Collection[str] = (),
) -> StoredPair:
    """Return the stored verdicts of `cheap` and `strong` in a data-set revision.

    Args:
        reader: reads the published database.
        parameters: `benchmark`, `dataset_revision`, `cheap`, `strong` (labels), and `splits` (none:
            all).
        configured_hashes: hashes of the judge configurations that are configured now.

    Raises:
        UsageError: one of the judges has no verdicts, or they grade in different ways.
    """
    judges = reader.query("queries/cascade/judge_configs", parameters)
    cheap_label = parameters["cheap"]
    strong_label = parameters["strong"]
    cheap = _repetitions_of(judges, cheap_label, configured_hashes)
    strong = _repetitions_of(judges, strong_label, configured_hashes)
    if cheap[0]["grading"] != strong[0]["grading"]:
        raise UsageError(
            f"the judges grade in different ways: {cheap_label} is {cheap[0]['grading']},"
            f" {strong_label} {strong[0]['grading']}; a cascade needs one grading"
        )
    config_ids = {
        "first": cheap[0]["judging_id"],
        "second": cheap[1]["judging_id"] if len(cheap) > 1 else None,
        "strong_first": strong[0]["judging_id"],
    }
    verdicts = reader.arrow(sql.read("queries/cascade/verdicts"), {**parameters, **config_ids})
    notes = []
    for label, repetitions in ((cheap_label, cheap), (strong_label, strong)):
        if len(repetitions) < sum(row["judge"] == label for row in judges):
            notes.append(
                f"{label} has verdicts under several configurations or templates; those of the one"
                " with most verdicts count"
            )
    costs = Costs(_mean_usd(cheap), _mean_usd(strong))
    if costs.cheap_usd is None or costs.strong_usd is None:
        # Rules with one judge cannot be compared with rules with both.
        costs = Costs(None, None)
    return _pair(pl.DataFrame(verdicts), costs, tuple(notes))


def _repetitions_of(
    judges: Sequence[Row],
    label: str,
    configured_hashes: Collection[str],
) -> list[Row]:
    """Return the repetitions of a judge, in order, under its configuration with the most verdicts.

    `judges` are the stored judge configurations with the number and mean cost of their verdicts. If
    several have the most, the one that is configured now is used.
    """
    rows = [row for row in judges if row["judge"] == label]
    if not rows:
        hint = did_you_mean(label, {row["judge"] for row in judges})
        raise UsageError(
            f"{label}: no verdicts of such a judge are stored{hint}; `prbench judges` shows all"
            " graders"
        )
    config_of = itemgetter("judge_config_hash", "template_hash", "grading")
    sizes: Counter[tuple[str, ...]] = Counter()
    for row in rows:
        sizes[config_of(row)] += row["n_verdicts"]
    config = min(
        sizes, key=lambda config: (-sizes[config], config[0] not in configured_hashes, config)
    )
    repetitions = [row for row in rows if config_of(row) == config]
    return sorted(repetitions, key=itemgetter("judge_trial"))


def _mean_usd(rows: Sequence[Row]) -> float | None:
    """Return the mean cost of a verdict; None if no cost is known."""
    usd = 0.0
    n_verdicts = 0
    for row in rows:
        if row["mean_usd"] is not None:
            usd += row["mean_usd"] * row["n_verdicts"]
            n_verdicts += row["n_verdicts"]
    return usd / n_verdicts if n_verdicts else None


def _pair(verdicts: pl.DataFrame, costs: Costs, notes: tuple[str, ...]) -> StoredPair:
    decided = verdicts.drop_nulls("strong_value")
    n_second = int(decided["has_second"].sum())
    # Disagreement is tried if at least half of the criteria have a second verdict of the cheap
    # judge.
    has_repetitions = n_second >= 0.5 * max(1, len(decided))
    probabilities = np.full(len(decided), np.nan)
    if decided["strong_value"].is_in([0.0, 1.0]).all():
        probabilities = decided["probability"].to_numpy()
    facts = Facts(
        first=decided.select("first_value", "second_value").to_numpy(),
        weights=decided["weight"].to_numpy(),
        categories=decided["category"].to_numpy().astype(str),
        confidence=decided["confidence"].to_numpy(),
        probability=probabilities,
        severities=decided["severity"].to_numpy().astype(str),
        kinds=decided["kinds"].list.join(" ").to_numpy().astype(str),
    )
    return StoredPair(
        paired=_paired_verdicts(decided, facts),
        costs=costs,
        has_repetitions=has_repetitions,
        n_first_failed=decided["first_value"].null_count(),
        n_strong_failed=len(verdicts) - len(decided),
        n_without_second=len(decided) - n_second if has_repetitions else 0,
        has_confidence=decided["confidence"].null_count() < len(decided),
        notes=notes,
    )


def _paired_verdicts(decided: pl.DataFrame, facts: Facts) -> PairedVerdicts:
    """Return verdicts with the indices of their tasks, responses and models; nulls become NaN."""
    task_ids, task_index = np.unique(decided["task_id"].to_numpy().astype(str), return_inverse=True)
    _, response_rows, response_index = np.unique(
        decided["response_id"].to_numpy().astype(str), return_index=True, return_inverse=True
    )
    responses = decided[response_rows]
    n_decided = np.bincount(response_index, minlength=len(responses))
    is_whole = n_decided == responses["n_wanted"].to_numpy()
    samplings = responses.select("model", "vintage").rows()
    distinct_samplings = sorted(set(samplings))
    n_vintages = Counter(model for model, _ in distinct_samplings)
    names = []
    for model, vintage in distinct_samplings:
        names.append(model if n_vintages[model] == 1 else f"{model} ({vintage})")
    return PairedVerdicts(
        facts=facts,
        strong=decided["strong_value"].to_numpy(),
        task=task_index,
        response=response_index,
        tasks=tuple(task_ids.tolist()),
        task_of_response=task_index[response_rows],
        model_of_response=np.array(
            [distinct_samplings.index(sampling) for sampling in samplings], dtype=np.int64
        ),
        models=tuple(names),
        offset=responses["offset_points"].to_numpy(),
        denominator=np.where(is_whole, responses["denominator"].to_numpy(), np.nan),
        has_second=decided["has_second"].to_numpy(),
    )


FEWEST_TASKS = 4
"""With fewer tasks, a half would have one task or none."""


@dataclass(frozen=True)
class CascadeResult:
    """The effects of all cascade rules, cheapest first, and the best ones (`front`)."""

    pair: StoredPair
    evaluations: Sequence[Evaluation]
    front: Sequence[Evaluation]
    picked: Evaluation | None


def cascade_result(
    reader: Reader,
    parameters: Mapping[str, Any],
    bound: Bound | None,
    resamples: int = 10_000,
    configured_hashes: Collection[str] = (),
) -> CascadeResult:
    """Evaluate the rules for two judges, and pick the cheapest within a bound.

    Rules are made and chosen on one half of the tasks and measured on the other; `resamples` is the
    number of resamples of the tasks for each interval. The other arguments are those of
    `stored_pair`.

    Raises:
        UsageError: both judges have judged criteria of too few tasks.
    """
    pair = stored_pair(reader, parameters, configured_hashes)
    paired = pair.paired
    n_tasks = len(paired.tasks)
    if n_tasks < FEWEST_TASKS:
        raise UsageError(
            f"{parameters['cheap']} and {parameters['strong']} have both judged criteria of"
            f" {n_tasks} tasks; to evaluate a cascade, {FEWEST_TASKS} tasks or more are needed"
        )
    choosing_half = paired.of_tasks(for_choosing(paired.tasks))
    rules = candidates(choosing_half, has_repetitions=pair.has_repetitions)
    evaluations = evaluate(paired, rules, pair.costs, resamples)
    measure = "agreement" if bound is None else bound.measure
    return CascadeResult(
        pair=pair,
        evaluations=sorted(evaluations, key=lambda evaluation: evaluation.expense),
        front=front(evaluations, measure),
        picked=None if bound is None else picked(evaluations, bound),
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
    bounds = ", ".join(f"{measure}=NUMBER" for measure in MEASURES)
    raise UsageError(f"--bound: {text!r} is no bound; write {bounds}, with a number up to 1")


_TABLE = "cascade_rules"
_KEY = ("benchmark", "dataset_revision", "cheap_judge", "strong_judge", "evaluated_splits")
_SAME_PAIR = " and ".join(f"{name} = ${name}" for name in _KEY)


def store_rules(root: Path, rows: Sequence[Row]) -> None:
    """Store the rules of an evaluation (`rule_rows`) and publish them.

    Nothing is stored if the last stored evaluation is the same.
    """
    warehouse = Warehouse(root)
    pair = {name: rows[0][name] for name in _KEY}
    query = f"select arg_max(evaluation_id, created_at) from {_TABLE} where {_SAME_PAIR}"
    with warehouse.reader() as reader:
        if reader.value(query, pair) == rows[0]["evaluation_id"]:
            return
    columns = rows[0].keys() & TABLES[_TABLE].columns
    stored_rows = []
    for row in rows:
        stored_rows.append({name: row[name] for name in columns})
    warehouse.write(_TABLE, stored_rows)
    warehouse.publish()


def rule_rows(parameters: Mapping[str, Any], result: CascadeResult) -> list[Row]:
    """Return the rows of an evaluation, cheapest rule first."""
    rows = []
    rounded_rows = []
    for position, evaluation in enumerate(result.evaluations):
        row = {
            "benchmark": parameters["benchmark"],
            "dataset_revision": parameters["dataset_revision"],
            "cheap_judge": parameters["cheap"],
            "strong_judge": parameters["strong"],
            "evaluated_splits": sorted(parameters["splits"]),
            "position": position,
            "is_picked": evaluation is result.picked,
            "is_on_front": evaluation in result.front,
            "rule": evaluation.candidate.name,
            **shown_figures(evaluation.held_out),
        }
        rows.append(row)
        rounded_rows.append({name: _rounded(value) for name, value in row.items()})
    evaluation_id = digest("cascade", rounded_rows)
    created_at = datetime.now(UTC)
    return [row | {"evaluation_id": evaluation_id, "created_at": created_at} for row in rows]


def _rounded(value: Any) -> Any:
    """Return a value without the last digits of a float, which depend on the machine."""
    return round(value, 9) if isinstance(value, float) else value


def shown_figures(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a rule on one half of the tasks that are stored and shown.

    `n_differing` only decides how an interval is computed.
    """
    return {name: value for name, value in figures.items() if name != "n_differing"}
