"""Judging call by call, by a cascade of two judges, and by provider batches."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tasks.config.job import Job
from tasks.judge.criteria import CriterionJudge, Fits, by_response, context_fit_of, whole_calls
from tasks.judge.verdict_rows import NO_CASCADE, Collected, Criterion, Said, VerdictRows, writing_verdicts
from tasks.llm.calls.gateway import Gateway
from tasks.llm.replies import Reply
from tasks.llm.request import NO_PRICES
from tasks.rules.cascades.rules import confidence_of, reasons_to_escalate
from tasks.rules.conversation import Message
from tasks.rules.identity import BASE_VINTAGE
from tasks.run import missing_work
from tasks.run.asking import together
from tasks.run.judgings import CascadeJudgings, Judging, judge_target, judgings
from tasks.run.missing_work import Conversation, MissingVerdicts, WantedTasks
from tasks.run.run_context import run_context_of, submit_and_collect
from tasks.run.writing import StageReport
from warehouse import Warehouse


def plan_verdicts(job: Job, *, retry_failed: bool) -> list[tuple[Judging, list[MissingVerdicts]]]:
    """For each judging, the responses without all of its verdicts."""
    with Warehouse(job.warehouse).reader() as reader:
        wanted = missing_work.wanted_tasks(job, reader)
        return [
            (judging, missing_work.missing_verdicts(job, wanted, reader, judging, retry_failed=retry_failed))
            for judging in judgings(job, wanted.benchmark)
        ]


def criteria_to_judge(
    job: Job, judging: Judging, response_ids: Sequence[str], *, retry_failed: bool
) -> tuple[WantedTasks, list[dict[str, Any]], dict[str, Conversation]]:
    """The wanted tasks, the criteria of some responses without a verdict, and the conversations of their tasks."""
    with Warehouse(job.warehouse).reader() as reader:
        wanted = missing_work.wanted_tasks(job, reader)
        missing = missing_work.missing_criteria(reader, judging, response_ids, retry_failed=retry_failed)
        return wanted, missing, missing_work.conversations_of(reader, wanted, (row["task_id"] for row in missing))


async def judge_responses(
    job: Job, judging: Judging, response_ids: Sequence[str], *, retry_failed: bool, place: int = 0
) -> StageReport:
    """Make the verdicts that a batch of responses lacks, and write them, failed ones too.

    `place` is the batch's among all; see `judge_criteria` for the order of the calls.
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

    The criteria of one response go out together. `place` is the batch's among all: earlier ones, and in them earlier
    responses, go first, so that calls about one conversation follow each other. `vintage` is that of `CriterionJudge`.
    """
    judging, cascade = rows.judging, rows.judging.cascade
    judge: CriterionJudge | CascadeJudge
    if cascade is None:
        judge, asked = CriterionJudge(gateway, judge_target(judging.judge), judging, rows, vintage), [judging]
    else:
        judge, asked = CascadeJudge(gateway, cascade, rows, vintage), [cascade.first[0], cascade.then]
    fits = {each.judge.label: await asyncio.to_thread(context_fit_of, each, judge_target(each.judge)) for each in asked}
    async with asyncio.TaskGroup() as group:
        for number, of_response in enumerate(by_response(criteria)):
            messages = conversations[of_response[0]["task_id"]].messages
            group.create_task(judge.judge_response(of_response, messages, fits, (place, number)))


@dataclass(frozen=True)
class CascadeJudge:
    """A cascade that decides on criteria.

    All calls for a criterion are made for the cascade's verdict, so that its row holds what they cost. A call that one
    of the judges has made for itself is answered from the ledger.
    """

    gateway: Gateway
    cascade: CascadeJudgings
    rows: VerdictRows
    vintage: str

    async def judge_response(
        self, criteria: Sequence[Criterion], messages: Sequence[Message], fits: Fits, priority: tuple[int, ...]
    ) -> None:
        """Judge the criteria of one response by the first judge, then those that are escalated by the second one.

        The calls of one judge follow each other, so that its provider has the conversation cached.
        """

        async def asked(judging: Judging, rows: Sequence[Criterion]) -> Collected:
            collected = Collected(self.rows.judging)
            if rows:
                judge = CriterionJudge(self.gateway, judge_target(judging.judge), judging, collected, self.vintage)
                await judge.judge_response(rows, messages, fits, priority)
            return replace(collected, judging=judging)

        first = [await asked(judging, criteria) for judging in self.cascade.first]
        by_id = {row["criterion_id"]: row for row in criteria}
        said = {key: [each.said[key] for each in first if key in each.said] for key in by_id}
        why = {key: self._reasons(row, said[key]) for key, row in by_id.items()}
        then = await asked(self.cascade.then, [row for key, row in by_id.items() if why[key]])
        for key, calls in said.items():
            last = then.said.get(key)
            if len(calls) < len(first) or (why[key] and last is None):
                self.rows.skip()
            elif last is None:
                self._settle(calls[0], calls, first[0], None)
            else:
                self._settle(last, [*calls, last], then, why[key])

    def _reasons(self, row: Criterion, first: Sequence[Said]) -> list[str]:
        """Why a criterion goes to the second judge; none: the first has decided, or was not asked to the end."""
        if len(first) < len(self.cascade.first):
            return []
        logprobs = first[0].reply.logprobs
        confidence = confidence_of(logprobs, self.rows.judging.grading) if logprobs else None
        values = [said.value for said in first]
        return reasons_to_escalate(self.cascade.when, values, row["weight"], row["category"], confidence)

    def _settle(self, said: Said, calls: Sequence[Said], by: Collected, why: list[str] | None) -> None:
        """Write a verdict of the cascade, with what all calls for it came to and the evidence that it rests on."""
        for pending, chunk, reply, found in by.evidence:
            if pending.verdict_id == said.pending.verdict_id:
                self.rows.add_evidence(pending, chunk, reply, found)
        decision = {**NO_CASCADE, "decided_by": by.judging.judge.label, "escalated_because": why}
        self.rows.settle(said.pending, in_all([each.reply for each in calls], said.reply), said.verdict, decision)


def in_all(replies: Sequence[Reply], deciding: Reply) -> Reply:
    """The deciding one of some replies, with the tokens, attempts and cost of all; None where one is not known.

    Prices are there only where all have the same.
    """
    costs = together([*(each for each in replies if each is not deciding), deciding])
    names = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens")
    counts = {name: [getattr(each, name) for each in replies] for name in names}
    tokens: dict[str, Any] = {name: None if None in of_calls else sum(of_calls) for name, of_calls in counts.items()}
    prices = deciding.prices if len({each.prices for each in replies}) == 1 else NO_PRICES
    return replace(deciding, attempts=costs.attempts, cost_usd=costs.cost_usd, prices=prices, **tokens)


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
    calls = [] if is_held_back else list(whole_calls(judging, target, missing, conversations))
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
