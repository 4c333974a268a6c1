"""Judging the criteria of a response: template, prompt, call, reply and row of the verdict, one
after the other.

The order of the calls serves the provider's prompt cache. A response that is too long for the judge
is searched chunk by chunk, and decided by the evidence in all of them.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from itertools import compress
from typing import Any, Self

from tasks.config.job import Job
from tasks.judge.context_fit import Chunk, ContextFit
from tasks.llm.calls.gateway import Gateway
from tasks.llm.limiter import NotCalled
from tasks.llm.replies import CONTEXT_LENGTH, OK, Reply
from tasks.llm.request import Call, Target
from tasks.rules.conversation import Message, group_prompt, is_marked, judge_prompt
from tasks.rules.evidence import (
    REMINDER,
    NoRoom,
    evidence_format,
    evidence_prompt,
    parse_evidence,
    shown,
)
from tasks.rules.identity import BASE_VINTAGE, piece_hash, verdict_id
from tasks.rules.verdict import (
    Verdict,
    confidence_of,
    parse_only,
    parse_verdict,
    reminder,
    reply_format,
)
from tasks.run.calls import ReplySpec, call_and_parse, call_with, run_all, sum_usage
from tasks.run.judge_configs import JudgeConfig
from tasks.run.missing_work import WantedTasks
from tasks.run.run_context import RunContext
from tasks.run.writing import PartWriter, StageReport, call_columns

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

    def are_whole(self, criteria: Sequence[CriterionToJudge]) -> list[bool]:
        """Return for each criterion of a response whether the judge's prompt can hold the whole
        response.
        """
        texts = [each.criterion_text for each in criteria]
        messages = criteria[0].messages
        text = criteria[0].response_text
        return [True] * len(texts) if self.fit is None else self.fit.is_whole(messages, text, texts)

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

    def whole_calls(
        self, criteria: Sequence[CriterionToJudge]
    ) -> Iterator[tuple[Call | None, int]]:
        """Yield the calls for criteria whose prompt can hold the whole response, each with its
        number of criteria.
        """
        for each in compress(criteria, self.are_whole(criteria)):
            yield (
                self.call(
                    self.reply_spec, self.prompt(each.response_text, each), self.verdict_id(each)
                ),
                1,
            )

    async def judge_response(
        self, criteria: Sequence[CriterionToJudge], priority: tuple[int, ...], done: Done
    ) -> None:
        """Judge criteria of one response; pass each to `done` as soon as it is decided, failed, or
        not called.
        """
        await ResponseJudge(self, priority, done).judge([self.unjudged(row) for row in criteria])


@dataclass(frozen=True)
class ResponseJudge:
    """Judges criteria of one response, whole or by the evidence in its chunks; each finished one is
    given to `done`.

    `chunks` are the ways to cut the response that were used, by the judge's limit and the
    criterion's length.
    """

    by: CriterionJudge
    priority: tuple[int, ...]
    done: Done
    chunks: dict[tuple[int | None, int, str], list[Chunk]] = field(default_factory=dict)

    async def judge(self, criteria: Sequence[JudgedCriterion]) -> None:
        """Judge with the whole response where it fits into the judge's context, else by the
        evidence in its chunks.

        The first criterion goes alone, so that the provider has the common part of the prompts, or
        each chunk, in its cache when the others follow. What was too long for the first is not
        tried for the others.
        """
        are_whole = await asyncio.to_thread(
            self.by.are_whole, [each.criterion for each in criteria]
        )
        (first, is_whole), *others = zip(criteria, are_whole, strict=True)
        fit = await self._judge_one(first, self.by.fit, fits=is_whole)
        is_refused = fit is not self.by.fit
        await run_all(
            self._judge_one(each, fit, fits=is_whole and not is_refused)
            for each, is_whole in others
        )

    async def _judge_one(
        self, judged: JudgedCriterion, fit: ContextFit | None, *, fits: bool
    ) -> ContextFit | None:
        """Judge a criterion by the response if that fits, else by the evidence in its chunks, or in
        those of the notes.

        Notes on the response that are too long are searched too, as long as a round makes them
        clearly shorter. Return the limit of the judge that was found with the response.
        """
        of = judged.criterion
        text = judged.criterion.response_text
        round_ = 0
        n_chunks = 0
        of_response = fit
        try:
            while not (fits and await self._judge_criterion(judged, text)):
                assert fit is not None  # else no prompt is too long
                round_ += 1
                smaller = fit.after_refusal(of.messages, text) if fits else fit
                fit = await self._search(judged, smaller, text, round_)
                if round_ == 1:
                    n_chunks = len(judged.evidence)
                    of_response = fit
                if judged.reply is not None:  # it has failed
                    break
                notes = shown(
                    judged.evidence,
                    n_chunks,
                    round_,
                    is_indented=is_marked(self.by.judge_config.template),
                )
                # A further round is worth its calls if it leaves at most 3/4 of the evidence.
                if round_ > 1 and (after := fit.count(notes)) > 0.75 * (before := fit.count(text)):
                    self._fail(
                        judged,
                        f"the evidence is too long: round {round_} left {after} of {before} tokens",
                    )
                    break
                text = notes
                fits = fit.holds(self.by.prompt(notes, of))
        except NotCalled:
            self.done(judged)
        return of_response

    async def _judge_criterion(self, judged: JudgedCriterion, text: str) -> bool:
        """Judge one criterion: fill the template, make the call, read the reply, and pass on the
        verdict.

        `text` is the response, or the evidence in its chunks. Return whether the criterion is
        finished; if not, the text is too long for the judge.
        """
        prompt = self.by.prompt(text, judged.criterion)
        reply_spec = self.by.reply_spec
        call = self.by.call(reply_spec, prompt, judged.verdict_id, self.priority)
        reply, verdict = await call_and_parse(
            self.by.gateway, call.live if judged.evidence else call, reply_spec
        )
        if reply.status == CONTEXT_LENGTH and self.by.fit is not None:
            judged.earlier_replies.append(reply)
            return False
        if verdict is not None and reply.logprobs:
            verdict = replace(
                verdict, confidence=confidence_of(reply.logprobs, self.by.judge_config.grading)
            )
        if verdict is None and judged.evidence:
            reply = replace(
                reply, error=f"on the evidence of {len(judged.evidence)} chunks: {reply.error}"
            )
        self._finish(judged, reply, verdict)
        return True

    async def _search(
        self, judged: JudgedCriterion, fit: ContextFit, text: str, round_: int
    ) -> ContextFit:
        """Search a text for evidence chunk by chunk, in smaller chunks if one is too long for the
        judge.

        Return the limit that held. If not all chunks were searched, the criterion has failed.
        """
        of = judged.criterion
        step_tokens = fit.step_of(judged.criterion.criterion_text)
        while True:
            judged.evidence.clear()
            cut = fit.prompt_tokens, step_tokens, text
            try:
                if cut not in self.chunks:
                    self.chunks[cut] = await asyncio.to_thread(
                        fit.chunks_of, of.messages, text, step_tokens, round_
                    )
            except NoRoom as reason:
                self._fail(judged, str(reason))
                return fit
            status = OK
            for chunk in self.chunks[cut]:
                status = await self._search_chunk(judged, chunk, fit)
                if status != OK:
                    break
            if status != CONTEXT_LENGTH:
                return fit
            fit = fit.after_refusal(of.messages, text)

    async def _search_chunk(self, judged: JudgedCriterion, chunk: Chunk, fit: ContextFit) -> str:
        """Search a chunk for evidence on a criterion; return the status.

        Any failure but `CONTEXT_LENGTH` is final.
        """
        prompt = evidence_prompt(
            fit.evidence_template,
            judged.criterion.messages,
            judged.criterion.criterion_text,
            text=chunk.text,
            number=chunk.number,
            n_chunks=chunk.n_chunks,
            round_=chunk.round_,
        )
        priority = (*self.priority, chunk.round_, chunk.number)
        judge = self.by.judge_config.judge
        reply_spec = ReplySpec(
            partial(parse_evidence, omits_think_tag=judge.omits_think_tag),
            evidence_format(is_bounded=judge.explanation_chars is not None),
            REMINDER,
        )
        call = self.by.call(reply_spec, prompt, judged.verdict_id, priority)
        reply, evidence = await call_and_parse(self.by.gateway, call.live, reply_spec)
        judged.searches.append((chunk, reply, evidence))
        if evidence is not None:
            judged.evidence.append(evidence)
        elif reply.status != CONTEXT_LENGTH:
            in_round = f" in round {chunk.round_}" if chunk.round_ > 1 else ""
            error = f"chunk {chunk.number} of {chunk.n_chunks}{in_round}: {reply.error}"
            self._finish(judged, replace(reply, error=error), None)
            return reply.status
        judged.earlier_replies.append(reply)
        return reply.status

    def _fail(self, judged: JudgedCriterion, cause: str) -> None:
        """Fail a criterion as too long; only the calls that were too long are spent, the others
        keep their replies.
        """
        paid = tuple(
            one
            for reply in judged.earlier_replies
            if reply.status == CONTEXT_LENGTH
            for one in reply.paid
        )
        last = (
            judged.earlier_replies.pop()
            if judged.earlier_replies
            else Reply(CONTEXT_LENGTH, attempts=0)
        )
        error = (
            f"{cause}; if the judge's context has another size than assumed, set `context_tokens`"
        )
        self._finish(
            judged,
            replace(
                last,
                status=CONTEXT_LENGTH,
                error=error,
                paid=paid,
            ),
            None,
        )

    def _finish(self, judged: JudgedCriterion, reply: Reply, verdict: Verdict | None) -> None:
        """Pass a finished criterion to `done`.

        A failure spends only its last reply: the others can be used again.
        """
        judged.reply = replace(sum_usage([*judged.earlier_replies, reply], reply), paid=reply.paid)
        judged.verdict = verdict
        self.done(judged)


class VerdictRows(PartWriter):
    """Writes verdicts to a table, and their evidence before them.

    `own_columns` are those that only the table of these verdicts has; `report` counts the rows.
    """

    def __init__(
        self,
        job: Job,
        context: RunContext,
        wanted: WantedTasks,
        judge_config: JudgeConfig,
        report: StageReport,
        table_name: str,
        own_columns: Mapping[str, Any],
    ) -> None:
        self._evidence = PartWriter(context.warehouse, "evidence", context.ledger)
        super().__init__(context.warehouse, table_name, context.ledger, report)
        self.job = job
        self.wanted = wanted
        self.judge_config = judge_config
        self.report = report
        self.own_columns = own_columns
        self.gateway = context.gateway(report.stage, judge_config.judge.label)

    def flush(self) -> None:
        """Write the collected evidence, then the verdicts, so that none is on disk without the
        evidence for it.
        """
        self._evidence.flush()
        super().flush()

    def write(self, judged: JudgedCriterion) -> None:
        """Write a verdict, or the failure that replaces it, and its evidence; without a call, count
        it as skipped.
        """
        if judged.reply is None:
            self.report.skipped += 1
            return
        criterion = judged.criterion
        for chunk, chunk_reply, evidence in judged.searches:
            evidence_row = {
                **self.wanted.key,
                **call_columns(self.job, chunk_reply),
                "response_id": criterion.response_id,
                "task_id": criterion.task_id,
                "criterion_id": criterion.criterion_id,
                "verdict_id": judged.verdict_id,
                "round": chunk.round_,
                "chunk_number": chunk.number,
                "n_chunks": chunk.n_chunks,
                "first_char": chunk.first_char,
                "n_chars": len(chunk.text),
                "status": chunk_reply.status if evidence is None else OK,
                "evidence": None if evidence is None else list(evidence),
            }
            self._evidence.add(evidence_row, chunk_reply)
        row = {
            **verdict_columns(self.job, self.wanted, self.judge_config, judged),
            **self.own_columns,
        }
        self.add(row, judged.reply, criterion.model)


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


def verdict_columns(
    job: Job, wanted: WantedTasks, config: JudgeConfig, judged: JudgedCriterion
) -> dict[str, Any]:
    """Return the columns of a verdict, or of a failure, on a criterion with a reply."""
    criterion = judged.criterion
    reply = judged.reply
    assert reply is not None
    same = ("response_id", "task_id", "criterion_id", "criterion_hash", "model", "trial", "vintage")
    unknown = ("value", "explanation", "probability", "confidence")
    not_of_all = ("n_in_call", "position_in_call", "decided_by", "escalated_because")
    return {
        **wanted.key,
        **config.columns,
        **call_columns(job, reply),
        "status": reply.status,
        **{name: getattr(criterion, name) for name in same},
        **dict.fromkeys((*unknown, *not_of_all)),
        **(asdict(judged.verdict) if judged.verdict else {}),
        **judged.columns,
        "verdict_id": judged.verdict_id,
        "piece_hash": piece_hash(criterion.piece),
    }
