"""Select the hard subset: of each field the tasks that the panel's models found hardest, as rows of a new version."""

from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

from tasks.benchmarks import load_benchmark
from tasks.reports import StageReport
from tasks.rules.errors import PipelineError
from tasks.rules.hardness import HardSubsetError, select_hardest, selection_id, wanted_size
from tasks.scope import judgings
from tasks.settings import Job
from tasks.sources import source_of
from warehouse import Reader, Warehouse


def select_hard(job: Job, *, must_select: bool = True) -> StageReport:
    """Select for every field of the job's revision, by the primary score under one judging.

    The universe are the admitted tasks of the chosen splits that are complete for every model of the panel. A field
    whose universe is too small, or under the coverage bar, is refused: with `must_select` as an error, else as a
    warning. The same basis gives the same selection id, and no new rows.

    Raises:
        PipelineError: a field is refused, or the judging to select by is not clear.
    """
    benchmark, source = source_of(job)
    warehouse = Warehouse(job.warehouse)
    report = StageReport("select-hard")
    with warehouse.reader() as reader:
        fields = _admitted(reader, benchmark.name, source.revision, source.splits)
        try:
            scores = _scores(reader, job, benchmark.name, source.revision, benchmark.primary_score.score_name)
        except HardSubsetError as error:
            if must_select:
                raise PipelineError(f"select-hard: {error}") from error
            report.warnings.append(f"no hard subset: {error}")
            return report
        stored = {row["selection_id"] for row in reader.rows("select distinct selection_id from hard_subset")}
    for field, task_ids in sorted(fields.items()):
        try:
            rows = _select_field(job, field, task_ids, scores)
        except HardSubsetError as error:
            if must_select:
                raise PipelineError(f"select-hard: {field}: {error}") from error
            report.warnings.append(f"no hard subset for {field}: {error}")
            continue
        key = {"benchmark": benchmark.name, "dataset_revision": source.revision}
        if rows[0]["selection_id"] not in stored:
            warehouse.write("hard_subset", [key | row for row in rows])
            report.rows += len(rows)
        report.notes.append(f"{field}: {len(rows)} of {len(task_ids)} tasks are hard")
    warehouse.publish()
    return report


def _admitted(reader: Reader, benchmark: str, revision: str, splits: tuple[str, ...]) -> dict[str, set[str]]:
    fields: dict[str, set[str]] = defaultdict(set)
    for row in reader.rows(
        "select field, task_id from tasks where benchmark = ? and dataset_revision = ? and is_admitted "
        "and list_has_any(splits, ?) and field is not null",
        [benchmark, revision, list(splits)],
    ):
        fields[row["field"]].add(row["task_id"])
    return fields


def _scores(reader: Reader, job: Job, benchmark: str, revision: str, score_name: str) -> dict[str, dict[str, float]]:
    """Task scores by model label, of the panel's models under the judging that selects.

    Of a label that was configured in several ways, the way that was sampled last counts.
    """
    panel_id = _panel(reader, job, benchmark, revision)
    panel = job.settings.hard_subset.panel
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    for row in reader.rows(
        """
        with latest as (
            select model, arg_max(model_config_hash, created_at) as model_config_hash
            from responses
            inner join (select distinct model, model_config_hash from task_scores where panel_id = $panel)
                using (model, model_config_hash)
            where benchmark = $benchmark and dataset_revision = $revision
            group by model
        )
        select model, task_id, value
        from task_scores inner join latest using (model, model_config_hash)
        where panel_id = $panel and score_name = $score and is_complete
        """,
        {"panel": panel_id, "benchmark": benchmark, "revision": revision, "score": score_name},
    ):
        scores[row["model"]][row["task_id"]] = row["value"]
    if panel == "all":
        return scores
    unknown = [model for model in panel if model not in scores]
    if unknown:
        raise HardSubsetError(f"{unknown[0]!r} of hard_subset.panel has no complete task; known: {', '.join(scores)}")
    return {model: scores[model] for model in panel}


def _panel(reader: Reader, job: Job, benchmark: str, revision: str) -> int:
    """The key of the judging that selects: the first configured judge's, or the only one that there is."""
    found = reader.rows(
        "select distinct panel_id, judge, judge_config_hash, template_hash, grading, judge_trial from series "
        "where benchmark = ? and dataset_revision = ? and vintage = ?",
        [benchmark, revision, job.vintage],
    )
    configured = judgings(job, load_benchmark(benchmark))
    if job.named_judges:
        found = [row for row in found if row["judge"] in job.named_judges]
    elif configured:
        wanted = configured[0].columns
        found = [row for row in found if all(row[name] == value for name, value in wanted.items())]
    if not found:
        raise HardSubsetError("no verdict of the configured judge is stored; run `prbench judge` first")
    if len(found) > 1:
        names = ", ".join(sorted({row["judge"] for row in found}))
        raise HardSubsetError(f"verdicts of several judges are stored ({names}); name the one to use with --judge")
    return int(found[0]["panel_id"])


def _select_field(
    job: Job, field: str, task_ids: set[str], scores: dict[str, dict[str, float]]
) -> list[dict[str, Any]]:
    rule = job.settings.hard_subset
    size = wanted_size(len(task_ids), rule.share, field)
    models = sorted(scores)
    if not models:
        raise HardSubsetError("no model of the panel has a complete task")
    universe = {
        task_id: [scores[model][task_id] for model in models]
        for task_id in sorted(task_ids)
        if all(task_id in scores[model] for model in models)
    }
    coverage = len(universe) / len(task_ids)
    if coverage < job.settings.coverage.min:
        raise HardSubsetError(
            f"{len(universe)} of {len(task_ids)} tasks are complete for all {len(models)} models "
            f"({coverage:.1%}, coverage.min is {job.settings.coverage.min:.1%})"
        )
    selected = select_hardest(universe, size)
    identity = selection_id(job.settings.benchmark, field, sorted(universe.items()), models, size)
    now = datetime.now(UTC)
    return [
        {
            "selection_id": identity, "field": field, "task_id": task.task_id, "rank": task.rank,
            "mean_score": task.mean_score, "n_models": len(models), "panel": models, "selected_at": now,
        }
        for task in selected
    ]  # fmt: skip
