"""Judging the criteria of one response, one by one: their order, and whether the response fits.

The order of the calls serves the provider's prompt cache.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import compress
from typing import NamedTuple

from tasks.judge.context_fit import ContextFit
from tasks.judge.criterion import CriterionJudge, CriterionToJudge, Deliver, JudgedCriterion
from tasks.judge.long_responses import LongResponse
from tasks.llm.limiter import NotCalled
from tasks.llm.request import Call
from tasks.run.calls import run_all


class WholeCall(NamedTuple):
    """A call that holds a whole response, with its number of missing criteria.

    `call` is None if it needs no batch, as for a group that the ledger decides; its criteria are
    counted all the same.
    """

    call: Call | None
    n_criteria: int


class ResponseJudge(CriterionJudge):
    """A judge that decides the criteria of a response one by one."""

    async def judge_response(
        self,
        criteria: Sequence[CriterionToJudge],
        priority: tuple[int, ...],
        deliver: Deliver,
    ) -> None:
        """Judge criteria of one response, and pass on each that is finished, or not called."""
        outcomes = [
            JudgedCriterion(criterion, self.verdict_id(criterion)) for criterion in criteria
        ]
        await self.judge_one_by_one(outcomes, priority, deliver)

    async def judge_one_by_one(
        self,
        criteria: Sequence[JudgedCriterion],
        priority: tuple[int, ...],
        deliver: Deliver,
    ) -> None:
        """Judge with the whole response where it fits into the judge's context, else by evidence.

        The first criterion goes alone, so that the provider has the common part of the prompts, or
        each chunk, in its cache when the others follow. What was too long for the first is not
        tried for the others.
        """
        are_whole = await asyncio.to_thread(
            self.are_whole, [judged.criterion for judged in criteria]
        )
        long_response = LongResponse(self, priority)
        fit = await self._judge(
            criteria[0],
            self.fit,
            long_response,
            deliver,
            is_whole=are_whole[0],
        )
        # A refusal, of the response or of a chunk, makes another fit; nothing else does.
        is_accepted = fit is self.fit
        await run_all(
            self._judge(judged, fit, long_response, deliver, is_whole=is_whole and is_accepted)
            for judged, is_whole in zip(criteria[1:], are_whole[1:], strict=True)
        )

    async def _judge(
        self,
        judged: JudgedCriterion,
        fit: ContextFit | None,
        long_response: LongResponse,
        deliver: Deliver,
        *,
        is_whole: bool,
    ) -> ContextFit | None:
        """Judge a criterion by the whole response or, if it is too long, by the evidence in it.

        Return the fit to use for the other criteria: a smaller one if the judge refused the
        response or a chunk as too long, else the one that was given.
        """
        text = judged.criterion.response_text
        try:
            is_finished = is_whole and await self.decide(judged, text, long_response.priority)
            if not is_finished:
                assert fit is not None  # else no prompt is too long
                if is_whole:
                    fit = fit.after_refusal(judged.criterion.messages, text)
                search = await long_response.search(judged, fit, text, round_=1)
                fit = search.fit
                await long_response.decide_by_evidence(judged, search)
        except NotCalled:
            pass  # the criterion has no reply
        deliver(judged)
        return fit

    def are_whole(self, criteria: Sequence[CriterionToJudge]) -> list[bool]:
        """Return for each criterion whether its prompt can hold the whole response."""
        if self.fit is None:
            return [True] * len(criteria)
        first_criterion = criteria[0]
        texts = [criterion.criterion_text for criterion in criteria]
        return self.fit.are_whole(first_criterion.messages, first_criterion.response_text, texts)

    async def whole_calls(
        self,
        criteria: Sequence[CriterionToJudge],
    ) -> AsyncIterator[WholeCall]:
        """Yield the calls for criteria whose prompt can hold the whole response."""
        for criterion in compress(criteria, self.are_whole(criteria)):
            prompt = self.prompt(criterion.response_text, criterion)
            call = self.call(self.reply_spec, prompt, self.verdict_id(criterion))
            yield WholeCall(call, n_criteria=1)
