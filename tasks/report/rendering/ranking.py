"""The ranking: leaders and ties, and boards of each split with scores of the paper.

A model is tied with the leader unless a paired test shows the leader ahead (`may_be_first`). Boards
are HTML with a line for each model. The interval in a line is inline SVG, so it shows without
scripts and on paper.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import fmean
from typing import NamedTuple

from markupsafe import Markup

from tasks.benchmarks.base import Reference
from tasks.config.models import ORIGINAL, Judge
from tasks.figures.figure import Column, Row, Rows, grouped, table_columns
from tasks.figures.scope import Scope
from tasks.figures.shown.leaderboard import LEADERBOARD
from tasks.llm.request import Target
from tasks.llm.retirement import retirement_date, retirement_text
from tasks.rules.identity import EVERY_VINTAGE
from tasks.rules.text.numbers import list_text, number, rank_notes
from tasks.run.judge_configs import judge_target

_NAMED = 3
"""Largest number of models that a sentence names; the others are only counted."""


@dataclass(frozen=True)
class Ranking:
    """The ranking by one judge configuration, for the template.

    Attributes:
        sentence: a sentence that names the leaders.
        columns: the columns of all boards, which share the axis in one of the headings; coverage
            only if that of a model is below the bar.
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
    """Return the ranking under each judge configuration, the main one first."""
    labels = [entry["entry"] for entry in scope.entries]
    judge_configs = {row["judge_config"]: row for row in scope.judge_configs}
    hard_splits = set(scope.benchmark.hard_splits.values())
    is_part = _shows_part(scope)
    ranked = []
    for judge_config, rows in grouped(scope.rows_of(LEADERBOARD), "judge_config").items():
        sentence = leaders(rows, hard_splits, judge_config, is_part=is_part)
        quotes = _quotes(scope, judge_configs[judge_config])
        ranked.append(ranking_of(rows, quotes, sentence, labels))
    return ranked


def _shows_part(scope: Scope) -> bool:
    """Return whether only some models are shown, or a model more than once.

    Then ranks are not those of a whole ranking. A model is shown more than once with several
    configurations, or with several vintages if all are requested.
    """
    models = {entry["model"] for entry in scope.entries}
    n_shown = len(scope.entries)
    if scope.vintage != EVERY_VINTAGE:
        n_shown = len(grouped(scope.entries, "model", "model_config_hash"))
    return bool(scope.job.named_models) or len(models) < n_shown


class Quote(NamedTuple):
    """A score of the paper on the board of a judge, and whether the same judge gave it."""

    reference: Reference
    is_same_judge: bool


def _quotes(scope: Scope, judge_config: Row) -> list[Quote]:
    """Return the paper's scores for the board of a judge.

    They are shown in the first trial, with the benchmark's default grading.
    """
    benchmark = scope.benchmark
    if judge_config["grading"] != benchmark.grading or judge_config["judge_trial"] != 1:
        return []
    names = called_names(judge_config["judge_config_hash"], scope.job.settings.judges)
    return [Quote(reference, reference.judge in names) for reference in benchmark.references]


def ranking_of(
    rows: Rows,
    quotes: Sequence[Quote],
    sentence: str,
    labels: Iterable[str],
) -> Ranking:
    """Return the ranking of leaderboard rows under one judge, with scores of the paper."""
    splits = []
    shown_quotes: list[Quote] = []
    for (split, is_own_hard), split_rows in grouped(rows, "split", "is_own_hard").items():
        split_quotes = []
        if not is_own_hard:
            split_quotes = [
                quote for quote in quotes if is_for_split(quote.reference, split, split_rows)
            ]
        splits.append((split, split_rows, split_quotes))
        shown_quotes += split_quotes
    notes = [*rank_notes(rows), *_paper_notes(shown_quotes)]
    axis = _axis_of(rows, shown_quotes)
    boards = []
    for split, split_rows, split_quotes in splits:
        boards.append((split, _lines(split_rows, split_quotes, axis)))
    columns = [
        *table_columns("rank", "model", "mean_score"),
        Column("drawn", axis.heading),
        Column("interval", "95 % interval"),
        Column("ranks", "Possible ranks"),
    ]
    if any(row["is_below_bar"] for row in rows):
        columns += table_columns("coverage")
    order = order_of(rows, labels)
    return Ranking(rows[0]["judge_config"], sentence, columns, boards, notes, order)


