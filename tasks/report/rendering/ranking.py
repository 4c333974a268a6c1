"""The ranking: leaders and ties, and boards with the models of each split in order and scores of the paper.

A model is tied with the leader if the intervals allow it to be first (`rank_low`). Boards are HTML with a line for each
model. The interval in a line is inline SVG, so it shows without scripts and on paper.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tasks.benchmarks.base import Reference
from tasks.config.models import ORIGINAL, Judge
from tasks.figures.columns import Row, Rows
from tasks.figures.scope import Scope
from tasks.figures.shown.overview import LEADERBOARD
from tasks.rules.text.numbers import number, rank_notes, some
from tasks.run.judge_configs import judge_target

_NAMED = 3
"""Largest number of models that a sentence names; the others are only counted."""
_REVISED = 0.1
"""Share of a split by which its number of tasks may differ from the paper's: tasks are revised, or refused by
checks."""
_DATED = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


@dataclass(frozen=True)
class Ranking:
    """The ranking by one judge configuration, for the template.

    Attributes:
        sentence: a sentence that names the leaders.
        boards: each split with its lines, which are models and scores of the paper; all splits share one axis.
        at: returns the position of a value on the axis, in percent of its width.
        ticks: round values on the axis.
        notes: notes on the ranks, and sources of the paper's scores.
        has_gaps: true if the coverage of a model is below the bar.
        order: the labels of all models, the best first.
    """

    judge_config: str
    sentence: str
    boards: Sequence[tuple[str, Rows]]
    at: Callable[[float], str]
    ticks: Sequence[float]
    notes: Sequence[str]
    has_gaps: bool
    order: Sequence[str]


def rankings(scope: Scope) -> list[Ranking]:
    """Return the ranking under each judge configuration, in the order of the leaderboard: the main one first."""
    by_judge_config: dict[str, list[Row]] = defaultdict(list)
    for row in scope.rows_of(LEADERBOARD):
        by_judge_config[row["judge_config"]].append(row)
    labels = [entry["entry"] for entry in scope.entries]
    judges = {each["judge_config"]: each for each in scope.judge_configs}
    hard = set(scope.given_members["hard_splits"])
    # If only some models are shown, or several vintages of one, the ranks are not those of a whole ranking.
    is_part = bool(scope.job.named_models) or len({entry["model"] for entry in scope.entries}) < len(labels)
    ranked = []
    for label, rows in by_judge_config.items():
        # The paper's scores apply only to its own judge, in the first trial with the benchmark's default grading.
        own = judges[label]
        is_usual = (own["grading"], own["judge_trial"]) == (scope.benchmark.grading, 1)
        called = called_names(own["judge_config_hash"], scope.job.settings.judges) if is_usual else set()
        references = [each for each in scope.benchmark.references if each.judge in called]
        ranked.append(ranking_of(rows, references, leaders(rows, hard, label, is_part=is_part), labels))
    return ranked


def ranking_of(rows: Rows, references: Sequence[Reference], sentence: str, labels: Iterable[str]) -> Ranking:
    """Return the ranking of leaderboard rows under one judge, with the paper's scores by that judge."""
    splits = [
        (split, of_split, [each for each in references if not is_own and is_of(each, split, of_split)])
        for (split, is_own), of_split in by_split(rows).items()
    ]
    quoted = [each for _, _, of_split in splits for each in of_split]
    known = [row[name] for row in rows for name in ("ci_low", "ci_high", "mean_score") if row[name] is not None]
    values = [*known, *(each.value for each in quoted)] or [0.0, 1.0]
    margin = _MARGIN * ((max(values) - min(values)) or 1.0)
    low, high = min(values) - margin, max(values) + margin
    notes = list(rank_notes([row for _, of_split, _ in splits for row in of_split]))
    if sources := dict.fromkeys(each.source for each in quoted):
        notes.append(
            f"Rows marked paper are the paper's own scores ({'; '.join(sources)}), by the same judge with the paper's "
            "prompt, on the first release of this split. They have no rank here."
        )
    return Ranking(
        rows[0]["judge_config"], sentence,
        [(split, _lines(of_split, beside)) for split, of_split, beside in splits],
        lambda value: f"{100 * (value - low) / (high - low):.2f}%", ticks(low, high), notes,
        any(row["is_below_bar"] for row in rows), order_of(rows, labels),
    )  # fmt: skip


