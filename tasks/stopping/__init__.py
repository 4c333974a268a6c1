"""Stopping: tasks in random order, block by block, until every comparison is settled.

Comparisons, their progress and the skipped tasks are in `tasks/run/missing_work.py`, because every
stage needs them; the rules are in `tasks/rules/stopping.py`.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

import sql
from tasks.config.job import Job
from tasks.config.models import Model
from tasks.console import notice
from tasks.rules.statistics.intervals import Floats, none_if_nan
from tasks.rules.stopping import OPEN, unbiased_means
from tasks.run import missing_work
from tasks.run.missing_work import EARLIER, PlannedComparison, Progress, StoppingPlan, WantedTasks
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse


@dataclass(frozen=True)
class TaskBlock:
    """A block: the comparisons that are looked at after it, and the tasks to evaluate before
    that.
    """

    number: int
    comparisons: tuple[PlannedComparison, ...]
    tasks: Mapping[str, frozenset[str]]
    """Model -> the tasks of the block."""

    def jobs(self, job: Job) -> list[Job]:
        """Return jobs narrowed to the block, one for each group of models with the same tasks."""
        by_tasks: dict[frozenset[str], list[Model]] = {}
        for model in job.settings.models:
            tasks = self.tasks.get(model.label)
            if tasks:
                by_tasks.setdefault(tasks, []).append(model)
        return [
            job.with_settings(models=tuple(models), stopping=None).model_copy(
                update={
                    "named_models": tuple(model.label for model in models),
                    "named_tasks": tuple(sorted(tasks)),
                    "limit": None,
                }
            )
            for tasks, models in by_tasks.items()
        ]


def next_block(progress: Sequence[Progress], after: int) -> TaskBlock | None:
    """Return the next block of the open comparisons; None if all are settled.

    `after` is the number of this run's last block. A comparison without a look at it, because the
    other model is not evaluated that far, goes on with the next block.
    """
    due: dict[int, list[PlannedComparison]] = {}
    for each in progress:
        number = max(each.block, after) + 1
        if not each.is_finished and number <= len(each.comparison.rule.ends):
            due.setdefault(number, []).append(each.comparison)
    if not due:
        return None
    number = min(due)
    tasks = dict[str, frozenset[str]]()
    for comparison in due[number]:
        start, end = (0, *comparison.rule.ends)[number - 1 : number + 1]
        for label in comparison.labels:
            tasks[label] = tasks.get(label, frozenset()).union(comparison.order[start:end])
    return TaskBlock(number, tuple(due[number]), tasks)


def upcoming_block(job: Job, after: int = 0) -> TaskBlock | None:
    """Return the next block in which a model of this run takes part."""
    with Warehouse(job.warehouse).reader() as reader:
        _, _, progress = _planned(job, reader)
    return _upcoming(job, progress, after)


def _upcoming(job: Job, progress: Sequence[Progress], after: int = 0) -> TaskBlock | None:
    here = {model.label for model in job.settings.models}
    return next_block([each for each in progress if each.comparison.labels & here], after)


def has_open_block(job: Job) -> bool:
    """Return whether a comparison of a job with `stopping` is open, or its scores are not stored
    yet.
    """
    with Warehouse(job.warehouse).reader() as reader:
        _, plan, progress = _planned(job, reader)
        lacks_scores = plan is not None and bool(progress) and not _has_scores(plan, reader)
    return lacks_scores or _upcoming(job, progress) is not None


def _planned(job: Job, reader: Reader) -> tuple[WantedTasks, StoppingPlan | None, list[Progress]]:
    wanted = missing_work.wanted_tasks(job, reader)
    plan = missing_work.stopping_plan(job, wanted, reader)
    return wanted, plan, plan.progress(reader) if plan else []


Values = dict[tuple[str, str], dict[str, float]]
"""Model and vintage -> task -> its score."""


def look_at(job: Job, block: TaskBlock) -> int:
    """Look at the comparisons of an evaluated block, store and print the looks, and return their
    number.

    A comparison that lacks values of a side has no look.
    """
    warehouse = Warehouse(job.warehouse)
    rows = list[dict[str, Any]]()
    with warehouse.reader() as reader:
        wanted, plan, _ = _planned(job, reader)
        assert plan is not None
        values = _values_of(wanted, plan, block.comparisons, reader)
        fields = missing_work.fields_of(wanted.key, wanted.task_ids, reader)
    here = {model.label for model in job.settings.models}
    for comparison in block.comparisons:
        tasks = comparison.order[: comparison.rule.ends[block.number - 1]]
        first, second = _sides_of(values, comparison, tasks)
        # Models of this run count as evaluated even if some of their calls failed.
        coverage = min(np.isfinite(each).mean() for each in (first, second))
        if coverage >= job.settings.coverage.min or comparison.labels <= here:
            row = _row(
                wanted, plan, comparison, block.number, first - second, _strata_of(fields, tasks)
            )
            rows.append(row | {"run_id": job.run_id, "created_at": datetime.now(UTC)})
    warehouse.write("stopping_looks", rows)
    warehouse.publish()
    for row in () if job.is_quiet else rows:
        notice(f"  {_described(row)}")
    return len(rows)


def last_looks(job: Job) -> list[dict[str, Any]]:
    """Return the last look at each nightly model against its earlier nights; none if nights do not
    use `stopping`.

    If a model has a look, no other comparison of it in that night is valid, because the looks
    decided on how many tasks it was evaluated.
    """
    with Warehouse(job.warehouse).reader() as reader:
        _, plan, _ = _planned(job, reader)
        if plan is None:
            return []
        of_night = {"stopping_id": plan.stopping_id, "compared_vintage": EARLIER}
        looks = reader.select(
            "stopping_looks", "* exclude (run_id, created_at)", order="model, block", **of_night
        )
    return list({look["model"]: look for look in looks}.values())


def _values_of(
    wanted: WantedTasks,
    plan: StoppingPlan,
    comparisons: Sequence[PlannedComparison],
    reader: Reader,
) -> Values:
    """Return the scores of both sides of these comparisons."""
    given = wanted.key | plan.judge_config.columns | {"score": plan.score_name}
    sides = {side for each in comparisons for side in (each.first, each.second)}
    named = [
        f"{side.vintage} {side.config_hash} {side.model}"
        for side in sides
        if side.vintage != EARLIER
    ]
    values: Values = defaultdict(dict)
    for row in reader.rows(sql.read("queries/stopping/values"), given | {"sides": named}):
        values[row["model"], row["vintage"]][row["task_id"]] = row["value"]
    for each in comparisons:
        if each.second.vintage == EARLIER:
            values[each.second.model, EARLIER] = missing_work.earlier_values(
                reader, given, each.first
            )
    return values


def _strata_of(fields: Mapping[str, str], tasks: Sequence[str]) -> np.ndarray:
    """Return the number of each task's stratum, in the order of the tasks."""
    return np.unique([fields[task] for task in tasks], return_inverse=True)[1]


