"""Judging by provider batches: handed in and collected here; what has come back becomes rows as if called just now."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from tasks.asking import judge_call
from tasks.calls import judge_target
from tasks.conversations import Conversation
from tasks.desk import desk_of
from tasks.judge.live import owed_work
from tasks.judging import id_of
from tasks.lengths import lengths_of
from tasks.llm.batching import Batching
from tasks.llm.permits import Outcome
from tasks.llm.targets import Call, Target
from tasks.reports import StageReport
from tasks.rules.quoting import judge_prompt
from tasks.scope import Judging
from tasks.settings import Job


async def look_after_batches(
    job: Job, judging: Judging, response_ids: Sequence[str], *, retry_failed: bool
) -> StageReport:
    """Hand in what the judging owes and no batch has yet, and take in the batches that have ended.

    The replies are in the ledger then, where `judge_batch` finds them. Calls of a batch that goes on when the waiting
    ends stay missing until a later run. An answer that is too long for the judge takes calls that rest on others, which
    no batch can hold; `judge_batch` makes them.
    """
    desk, target = desk_of(job), judge_target(judging.judge)
    _, owed, conversations = owed_work(job, judging, response_ids, retry_failed=retry_failed)
    is_held_back = desk.is_held_back("judge", judging.judge.label)
    calls = [] if is_held_back else list(_whole_calls(judging, target, owed, conversations))
    limiter = desk.limiters["judge"]
    batching = Batching(target, desk.ledger, desk.budget, job.run_id, stop_at_s=limiter.stop_at_s)
    merged = await batching.look_after(calls, job.settings.limits.batch_wait_s)
    limiter.too_late += merged.too_late
    for reply in merged.replies:
        limiter.totals.add(Outcome.of(reply))
    report = StageReport("judge", warnings=merged.notes)
    if merged.handed_in:
        report.notes.append(f"{merged.handed_in} calls handed in as batches")
    if len(calls) < len(owed) and not is_held_back:
        report.notes.append(f"{len(owed) - len(calls)} verdicts on long answers are made by live calls")
    return report


def _whole_calls(
    judging: Judging, target: Target, owed: Sequence[dict[str, Any]], conversations: Mapping[str, Conversation]
) -> Iterator[Call]:
    """The calls for criteria about which the judge can be asked with the whole answer before it."""
    lengths = lengths_of(judging, target)
    for _, found in groupby(owed, key=lambda row: row["response_id"]):
        criteria = list(found)
        messages, text = conversations[criteria[0]["task_id"]].messages, criteria[0]["text"]
        titles = [row["title"] for row in criteria]
        fits = [True] * len(titles) if lengths is None else lengths.is_whole(messages, text, titles)
        for criterion, is_whole in zip(criteria, fits, strict=True):
            if is_whole:
                prompt = judge_prompt(judging.template, messages, text, criterion["title"])
                message = {"role": "user", "content": prompt}
                yield judge_call(judging, target, [message], id_of(judging, criterion))
