"""What must be known about a leaderboard, below it."""

from collections.abc import Sequence
from typing import Any

from tasks.config.job import Job
from tasks.llm.embedded import is_embedded
from tasks.rules.text.numbers import rank_notes, some

Record = dict[str, Any]
OFFICIAL_HARD = "official hard"
"""The label, in the breakdown `subset`, of all tasks of a split that is hard by the data set's own choice."""
_JUDGING = ("judge", "judge_trial", "grading", "judge_config_hash", "template_hash")


def is_clipped(record: Record) -> bool:
    """Whether the mean, or an end of its interval, is clipped."""
    raw = [record.get(name) for name in ("raw_mean_score", "raw_ci_low", "raw_ci_high")]
    shown = [record.get(name) for name in ("mean_score", "ci_low", "ci_high")]
    return any(a is not None and b is not None and a < b for a, b in zip(raw, shown, strict=True))


_SMALL_MARKS = {"is_small": "ci_low", "is_critical_small": "critical_met_ci_low", "is_mistake_small": "mistake_ci_low"}

_HIDING = {
    True: "Imported from a tool that stores failed judge calls as decisions, so some scores may be wrong",
    None: "Imported, and not known whether failed judge calls count as decisions",
}
"""`may_hide_failures` -> what it means."""


def notes_on(job: Job, records: Sequence[Record]) -> list[str]:
    """Notes on the figures, one line each."""
    is_one_judge, lines = len({r["judge"] for r in records}) == 1, list[str]()
    unjudged = [r for r in records if r.get("is_judged") is False]
    low = [r for r in records if r.get("is_below_bar") and r not in unjudged]
    if low:
        bar = f"Below the coverage bar of {job.settings.coverage.min:.0%}"
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
    names = [name for name in ("split", "label", *_JUDGING) if name in records[0]]
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
        "On a random part of the tasks, since all comparisons of the model are settled; the interval allows for that: "
        f"{_models(parts, is_one_judge)}"
    ]
    if any(r["ci_low"] is None for r in parts):
        lines.append("Without an interval of these: none holds until all tasks are evaluated, or too few differ.")
    means = {r["model"]: r["unbiased_mean_score"] for r in parts if r["unbiased_mean_score"] is not None}
    shown = ", ".join(f"{model} {mean:.3f}" for model, mean in means.items())
    return [*lines, f"Without the bias of stopping: {shown}"] if shown and is_one_judge else lines


def _on_subsets(records: Sequence[Record]) -> list[str]:
    """What the labels of `--by subset` mean."""
    labels = {r.get("label") for r in records}
    if not labels & {"full", OFFICIAL_HARD, "hard"}:
        return []
    lines = {
        "full": "full: all tasks of the split",
        OFFICIAL_HARD: f"{OFFICIAL_HARD}: all tasks of a split that the data set itself calls hard",
        "hard": "hard: those in your latest hard subset (`prbench select-hard`)",
    }
    found = [line for label, line in lines.items() if label in labels]
    if "hard" not in labels:
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
    """Notes on intervals that are missing."""
    from tasks.rules.statistics.intervals import FEWEST_OTHERS

    lines = []
    if any(r.get(mark) and r[low] is None for r in records for mark, low in _SMALL_MARKS.items()):
        lines.append(f"No interval: fewer than {FEWEST_OTHERS} tasks differ from the most common value.")
    if any(r.get("n_tasks", 0) > 1 and r["is_small"] is None for r in records):
        lines.append("Some intervals are missing; `prbench aggregate` computes them.")
    return lines


def _models(records: Sequence[Record], is_one_judge: bool) -> str:
    return some(sorted(r["model"] if is_one_judge else f"{r['model']} ({r['judge']})" for r in records))