def _paper_notes(quotes: Sequence[Quote]) -> Iterator[str]:
    """Yield a note on the paper's scores by each judge."""
    sources: dict[tuple[str, bool], dict[str, None]] = {}
    for reference, is_same_judge in quotes:
        sources.setdefault((reference.judge, is_same_judge), {})[reference.source] = None
    for (judge, is_same_judge), judge_sources in sources.items():
        scores = f"the paper's own scores ({'; '.join(judge_sources)})"
        if is_same_judge:
            yield (
                f"Rows marked paper are {scores}, by the same judge with the paper's prompt, on the"
                " first release of this split. They have no rank here."
            )
            continue
        end = ""
        retires_on = retirement_date(Target(judge))
        if retires_on is not None:
            end = f" {retirement_text(judge, retires_on, datetime.now(UTC).date())}."
        yield (
            f"Grey rows are {scores}, by another judge, {judge}, on the first release of this"
            f" split. Their level cannot be compared.{end}"
        )


def is_for_split(reference: Reference, split: str, rows: Rows) -> bool:
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
    rows_by_model = grouped(_ranked(rows), "model")

    def mean_rank(model: str) -> float:
        if model not in rows_by_model:
            return math.inf
        return fmean(row["rank"] for row in rows_by_model[model])

    return sorted(labels, key=mean_rank)


def leaders(rows: Rows, hard_splits: set[str], judge_config: str, *, is_part: bool = False) -> str:
    """Return one sentence that names the leader on each split, and the models tied with it.

    Hard splits are named only if there is no other split.

    Args:
        rows: the rows of a leaderboard under one judge configuration.
        hard_splits: the names of the hard splits, which are a part of other splits.
        judge_config: its label.
        is_part: true if the rows are not a whole ranking, so that ranks and ties are unknown.
    """
    ranked = _ranked(rows)
    full = [row for row in ranked if row["split"] not in hard_splits]
    describe = _highest if is_part else _leader
    splits = grouped(full or ranked, "split")
    clauses = [describe(split, split_rows) for split, split_rows in splits.items()]
    if not clauses:
        return f"No model has a score by {judge_config} yet."
    return f"Judged by {judge_config}, {'; '.join(clauses)}."


def _ranked(rows: Rows) -> list[Row]:
    """Return the rows with a rank, without own hard selections, so that a name is one split."""
    return [row for row in rows if row["rank"] is not None and not row["is_own_hard"]]


def _highest(split: str, rows: Rows) -> str:
    score = max(row["mean_score"] for row in rows)
    names = list_text((row["model"] for row in rows if row["mean_score"] == score), _NAMED)
    return f"{names} has the highest score shown on {split}, {number(score)}"


def _leader(split: str, rows: Rows) -> str:
    best_rank = min(row["rank"] for row in rows)
    leading = [row for row in rows if row["rank"] == best_rank]
    followers = [row for row in rows if row["rank"] != best_rank]
    tied = [row["model"] for row in followers if row["may_be_first"]]
    if tied:
        ties = f"tied with {list_text(tied, _NAMED)}"
    elif len(rows) > 1:
        ties = "no other model is tied"
    else:
        ties = "the only model"
    names = list_text((row["model"] for row in leading), _NAMED)
    verb = "leads" if len(leading) == 1 else "lead"
    score = leading[0]["mean_score"]
    lead = ""
    if followers:
        difference = round(score - max(row["mean_score"] for row in followers), 3)
        # Ranks may compare fewer tasks than scores, so the leader's score is not always the
        # highest.
        if difference > 0:
            lead = f", ahead by {number(difference)}"
    return f"{names} {verb} on {split} with {number(score)}{lead} ({ties})"


def called_names(config_hash: str, judges: Iterable[Judge]) -> set[str]:
    """Return the names of the models that judge with this configuration, without provider and date.

    A judge's label does not identify its model, so the configuration must be that of one of the
    given judges. A judge with another endpoint than its provider's, with parameters, or with
    rewritten criteria is not the paper's, and is left out.
    """
    names = set()
    for judge in judges:
        target = judge_target(judge)
        is_plain = judge.cascade is None and judge.rubric == ORIGINAL and not judge.parameters
        if is_plain and target.api_base is None and target.config_hash == config_hash:
            name = judge.name.rpartition("/")[2]
            names.add(re.sub(r"-\d{4}-?\d{2}-?\d{2}$", "", name))
    return names


