"""Judging the criteria of a response: template, prompt, call, reply and row of the verdict, one
after the other.

The order of the calls serves the provider's prompt cache. A response that is too long for the judge
is searched chunk by chunk, and decided by the evidence in all of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Self

from tasks.judge.context_fit import Chunk, ContextFit
from tasks.llm.calls.gateway import Gateway
from tasks.llm.replies import Reply
from tasks.llm.request import Call, Target
from tasks.rules.conversation import Message, group_prompt, judge_prompt
from tasks.rules.identity import BASE_VINTAGE, verdict_id
from tasks.rules.verdict import (
    Verdict,
    parse_only,
    parse_verdict,
    reminder,
    reply_format,
)
from tasks.run.calls import ReplySpec, call_with
from tasks.run.judge_configs import JudgeConfig

Evidence = tuple[str, ...]


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
    def of(cls, row: Mapping[str, Any], messages: Sequence[Message]) -> Self:
        """Return the criterion in a row, which may have further columns."""
        given = {
            **row,
            "messages": messages,
            "piece": tuple(row["piece"] or ()),
        }
        return cls(**{each.name: given[each.name] for each in fields(cls)})


@dataclass
class JudgedCriterion:
    """A criterion with the outcome of its judging; `reply` is None before the last call, or if no
    call is made.

    `earlier_replies` are those of the calls before the last one, `evidence` is what was found in
    each chunk of this round, and `searches` are all searched chunks with their replies and
    evidence. `columns` are those of a cascade's decision, and those of a group: the number of
    criteria in the call, and the position of this one.
    """

    criterion: CriterionToJudge
    verdict_id: str
    earlier_replies: list[Reply] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    searches: list[tuple[Chunk, Reply, Evidence | None]] = field(default_factory=list)
    reply: Reply | None = None
    verdict: Verdict | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)


Done = Callable[[JudgedCriterion], None]


@dataclass(frozen=True)
class CriterionJudge:
    """A judge as it is called, for the verdicts of `owner`: its own configuration, or a cascade's.

    Calls of another `vintage` are different calls, so earlier replies are not used for them.
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
        omits_tag = judge.omits_think_tag
        shape = reply_format(judge.explanation_chars, grading, is_group=is_group)
        read = partial(
            parse_only if is_group else parse_verdict, grading=grading, omits_think_tag=omits_tag
        )
        return ReplySpec(read, shape, reminder(grading, is_group=is_group))

    def verdict_id(self, row: CriterionToJudge) -> str:
        """Return the identity of the judge's verdict on a criterion."""
        return verdict_id_of(self.owner, row, self.vintage)

    def call(
        self, reply_spec: ReplySpec[object], prompt: str, cell: str, priority: tuple[int, ...] = ()
    ) -> Call:
        """Return the judge's call with a prompt."""
        judge = self.judge_config.judge
        trial = self.judge_config.judge_trial
        return call_with(
            judge,
            self.target,
            reply_spec,
            prompt,
            cell=cell,
            trial=trial,
            vintage=self.vintage,
            priority=priority,
        )

    def unjudged(self, row: CriterionToJudge, *earlier: Reply, **in_call: int) -> JudgedCriterion:
        """Return a criterion before it is judged, with the id of its verdict, and the columns of a
        group's call.
        """
        return JudgedCriterion(row, self.verdict_id(row), list(earlier), columns=in_call)

    def prompt(self, text: str, criterion: CriterionToJudge) -> str:
        """Return the judge's prompt on a criterion; `text` is the response, or the evidence in its
        chunks.
        """
        if self.judge_config.judge.piece_size is not None:
            return group_prompt(
                self.judge_config.template, criterion.messages, text, [criterion.criterion_text]
            )
        return judge_prompt(
            self.judge_config.template, criterion.messages, text, criterion.criterion_text
        )


def verdict_id_of(
    judge_config: JudgeConfig, criterion: CriterionToJudge, judge_vintage: str = BASE_VINTAGE
) -> str:
    """Return the identity of a verdict under a judge configuration."""
    return verdict_id(
        response_id=criterion.response_id,
        response_text=criterion.response_text,
        criterion_id=criterion.criterion_id,
        criterion_hash=criterion.criterion_hash,
        judge=judge_config.judge.label,
        judge_config_hash=judge_config.judge_config_hash,
        template_hash=judge_config.template_hash,
        grading=judge_config.grading,
        judge_trial=judge_config.judge_trial,
        judge_vintage=judge_vintage,
        piece=criterion.piece,
    )
