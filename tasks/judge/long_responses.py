"""Judging a response that is too long for the judge: by the evidence in its chunks.

The response is searched chunk by chunk, and decided by the evidence in all of them. If that is too
long as well, these notes are searched in the same way.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from tasks.judge.context_fit import Chunk, ContextFit, SearchedChunk
from tasks.judge.criterion import CriterionJudge, CriterionToJudge, JudgedCriterion
from tasks.llm.replies import CONTEXT_LENGTH, LedgerKey, Reply
from tasks.rules.conversation import is_marked
from tasks.rules.evidence import (
    REMINDER,
    NoRoom,
    evidence_format,
    evidence_prompt,
    evidence_text,
    parse_evidence,
)
from tasks.run.calls import ReplySpec, call_and_parse

_LARGEST_SHARE = 0.75
"""A further round is worth its calls if it leaves at most this share of the evidence."""


class Search(NamedTuple):
    """The evidence in each chunk of a text, and the limit of the judge that held for the chunks."""

    evidence: Sequence[tuple[str, ...]]
    fit: ContextFit


@dataclass(frozen=True)
class LongResponse:
    """A response that is too long for a judge.

    `cuts` holds the chunks of its texts, by the judge's limit, the tokens that are reserved for the
    criterion, and the text, so that a text is seldom cut again.
    """

    judge: CriterionJudge
    priority: tuple[int, ...]
    cuts: dict[tuple[int | None, int, str], list[Chunk]] = field(default_factory=dict)

    async def decide_by_evidence(self, judged: JudgedCriterion, search: Search) -> None:
        """Judge a criterion by the evidence in a response, unless the search has failed.

        Evidence that is too long is searched too, as long as a round makes it clearly shorter.
        """
        criterion = judged.criterion
        is_indented = is_marked(self.judge.judge_config.template)
        n_response_chunks = len(search.evidence)
        text = criterion.response_text
        round_ = 1
        while judged.reply is None:
            evidence, fit = search
            notes = evidence_text(evidence, n_response_chunks, round_, is_indented=is_indented)
            if round_ > 1:
                n_before = fit.count(text)
                n_after = fit.count(notes)
                if n_after > _LARGEST_SHARE * n_before:
                    cause = f"round {round_} left {n_after} of {n_before} tokens"
                    _fail_as_too_long(judged, f"the evidence is too long: {cause}")
                    return
            if fit.holds(self.judge.prompt(notes, criterion)):
                if await self.judge.decide(judged, notes, self.priority, len(evidence)):
                    return
                fit = fit.after_refusal(criterion.messages, notes)
            text = notes
            round_ += 1
            search = await self.search(judged, fit, text, round_)

    async def search(
        self,
        judged: JudgedCriterion,
        fit: ContextFit,
        text: str,
        round_: int,
    ) -> Search:
        """Search a text for evidence, in smaller chunks if one is too long for the judge.

        If a chunk could not be searched at all, the criterion has failed (it has a reply), and the
        search does not matter.
        """
        while True:
            try:
                chunks = await self._cut(judged.criterion, fit, text, round_)
            except NoRoom as reason:
                _fail_as_too_long(judged, str(reason))
                return Search([], fit)
            evidence = []
            for chunk in chunks:
                chunk_evidence = await self._search_chunk(judged, chunk, fit)
                if chunk_evidence is None:
                    break
                evidence.append(chunk_evidence)
            if judged.reply is not None or len(evidence) == len(chunks):
                return Search(evidence, fit)
            fit = fit.after_refusal(judged.criterion.messages, text)

    async def _cut(
        self,
        criterion: CriterionToJudge,
        fit: ContextFit,
        text: str,
        round_: int,
    ) -> list[Chunk]:
        step_tokens = fit.step_of(criterion.criterion_text)
        key = (fit.prompt_tokens, step_tokens, text)
        if key not in self.cuts:
            self.cuts[key] = await asyncio.to_thread(
                fit.chunks_of,
                criterion.messages,
                text,
                step_tokens,
                round_,
            )
        return self.cuts[key]

    async def _search_chunk(
        self,
        judged: JudgedCriterion,
        chunk: Chunk,
        fit: ContextFit,
    ) -> tuple[str, ...] | None:
        """Return the evidence in a chunk on a criterion (empty: there is none), or None if the
        chunk could not be searched.

        The criterion has failed then, unless the chunk was only too long for the judge.
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
        judge = self.judge.judge_config.judge
        reply_spec = ReplySpec(
            read=partial(parse_evidence, omits_think_tag=judge.omits_think_tag),
            shape=evidence_format(is_bounded=judge.explanation_chars is not None),
            reminder=REMINDER,
        )
        priority = (*self.priority, chunk.round_, chunk.number)
        call = self.judge.call(reply_spec, prompt, judged.verdict_id, priority)
        reply, evidence = await call_and_parse(self.judge.gateway, call.live_if_allowed, reply_spec)
        judged.searches.append(SearchedChunk(chunk, reply, evidence))
        if evidence is None and reply.status != CONTEXT_LENGTH:
            in_round = f" in round {chunk.round_}" if chunk.round_ > 1 else ""
            error = f"chunk {chunk.number} of {chunk.n_chunks}{in_round}: {reply.error}"
            judged.finish(replace(reply, error=error), None)
        else:
            judged.earlier_replies.append(reply)
        return evidence


def _fail_as_too_long(judged: JudgedCriterion, cause: str) -> None:
    """Fail a criterion as too long; only the calls that were too long are spent.

    The others keep their replies.
    """
    spent_keys: list[LedgerKey] = []
    for reply in judged.earlier_replies:
        if reply.status == CONTEXT_LENGTH:
            spent_keys += reply.ledger_keys
    final_reply = Reply(CONTEXT_LENGTH, attempts=0)
    if judged.earlier_replies:
        final_reply = judged.earlier_replies.pop()
    error = f"{cause}; if the judge's context has another size than assumed, set `context_tokens`"
    failure = replace(
        final_reply,
        status=CONTEXT_LENGTH,
        error=error,
        ledger_keys=tuple(spent_keys),
    )
    judged.finish(failure, None)
