"""Judging the criteria of a piece of a rubric in one call: by a decision model, or a chat model
that lists verdicts.

Everything that becomes a row is read from the ledger's attempts of the call, so that a row is the
same whether its call was made just now or before. A criterion takes the first attempt in which its
entry can be read; what an attempt used is shared by the criteria that no earlier one had decided.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from tasks.judge.context_fit import context_fit_of
from tasks.judge.criterion import CriterionJudge, CriterionToJudge, Done, ResponseJudge
from tasks.llm.calls.gateway import Gateway
from tasks.llm.ledger.entries import Entry, History
from tasks.llm.limiter import NotCalled
from tasks.llm.replies import CONTEXT_LENGTH, EMPTY, OK, Paid, Reply
from tasks.llm.request import Call
from tasks.rules import verdict
from tasks.rules.conversation import decision_input, group_prompt
from tasks.rules.identity import BASE_VINTAGE
from tasks.rules.text.characters import one_line
from tasks.rules.verdict import PARSE_ERROR, Verdict, VerdictError
from tasks.run.calls import run_all, sum_usage
from tasks.run.judge_configs import JudgeConfig, judge_target
from tasks.run.missing_work import SETTLED

_TOKENS = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens")
_NANO = 1_000_000_000


@dataclass
class PieceEntry:
    """The result of a piece's call for a criterion: its entry, and the replies to all attempts with
    its usage.

    With `is_settled`, replies of an earlier run were unreadable too.
    """

    entry: verdict.VerdictOrError
    replies: list[Reply] = field(default_factory=list)
    is_settled: bool = False

    def outcome(self, failure: Reply | None) -> tuple[Reply, Verdict | None]:
        """Return the deciding reply with the usage of all, and the verdict; without one, `failure`
        or a parse error.
        """
        decided = self.entry if isinstance(self.entry, Verdict) else None
        deciding = failure if failure is not None and decided is None else self.replies[-1]
        reply = replace(sum_usage(self.replies, deciding, with_tokens=True), prices=deciding.prices)
        if decided is None and reply.status in {OK, EMPTY}:
            cause = one_line(str(self.entry))
            error = f"{cause}; {SETTLED}" if self.is_settled else cause
            reply = replace(reply, status=PARSE_ERROR, error=error)
        return reply, decided


class GroupJudge(CriterionJudge):
    """A judge that decides the criteria of a piece of a rubric in one call."""

    async def judge_response(
        self, criteria: Sequence[CriterionToJudge], priority: tuple[int, ...], done: Done
    ) -> None:
        """Judge the pieces of one response, each given whole; pass each missing criterion to `done`
        when it ends.

        The first piece goes alone, so that the provider has the common part of the prompts in its
        cache when the others follow.
        """
        first, *others = pieces_of(criteria)
        await self._judge_piece(first, priority, done)
        await run_all(self._judge_piece(piece, priority, done) for piece in others)

    def whole_calls(
        self, criteria: Sequence[CriterionToJudge]
    ) -> Iterator[tuple[Call | None, int]]:
        """Yield the calls for pieces that fit into the judge's context, with the number of their
        missing criteria.

        None stands for a call that needs no batch: the ledger decides it, or its next attempt is
        live.
        """
        for piece in pieces_of(criteria):
            call = self._call(piece)
            if call is not None:
                _, further = self._state(call, piece)
                yield (
                    further if further and further.is_batched else None,
                    sum(row.is_missing for row in piece),
                )

    def _call(self, piece: Sequence[CriterionToJudge]) -> Call | None:
        """Return the call for a piece; None if it does not fit into the judge's context."""
        config = self.judge_config
        texts = [row.criterion_text for row in piece]
        response = piece[0].response_text
        cell = self.verdict_id(piece[0])
        target = self.target
        messages = piece[0].messages
        if config.judge.is_decision_model:
            text, questions = decision_input(config.template, messages, response, texts)
            content = [{"role": "user", "content": text}]
            wanted = verdict.questions_on(questions, config.grading)
            return Call(
                target,
                content,
                cell,
                trial=config.judge_trial,
                vintage=self.vintage,
                questions=wanted,
            )
        prompt = group_prompt(config.template, messages, response, texts)
        if self.fit is not None and not self.fit.holds(prompt):
            return None
        most_tokens = target.parameters.get("max_tokens")
        if most_tokens:
            target = replace(
                target, parameters={**target.parameters, "max_tokens": most_tokens * len(piece)}
            )
        return replace(self.call(self.reply_spec, prompt, cell), target=target)

    def _state(
        self, call: Call, piece: Sequence[CriterionToJudge]
    ) -> tuple[list[PieceEntry], Call | None]:
        """Return what a call has given so far, and its next attempt; None if it is decided or had
        enough attempts.
        """
        history = self.gateway.history(call)
        replies = [entry for entry in history.entries if entry.reply.status == OK]
        entries = self.entries_of(call, history, piece)
        outcomes = zip(piece, entries, strict=True)
        is_decided = not any(
            row.is_missing and isinstance(each.entry, VerdictError) for row, each in outcomes
        )
        n_new = sum(entry.attempt > history.spent for entry in replies)
        n_earlier = len(replies) - n_new
        # A piece is called for once more if an entry cannot be read, but not after two runs.
        most = 1 if n_earlier >= 4 else 2
        if is_decided or n_new >= most:
            return entries, None
        last = max([history.spent, *(entry.attempt for entry in replies)])
        return entries, replace(call.live if replies else call, after_attempt=last)

    async def _judge_piece(
        self, piece: Sequence[CriterionToJudge], priority: tuple[int, ...], done: Done
    ) -> None:
        call = await asyncio.to_thread(self._call, piece)
        failure = None
        is_called = True
        entries, further = (
            self._state(call, piece)
            if call
            else ([PieceEntry(VerdictError()) for _ in piece], None)
        )
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

    def entries_of(
        self, call: Call, history: History, piece: Sequence[CriterionToJudge]
    ) -> list[PieceEntry]:
        """Return what a call's attempts gave for each criterion of its piece, with its share of
        tokens and cost.

        The cost of a call for a control set is shared by the members of the set alone.
        """
        n_criteria = len(piece)
        is_settled = _has_replies_of_two_runs(history)
        is_sharing = [row.is_missing or self.vintage == BASE_VINTAGE for row in piece]
        entries = [
            PieceEntry(VerdictError("the reply is empty"), is_settled=is_settled) for _ in piece
        ]
        paid: tuple[Paid, ...] = ()
        for attempt in history.entries:
            paid = (*paid, (attempt.call_key, attempt.attempt))
            undecided = [
                (n, each) for n, each in enumerate(entries) if isinstance(each.entry, VerdictError)
            ]
            sharing = [each for n, each in undecided if is_sharing[n]]
            for each, reply in zip(
                sharing, _shares(attempt, len(sharing), call.cell) if sharing else (), strict=True
            ):
                each.replies.append(replace(reply, paid=paid))
            read = (
                self._parse(attempt.reply.text or "", n_criteria)
                if attempt.reply.status == OK
                else ()
            )
            for n, each in undecided if read else ():
                each.entry = read[n]
        return entries

    def _parse(self, text: str, n_criteria: int) -> Sequence[verdict.VerdictOrError]:
        judge = self.judge_config.judge
        grading = self.judge_config.grading
        try:
            if judge.is_decision_model:
                return verdict.parse_decisions(text, n_criteria, grading, judge.least_probability)
            return verdict.parse_group(
                text, n_criteria, grading, omits_think_tag=judge.omits_think_tag
            )
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


