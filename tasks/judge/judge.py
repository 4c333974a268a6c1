"""Judging responses: pieces of a rubric in one call, cascades of two judges, and provider batches.

The criteria of a piece are decided by a decision model, or by a chat model that lists verdicts. Everything that becomes
a row is read from the ledger's attempts of the call, so that a row is the same whether its call was made just now or
before. A criterion takes the first attempt in which its entry can be read; what an attempt used is shared by the
criteria that no earlier one had decided.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import sql
from tasks.config.job import Job
from tasks.judge.context_fit import context_fit_of
from tasks.judge.criterion import CriterionJudge, CriterionToJudge, Done, JudgedCriterion, ResponseJudge, VerdictRows
from tasks.llm.calls.gateway import Gateway
from tasks.llm.ledger.entries import Entry, History
from tasks.llm.limiter import NotCalled
from tasks.llm.replies import CONTEXT_LENGTH, EMPTY, OK, Paid, Reply
from tasks.llm.request import Call
from tasks.rules import verdict
from tasks.rules.cascades.rules import When, reasons_to_escalate
from tasks.rules.conversation import decision_input, group_prompt
from tasks.rules.identity import BASE_VINTAGE
from tasks.rules.text.characters import one_line
from tasks.rules.verdict import PARSE_ERROR, Verdict, VerdictError
from tasks.run import missing_work
from tasks.run.calls import run_all, sum_usage
from tasks.run.judge_configs import JudgeConfig, judge_configs, judge_target
from tasks.run.missing_work import MissingVerdicts, WantedTasks
from tasks.run.run_context import RunContext
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

_TOKENS = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens")
_NANO = 1_000_000_000


@dataclass
class PieceEntry:
    """The result of a piece's call for a criterion: its entry, and the replies to all attempts with its usage."""

    entry: verdict.Entry
    replies: list[Reply] = field(default_factory=list)

    def outcome(self, failure: Reply | None) -> tuple[Reply, Verdict | None]:
        """Return the deciding reply with the usage of all, and the verdict; without one, `failure` or a parse error."""
        decided = self.entry if isinstance(self.entry, Verdict) else None
        deciding = failure if failure is not None and decided is None else self.replies[-1]
        reply = replace(sum_usage(self.replies, deciding, with_tokens=True), prices=deciding.prices)
        if decided is None and reply.status in {OK, EMPTY}:
            reply = replace(reply, status=PARSE_ERROR, error=one_line(str(self.entry)))
        return reply, decided


