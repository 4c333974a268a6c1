"""Plan: the calls that a run would make, and what they would use and cost. It makes none.

Tokens a call are those measured on stored rows of the same configuration; without any, prompts are counted with
LiteLLM's local tokenizers, and lengths of answers are assumed, which gives a range of costs. What is not known stays
None, and the plan says why.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sql
from tasks.annotate import ANNOTATION
from tasks.capabilities import EMBEDDINGS, NAMES, PHRASES
from tasks.config.job import Job
from tasks.config.models import ORIGINAL, Analyst, Model
from tasks.judge.criteria import ContextFit, context_fit_of
from tasks.llm import Target, batch_prices_of, most_answer_tokens, prices_of
from tasks.plan.cascades import Asked, asked_for
from tasks.plan.estimate import (
    COUNTED,
    COUNTED_PROMPTS,
    Planned,
    counted_per_prompt,
    measured_per_call,
    planned_calls,
    summed,
)
from tasks.plan.former_templates import judged_before
from tasks.review import REVIEW
from tasks.rules.errors import PipelineError
from tasks.rules.variants import AUGMENTED
from tasks.run.asking import Analysis, Item
from tasks.run.judgings import Judging, judge_target, judgings, target_of
from tasks.run.missing_work import (
    Conversation,
    MissingVerdicts,
    WantedTasks,
    conversations_of,
    imported_models,
    messages_to,
    missing_responses,
    missing_verdicts,
    unworded_criteria,
    wanted_rubrics,
    wanted_tasks,
)
from warehouse import Reader, Warehouse

_JUDGE_CALLS = f"({sql.read('questions/plan/judge_calls')})"
"""The calls that decided on a criterion, and those that searched the chunks of a long answer."""
ANALYSES = (ANNOTATION, REVIEW, PHRASES, EMBEDDINGS, NAMES)
"""What analysts can be asked."""
UNKNOWN_BEFORE = {
    EMBEDDINGS.table: "vectors of phrases that are not written yet; one call for each different phrase",
    NAMES.table: "names of nodes of a tree that is not made yet; one call for each node, some of them up to three",
}
"""Table -> the calls that follow from calls which are not made yet."""


def plan(job: Job) -> list[Planned]:
    """What `run` would call, by model and judge.

    Raises:
        PipelineError: the data set is not ingested, or its conversations are not assembled.
    """
    with Warehouse(job.warehouse).reader() as reader:
        wanted = wanted_tasks(job, reader)
        conversations = conversations_of(reader, wanted, wanted.task_ids)
        if len(conversations) < len(wanted.task_ids):
            raise PipelineError("the conversations are not assembled; run `prbench assemble` first, it makes no call")
        models: list[Planned] = []
        to_come: dict[str, list[str]] = {label: [] for label in imported_models(job, wanted, reader)}
        for model in job.settings.models:
            cells = missing_responses(job, wanted, reader, model, retry_failed=False)
            to_come[model.label] = [task_id for task_id, _ in cells]
            models += [] if model.is_imported else [_samples(reader, model, cells, conversations)]
        judges = [
            _verdicts(wanted, reader, asked, missing, conversations, label, tasks)
            for judging in judgings(job, wanted.benchmark)
            for missing in [missing_verdicts(job, wanted, reader, judging, retry_failed=False)]
            for asked in asked_for(reader, wanted, judging, missing)
            for label, tasks in to_come.items()
        ]
        control = [
            _control(job, wanted, reader, judging, asked)
            for judging in judgings(job, wanted.benchmark)
            if job.night is not None and job.settings.drift.verdicts and judging.judge_trial == 1
            for asked in asked_for(reader, wanted, judging)
        ]
        rewording = [_rewording(job, wanted, reader)] if AUGMENTED in wanted_rubrics(job) else []
    return models + rewording + _by_judge_and_model(judges) + control


def _by_judge_and_model(planned: Sequence[Planned]) -> list[Planned]:
    """One row for all trials of a judge."""
    rows: dict[tuple[str, ...], list[Planned]] = {}
    for each in planned:
        rows.setdefault((each.label, each.asked_for, each.model), []).append(each)
    # What is said of a judge's calls is that of a trial that has some.
    return [summed(max(trials, key=lambda trial: trial.calls), trials) for trials in rows.values()]


def plan_analyses(job: Job) -> list[Planned]:
    """What the configured analyses would call, each by its own command and not by `run`.

    Raises:
        PipelineError: the data set is not ingested, or its conversations are not assembled.
    """
    with Warehouse(job.warehouse).reader() as reader:
        missing = {analysis: analysis.missing(job, reader) for analysis in ANALYSES}
        has_phrases = not any(missing[PHRASES].values())
        return [
            _asked(reader, analysis, analyst, items, "" if has_phrases else UNKNOWN_BEFORE.get(analysis.table, ""))
            for analysis, by_analyst in missing.items()
            for analyst, items in zip(analysis.analysts(job), by_analyst.values(), strict=True)
        ]


def _asked(reader: Reader, analysis: Analysis, analyst: Analyst, items: Sequence[Item], note: str) -> Planned:
    """The calls of an analyst about items."""
    target, by = target_of(analyst), analysis.by
    prices = batch_prices_of(target) if analyst.mode == "batch" else prices_of(target)
    condition = f"{by} = ? and {by}_config_hash = ?"
    per_call = measured_per_call(reader, analysis.table, condition, [analyst.label, target.config_hash])
    if per_call.prompt is None and items:
        prompts = [item.prompt for item in items[:: max(1, len(items) // COUNTED_PROMPTS)]]
        per_call = replace(per_call, prompt=counted_per_prompt(target, prompts), basis=COUNTED)
    planned = planned_calls(analysis.stage, analyst.label, len(items), per_call, prices, _most_answer(target))
    return replace(planned, note=planned.note or note)


def _samples(
    reader: Reader, model: Model, cells: Sequence[tuple[str, int]], conversations: Mapping[str, Conversation]
) -> Planned:
    target = target_of(model)
    identity = [model.label, target.config_hash]
    per_call = measured_per_call(reader, "responses", "model = ? and model_config_hash = ?", identity)
    if per_call.prompt is None and cells:
        texts = ["\n".join(text for _, text in messages_to(model, conversations[task_id])) for task_id, _ in cells]
        per_call = replace(per_call, prompt=counted_per_prompt(target, texts), basis=COUNTED)
    return planned_calls("sample", model.label, len(cells), per_call, prices_of(target), _most_answer(target))


def _verdicts(
    wanted: WantedTasks, reader: Reader, asked: Asked, missing: Sequence[MissingVerdicts],
    conversations: Mapping[str, Conversation], model: str, to_come: Sequence[str],
) -> Planned:  # fmt: skip
    """The calls of a judging about the responses of a model; `to_come` are the tasks of those not sampled yet."""
    missing = [each for each in missing if each.model == model]
    judging = asked.judging
    n_criteria = _n_criteria(reader, wanted)
    to_come_calls = sum(n_criteria[task_id] for task_id in to_come)
    target = judge_target(judging.judge)
    prices = batch_prices_of(target) if judging.judge.mode == "batch" else prices_of(target)
    per_call = measured_per_call(reader, _JUDGE_CALLS, *_identity(judging))
    fit = context_fit_of(judging, target)
    n_prompts, prompts = {each.response_id: 1 for each in missing}, []
    if fit is not None or per_call.prompt is None:
        answers = _answers(reader, [each.response_id for each in missing])
        for each in missing:
            task_id, text = answers[each.response_id]
            of_answer = _prompts(judging, fit, conversations[task_id], text)
            n_prompts[each.response_id] = len(of_answer)
            prompts += of_answer
    if per_call.prompt is None and prompts:
        per_call = replace(per_call, prompt=counted_per_prompt(target, prompts), basis=COUNTED)
    elif per_call.prompt is None and to_come:
        around = [_prompt_around(judging, conversations[task_id]) for task_id in to_come]
        per_call = replace(per_call, base_prompt=counted_per_prompt(target, around))
    n_calls = asked.calls({each.response_id: each.n_criteria for each in missing}, n_prompts, to_come_calls)
    planned = planned_calls("judge", judging.judge.label, n_calls, per_call, prices, _most_answer(target))
    unknown = [] if fit is None or not planned.calls else list(_of_long_answers(fit, to_come_calls))
    unworded = 0 if judging.judge.rubric == ORIGINAL else len(unworded_criteria(wanted, reader, judging.judge.rubric))
    unknown += [f"verdicts on {unworded} criteria that are not rewritten yet"] if unworded else []
    before = judged_before(reader, wanted, judging) if planned.calls else ""
    note = "; ".join([*filter(None, [planned.note]), *unknown])
    return replace(planned, note=note, judged_before=before, asked_for=asked.note, model=model)


def _rewording(job: Job, wanted: WantedTasks, reader: Reader) -> Planned:
    """The calls that put criteria in other words."""
    writer = job.settings.rubric_writer
    assert writer is not None
    target = target_of(writer)
    n_missing = len(unworded_criteria(wanted, reader, AUGMENTED))
    measured = measured_per_call(reader, "criterion_variants", "model = ? and model_config_hash = ?",
                         [writer.label, target.config_hash])  # fmt: skip
    return planned_calls("derive", writer.label, n_missing, measured, prices_of(target))


def _prompts(judging: Judging, fit: ContextFit | None, conversation: Conversation, text: str) -> list[str]:
    """What goes out about an answer for each criterion: one prompt, or one for each part of it and the last."""
    around = _prompt_around(judging, conversation)
    chunks = [] if fit is None else fit.usual_chunks(conversation.messages, text)
    return [around + chunk for chunk in chunks] + [around] if len(chunks) > 1 else [around + text]


def _prompt_around(judging: Judging, conversation: Conversation) -> str:
    """What a judge's prompt has beside the response."""
    return judging.template + "\n".join(text for _, text in conversation.messages)