def _sides_of(values: Values, comparison: PlannedComparison, tasks: Sequence[str]) -> list[Floats]:
    """Return the scores of both sides of a comparison, in the order of the tasks."""
    return [
        _in_order(values[side.model, side.vintage], tasks)
        for side in (comparison.first, comparison.second)
    ]


def _in_order(values: Mapping[str, float], tasks: Sequence[str]) -> Floats:
    """Return values in the order of the tasks; NaN for a task without a value."""
    return np.array([values.get(task, np.nan) for task in tasks])


def _row(
    wanted: WantedTasks,
    plan: StoppingPlan,
    comparison: PlannedComparison,
    number: int,
    differences: Floats,
    strata: np.ndarray,
) -> dict[str, Any]:
    rule = comparison.rule
    differences = np.where(
        np.abs(differences) < 1e-12, 0.0, differences
    )  # such a difference is due to rounding
    ends = rule.ends_at(differences[:, None])
    decision = str(rule.decisions(ends)[0])
    is_finished = decision != OPEN or number == len(rule.ends)
    unbiased = (
        unbiased_means(differences, differences[:, None], strata, rule)[0]
        if is_finished
        else np.nan
    )
    n_tasks = int(np.isfinite(differences).sum())
    return {
        **wanted.key,
        **plan.judge_config.columns,
        "stopping_id": plan.stopping_id,
        "score_name": plan.score_name,
        "model": comparison.first.model,
        "model_config_hash": comparison.first.config_hash,
        "vintage": comparison.first.vintage,
        "compared_model": comparison.second.model,
        "compared_config_hash": comparison.second.config_hash,
        "compared_vintage": comparison.second.vintage,
        "block": number,
        "n_tasks": n_tasks,
        "n_tasks_evaluated": len(differences),
        "n_tasks_planned": rule.n_planned,
        "mean_difference": float(np.nanmean(differences)) if n_tasks else None,
        "unbiased_difference": none_if_nan(unbiased),
        "sequence_low": none_if_nan(ends[0, 0]),
        "sequence_high": none_if_nan(ends[0, 1]),
        "comparison_alpha": rule.alpha,
        "least_difference": rule.least_difference,
        "decision": decision,
    }


