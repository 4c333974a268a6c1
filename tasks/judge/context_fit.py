"""The size of a judge's context, and the chunks in which a response that does not fit is
searched.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from tasks.llm.request import Target, count_tokens, most_prompt_tokens_of
from tasks.rules.conversation import Message, judge_prompt
from tasks.rules.evidence import NoRoom, cut, evidence_prompt
from tasks.rules.verdict import reply_format
from tasks.run.judge_configs import JudgeConfig

_AROUND_TOKENS = 64
"""More than any chat template is known to put around a prompt, its own system message included."""
_STEP_TOKENS = 256


class Chunk(NamedTuple):
    """A piece of a long response that is searched: its round and number, and where it begins, in
    characters.
    """

    text: str
    round_: int
    number: int
    n_chunks: int
    first_char: int


@dataclass(frozen=True)
class ContextFit:
    """The limit of a judge's prompts: `prompt_tokens` at most, None if its context size is not
    known.

    The prompts for a criterion depend only on this criterion, the response and the context size, so
    that a later run makes the same prompts, whose replies are in the ledger.
    """

    template: str
    evidence_template: str
    target: Target
    prompt_tokens: int | None

    def is_whole(
        self, messages: Sequence[Message], text: str, criteria: Sequence[str]
    ) -> list[bool]:
        """Return for each criterion (its text) whether its prompt can hold the whole response."""
        common = judge_prompt(self.template, messages, text, "")
        if self._surely_holds(common, max((len(each.encode()) for each in criteria), default=0)):
            return [True] * len(criteria)
        left = self._beside(common)
        return [self.count(each) <= left for each in criteria]

    def holds(self, prompt: str, spare_tokens: int = 0) -> bool:
        """Return whether a whole prompt fits, with `spare_tokens` more."""
        return self._surely_holds(prompt, spare_tokens) or self._beside(prompt) >= spare_tokens

    def after_refusal(self, messages: Sequence[Message], text: str) -> "ContextFit":
        """Return a fit with half of the limit, because the judge refused a prompt with this
        response as too long.
        """
        was = self.count(judge_prompt(self.template, messages, text, ""))
        return replace(self, prompt_tokens=min(was, self.prompt_tokens or was) // 2)

    def step_of(self, criterion: str) -> int:
        """Return the number of tokens that are reserved for a criterion.

        It is rounded up to the same number for most criteria, so that they share the chunks of a
        response.
        """
        return -(-self.count(criterion) // _STEP_TOKENS) * _STEP_TOKENS

    def chunks_of(
        self, messages: Sequence[Message], text: str, step_tokens: int, round_: int = 1
    ) -> list[Chunk]:
        """Return a text in chunks that fit into an evidence prompt, beside a criterion of
        `step_tokens` tokens.

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
        most = self._beside(around) - step_tokens
        if most < 64:  # a smaller chunk is not worth a call
            raise NoRoom(f"the request leaves no room for a chunk of the response ({most} tokens)")
        texts = cut(text, most, self.count)
        starts = accumulate(map(len, texts), initial=0)
        return [
            Chunk(chunk, round_, number, len(texts), start)
            for number, (chunk, start) in enumerate(zip(texts, starts, strict=False), start=1)
        ]

    def usual_chunks(self, messages: Sequence[Message], text: str) -> list[str]:
        """Return the chunks in which a response is searched for a criterion of usual length.

        If the whole response fits, it is the only chunk.
        """
        step_tokens = self.step_of("usual")
        with suppress(NoRoom):
            if not self.holds(judge_prompt(self.template, messages, text, ""), step_tokens):
                return [chunk.text for chunk in self.chunks_of(messages, text, step_tokens)]
        return [text]

    def count(self, text: str) -> int:
        """Return the number of tokens of a text."""
        return count_tokens(self.target, text)

    def _surely_holds(self, text: str, spare_tokens: int) -> bool:
        """Return whether a prompt certainly fits with `spare_tokens` more tokens: a token has at
        least one byte.

        A context of unknown size is taken as large enough until the model refuses a prompt.
        """
        return (
            self.prompt_tokens is None
            or len(text.encode()) + spare_tokens <= self.prompt_tokens - _AROUND_TOKENS
        )

    def _beside(self, text: str) -> int:
        """Return the number of tokens that remain beside a text in one prompt; 0 or less if none
        do.
        """
        assert self.prompt_tokens is not None
        return self.prompt_tokens - _AROUND_TOKENS - self.count(text)


def context_fit_of(judge_config: JudgeConfig, target: Target) -> ContextFit | None:
    """Return the limit of a judge's prompts; None if responses are always judged whole."""
    if judge_config.evidence_template is None:
        return None
    shape = reply_format(judge_config.judge.explanation_chars, judge_config.grading)
    most_tokens = most_prompt_tokens_of(target, judge_config.judge.context_tokens, shape)
    return ContextFit(judge_config.template, judge_config.evidence_template, target, most_tokens)