class GroupJudge(CriterionJudge):
    """A judge that decides the criteria of a piece of a rubric in one call."""

    async def judge_response(self, criteria: Sequence[CriterionToJudge], priority: tuple[int, ...], done: Done) -> None:
        """Judge the pieces of one response, each given whole; pass each missing criterion to `done` when it ends.

        The first piece goes alone, so that the provider has the common part of the prompts in its cache when the others
        follow.
        """
        first, *others = pieces_of(criteria)
        await self._judge_piece(first, priority, done)
        await run_all(self._judge_piece(piece, priority, done) for piece in others)

    def whole_calls(self, criteria: Sequence[CriterionToJudge]) -> Iterator[tuple[Call | None, int]]:
        """Yield the calls for pieces that fit into the judge's context, with the number of their missing criteria.

        None stands for a call that needs no batch: the ledger decides it, or its next attempt is live.
        """
        for piece in pieces_of(criteria):
            if (call := self._call(piece)) is not None:
                _, further = self._state(call, piece)
                yield further if further and further.is_batched else None, sum(row.is_missing for row in piece)

    def _call(self, piece: Sequence[CriterionToJudge]) -> Call | None:
        """Return the call for a piece; None if it does not fit into the judge's context."""
        config, texts, response = self.judge_config, [row.criterion_text for row in piece], piece[0].response_text
        cell, target, messages = self.verdict_id(piece[0]), self.target, piece[0].messages
        if config.judge.is_decision_model:
            text, questions = decision_input(config.template, messages, response, texts)
            content, wanted = [{"role": "user", "content": text}], verdict.questions_on(questions, config.grading)
            return Call(target, content, cell, trial=config.judge_trial, vintage=self.vintage, questions=wanted)
        prompt = group_prompt(config.template, messages, response, texts)
        if self.fit is not None and not self.fit.holds(prompt):
            return None
        if most_tokens := target.parameters.get("max_tokens"):
            target = replace(target, parameters={**target.parameters, "max_tokens": most_tokens * len(piece)})
        return replace(self.call(self.reply_spec, prompt, cell), target=target)

    def _state(self, call: Call, piece: Sequence[CriterionToJudge]) -> tuple[list[PieceEntry], Call | None]:
        """Return what a call has given so far, and its next attempt; None if it is decided or had enough attempts."""
        history = self.gateway.history(call)
        replies = [entry for entry in history.entries if entry.reply.status == OK]
        entries = self.entries_of(call, history, piece)
        outcomes = zip(piece, entries, strict=True)
        is_decided = not any(row.is_missing and isinstance(each.entry, VerdictError) for row, each in outcomes)
        # A piece is called for once more if an entry cannot be read.
        if is_decided or sum(entry.attempt > history.spent for entry in replies) >= 2:
            return entries, None
        last = max([history.spent, *(entry.attempt for entry in replies)])
        return entries, replace(call.live if replies else call, after_attempt=last)

    async def _judge_piece(self, piece: Sequence[CriterionToJudge], priority: tuple[int, ...], done: Done) -> None:
        call = await asyncio.to_thread(self._call, piece)
        failure, is_called = None, True
        entries, further = self._state(call, piece) if call else ([PieceEntry(VerdictError()) for _ in piece], None)
        try:
            while failure is None and call is not None and further is not None:
                reply = await self.gateway.complete(replace(further, priority=priority))
                failure = None if reply.status == OK else reply
                entries, further = self._state(call, piece)
        except NotCalled:
            is_called = False
        is_too_long = call is None or (failure is not None and failure.status == CONTEXT_LENGTH)
        falls_back = is_too_long and not self.judge_config.judge.is_decision_model
        alone = []
        for position, (row, each) in enumerate(zip(piece, entries, strict=True), start=1):
            is_decided = isinstance(each.entry, Verdict)
            if row.is_missing and falls_back and not is_decided:
                alone.append(self.unjudged(row, *each.replies, n_in_call=1, position_in_call=1))
            elif row.is_missing:
                judged = self.unjudged(row, n_in_call=len(piece), position_in_call=position)
                if is_decided or is_called:
                    judged.reply, judged.verdict = each.outcome(failure)
                done(judged)
        if alone:
            await ResponseJudge(self, priority, done).judge(alone)

    def entries_of(self, call: Call, history: History, piece: Sequence[CriterionToJudge]) -> list[PieceEntry]:
        """Return what a call's attempts gave for each criterion of its piece, with its share of tokens and cost.

        The cost of a call for a control set is shared by the members of the set alone.
        """
        n_criteria = len(piece)
        is_sharing = [row.is_missing or self.vintage == BASE_VINTAGE for row in piece]
        entries = [PieceEntry(VerdictError("the reply is empty")) for _ in piece]
        paid: tuple[Paid, ...] = ()
        for attempt in history.entries:
            paid = (*paid, (attempt.call_key, attempt.attempt))
            undecided = [(n, each) for n, each in enumerate(entries) if isinstance(each.entry, VerdictError)]
            sharing = [each for n, each in undecided if is_sharing[n]]
            for each, reply in zip(sharing, _shares(attempt, len(sharing), call.cell) if sharing else (), strict=True):
                each.replies.append(replace(reply, paid=paid))
            read = self._parse(attempt.reply.text or "", n_criteria) if attempt.reply.status == OK else ()
            for n, each in undecided if read else ():
                each.entry = read[n]
        return entries

    def _parse(self, text: str, n_criteria: int) -> Sequence[verdict.Entry]:
        judge, grading = self.judge_config.judge, self.judge_config.grading
        try:
            if judge.is_decision_model:
                return verdict.parse_decisions(text, n_criteria, grading, judge.least_probability)
            return verdict.parse_group(text, n_criteria, grading, omits_think_tag=judge.omits_think_tag)
        except VerdictError as error:
            return [error] * n_criteria


async def judge_of(
    gateway: Gateway, judge_config: JudgeConfig, owner: JudgeConfig, vintage: str = BASE_VINTAGE
) -> CriterionJudge:
    """Return the judge of a configuration, with the limit of its context.

    It decides each criterion by itself, or the pieces of a rubric.
    """
    kind = CriterionJudge if judge_config.judge.piece_size is None else GroupJudge
    target = judge_target(judge_config.judge)
    fit = await asyncio.to_thread(context_fit_of, judge_config, target)
    return kind(gateway, target, judge_config, owner, fit, vintage)


