"""The ranking: who leads and who is tied, the models of each split in order, and scores of the paper; and its boards.

A model is tied with the leader if the intervals allow it to be first (`rank_low`). Boards are HTML with a line for each
model; the interval beside its figures is SVG of the page itself, so it is there without scripts and on paper.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.benchmarks.base import Reference
from tasks.config.models import ORIGINAL, Judge
from tasks.figures.columns import Row, Rows
from tasks.figures.scope import Scope
from tasks.figures.shown.overview import LEADERBOARD
from tasks.rules.text.numbers import coverage_text, number, rank_notes, some
from tasks.run.judge_configs import judge_target

_NAMED = 3
"""So many tied models are named; of the others the sentence says how many they are."""
_REVISED = 0.1
"""So much of a split may be other tasks than the paper had, or be refused by the checks."""
_DATED = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


@dataclass(frozen=True)
class Ranking:
    """The ranking by one judging, as the template takes it.

    Attributes:
        sentence: who leads.
        boards: of each split its name and its lines, models and scores of the paper; all are on one axis.
        ticks: where the round values of the axis are, in percent of its width, and what they are called.
        notes: what to know of the ranks, and where scores of the paper are from.
        has_gaps: whether a coverage is below the bar.
        order: the labels of all models, the best first.
    """

    judging: str
    sentence: str
    boards: Sequence[tuple[str, Sequence[Mapping[str, Any]]]]
    ticks: Sequence[tuple[str, str]]
    notes: Sequence[str]
    has_gaps: bool
    order: Sequence[str]


def rankings(scope: Scope) -> list[Ranking]:
    """Return the ranking under each judging, in the order of the leaderboard: the main judging first."""
    by_judging: dict[str, list[Row]] = defaultdict(list)
    for row in scope.rows_of(LEADERBOARD):
        by_judging[row["judging"]].append(row)
    labels = [entry["entry"] for entry in scope.entries]
    judges = {each["judging"]: each for each in scope.judge_configs}
    hard = set(scope.given_members["hard_splits"])
    # Of only some models, or of several vintages of one, ranks are of another whole.
    is_part = bool(scope.job.named_models) or len({entry["model"] for entry in scope.entries}) < len(labels)
    found = []
    for judging, rows in by_judging.items():
        # What the paper measured with this very judge, graded as the benchmark does by default, in its first trial.
        is_usual = (judges[judging]["grading"], judges[judging]["judge_trial"]) == (scope.benchmark.grading, 1)
        called = called_names(judges[judging]["judge_config_hash"], scope.job.settings.judges) if is_usual else set()
        references = [each for each in scope.benchmark.references if each.judge in called]
        found.append(ranking_of(rows, references, leaders(rows, hard, judging, is_part=is_part), labels))
    return found


def ranking_of(rows: Rows, references: Sequence[Reference], sentence: str, labels: Iterable[str]) -> Ranking:
    """Return the ranking of leaderboard rows under one judge, beside the paper's scores by that judge."""
    splits = [
        (split, of_split, [each for each in references if not is_own and is_of(each, split, of_split)])
        for (split, is_own), of_split in by_split(rows).items()
    ]
    quoted = [each for _, _, of_split in splits for each in of_split]
    known = [row[name] for row in rows for name in ("ci_low", "ci_high", "mean_score") if row[name] is not None]
    values = [*known, *(each.value for each in quoted)] or [0.0, 1.0]
    margin = _MARGIN * ((max(values) - min(values)) or 1.0)
    low, high = min(values) - margin, max(values) + margin

    def at(value: float) -> str:
        """Return the position of a value on the axis."""
        return f"{100 * (value - low) / (high - low):.2f}%"

    notes = list(rank_notes([of_split for _, of_split, _ in splits]))
    if sources := dict.fromkeys(each.source for each in quoted):
        notes.append(
            f"Rows marked paper are the paper's own scores ({'; '.join(sources)}), by the same judge with the paper's "
            "prompt, on the first release of this split. They have no rank here."
        )
    return Ranking(
        rows[0]["judging"], sentence, [(split, _lines(of_split, beside, at)) for split, of_split, beside in splits],
        [(at(value), _short(value)) for value in ticks(low, high)], notes,
        any(row["is_below_bar"] for row in rows), order_of(rows, labels),
    )  # fmt: skip


def is_of(reference: Reference, split: str, rows: Rows) -> bool:
    """Return whether a score of the paper is for a split.

    It must have the split's name and number of tasks, except for tasks that revisions changed.
    """
    n_tasks = max(row["n_tasks_wanted"] for row in rows)
    return reference.split == split and abs(n_tasks - reference.n_tasks) <= _REVISED * reference.n_tasks


def by_split(rows: Rows) -> Mapping[tuple[str, bool], Rows]:
    """Return the rows of each split; an own hard selection is separate from a split with the same name."""
    found: dict[tuple[str, bool], list[Row]] = defaultdict(list)
    for row in rows:
        found[row["split"], row["is_own_hard"]].append(row)
    return found


