"""The calls of a judge on the responses of a model."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tasks.config.job import Job
from tasks.config.models import ORIGINAL
from tasks.judge.context_fit import context_fit_of
from tasks.llm.request import Target, most_reply_tokens, prices_of, requested_reply_tokens
from tasks.plan import estimate
from tasks.plan.estimate import Cells, PerCall, Planned
from tasks.plan.judges import JUDGE_CALLS, JudgeCalls, identity_of, judged_before
from tasks.run import missing_work
from tasks.run.judge_configs import JudgeConfig, judge_target
from tasks.run.missing_work import Conversation, MissingVerdicts, WantedTasks
from warehouse import Reader


def plan_verdicts(
    job: Job,
    wanted: WantedTasks,
    reader: Reader,
    called: JudgeCalls,
    missing: Sequence[MissingVerdicts],
    conversations: Mapping[str, Conversation],
    model: str,
    to_come: Sequence[str],
) -> tuple[Planned, Cells]:
    """Return the calls of a judge on the responses of a model.

    `to_come` are the tasks of responses that are not sampled yet.
    """
    missing = [each for each in missing if each.model == model]
    judge_config = called.judge_config
    sizes = {
        row["task_id"]: row["n_criteria"]
        for row in reader.select("tasks", "task_id, n_criteria", **wanted.key)
    }
    piece_size = judge_config.piece_size or 1
    to_come_calls = sum(-(-sizes[task_id] // piece_size) for task_id in to_come)
    target = judge_target(judge_config.judge)
    prices = prices_of(target, of_batch=judge_config.judge.mode == "batch")
    per_call = estimate.measured_per_call(reader, JUDGE_CALLS, **identity_of(judge_config))
    fit = context_fit_of(judge_config, target)
    counts = {
        each.response_id: each.n_criteria if piece_size == 1 else each.n_calls for each in missing
    }
    n_prompts = {each.response_id: 1 for each in missing}
    to_count = missing if fit is not None or per_call.prompt is None else []
    prompts = list[str]()
    rows = reader.select(
        "responses", "response_id, text", response_id=[each.response_id for each in to_count]
    )
    texts = {row["response_id"]: row["text"] for row in rows}
    rubrics = _listed_criteria(wanted, reader, judge_config, {each.task_id for each in to_count})
    for each in to_count:
        conversation = conversations[each.task_id]
        text = texts[each.response_id]
        # One prompt for each criterion, or one for each chunk of the response and a last one.
        around = _prompt_around(judge_config, conversation) + rubrics.get(each.task_id, "")
        if (
            fit is not None and piece_size > 1 and not fit.holds(around + text)
        ):  # then judged one by one
            counts[each.response_id] = each.n_criteria
            around = _prompt_around(judge_config, conversation)
        chunks = [] if fit is None else fit.usual_chunks(conversation.messages, text)
        of_response = (
            [around + chunk for chunk in chunks] + [around] if len(chunks) > 1 else [around + text]
        )
        n_prompts[each.response_id] = len(of_response)
        prompts += of_response
    per_call = estimate.counted_per_call(per_call, target, prompts)
    if per_call.prompt is None and to_come:
        without_text = [_prompt_around(judge_config, conversations[task_id]) for task_id in to_come]
        per_call = replace(per_call, base_prompt=estimate.counted_per_prompt(target, without_text))
    n_calls = called.calls(counts, n_prompts, to_come_calls)
    n_in_call = sum(each.n_criteria for each in missing) + sum(
        sizes[task_id] for task_id in to_come
    )
    per_call = replace(
        per_call, n_in_call=max(1.0, n_in_call / max(1, n_calls)) if piece_size > 1 else 1.0
    )
    most = most_reply(target, per_call)
    planned = estimate.planned_calls(
        "judge", judge_config.judge.label, n_calls, per_call, prices, most
    )
    unknown = []
    # A response that is too long for a judge needs a call for each chunk, and a last one.
    if fit is not None and planned.calls and (fit.prompt_tokens is None or to_come_calls):
        unknown.append(
            "whether responses are too long for it (`context_tokens`), which need more calls"
        )
    rubric = judge_config.judge.rubric
    unworded = (
        0
        if rubric == ORIGINAL
        else len(missing_work.unworded_criteria(job, wanted, reader, rubric))
    )
    unknown += [f"verdicts on {unworded} criteria that are not rewritten yet"] if unworded else []
    before = judged_before(reader, wanted, judge_config) if planned.calls else ""
    note = "; ".join([*filter(None, [planned.note]), *unknown])
    cells = [(model, each.task_id, each.n_criteria) for each in missing]
    cells += [(model, task_id, sizes[task_id]) for task_id in to_come]
    return (
        replace(
            planned,
            note=note,
            judged_before=before,
            cascade=called.note,
            model=model,
        ),
        cells,
    )


def _listed_criteria(
    wanted: WantedTasks, reader: Reader, judge_config: JudgeConfig, task_ids: Collection[str]
) -> dict[str, str]:
    """Return, by task, about the text of the criteria in one call of a judge of groups; empty for
    other judges.
    """
    if judge_config.piece_size is None or not task_ids:
        return {}
    titles: dict[str, list[str]] = {}
    for row in reader.select("criteria", "task_id, title", **wanted.key, task_id=sorted(task_ids)):
        titles.setdefault(row["task_id"], []).append(row["title"])
    return {
        task_id: "\n".join(texts[: judge_config.piece_size]) for task_id, texts in titles.items()
    }


def _prompt_around(judge_config: JudgeConfig, conversation: Conversation) -> str:
    """Return the parts of a judge's prompt other than the response."""
    return judge_config.template + "\n".join(text for _, text in conversation.messages)


def most_reply(target: Target, per_call: PerCall | None = None) -> int | None:
    """Return the most tokens of a reply if they are limited; a configured limit is for each
    criterion.
    """
    n = 0 if per_call is None else math.ceil(per_call.n_in_call)
    most = most_reply_tokens(target, {**target.parameters, "questions": range(n)})
    return most * n if n and most and requested_reply_tokens(target.parameters) else most
