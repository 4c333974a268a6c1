"""Plan: the calls that a run would make, with their tokens and cost, without making any.

The tokens of a call are those measured on stored rows of the same configuration; without any,
prompts are counted with LiteLLM's local tokenizers, and lengths of responses are assumed, which
gives a range of costs. Unknown values are None, and the plan gives the reason.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tasks.analyses.annotate import ANNOTATION
from tasks.analyses.phrases import EMBEDDINGS, NAMES, PHRASES
from tasks.analyses.review import REVIEW
from tasks.config.job import Job
from tasks.config.models import Analyst, Endpoint
from tasks.judge import neighbours
from tasks.llm.request import prices_of
from tasks.plan.estimate import (
    Planned,
    PlannedWork,
    counted_per_call,
    measured_per_call,
    planned_calls,
    reply_limit_of,
    step_of,
    summed,
)
from tasks.plan.judges import JudgeCalls, judges_to_call, plan_measured
from tasks.plan.verdicts import Planning, ResponsesToJudge, plan_verdicts
from tasks.rules.variants import AUGMENTED
from tasks.run import missing_work
from tasks.run.judge_configs import JudgeConfig, judge_configs, target_of
from tasks.run.missing_work import MissingVerdicts, messages_to, missing_verdicts
from tasks.succession.sample import sample_of
from warehouse import Reader, Warehouse

ANALYSES = (ANNOTATION, REVIEW, PHRASES, EMBEDDINGS, NAMES)
"""The analyses that call models."""
CALLS_AFTER_PHRASES = {
    EMBEDDINGS.table: (
        "vectors of phrases that are not written yet; one call for each different phrase"
    ),
    NAMES.table: (
        "names of nodes of a tree that is not made yet; one call for each node, some of them up to"
        " three"
    ),
}
"""Table -> a note on the calls that are unknown as long as phrases are missing."""


def plan(job: Job) -> list[Planned]:
    """Return the calls that `run` would make, by model and judge, for ingested and assembled tasks.

    Raises:
        PipelineError: the data set is not ingested.
    """
    return [work.planned for work in plan_with_cells(job)]


def plan_with_cells(job: Job) -> list[PlannedWork]:
    """Return the rows of `plan`, each with its missing cells.

    Rows on rewriting rubrics and on control sets have no cells: they are about no model.
    """
    with Warehouse(job.warehouse).reader() as reader:
        job_tasks = missing_work.wanted_tasks(job, reader)
        conversations = missing_work.assembled_conversations(reader, job_tasks, job_tasks.task_ids)
        planning = Planning(job, reader, job_tasks, conversations)
        expected_tasks = _expected_tasks(planning)
        return [
            *_plan_samples(planning, expected_tasks),
            *_plan_rewriting(planning),
            *_plan_all_verdicts(planning, expected_tasks),
            *_plan_control_sets(planning),
        ]


def _expected_tasks(planning: Planning) -> dict[str, list[str]]:
    """Return, by label, the task of each response that is not sampled yet; trials repeat a task.

    Imported models that are not configured come first; their stored responses are only judged, so
    their lists are empty.
    """
    job = planning.job
    imported = missing_work.imported_models(job, planning.job_tasks, planning.reader)
    expected_tasks: dict[str, list[str]] = {label: [] for label in imported}
    for model in job.settings.models:
        cells = missing_work.missing_responses(job, planning.job_tasks, planning.reader, model)
        expected_tasks[model.label] = [task_id for task_id, _ in cells]
    return expected_tasks


def _plan_samples(
    planning: Planning,
    expected_tasks: Mapping[str, Sequence[str]],
) -> Iterator[PlannedWork]:
    """Yield the calls of each model for its responses."""
    for model in planning.job.settings.models:
        if model.is_imported:
            continue
        task_ids = expected_tasks[model.label]
        prompts = []
        for task_id in task_ids:
            messages = messages_to(model, planning.conversations[task_id])
            prompts.append("\n".join(text for _, text in messages))
        planned = _plan_calls(
            planning.reader,
            "sample",
            model,
            len(task_ids),
            "responses",
            prompts=prompts,
        )
        # One call for each response.
        yield PlannedWork(planned, [(model.label, task_id, 1) for task_id in task_ids])


def _plan_rewriting(planning: Planning) -> Iterator[PlannedWork]:
    """Yield the calls of the model that rewrites rubrics, if a judge needs them."""
    job = planning.job
    reader = planning.reader
    writer = job.settings.rubric_writer
    if writer is not None and AUGMENTED in missing_work.wanted_rubrics(job):
        to_rewrite = missing_work.criteria_to_rewrite(job, planning.job_tasks, reader, AUGMENTED)
        yield PlannedWork(
            _plan_calls(reader, "derive", writer, len(to_rewrite), "criterion_variants")
        )


def _plan_all_verdicts(
    planning: Planning,
    expected_tasks: Mapping[str, Sequence[str]],
) -> list[PlannedWork]:
    """Return the calls of each judge on each model; all trials of a judge are in one row."""
    reader = planning.reader
    job_tasks = planning.job_tasks
    rows = reader.select("tasks", "task_id, n_criteria", **job_tasks.key)
    n_criteria = {row["task_id"]: row["n_criteria"] for row in rows}
    work_by_row: dict[tuple[str, str, str], list[PlannedWork]] = {}
    for judge_config in judge_configs(planning.job, job_tasks.benchmark):
        unjudged = missing_verdicts(planning.job, job_tasks, reader, judge_config)
        for work in _plan_by_model(planning, judge_config, unjudged, expected_tasks, n_criteria):
            row_key = (work.planned.label, work.planned.cascade, work.planned.model)
            work_by_row.setdefault(row_key, []).append(work)
    return [_combined(trials) for trials in work_by_row.values()]


def _plan_by_model(
    planning: Planning,
    judge_config: JudgeConfig,
    unjudged: Sequence[MissingVerdicts],
    expected_tasks: Mapping[str, Sequence[str]],
    n_criteria: Mapping[str, int],
) -> Iterator[PlannedWork]:
    """Yield the calls of a judge, or of each judge of a cascade, on each model.

    `unjudged` are the stored responses that lack verdicts, `expected_tasks` those of each model
    that are not sampled yet, and `n_criteria` is the number of criteria of each task.
    """
    for judge_calls in judges_to_call(planning.reader, planning.job_tasks, judge_config, unjudged):
        for model, task_ids in expected_tasks.items():
            responses = ResponsesToJudge(
                model=model,
                stored_responses=[response for response in unjudged if response.model == model],
                expected_tasks=task_ids,
                n_criteria=n_criteria,
            )
            yield plan_verdicts(planning, judge_calls, responses)


def _combined(trials: Sequence[PlannedWork]) -> PlannedWork:
    """Return one row for all trials; its notes are those of the trial with the most calls."""
    planned = [work.planned for work in trials]
    cells = [cell for work in trials for cell in work.cells]
    largest = max(planned, key=lambda row: row.calls)
    return PlannedWork(summed(largest, planned), cells)


def _plan_control_sets(planning: Planning) -> Iterator[PlannedWork]:
    """Yield the calls of each judge for its control set, in a night."""
    job = planning.job
    if job.night is None or not job.settings.drift.verdicts:
        return
    for judge_config in judge_configs(job, planning.job_tasks.benchmark):
        # Only the first repetition has a control set, and a panel has none.
        if judge_config.judge_trial == 1 and not judge_config.panel:
            for judge_calls in judges_to_call(planning.reader, planning.job_tasks, judge_config):
                yield PlannedWork(_plan_control_set(planning, judge_config, judge_calls))


def _plan_control_set(
    planning: Planning,
    judge_config: JudgeConfig,
    judge_calls: JudgeCalls,
) -> Planned:
    """Return the calls for a control set; one that is not chosen yet has its configured size."""
    parameters = {
        **planning.job_tasks.key,
        **judge_config.columns,
        "night": planning.job.night,
    }
    (control_set,) = planning.reader.query("queries/plan/control_calls", parameters)
    n_calls = control_set["n_calls"]
    called_judge = judge_calls.judge_config
    if not control_set["n_members"]:
        n_calls = math.ceil(planning.job.settings.drift.verdicts / (called_judge.piece_size or 1))
    planned = plan_measured(
        planning.reader,
        called_judge,
        "drift",
        round(n_calls * judge_calls.calls_per_piece),
        called_judge.judge.label,
    )
    return replace(planned, cascade=judge_calls.note)


def plan_analyses(job: Job) -> list[Planned]:
    """Return the calls of the configured analyses; each has its own command and is not made by
    `run`.

    Raises:
        PipelineError: the data set is not ingested.
    """
    planned = []
    with Warehouse(job.warehouse).reader() as reader:
        missing_items = {analysis: analysis.missing(job, reader) for analysis in ANALYSES}
        has_missing_phrases = any(missing_items[PHRASES].values())
        for analysis, items_by_analyst in missing_items.items():
            note = CALLS_AFTER_PHRASES.get(analysis.table, "") if has_missing_phrases else ""
            for analyst in analysis.analysts(job):
                items = items_by_analyst[analyst.label]
                counted_items = items[:: step_of(len(items))]
                calls = _plan_calls(
                    reader,
                    analysis.stage,
                    analyst,
                    len(items),
                    analysis.table,
                    analysis.analyst_column,
                    prompts=[item.prompt() for item in counted_items],
                )
                planned.append(calls.with_notes(note))
    return planned


def plan_neighbours(job: Job) -> list[Planned]:
    """Return the calls that `prbench neighbours` makes, by judge and arrangement; those of a run
    are free.
    """
    planned = []
    with Warehouse(job.warehouse).reader() as reader:
        for arranged in neighbours.missing_arrangements(job, reader):
            judge_config = arranged.judge_config
            label = f"{judge_config.judge.label}, {arranged.arrangement}"
            calls = plan_measured(reader, judge_config, neighbours.STAGE, arranged.n_calls, label)
            note = "the calls that a run has made already, which are free"
            planned.append(calls.with_notes(note))
    return planned


def plan_succession(job: Job) -> list[Planned]:
    """Return the calls that `prbench succeed` makes for its first sample, by judge and model."""
    with Warehouse(job.warehouse).reader() as reader:
        sample = sample_of(job, reader)
        job_tasks = missing_work.wanted_tasks(job, reader)
        task_ids = []
        for _, unjudged in sample.missing_verdicts:
            task_ids += [response.task_id for response in unjudged]
        conversations = missing_work.assembled_conversations(reader, job_tasks, task_ids)
        planning = Planning(job, reader, job_tasks, conversations)
        planned = []
        for judge_config, unjudged in sample.missing_verdicts:
            models = sorted({response.model for response in unjudged})
            # All responses of a sample are stored.
            expected_tasks = dict.fromkeys(models, ())
            for work in _plan_by_model(planning, judge_config, unjudged, expected_tasks, {}):
                planned.append(work.planned)
        return planned


def _plan_calls(
    reader: Reader,
    stage: str,
    endpoint: Endpoint,
    n_calls: int,
    table: str,
    label_column: str = "model",
    prompts: Sequence[str] = (),
) -> Planned:
    """Return the plan of `n_calls` calls of a model.

    Their tokens are those of the model's stored calls: the rows of `table` with its label in
    `label_column`. Without any, the tokens of `prompts` are counted.
    """
    target = target_of(endpoint)
    identity = {label_column: endpoint.label, f"{label_column}_config_hash": target.config_hash}
    measured = measured_per_call(reader, table, **identity)
    per_call = counted_per_call(measured, target, prompts)
    prices = prices_of(target, of_batch=isinstance(endpoint, Analyst) and endpoint.mode == "batch")
    return planned_calls(stage, endpoint.label, n_calls, per_call, prices, reply_limit_of(target))
