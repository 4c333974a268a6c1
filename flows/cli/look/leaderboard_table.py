"""A leaderboard as people read it: the columns that tell something, marks, and what must be known beside them."""

from collections.abc import Callable, Sequence
from typing import Any

from tasks.config.settings import Job
from tasks.llm.embedded import is_embedded
from tasks.rules.table import Table

Record = dict[str, Any]
_SMALL_MARKS = {
    "is_small": "ci_low",
    "is_critical_small": "critical_met_ci_low",
    "is_mistake_small": "mistake_ci_low",
}
_NEEDED = {"mean_score", "ci_low", "mistake_share"}
"""With these, and all that stands before them, a leaderboard can be read."""
_OWNERS = {"judge_config_hash": "judge", "template_hash": "judge", "model_config_hash": "model"}
_NOT_DRAWN = "What has no interval is newer than the last `prbench aggregate`, which draws them."
BELOW_BAR, SMALL = "*", "°"


def for_people(table: Table) -> tuple[list[str], list[list[Any]], int]:
    """Titles and cells of the columns that one looks at, and how many of them it cannot be without."""
    records = table.records
    shown = [name for name in _COLUMNS if name in table.columns and _tells(name, records)]
    # What the rows are cut by stands behind the split.
    cut = [name for name in table.columns[1:2] if name not in _COLUMNS]
    names = [*shown[:1], *cut, *shown[1:]]
    titles = {"mean_score": records[0].get("score_name", "score")} | _TITLES
    return (
        [titles.get(name, name) for name in names],
        [[_COLUMNS[name](record) if name in _COLUMNS else record[name] for name in names] for record in records],
        1 + max((place for place, name in enumerate(names) if name in _NEEDED), default=0),
    )


def caveats(job: Job, records: Sequence[Record]) -> list[str]:
    """What must be known beside the figures."""
    lines = [f"Judge: {judge}" for judge in {r["judge"] for r in records} if not _tells("judge", records)]
    is_one = not _tells("judge", records)
    unjudged = [r for r in records if r.get("is_judged") is False]
    low = _models([r for r in records if r.get("is_below_bar") and r not in unjudged], is_one)
    if low:
        bar = f"{BELOW_BAR} below the coverage bar of {job.settings.coverage.min:.0%}"
        lines.append(f"{bar}; the figures rest on a part of the split: {', '.join(low)}")
    if unjudged:
        lines.append(f"No verdict on a split under this judge and template: {', '.join(_models(unjudged, is_one))}")
    ranked = {r["n_tasks_ranked"] for r in records if r.get("n_tasks_ranked") and r["n_tasks_ranked"] < r["n_tasks"]}
    if ranked:
        lines.append("Ranks compare only the tasks with a complete trial for every ranked model.")
    if any(map(_is_clipped, records)):
        lines.append("A mean below 0 is shown as 0; ranks and `prbench diff` compare the means before clipping.")
    lines += _on_intervals(records)
    embedded = {judge.label for judge in job.settings.judges if is_embedded(judge.name)}
    if embedded & {r["judge"] for r in records}:
        lines.append("The judge is the embedded model, far too small to judge: the figures only show that all works.")
    return lines


def _on_intervals(records: Sequence[Record]) -> list[str]:
    """What must be known about intervals that may be too narrow, or are not there."""
    marked = [r[low] for r in records for mark, low in _SMALL_MARKS.items() if r.get(mark)]
    lines = []
    if marked:
        from tasks.rules.statistics import FEWEST_OTHERS
        from tasks.rules.statistics import SMALL as FEW

        if any(low is not None for low in marked):
            lines.append(f"{SMALL} fewer than {FEW} tasks, or hardly any that differ: the interval may be too narrow")
        if None in marked:
            lines.append(f"No interval: fewer than {FEWEST_OTHERS} tasks differ from the commonest value.")
    if any(r.get("n_tasks", 0) > 1 and r["is_small"] is None for r in records):
        lines.append(_NOT_DRAWN)
    return lines


