"""Plan: the calls that a run would make, with their tokens and cost, without making any.

The tokens of a call are those measured on stored rows of the same configuration; without any,
prompts are counted with LiteLLM's local tokenizers, and lengths of responses are assumed, which
gives a range of costs. Unknown values are None, and the plan gives the reason.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import sql
from tasks.analyses.annotate import ANNOTATION
from tasks.analyses.phrases import EMBEDDINGS, NAMES, PHRASES
from tasks.analyses.review import REVIEW
from tasks.config.job import Job
from tasks.config.models import Analyst, Endpoint
from tasks.judge import neighbours
from tasks.llm.request import prices_of
from tasks.plan import estimate
from tasks.plan.estimate import Cells, Planned
from tasks.plan.judges import JUDGE_CALLS, JudgeCalls, identity_of, judges_to_call
from tasks.plan.verdicts import most_reply, plan_verdicts
from tasks.rules.variants import AUGMENTED
from tasks.run import missing_work
from tasks.run.calls import Analysis, Item
from tasks.run.judge_configs import (
    JudgeConfig,
    judge_configs,
    judge_target,
    target_of,
)
from tasks.run.missing_work import WantedTasks
from warehouse import Reader, Warehouse

ANALYSES = (ANNOTATION, REVIEW, PHRASES, EMBEDDINGS, NAMES)
"""The analyses that call models."""
UNKNOWN_BEFORE = {
    EMBEDDINGS.table: (
        "vectors of phrases that are not written yet; one call for each different phrase"
    ),
    NAMES.table: (
        "names of nodes of a tree that is not made yet; one call for each node, some of them up to"
        " three"
    ),
}
"""Table -> the calls that depend on the results of other calls."""


def plan(job: Job) -> list[Planned]:
    """Return the calls that `run` would make, by model and judge; the job has to be prepared
    (`prepare`).

    Raises:
        PipelineError: the data set is not ingested.
    """
    return [planned for planned, _ in plan_with_cells(job)]


def plan_with_cells(job: Job) -> list[tuple[Planned, Cells]]:
    """Return the rows of `plan`, each with its missing cells; only rows of a model, or of a judge
    on one, have any.
    """
    with Warehouse(job.warehouse).reader() as reader:
        wanted = missing_work.wanted_tasks(job, reader)
        conversations = missing_work.conversations_of(reader, wanted, wanted.task_ids)
        rows: list[tuple[Planned, Cells]] = []
        to_come: dict[str, list[str]] = {
            label: [] for label in missing_work.imported_models(job, wanted, reader)
        }
        for model in job.settings.models:
            cells = missing_work.missing_responses(job, wanted, reader, model)
            to_come[model.label] = [task_id for task_id, _ in cells]
            if not model.is_imported:
                messages = (
                    missing_work.messages_to(model, conversations[task_id]) for task_id, _ in cells
                )
                texts = ["\n".join(text for _, text in each) for each in messages]
                planned = _calls(reader, "sample", model, len(cells), "responses", prompts=texts)
                rows.append((planned, [(model.label, task_id, 1) for task_id, _ in cells]))
        writer = job.settings.rubric_writer
        if writer is not None and AUGMENTED in missing_work.wanted_rubrics(job):
            n_missing = len(missing_work.unworded_criteria(job, wanted, reader, AUGMENTED))
            rows.append((_calls(reader, "derive", writer, n_missing, "criterion_variants"), ()))
        judges = [
            plan_verdicts(job, wanted, reader, called, missing, conversations, label, tasks)
            for judge_config in judge_configs(job, wanted.benchmark)
            for missing in [missing_work.missing_verdicts(job, wanted, reader, judge_config)]
            for called in judges_to_call(reader, wanted, judge_config, missing)
            for label, tasks in to_come.items()
        ]
        control = [
            (_control(job, wanted, reader, judge_config, called), ())
            for judge_config in judge_configs(job, wanted.benchmark)
            if job.night is not None
            and job.settings.drift.verdicts
            and judge_config.judge_trial == 1
            for called in judges_to_call(reader, wanted, judge_config)
        ]
    return rows + _by_judge_and_model(judges) + control


def _by_judge_and_model(planned: Sequence[tuple[Planned, Cells]]) -> list[tuple[Planned, Cells]]:
    """Return the rows with all trials of a judge on a model combined into one row."""
    by_judge: dict[tuple[str, ...], list[tuple[Planned, Cells]]] = {}
    for each, cells in planned:
        by_judge.setdefault((each.label, each.cascade, each.model), []).append((each, cells))
    rows: list[tuple[Planned, Cells]] = []
    for of_row in by_judge.values():
        trials, cells_of_trials = zip(*of_row, strict=True)
        # The notes are those of the trial with the most calls.
        row = estimate.summed(max(trials, key=lambda trial: trial.calls), trials)
        rows.append((row, list(chain.from_iterable(cells_of_trials))))
    return rows


def plan_analyses(job: Job) -> list[Planned]:
    """Return the calls of the configured analyses; each has its own command and is not made by
    `run`.

    Raises:
        PipelineError: the data set is not ingested.
    """
    with Warehouse(job.warehouse).reader() as reader:
        missing = {analysis: analysis.missing(job, reader) for analysis in ANALYSES}
        unknown = UNKNOWN_BEFORE if any(missing[PHRASES].values()) else {}
        return [
            _analysis_calls(reader, analysis, analyst, items, unknown.get(analysis.table, ""))
            for analysis, by_analyst in missing.items()
            for analyst, items in zip(analysis.analysts(job), by_analyst.values(), strict=True)
        ]


def plan_neighbours(job: Job) -> list[Planned]:
    """Return the calls that `prbench neighbours` makes at most, by judge and arrangement; those of
    a run are free.
    """
    with Warehouse(job.warehouse).reader() as reader:
        note = "the calls that a run has made already, which are free"
        return [
            replace(
                _of_judge(
                    reader, each.judge_config, neighbours.STAGE, each.n_calls, each.arrangement
                ),
                note=note,
            )
            for each in neighbours.missing(job, reader)
        ]


def _of_judge(
    reader: Reader, judge_config: JudgeConfig, stage: str, n_calls: int, *beside: str
) -> Planned:
    """Return some calls of a judge, with the lengths of its stored ones; `beside` follows its
    label.
    """
    measured = estimate.measured_per_call(reader, JUDGE_CALLS, **identity_of(judge_config))
    label = ", ".join((judge_config.judge.label, *beside))
    return estimate.planned_calls(
        stage, label, n_calls, measured, prices_of(judge_target(judge_config.judge))
    )


def _analysis_calls(
    reader: Reader, analysis: Analysis, analyst: Analyst, items: Sequence[Item], note: str
) -> Planned:
    """Return the calls of an analyst for some items."""
    prompts = [item.prompt() for item in items[:: max(1, len(items) // estimate.COUNTED_PROMPTS)]]
    planned = _calls(
        reader, analysis.stage, analyst, len(items), analysis.table, analysis.by, prompts
    )
    return replace(planned, note=planned.note or note)


def _calls(
    reader: Reader,
    stage: str,
    caller: Endpoint,
    n_calls: int,
    table: str,
    by: str = "model",
    prompts: Sequence[str] = (),
) -> Planned:
    """Return some calls of a model, with the lengths of those in a table, whose column `by` names
    the model.
    """
    target = target_of(caller)
    identity = {by: caller.label, f"{by}_config_hash": target.config_hash}
    per_call = estimate.counted_per_call(
        estimate.measured_per_call(reader, table, **identity), target, prompts
    )
    prices = prices_of(target, of_batch=isinstance(caller, Analyst) and caller.mode == "batch")
    return estimate.planned_calls(
        stage, caller.label, n_calls, per_call, prices, most_reply(target)
    )


def _control(
    job: Job, wanted: WantedTasks, reader: Reader, judge_config: JudgeConfig, called: JudgeCalls
) -> Planned:
    """Return the calls for the control set in a night; a set that is not chosen yet has its
    configured size.
    """
    given = {
        **wanted.key,
        **judge_config.columns,
        "night": job.night,
    }
    (chosen,) = reader.rows(sql.read("queries/plan/control_calls"), given)
    n_left = chosen["n_calls"]
    if not chosen["n_members"]:
        n_left = math.ceil(job.settings.drift.verdicts / (called.judge_config.piece_size or 1))
    return replace(
        _of_judge(reader, called.judge_config, "drift", round(n_left * called.times)),
        cascade=called.note,
    )
