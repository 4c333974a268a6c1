"""Judging the criteria of responses: one call each, in an order that serves the provider's prompt cache."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from tasks.judge.context_fit import ContextFit, context_fit_of
from tasks.judge.judge_call import Criterion, PendingVerdict, judge_call, verdict_question
from tasks.judge.long_answers import LongAnswer, with_same_chunks
from tasks.judge.verdict_rows import TakesVerdicts, verdict_id_of
from tasks.llm import CONTEXT_LENGTH, Gateway, NotCalled, Reply, Target
from tasks.rules.conversation import Message, judge_prompt
from tasks.rules.identity import BASE_VINTAGE
from tasks.run import Conversation, Found, Judging, Question, ask


def by_response(criteria: Sequence[Criterion]) -> list[list[Criterion]]:
    """Criteria that are in the order of their responses, those of each response together."""
    return [list(found) for _, found in groupby(criteria, key=lambda row: row["response_id"])]


@dataclass(frozen=True)
class CriterionJudge:
    """A judge that decides on criteria, for itself or for a cascade: the verdicts are of the judging of `rows`.

    Another `vintage` makes other calls, which no earlier reply answers.
    """

    gateway: Gateway
    target: Target
    judging: Judging
    rows: TakesVerdicts
    vintage: str = BASE_VINTAGE

    async def judge(self, criteria: Sequence[Criterion], conversations: Mapping[str, Conversation], place: int) -> None:
        """Judge criteria that are in the order of their responses.

        The criteria of one response go out together: the first alone, so that the provider has the conversation in its
        cache when the others follow. `place` is the batch's among all: earlier ones, and in them earlier responses, go
        first, so that calls about one conversation follow each other.
        """
        fit = await self.fit()
        async with asyncio.TaskGroup() as group:
            for number, of_response in enumerate(by_response(criteria)):
                messages = conversations[of_response[0]["task_id"]].messages
                group.create_task(self.judge_response(of_response, messages, fit, (place, number)))

    async def fit(self) -> ContextFit | None:
        """How long the judge's prompts may be."""
        return await asyncio.to_thread(context_fit_of, self.judging, self.target)

    async def judge_response(
        self, criteria: Sequence[Criterion], messages: Sequence[Message], fit: ContextFit | None,
        priority: tuple[int, ...],
    ) -> None:  # fmt: skip
        """Judge with the whole answer where it fits into the judge's context, else chunk by chunk."""
        text = criteria[0]["text"]
        pending = [PendingVerdict(row, verdict_id_of(self.rows.judging, row, self.vintage)) for row in criteria]
        if fit is None:
            await self._judge_whole(pending, messages, priority, must_be=True)
            return
        fits = await asyncio.to_thread(fit.is_whole, messages, text, [row["title"] for row in criteria])
        whole = [each for each, is_whole in zip(pending, fits, strict=True) if is_whole]
        refused = await self._judge_whole(whole, messages, priority)
        long = [each for each, is_whole in zip(pending, fits, strict=True) if not is_whole]
        await self._judge_in_chunks(long, messages, fit, priority)
        if refused:
            await self._judge_in_chunks(refused, messages, fit.after_refusal(messages, text), priority)

    async def _judge_in_chunks(
        self, pending: Sequence[PendingVerdict], messages: Sequence[Message], fit: ContextFit, priority: tuple[int, ...]
    ) -> None:
        for group in with_same_chunks(fit, pending):
            await LongAnswer(self, self.rows, fit, messages, group[0].criterion["text"], priority).decide(group)

    async def _judge_whole(
        self, pending: Sequence[PendingVerdict], messages: Sequence[Message], priority: tuple[int, ...], *,
        must_be: bool = False,
    ) -> list[PendingVerdict]:  # fmt: skip
        """Judge by one call each, and return those that the judge finds too long, unless they `must_be` whole."""
        if not pending:
            return []
        first, *others = pending
        if await self._is_too_long(first, messages, priority, must_be):
            return list(pending)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._is_too_long(each, messages, priority, must_be)) for each in others]
        return [each for each, task in zip(others, tasks, strict=True) if task.result()]

    async def _is_too_long(
        self, pending: PendingVerdict, messages: Sequence[Message], priority: tuple[int, ...], must_be: bool
    ) -> bool:
        """Judge one criterion, unless the judge finds the prompt too long."""
        criterion = pending.criterion
        prompt = judge_prompt(self.judging.template, messages, criterion["text"], criterion["title"])
        try:
            reply, verdict = await self.ask(verdict_question(self.judging), prompt, pending, priority)
        except NotCalled:
            self.rows.skip()
            return False
        if reply.status == CONTEXT_LENGTH and not must_be:
            pending.replies.append(reply)
            return True
        self.rows.settle(pending, reply, verdict)
        return False

    async def ask(
        self, question: Question[Found], prompt: str, pending: PendingVerdict, priority: tuple[int, ...], *,
        is_live: bool = False,
    ) -> tuple[Reply, Found | None]:  # fmt: skip
        """Ask the judge, and once more where its reply cannot be read; what it says, or the reply of the failure.

        Raises:
            NotCalled: the call was not made.
        """
        call = judge_call(self.judging, self.target, prompt, pending.verdict_id, priority, self.vintage, question)
        is_batched = call.is_batched and not (is_live and call.allows_live)
        return await ask(self.gateway, replace(call, is_batched=is_batched), question)
