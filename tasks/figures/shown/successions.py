"""The page of successions: what another judge would do to scores and ranks."""

from operator import itemgetter

from tasks.figures import charts
from tasks.figures.figure import Column, Figure, Interval, Parameters, Rows, grouped
from tasks.figures.page import Page
from tasks.figures.scope import Scope, Table
from tasks.rules.statistics.comparison import is_significant
from tasks.rules.text.numbers import counted, list_text, p_value_text
from warehouse import Row

_LATEST = "queries/succession/latest"
"""The query for the latest succession of each pair of judges, or of the two that are named."""
_JUDGES = ("succession", "judge", "new_judge", "successor_id")
_HIDDEN_COLUMNS = (
    "successor_id",
    "model_run_id",
    "mean_floor",
    "pair_widths",
    "undecided_pair_widths",
)
"""Columns of effects that are not shown."""


def _effects(scope: Scope, parameters: Parameters) -> list[Row]:
    rows = []
    for row in _shared_effects(scope, parameters):
        rows.append({name: value for name, value in row.items() if name not in _HIDDEN_COLUMNS})
    return rows


def _shared_effects(scope: Scope, parameters: Parameters) -> list[Row]:
    """Return the effects on each model and split, which two figures share."""
    key = ("effects", parameters["old"], parameters["new"])
    if key not in scope.shared_results:
        rows = []
        for succession in scope.rows(_LATEST, parameters):
            rows += _effects_of(scope, succession)
        scope.shared_results[key] = {"effects": rows}
    return scope.shared_results[key]["effects"]


def _effects_of(scope: Scope, succession: Row) -> list[Row]:
    # It imports Polars, which few figures need.
    from tasks.succession.estimate import estimated_rows

    shown_splits = dict(scope.query_parameters["shown_splits"].rows)
    judges = {name: succession[name] for name in _JUDGES}
    rows = []
    for row in estimated_rows(scope.reader, succession):
        if row["split"] in shown_splits:
            rows.append(judges | row)
    return rows


_SHIFT_COLUMNS = {
    "succession": "varchar",
    "successor_id": "ubigint",
    "split": "varchar",
    "model_run_id": "ubigint",
    "mean_floor": "double",
    "effect": "double",
    "effect_ci_low": "double",
    "effect_ci_high": "double",
}
"""The columns of the parameter `$shifts`, with their types."""


def _bridged(scope: Scope, parameters: Parameters) -> list[Row]:
    """Return scores by the new judge over time, and the old one's moved by the effect."""
    shifts = []
    for row in _shared_effects(scope, parameters):
        if row["no_figure"] is None:
            shifts.append(tuple(row[name] for name in _SHIFT_COLUMNS))
    if not shifts:
        return []
    return scope.rows("figures/history/bridged", {"shifts": Table(_SHIFT_COLUMNS, shifts)})


def _shift_notes(rows: Rows) -> list[str]:
    """Return by how much scores are moved, once for each model on a split."""
    notes = []
    moved = [row for row in rows if row["is_estimated"]]
    for board in grouped(moved, "judged_by", "split").values():
        shifts = []
        last_points = {row["label"]: row for row in board}
        for row in last_points.values():
            interval = f"{row['effect_ci_low']:+.3f} to {row['effect_ci_high']:+.3f}"
            shifts.append(f"{row['label']} by {row['effect']:+.3f} ({interval})")
        notes.append(
            f"{board[0]['judged_by']}, {board[0]['split']}: scores are moved: {list_text(shifts)}."
            " All points of a model share the error of its shift."
        )
    return notes


def _agreement(scope: Scope, parameters: Parameters) -> list[Row]:
    rows = []
    for succession in scope.rows(_LATEST, parameters):
        key = {"succession_id": succession["succession_id"]}
        for row in scope.reader.query("queries/succession/agreement", key):
            rows.append({"succession": succession["succession"], **row})
    return rows


def headline(rows: Rows) -> str:
    """Return what the succession shows in one sentence for each split."""
    return " ".join(map(_sentence, grouped(rows, "succession", "split").values()))


def shown_effects(scope: Scope, old_judge: str) -> str:
    """Return what the successions of a judge show; empty if there are none."""
    return headline(_effects(scope, {"old": old_judge, "new": None}))


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
    return f"judging the other {n_left:,} verdicts as well costs ${usd:,.2f}" if n_left else ""


def _notes(rows: Rows) -> list[str]:
    notes = [headline(rows)]
    for board in grouped(rows, "succession", "split").values():
        # Models with an estimate have the same one.
        for p_value in {row["interaction_p_value"] for row in board} - {None}:
            differs = "differs" if is_significant(p_value) else "does not differ significantly"
            notes.append(
                f"{board[0]['split']}: the effect {differs} between models"
                f" (p {p_value_text(p_value)})."
            )
        n_needed = sum(row["half_width_verdicts"] or 0 for row in board)
        if n_needed:
            notes.append(
                f"{board[0]['split']}: with {counted(n_needed, 'verdict')} in total, the intervals"
                " of differences would be half as wide."
            )
    return notes


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
        required="effect",
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
    empty="No succession yet: run prbench succeed OLD NEW.",
)
AGREEMENT = Figure(
    "succession_agreement",
    "Where the judges differ",
    "How often the two judges agree on the drawn criteria, by sign of the weight, severity and"
    " category. Each verdict stands for as many as its criterion represents.",
    (
        "succession",
        "breakdown",
        Column("label", "Criteria"),
        Column("agreement", "Agreement"),
        "lower_share",
        "higher_share",
        "kappa",
        "n_verdicts",
    ),
    boards=["succession", "breakdown"],
    compute=_agreement,
    parameters={"old": None, "new": None},
    reach="pooled",
)
BRIDGED_HISTORY = Figure(
    "bridged_history",
    "Score over time across a change of judge",
    "The mean score of each model by the new judge of a succession and, before, that by the old"
    " one, moved by the effect that the sample estimates (hollow; prbench succeed). The interval of"
    " a moved score has the error of its shift too. The effect is that on the sampled vintage, and"
    " is taken to be the same in earlier ones. The old scores of other models are left out.",
    (
        Column("judged_by", "Judges"),
        "split",
        Column("label", "Model"),
        "first_response_at",
        "vintage",
        Column("judge", "Judge"),
        "is_estimated",
        "mean_score",
        Interval("ci"),
        "n_tasks",
    ),
    charts.over_time(
        "split",
        x="first_response_at",
        value="mean_score",
        colour="label",
        line="line",
        changed="changed",
        marked="is_drifted",
        hollow="is_estimated",
        tips=["label", "judge", "vintage", "mean_score", "ci_low", "ci_high"],
    ),
    essential=["label", "vintage", "judge", "is_estimated", "mean_score", "ci_low", "n_tasks"],
    boards=["judged_by", "split"],
    compute=_bridged,
    parameters={"old": None, "new": None},
    notes=_shift_notes,
)
SUCCESSIONS = Page(
    "successions",
    "Successions",
    "What another judge would do to scores and ranks, from a sample (prbench succeed).",
    (EFFECTS, AGREEMENT),
    has_judge=False,
    required_table="successions",
    group="Judges",
)
