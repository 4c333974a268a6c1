"""Judging by provider batches: handed in and collected here; what has come back becomes rows as if called just now."""

from collections.abc import Sequence

from tasks.calls import judge_target
from tasks.desk import run_desk_of
from tasks.judge.live import owed_work
from tasks.judging import id_of, judge_call
from tasks.llm.batching import Batching
from tasks.llm.permits import Outcome
from tasks.reports import StageReport
from tasks.rules.conversation import fill_template, transcript
from tasks.scope import Judging
from tasks.settings import Job


async def look_after_batches(
    job: Job, judging: Judging, response_ids: Sequence[str], *, retry_failed: bool
) -> StageReport:
    """Hand in what the judging owes and no batch has yet, and take in the batches that have ended.

    The replies are in the ledger then, where `judge_batch` finds them. Calls of a batch that goes on when the waiting
    ends stay missing until a later run.
    """
    desk, target = run_desk_of(job), judge_target(judging.judge)
    _, owed, conversations = owed_work(job, judging, response_ids, retry_failed=retry_failed)
    calls = []
    for criterion in owed:
        conversation = transcript(conversations[criterion["task_id"]].messages, criterion["text"])
        prompt = fill_template(judging.template, conversation, criterion["title"])
        calls.append(judge_call(judging, target, [{"role": "user", "content": prompt}], id_of(judging, criterion)))
    limiter = desk.limiters["judge"]
    batching = Batching(target, desk.ledger, desk.budget, job.run_id, stop_at_s=limiter.stop_at_s)
    merged = await batching.look_after(calls, job.settings.limits.batch_wait_s)
    limiter.too_late += merged.too_late
    for reply in merged.replies:
        limiter.totals.add(Outcome.of(reply))
    report = StageReport("judge", warnings=merged.notes)
    if merged.handed_in:
        report.notes.append(f"{merged.handed_in} calls handed in as batches")
    return report
