"""Judging the criteria of responses: one call each, in an order that serves the provider's prompt cache.

A response that is too long for the judge is searched chunk by chunk, and decided on what was found in all of them.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby

from tasks.judge import verdict_rows
from tasks.judge.verdict_rows import Chunk, Criterion, PendingVerdict, TakesVerdicts
from tasks.llm.budget import NotCalled
from tasks.llm.calls.gateway import Gateway
from tasks.llm.prices import ContextWindow, context_window_of
from tasks.llm.replies import CONTEXT_LENGTH, Reply
from tasks.llm.request import Call, Target
from tasks.rules.conversation import Message, is_marked, judge_prompt
from tasks.rules.evidence import NoRoom, cut, evidence_prompt, shown
from tasks.rules.identity import BASE_VINTAGE
from tasks.rules.verdict import Verdict, reply_format
from tasks.run.asking import Found, Question, ask, together
from tasks.run.judgings import Judging
from tasks.run.missing_work import Conversation

_FEWEST_TOKENS = 64
"""A chunk with less of an answer is not worth a call."""


@dataclass(frozen=True)
class ContextFit:
    """How long the prompts of a judging may be.

    What is decided on a criterion depends on nothing but this criterion, the answer and the context window, so that a
    run that goes on with others makes the same prompts, which the ledger answers.
    """

    judging: Judging
    evidence_template: str
    window: ContextWindow

    def is_whole(self, messages: Sequence[Message], text: str, titles: Sequence[str]) -> list[bool]:
        """For each criterion whether a judge can be asked about it with the whole answer before it."""
        common = self._common(messages, text)
        if self.window.surely_holds(common, max((len(title.encode()) for title in titles), default=0)):
            return [True] * len(titles)
        left = self.window.beside(common)
        return [self.window.count(title) <= left for title in titles]

    def holds(self, prompt: str) -> bool:
        """Whether a whole prompt fits."""
        return self.window.surely_holds(prompt) or self.window.beside(prompt) >= 0

    def after_refusal(self, messages: Sequence[Message], text: str) -> "ContextFit":
        """Half of the window, since the judge itself says that a prompt with this answer is too long."""
        was = self.window.count(self._common(messages, text))
        most = min(was, self.window.prompt_tokens or was)
        return replace(self, window=replace(self.window, prompt_tokens=most // 2))

    def step_of(self, title: str) -> int:
        """The tokens that are kept for a criterion: the same for most, so that they share the chunks of an answer."""
        return self.window.in_steps(title)

    def chunks_of(self, messages: Sequence[Message], text: str, step_tokens: int, round_: int = 1) -> list[str]:
        """A text in chunks that fit into an evidence prompt, beside a criterion of so many tokens.

        Raises:
            NoRoom: request and template leave almost none.
        """
        around = evidence_prompt(self.evidence_template, messages, "", text="", number=1, n_chunks=1, round_=round_)
        most = self.window.beside(around) - step_tokens
        if most < _FEWEST_TOKENS:
            raise NoRoom(f"the request leaves no room for a chunk of the response ({most} tokens)")
        return cut(text, most, self.window.count)

    def usual_chunks(self, messages: Sequence[Message], text: str) -> list[str]:
        """The chunks in which an answer is searched for a criterion of usual length; the whole if it is read whole."""
        step_tokens = self.step_of("usual")
        common = self._common(messages, text)
        if self.window.surely_holds(common, step_tokens) or self.window.beside(common) >= step_tokens:
            return [text]
        try:
            return self.chunks_of(messages, text, step_tokens)
        except NoRoom:
            return [text]

    def _common(self, messages: Sequence[Message], text: str) -> str:
        return judge_prompt(self.judging.template, messages, text, "")


Fits = Mapping[str, ContextFit | None]
"""A judge's label -> how long its prompts may be."""


def context_fit_of(judging: Judging, target: Target) -> ContextFit | None:
    """How long a judging's prompts may be; None where answers are always judged whole."""
    if judging.evidence_template is None:
        return None
    shape = reply_format(judging.judge.explanation_chars, judging.grading)
    return ContextFit(
        judging, judging.evidence_template, context_window_of(target, judging.judge.context_tokens, shape)
    )