def by_response(criteria: Sequence[CriterionToJudge]) -> list[list[CriterionToJudge]]:
    """Return the criteria grouped by response; those of one response must follow each other."""
    return [list(group) for _, group in groupby(criteria, key=lambda row: row.response_id)]


def pieces_of(criteria: Sequence[CriterionToJudge]) -> list[list[CriterionToJudge]]:
    """Return the pieces of a response's criteria, each whole and in the rubric's order."""
    return [list(piece) for _, piece in groupby(criteria, key=lambda row: row.call_index)]


def _shares(attempt: Entry, n_shares: int, cell: str) -> Iterator[Reply]:
    """Yield an attempt's reply `n_shares` times, each with an equal share of its cost and tokens.

    The shares are 0 unless the attempt was made for this `cell`. Unknown tokens of a failed attempt count as 0.
    """
    reply, factor = attempt.reply, int(attempt.cell == cell)
    used = [getattr(reply, name) for name in _TOKENS]
    if reply.status != OK:
        used = [value or 0 for value in used]
    used.append(None if reply.cost_usd is None else round(reply.cost_usd * _NANO))
    shares = ([None] * n_shares if each is None else verdict.shares(each * factor, n_shares) for each in used)
    for *counts, nano in zip(*shares, strict=True):
        usd = None if nano is None else nano / _NANO
        yield replace(reply, text=None, attempts=1, cost_usd=usd, **dict(zip(_TOKENS, counts, strict=True)))


@dataclass(frozen=True)
class CascadeJudge:
    """A cascade that decides criteria: its first judge in each repetition that counts, then its second.

    All calls for a criterion are made for the cascade's verdict, so that its row holds their cost. The reply to a call
    that one of the judges has made for itself is taken from the ledger.
    """

    first: Sequence[CriterionJudge]
    then: CriterionJudge
    when: When

    async def judge_response(self, criteria: Sequence[CriterionToJudge], priority: tuple[int, ...], done: Done) -> None:
        """Judge the criteria of one response by the first judge, then the escalated ones by the second judge.

        The calls of one judge follow each other, so that its provider has the conversation cached.
        """

        async def judged_by(judge: CriterionJudge, some: Sequence[CriterionToJudge]) -> dict[str, JudgedCriterion]:
            outcomes: list[JudgedCriterion] = []
            if some:
                await judge.judge_response(some, priority, outcomes.append)
            return {each.criterion.criterion_id: each for each in outcomes}

        first = [await judged_by(judge, criteria) for judge in self.first]
        criteria = [row for row in criteria if row.is_missing]  # the first judge gets whole pieces
        why = {row.criterion_id: self._reasons(row, [of[row.criterion_id] for of in first]) for row in criteria}
        escalated = [row for row in criteria if why[row.criterion_id]]
        then = await judged_by(self.then, [replace(row, call_index=n) for n, row in enumerate(escalated)])
        for key, reasons in why.items():
            judged = [of[key] for of in (*first, then) if key in of]
            replies = [each.reply for each in judged if each.reply is not None]
            if len(replies) < len(judged):  # one was not called: no decision
                done(replace(judged[0], reply=None))
                continue
            at, by = (-1, self.then) if reasons else (0, self.first[0])
            usage = sum_usage(replies, replies[at], with_tokens=True)
            decision = {"decided_by": by.judge_config.judge.label, "escalated_because": reasons or None}
            done(replace(judged[at], reply=usage, columns={**judged[at].columns, **decision}))

    def _reasons(self, criterion: CriterionToJudge, first: Sequence[JudgedCriterion]) -> list[str]:
        """Return the reasons to call the second judge; none if the first has decided, or is not finished."""
        if first[0].reply is None or any(each.reply is None for each in first):
            return []
        confidence = first[0].verdict.confidence if first[0].verdict else None
        values = [each.verdict.value if each.verdict else None for each in first]
        return reasons_to_escalate(self.when, values, confidence, vars(criterion))


def plan_verdicts(job: Job) -> list[tuple[JudgeConfig, list[MissingVerdicts]]]:
    """Return for each judge configuration the responses that lack verdicts."""
    with Warehouse(job.warehouse).reader() as reader:
        wanted = missing_work.wanted_tasks(job, reader)
        return [
            (judge_config, missing_work.missing_verdicts(job, wanted, reader, judge_config))
            for judge_config in judge_configs(job, wanted.benchmark)
        ]


