"""Judging the criteria of a piece of a rubric in one call: by a decision model, or a chat model
that lists verdicts.

Everything that becomes a row is read from the ledger's attempts of the call, so that a row is the
same whether its call was made just now or before. A criterion takes the first attempt in which its
entry can be read; what an attempt used is shared by the criteria that no earlier one had decided.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from tasks.judge.criterion import CriterionToJudge, Deliver, JudgedCriterion
from tasks.judge.responses import ResponseJudge, WholeCall
from tasks.llm.ledger.entries import Entry, History
from tasks.llm.limiter import NotCalled
from tasks.llm.replies import CONTEXT_LENGTH, EMPTY, OK, LedgerKey, Reply
from tasks.llm.request import Call
from tasks.rules.conversation import decision_input, group_prompt
from tasks.rules.identity import BASE_VINTAGE
from tasks.rules.text.characters import one_line
from tasks.rules.verdict import (
    PARSE_ERROR,
    Verdict,
    VerdictError,
    VerdictOrError,
    parse_decisions,
    parse_group,
    questions_on,
)
from tasks.run.calls import TOKEN_FIELDS, run_all, sum_usage
from tasks.run.missing_work import SETTLED

_NANO = 1_000_000_000
_MOST_CALLS = 2
"""A run calls for a piece once more if an entry cannot be read."""
_REPLIES_OF_TWO_RUNS = 2 * _MOST_CALLS
"""After so many replies of earlier runs, a run calls only once."""

Piece = Sequence[CriterionToJudge]
"""The criteria that are decided in one call."""


@dataclass
class PieceOutcome:
    """What the attempts of a piece's call gave for one criterion.

    `result` is the criterion's part of a reply, `replies` are those to all attempts with its share
    of their usage. With `is_settled`, replies of an earlier run were unreadable too.
    """

    result: VerdictOrError
    replies: list[Reply] = field(default_factory=list)
    is_settled: bool = False

    @property
    def verdict(self) -> Verdict | None:
        """The verdict; None if no entry could be read."""
        return self.result if isinstance(self.result, Verdict) else None

    def reply(self, failure: Reply | None) -> Reply:
        """Return the deciding reply with the usage of all.

        Without a verdict it is `failure`, or a parse error.
        """
        if failure is not None and self.verdict is None:
            deciding_reply = failure
        else:
            deciding_reply = self.replies[-1]
        # `sum_usage` drops prices that differ, as those of a batch and a live call; the row has
        # those of the deciding call.
        reply = replace(
            sum_usage(self.replies, deciding_reply, with_tokens=True), prices=deciding_reply.prices
        )
        if self.verdict is None and reply.status in {OK, EMPTY}:
            error = one_line(str(self.result))
            if self.is_settled:
                error = f"{error}; {SETTLED}"
            reply = replace(reply, status=PARSE_ERROR, error=error)
        return reply


class PieceState(NamedTuple):
    """The outcomes of a piece so far, and its next call.

    It needs no call if it is decided, had enough of them, or one ended as a `failure`.
    """

    outcomes: Sequence[PieceOutcome]
    next_call: Call | None = None
    failure: Reply | None = None


class GroupJudge(ResponseJudge):
    """A judge that decides the criteria of a piece of a rubric in one call."""

    async def judge_response(
        self,
        criteria: Sequence[CriterionToJudge],
        priority: tuple[int, ...],
        deliver: Deliver,
    ) -> None:
        """Judge the pieces of one response, each given whole.

        Each missing criterion is passed to `deliver` when it ends. The first piece goes alone, so
        that the provider has the common part of the prompts in its cache when the others follow.
        """
        pieces = pieces_of(criteria)
        await self._judge_piece(pieces[0], priority, deliver)
        await run_all(self._judge_piece(piece, priority, deliver) for piece in pieces[1:])

    async def whole_calls(
        self,
        criteria: Sequence[CriterionToJudge],
    ) -> AsyncIterator[WholeCall]:
        """Yield the calls for pieces that fit into the judge's context.

        One that the ledger decides, or whose next attempt is live, needs no batch.
        """
        for piece in pieces_of(criteria):
            call = self._piece_call(piece)
            if call is not None:
                state = await self._piece_state(call, piece)
                next_call = state.next_call
                if next_call is not None and not next_call.is_batched:
                    next_call = None
                n_missing = sum(criterion.is_missing for criterion in piece)
                yield WholeCall(next_call, n_missing)

    async def _judge_piece(self, piece: Piece, priority: tuple[int, ...], deliver: Deliver) -> None:
        """Judge a piece by its call; if it is too long for that, its criteria one by one."""
        call = await asyncio.to_thread(self._piece_call, piece)
        if call is None:
            too_long = [self._judged(criterion) for criterion in piece if criterion.is_missing]
        else:
            too_long = await self._judge_in_one_call(call, piece, priority, deliver)
        if too_long:
            await self.judge_one_by_one(too_long, priority, deliver)

    def _judged(
        self,
        criterion: CriterionToJudge,
        n_in_call: int = 1,
        position: int = 1,
    ) -> JudgedCriterion:
        """Return a criterion without an outcome, for its position in a call, or its own call."""
        return JudgedCriterion(
            criterion,
            self.verdict_id(criterion),
            n_in_call=n_in_call,
            position_in_call=position,
        )

    async def _judge_in_one_call(
        self,
        call: Call,
        piece: Piece,
        priority: tuple[int, ...],
        deliver: Deliver,
    ) -> list[JudgedCriterion]:
        """Judge a piece by its call; return its undecided criteria if it was too long."""
        state = await self._make_calls(call, piece, priority)
        failure = state.failure
        is_too_long = failure is not None and failure.status == CONTEXT_LENGTH
        falls_back = is_too_long and not self.judge_config.judge.is_decision_model
        too_long = []
        for position, criterion in enumerate(piece, start=1):
            if not criterion.is_missing:
                continue
            outcome = state.outcomes[position - 1]
            if falls_back and outcome.verdict is None:
                judged = self._judged(criterion)
                judged.earlier_replies = outcome.replies
                too_long.append(judged)
                continue
            judged = self._judged(criterion, len(piece), position)
            if state.next_call is None or outcome.verdict is not None:
                judged.reply = outcome.reply(failure)
                judged.verdict = outcome.verdict
            deliver(judged)
        return too_long

    async def _make_calls(self, call: Call, piece: Piece, priority: tuple[int, ...]) -> PieceState:
        """Call for a piece until it needs no call, or its next one is not made."""
        state = await self._piece_state(call, piece)
        while state.next_call is not None:
            try:
                reply = await self.gateway.complete(replace(state.next_call, priority=priority))
            except NotCalled:
                break
            state = await self._piece_state(call, piece)
            if reply.status != OK:
                return PieceState(state.outcomes, failure=reply)
        return state

    def _piece_call(self, piece: Piece) -> Call | None:
        """Return the call for a piece; None if it does not fit into the judge's context."""
        config = self.judge_config
        response = piece[0]
        cell = self.verdict_id(response)
        criteria = [criterion.criterion_text for criterion in piece]
        texts = (config.template, response.messages, response.response_text, criteria)
        if config.judge.is_decision_model:
            text, questions = decision_input(*texts)
            return Call(
                self.target,
                [{"role": "user", "content": text}],
                cell,
                trial=config.judge_trial,
                vintage=self.vintage,
                questions=questions_on(questions, config.grading),
            )
        prompt = group_prompt(*texts)
        if self.fit is not None and not self.fit.holds(prompt):
            return None
        call = self.call(self.reply_spec, prompt, cell)
        most_tokens_each = self.target.parameters.get("max_tokens")
        if not most_tokens_each:
            return call
        parameters = {**self.target.parameters, "max_tokens": most_tokens_each * len(piece)}
        return replace(call, target=replace(self.target, parameters=parameters))

    async def _piece_state(self, call: Call, piece: Piece) -> PieceState:
        """Return what a call has given so far, and its next attempt."""
        history = await self.gateway.ledger.history_of(call, call.parameters())
        outcomes = self._outcomes(call, history, piece)
        is_decided = all(
            outcome.verdict is not None or not criterion.is_missing
            for criterion, outcome in zip(piece, outcomes, strict=True)
        )
        ok_attempts = [entry.attempt for entry in history.entries if entry.reply.status == OK]
        n_of_this_run = sum(attempt > history.spent for attempt in ok_attempts)
        n_of_earlier_runs = len(ok_attempts) - n_of_this_run
        most_calls = 1 if n_of_earlier_runs >= _REPLIES_OF_TWO_RUNS else _MOST_CALLS
        if is_decided or n_of_this_run >= most_calls:
            return PieceState(outcomes)
        if ok_attempts:
            call = call.live_if_allowed
        last_attempt = max([history.spent, *ok_attempts])
        return PieceState(outcomes, replace(call, after_attempt=last_attempt))

    def _outcomes(self, call: Call, history: History, piece: Piece) -> list[PieceOutcome]:
        """Return what a call's attempts gave for each criterion of its piece.

        The cost of a call for a control set (which has a vintage) is shared by the members of the
        set alone.
        """
        is_settled = _has_replies_of_two_runs(history)
        outcomes = [
            PieceOutcome(VerdictError("the reply is empty"), is_settled=is_settled) for _ in piece
        ]
        # Each reply has the keys of all attempts so far, because a failed row marks only those of
        # its last reply as spent.
        ledger_keys: tuple[LedgerKey, ...] = ()
        for entry in history.entries:
            ledger_keys = (*ledger_keys, entry.key)
            undecided = [index for index, outcome in enumerate(outcomes) if not outcome.verdict]
            sharing = [
                outcomes[index]
                for index in undecided
                if piece[index].is_missing or self.vintage == BASE_VINTAGE
            ]
            replies = _reply_shares(entry, len(sharing), call.cell)
            for outcome, reply in zip(sharing, replies, strict=True):
                outcome.replies.append(replace(reply, ledger_keys=ledger_keys))
            if entry.reply.status == OK:
                results = self._parse(entry.reply.text or "", len(piece))
                for index in undecided:
                    outcomes[index].result = results[index]
        return outcomes

    def _parse(self, text: str, n_criteria: int) -> Sequence[VerdictOrError]:
        judge = self.judge_config.judge
        grading = self.judge_config.grading
        try:
            if judge.is_decision_model:
                return parse_decisions(text, n_criteria, grading, judge.least_probability)
            return parse_group(text, n_criteria, grading, omits_think_tag=judge.omits_think_tag)
        except VerdictError as error:
            return [error] * n_criteria