def by_response(criteria: Sequence[Criterion]) -> list[list[Criterion]]:
    """Criteria that are in the order of their responses, those of each response together."""
    return [list(found) for _, found in groupby(criteria, key=lambda row: row["response_id"])]


def whole_calls(
    judging: Judging, target: Target, missing: Sequence[Criterion], conversations: Mapping[str, Conversation]
) -> Iterator[Call]:
    """The calls for criteria about which the judge can be asked with the whole answer before it."""
    fit = context_fit_of(judging, target)
    for criteria in by_response(missing):
        messages, text = conversations[criteria[0]["task_id"]].messages, criteria[0]["text"]
        titles = [row["title"] for row in criteria]
        fits = [True] * len(titles) if fit is None else fit.is_whole(messages, text, titles)
        for criterion, is_whole in zip(criteria, fits, strict=True):
            if is_whole:
                prompt = judge_prompt(judging.template, messages, text, criterion["title"])
                yield verdict_rows.judge_call(judging, target, prompt, verdict_rows.verdict_id_of(judging, criterion))


@dataclass(frozen=True)
class CriterionJudge:
    """A judge that decides on criteria, for itself or for a cascade: the verdicts are of the judging of `rows`.

    Another `vintage` makes other calls, which no earlier reply answers.
    """

    gateway: Gateway
    target: Target
    judging: Judging
    rows: TakesVerdicts
    vintage: str = BASE_VINTAGE

    async def judge_response(
        self, criteria: Sequence[Criterion], messages: Sequence[Message], fits: Fits, priority: tuple[int, ...]
    ) -> None:
        """Judge with the whole answer where it fits into the judge's context, else chunk by chunk.

        The first criterion goes alone, so that the provider has the conversation in its cache when the others follow.
        """
        fit = fits[self.judging.judge.label]
        text = criteria[0]["text"]
        pending = [
            PendingVerdict(row, verdict_rows.verdict_id_of(self.rows.judging, row, self.vintage)) for row in criteria
        ]
        if fit is None:
            await self._judge_whole(pending, messages, priority, must_be=True)
            return
        are_whole = await asyncio.to_thread(fit.is_whole, messages, text, [row["title"] for row in criteria])
        whole = [each for each, is_whole in zip(pending, are_whole, strict=True) if is_whole]
        refused = await self._judge_whole(whole, messages, priority)
        long = [each for each, is_whole in zip(pending, are_whole, strict=True) if not is_whole]
        await self._judge_in_chunks(long, messages, fit, priority)
        if refused:
            await self._judge_in_chunks(refused, messages, fit.after_refusal(messages, text), priority)

    async def _judge_in_chunks(
        self, pending: Sequence[PendingVerdict], messages: Sequence[Message], fit: ContextFit, priority: tuple[int, ...]
    ) -> None:
        def step(each: PendingVerdict) -> int:
            return fit.step_of(each.criterion["title"])

        for _, same_chunks in groupby(sorted(pending, key=step), key=step):  # most often one group
            group = list(same_chunks)
            await LongAnswer(self, fit, messages, group[0].criterion["text"], priority).decide(group)

    async def _judge_whole(
        self, pending: Sequence[PendingVerdict], messages: Sequence[Message], priority: tuple[int, ...], *,
        must_be: bool = False,
    ) -> list[PendingVerdict]:  # fmt: skip
        """Judge by one call each, and return those that the judge finds too long, unless they `must_be` whole."""
        if not pending:
            return []
        first, *others = pending
        if await self._is_too_long(first, messages, priority, must_be):
            return list(pending)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._is_too_long(each, messages, priority, must_be)) for each in others]
        return [each for each, task in zip(others, tasks, strict=True) if task.result()]

    async def _is_too_long(
        self, pending: PendingVerdict, messages: Sequence[Message], priority: tuple[int, ...], must_be: bool
    ) -> bool:
        """Judge one criterion, unless the judge finds the prompt too long."""
        criterion = pending.criterion
        prompt = judge_prompt(self.judging.template, messages, criterion["text"], criterion["title"])
        try:
            reply, verdict = await self.ask(verdict_rows.verdict_question(self.judging), prompt, pending, priority)
        except NotCalled:
            self.rows.skip()
            return False
        if reply.status == CONTEXT_LENGTH and not must_be:
            pending.replies.append(reply)
            return True
        self.rows.settle(pending, reply, verdict)
        return False

    async def ask(
        self, question: Question[Found], prompt: str, pending: PendingVerdict, priority: tuple[int, ...], *,
        is_live: bool = False,
    ) -> tuple[Reply, Found | None]:  # fmt: skip
        """Ask the judge, and once more where its reply cannot be read; what it says, or the reply of the failure.

        Raises:
            NotCalled: the call was not made.
        """
        call = verdict_rows.judge_call(
            self.judging, self.target, prompt, pending.verdict_id, priority, self.vintage, question
        )
        is_batched = call.is_batched and not (is_live and call.allows_live)
        return await ask(self.gateway, replace(call, is_batched=is_batched), question)


