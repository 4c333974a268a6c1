"""Judging call by call, and by provider batches."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from tasks.config.job import Job
from tasks.judge.cascade import CascadeJudge
from tasks.judge.criteria import CriterionJudge, context_fit_of
from tasks.judge.verdict_rows import Criterion, VerdictRows, judge_call, verdict_id_of, writing_verdicts
from tasks.llm.calls.gateway import Gateway
from tasks.llm.request import Call, Target
from tasks.rules.conversation import judge_prompt
from tasks.rules.identity import BASE_VINTAGE
from tasks.run.judgings import Judging, judge_target, judgings
from tasks.run.missing_work import (
    Conversation,
    MissingVerdicts,
    WantedTasks,
    conversations_of,
    missing_criteria,
    missing_verdicts,
    wanted_tasks,
)
from tasks.run.run_context import run_context_of, submit_and_collect
from tasks.run.writing import StageReport
from warehouse import Warehouse


def plan_verdicts(job: Job, *, retry_failed: bool) -> list[tuple[Judging, list[MissingVerdicts]]]:
    """For each judging, the responses without all of its verdicts."""
    with Warehouse(job.warehouse).reader() as reader:
        wanted = wanted_tasks(job, reader)
        return [
            (judging, missing_verdicts(job, wanted, reader, judging, retry_failed=retry_failed))
            for judging in judgings(job, wanted.benchmark)
        ]


def criteria_to_judge(
    job: Job, judging: Judging, response_ids: Sequence[str], *, retry_failed: bool
) -> tuple[WantedTasks, list[dict[str, Any]], dict[str, Conversation]]:
    """The wanted tasks, the criteria of some responses without a verdict, and the conversations of their tasks."""
    with Warehouse(job.warehouse).reader() as reader:
        wanted = wanted_tasks(job, reader)
        missing = missing_criteria(reader, judging, response_ids, retry_failed=retry_failed)
        return wanted, missing, conversations_of(reader, wanted, (row["task_id"] for row in missing))


async def judge_responses(
    job: Job, judging: Judging, response_ids: Sequence[str], *, retry_failed: bool, place: int = 0
) -> StageReport:
    """Make the verdicts that a batch of responses lacks, and write them, failed ones too.

    `place` is the batch's among all; see `CriterionJudge.judge` for the order of the calls.
    """
    context = run_context_of(job)
    wanted, criteria, conversations = criteria_to_judge(job, judging, response_ids, retry_failed=retry_failed)
    report = StageReport("judge")
    gateway = context.gateway("judge", judging.judge.label)
    own_columns = {"source": "judged", "import_batch": None, "may_hide_failures": False}
    with writing_verdicts(job, wanted, judging, context.ledger, report, "verdicts", own_columns) as rows:
        await judge_criteria(gateway, rows, criteria, conversations, place)
    return report


async def judge_criteria(
    gateway: Gateway, rows: VerdictRows, criteria: Sequence[Criterion], conversations: Mapping[str, Conversation],
    place: int, vintage: str = BASE_VINTAGE,
) -> None:  # fmt: skip
    """Judge criteria that are in the order of their responses, by the judge or the cascade whose rows they become.

    `place` and `vintage` are those of `CriterionJudge`.
    """
    judging = rows.judging
    if judging.cascade is None:
        await CriterionJudge(gateway, judge_target(judging.judge), judging, rows, vintage).judge(
            criteria, conversations, place
        )
        return
    await CascadeJudge(gateway, judging.cascade, rows, vintage).judge(criteria, conversations, place)


async def judge_by_provider_batches(
    job: Job, judging: Judging, response_ids: Sequence[str], *, retry_failed: bool
) -> StageReport:
    """Submit the calls of missing verdicts that no batch has yet, and collect the batches that have ended.

    The replies are in the ledger then, where `judge_responses` finds them. Calls of a batch that goes on when the
    waiting ends stay missing until a later run. An answer that is too long for the judge takes calls that rest on
    others, which no batch can hold; `judge_responses` makes them where the judge allows live calls.
    """
    context, target = run_context_of(job), judge_target(judging.judge)
    _, missing, conversations = criteria_to_judge(job, judging, response_ids, retry_failed=retry_failed)
    is_held_back = context.is_held_back("judge", judging.judge.label)
    calls = [] if is_held_back else list(_whole_calls(judging, target, missing, conversations))
    report = StageReport("judge")
    await submit_and_collect(job, context, target, calls, report)
    n_long = 0 if is_held_back else len(missing) - len(calls)
    if n_long and judging.judge.allow_live:
        report.notes.append(f"{n_long} verdicts on long responses are made by live calls")
    elif n_long:
        report.warnings.append(
            f"{n_long} verdicts on long responses need live calls: set `allow_live: true` for {judging.judge.label}"
        )
    return report


def _whole_calls(
    judging: Judging, target: Target, missing: Sequence[dict[str, Any]], conversations: Mapping[str, Conversation]
) -> Iterator[Call]:
    """The calls for criteria about which the judge can be asked with the whole answer before it."""
    fit = context_fit_of(judging, target)
    for _, found in groupby(missing, key=lambda row: row["response_id"]):
        criteria = list(found)
        messages, text = conversations[criteria[0]["task_id"]].messages, criteria[0]["text"]
        titles = [row["title"] for row in criteria]
        fits = [True] * len(titles) if fit is None else fit.is_whole(messages, text, titles)
        for criterion, is_whole in zip(criteria, fits, strict=True):
            if is_whole:
                prompt = judge_prompt(judging.template, messages, text, criterion["title"])
                yield judge_call(judging, target, prompt, verdict_id_of(judging, criterion))
