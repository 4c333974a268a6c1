"""A leaderboard as people read it: only informative columns, with marks, and notes below."""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from tasks.compare.leaderboard import OFFICIAL_HARD
from tasks.config.job import Job
from tasks.llm.embedded import is_embedded
from tasks.rules.records import Table
from tasks.rules.text.numbers import SMALL_MARK, coverage_text, rank_notes

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
    names = [*shown[:1], *_label(table.columns), *shown[1:]]
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
    label = _label(table.columns) if judging else []
    return [tuple(record[name] for name in ("split", *label, *judging)) for record in records]


def _label(columns: Sequence[str]) -> list[str]:
    """The column of the breakdown, which follows the split, if there is one."""
    return [name for name in columns[1:2] if name not in _COLUMNS]


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
    n, full = record["n_tasks"], record["n_tasks_full"]
    return f"{n} of {record['n_tasks_wanted']}{f', {full} in all trials' if full < n else ''}"


TITLES = {
    "judge_trial": "judge trial", "judge_config_hash": "judge configuration", "template_hash": "template",
    "model_config_hash": "model configuration", "cost_usd": "cost in USD", "ci_low": "95 % interval",
    "raw_mean_score": "unclipped score", "rank_low": "possible ranks", "trials_ci_low": "interval over trials",
    "mean_lower": "possible range", "n_tasks": "tasks", "n_trials": "trials", "mean_chars_alnum": "characters",
    "critical_met_share": "critical criteria met", "critical_met_ci_low": "95 % interval",
    "mistake_share": "critical mistakes", "mistake_ci_low": "95 % interval",
    "responses_with_mistake_share": "responses with a mistake", "n_tasks_critical": "tasks",
    "critical_coverage": "coverage",
}  # fmt: skip
_COLUMNS: dict[str, Callable[[Record], Any]] = {
    **{name: itemgetter(name) for name in ("split", "rank", "model")},
    # What distinguishes rows comes first, where a narrow terminal shows it.
    **{name: itemgetter(name) for name in ("judge", "judge_trial")},
    "grading": lambda r: r["grading"].replace("_", " "),
    "vintage": itemgetter("vintage"),
    **{name: _number(name, ".8") for name in _OWNERS},
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
    "n_trials": itemgetter("n_trials"),
    "mean_chars_alnum": lambda r: None if r["mean_chars_alnum"] is None else round(r["mean_chars_alnum"]),
    "cost_usd": _number("cost_usd", ".2f"),
}


_SMALL_MARKS = {"is_small": "ci_low", "is_critical_small": "critical_met_ci_low", "is_mistake_small": "mistake_ci_low"}

_HIDING = {
    True: "Imported from a tool that stores failed judge calls as decisions, so some scores may be wrong",
    None: "Imported, and not known whether failed judge calls count as decisions",
}
"""`may_hide_failures` -> what it means."""
_MOST_NAMED = 5
"""So many models stand in a note; of the others it says how many they are."""


def notes_on(job: Job, records: Sequence[Record]) -> list[str]:
    """Notes on the figures, one line each."""
    is_one_judge = not is_worth_showing("judge", records)
    lines = [f"Judge: {judge}" for judge in {r["judge"] for r in records}] if is_one_judge else []
    unjudged = [r for r in records if r.get("is_judged") is False]
    low = [r for r in records if r.get("is_below_bar") and r not in unjudged]
    if low:
        bar = f"{BELOW_BAR} below the coverage bar of {job.settings.coverage.min:.0%}"
        lines.append(f"{bar}, so based on only part of the split: {_models(low, is_one_judge)}")
    lines += _on_random_parts(records, is_one_judge)
    if unjudged:
        lines.append(f"Not judged on a split by this judge: {_models(unjudged, is_one_judge)}")
    for may_hide, said in _HIDING.items():
        if hiding := [r for r in records if r.get("may_hide_failures", False) is may_hide and r not in unjudged]:
            lines.append(f"{said}: {_models(hiding, is_one_judge)}")
    lines += _on_subsets(records)
    lines += _on_annotations(records)
    if "n_tasks_ranked" in records[0]:
        lines += rank_notes(_boards(records))
    if any(map(is_clipped, records)):
        lines.append("A mean below 0 is shown as 0; ranks and `prbench diff` compare the unclipped means.")
    lines += _on_intervals(records)
    embedded = {
        judge.label
        for judge in job.settings.judges
        if any(is_embedded(asked.name) for asked in (judge.cascade.members if judge.cascade else (judge,)))
    }
    if embedded & {r["judge"] for r in records}:
        lines.append("The judge is the embedded model, which is far too small to judge: the figures mean nothing.")
    return lines


