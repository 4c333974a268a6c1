"""Judging the criteria of a response: one call each, in an order that serves the provider's prompt cache.

A response that is too long for the judge is searched chunk by chunk, and decided on what was found in all of them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, compress, groupby

from tasks.judge.verdict_rows import Chunk, CriterionToJudge, Judged, evidence_question, verdict_id_of, verdict_question
from tasks.llm.calls.gateway import Gateway
from tasks.llm.limiter import NotCalled
from tasks.llm.replies import CONTEXT_LENGTH, Reply
from tasks.llm.request import Call, Target, count_tokens, most_prompt_tokens_of
from tasks.rules.conversation import Message, is_marked, judge_prompt
from tasks.rules.evidence import NoRoom, cut, evidence_prompt, shown
from tasks.rules.identity import BASE_VINTAGE
from tasks.rules.verdict import Verdict, reply_format
from tasks.run.asking import Found, Question, ask, together
from tasks.run.judgings import Judging, judge_target
from tasks.run.missing_work import Conversation

_AROUND_TOKENS = 64
"""More than any chat template is known to put around a prompt, its own system message included."""
_FEWEST_TOKENS = 64
"""A chunk with less of an answer is not worth a call."""
_STEP_TOKENS = 256


@dataclass(frozen=True)
class ContextFit:
    """How long the prompts of a judging may be: `prompt_tokens` at most, None where nobody knows its judge's context.

    What is decided on a criterion depends on nothing but this criterion, the answer and the context window, so that a
    run that goes on with others makes the same prompts, which the ledger answers.
    """

    template: str
    evidence_template: str
    target: Target
    prompt_tokens: int | None

    def is_whole(self, messages: Sequence[Message], text: str, titles: Sequence[str]) -> list[bool]:
        """For each criterion whether a judge can be asked about it with the whole answer before it."""
        common = judge_prompt(self.template, messages, text, "")
        if self._surely_holds(common, max((len(title.encode()) for title in titles), default=0)):
            return [True] * len(titles)
        left = self._beside(common)
        return [self.count(title) <= left for title in titles]

    def holds(self, prompt: str) -> bool:
        """Whether a whole prompt fits."""
        return self._surely_holds(prompt) or self._beside(prompt) >= 0

    def after_refusal(self, messages: Sequence[Message], text: str) -> "ContextFit":
        """Half of the window, since the judge itself says that a prompt with this answer is too long."""
        was = self.count(judge_prompt(self.template, messages, text, ""))
        return replace(self, prompt_tokens=min(was, self.prompt_tokens or was) // 2)

    def step_of(self, title: str) -> int:
        """The tokens that are kept for a criterion: the same for most, so that they share the chunks of an answer."""
        return -(-self.count(title) // _STEP_TOKENS) * _STEP_TOKENS

    def chunks_of(self, messages: Sequence[Message], text: str, step_tokens: int, round_: int = 1) -> list[Chunk]:
        """A text in chunks that fit into an evidence prompt, beside a criterion of so many tokens.

        Raises:
            NoRoom: request and template leave almost none.
        """
        around = evidence_prompt(self.evidence_template, messages, "", text="", number=1, n_chunks=1, round_=round_)
        most = self._beside(around) - step_tokens
        if most < _FEWEST_TOKENS:
            raise NoRoom(f"the request leaves no room for a chunk of the response ({most} tokens)")
        texts = cut(text, most, self.count)
        starts = accumulate(map(len, texts), initial=0)
        return [
            Chunk(chunk, round_, number, len(texts), start)
            for number, (chunk, start) in enumerate(zip(texts, starts, strict=False), start=1)
        ]

    def usual_chunks(self, messages: Sequence[Message], text: str) -> list[str]:
        """The chunks in which an answer is searched for a criterion of usual length; the whole if it is read whole."""
        step_tokens = self.step_of("usual")
        common = judge_prompt(self.template, messages, text, "")
        if self._surely_holds(common, step_tokens) or self._beside(common) >= step_tokens:
            return [text]
        try:
            return [chunk.text for chunk in self.chunks_of(messages, text, step_tokens)]
        except NoRoom:
            return [text]

    def count(self, text: str) -> int:
        """The tokens of a text."""
        return count_tokens(self.target, text)

    def _surely_holds(self, text: str, spare_tokens: int = 0) -> bool:
        """Whether a prompt fits without a doubt, and so many tokens more: no token is shorter than a byte.

        Where nobody knows how large the window is, it is large enough until the model says no.
        """
        return self.prompt_tokens is None or len(text.encode()) + spare_tokens <= self.prompt_tokens - _AROUND_TOKENS

    def _beside(self, text: str) -> int:
        """The tokens that a text leaves to others in one prompt, 0 or less for none."""
        assert self.prompt_tokens is not None
        return self.prompt_tokens - _AROUND_TOKENS - self.count(text)


def context_fit_of(judging: Judging, target: Target) -> ContextFit | None:
    """How long a judging's prompts may be; None where answers are always judged whole."""
    if judging.evidence_template is None:
        return None
    shape = reply_format(judging.judge.explanation_chars, judging.grading)
    most_tokens = most_prompt_tokens_of(target, judging.judge.context_tokens, shape)
    return ContextFit(judging.template, judging.evidence_template, target, most_tokens)