def _described(row: Mapping[str, Any]) -> str:
    """Return a look in one line."""
    other = (
        row["compared_model"]
        if row["compared_vintage"] == row["vintage"]
        else row["compared_vintage"]
    )
    low, high, mean = (row[name] for name in ("sequence_low", "sequence_high", "mean_difference"))
    interval = "no interval yet" if low is None else f"{low:+.3f} to {high:+.3f}"
    difference = "no task with both" if mean is None else f"{mean:+.3f}"
    is_last = row["n_tasks_evaluated"] == row["n_tasks_planned"]
    decision = (
        "open after all tasks"
        if row["decision"] == OPEN and is_last
        else row["decision"].replace("_", " ")
    )
    return (
        f"{row['model']} - {other} after {row['n_tasks_evaluated']} of {row['n_tasks_planned']}"
        f" tasks: {difference} ({interval}), {decision}"
    )


def conclude(job: Job, n_looks: int, n_blocks: int) -> StageReport:
    """Store the scores on a random part of the tasks; return a report on settled comparisons and
    skipped responses.
    """
    warehouse = Warehouse(job.warehouse)
    report = StageReport("stopping", rows=n_looks)
    with warehouse.reader() as reader:
        wanted, plan, progress = _planned(job, reader)
        if plan is None or not progress:
            report.notes.append("nothing is compared, so all tasks are evaluated")
            return report
        rows = (
            []
            if not n_looks and _has_scores(plan, reader)
            else _scores(job, wanted, plan, progress, reader)
        )
    if rows:
        warehouse.write("stopping_scores", rows)
        warehouse.publish()
    decisions = Counter(each.decision.replace("_", " ") for each in progress if each.is_finished)
    decisions["unfinished"] = len(progress) - decisions.total()
    counts = ", ".join(f"{count} {name}" for name, count in sorted((+decisions).items()))
    report.notes.append(
        f"{len(progress)} comparisons: {counts}; {n_looks} looks after {n_blocks} blocks"
    )
    n_skipped = sum(map(len, wanted.left_out.values())) * len(job.trials)
    if n_skipped:
        report.notes.append(f"{n_skipped} responses of {len(wanted.left_out)} models not needed")
    return report


def _has_scores(plan: StoppingPlan, reader: Reader) -> bool:
    return bool(
        reader.value(
            "select count(*) from stopping_scores where stopping_id = ?", [plan.stopping_id]
        )
    )


def _scores(
    job: Job, wanted: WantedTasks, plan: StoppingPlan, progress: Sequence[Progress], reader: Reader
) -> list[dict[str, Any]]:
    """Return rows with the scores of models that were evaluated on a random part of the tasks."""
    rows: list[dict[str, Any]] = []
    for label in missing_work.left_out_of(progress):
        last = max(
            (each for each in progress if label in each.comparison.labels),
            key=lambda each: each.n_tasks,
        )
        rows += _rows_of(wanted, plan, label, last, reader)
    return [row | {"run_id": job.run_id, "created_at": datetime.now(UTC)} for row in rows]


def _rows_of(
    wanted: WantedTasks, plan: StoppingPlan, label: str, last: Progress, reader: Reader
) -> list[dict[str, Any]]:
    """Return a model's rows of `stopping_scores`; `last` is its last settled comparison, which
    ended its evaluation.
    """
    comparison = last.comparison
    side = comparison.first if comparison.first.model == label else comparison.second
    evaluated = list(comparison.order[: last.n_tasks])
    later = comparison.order[last.n_tasks :]
    given = wanted.key | {
        "model": side.model,
        "model_config_hash": side.config_hash,
        "vintage": side.vintage,
        "tasks": list(wanted.task_ids),
        "evaluated": evaluated,
    }
    figures = reader.rows(sql.read("queries/stopping/figures"), given)
    if not figures:
        return []
    scores = [figure.pop("task_scores") for figure in figures]
    columns = np.column_stack([_in_order(each, evaluated) for each in scores])
    first, second = _sides_of(_values_of(wanted, plan, [comparison], reader), comparison, evaluated)
    strata = _strata_of(missing_work.fields_of(wanted.key, wanted.task_ids, reader), evaluated)
    unbiased = unbiased_means(first - second, columns, strata, comparison.rule)
    ends = replace(comparison.rule, alpha=0.05).ends_at(columns)  # like all scores on leaderboards
    members: dict[str, set[str]] = defaultdict(set)
    for row in reader.select(
        "split_members", "split, task_id", **wanted.key, task_id=list(wanted.task_ids)
    ):
        members[row["split"]].add(row["task_id"])
    return [
        {
            **wanted.key,
            **figure,
            "stopping_id": plan.stopping_id,
            "n_tasks": len(of_figure),
            "n_tasks_evaluated": len(members[figure["split"]].intersection(evaluated)),
            "n_tasks_skipped": len(members[figure["split"]].intersection(later)),
            "sequence_low": none_if_nan(low),
            "sequence_high": none_if_nan(high),
            "unbiased_mean_score": none_if_nan(mean),
        }
        for figure, of_figure, (low, high), mean in zip(
            figures, scores, ends, unbiased, strict=True
        )
    ]
