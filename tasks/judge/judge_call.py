"""A judge's call: the request, and what is asked in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tasks.llm import Call, Reply, Target
from tasks.rules import evidence
from tasks.rules.identity import BASE_VINTAGE
from tasks.rules.verdict import Verdict, parse_verdict, reminder, reply_format
from tasks.run import Judging, Question

Criterion = Mapping[str, Any]
Evidence = tuple[str, ...]


@dataclass
class PendingVerdict:
    """A criterion of one response whose verdict is missing, with the calls that were made for it before its last one.

    `found` is the evidence of each chunk of a long answer that was searched for it.
    """

    criterion: Criterion
    verdict_id: str
    replies: list[Reply] = field(default_factory=list)
    found: list[Evidence] = field(default_factory=list)


def verdict_question(judging: Judging) -> Question[Verdict]:
    """What is asked about a criterion: a verdict."""
    grading = judging.grading
    shape = reply_format(judging.judge.explanation_chars, grading)
    read = partial(parse_verdict, grading=grading, omits_think_tag=judging.judge.omits_think_tag)
    return Question(read, shape, reminder(grading))


def evidence_question(judging: Judging) -> Question[Evidence]:
    """What is asked about a chunk of a long answer: the evidence in it."""
    shape = evidence.evidence_format(is_bounded=judging.judge.explanation_chars is not None)
    read = partial(evidence.parse_evidence, omits_think_tag=judging.judge.omits_think_tag)
    return Question(read, shape, evidence.REMINDER)


def judge_call(
    judging: Judging, target: Target, prompt: str, cell: str, priority: tuple[int, ...] = (),
    vintage: str = BASE_VINTAGE, question: Question[Any] | None = None,
) -> Call:  # fmt: skip
    """The call that asks a judge, for a verdict unless another question is given."""
    setting = judging.judge.structured_output
    wants_shape = target.can_follow_schema if setting is None else setting
    shape = (question or verdict_question(judging)).shape if wants_shape else None
    messages = [{"role": "user", "content": prompt}]
    judge = judging.judge
    return Call(
        target, messages, cell, shape, judging.judge_trial, vintage, priority, judge.mode == "batch", judge.allow_live
    )
