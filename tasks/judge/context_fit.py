"""The size of a judge's context, and the chunks of a response that does not fit."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from tasks.llm.replies import Reply
from tasks.llm.request import Target, count_tokens, longest_prompt_tokens
from tasks.rules.conversation import Message, judge_prompt
from tasks.rules.evidence import NoRoom, cut, evidence_prompt
from tasks.rules.verdict import reply_format
from tasks.run.judge_configs import JudgeConfig

_AROUND_TOKENS = 64
"""More than any chat template is known to put around a prompt, its own system message included."""
_STEP_TOKENS = 256
"""The tokens that are reserved for a criterion of usual length; a longer one gets a multiple."""
_SMALLEST_CHUNK_TOKENS = 64
"""A smaller chunk is not worth a call."""


class Chunk(NamedTuple):
    """A piece of a long response that is searched: its round, number and first character."""

    text: str
    round_: int
    number: int
    n_chunks: int
    first_char: int


class SearchedChunk(NamedTuple):
    """A chunk with the reply about it, and the evidence in it; None if the reply is a failure."""

    chunk: Chunk
    reply: Reply
    evidence: tuple[str, ...] | None


@dataclass(frozen=True)
class ContextFit:
    """The limit of a judge's prompts: `prompt_tokens` at most; None: its context is not known.

    The prompts for a criterion depend only on this criterion, the response and the context size, so
    that a later run makes the same prompts, whose replies are in the ledger.
    """

    template: str
    evidence_template: str
    target: Target
    prompt_tokens: int | None

    def are_whole(
        self,
        messages: Sequence[Message],
        text: str,
        criteria: Sequence[str],
    ) -> list[bool]:
        """Return for each criterion (its text) whether its prompt can hold the whole response."""
        prompt = judge_prompt(self.template, messages, text, "")
        # A criterion has at most as many tokens as bytes.
        most_bytes = max(len(criterion.encode()) for criterion in criteria)
        if self._surely_holds(prompt, most_bytes):
            return [True] * len(criteria)
        room = self._room_beside(prompt)
        return [self.count(criterion) <= room for criterion in criteria]

    def holds(self, prompt: str, spare_tokens: int = 0) -> bool:
        """Return whether a whole prompt fits, with `spare_tokens` more."""
        return self._surely_holds(prompt, spare_tokens) or self._room_beside(prompt) >= spare_tokens

    def after_refusal(self, messages: Sequence[Message], text: str) -> "ContextFit":
        """Return a fit with half of the limit, after the judge refused a prompt with this text."""
        n_tokens = self.count(judge_prompt(self.template, messages, text, ""))
        return replace(self, prompt_tokens=min(n_tokens, self.prompt_tokens or n_tokens) // 2)

    def step_of(self, criterion: str) -> int:
        """Return the number of tokens that are reserved for a criterion: a multiple of a step, the
        same for most criteria, so that they share the chunks of a response.
        """
        return math.ceil(self.count(criterion) / _STEP_TOKENS) * _STEP_TOKENS

    def chunks_of(
        self,
        messages: Sequence[Message],
        text: str,
        step_tokens: int,
        round_: int = 1,
    ) -> list[Chunk]:
        """Return a text in chunks that fit into evidence prompts, beside `step_tokens` tokens.

        Raises:
            NoRoom: the conversation and the template leave almost none.
        """
        around = evidence_prompt(
            self.evidence_template,
            messages,
            "",
            text="",
            number=1,
            n_chunks=1,
            round_=round_,
        )
        room = self._room_beside(around) - step_tokens
        if room < _SMALLEST_CHUNK_TOKENS:
            raise NoRoom(f"the request leaves no room for a chunk of the response ({room} tokens)")
        texts = cut(text, room, self.count)
        chunks = []
        first_char = 0
        for number, chunk_text in enumerate(texts, start=1):
            chunks.append(Chunk(chunk_text, round_, number, len(texts), first_char))
            first_char += len(chunk_text)
        return chunks

    def usual_chunks(self, messages: Sequence[Message], text: str) -> list[str]:
        """Return the chunks in which a response is searched for a criterion of usual length.

        If the whole response fits, it is the only chunk.
        """
        with suppress(NoRoom):
            if not self.holds(judge_prompt(self.template, messages, text, ""), _STEP_TOKENS):
                return [chunk.text for chunk in self.chunks_of(messages, text, _STEP_TOKENS)]
        return [text]

    def count(self, text: str) -> int:
        """Return the number of tokens of a text."""
        return count_tokens(self.target, text)

    def _surely_holds(self, prompt: str, spare_tokens: int) -> bool:
        """Return whether a prompt fits for sure: a token has at least one byte.

        A context of unknown size is taken as large enough until the model refuses a prompt.
        """
        if self.prompt_tokens is None:
            return True
        return len(prompt.encode()) + spare_tokens <= self.prompt_tokens - _AROUND_TOKENS

    def _room_beside(self, text: str) -> int:
        """Return how many tokens are left beside a text in one prompt; 0 or less if none are."""
        assert self.prompt_tokens is not None
        return self.prompt_tokens - _AROUND_TOKENS - self.count(text)


def context_fit_of(judge_config: JudgeConfig, target: Target) -> ContextFit | None:
    """Return the limit of a judge's prompts; None if responses are always judged whole."""
    if judge_config.evidence_template is None:
        return None
    judge = judge_config.judge
    shape = reply_format(judge.explanation_chars, judge_config.grading)
    return ContextFit(
        template=judge_config.template,
        evidence_template=judge_config.evidence_template,
        target=target,
        prompt_tokens=longest_prompt_tokens(target, judge.context_tokens, shape),
    )