def by_response(criteria: Sequence[CriterionToJudge]) -> list[list[CriterionToJudge]]:
    """Criteria that are in the order of their responses, those of each response together."""
    return [list(found) for _, found in groupby(criteria, key=lambda row: row.response_id)]


@dataclass(frozen=True)
class CriterionJudge:
    """A judge as it is called, for the verdicts of `owner`: its own judging, or a cascade's.

    Another `vintage` makes other calls, which no earlier reply answers.
    """

    gateway: Gateway
    target: Target
    judging: Judging
    owner: Judging
    fit: ContextFit | None = None
    vintage: str = BASE_VINTAGE

    def call(self, question: Question[object], prompt: str, cell: str, priority: tuple[int, ...] = ()) -> Call:
        """The call that asks the judge."""
        judge, messages = self.judging.judge, [{"role": "user", "content": prompt}]
        wants_shape = self.target.can_follow_schema if judge.structured_output is None else judge.structured_output
        return Call(
            self.target, messages, cell, question.shape if wants_shape else None, self.judging.judge_trial,
            self.vintage, priority, judge.mode == "batch", judge.allow_live,
        )  # fmt: skip

    async def ask(
        self, question: Question[Found], prompt: str, cell: str, priority: tuple[int, ...], *, is_live: bool = False
    ) -> tuple[Reply, Found | None]:
        """Ask the judge, and once more where its reply cannot be read; what it says, or the reply of the failure.

        Raises:
            NotCalled: the call was not made.
        """
        call = self.call(question, prompt, cell, priority)
        is_batched = call.is_batched and not (is_live and call.allows_live)
        return await ask(self.gateway, replace(call, is_batched=is_batched), question)

    def are_whole(self, criteria: Sequence[CriterionToJudge], messages: Sequence[Message]) -> list[bool]:
        """For each criterion of a response whether the judge can be asked about it with the whole of it."""
        titles = [each.title for each in criteria]
        return [True] * len(titles) if self.fit is None else self.fit.is_whole(messages, criteria[0].text, titles)

    def whole_calls(
        self, criteria: Sequence[CriterionToJudge], conversations: Mapping[str, Conversation]
    ) -> Iterator[Call]:
        """The calls for criteria about which the judge can be asked with the whole response before it."""
        question = verdict_question(self.judging)
        for of_response in by_response(criteria):
            messages = conversations[of_response[0].task_id].messages
            for each in compress(of_response, self.are_whole(of_response, messages)):
                prompt = judge_prompt(self.judging.template, messages, each.text, each.title)
                yield self.call(question, prompt, verdict_id_of(self.owner, each, self.vintage))

    async def judge_response(
        self, criteria: Sequence[CriterionToJudge], messages: Sequence[Message], priority: tuple[int, ...],
        done: Callable[[Judged], None],
    ) -> None:  # fmt: skip
        """Judge criteria of one response, and hand on each as soon as it is decided, has failed, or is not called."""
        judged = [Judged(row, verdict_id_of(self.owner, row, self.vintage)) for row in criteria]
        of_response = ResponseJudge(self, self.fit, messages, criteria[0].text, priority, done)
        await of_response.judge(judged)


