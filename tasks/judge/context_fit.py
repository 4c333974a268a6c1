"""Whether an answer fits into a judge's context, and the chunks of one that does not."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tasks.llm import ContextWindow, Target, context_window_of
from tasks.rules.conversation import Message, judge_prompt
from tasks.rules.evidence import NoRoom, cut, evidence_prompt
from tasks.rules.verdict import reply_format
from tasks.run import Judging

_FEWEST_TOKENS = 64
"""A chunk with less of an answer is not worth a call."""


@dataclass(frozen=True)
class ContextFit:
    """How long the prompts of a judging may be.

    What is decided on a criterion depends on nothing but this criterion, the answer and the context window, so that a
    run that goes on with others makes the same prompts, which the ledger answers.
    """

    judging: Judging
    evidence_template: str
    window: ContextWindow

    def is_whole(self, messages: Sequence[Message], text: str, titles: Sequence[str]) -> list[bool]:
        """For each criterion whether a judge can be asked about it with the whole answer before it."""
        common = self._common(messages, text)
        if self.window.surely_holds(common, max((len(title.encode()) for title in titles), default=0)):
            return [True] * len(titles)
        left = self.window.beside(common)
        return [self.window.count(title) <= left for title in titles]

    def holds(self, prompt: str) -> bool:
        """Whether a whole prompt fits."""
        return self.window.surely_holds(prompt) or self.window.beside(prompt) >= 0

    def after_refusal(self, messages: Sequence[Message], text: str) -> "ContextFit":
        """Half of the window, since the judge itself says that a prompt with this answer is too long."""
        was = self.window.count(self._common(messages, text))
        most = min(was, self.window.prompt_tokens or was)
        return replace(self, window=replace(self.window, prompt_tokens=most // 2))

    def step_of(self, title: str) -> int:
        """The tokens that are kept for a criterion: the same for most, so that they share the chunks of an answer."""
        return self.window.in_steps(title)

    def chunks_of(self, messages: Sequence[Message], text: str, step_tokens: int, round_: int = 1) -> list[str]:
        """A text in chunks that fit into an evidence prompt, beside a criterion of so many tokens.

        Raises:
            NoRoom: request and template leave almost none.
        """
        around = evidence_prompt(self.evidence_template, messages, "", text="", number=1, n_chunks=1, round_=round_)
        most = self.window.beside(around) - step_tokens
        if most < _FEWEST_TOKENS:
            raise NoRoom(f"the request leaves no room for a chunk of the response ({most} tokens)")
        return cut(text, most, self.window.count)

    def usual_chunks(self, messages: Sequence[Message], text: str) -> list[str]:
        """The chunks in which an answer is searched for a criterion of usual length; the whole if it is read whole."""
        step_tokens = self.step_of("usual")
        common = self._common(messages, text)
        if self.window.surely_holds(common, step_tokens) or self.window.beside(common) >= step_tokens:
            return [text]
        try:
            return self.chunks_of(messages, text, step_tokens)
        except NoRoom:
            return [text]

    def _common(self, messages: Sequence[Message], text: str) -> str:
        return judge_prompt(self.judging.template, messages, text, "")


def context_fit_of(judging: Judging, target: Target) -> ContextFit | None:
    """How long a judging's prompts may be; None where answers are always judged whole."""
    if judging.evidence_template is None:
        return None
    shape = reply_format(judging.judge.explanation_chars, judging.grading)
    return ContextFit(
        judging, judging.evidence_template, context_window_of(target, judging.judge.context_tokens, shape)
    )
