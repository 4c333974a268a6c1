"""The calls of a judge on the responses of a model, stored ones and those not sampled yet."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tasks.config.job import Job
from tasks.config.models import ORIGINAL
from tasks.judge.context_fit import ContextFit, context_fit_of
from tasks.llm.request import prices_of
from tasks.plan.estimate import (
    Planned,
    PlannedWork,
    counted_per_call,
    counted_per_prompt,
    planned_calls,
    reply_limit_of,
)
from tasks.plan.judges import JudgeCalls, ResponseCalls, judged_before, measured_judge_call
from tasks.run.judge_configs import JudgeConfig, judge_target
from tasks.run.missing_work import (
    Conversation,
    MissingVerdicts,
    WantedTasks,
    criteria_to_rewrite,
    response_texts,
)
from warehouse import Reader


@dataclass(frozen=True)
class Planning:
    """What the calls of a job are planned from: its wanted tasks and their conversations."""

    job: Job
    reader: Reader
    job_tasks: WantedTasks
    conversations: Mapping[str, Conversation]


@dataclass(frozen=True)
class ResponsesToJudge:
    """The responses of a model that a judge has to judge.

    Attributes:
        model: the model's label.
        stored_responses: the stored responses that lack verdicts.
        expected_tasks: the tasks of responses that are not sampled yet.
        n_criteria: task id -> the number of its criteria, for all tasks.
    """

    model: str
    stored_responses: Sequence[MissingVerdicts]
    expected_tasks: Sequence[str]
    n_criteria: Mapping[str, int]

    @property
    def n_missing_verdicts(self) -> int:
        """The number of missing verdicts."""
        return sum(n_missing for _, _, n_missing in self.cells)

    def n_expected_pieces(self, piece_size: int) -> int:
        """Return the number of pieces of the rubrics of responses that are not sampled yet."""
        return sum(
            math.ceil(self.n_criteria[task_id] / piece_size) for task_id in self.expected_tasks
        )

    @property
    def cells(self) -> list[tuple[str, str, int]]:
        """Model, task, and number of missing verdicts."""
        stored_cells = [
            (self.model, response.task_id, response.n_criteria)
            for response in self.stored_responses
        ]
        expected_cells = [
            (self.model, task_id, self.n_criteria[task_id]) for task_id in self.expected_tasks
        ]
        return stored_cells + expected_cells


def plan_verdicts(
    planning: Planning,
    judge_calls: JudgeCalls,
    responses: ResponsesToJudge,
) -> PlannedWork:
    """Return the calls of a judge on the responses of a model."""
    judge_config = judge_calls.judge_config
    judge = judge_config.judge
    piece_size = judge_config.piece_size or 1
    target = judge_target(judge)
    fit = context_fit_of(judge_config, target)
    per_call = measured_judge_call(planning.reader, judge_config)
    must_read = fit is not None or per_call.prompt is None
    prompts, calls = _prompts_on(
        planning,
        judge_config,
        fit,
        responses.stored_responses,
        must_read=must_read,
    )
    n_expected = responses.n_expected_pieces(piece_size)
    n_calls = judge_calls.n_calls(calls, n_expected)
    per_call = counted_per_call(per_call, target, prompts)
    if per_call.prompt is None and responses.expected_tasks:
        frames = [
            _prompt_without_response(judge_config, planning.conversations[task_id])
            for task_id in responses.expected_tasks
        ]
        per_call = replace(per_call, base_prompt=counted_per_prompt(target, frames))
    if piece_size > 1:
        n_in_call = max(1.0, responses.n_missing_verdicts / max(1, n_calls))
        per_call = replace(per_call, n_in_call=n_in_call)
    planned = planned_calls(
        "judge",
        judge.label,
        n_calls,
        per_call,
        prices_of(target, of_batch=judge.mode == "batch"),
        reply_limit_of(target, per_call),
    )
    planned = replace(planned, cascade=judge_calls.note, model=responses.model)
    planned = _with_notes(planning, judge_config, fit, planned, has_expected=n_expected > 0)
    return PlannedWork(planned, responses.cells)


def _prompts_on(
    planning: Planning,
    judge_config: JudgeConfig,
    fit: ContextFit | None,
    responses: Sequence[MissingVerdicts],
    *,
    must_read: bool,
) -> tuple[list[str], dict[str, ResponseCalls]]:
    """Return prompts about as long as those for stored responses, and the calls by response.

    Without `must_read` no response is read: its length is not needed.
    """
    piece_size = judge_config.piece_size or 1
    calls = {}
    for response in responses:
        # The calls of a response are those of a cascade's first judge; its second has no groups.
        n_pieces = response.n_criteria if piece_size == 1 else response.n_calls
        calls[response.response_id] = ResponseCalls(n_pieces)
    if not must_read:
        return [], calls
    prompts = list[str]()
    texts = response_texts(planning.reader, [response.response_id for response in responses])
    rubrics = _listed_criteria(planning, judge_config, {response.task_id for response in responses})
    for response in responses:
        conversation = planning.conversations[response.task_id]
        text = texts[response.response_id]
        n_pieces = calls[response.response_id].n_pieces
        frame = _prompt_without_response(judge_config, conversation)
        group_frame = frame + rubrics.get(response.task_id, "")
        if fit is None or piece_size == 1 or fit.holds(group_frame + text):
            frame = group_frame
        else:
            # A group that does not fit is judged one by one.
            n_pieces = response.n_criteria
        # Each piece needs one prompt, or one for each chunk of a long response and a last one.
        parts = [text]
        chunks = [] if fit is None else fit.usual_chunks(conversation.messages, text)
        if len(chunks) > 1:
            parts = [*chunks, ""]
        prompts += [frame + part for part in parts]
        calls[response.response_id] = ResponseCalls(n_pieces, n_prompts=len(parts))
    return prompts, calls


def _listed_criteria(
    planning: Planning,
    judge_config: JudgeConfig,
    task_ids: Collection[str],
) -> dict[str, str]:
    """Return, by task, about the text of the criteria in one call of a judge of groups.

    Other judges have none.
    """
    if judge_config.piece_size is None or not task_ids:
        return {}
    rows = planning.reader.select(
        "criteria",
        "task_id, title",
        **planning.job_tasks.key,
        task_id=sorted(task_ids),
    )
    titles = defaultdict(list)
    for row in rows:
        titles[row["task_id"]].append(row["title"])
    piece_size = judge_config.piece_size
    return {task_id: "\n".join(texts[:piece_size]) for task_id, texts in titles.items()}


def _prompt_without_response(judge_config: JudgeConfig, conversation: Conversation) -> str:
    """Return the parts of a judge's prompt other than the response."""
    return judge_config.template + "\n".join(text for _, text in conversation.messages)


def _with_notes(
    planning: Planning,
    judge_config: JudgeConfig,
    fit: ContextFit | None,
    planned: Planned,
    *,
    has_expected: bool,
) -> Planned:
    """Return calls with further notes on what is unknown, and on verdicts under another template.

    `has_expected` is true if responses are not sampled yet.
    """
    notes = []
    # A response that is too long for a judge needs a call for each chunk, and a last one.
    if fit is not None and planned.calls and (fit.prompt_tokens is None or has_expected):
        notes.append(
            "whether responses are too long for it (`context_tokens`), which need more calls"
        )
    rubric = judge_config.judge.rubric
    if rubric != ORIGINAL:
        to_rewrite = criteria_to_rewrite(planning.job, planning.job_tasks, planning.reader, rubric)
        if to_rewrite:
            notes.append(f"verdicts on {len(to_rewrite)} criteria that are not rewritten yet")
    repeated = ""
    if planned.calls:
        repeated = judged_before(planning.reader, planning.job_tasks, judge_config)
    return replace(planned.with_notes(*notes), judged_before=repeated)
