"""Whether a judge can read an answer whole, and the parts of one that it cannot."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tasks.llm.context_window import Room, room_of
from tasks.llm.request import Target
from tasks.rules.chunks import NoRoom, cut
from tasks.rules.conversation import Message
from tasks.rules.evidence import evidence_prompt
from tasks.rules.quoting import judge_prompt
from tasks.rules.verdict import reply_format
from tasks.run.missing_work import Judging

_FEWEST_TOKENS = 64
"""A part with less of an answer is none worth a call."""


@dataclass(frozen=True)
class Lengths:
    """How long prompts may be that a judging sends.

    What is decided on a criterion depends on nothing but this criterion, the answer and the room, so that a run that
    goes on with others makes the same prompts, which the ledger answers.
    """

    judging: Judging
    evidence_template: str
    room: Room

    def is_whole(self, messages: Sequence[Message], text: str, titles: Sequence[str]) -> list[bool]:
        """For each criterion whether a judge can be asked about it with the whole answer before it."""
        common = self._common(messages, text)
        if self.room.surely_holds(common, max((len(title.encode()) for title in titles), default=0)):
            return [True] * len(titles)
        left = self.room.beside(common)
        return [self.room.count(title) <= left for title in titles]

    def holds(self, prompt: str) -> bool:
        """Whether a whole prompt has room."""
        return self.room.surely_holds(prompt) or self.room.beside(prompt) >= 0

    def after_refusal(self, messages: Sequence[Message], text: str) -> "Lengths":
        """Half of the room: the judge's own word that a prompt with this answer is too long stands above any table."""
        was = self.room.count(self._common(messages, text))
        most = min(was, self.room.prompt_tokens or was)
        return replace(self, room=replace(self.room, prompt_tokens=most // 2))

    def step_of(self, title: str) -> int:
        """The tokens that are kept for a criterion: alike for most, so that they share the parts of an answer."""
        return self.room.in_steps(title)

    def parts_of(self, messages: Sequence[Message], text: str, step_tokens: int, round_: int = 1) -> list[str]:
        """A text in parts that have room in an evidence prompt, beside a criterion of so many tokens.

        Raises:
            NoRoom: request and template leave none to speak of.
        """
        around = evidence_prompt(self.evidence_template, messages, "", text="", part=1, n_parts=1, round_=round_)
        most = self.room.beside(around) - step_tokens
        if most < _FEWEST_TOKENS:
            raise NoRoom(f"beside the request there is no room for a part of the answer ({most} tokens)")
        return cut(text, most, self.room.count)

    def usual_parts(self, messages: Sequence[Message], text: str) -> list[str]:
        """The parts in which an answer is searched for a criterion of usual length; the whole if it is read whole."""
        step_tokens = self.step_of("usual")
        common = self._common(messages, text)
        if self.room.surely_holds(common, step_tokens) or self.room.beside(common) >= step_tokens:
            return [text]
        try:
            return self.parts_of(messages, text, step_tokens)
        except NoRoom:
            return [text]

    def _common(self, messages: Sequence[Message], text: str) -> str:
        return judge_prompt(self.judging.template, messages, text, "")


def lengths_of(judging: Judging, target: Target) -> Lengths | None:
    """The lengths of a judging's prompts; None where answers are always judged whole."""
    if judging.evidence_template is None:
        return None
    shape = reply_format(judging.judge.explanation_chars, judging.grading)
    return Lengths(judging, judging.evidence_template, room_of(target, judging.judge.context_tokens, shape))