def criteria_to_judge(
    job: Job, context: RunContext, judge_config: JudgeConfig, response_ids: Sequence[str]
) -> tuple[WantedTasks, list[CriterionToJudge]]:
    """Return the wanted tasks, and the undecided criteria of some responses."""
    with context.warehouse.reader() as reader:
        wanted = missing_work.wanted_tasks(job, reader)
        values = {**missing_work.undecided(job, judge_config), "responses": list(response_ids)}
        return wanted, criteria_of(reader, wanted, values)


def criteria_of(reader: Reader, wanted: WantedTasks, values: Mapping[str, Any]) -> list[CriterionToJudge]:
    """Return the undecided criteria of responses, these in the order given, criteria in the rubric's order."""
    rows = reader.rows(sql.read("queries/run/missing_verdicts"), values)
    conversations = missing_work.conversations_of(reader, wanted, (row["task_id"] for row in rows))
    return [CriterionToJudge.of(row, conversations[row["task_id"]].messages) for row in rows]


async def judge_responses(
    job: Job, context: RunContext, judge_config: JudgeConfig, response_ids: Sequence[str],
    batch_index: int = 0,
) -> StageReport:  # fmt: skip
    """Make the missing verdicts of a batch of responses, and write them, failed ones too.

    `batch_index` is the batch's number among all; see `judge_criteria` for the order of the calls.
    """
    wanted, criteria = criteria_to_judge(job, context, judge_config, response_ids)
    report = StageReport("judge")
    own_columns = {"source": "judged", "import_batch": None, "may_hide_failures": False}
    with VerdictRows(job, context, wanted, judge_config, report, "verdicts", own_columns) as rows:
        await judge_criteria(rows, criteria, batch_index)
    return report


async def judge_criteria(
    rows: VerdictRows, criteria: Sequence[CriterionToJudge], batch_index: int, vintage: str = BASE_VINTAGE
) -> None:
    """Judge criteria, given in the order of their responses, by a judge or a cascade, and write the verdicts.

    The criteria of one response go out together. Calls go out in the order of `batch_index`, then of responses, so that
    those about one conversation follow each other. `vintage` is that of `CriterionJudge`.
    """
    gateway, judge_config, cascade = rows.gateway, rows.judge_config, rows.judge_config.cascade
    judge: CriterionJudge | CascadeJudge
    if cascade is None:
        judge = await judge_of(gateway, judge_config, judge_config, vintage)
    else:
        *first, then = [await judge_of(gateway, each, judge_config, vintage) for each in (*cascade.first, cascade.then)]
        judge = CascadeJudge(first, then, cascade.when)
    await judge_each_response(judge, criteria, rows, batch_index)


async def judge_each_response(
    judge: CriterionJudge | CascadeJudge, criteria: Sequence[CriterionToJudge], rows: VerdictRows, batch_index: int = 0
) -> None:
    """Have a judge decide criteria, those of one response together, and write the verdicts."""
    responses = enumerate(by_response(criteria))
    await run_all(judge.judge_response(each, (batch_index, number), rows.write) for number, each in responses)


async def judge_by_provider_batches(
    job: Job, context: RunContext, judge_config: JudgeConfig, response_ids: Sequence[str]
) -> StageReport:
    """Submit the calls of missing verdicts that are in no batch yet, and collect the batches that have ended.

    The collected replies are then in the ledger, where `judge_responses` finds them. Calls of a batch that is still
    running when the wait ends stay missing until a later run. A response that is too long for the judge needs calls
    that depend on others, which no batch can hold; `judge_responses` makes them if the judge allows live calls.
    """
    report, label = StageReport("judge"), judge_config.judge.label
    if context.is_held_back("judge", label):
        return report
    judge = await judge_of(context.gateway("judge", label), judge_config, judge_config)
    _, missing = criteria_to_judge(job, context, judge_config, response_ids)
    whole = [each for of_response in by_response(missing) for each in judge.whole_calls(of_response)]
    calls = [call for call, _ in whole if call is not None]
    await context.submit_and_collect(judge_target(judge_config.judge), calls, report)
    n_long = sum(each.is_missing for each in missing) - sum(n_criteria for _, n_criteria in whole)
    if n_long and not judge_config.judge.allow_live:
        warning = f"{n_long} verdicts on long responses need live calls: set `allow_live: true` for {label}"
        report.warnings.append(warning)
    return report