def is_of(reference: Reference, split: str, rows: Rows) -> bool:
    """Return whether a score of the paper is for a split.

    The name of the split must be the same, and the number of tasks nearly the same, since revisions change some tasks.
    """
    n_tasks = max(row["n_tasks_wanted"] for row in rows)
    return reference.split == split and abs(n_tasks - reference.n_tasks) <= _REVISED * reference.n_tasks


def by_split(rows: Rows) -> Mapping[tuple[str, bool], Rows]:
    """Return the rows of each split, by its name and whether it is an own hard selection."""
    splits: dict[tuple[str, bool], list[Row]] = defaultdict(list)
    for row in rows:
        splits[row["split"], row["is_own_hard"]].append(row)
    return splits


def order_of(rows: Rows, labels: Iterable[str]) -> list[str]:
    """Return the models by their mean rank over splits, the best first.

    Models without a rank come last, in the given order.
    """
    ranks: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        if row["rank"] is not None and not row["is_own_hard"]:
            ranks[row["model"]].append(row["rank"])
    return sorted(labels, key=lambda name: sum(ranks[name]) / len(ranks[name]) if name in ranks else math.inf)


def leaders(rows: Rows, hard: set[str], judge_config: str, *, is_part: bool = False) -> str:
    """Return one sentence that names the leader on each split, and the models tied with it.

    Hard splits are named only if there is no other split.

    Args:
        rows: the rows of a leaderboard under one judge configuration.
        hard: the names of the hard splits, which are a part of other splits.
        judge_config: its label.
        is_part: true if the rows are not a whole ranking, so that ranks and ties are unknown.
    """
    ranked = [row for row in rows if row["rank"] is not None and not row["is_own_hard"]]
    shown = [row for row in ranked if row["split"] not in hard] or ranked
    clauses = [(_highest if is_part else _leader)(split, of_split) for (split, _), of_split in by_split(shown).items()]
    if not clauses:
        return f"No model has a score by {judge_config} yet."
    return f"Judged by {judge_config}, {'; '.join(clauses)}."


def _highest(split: str, rows: Rows) -> str:
    best = max(row["mean_score"] for row in rows)
    names = some((row["model"] for row in rows if row["mean_score"] == best), _NAMED)
    return f"{names} has the highest score shown on {split}, {number(best)}"


def _leader(split: str, rows: Rows) -> str:
    best = min(row["rank"] for row in rows)
    first = [row for row in rows if row["rank"] == best]
    tied = [row["model"] for row in rows if row["rank"] != best and row["rank_low"] == 1]
    alone = "the only model" if len(rows) == 1 else "no other model is tied"
    ties = f"tied with {some(tied, _NAMED)}" if tied else alone
    names = some((row["model"] for row in first), _NAMED)
    return f"{names} {'leads' if len(first) == 1 else 'lead'} on {split} with {number(first[0]['mean_score'])} ({ties})"


def called_names(config_hash: str, judges: Iterable[Judge]) -> set[str]:
    """Return the names of the models that judge with this configuration, without provider and date.

    A judge's label does not identify its model, so the configuration must be that of one of the given judges. A judge
    with another endpoint than its provider's, with parameters, or with rewritten criteria is not the paper's, and is
    left out.
    """
    return {
        _DATED.sub("", judge.name.rpartition("/")[2])
        for judge in judges
        if judge_target(judge).config_hash == config_hash
        and (judge.cascade, judge.api_base, judge.rubric) == (None, None, ORIGINAL)
        and not judge.parameters
    }


_MARGIN = 0.04
"""Margin on both sides of the axis, as a share of the shown range."""
_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_MOST_STEPS = 6.6


def ticks(low: float, high: float) -> list[float]:
    """Return the multiples of a round step between two values; the step is the smallest that gives few enough ticks."""
    step = next((step for step in _STEPS if (high - low) / step <= _MOST_STEPS), high - low)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def _lines(rows: Rows, references: Sequence[Reference]) -> Rows:
    """Return the lines of a split: its models in their order, with scores of the paper among them."""
    nothing = dict.fromkeys(rows[0])
    quoted = [nothing | {"model": each.model, "mean_score": each.value, "is_quoted": True} for each in references]
    ranked = sorted([*rows, *quoted], key=lambda row: -math.inf if row["mean_score"] is None else row["mean_score"])
    return ranked[::-1] if quoted else rows
