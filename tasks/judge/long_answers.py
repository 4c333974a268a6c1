"""Judging answers that are too long for a judge: searched chunk by chunk, decided on what was found in all of them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import Protocol

from tasks.judge.context_fit import ContextFit
from tasks.judge.judge_call import PendingVerdict, evidence_question, verdict_question
from tasks.judge.verdict_rows import Chunk, TakesVerdicts
from tasks.llm import CONTEXT_LENGTH, NotCalled, Reply
from tasks.rules.conversation import Message, is_marked, judge_prompt
from tasks.rules.evidence import NoRoom, evidence_prompt, shown
from tasks.rules.verdict import Verdict
from tasks.run import Found, Judging, Question, together

_HINT = "if the judge's context is longer or shorter than it is taken for, set `context_tokens`"
_WORTH_A_ROUND = 0.75
"""Notes that a round leaves longer than this share of what they were are not made shorter by another one."""


class Asks(Protocol):
    """A judge that can be asked (`CriterionJudge`)."""

    @property
    def judging(self) -> Judging:
        """Which judge it is, and how it is asked."""

    async def ask(
        self, question: Question[Found], prompt: str, pending: PendingVerdict, priority: tuple[int, ...], *,
        is_live: bool = False,
    ) -> tuple[Reply, Found | None]:  # fmt: skip
        """Ask the judge, and once more where its reply cannot be read."""


@dataclass(frozen=True)
class LongAnswer:
    """An answer that is judged by the evidence in its chunks."""

    judge: Asks
    rows: TakesVerdicts
    fit: ContextFit
    messages: Sequence[Message]
    text: str
    priority: tuple[int, ...]

    async def decide(self, pending: Sequence[PendingVerdict]) -> None:
        """Decide on criteria that need the same chunks; where the judge finds one too long, with smaller chunks."""
        step_tokens = self.fit.step_of(pending[0].criterion["title"])
        try:
            texts = await asyncio.to_thread(self.fit.chunks_of, self.messages, self.text, step_tokens)
        except NoRoom as reason:
            for each in pending:
                self._fail(each, f"{reason}; {_HINT}")
            return
        searched, refused = await self._search(pending, _chunks(texts, 1))
        async with asyncio.TaskGroup() as group:
            for each in searched:
                group.create_task(self._conclude(each, step_tokens, len(each.found)))
        if refused:
            smaller = self.fit.after_refusal(self.messages, self.text)
            await replace(self, fit=smaller).decide(refused)

    async def _search(
        self, pending: Sequence[PendingVerdict], chunks: Sequence[Chunk]
    ) -> tuple[list[PendingVerdict], list[PendingVerdict]]:
        """Search the chunks for all criteria, one chunk after the other, so that it is in the provider's cache.

        Returns:
            The criteria whose search came to its end, and those for which a chunk is too long for the judge.
        """
        going, refused = list(pending), []
        for chunk in chunks:
            if not going:
                break
            # The first goes alone: the others find the chunk in the cache, or need not try.
            outcomes = [await self._search_chunk(going[0], chunk)]
            if outcomes[0] == CONTEXT_LENGTH:
                refused += going
                going = []
                break
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._search_chunk(each, chunk)) for each in going[1:]]
            outcomes += [task.result() for task in tasks]
            refused += [each for each, outcome in zip(going, outcomes, strict=True) if outcome == CONTEXT_LENGTH]
            going = [each for each, outcome in zip(going, outcomes, strict=True) if outcome is None]
        for each in refused:
            each.found.clear()
        return going, refused

    async def _search_chunk(self, pending: PendingVerdict, chunk: Chunk) -> str | None:
        """Search a chunk for a criterion; None, or the status of the failure that ended the criterion's search.

        A chunk that the judge finds too long ends nothing yet.
        """
        prompt = evidence_prompt(
            self.fit.evidence_template, self.messages, pending.criterion["title"],
            text=chunk.text, number=chunk.number, n_chunks=chunk.n_chunks, round_=chunk.round_,
        )  # fmt: skip
        priority = (*self.priority, chunk.round_, chunk.number)
        question = evidence_question(self.judge.judging)
        try:
            reply, evidence = await self.judge.ask(question, prompt, pending, priority, is_live=True)
        except NotCalled:
            self.rows.skip()
            return "skipped"
        self.rows.add_evidence(pending, chunk, reply, evidence)
        if evidence is not None:
            pending.replies.append(reply)
            pending.found.append(evidence)
            return None
        if reply.status == CONTEXT_LENGTH:
            pending.replies.append(reply)
        else:
            self._settle(pending, replace(reply, error=f"{chunk.name}: {reply.error}"), None)
        return reply.status

    async def _conclude(self, pending: PendingVerdict, step_tokens: int, n_chunks: int, round_: int = 1) -> None:
        """The last call of a criterion, on its evidence; where that is too long, after a search of the evidence."""
        notes = self._shown(pending, n_chunks, round_)
        prompt = judge_prompt(self.judge.judging.template, self.messages, notes, pending.criterion["title"])
        if not self.fit.holds(prompt):
            if await self._condense(pending, notes, step_tokens, round_ + 1, n_chunks):
                await self._conclude(pending, step_tokens, n_chunks, round_ + 1)
            return
        question = verdict_question(self.judge.judging)
        try:
            reply, verdict = await self.judge.ask(question, prompt, pending, self.priority, is_live=True)
        except NotCalled:
            self.rows.skip()
            return
        if reply.status == CONTEXT_LENGTH:
            pending.replies.append(reply)
            smaller = replace(self, fit=self.fit.after_refusal(self.messages, notes))
            await smaller._conclude(pending, step_tokens, n_chunks, round_)
            return
        if verdict is None:
            reply = replace(reply, error=f"on the evidence of {len(pending.found)} chunks: {reply.error}")
        self._settle(pending, reply, verdict)

    async def _condense(
        self, pending: PendingVerdict, notes: str, step_tokens: int, round_: int, n_chunks: int
    ) -> bool:
        """Another round over what was found; False if the criterion has failed by that."""
        try:
            texts = await asyncio.to_thread(self.fit.chunks_of, self.messages, notes, step_tokens, round_)
        except NoRoom as reason:
            self._fail(pending, f"{reason}; {_HINT}")
            return False
        pending.found.clear()
        for chunk in _chunks(texts, round_):
            outcome = await self._search_chunk(pending, chunk)
            if outcome == CONTEXT_LENGTH:
                self._fail(pending, f"{chunk.name}: the judge finds it too long; {_HINT}")
            if outcome is not None:
                return False
        before, after = (self.fit.window.count(each) for each in (notes, self._shown(pending, n_chunks, round_)))
        if after > _WORTH_A_ROUND * before:
            self._fail(pending, f"the evidence is too long: round {round_} left {after} of {before} tokens; {_HINT}")
            return False
        return True

    def _shown(self, pending: PendingVerdict, n_chunks: int, round_: int) -> str:
        return shown(pending.found, n_chunks, round_, is_indented=is_marked(self.judge.judging.template))

    def _fail(self, pending: PendingVerdict, cause: str) -> None:
        """Fail a criterion as too long in spite of all, because of the calls that were too long, not those answered."""
        paid = tuple(one for reply in pending.replies if reply.status == CONTEXT_LENGTH for one in reply.paid)
        last = pending.replies.pop() if pending.replies else Reply(CONTEXT_LENGTH, attempts=0)
        self._settle(pending, replace(last, status=CONTEXT_LENGTH, error=cause, paid=paid), None)

    def _settle(self, pending: PendingVerdict, reply: Reply, verdict: Verdict | None) -> None:
        """Write what a criterion came to. A failure rests on its last reply alone: the others stay answers."""
        self.rows.settle(pending, replace(together([*pending.replies, reply]), paid=reply.paid), verdict)


def _chunks(texts: Sequence[str], round_: int) -> list[Chunk]:
    starts = accumulate(map(len, texts), initial=0)
    return [
        Chunk(text, round_, number, len(texts), start)
        for number, (text, start) in enumerate(zip(texts, starts, strict=False), start=1)
    ]


def with_same_chunks(fit: ContextFit, pending: Sequence[PendingVerdict]) -> list[list[PendingVerdict]]:
    """Criteria in groups that share the chunks of an answer, most often one."""

    def step(each: PendingVerdict) -> int:
        return fit.step_of(each.criterion["title"])

    return [list(group) for _, group in groupby(sorted(pending, key=step), key=step)]
