"""The ranking: leaders and ties, and boards with the models of each split in order and scores of
the paper.

A model is tied with the leader unless a paired test shows the leader ahead (`may_be_first`). Boards
are HTML with a line for each model. The interval in a line is inline SVG, so it shows without
scripts and on paper.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from markupsafe import Markup

from tasks.benchmarks.base import Reference
from tasks.config.models import ORIGINAL, Judge
from tasks.figures.figure import Column, Row, Rows, grouped
from tasks.figures.scope import Scope
from tasks.figures.shown.leaderboard import LEADERBOARD
from tasks.rules.identity import EVERY_VINTAGE
from tasks.rules.text.numbers import number, rank_notes, some
from tasks.run.judge_configs import judge_target

_NAMED = 3
"""Largest number of models that a sentence names; the others are only counted."""


@dataclass(frozen=True)
class Ranking:
    """The ranking by one judge configuration, for the template.

    Attributes:
        sentence: a sentence that names the leaders.
        columns: the columns of all boards, which share the axis in one of the headings.
        boards: each split with its rows, which are models and scores of the paper.
        notes: notes on the ranks, and sources of the paper's scores.
        order: the labels of all models, the best first.
    """

    judge_config: str
    sentence: str
    columns: Sequence[Column]
    boards: Sequence[tuple[str, Rows]]
    notes: Sequence[str]
    order: Sequence[str]


def rankings(scope: Scope) -> list[Ranking]:
    """Return the ranking under each judge configuration, in the order of the leaderboard: the main
    one first.
    """
    labels = [entry["entry"] for entry in scope.entries]
    judges = {each["judge_config"]: each for each in scope.judge_configs}
    hard = set(scope.given_members["hard_splits"])
    # If only some models are shown, or several vintages of one, the ranks are not those of a whole
    # ranking.
    configured = {(entry["model"], entry["model_config_hash"]) for entry in scope.entries}
    n_shown = len(labels) if scope.vintage == EVERY_VINTAGE else len(configured)
    is_part = (
        bool(scope.job.named_models) or len({entry["model"] for entry in scope.entries}) < n_shown
    )
    ranked = []
    for label, rows in grouped(scope.rows_of(LEADERBOARD), "judge_config").items():
        # The paper's scores apply only to its own judge, in the first trial with the benchmark's
        # default grading.
        own = judges[label]
        is_usual = (own["grading"], own["judge_trial"]) == (scope.benchmark.grading, 1)
        called = (
            called_names(own["judge_config_hash"], scope.job.settings.judges) if is_usual else set()
        )
        references = [each for each in scope.benchmark.references if each.judge in called]
        ranked.append(
            ranking_of(rows, references, leaders(rows, hard, label, is_part=is_part), labels)
        )
    return ranked


def ranking_of(
    rows: Rows, references: Sequence[Reference], sentence: str, labels: Iterable[str]
) -> Ranking:
    """Return the ranking of leaderboard rows under one judge, with the paper's scores by that
    judge.
    """
    splits = [
        (
            split,
            of_split,
            [each for each in references if not is_own and is_of(each, split, of_split)],
        )
        for (split, is_own), of_split in grouped(rows, "split", "is_own_hard").items()
    ]
    quoted = [each for _, _, of_split in splits for each in of_split]
    known = [
        row[name]
        for row in rows
        for name in ("ci_low", "ci_high", "mean_score")
        if row[name] is not None
    ]
    values = [*known, *(each.value for each in quoted)] or [0.0, 1.0]
    margin = 0.04 * ((max(values) - min(values)) or 1.0)  # on both sides of the axis
    low = min(values) - margin
    high = max(values) + margin
    notes = list(rank_notes([row for _, of_split, _ in splits for row in of_split]))
    sources = dict.fromkeys(each.source for each in quoted)
    if sources:
        notes.append(
            f"Rows marked paper are the paper's own scores ({'; '.join(sources)}), by the same"
            " judge with the paper's prompt, on the first release of this split. They have no rank"
            " here."
        )

    def at(value: float) -> str:
        return f"{100 * (value - low) / (high - low):.2f}%"

    axis = ticks(low, high)
    heading = _svg(
        "",
        14,
        [_LABEL.format(at(value), number(value, "z.6g")) for value in axis],
        "Drawn interval",
    )
    boards = [(split, _lines(of_split, beside, at, axis)) for split, of_split, beside in splits]
    columns = [*_COLUMNS[:3], Column("drawn", heading), *_COLUMNS[3:]]
    if not any(row["is_below_bar"] for row in rows):
        del columns[-1]
    return Ranking(
        rows[0]["judge_config"], sentence, columns, boards, notes, order_of(rows, labels)
    )


def is_of(reference: Reference, split: str, rows: Rows) -> bool:
    """Return whether a score of the paper is for a split.

    The split must have the same name and, within 10 %, as many tasks: tasks are revised, or refused
    by checks.
    """
    n_tasks = max(row["n_tasks_wanted"] for row in rows)
    return reference.split == split and abs(n_tasks - reference.n_tasks) <= 0.1 * reference.n_tasks


def order_of(rows: Rows, labels: Iterable[str]) -> list[str]:
    """Return the models by their mean rank over splits, the best first.

    Models without a rank come last, in the given order.
    """
    ranked = grouped(
        (row for row in rows if row["rank"] is not None and not row["is_own_hard"]), "model"
    )
    return sorted(
        labels,
        key=lambda name: fmean(row["rank"] for row in ranked[name]) if name in ranked else math.inf,
    )


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
    splits = grouped(shown, "split")  # own hard selections are left out, so a name is one split
    clauses = [
        (_highest if is_part else _leader)(split, of_split) for split, of_split in splits.items()
    ]
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
    tied = [row["model"] for row in rows if row["rank"] != best and row["may_be_first"]]
    ties = (
        f"tied with {some(tied, _NAMED)}"
        if tied
        else "no other model is tied"
        if rows[1:]
        else "the only model"
    )
    names = some((row["model"] for row in first), _NAMED)
    verb = "leads" if len(first) == 1 else "lead"
    # Ranks may compare fewer tasks than scores, so the leader's score is not always the highest.
    next_score = max((row["mean_score"] for row in rows if row["rank"] != best), default=math.inf)
    ahead = round(first[0]["mean_score"] - next_score, 3)
    lead = f", ahead by {number(ahead)}" if ahead > 0 else ""
    return f"{names} {verb} on {split} with {number(first[0]['mean_score'])}{lead} ({ties})"


def called_names(config_hash: str, judges: Iterable[Judge]) -> set[str]:
    """Return the names of the models that judge with this configuration, without provider and date.

    A judge's label does not identify its model, so the configuration must be that of one of the
    given judges. A judge with another endpoint than its provider's, with parameters, or with
    rewritten criteria is not the paper's, and is left out.
    """
    return {
        re.sub(r"-\d{4}-?\d{2}-?\d{2}$", "", judge.name.rpartition("/")[2])
        for judge in judges
        if judge_target(judge).config_hash == config_hash
        and (judge.cascade, judge_target(judge).api_base, judge.rubric) == (None, None, ORIGINAL)
        and not judge.parameters
    }


_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_MOST_STEPS = 6.6


def ticks(low: float, high: float) -> list[float]:
    """Return the multiples of a round step between two values; the step is the smallest that gives
    few enough ticks.
    """
    step = next((step for step in _STEPS if (high - low) / step <= _MOST_STEPS), high - low)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


_COLUMNS = (
    Column("rank", "Rank", "count"),
    Column("model", "Model"),
    Column("mean_score", "Score", "score"),
    Column("interval", "95 % interval"),
    Column("ranks", "Possible ranks"),
    Column("coverage", "Coverage", "coverage"),
)
"""The columns of a board; coverage is shown only if that of a model is below the bar."""
_LABEL = Markup('<text x="{}" y="12">{}</text>')
_GRID = Markup('<line class="grid" x1="{0}" x2="{0}" y2="20"/>')
_INTERVAL = Markup('<line x1="{}" x2="{}" y1="10" y2="10"/>')
_DOT = Markup('<circle cx="{}" cy="10" r="4"/>')


def _svg(kind: str, height: int, parts: Iterable[Markup], name: str) -> Markup:
    drawing = Markup('<svg class="{}" role="img" aria-label="{}" height="{}" width="100%">{}</svg>')
    return drawing.format(kind, name, height, Markup("").join(parts))


def _lines(
    rows: Rows, references: Sequence[Reference], at: Callable[[float], str], axis: Iterable[float]
) -> Rows:
    """Return the lines of a split: its models in their order, with scores of the paper among
    them.
    """
    nothing = dict.fromkeys(rows[0])
    name = Markup("{} <small>paper</small>")
    quoted = [
        nothing | {"model": name.format(each.model), "mean_score": each.value}
        for each in references
    ]
    ranked = sorted(
        [*rows, *quoted],
        key=lambda row: -math.inf if row["mean_score"] is None else row["mean_score"],
    )
    return [{**row, **_drawn(row, at, axis)} for row in (ranked[::-1] if quoted else rows)]


def _drawn(row: Row, at: Callable[[float], str], axis: Iterable[float]) -> Row:
    """Return the columns of a line that are made of others."""
    kind = "quoted" if isinstance(row["model"], Markup) else "tied" if row["may_be_first"] else ""
    low, high, mean, best, worst = (
        row[name] for name in ("ci_low", "ci_high", "mean_score", "rank_low", "rank_high")
    )
    interval = None if low is None or mean is None else f"{number(low)} to {number(high)}"
    parts = [_GRID.format(at(value)) for value in axis]
    parts += [_INTERVAL.format(at(low), at(high))] if interval else []
    parts += [_DOT.format(at(mean))] if mean is not None else []
    return {
        "drawn": _svg(kind, 20, parts, interval or "no interval"),
        "interval": interval,
        "ranks": best if best == worst else f"{best}–{worst}",
    }
