"""Evaluations as rows, which reports show."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sql
from tasks.cascade.evaluate import CascadeAnswer
from tasks.rules.cascades.evaluation import Estimate, Evaluation
from tasks.rules.identity import digest
from warehouse import Warehouse

TABLE = "cascade_rules"
_KEY = ("benchmark", "dataset_revision", "cheap_judge", "strong_judge", "evaluated_splits")


def store(root: Path, parameters: Mapping[str, Any], answer: CascadeAnswer) -> None:
    """Store the rules of an evaluation with their held-out figures, and publish them; not a second time.

    Args:
        root: the warehouse's folder.
        parameters: of the evaluation, as in `stored_pair`.
    """
    warehouse, rows = Warehouse(root), rows_of(parameters, answer)
    with warehouse.reader() as reader:
        key = {name: rows[0][name] for name in _KEY}
        if reader.value(sql.read("questions/cascade/last_evaluation"), key) == rows[0]["evaluation_id"]:
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
