"""The page of successions: what another judge would do to scores and ranks."""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import sql
from tasks.figures import charts
from tasks.figures.figure import Column, Figure, Rows, grouped
from tasks.figures.page import Page
from tasks.figures.scope import Scope
from tasks.rules.text.numbers import counted, list_text

Row = dict[str, Any]


def _successions(scope: Scope, parameters: Mapping[str, Any]) -> list[Row]:
    """Return the latest succession of each pair of judges, or of the two that are named."""
    judges = {"old": parameters["old"], "new": parameters["new"]}
    return scope.reader.rows(sql.read("queries/succession/latest"), {**scope.job.key, **judges})


def _effects(scope: Scope, parameters: Mapping[str, Any]) -> list[Row]:
    # It imports Polars, which few figures need.
    from tasks.succession.estimate import estimated_rows

    shown_splits = dict(scope.values["shown_splits"].rows)
    rows = []
    for succession in _successions(scope, parameters):
        for row in estimated_rows(scope.reader, succession):
            if row["split"] in shown_splits:
                judges = {name: succession[name] for name in ("succession", "judge", "new_judge")}
                rows.append(judges | row)
    return rows


def _agreement(scope: Scope, parameters: Mapping[str, Any]) -> list[Row]:
    query = sql.read("queries/succession/agreement")
    rows = []
    for succession in _successions(scope, parameters):
        for row in scope.reader.rows(query, {"succession_id": succession["succession_id"]}):
            rows.append({"succession": succession["succession"], **row})
    return rows


def headline(rows: Rows) -> str:
    """Return what the succession shows in one sentence for each split."""
    return " ".join(map(_sentence, grouped(rows, "succession", "split").values()))


def _sentence(board: Rows) -> str:
    beginning = f"{board[0]['succession']}, {board[0]['split']}:"
    estimated = [row for row in board if row["no_figure"] is None]
    if not estimated:
        return f"{beginning} no estimate ({board[0]['no_figure']})."
    clauses = [_order_clause(board), _level_clause(estimated), _cost_clause(board)]
    return f"{beginning} {'; '.join(filter(None, clauses))}."


def _order_clause(board: Rows) -> str:
    """Return whether the order of models holds; empty for one model."""
    if len(board) == 1:
        return ""
    unknown = [str(row["model"]) for row in board if row["no_figure"] is not None]
    if unknown:
        return f"the order may change: no estimate for {list_text(unknown)}"
    changing = [str(row["model"]) for row in board if not row["keeps_order"]]
    if changing:
        return f"the order may change among {list_text(changing)}"
    return "the order holds"


def _level_clause(estimated: Rows) -> str:
    by_effect = sorted(estimated, key=itemgetter("effect"))
    lowest = by_effect[0]["effect"]
    highest = by_effect[-1]["effect"]
    if max(map(itemgetter("effect_ci_high"), estimated)) < 0:
        return f"levels fall by {_span(-highest, -lowest)}"
    if min(map(itemgetter("effect_ci_low"), estimated)) > 0:
        return f"levels rise by {_span(lowest, highest)}"
    return f"levels change by {_span(lowest, highest, '+')}"


def _span(lowest: float, highest: float, sign: str = "") -> str:
    """Return two numbers, or one if they are shown alike."""
    ends = (f"{lowest:{sign}.3f}", f"{highest:{sign}.3f}")
    return " to ".join(dict.fromkeys(ends))


def _cost_clause(board: Rows) -> str:
    """Return what judging all other verdicts costs; empty if there are none, or no price."""
    n_left = 0
    usd = 0.0
    for row in board:
        n_left += row["n_all_verdicts"] - row["n_verdicts"]
        if row["rejudging_usd"] is None:
            return ""
        usd += row["rejudging_usd"]
    return f"judging the other {n_left:,} verdicts too costs ${usd:,.2f}" if n_left else ""


def _notes(rows: Rows) -> list[str]:
    notes = [headline(rows)]
    for board in grouped(rows, "succession", "split").values():
        p_value = board[0]["interaction_p_value"]
        if p_value is not None:
            differs = "differs" if p_value < 0.05 else "does not differ significantly"
            probability = f"p = {p_value:.4f}" if p_value >= 0.0001 else "p < 0.0001"
            notes.append(
                f"{board[0]['split']}: the effect {differs} between models ({probability})."
            )
        n_needed = sum(row["half_width_verdicts"] or 0 for row in board)
        if n_needed:
            notes.append(
                f"{board[0]['split']}: with {counted(n_needed, 'verdict')} in total, the intervals"
                " of differences would be half as wide."
            )
    return notes


def _with_ends(rows: Rows) -> Rows:
    """Return the rows with an estimate, with the interval of the effect."""
    estimated = []
    for row in rows:
        if row["no_figure"] is None:
            ends = {"ci_low": row["effect_ci_low"], "ci_high": row["effect_ci_high"]}
            estimated.append({**row, **ends})
    return estimated


EFFECTS = Figure(
    "succession",
    "Scores under another judge",
    "The score of each model by the old judge and, estimated from a sample of verdicts, by the new"
    " one. Differences are new minus old, before clipping; their intervals concern these tasks. A"
    " score's interval is for other tasks of the same kind. Ranks are those that are possible"
    " according to intervals that hold for all pairs of models together. A verdict that the new"
    " judge failed on widens the interval by all that it could change.",
    (
        "succession",
        "split",
        "model",
        "old_rank",
        "old_score",
        Column("new_score", interval=True),
        Column("effect", "New minus old", interval=True),
        "new_rank_low",
        "new_rank_high",
        "interaction_p_value",
        "n_verdicts",
        "n_undecided",
        "n_tasks",
        "half_width_verdicts",
        "rejudging_usd",
        "no_figure",
    ),
    charts.intervals(
        "split",
        rows=_with_ends,
        label="model",
        value="effect",
        name="succession",
        title="New minus old, before clipping",
        zero=True,
    ),
    essential=["model", "old_score", "new_score", "effect", "new_rank_low", "new_rank_high"],
    boards=["succession", "split"],
    compute=_effects,
    parameters={"old": None, "new": None},
    heading=headline,
    notes=_notes,
    empty="No judge was compared with another. prbench succeed OLD NEW does it.",
)
AGREEMENT = Figure(
    "succession_agreement",
    "Where the judges differ",
    "How often the two judges agree on the drawn criteria, by sign of the weight, severity and"
    " category. Each verdict stands for as many as its criterion represents.",
    (
        "succession",
        Column("breakdown", "By"),
        Column("label", "Criteria"),
        Column("agreement", "Agreement"),
        "lower_share",
        "higher_share",
        "kappa",
        "n_verdicts",
    ),
    essential=["label", "agreement", "lower_share", "higher_share", "kappa", "n_verdicts"],
    boards=["succession", "breakdown"],
    compute=_agreement,
    parameters={"old": None, "new": None},
    reach="pooled",
)
SUCCESSIONS = Page(
    "successions",
    "Successions",
    "What another judge would do to scores and ranks, from a sample (prbench succeed).",
    (EFFECTS, AGREEMENT),
    has_judge=False,
    needs="successions",
    group="Judges",
)