def _has_replies_of_two_runs(history: History) -> bool:
    """Return whether a call has replies from before its last failed row was written, and replies
    from after that.
    """
    attempts = [entry.attempt for entry in history.entries if entry.reply.status in {OK, EMPTY}]
    return bool(attempts) and min(attempts) <= history.spent < max(attempts)


def _shares(attempt: Entry, n_shares: int, cell: str) -> Iterator[Reply]:
    """Yield an attempt's reply `n_shares` times, each with an equal share of its cost and tokens.

    The shares are 0 unless the attempt was made for this `cell`. Unknown tokens of a failed attempt
    count as 0.
    """
    reply = attempt.reply
    factor = int(attempt.cell == cell)
    used = [getattr(reply, name) for name in _TOKENS]
    if reply.status != OK:
        used = [value or 0 for value in used]
    used.append(None if reply.cost_usd is None else round(reply.cost_usd * _NANO))
    shares = (
        [None] * n_shares if each is None else verdict.shares(each * factor, n_shares)
        for each in used
    )
    for *counts, nano in zip(*shares, strict=True):
        usd = None if nano is None else nano / _NANO
        yield replace(
            reply,
            text=None,
            attempts=1,
            cost_usd=usd,
            **dict(zip(_TOKENS, counts, strict=True)),
        )