def order_of(rows: Rows, labels: Iterable[str]) -> list[str]:
    """Return the models by their mean rank over splits, the best first.

    Models without a rank come last, in the given order.
    """
    ranks: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        if row["rank"] is not None and not row["is_own_hard"]:
            ranks[row["model"]].append(row["rank"])
    return sorted(
        labels, key=lambda name: sum(ranks[name]) / len(ranks[name]) if name in ranks else float("inf")
    )  # fmt: skip


def leaders(rows: Rows, hard: set[str], judging: str, *, is_part: bool = False) -> str:
    """Return one sentence that names the leader on each split, and the models tied with it.

    Hard splits are named only where there is no other split.

    Args:
        rows: those of a leaderboard under one judging.
        hard: the splits that are a part of others.
        judging: its label.
        is_part: whether the rows are not all of one ranking, so that nothing can be said of ranks and ties.
    """
    ranked = [row for row in rows if row["rank"] is not None and not row["is_own_hard"]]
    shown = [row for row in ranked if row["split"] not in hard] or ranked
    clauses = [(_highest if is_part else _leader)(split, of_split) for (split, _), of_split in by_split(shown).items()]
    if not clauses:
        return f"No model has a score by {judging} yet."
    return f"Judged by {judging}, {'; '.join(clauses)}."


def _highest(split: str, rows: Rows) -> str:
    best = max(row["mean_score"] for row in rows)
    names = some((row["model"] for row in rows if row["mean_score"] == best), _NAMED)
    return f"{names} has the highest score shown on {split}, {number(best)}"


def _leader(split: str, rows: Rows) -> str:
    best = min(row["rank"] for row in rows)
    first = [row for row in rows if row["rank"] == best]
    tied = [row["model"] for row in rows if row["rank"] != best and row["rank_low"] == 1]
    verb = "leads" if len(first) == 1 else "lead"
    ties = f"tied with {some(tied, _NAMED)}" if tied else "no other model is tied"
    names = some((row["model"] for row in first), _NAMED)
    return f"{names} {verb} on {split} with {number(first[0]['mean_score'])} ({ties})"


def called_names(config_hash: str, judges: Iterable[Judge]) -> set[str]:
    """Return the names of the model behind verdicts with a configuration, without provider and date.

    A judge's label says nothing of its model, so the configuration has to be one of those given; one with another
    endpoint than its provider's, parameters, or other words for the criteria is not what a paper means by the name.
    """
    return {
        _DATED.sub("", judge.name.rpartition("/")[2])
        for judge in judges
        if judge_target(judge).config_hash == config_hash
        and (judge.cascade, judge.api_base, judge.rubric) == (None, None, ORIGINAL)
        and not judge.parameters
    }


_MARGIN = 0.04
"""Room on both sides of the axis, as a share of what is shown."""
_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_MOST_STEPS = 6.6


def ticks(low: float, high: float) -> list[float]:
    """Return the multiples of the smallest round step between two values that gives few enough ticks."""
    step = next((step for step in _STEPS if (high - low) / step <= _MOST_STEPS), high - low)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def _lines(rows: Rows, references: Sequence[Reference], at: Callable[[float], str]) -> list[dict[str, Any]]:
    """Return the lines of a split: models in their order, with scores of the paper between them."""
    own = [_line(row, at) for row in rows]
    nothing = dict.fromkeys(("rank", "bar", "interval", "ranks", "coverage", "is_below_bar"))
    quoted = [
        nothing | {"kind": "quoted", "model": each.model, "value": each.value, "score": _short(each.value, 3),
                   "dot": at(each.value)}
        for each in references
    ]  # fmt: skip
    placed = sorted([*own, *quoted], key=lambda line: -math.inf if line["value"] is None else line["value"])
    return placed[::-1] if quoted else own


def _line(row: Row, at: Callable[[float], str]) -> dict[str, Any]:
    score, ends, ranks = row["mean_score"], (row["ci_low"], row["ci_high"]), (row["rank_low"], row["rank_high"])
    is_known = None not in (score, *ends)
    return {
        "kind": "tied" if row["rank_low"] == 1 else "", "rank": row["rank"], "model": row["model"], "value": score,
        "score": None if score is None else _short(score, 3), "dot": None if score is None else at(score),
        "bar": [at(end) for end in ends] if is_known else None,
        "interval": " to ".join(_short(end, 3) for end in ends) if is_known else None,
        "ranks": None if None in ranks else "–".join(map(str, dict.fromkeys(ranks))),
        "coverage": coverage_text(row["coverage"]), "is_below_bar": row["is_below_bar"],
    }  # fmt: skip


def _short(value: float, decimals: int = 6) -> str:
    return number(value, f"z.{decimals}{'f' if decimals == 3 else 'g'}")
