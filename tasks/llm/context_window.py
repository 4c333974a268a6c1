"""Whether a prompt fits into a model's context window, by tokens that were really counted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasks.llm.prices import asked_answer_tokens, count_tokens, most_answer_tokens, most_context_tokens
from tasks.llm.request import Target

_AROUND_TOKENS = 64
"""More than any chat template is known to put around a prompt, its own system message included."""
_MOST_RESERVED_TOKENS = 16_384
_STEP_TOKENS = 256


@dataclass(frozen=True)
class ContextWindow:
    """The context window of one model: prompts of at most `prompt_tokens`, None where nobody knows its context.

    What the reply may need is not part of it.
    """

    target: Target
    prompt_tokens: int | None

    def count(self, text: str) -> int:
        """The tokens of a text."""
        return count_tokens(self.target, text)

    def surely_holds(self, text: str, spare_tokens: int = 0) -> bool:
        """Whether a prompt fits without a doubt, and so many tokens more: no token is shorter than a byte.

        Where nobody knows how large the window is, it is large enough until the model says no.
        """
        if self.prompt_tokens is None:
            return True
        return len(text.encode()) + spare_tokens <= self.prompt_tokens - _AROUND_TOKENS

    def beside(self, *texts: str) -> int:
        """The tokens that these texts leave to others in one prompt, 0 or less for none."""
        assert self.prompt_tokens is not None
        return self.prompt_tokens - _AROUND_TOKENS - sum(map(self.count, texts))

    def in_steps(self, text: str) -> int:
        """The tokens of a text, rounded up, so that texts of about the same length have the same number."""
        return -(-self.count(text) // _STEP_TOKENS) * _STEP_TOKENS


def context_window_of(
    target: Target, context_tokens: int | None, reply_format: Mapping[str, Any] | None
) -> ContextWindow:
    """The window of a model with so many tokens of context (None: as many as it is known to have).

    Kept for the reply is as much as `max_tokens` says, half of the context at most. Without that it is what the model
    may answer, a quarter of the context or 16,384 tokens at most.
    """
    context = context_tokens or most_context_tokens(target)
    if context is None:
        return ContextWindow(target, None)
    wanted_tokens = asked_answer_tokens(target.parameters)
    longest = most_answer_tokens(target, target.parameters) or context
    reserved = (
        min(longest, context // 4, _MOST_RESERVED_TOKENS) if wanted_tokens is None else min(wanted_tokens, context // 2)
    )
    shape = count_tokens(target, str(reply_format)) if reply_format else 0
    return ContextWindow(target, context - reserved - shape)
