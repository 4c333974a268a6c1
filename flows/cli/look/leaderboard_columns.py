"""A leaderboard as people read it: only informative columns, with marks."""

from collections.abc import Callable, Sequence
from typing import Any

from tasks.rules.records import Table
from tasks.rules.text.numbers import SMALL_MARK, coverage_text

Record = dict[str, Any]
_NEEDED = {"mean_score", "ci_low", "mistake_share"}
"""A leaderboard needs these columns and all before them."""
_OWNERS = {"judge_config_hash": "judge", "template_hash": "judge", "model_config_hash": "model"}
_JUDGING = ("judge", "judge_trial", "grading", "judge_config_hash", "template_hash")
BELOW_BAR = "*"
RANDOM_PART = "‡"


def for_people(table: Table) -> tuple[list[str], list[list[Any]], int]:
    """Titles and cells of the columns to show, and how many of the first ones are always needed."""
    records = table.records
    shown = [name for name in _COLUMNS if name in table.columns and is_worth_showing(name, records)]
    # The column of the breakdown follows the split.
    breakdown = [name for name in table.columns[1:2] if name not in _COLUMNS]
    names = [*shown[:1], *breakdown, *shown[1:]]
    titles = {"mean_score": records[0].get("score_name", "score")} | TITLES
    return (
        [titles.get(name, name.replace("_", " ")) for name in names],
        [[_COLUMNS[name](record) if name in _COLUMNS else record[name] for name in names] for record in records],
        1 + max((place for place, name in enumerate(names) if name in _NEEDED), default=0),
    )


def groups_of(table: Table) -> list[tuple[Any, ...]]:
    """What each row is ranked in: its split, and where there are several judges, its label and who judged."""
    records = table.records
    judging = [name for name in _JUDGING if is_worth_showing(name, records)]
    label = [name for name in table.columns[1:2] if judging and name not in _COLUMNS]
    return [tuple(record[name] for name in ("split", *label, *judging)) for record in records]


def ranked_together(columns: Sequence[str]) -> list[str]:
    """The columns in which the rows of one ranking are alike, but for the vintage."""
    return ["split", *(name for name in columns[1:2] if name not in _COLUMNS), *_JUDGING]


def is_clipped(record: Record) -> bool:
    """Whether the mean, or an end of its interval, is clipped."""
    raw = [record.get(name) for name in ("raw_mean_score", "raw_ci_low", "raw_ci_high")]
    shown = [record.get(name) for name in ("mean_score", "ci_low", "ci_high")]
    return any(a is not None and b is not None and a < b for a, b in zip(raw, shown, strict=True))


def is_worth_showing(name: str, records: Sequence[Record]) -> bool:
    """Whether a column is informative in these rows."""
    values = {r[name] for r in records}
    if name in {"cost_usd", "n_trials"}:
        return bool(values - {None, 1})
    if name in _OWNERS:
        # A hash is worth showing where one label was configured in several ways.
        owners = [(r[_OWNERS[name]], r[name]) for r in records]
        return len(set(owners)) > len({owner for owner, _ in owners})
    if name in {"judge", "judge_trial", "grading", "vintage"}:
        return len(values) > 1
    if name == "mean_lower":
        return not all(r["is_complete"] for r in records)
    if name == "raw_mean_score":
        return any(map(is_clipped, records))
    return values != {None}


def _span(low: str, high: str, form: str = ".3f", mark: str = "") -> Callable[[Record], str | None]:
    def shown(record: Record) -> str | None:
        if record[low] is None:
            return None
        small = SMALL_MARK if mark and record.get(mark) else ""
        return f"{record[low]:{form}} to {record[high]:{form}}{small}"

    return shown


def _number(name: str, form: str) -> Callable[[Record], str | None]:
    return lambda record: None if record[name] is None else format(record[name], form)


def _marked(name: str, form: str, mark: str, of: str | None = None) -> Callable[[Record], str | None]:
    def shown(record: Record) -> str | None:
        if record[name] is None:
            return None
        return f"{record[name]:{form}}{f' of {record[of]}' if of else ''}{BELOW_BAR if record[mark] else ''}"

    return shown


