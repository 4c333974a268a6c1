"""Judging the criteria of one response: whole, or, if it is too long for the judge, by the evidence in its chunks."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress

from tasks.judge.context_fit import Chunk, ContextFit
from tasks.judge.criterion import CriterionJudge, CriterionToJudge, Done, JudgedCriterion
from tasks.llm.limiter import NotCalled
from tasks.llm.replies import CONTEXT_LENGTH, OK, Reply
from tasks.llm.request import Call
from tasks.rules.conversation import is_marked
from tasks.rules.evidence import (
    REMINDER,
    NoRoom,
    evidence_format,
    evidence_prompt,
    parse_evidence,
    shown,
)
from tasks.rules.verdict import (
    Verdict,
    confidence_of,
)
from tasks.run.calls import ReplySpec, call_and_parse, run_all, sum_usage


class ResponseJudge(CriterionJudge):
    """A judge that decides the criteria of a response one by one."""

    def are_whole(self, criteria: Sequence[CriterionToJudge]) -> list[bool]:
        """Return for each criterion of a response whether the judge's prompt can hold the whole
        response.
        """
        texts = [each.criterion_text for each in criteria]
        messages = criteria[0].messages
        text = criteria[0].response_text
        return [True] * len(texts) if self.fit is None else self.fit.is_whole(messages, text, texts)

    def whole_calls(
        self, criteria: Sequence[CriterionToJudge]
    ) -> Iterator[tuple[Call | None, int]]:
        """Yield the calls for criteria whose prompt can hold the whole response, each with its
        number of criteria.
        """
        for each in compress(criteria, self.are_whole(criteria)):
            yield (
                self.call(
                    self.reply_spec, self.prompt(each.response_text, each), self.verdict_id(each)
                ),
                1,
            )

    async def judge_response(
        self, criteria: Sequence[CriterionToJudge], priority: tuple[int, ...], done: Done
    ) -> None:
        """Judge criteria of one response; pass each to `done` as soon as it is decided, failed, or
        not called.
        """
        await LongResponse(self, priority, done).judge([self.unjudged(row) for row in criteria])


@dataclass(frozen=True)
class LongResponse:
    """Judges criteria of one response, whole or by the evidence in its chunks; each finished one is
    given to `done`.

    `chunks` are the ways to cut the response that were used, by the judge's limit and the
    criterion's length.
    """

    by: ResponseJudge
    priority: tuple[int, ...]
    done: Done
    chunks: dict[tuple[int | None, int, str], list[Chunk]] = field(default_factory=dict)

    async def judge(self, criteria: Sequence[JudgedCriterion]) -> None:
        """Judge with the whole response where it fits into the judge's context, else by the
        evidence in its chunks.

        The first criterion goes alone, so that the provider has the common part of the prompts, or
        each chunk, in its cache when the others follow. What was too long for the first is not
        tried for the others.
        """
        are_whole = await asyncio.to_thread(
            self.by.are_whole, [each.criterion for each in criteria]
        )
        (first, is_whole), *others = zip(criteria, are_whole, strict=True)
        fit = await self._judge_one(first, self.by.fit, fits=is_whole)
        is_refused = fit is not self.by.fit
        await run_all(
            self._judge_one(each, fit, fits=is_whole and not is_refused)
            for each, is_whole in others
        )

    async def _judge_one(
        self, judged: JudgedCriterion, fit: ContextFit | None, *, fits: bool
    ) -> ContextFit | None:
        """Judge a criterion by the response if that fits, else by the evidence in its chunks, or in
        those of the notes.

        Notes on the response that are too long are searched too, as long as a round makes them
        clearly shorter. Return the limit of the judge that was found with the response.
        """
        of = judged.criterion
        text = judged.criterion.response_text
        round_ = 0
        n_chunks = 0
        of_response = fit
        try:
            while not (fits and await self._judge_criterion(judged, text)):
                assert fit is not None  # else no prompt is too long
                round_ += 1
                smaller = fit.after_refusal(of.messages, text) if fits else fit
                fit = await self._search(judged, smaller, text, round_)
                if round_ == 1:
                    n_chunks = len(judged.evidence)
                    of_response = fit
                if judged.reply is not None:  # it has failed
                    break
                notes = shown(
                    judged.evidence,
                    n_chunks,
                    round_,
                    is_indented=is_marked(self.by.judge_config.template),
                )
                # A further round is worth its calls if it leaves at most 3/4 of the evidence.
                if round_ > 1 and (after := fit.count(notes)) > 0.75 * (before := fit.count(text)):
                    self._fail(
                        judged,
                        f"the evidence is too long: round {round_} left {after} of {before} tokens",
                    )
                    break
                text = notes
                fits = fit.holds(self.by.prompt(notes, of))
        except NotCalled:
            self.done(judged)
        return of_response

    async def _judge_criterion(self, judged: JudgedCriterion, text: str) -> bool:
        """Judge one criterion: fill the template, make the call, read the reply, and pass on the
        verdict.

        `text` is the response, or the evidence in its chunks. Return whether the criterion is
        finished; if not, the text is too long for the judge.
        """
        prompt = self.by.prompt(text, judged.criterion)
        reply_spec = self.by.reply_spec
        call = self.by.call(reply_spec, prompt, judged.verdict_id, self.priority)
        reply, verdict = await call_and_parse(
            self.by.gateway, call.live if judged.evidence else call, reply_spec
        )
        if reply.status == CONTEXT_LENGTH and self.by.fit is not None:
            judged.earlier_replies.append(reply)
            return False
        if verdict is not None and reply.logprobs:
            verdict = replace(
                verdict, confidence=confidence_of(reply.logprobs, self.by.judge_config.grading)
            )
        if verdict is None and judged.evidence:
            reply = replace(
                reply, error=f"on the evidence of {len(judged.evidence)} chunks: {reply.error}"
            )
        self._finish(judged, reply, verdict)
        return True

    async def _search(
        self, judged: JudgedCriterion, fit: ContextFit, text: str, round_: int
    ) -> ContextFit:
        """Search a text for evidence chunk by chunk, in smaller chunks if one is too long for the
        judge.

        Return the limit that held. If not all chunks were searched, the criterion has failed.
        """
        of = judged.criterion
        step_tokens = fit.step_of(judged.criterion.criterion_text)
        while True:
            judged.evidence.clear()
            cut = fit.prompt_tokens, step_tokens, text
            try:
                if cut not in self.chunks:
                    self.chunks[cut] = await asyncio.to_thread(
                        fit.chunks_of, of.messages, text, step_tokens, round_
                    )
            except NoRoom as reason:
                self._fail(judged, str(reason))
                return fit
            status = OK
            for chunk in self.chunks[cut]:
                status = await self._search_chunk(judged, chunk, fit)
                if status != OK:
                    break
            if status != CONTEXT_LENGTH:
                return fit
            fit = fit.after_refusal(of.messages, text)

    async def _search_chunk(self, judged: JudgedCriterion, chunk: Chunk, fit: ContextFit) -> str:
        """Search a chunk for evidence on a criterion; return the status.

        Any failure but `CONTEXT_LENGTH` is final.
        """
        prompt = evidence_prompt(
            fit.evidence_template,
            judged.criterion.messages,
            judged.criterion.criterion_text,
            text=chunk.text,
            number=chunk.number,
            n_chunks=chunk.n_chunks,
            round_=chunk.round_,
        )
        priority = (*self.priority, chunk.round_, chunk.number)
        judge = self.by.judge_config.judge
        reply_spec = ReplySpec(
            partial(parse_evidence, omits_think_tag=judge.omits_think_tag),
            evidence_format(is_bounded=judge.explanation_chars is not None),
            REMINDER,
        )
        call = self.by.call(reply_spec, prompt, judged.verdict_id, priority)
        reply, evidence = await call_and_parse(self.by.gateway, call.live, reply_spec)
        judged.searches.append((chunk, reply, evidence))
        if evidence is not None:
            judged.evidence.append(evidence)
        elif reply.status != CONTEXT_LENGTH:
            in_round = f" in round {chunk.round_}" if chunk.round_ > 1 else ""
            error = f"chunk {chunk.number} of {chunk.n_chunks}{in_round}: {reply.error}"
            self._finish(judged, replace(reply, error=error), None)
            return reply.status
        judged.earlier_replies.append(reply)
        return reply.status

    def _fail(self, judged: JudgedCriterion, cause: str) -> None:
        """Fail a criterion as too long; only the calls that were too long are spent, the others
        keep their replies.
        """
        paid = tuple(
            one
            for reply in judged.earlier_replies
            if reply.status == CONTEXT_LENGTH
            for one in reply.paid
        )
        last = (
            judged.earlier_replies.pop()
            if judged.earlier_replies
            else Reply(CONTEXT_LENGTH, attempts=0)
        )
        error = (
            f"{cause}; if the judge's context has another size than assumed, set `context_tokens`"
        )
        self._finish(
            judged,
            replace(
                last,
                status=CONTEXT_LENGTH,
                error=error,
                paid=paid,
            ),
            None,
        )

    def _finish(self, judged: JudgedCriterion, reply: Reply, verdict: Verdict | None) -> None:
        """Pass a finished criterion to `done`.

        A failure spends only its last reply: the others can be used again.
        """
        judged.reply = replace(sum_usage([*judged.earlier_replies, reply], reply), paid=reply.paid)
        judged.verdict = verdict
        self.done(judged)