_HINT = "if the judge's context is longer or shorter than it is taken for, set `context_tokens`"
_WORTH_A_ROUND = 0.75
"""Notes that a round leaves longer than this share of what they were are not made shorter by another one."""


@dataclass(frozen=True)
class LongAnswer:
    """An answer that is judged by the evidence in its chunks."""

    judge: CriterionJudge
    fit: ContextFit
    messages: Sequence[Message]
    text: str
    priority: tuple[int, ...]

    async def decide(self, pending: Sequence[PendingVerdict]) -> None:
        """Decide on criteria that need the same chunks; where the judge finds one too long, with smaller chunks."""
        step_tokens = self.fit.step_of(pending[0].criterion["title"])
        try:
            texts = await asyncio.to_thread(self.fit.chunks_of, self.messages, self.text, step_tokens)
        except NoRoom as reason:
            for each in pending:
                self._fail(each, f"{reason}; {_HINT}")
            return
        searched, refused = await self._search(pending, _chunks(texts, 1))
        async with asyncio.TaskGroup() as group:
            for each in searched:
                group.create_task(self._conclude(each, step_tokens, len(each.found)))
        if refused:
            smaller = self.fit.after_refusal(self.messages, self.text)
            await replace(self, fit=smaller).decide(refused)

    async def _search(
        self, pending: Sequence[PendingVerdict], chunks: Sequence[Chunk]
    ) -> tuple[list[PendingVerdict], list[PendingVerdict]]:
        """Search the chunks for all criteria, one chunk after the other, so that it is in the provider's cache.

        Returns:
            The criteria whose search came to its end, and those for which a chunk is too long for the judge.
        """
        going, refused = list(pending), []
        for chunk in chunks:
            if not going:
                break
            # The first goes alone: the others find the chunk in the cache, or need not try.
            outcomes = [await self._search_chunk(going[0], chunk)]
            if outcomes[0] == CONTEXT_LENGTH:
                refused += going
                going = []
                break
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._search_chunk(each, chunk)) for each in going[1:]]
            outcomes += [task.result() for task in tasks]
            refused += [each for each, outcome in zip(going, outcomes, strict=True) if outcome == CONTEXT_LENGTH]
            going = [each for each, outcome in zip(going, outcomes, strict=True) if outcome is None]
        for each in refused:
            each.found.clear()
        return going, refused

    async def _search_chunk(self, pending: PendingVerdict, chunk: Chunk) -> str | None:
        """Search a chunk for a criterion; None, or the status of the failure that ended the criterion's search.

        A chunk that the judge finds too long ends nothing yet.
        """
        prompt = evidence_prompt(
            self.fit.evidence_template, self.messages, pending.criterion["title"],
            text=chunk.text, number=chunk.number, n_chunks=chunk.n_chunks, round_=chunk.round_,
        )  # fmt: skip
        priority = (*self.priority, chunk.round_, chunk.number)
        question = verdict_rows.evidence_question(self.judge.judging)
        try:
            reply, evidence = await self.judge.ask(question, prompt, pending, priority, is_live=True)
        except NotCalled:
            self.judge.rows.skip()
            return "skipped"
        self.judge.rows.add_evidence(pending, chunk, reply, evidence)
        if evidence is not None:
            pending.replies.append(reply)
            pending.found.append(evidence)
            return None
        if reply.status == CONTEXT_LENGTH:
            pending.replies.append(reply)
        else:
            self._settle(pending, replace(reply, error=f"{chunk.name}: {reply.error}"), None)
        return reply.status

    async def _conclude(self, pending: PendingVerdict, step_tokens: int, n_chunks: int, round_: int = 1) -> None:
        """The last call of a criterion, on its evidence; where that is too long, after a search of the evidence."""
        notes = self._shown(pending, n_chunks, round_)
        prompt = judge_prompt(self.judge.judging.template, self.messages, notes, pending.criterion["title"])
        if not self.fit.holds(prompt):
            if await self._condense(pending, notes, step_tokens, round_ + 1, n_chunks):
                await self._conclude(pending, step_tokens, n_chunks, round_ + 1)
            return
        question = verdict_rows.verdict_question(self.judge.judging)
        try:
            reply, verdict = await self.judge.ask(question, prompt, pending, self.priority, is_live=True)
        except NotCalled:
            self.judge.rows.skip()
            return
        if reply.status == CONTEXT_LENGTH:
            pending.replies.append(reply)
            smaller = replace(self, fit=self.fit.after_refusal(self.messages, notes))
            await smaller._conclude(pending, step_tokens, n_chunks, round_)
            return
        if verdict is None:
            reply = replace(reply, error=f"on the evidence of {len(pending.found)} chunks: {reply.error}")
        self._settle(pending, reply, verdict)

    async def _condense(
        self, pending: PendingVerdict, notes: str, step_tokens: int, round_: int, n_chunks: int
    ) -> bool:
        """Another round over what was found; False if the criterion has failed by that."""
        try:
            texts = await asyncio.to_thread(self.fit.chunks_of, self.messages, notes, step_tokens, round_)
        except NoRoom as reason:
            self._fail(pending, f"{reason}; {_HINT}")
            return False
        pending.found.clear()
        for chunk in _chunks(texts, round_):
            outcome = await self._search_chunk(pending, chunk)
            if outcome == CONTEXT_LENGTH:
                self._fail(pending, f"{chunk.name}: the judge finds it too long; {_HINT}")
            if outcome is not None:
                return False
        before, after = (self.fit.window.count(each) for each in (notes, self._shown(pending, n_chunks, round_)))
        if after > _WORTH_A_ROUND * before:
            self._fail(pending, f"the evidence is too long: round {round_} left {after} of {before} tokens; {_HINT}")
            return False
        return True

    def _shown(self, pending: PendingVerdict, n_chunks: int, round_: int) -> str:
        return shown(pending.found, n_chunks, round_, is_indented=is_marked(self.judge.judging.template))

    def _fail(self, pending: PendingVerdict, cause: str) -> None:
        """Fail a criterion as too long in spite of all, because of the calls that were too long, not those answered."""
        paid = tuple(one for reply in pending.replies if reply.status == CONTEXT_LENGTH for one in reply.paid)
        last = pending.replies.pop() if pending.replies else Reply(CONTEXT_LENGTH, attempts=0)
        self._settle(pending, replace(last, status=CONTEXT_LENGTH, error=cause, paid=paid), None)

    def _settle(self, pending: PendingVerdict, reply: Reply, verdict: Verdict | None) -> None:
        """Write what a criterion came to. A failure rests on its last reply alone: the others stay answers."""
        self.judge.rows.settle(pending, replace(together([*pending.replies, reply]), paid=reply.paid), verdict)


def _chunks(texts: Sequence[str], round_: int) -> list[Chunk]:
    starts = accumulate(map(len, texts), initial=0)
    return [
        Chunk(text, round_, number, len(texts), start)
        for number, (text, start) in enumerate(zip(texts, starts, strict=False), start=1)
    ]