def _most_answer(target: Target) -> int | None:
    """The most tokens of an answer, where the model or its configuration limits them."""
    return most_answer_tokens(target, target.parameters)


def _of_long_answers(fit: ContextFit, to_come_calls: int) -> Iterator[str]:
    """What is not known of answers that are too long for a judge; such a one takes a call for each part, and one."""
    if fit.window.prompt_tokens is None:
        yield "the size of its context (`context_tokens`); responses that are too long for it need more calls"
    elif to_come_calls:
        yield "whether responses are too long for it, which need more calls"


def _identity(judging: Judging) -> tuple[str, list[Any]]:
    """The condition on a judging's rows, and its values."""
    condition = "judge = ? and judge_config_hash = ? and template_hash = ?"
    return condition, [judging.judge.label, judging.judge_config_hash, judging.template_hash]


def _control(job: Job, wanted: WantedTasks, reader: Reader, judging: Judging, asked: Asked) -> Planned:
    """The control set that a judge is asked again in a night; one still to be chosen has its configured size."""
    key = {**wanted.key, **judging.columns}
    where = " and ".join(f"{column} = ?" for column in key)
    n_members = reader.value(f"select count(*) from control_set where {where}", list(key.values()))
    n_done = reader.value(
        f"select count(*) from control_verdicts where {where} and judge_vintage = ? and value is not null",
        [*key.values(), job.night],
    )
    calls = round(max(0, (n_members or job.settings.drift.verdicts) - n_done) * asked.times)
    judge = asked.judging.judge
    measured = measured_per_call(reader, _JUDGE_CALLS, *_identity(asked.judging))
    planned = planned_calls("drift", judge.label, calls, measured, prices_of(judge_target(judge)))
    return replace(planned, asked_for=asked.note)


def _n_criteria(reader: Reader, wanted: WantedTasks) -> dict[str, int]:
    rows = reader.rows(
        "select task_id, n_criteria from tasks where benchmark = ? and dataset_revision = ?", [*wanted.key.values()]
    )
    return {row["task_id"]: row["n_criteria"] for row in rows}


def _answers(reader: Reader, response_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Response -> its task and text."""
    query = "select response_id, task_id, text from responses where list_contains(?, response_id)"
    return {row["response_id"]: (row["task_id"], row["text"]) for row in reader.rows(query, [list(response_ids)])}
