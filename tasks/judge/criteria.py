"""What judging responses and judging the control set share: asking about each criterion, and replies as rows."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from tasks.config.settings import Job
from tasks.console.progress import advance
from tasks.judge.context_fit import Lengths, lengths_of
from tasks.judge.judge_call import Asking
from tasks.judge.long_answers import Case, Criterion, Part, Search, alike
from tasks.llm.limits.budget import NotCalled
from tasks.llm.replies import CONTEXT_LENGTH, OK, Reply
from tasks.rules.conversation import Message
from tasks.rules.identity import BASE_VINTAGE, verdict_id
from tasks.rules.quoting import judge_prompt
from tasks.rules.verdict import Verdict
from tasks.run.conversations import Conversation
from tasks.run.missing_work import Judging, Scope
from tasks.run.part_writer import PartWriter, usage_columns
from tasks.run.stage_report import StageReport

RowOf = Callable[[Criterion, str, Reply, Verdict | None], Mapping[str, Any]]
"""(criterion, identity, reply, verdict or None) -> the row to store."""


@dataclass(frozen=True)
class Bench:
    """Where a judge's decisions are made, written and counted; `report.stage` names the work to those who show it.

    `evidence` takes what was found in the parts of long answers, as rows that `evidence_row` makes.
    """

    asking: Asking
    writer: PartWriter
    report: StageReport
    row_of: RowOf
    evidence: PartWriter
    evidence_row: Callable[[Case, Part, Reply, Sequence[str] | None], Mapping[str, Any]]

    async def judge(self, criteria: Sequence[Criterion], conversations: Mapping[str, Conversation], place: int) -> None:
        """Judge criteria that are in the order of their responses.

        The criteria of one response go out together: the first alone, so that the provider has the conversation in its
        cache when the others follow. `place` is the batch's among all: earlier ones, and in them earlier responses, go
        first, so that calls about one conversation follow each other.
        """
        lengths = await asyncio.to_thread(lengths_of, self.asking.judging, self.asking.target)
        async with asyncio.TaskGroup() as group:
            for number, (_, found) in enumerate(groupby(criteria, key=lambda row: row["response_id"])):
                of_response = list(found)
                messages = conversations[of_response[0]["task_id"]].messages
                group.create_task(self._judge_response(of_response, messages, lengths, (place, number)))

    async def _judge_response(
        self, criteria: Sequence[Criterion], messages: Sequence[Message], lengths: Lengths | None,
        priority: tuple[int, ...],
    ) -> None:  # fmt: skip
        """Judge with the whole answer where the judge can read it, else part by part."""
        text = criteria[0]["text"]
        cases = [Case(row, id_of(self.asking.judging, row, self.asking.vintage)) for row in criteria]
        if lengths is None:
            await self._judge_whole(cases, messages, priority, must_be=True)
            return
        fits = await asyncio.to_thread(lengths.is_whole, messages, text, [row["title"] for row in criteria])
        whole = [case for case, is_whole in zip(cases, fits, strict=True) if is_whole]
        refused = await self._judge_whole(whole, messages, priority)
        long = [case for case, is_whole in zip(cases, fits, strict=True) if not is_whole]
        await self._judge_in_parts(long, messages, lengths, priority)
        if refused:
            await self._judge_in_parts(refused, messages, lengths.after_refusal(messages, text), priority)

    async def _judge_in_parts(
        self, cases: Sequence[Case], messages: Sequence[Message], lengths: Lengths, priority: tuple[int, ...]
    ) -> None:
        for group in alike(lengths, cases):
            search = Search(
                self.asking, lengths, messages, group[0].criterion["text"], priority, self.evidence, self.evidence_row,
                self._settle, self._skip,
            )  # fmt: skip
            await search.judge(group)

    async def _judge_whole(
        self, cases: Sequence[Case], messages: Sequence[Message], priority: tuple[int, ...], *, must_be: bool = False
    ) -> list[Case]:
        """Judge cases by one call each, and return those that the judge finds too long, unless they `must_be` whole."""
        if not cases:
            return []
        if await self._is_too_long(cases[0], messages, priority, must_be):
            return list(cases)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._is_too_long(case, messages, priority, must_be)) for case in cases[1:]
            ]  # fmt: skip
        return [case for case, task in zip(cases[1:], tasks, strict=True) if task.result()]

    async def _is_too_long(
        self, case: Case, messages: Sequence[Message], priority: tuple[int, ...], must_be: bool
    ) -> bool:
        """Judge one case, unless the judge finds it too long."""
        prompt = judge_prompt(
            self.asking.judging.template, messages, case.criterion["text"], case.criterion["title"]
        )  # fmt: skip
        try:
            reply, verdict = await self.asking.decide(prompt, case.identity, priority)
        except NotCalled:
            self._skip(case)
            return False
        if reply.status == CONTEXT_LENGTH and not must_be:
            case.replies.append(reply)
            return True
        self._settle(case, reply, verdict)
        return False

    def _skip(self, _: Case) -> None:
        self.report.skipped += 1

    def _settle(self, case: Case, reply: Reply, verdict: Verdict | None) -> None:
        row = self.row_of(case.criterion, case.identity, reply, verdict)
        self.writer.add(row, reply, is_failure=row["value"] is None)
        self.report.count(row["status"], row["cost_usd"], is_failure=row["value"] is None)
        advance(self.report.stage, case.criterion["model"], succeeded=row["value"] is not None)


def id_of(judging: Judging, criterion: Criterion, judge_vintage: str = BASE_VINTAGE) -> str:
    """The identity of a judging's verdict on a criterion."""
    columns = judging.columns
    return verdict_id(
        criterion["response_id"], criterion["text"], criterion["criterion_id"], criterion["criterion_hash"],
        columns["judge"], columns["judge_config_hash"], columns["template_hash"], columns["grading"],
        columns["judge_trial"], judge_vintage,
    )  # fmt: skip


def verdict_columns(
    job: Job, scope: Scope, judging: Judging, criterion: Criterion, identity: str | None, reply: Reply,
    verdict: Verdict | None,
) -> dict[str, Any]:  # fmt: skip
    """The columns of a verdict, or of the failure that stands in its place."""
    return {
        **scope.key,
        **judging.columns,
        **usage_columns(reply),
        **{name: criterion[name] for name in ("response_id", "task_id", "criterion_id", "criterion_hash")},
        **{name: criterion[name] for name in ("model", "trial", "vintage")},
        "verdict_id": identity,
        "status": verdict.status if verdict else reply.status,
        "value": verdict.value if verdict else None,
        "explanation": verdict.explanation if verdict else None,
        "run_id": job.run_id,
        "created_at": datetime.now(UTC),
    }


def evidence_columns(
    job: Job, scope: Scope, case: Case, part: Part, reply: Reply, evidence: Sequence[str] | None
) -> dict[str, Any]:
    """The row of what was found in a part of a long answer, or of the failure that stands in its place."""
    return {
        **scope.key,
        **usage_columns(reply),
        **{name: case.criterion[name] for name in ("response_id", "task_id", "criterion_id")},
        "verdict_id": case.identity,
        "round": part.round_,
        "part_number": part.number,
        "n_parts": part.n_parts,
        "first_char": part.first_char,
        "n_chars": len(part.text),
        "status": reply.status if evidence is None else OK,
        "evidence": None if evidence is None else list(evidence),
        "run_id": job.run_id,
        "created_at": datetime.now(UTC),
    }
