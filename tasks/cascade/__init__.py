"""Cascades evaluated: from stored verdicts of a cheap and a strong judge, what each rule to escalate would do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

import sql
from tasks.rules.cascades.evaluation import Bound, Costs, Estimate, Evaluation, evaluate, for_choosing, front, picked
from tasks.rules.cascades.rules import Facts, PairedVerdicts, candidates, is_repeated
from tasks.rules.errors import UsageError
from tasks.rules.identity import digest
from tasks.rules.statistics.intervals import SMALL
from warehouse import Reader, Warehouse

Row = Mapping[str, Any]


@dataclass(frozen=True)
class StoredPair:
    """What two judges have said of the criteria that the strong one decided.

    `n_first_failed` counts those of them that the cheap judge failed on, `n_without_second` those that it was not asked
    a second time, which are left out of rules with `disagreement`; `n_strong_failed` criteria that are left out of all
    rules, since the strong judge failed. `notes` say which of several configurations of a judge was taken.
    """

    paired: PairedVerdicts
    costs: Costs
    has_repetitions: bool
    n_first_failed: int
    n_strong_failed: int
    n_without_second: int
    has_confidence: bool
    notes: tuple[str, ...]


def stored_pair(reader: Reader, parameters: Mapping[str, Any]) -> StoredPair:
    """What is stored of `cheap` and `strong` in a data-set revision.

    Args:
        reader: of the published database.
        parameters: `benchmark`, `revision`, `cheap`, `strong` (labels), and `splits` (none: all).

    Raises:
        UsageError: one of them has no verdicts, or they grade in different ways.
    """
    found = reader.rows(sql.read("queries/cascade/judgings"), parameters)
    cheap, strong = (_judging_of(found, parameters[role]) for role in ("cheap", "strong"))
    if cheap[0]["grading"] != strong[0]["grading"]:
        each = f"{parameters['cheap']} is {cheap[0]['grading']}, {parameters['strong']} {strong[0]['grading']}"
        raise UsageError(f"the judges grade in different ways: {each}; a cascade needs one grading")
    by_trial = [[row["judging_id"] for row in sorted(rows, key=itemgetter("judge_trial"))] for rows in (cheap, strong)]
    first, second = [*by_trial[0], None][:2]
    given = {"first": first, "second": second, "strong_first": by_trial[1][0]}
    columns = reader.arrays(sql.read("queries/cascade/verdicts"), {**parameters, **given})
    notes = [
        f"{label} has verdicts under several configurations or templates; those of the one with most verdicts count"
        for label, rows in ((parameters["cheap"], cheap), (parameters["strong"], strong))
        if len(rows) < sum(row["judge"] == label for row in found)
    ]
    return _pair(columns, Costs(_mean_usd(cheap), _mean_usd(strong)), tuple(notes))


def _judging_of(found: Sequence[Row], label: str) -> list[Row]:
    """The repetitions of a judge under the configuration and template that it has most verdicts of."""
    own = [row for row in found if row["judge"] == label]
    if not own:
        raise UsageError(f"{label}: no verdicts of such a judge are stored; `prbench judges` shows all graders")
    keys = ("judge_config_hash", "template_hash", "grading")
    sizes: dict[tuple[str, ...], int] = {}
    for row in own:
        key = tuple(row[name] for name in keys)
        sizes[key] = sizes.get(key, 0) + row["n_verdicts"]
    most = min(sizes, key=lambda key: (-sizes[key], key))
    return [row for row in own if tuple(row[name] for name in keys) == most]


def _mean_usd(rows: Sequence[Row]) -> float | None:
    priced = [(row["mean_usd"], row["n_verdicts"]) for row in rows if row["mean_usd"] is not None]
    return sum(usd * n for usd, n in priced) / sum(n for _, n in priced) if priced else None


def _floats(column: Any) -> Any:
    """A column as floats, NaN for NULL."""
    return np.ma.filled(np.ma.asarray(column, dtype=np.float64), np.nan)


def _pair(columns: dict[str, Any], costs: Costs, notes: tuple[str, ...]) -> StoredPair:
    first, strong = _floats(columns["first_value"]), _floats(columns["strong_value"])
    has_second = np.asarray(columns["has_second"], dtype=np.bool_)
    kept = ~np.isnan(strong)
    has_repetitions = is_repeated(int((has_second & kept).sum()), int(kept.sum()))
    values = np.stack([first, _floats(columns["second_value"])], axis=1) if has_repetitions else first[:, None]
    confidence = _floats(columns["confidence"])
    facts = Facts(
        values[kept], _floats(columns["weight"])[kept], np.asarray(columns["category"]).astype(str)[kept],
        confidence[kept],
    )  # fmt: skip
    return StoredPair(
        _paired(columns, kept, facts, strong[kept]), costs, has_repetitions, int(np.isnan(first[kept]).sum()),
        int((~kept).sum()), int((kept & ~has_second).sum()) if has_repetitions else 0,
        not np.isnan(confidence[kept]).all(), notes,
    )  # fmt: skip


def _paired(columns: dict[str, Any], kept: Any, facts: Facts, strong: Any) -> PairedVerdicts:
    named = {name: np.asarray(columns[name]).astype(str)[kept] for name in ("task_id", "response_id", "model")}
    vintages = np.asarray(columns["vintage"]).astype(str)[kept]
    model_runs = np.char.add(np.char.add(named["model"], "\n"), vintages)
    tasks, task = np.unique(named["task_id"], return_inverse=True)
    _, response_at, response = np.unique(named["response_id"], return_index=True, return_inverse=True)
    names, model = np.unique(model_runs, return_inverse=True)
    n_here = np.bincount(response, minlength=len(response_at))
    is_whole = n_here == _floats(columns["n_wanted"])[kept][response_at]
    denominator = _floats(columns["denominator"])[kept][response_at]
    return PairedVerdicts(
        facts, strong, task, response, tuple(tasks.tolist()), task[response_at], model[response_at],
        tuple(_names_of(names.tolist())), _floats(columns["offset_points"])[kept][response_at],
        np.where(is_whole, denominator, np.nan), np.asarray(columns["has_second"], dtype=np.bool_)[kept],
    )  # fmt: skip


def _names_of(model_runs: Sequence[str]) -> list[str]:
    """Models, with the vintage where one has several."""
    models = [each.split("\n")[0] for each in model_runs]
    return [
        model if models.count(model) == 1 else f"{model} ({each.split(chr(10))[1]})"
        for model, each in zip(models, model_runs, strict=True)
    ]


FEWEST_TASKS = 4
"""With fewer, a half would have one task or none."""


@dataclass(frozen=True)
class CascadeAnswer:
    """What rules would do: all of them, cheapest first, those that no other one beats, and the one picked."""

    stored: StoredPair
    evaluations: Sequence[Evaluation]
    front: Sequence[Evaluation]
    picked: Evaluation | None
    bound: Bound | None

    @property
    def few_tasks(self) -> str:
        """A warning where a half of the tasks is small; empty where none is."""
        n_tasks = len(self.stored.paired.tasks)
        if n_tasks // 2 >= SMALL:
            return ""
        return f"Warning: rules made from {n_tasks // 2} tasks are unreliable; below {SMALL} so are their intervals."


def evaluated(
    reader: Reader, parameters: Mapping[str, Any], bound: Bound | None, resamples: int = 10_000
) -> CascadeAnswer:
    """Evaluate the rules for two judges (`parameters` as in `stored_pair`), and pick the cheapest within a bound.

    Rules are made and chosen on one half of the tasks and measured on the other.

    Raises:
        UsageError: there is too little that both have judged.
    """
    stored = stored_pair(reader, parameters)
    paired = stored.paired
    if len(paired.tasks) < FEWEST_TASKS:
        both = f"{parameters['cheap']} and {parameters['strong']}"
        raise UsageError(
            f"{both} have both judged criteria of {len(paired.tasks)} tasks; "
            f"a cascade is evaluated from {FEWEST_TASKS} tasks on, in two halves"
        )
    tried = candidates(paired.of_tasks(for_choosing(paired.tasks)), has_repetitions=stored.has_repetitions)
    found = evaluate(paired, tried, stored.costs, resamples)
    ordered = sorted(found, key=lambda each: each.expense)
    measure = "agreement" if bound is None else bound.measure
    return CascadeAnswer(stored, ordered, front(found, measure), picked(found, bound) if bound else None, bound)


TABLE = "cascade_rules"
_KEY = ("benchmark", "dataset_revision", "cheap_judge", "strong_judge", "evaluated_splits")
_SAME_PAIR = " and ".join(f"{name} = ${name}" for name in _KEY)


def store(root: Path, parameters: Mapping[str, Any], answer: CascadeAnswer) -> None:
    """Store the rules of an evaluation with their held-out figures, and publish them; not a second time.

    Args:
        root: the warehouse's folder.
        parameters: of the evaluation, as in `stored_pair`.
    """
    warehouse, rows = Warehouse(root), rows_of(parameters, answer)
    with warehouse.reader() as reader:
        last = f"select arg_max(evaluation_id, created_at) from {TABLE} where {_SAME_PAIR}"
        if reader.value(last, {name: rows[0][name] for name in _KEY}) == rows[0]["evaluation_id"]:
            return
    warehouse.write(TABLE, rows)
    warehouse.publish()


def rows_of(parameters: Mapping[str, Any], answer: CascadeAnswer) -> list[dict[str, Any]]:
    """The rows of an evaluation, cheapest rule first."""
    common = {
        "benchmark": parameters["benchmark"], "dataset_revision": parameters["revision"],
        "cheap_judge": parameters["cheap"], "strong_judge": parameters["strong"],
        "evaluated_splits": sorted(parameters["splits"]),
    }  # fmt: skip
    rows = [
        {**common, "position": place, "is_picked": each is answer.picked, "is_on_front": each in answer.front,
         **_figures(each)}
        for place, each in enumerate(answer.evaluations)
    ]  # fmt: skip
    made = {"evaluation_id": digest("cascade", _rounded(rows)), "created_at": datetime.now(UTC)}
    return [row | made for row in rows]


def _figures(evaluation: Evaluation) -> dict[str, Any]:
    figures, ranking = evaluation.held_out, evaluation.held_out.ranking
    estimates: dict[str, Estimate] = {
        "escalated_share": figures.share, "thousand_usd": figures.cost_usd, "agreement": figures.agreement,
        "kappa": figures.kappa, "macro_f1": figures.macro_f1, "ranking_tau": ranking.tau,
        "score_change": ranking.change,
    }  # fmt: skip
    flat = {
        "rule": evaluation.candidate.name, "n_paired": figures.n, "n_tasks": figures.n_tasks,
        "strong_calls": figures.strong_calls, "cheap_calls": figures.cheap_calls, "changed_model": ranking.changed,
        "n_ranked_responses": ranking.n_responses, "is_small": figures.is_small,
    }  # fmt: skip
    for name, (value, low, high) in estimates.items():
        flat |= {name: value, f"{name}_ci_low": low, f"{name}_ci_high": high}
    return flat


def _rounded(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Without last digits, which depend on the machine."""
    return [
        {name: round(value, 9) if isinstance(value, float) else value for name, value in row.items()} for row in rows
    ]