_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_MOST_STEPS = 6.6
"""Largest length of an axis, in steps between two ticks."""


def ticks(low: float, high: float) -> list[float]:
    """Return the multiples of a round step between two values.

    The step is the smallest that gives few enough ticks.
    """
    step = next((step for step in _STEPS if (high - low) / step <= _MOST_STEPS), high - low)
    first_multiple = math.ceil(low / step - 1e-9)
    last_multiple = math.floor(high / step + 1e-9)
    return [round(multiple * step, 10) for multiple in range(first_multiple, last_multiple + 1)]


_LABEL = Markup('<text x="{}" y="12">{}</text>')
_GRID = Markup('<line class="grid" x1="{0}" x2="{0}" y2="20"/>')
_INTERVAL = Markup('<line x1="{}" x2="{}" y1="10" y2="10"/>')
_DOT = Markup('<circle cx="{}" cy="10" r="4"/>')


def _svg(kind: str, height: int, parts: Iterable[Markup], name: str) -> Markup:
    drawing = Markup('<svg class="{}" role="img" aria-label="{}" height="{}" width="100%">{}</svg>')
    return drawing.format(kind, name, height, Markup("").join(parts))


class Axis(NamedTuple):
    """The axis that the drawn intervals of all boards share."""

    low: float
    high: float

    def position(self, value: float) -> str:
        """Return where a value is, as a share of the width."""
        return f"{100 * (value - self.low) / (self.high - self.low):.2f}%"

    @property
    def heading(self) -> Markup:
        """The heading of the column, with the ticks."""
        parts = [
            _LABEL.format(self.position(value), number(value, "z.6g"))
            for value in ticks(self.low, self.high)
        ]
        return _svg("", 14, parts, "Drawn interval")


def _axis_of(rows: Rows, quotes: Sequence[Quote]) -> Axis:
    values = [quote.reference.value for quote in quotes]
    for row in rows:
        ends = (row["ci_low"], row["ci_high"], row["mean_score"])
        values += [end for end in ends if end is not None]
    low = min(values, default=0.0)
    high = max(values, default=1.0)
    margin = 0.04 * ((high - low) or 1.0)
    return Axis(low - margin, high + margin)


_PAPER_NAME = Markup("{} <small>paper</small>")
_OTHER_JUDGE_NAME = Markup('<span class="grey">{} <small>paper, by {}</small></span>')


def _lines(rows: Rows, quotes: Sequence[Quote], axis: Axis) -> Rows:
    """Return the lines of a split: its models, with scores of the paper among them."""
    lines: list[Row] = []
    for reference, is_same_judge in quotes:
        name = _PAPER_NAME if is_same_judge else _OTHER_JUDGE_NAME
        line = dict.fromkeys(rows[0])
        line["model"] = name.format(reference.model, reference.judge)
        line["mean_score"] = reference.value
        lines.append(line)
    # Of equal scores, the paper's stay above those of models, and these in the order of ranks.
    lines += rows
    if quotes:
        lines.sort(key=_mean_or_lowest, reverse=True)
    return [{**line, **_drawn(line, axis)} for line in lines]


def _mean_or_lowest(line: Row) -> float:
    return -math.inf if line["mean_score"] is None else float(line["mean_score"])


def _drawn(row: Row, axis: Axis) -> Row:
    """Return the columns of a line that are made of others."""
    kind = "tied" if row["may_be_first"] else ""
    if isinstance(row["model"], Markup):
        kind = "quoted"
    parts = [_GRID.format(axis.position(value)) for value in ticks(axis.low, axis.high)]
    interval = None
    if row["ci_low"] is not None and row["mean_score"] is not None:
        interval = f"{number(row['ci_low'])} to {number(row['ci_high'])}"
        parts.append(_INTERVAL.format(axis.position(row["ci_low"]), axis.position(row["ci_high"])))
    if row["mean_score"] is not None:
        parts.append(_DOT.format(axis.position(row["mean_score"])))
    best_rank = row["rank_low"]
    worst_rank = row["rank_high"]
    return {
        "drawn": _svg(kind, 20, parts, interval or "no interval"),
        "interval": interval,
        "ranks": best_rank if best_rank == worst_rank else f"{best_rank}–{worst_rank}",
    }