def _mean(record: Record) -> str | None:
    if record.get("is_judged") is False:
        return "not judged"
    shown = _marked("mean_score", ".3f", "is_below_bar")(record)
    return f"{shown}{RANDOM_PART}" if shown and record.get("n_tasks_skipped") else shown


def _before_clipping(record: Record) -> str | None:
    if not is_clipped(record):
        return None
    span = _span("raw_ci_low", "raw_ci_high")(record)
    return f"{record['raw_mean_score']:.3f}" + (f", {span}" if span else "")


def _possible_ranks(record: Record) -> str | None:
    low, high = record["rank_low"], record["rank_high"]
    return str(low) if low == high and low is not None else _span("rank_low", "rank_high", "d")(record)


def _tasks(record: Record) -> str:
    full = record["n_tasks_full"]
    return f"{record['n_tasks']} of {record['n_tasks_wanted']}" + (
        f", {full} in all trials" if full < record["n_tasks"] else ""
    )


TITLES = {
    "judge_trial": "judge trial",
    "judge_config_hash": "judge configuration",
    "template_hash": "template",
    "model_config_hash": "model configuration",
    "cost_usd": "cost in USD",
    "ci_low": "95 % interval",
    "raw_mean_score": "unclipped score",
    "rank_low": "possible ranks",
    "trials_ci_low": "interval over trials",
    "mean_lower": "possible range",
    "n_tasks": "tasks",
    "n_trials": "trials",
    "mean_chars_alnum": "characters",
    "critical_met_share": "critical criteria met",
    "critical_met_ci_low": "95 % interval",
    "mistake_share": "critical mistakes",
    "mistake_ci_low": "95 % interval",
    "responses_with_mistake_share": "responses with a mistake",
    "n_tasks_critical": "tasks",
    "critical_coverage": "coverage",
}
_COLUMNS: dict[str, Callable[[Record], Any]] = {
    "split": lambda r: r["split"],
    "rank": lambda r: r["rank"],
    "model": lambda r: r["model"],
    # What distinguishes rows comes first, where a narrow terminal shows it.
    "judge": lambda r: r["judge"],
    "judge_trial": lambda r: r["judge_trial"],
    "grading": lambda r: r["grading"].replace("_", " "),
    "vintage": lambda r: r["vintage"],
    "judge_config_hash": lambda r: r["judge_config_hash"][:8],
    "template_hash": lambda r: r["template_hash"][:8],
    "model_config_hash": lambda r: r["model_config_hash"][:8],
    "mean_score": _mean,
    "ci_low": _span("ci_low", "ci_high", mark="is_small"),
    "raw_mean_score": _before_clipping,
    "rank_low": _possible_ranks,
    "n_tasks": _tasks,
    "coverage": lambda r: coverage_text(r["coverage"]),
    "mean_lower": _span("mean_lower", "mean_upper"),
    "trials_ci_low": _span("trials_ci_low", "trials_ci_high"),
    "critical_met_share": _marked("critical_met_share", ".1%", "is_critical_below_bar", "n_critical"),
    "critical_met_ci_low": _span("critical_met_ci_low", "critical_met_ci_high", ".1%", "is_critical_small"),
    "mistake_share": _marked("mistake_share", ".1%", "is_mistake_below_bar", "n_mistakes_possible"),
    "mistake_ci_low": _span("mistake_ci_low", "mistake_ci_high", ".1%", "is_mistake_small"),
    "responses_with_mistake_share": _number("responses_with_mistake_share", ".1%"),
    "n_tasks_critical": lambda r: f"{r['n_tasks_critical']} and {r['n_tasks_mistakes'] or 0}",
    "critical_coverage": lambda r: (
        f"{coverage_text(r['critical_coverage'] or 0)} and {coverage_text(r['mistake_coverage'] or 0)}"
    ),
    "n_trials": lambda r: r["n_trials"],
    "mean_chars_alnum": lambda r: None if r["mean_chars_alnum"] is None else round(r["mean_chars_alnum"]),
    "cost_usd": _number("cost_usd", ".2f"),
}
