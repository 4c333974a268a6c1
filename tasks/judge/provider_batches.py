"""Judging by provider batches: submitted and collected here; what has come back becomes rows as if called just now."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from tasks.config import Job
from tasks.judge.context_fit import context_fit_of
from tasks.judge.judge import criteria_to_judge
from tasks.judge.judge_call import judge_call
from tasks.judge.verdict_rows import verdict_id_of
from tasks.llm import Call, Target
from tasks.rules.conversation import judge_prompt
from tasks.run import Conversation, Judging, StageReport, judge_target, run_context_of, submit_and_collect


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
