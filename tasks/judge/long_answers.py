"""Judging answers that are too long for a judge: searched part by part, decided on what was found in all of them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby
from typing import Any

from tasks.judge.context_fit import Lengths
from tasks.judge.judge_call import Asking, together
from tasks.llm.limits.budget import NotCalled
from tasks.llm.replies import CONTEXT_LENGTH, Reply
from tasks.rules.chunks import NoRoom
from tasks.rules.conversation import Message
from tasks.rules.evidence import evidence_prompt, shown
from tasks.rules.quoting import is_marked, judge_prompt
from tasks.rules.verdict import Verdict
from tasks.run.part_writer import PartWriter

Criterion = Mapping[str, Any]
Evidence = tuple[str, ...]
_HINT = "if the judge's context is longer or shorter than it is taken for, set `context_tokens`"
_WORTH_A_ROUND = 0.75
"""Notes that a round leaves longer than this share of what they were are not made shorter by another one."""


@dataclass
class Case:
    """A criterion of one response, with the calls that were made for it before its last one."""

    criterion: Criterion
    identity: str
    replies: list[Reply] = field(default_factory=list)
    found: list[Evidence] = field(default_factory=list)


@dataclass(frozen=True)
class Part:
    """A part of a text that is searched: its round and number, and where it begins, in characters."""

    text: str
    round_: int
    number: int
    n_parts: int
    first_char: int

    @property
    def name(self) -> str:
        """How people are told of it."""
        return f"part {self.number} of {self.n_parts}" + (f" in round {self.round_}" if self.round_ > 1 else "")


EvidenceRow = Callable[[Case, Part, Reply, Evidence | None], Mapping[str, Any]]
"""(case, part, reply, evidence or None) -> the row to store."""
Settle = Callable[[Case, Reply, Verdict | None], None]
"""Takes what a case came to: the reply and the verdict that it is, if it is one."""


@dataclass(frozen=True)
class Search:
    """The search of one answer. `skip` is told of a case whose calls were not made."""

    asking: Asking
    lengths: Lengths
    messages: Sequence[Message]
    text: str
    priority: tuple[int, ...]
    writer: PartWriter
    row_of: EvidenceRow
    settle: Settle
    skip: Callable[[Case], None]

    async def judge(self, cases: Sequence[Case]) -> None:
        """Judge cases that need the same parts; where the judge says that one is too long, with smaller parts."""
        step_tokens = self.lengths.step_of(cases[0].criterion["title"])
        try:
            texts = await asyncio.to_thread(self.lengths.parts_of, self.messages, self.text, step_tokens)
        except NoRoom as reason:
            for case in cases:
                self._fail(case, f"{reason}; {_HINT}")
            return
        searched, refused = await self._search(cases, _parts(texts, 1))
        async with asyncio.TaskGroup() as group:
            for case in searched:
                group.create_task(self._conclude(case, step_tokens, len(case.found)))
        if refused:
            smaller = self.lengths.after_refusal(self.messages, self.text)
            await replace(self, lengths=smaller).judge(refused)

    async def _search(self, cases: Sequence[Case], parts: Sequence[Part]) -> tuple[list[Case], list[Case]]:
        """Search the parts for all cases, part by part, so that one part after the other is in the provider's cache.

        Returns:
            The cases whose search came to its end, and those for which a part is too long for the judge.
        """
        going, refused = list(cases), []
        for part in parts:
            if not going:
                break
            # The first goes alone: the others find the part in the cache, or need not try.
            outcomes = [await self._search_part(going[0], part)]
            if outcomes[0] == CONTEXT_LENGTH:
                refused += going
                going = []
                break
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._search_part(case, part)) for case in going[1:]]
            outcomes += [task.result() for task in tasks]
            refused += [case for case, outcome in zip(going, outcomes, strict=True) if outcome == CONTEXT_LENGTH]
            going = [case for case, outcome in zip(going, outcomes, strict=True) if outcome is None]
        for case in refused:
            case.found.clear()
        return going, refused

    async def _search_part(self, case: Case, part: Part) -> str | None:
        """Search a part for a case. What it comes to: None, or the status of the failure that ended the case's search.

        A part that the judge finds too long ends nothing yet.
        """
        prompt = evidence_prompt(
            self.lengths.evidence_template, self.messages, case.criterion["title"],
            text=part.text, part=part.number, n_parts=part.n_parts, round_=part.round_,
        )  # fmt: skip
        priority = (*self.priority, part.round_, part.number)
        try:
            reply, evidence = await self.asking.search(prompt, case.identity, priority)
        except NotCalled:
            self.skip(case)
            return "skipped"
        self.writer.add(self.row_of(case, part, reply, evidence), reply, is_failure=evidence is None)
        if evidence is not None:
            case.replies.append(reply)
            case.found.append(evidence)
            return None
        if reply.status == CONTEXT_LENGTH:
            case.replies.append(reply)
        else:
            self._settle(case, replace(reply, error=f"{part.name}: {reply.error}"), None)
        return reply.status

    async def _conclude(self, case: Case, step_tokens: int, n_parts: int, round_: int = 1) -> None:
        """The last call of a case, on its evidence; where that is too long, after another search of the evidence."""
        notes = self._shown(case, n_parts, round_)
        prompt = judge_prompt(self.asking.judging.template, self.messages, notes, case.criterion["title"])
        if not self.lengths.holds(prompt):
            if await self._condense(case, notes, step_tokens, round_ + 1, n_parts):
                await self._conclude(case, step_tokens, n_parts, round_ + 1)
            return
        try:
            reply, verdict = await self.asking.decide(prompt, case.identity, self.priority, is_live=True)
        except NotCalled:
            self.skip(case)
            return
        if reply.status == CONTEXT_LENGTH:
            case.replies.append(reply)
            smaller = replace(self, lengths=self.lengths.after_refusal(self.messages, notes))
            await smaller._conclude(case, step_tokens, n_parts, round_)
            return
        if verdict is None:
            reply = replace(reply, error=f"on the evidence of {len(case.found)} parts: {reply.error}")
        self._settle(case, reply, verdict)

    async def _condense(self, case: Case, notes: str, step_tokens: int, round_: int, n_parts: int) -> bool:
        """Another round over what was found; False if that was the end of the case."""
        try:
            texts = await asyncio.to_thread(self.lengths.parts_of, self.messages, notes, step_tokens, round_)
        except NoRoom as reason:
            self._fail(case, f"{reason}; {_HINT}")
            return False
        case.found.clear()
        for part in _parts(texts, round_):
            outcome = await self._search_part(case, part)
            if outcome == CONTEXT_LENGTH:
                self._fail(case, f"{part.name}: the judge finds it too long; {_HINT}")
            if outcome is not None:
                return False
        before, after = (self.lengths.room.count(each) for each in (notes, self._shown(case, n_parts, round_)))
        if after > _WORTH_A_ROUND * before:
            self._fail(case, f"the evidence is too long: round {round_} left {after} of {before} tokens; {_HINT}")
            return False
        return True

    def _shown(self, case: Case, n_parts: int, round_: int) -> str:
        return shown(case.found, n_parts, round_, is_indented=is_marked(self.asking.judging.template))

    def _fail(self, case: Case, cause: str) -> None:
        """A case that is too long in spite of all; it rests on the calls that were too long, not on those answered."""
        paid = tuple(one for reply in case.replies if reply.status == CONTEXT_LENGTH for one in reply.paid)
        last = case.replies.pop() if case.replies else Reply(CONTEXT_LENGTH, attempts=0)
        self._settle(case, replace(last, status=CONTEXT_LENGTH, error=cause, paid=paid), None)

    def _settle(self, case: Case, reply: Reply, verdict: Verdict | None) -> None:
        """Hand over what a case came to. Only its last reply is what a failure rests on: the others stay answers."""
        self.settle(case, replace(together([*case.replies, reply]), paid=reply.paid), verdict)


def _parts(texts: Sequence[str], round_: int) -> list[Part]:
    starts = accumulate(map(len, texts), initial=0)
    return [
        Part(text, round_, number, len(texts), start)
        for number, (text, start) in enumerate(zip(texts, starts, strict=False), start=1)
    ]


def alike(lengths: Lengths, cases: Sequence[Case]) -> list[list[Case]]:
    """Cases in groups that share the parts of an answer, most often one."""

    def step(case: Case) -> int:
        return lengths.step_of(case.criterion["title"])

    return [list(group) for _, group in groupby(sorted(cases, key=step), key=step)]
