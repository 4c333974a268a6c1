"""Judging one criterion of a response: template, prompt, call, reply and verdict."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Self

from tasks.judge.context_fit import ContextFit, SearchedChunk
from tasks.llm.calls.gateway import Gateway
from tasks.llm.replies import CONTEXT_LENGTH, Reply
from tasks.llm.request import Call, Target
from tasks.rules.conversation import Message, group_prompt, judge_prompt
from tasks.rules.identity import BASE_VINTAGE, verdict_id
from tasks.rules.verdict import (
    Verdict,
    confidence_of,
    parse_group_of_one,
    parse_verdict,
    reminder,
    reply_format,
)
from tasks.run.calls import ReplySpec, call_and_parse, call_with, sum_usage
from tasks.run.judge_configs import JudgeConfig
from warehouse import Row


@dataclass(frozen=True)
class CriterionToJudge:
    """A criterion of one response to a conversation (`messages`), which a judge decides.

    For a judge of groups `piece` holds the hashes of the criteria that are decided in the same
    call, in order; `call_index` numbers the pieces of a rubric. A criterion of a piece that is not
    `is_missing` already has its verdict.
    """

    response_id: str
    task_id: str
    model: str
    trial: int
    vintage: str
    response_text: str
    criterion_id: str
    criterion_hash: str
    criterion_text: str
    weight: float
    category: str | None
    severity: str | None
    kinds: Sequence[str]
    piece: tuple[str, ...]
    call_index: int | None
    is_missing: bool
    messages: Sequence[Message]

    @classmethod
    def of(cls, row: Row, messages: Sequence[Message]) -> Self:
        """Return the criterion in a row, which may have further columns."""
        names = {column.name for column in fields(cls)} - {"piece", "messages"}
        columns = {name: row[name] for name in names}
        return cls(**columns, piece=tuple(row["piece"] or ()), messages=messages)


@dataclass
class JudgedCriterion:
    """A criterion with the outcome of its judging; `reply` is None until it is finished, or if no
    call is made.

    `earlier_replies` are those of the calls before the last one, `searches` are all searched chunks
    of a long response. A group sets the number of criteria in the call and the position of this
    one; a cascade sets the judge that decided, and the reasons to call the second one.
    """

    criterion: CriterionToJudge
    verdict_id: str
    earlier_replies: list[Reply] = field(default_factory=list)
    searches: list[SearchedChunk] = field(default_factory=list)
    reply: Reply | None = None
    verdict: Verdict | None = None
    n_in_call: int | None = None
    position_in_call: int | None = None
    decided_by: str | None = None
    escalated_because: list[str] | None = None

    def finish(self, reply: Reply, verdict: Verdict | None) -> None:
        """Set the outcome: the last reply with the usage of all; no verdict if it failed.

        Only the last reply is spent: earlier ones can be used again.
        """
        self.reply = sum_usage([*self.earlier_replies, reply], reply)
        self.verdict = verdict


Deliver = Callable[[JudgedCriterion], None]
"""Takes a criterion that is finished, or whose call was not made (it has no reply then)."""


@dataclass(frozen=True)
class CriterionJudge:
    """A judge as it is called, for the verdicts of `owner`: the judge's own configuration, or that
    of a cascade.

    The form of prompt and reply is that of `judge_config`, even in a cascade. Calls of another
    `vintage` are different calls, so earlier replies are not used for them.
    """

    gateway: Gateway
    target: Target
    judge_config: JudgeConfig
    owner: JudgeConfig
    fit: ContextFit | None = None
    vintage: str = BASE_VINTAGE

    @property
    def reply_spec(self) -> ReplySpec[Verdict]:
        """The required form of the judge's reply: a verdict on a criterion."""
        grading = self.judge_config.grading
        judge = self.judge_config.judge
        is_group = judge.piece_size is not None
        parse = parse_group_of_one if is_group else parse_verdict
        return ReplySpec(
            read=partial(parse, grading=grading, omits_think_tag=judge.omits_think_tag),
            shape=reply_format(judge.explanation_chars, grading, is_group=is_group),
            reminder=reminder(grading, is_group=is_group),
        )

    def verdict_id(self, criterion: CriterionToJudge) -> str:
        """Return the identity of the judge's verdict on a criterion."""
        return verdict_id_of(self.owner, criterion, self.vintage)

    def prompt(self, text: str, criterion: CriterionToJudge) -> str:
        """Return the prompt on a criterion; `text` is the response, or the evidence in it."""
        template = self.judge_config.template
        messages = criterion.messages
        if self.judge_config.judge.piece_size is not None:
            return group_prompt(template, messages, text, [criterion.criterion_text])
        return judge_prompt(template, messages, text, criterion.criterion_text)

    def call(
        self,
        reply_spec: ReplySpec[object],
        prompt: str,
        cell: str,
        priority: tuple[int, ...] = (),
    ) -> Call:
        """Return the judge's call with a prompt."""
        return call_with(
            self.judge_config.judge,
            self.target,
            reply_spec,
            prompt,
            cell=cell,
            trial=self.judge_config.judge_trial,
            vintage=self.vintage,
            priority=priority,
        )

    async def decide(
        self,
        judged: JudgedCriterion,
        text: str,
        priority: tuple[int, ...],
        n_chunks: int = 0,
    ) -> bool:
        """Judge a criterion: fill the template, make the call, read the reply, set the outcome.

        `text` is the response, or the evidence in its `n_chunks` chunks. Return whether the
        criterion is finished; if not, the text is too long for the judge.

        Raises:
            NotCalled: the call was not made.
        """
        reply_spec = self.reply_spec
        prompt = self.prompt(text, judged.criterion)
        call = self.call(reply_spec, prompt, judged.verdict_id, priority)
        if n_chunks:
            # It depends on other calls, so no batch can hold it.
            call = call.live_if_allowed
        reply, verdict = await call_and_parse(self.gateway, call, reply_spec)
        if reply.status == CONTEXT_LENGTH and self.fit is not None:
            judged.earlier_replies.append(reply)
            return False
        if verdict is not None and reply.logprobs:
            confidence = confidence_of(reply.logprobs, self.judge_config.grading)
            verdict = replace(verdict, confidence=confidence)
        if verdict is None and n_chunks:
            reply = replace(reply, error=f"on the evidence of {n_chunks} chunks: {reply.error}")
        judged.finish(reply, verdict)
        return True


def verdict_id_of(
    judge_config: JudgeConfig,
    criterion: CriterionToJudge,
    judge_vintage: str = BASE_VINTAGE,
) -> str:
    """Return the identity of a verdict under a judge configuration."""
    return verdict_id(
        response_id=criterion.response_id,
        response_text=criterion.response_text,
        criterion_id=criterion.criterion_id,
        criterion_hash=criterion.criterion_hash,
        judge_vintage=judge_vintage,
        piece=criterion.piece,
        **judge_config.columns,
    )