def _boards(records: Sequence[Record]) -> list[list[Record]]:
    """The rows that are ranked together: those of one vintage where a model has rows of several."""
    names = ["split", *_label(list(records[0])), *_JUDGING]
    if len({tuple(r[name] for name in (*names, "model", "model_config_hash")) for r in records}) < len(records):
        names.append("vintage")
    boards: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        key = tuple(record[name] for name in names)
        boards.setdefault(key, []).append(record)
    return [*boards.values()]


def _on_random_parts(records: Sequence[Record], is_one_judge: bool) -> list[str]:
    """Which rows rest on a random part of the tasks, since their comparisons are settled."""
    parts = [r for r in records if r.get("n_tasks_skipped")]
    if not parts:
        return []
    lines = [
        f"{RANDOM_PART} on a random part of the tasks, since all comparisons of the model are settled; the interval "
        f"allows for that: {_models(parts, is_one_judge)}"
    ]
    if any(r["ci_low"] is None for r in parts):
        lines.append(f"{RANDOM_PART} without an interval: none holds until all tasks are evaluated, or too few differ.")
    means = {r["model"]: r["unbiased_mean_score"] for r in parts if r["unbiased_mean_score"] is not None}
    shown = ", ".join(f"{model} {mean:.3f}" for model, mean in means.items())
    return [*lines, f"Without the bias of stopping: {shown}"] if shown and is_one_judge else lines


def _on_subsets(records: Sequence[Record]) -> list[str]:
    """What the labels of `--by subset` mean."""
    labels = {r.get("subset") for r in records} - {None}
    lines = {
        "full": "full: all tasks of the split",
        OFFICIAL_HARD: f"{OFFICIAL_HARD}: all tasks of a split that the data set itself calls hard",
        "hard": "hard: those in your latest hard subset (`prbench select-hard`)",
    }
    found = [line for label, line in lines.items() if label in labels]
    if labels and "hard" not in labels:
        found.append("No hard subset of your own is selected yet; `prbench select-hard` does it.")
    return found


def _on_annotations(records: Sequence[Record]) -> list[str]:
    """Which labels are those of annotators."""
    if not any(r.get("n_tasks_annotated") for r in records):
        return []
    which = "All" if all(r["n_tasks_annotated"] == r["n_tasks_wanted"] for r in records) else "Some"
    how = "from a model (`prbench annotate`), because the data set gives none"
    return [f"{which} labels come {how}: see the table labelled_tasks."]


def _on_intervals(records: Sequence[Record]) -> list[str]:
    """Notes on intervals that may be too narrow or are missing."""
    marked = [r[low] for r in records for mark, low in _SMALL_MARKS.items() if r.get(mark)]
    lines = []
    if marked:
        from tasks.rules.statistics.intervals import FEWEST_OTHERS, SMALL

        if any(low is not None for low in marked):
            lines.append(f"{SMALL_MARK} fewer than {SMALL} tasks, or few that differ: the interval may be too narrow")
        if None in marked:
            lines.append(f"No interval: fewer than {FEWEST_OTHERS} tasks differ from the most common value.")
    if any(r.get("n_tasks", 0) > 1 and r["is_small"] is None for r in records):
        lines.append("Some intervals are missing; `prbench aggregate` computes them.")
    return lines


def _models(records: Sequence[Record], is_one_judge: bool) -> str:
    names = sorted({r["model"] if is_one_judge else f"{r['model']} ({r['judge']})" for r in records})
    n_more = len(names) - _MOST_NAMED
    return ", ".join(names) if n_more < 2 else f"{', '.join(names[:_MOST_NAMED])} and {n_more} more"