def _models(records: Sequence[Record], is_one_judge: bool) -> list[str]:
    return sorted({r["model"] if is_one_judge else f"{r['model']} ({r['judge']})" for r in records})


def _is_clipped(record: Record) -> bool:
    """Whether the mean, or an end of its interval, is clipped."""
    raw = [record.get(name) for name in ("raw_mean_score", "raw_ci_low", "raw_ci_high")]
    shown = [record.get(name) for name in ("mean_score", "ci_low", "ci_high")]
    return any(a is not None and b is not None and a < b for a, b in zip(raw, shown, strict=True))


def _tells(name: str, records: Sequence[Record]) -> bool:
    """Whether a column says something in these rows."""
    values = {r[name] for r in records}
    if name in {"cost_usd", "n_trials"}:
        return bool(values - {None, 1})
    if name in _OWNERS:
        # A hash tells something where one label was configured in several ways.
        owners = [(r[_OWNERS[name]], r[name]) for r in records]
        return len(set(owners)) > len({owner for owner, _ in owners})
    if name in {"judge", "judge_trial", "grading", "vintage"}:
        return len(values) > 1
    if name == "mean_lower":
        return not all(r["is_complete"] for r in records)
    if name == "raw_mean_score":
        return any(map(_is_clipped, records))
    return values != {None}


def _span(low: str, high: str, form: str = ".3f", mark: str = "") -> Callable[[Record], str | None]:
    def shown(record: Record) -> str | None:
        if record[low] is None:
            return None
        small = SMALL if mark and record.get(mark) else ""
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
    return _marked("mean_score", ".3f", "is_below_bar")(record)


def _before_clipping(record: Record) -> str | None:
    if not _is_clipped(record):
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


_TITLES = {
    "ci_low": "95 % interval",
    "raw_mean_score": "before clipping",
    "rank_low": "possible ranks",
    "trials_ci_low": "over trials",
    "mean_lower": "could be",
    "n_tasks": "tasks",
    "n_trials": "trials",
    "mean_chars_alnum": "chars",
    "critical_met_share": "critical met",
    "critical_met_ci_low": "95 % interval",
    "mistake_share": "critical mistakes",
    "mistake_ci_low": "95 % interval",
    "responses_with_mistake_share": "answers with one",
    "n_tasks_critical": "tasks",
    "critical_coverage": "coverage",
}
_COLUMNS: dict[str, Callable[[Record], Any]] = {
    "split": lambda r: r["split"],
    "rank": lambda r: r["rank"],
    "model": lambda r: r["model"],
    # What tells rows apart stands where a narrow terminal shows it.
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
    "coverage": _number("coverage", ".1%"),
    "mean_lower": _span("mean_lower", "mean_upper"),
    "trials_ci_low": _span("trials_ci_low", "trials_ci_high"),
    "critical_met_share": _marked("critical_met_share", ".1%", "is_critical_below_bar", "n_critical"),
    "critical_met_ci_low": _span("critical_met_ci_low", "critical_met_ci_high", ".1%", "is_critical_small"),
    "mistake_share": _marked("mistake_share", ".1%", "is_mistake_below_bar", "n_mistakes_possible"),
    "mistake_ci_low": _span("mistake_ci_low", "mistake_ci_high", ".1%", "is_mistake_small"),
    "responses_with_mistake_share": _number("responses_with_mistake_share", ".1%"),
    "n_tasks_critical": lambda r: f"{r['n_tasks_critical']} and {r['n_tasks_mistakes'] or 0}",
    "critical_coverage": lambda r: f"{r['critical_coverage'] or 0:.1%} and {r['mistake_coverage'] or 0:.1%}",
    "n_trials": lambda r: r["n_trials"],
    "mean_chars_alnum": lambda r: None if r["mean_chars_alnum"] is None else round(r["mean_chars_alnum"]),
    "cost_usd": _number("cost_usd", ".2f"),
}