async def criterion_judge(
    gateway: Gateway, judging: Judging, owner: Judging, vintage: str = BASE_VINTAGE
) -> CriterionJudge:
    """A judge of the configuration, with what fits into its context."""
    target = judge_target(judging.judge)
    fit = await asyncio.to_thread(context_fit_of, judging, target)
    return CriterionJudge(gateway, target, judging, owner, fit, vintage)


_NOT_CALLED = "not called"
_HINT = "if the judge's context is longer or shorter than it is taken for, set `context_tokens`"
_WORTH_A_ROUND = 0.75
"""Notes that a round leaves longer than this share of what they were are not made shorter by another one."""


@dataclass(frozen=True)
class ResponseJudge:
    """Judges criteria of one response, whole or by the evidence in its chunks; `done` takes each when it is finished.

    Without `fit` the response is always judged whole.
    """

    by: CriterionJudge
    fit: ContextFit | None
    messages: Sequence[Message]
    text: str
    priority: tuple[int, ...]
    done: Callable[[Judged], None]

    async def judge(self, criteria: Sequence[Judged]) -> None:
        """Judge with the whole response where it fits into the judge's context, else chunk by chunk."""
        are_whole = await asyncio.to_thread(self.by.are_whole, [each.criterion for each in criteria], self.messages)
        whole = list(compress(criteria, are_whole))
        refused, _ = await self._each(whole, partial(self._judge_criterion, text=self.text))
        if self.fit is not None:
            long = [each for each, is_whole in zip(criteria, are_whole, strict=True) if not is_whole]
            await self._judge_in_chunks(long, self.fit)
            if refused:
                await self._judge_in_chunks(refused, self.fit.after_refusal(self.messages, self.text))

    async def _judge_criterion(self, judged: Judged, text: str) -> str | None:
        """Judge one criterion: fill the template, make the call, read the reply, and hand on the verdict.

        `text` is the response, or what was found in its chunks. `CONTEXT_LENGTH` where the judge finds it too long.
        """
        prompt = judge_prompt(self.by.judging.template, self.messages, text, judged.criterion.title)
        question, is_live = verdict_question(self.by.judging), bool(judged.found)
        reply, verdict = await self.by.ask(question, prompt, judged.verdict_id, self.priority, is_live=is_live)
        if reply.status == CONTEXT_LENGTH and self.fit is not None:
            judged.calls.append(reply)
            return CONTEXT_LENGTH
        if verdict is None and judged.found:
            reply = replace(reply, error=f"on the evidence of {len(judged.found)} chunks: {reply.error}")
        self._finish(judged, reply, verdict)
        return None

    async def _each(
        self, criteria: Sequence[Judged], work: Callable[[Judged], Awaitable[str | None]]
    ) -> tuple[list[Judged], list[Judged]]:
        """Work on criteria; return those that are too long for the judge, and those on which the work can go on.

        The first goes alone, so that the provider has what they share in its cache when the others follow. If it is
        too long, so are the others.
        """

        async def outcome(judged: Judged) -> str | None:
            try:
                return await work(judged)
            except NotCalled:
                self.done(judged)
                return _NOT_CALLED

        if not criteria or (first := await outcome(criteria[0])) == CONTEXT_LENGTH:
            return list(criteria), []
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(outcome(each)) for each in criteria[1:]]
        outcomes = [first, *(task.result() for task in tasks)]
        refused = [each for each, ended in zip(criteria, outcomes, strict=True) if ended == CONTEXT_LENGTH]
        return refused, [each for each, ended in zip(criteria, outcomes, strict=True) if ended is None]

    async def _judge_in_chunks(self, criteria: Sequence[Judged], fit: ContextFit) -> None:
        def step(judged: Judged) -> int:
            return fit.step_of(judged.criterion.title)

        for step_tokens, same_chunks in groupby(sorted(criteria, key=step), key=step):  # most often one group
            await self._judge_by_evidence(list(same_chunks), fit, step_tokens)

    async def _judge_by_evidence(self, criteria: Sequence[Judged], fit: ContextFit, step_tokens: int) -> None:
        """Decide on criteria that need the same chunks; where the judge finds one too long, with smaller chunks.

        One chunk is searched after the other, so that it is in the provider's cache.
        """
        try:
            chunks = await asyncio.to_thread(fit.chunks_of, self.messages, self.text, step_tokens)
        except NoRoom as reason:
            for each in criteria:
                self._fail(each, f"{reason}; {_HINT}")
            return
        refused, going = list[Judged](), list(criteria)
        for chunk in chunks:
            too_long, going = await self._each(going, partial(self._search, chunk=chunk, fit=fit))
            refused += too_long
        conclude = partial(self._conclude, fit=fit, step_tokens=step_tokens, n_chunks=len(chunks))
        await self._each(going, conclude)
        if refused:
            for each in refused:
                each.found.clear()
            await self._judge_in_chunks(refused, fit.after_refusal(self.messages, self.text))

    async def _search(self, judged: Judged, chunk: Chunk, fit: ContextFit) -> str | None:
        """Search a chunk for a criterion; None, or the status of the failure that ended the criterion's search.

        A chunk that the judge finds too long ends nothing yet.
        """
        prompt = evidence_prompt(
            fit.evidence_template, self.messages, judged.criterion.title,
            text=chunk.text, number=chunk.number, n_chunks=chunk.n_chunks, round_=chunk.round_,
        )  # fmt: skip
        priority = (*self.priority, chunk.round_, chunk.number)
        question = evidence_question(self.by.judging)
        reply, evidence = await self.by.ask(question, prompt, judged.verdict_id, priority, is_live=True)
        judged.searches.append((chunk, reply, evidence))
        if evidence is None and reply.status != CONTEXT_LENGTH:
            self._finish(judged, replace(reply, error=f"{chunk.name}: {reply.error}"), None)
            return reply.status
        judged.calls.append(reply)
        if evidence is None:
            return CONTEXT_LENGTH
        judged.found.append(evidence)
        return None

    async def _conclude(
        self, judged: Judged, fit: ContextFit, step_tokens: int, n_chunks: int, round_: int = 1
    ) -> None:
        """The last call of a criterion, on its evidence; where that is too long, after a search of the evidence."""
        notes = self._shown(judged, n_chunks, round_)
        prompt = judge_prompt(self.by.judging.template, self.messages, notes, judged.criterion.title)
        if not fit.holds(prompt):
            if await self._condense(judged, fit, notes, step_tokens, round_ + 1, n_chunks):
                await self._conclude(judged, fit, step_tokens, n_chunks, round_ + 1)
        elif await self._judge_criterion(judged, notes) == CONTEXT_LENGTH:
            smaller = fit.after_refusal(self.messages, notes)
            await self._conclude(judged, smaller, step_tokens, n_chunks, round_)

    async def _condense(
        self, judged: Judged, fit: ContextFit, notes: str, step_tokens: int, round_: int, n_chunks: int
    ) -> bool:
        """Another round over what was found; False if the criterion has failed by that."""
        try:
            chunks = await asyncio.to_thread(fit.chunks_of, self.messages, notes, step_tokens, round_)
        except NoRoom as reason:
            self._fail(judged, f"{reason}; {_HINT}")
            return False
        judged.found.clear()
        for chunk in chunks:
            outcome = await self._search(judged, chunk, fit)
            if outcome == CONTEXT_LENGTH:
                self._fail(judged, f"{chunk.name}: the judge finds it too long; {_HINT}")
            if outcome is not None:
                return False
        before, after = fit.count(notes), fit.count(self._shown(judged, n_chunks, round_))
        if after > _WORTH_A_ROUND * before:
            self._fail(judged, f"the evidence is too long: round {round_} left {after} of {before} tokens; {_HINT}")
            return False
        return True

    def _shown(self, judged: Judged, n_chunks: int, round_: int) -> str:
        return shown(judged.found, n_chunks, round_, is_indented=is_marked(self.by.judging.template))

    def _fail(self, judged: Judged, cause: str) -> None:
        """Fail a criterion as too long in spite of all, because of the calls that were too long, not those answered."""
        paid = tuple(one for reply in judged.calls if reply.status == CONTEXT_LENGTH for one in reply.paid)
        last = judged.calls.pop() if judged.calls else Reply(CONTEXT_LENGTH, attempts=0)
        self._finish(judged, replace(last, status=CONTEXT_LENGTH, error=cause, paid=paid), None)

    def _finish(self, judged: Judged, reply: Reply, verdict: Verdict | None) -> None:
        """Hand on what a criterion came to. A failure rests on its last reply alone: the others stay answers."""
        judged.reply = replace(together([*judged.calls, reply]), paid=reply.paid)
        judged.verdict = verdict
        self.done(judged)