def pieces_of(criteria: Sequence[CriterionToJudge]) -> list[list[CriterionToJudge]]:
    """Return the pieces of rubrics, each whole; the criteria of a response follow each other."""
    pieces = groupby(criteria, key=attrgetter("response_id", "call_index"))
    return [list(piece) for _, piece in pieces]


def _has_replies_of_two_runs(history: History) -> bool:
    """Return whether a call has replies from before and after its last failed row was written."""
    attempts = [entry.attempt for entry in history.entries if entry.reply.status in {OK, EMPTY}]
    return bool(attempts) and min(attempts) <= history.spent < max(attempts)


def _reply_shares(entry: Entry, n_shares: int, cell: str) -> Iterator[Reply]:
    """Yield an attempt's reply `n_shares` times, each with an equal share of its cost and tokens.

    The shares are 0 unless the attempt was made for this `cell`. Unknown tokens of a failed attempt
    count as 0.
    """
    reply = entry.reply
    is_own = entry.cell == cell
    shared_tokens = {}
    for name in TOKEN_FIELDS:
        n_tokens = getattr(reply, name)
        if n_tokens is None and reply.status != OK:
            n_tokens = 0
        shared_tokens[name] = equal_shares(n_tokens, n_shares, is_own=is_own)
    total_nano = None if reply.cost_usd is None else round(reply.cost_usd * _NANO)
    shared_nano = equal_shares(total_nano, n_shares, is_own=is_own)
    for index, nano in enumerate(shared_nano):
        tokens: dict[str, Any] = {name: counts[index] for name, counts in shared_tokens.items()}
        usd = None if nano is None else nano / _NANO
        yield replace(reply, text=None, attempts=1, cost_usd=usd, **tokens)


def equal_shares(total: int | None, n_shares: int, *, is_own: bool) -> Sequence[int | None]:
    """Divide a total, such as the tokens of a call, into equal shares; they are 0 unless `is_own`.

    Returns:
        Whole numbers that add up to the total and differ by 1 at most, the larger ones first.
    """
    if total is None or n_shares == 0:
        return [None] * n_shares
    share, n_larger = divmod(total if is_own else 0, n_shares)
    return [share + 1] * n_larger + [share] * (n_shares - n_larger)
