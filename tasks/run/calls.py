"""Calls, the reading of their replies, and a reminder after an unreadable one; analyses, with one
call for each row.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

from tasks.config.job import Job
from tasks.config.models import Analyst
from tasks.llm.calls.gateway import Gateway
from tasks.llm.ledger.entries import total_usd
from tasks.llm.limiter import NotCalled
from tasks.llm.replies import CONTEXT_LENGTH, EMPTY, NOT_SERVED, OK, TOO_LARGE, Reply
from tasks.llm.request import NO_PRICES, Call, Target
from tasks.rules.identity import BASE_VINTAGE
from tasks.rules.text.characters import one_line
from tasks.rules.verdict import PARSE_ERROR, VerdictError
from tasks.run.judge_configs import target_of
from tasks.run.missing_work import WantedTasks, accepted_ends, is_repeated, wanted_tasks
from tasks.run.run_context import RunContext
from tasks.run.writing import PartWriter, StageReport, call_columns
from warehouse import Reader, Row

TOKEN_FIELDS = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens")
"""The numbers of tokens of a reply."""
Parsed = TypeVar("Parsed")
Result = TypeVar("Result")
Parsed_co = TypeVar("Parsed_co", covariant=True)


class ReplySpec(NamedTuple, Generic[Parsed_co]):
    """The required form of a reply: how it is read, the structured output that is requested, and
    the reminder.

    The reminder is sent after a reply that cannot be read.
    """

    read: Callable[[str], Parsed_co]
    shape: Mapping[str, Any]
    reminder: str


async def call_and_parse(
    gateway: Gateway,
    call: Call,
    reply_spec: ReplySpec[Parsed],
) -> tuple[Reply, Parsed | None]:
    """Call a model, and once more if its reply cannot be read; return the last reply, and what was
    read or None.

    Raises:
        NotCalled: the call was not made.
    """
    first_reply = await gateway.complete(call)
    reply, parsed = read_reply(first_reply, reply_spec.read)
    if reply.status != PARSE_ERROR:
        return reply, parsed
    # The same call, with the reply that could not be read and a reminder; it is in no batch if
    # live calls are allowed.
    messages = [
        *call.messages,
        {"role": "assistant", "content": first_reply.text or ""},
        {"role": "user", "content": reply_spec.reminder},
    ]
    try:
        second_reply = await gateway.complete(replace(call.live_if_allowed, messages=messages))
    except NotCalled:
        return reply, None
    reply, parsed = read_reply(second_reply, reply_spec.read)
    summed_reply = sum_usage([first_reply, reply], reply)
    ledger_keys = first_reply.ledger_keys + second_reply.ledger_keys
    return replace(summed_reply, ledger_keys=ledger_keys), parsed


def call_with(
    caller: Analyst,
    target: Target,
    reply_spec: ReplySpec[object],
    prompt: str,
    *,
    cell: str,
    trial: int,
    vintage: str = BASE_VINTAGE,
    priority: tuple[int, ...],
) -> Call:
    """Return the call of a judge or another analyst with a prompt."""
    wants_shape = caller.structured_output
    if wants_shape is None:
        wants_shape = target.can_follow_schema
    return Call(
        target,
        [{"role": "user", "content": prompt}],
        cell,
        response_format=reply_spec.shape if wants_shape else None,
        trial=trial,
        vintage=vintage,
        priority=priority,
        is_batched=caller.mode == "batch",
        allows_live=caller.allow_live,
    )


async def run_all(work: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Run coroutines at the same time, and return their results in order; if one fails, cancel the
    others.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(coroutine) for coroutine in work]
    return [task.result() for task in tasks]


def read_reply(reply: Reply, read: Callable[[str], Parsed]) -> tuple[Reply, Parsed | None]:
    """Return a reply and what was read from it; if it is unreadable, the reply with the reason, and
    None.
    """
    if reply.status not in {OK, EMPTY}:
        return reply, None
    try:
        return reply, read(reply.text or "")
    except Exception as error:  # noqa: BLE001 - a model may write anything
        reason = str(error)
        if not isinstance(error, VerdictError):
            reason = f"{type(error).__name__}: {error}"
        cause = one_line(f"{reason}; reply: {(reply.text or '')[:300]!r}")
        return replace(reply, status=PARSE_ERROR, error=cause), None


def sum_usage(replies: Sequence[Reply], deciding: Reply, *, with_tokens: bool = False) -> Reply:
    """Return the deciding one of some replies, with the attempts and the cost of all and,
    `with_tokens`, their tokens.

    The cost is unknown if that of any call with a reply is. A call without a reply adds its cost
    only if it is known. A sum of tokens is unknown if one of its numbers is; prices are kept only
    if they are the same for all.
    """
    statuses_without_reply = NOT_SERVED | {CONTEXT_LENGTH, TOO_LARGE}
    is_cost_known = all(
        reply.status in statuses_without_reply or reply.cost_usd is not None for reply in replies
    )
    summed: dict[str, Any] = {"attempts": sum(reply.attempts for reply in replies)}
    if with_tokens:
        for name in TOKEN_FIELDS:
            counts = [getattr(reply, name) for reply in replies]
            summed[name] = None if None in counts else sum(counts)
        has_same_prices = len({reply.prices for reply in replies}) == 1
        summed["prices"] = deciding.prices if has_same_prices else NO_PRICES
    return replace(deciding, cost_usd=total_usd(replies) if is_cost_known else None, **summed)


Columns = Mapping[str, Any]


class Item(NamedTuple):
    """A task, criterion or phrase that an analyst is called for.

    `row_id` is the key of its row, a hash of all that the row depends on. `columns` are the row's
    columns before the call, with NULL for those that a reply fills. `prompt` returns the text to
    send. The prompts of a `group` begin alike: its first call goes alone, so that the provider has
    the beginning in its cache when the others follow.
    """

    row_id: str
    group: str
    columns: Columns
    reply_spec: ReplySpec[Columns]
    prompt: Callable[[], str]
    trial: int = 1


class Analysis(NamedTuple):
    """An analysis: the items that analysts are called for, and the table of its rows.

    `stage` is also the purpose of its calls, `settings_key` the configuration's key of its
    analysts. The rows are in `table`; its column `id_column` has their ids, `analyst_column` the
    label of the analyst, and that name with `_config_hash` the hash of its configuration.
    `items_of` gives all items of an analyst for some tasks, in the order of their calls.
    """

    stage: str
    settings_key: str
    table: str
    id_column: str
    analyst_column: str
    items_of: Callable[[Job, WantedTasks, Reader, Analyst], Sequence[Item]]

    def analysts(self, job: Job) -> tuple[Analyst, ...]:
        """Return the configured analysts."""
        analysts: tuple[Analyst, ...] = getattr(job.settings, self.settings_key)
        return analysts

    def missing(self, job: Job, reader: Reader) -> dict[str, list[Item]]:
        """Return, by label of the analyst, the items without a row, or with a failed row that is to
        be retried.
        """
        job_tasks = wanted_tasks(job, reader)
        rows = reader.select(self.table, f"{self.id_column}, status, error", **job_tasks.key)
        missing_items = {}
        for analyst in self.analysts(job):
            accepted = accepted_ends(analyst)
            final_ids = {row[self.id_column] for row in rows if not is_repeated(job, row, accepted)}
            items = self.items_of(job, job_tasks, reader, analyst)
            missing_items[analyst.label] = [item for item in items if item.row_id not in final_ids]
        return missing_items

    def changed_analysts(self, job: Job, reader: Reader) -> list[Row]:
        """Return new rows of `analysts`, for those whose configuration is not stored yet."""
        key = {"benchmark": job.benchmark, "purpose": self.stage}
        stored_rows = reader.select("analysts", "analyst, analyst_config_hash", **key)
        new_rows = []
        for analyst in self.analysts(job):
            config_hash = target_of(analyst).config_hash
            row = {"analyst": analyst.label, "analyst_config_hash": config_hash}
            if row not in stored_rows:
                new_rows.append({**key, **row, "created_at": datetime.now(UTC)})
        return new_rows


async def analyse_items(
    job: Job,
    context: RunContext,
    analysis: Analysis,
    label: str,
    row_ids: Collection[str],
) -> StageReport:
    """Call an analyst for its missing items with these ids, and write their rows, failed ones
    too.
    """
    report = StageReport(analysis.stage)
    missing_items = await asyncio.to_thread(_missing_items, job, context, analysis, label)
    items = [item for item in missing_items if item.row_id in row_ids]
    (analyst,) = [analyst for analyst in analysis.analysts(job) if analyst.label == label]
    target = target_of(analyst)
    if analyst.mode == "batch" and not context.is_held_back(analysis.stage, label):
        # The group number is a live call's priority, and no part of its identity.
        calls = [_call(analyst, target, item, 0) for item in items]
        await context.submit_and_collect(target, calls, report)
    await _call_analyst(job, context, analysis, analyst, items, report)
    return report


async def _call_analyst(
    job: Job,
    context: RunContext,
    analysis: Analysis,
    analyst: Analyst,
    items: Iterable[Item],
    report: StageReport,
) -> None:
    """Make an analyst's live calls for items, and write their rows."""
    target = target_of(analyst)
    gateway = context.gateway(analysis.stage, analyst.label)
    with PartWriter(context.warehouse, analysis.table, context.ledger, report) as writer:

        async def analyse(item: Item, group_number: int) -> None:
            call = _call(analyst, target, item, group_number)
            reply, parsed = await call_and_parse(gateway, call, item.reply_spec)
            row = {
                **item.columns,
                **call_columns(job, reply),
                **(parsed or {}),
                analysis.id_column: item.row_id,
                "status": reply.status if parsed is None else OK,
            }
            writer.add(row, reply, analyst.label)

        async def analyse_group(group_number: int, group: Sequence[Item]) -> None:
            """Analyse items whose prompts begin alike; the first call goes alone."""
            await report.count_skipped(analyse(group[0], group_number))
            await run_all(report.count_skipped(analyse(item, group_number)) for item in group[1:])

        groups = [list(group) for _, group in groupby(items, key=attrgetter("group"))]
        await run_all(analyse_group(number, group) for number, group in enumerate(groups))


def _missing_items(job: Job, context: RunContext, analysis: Analysis, label: str) -> list[Item]:
    with context.warehouse.reader() as reader:
        return analysis.missing(job, reader)[label]


def _call(analyst: Analyst, target: Target, item: Item, group_number: int) -> Call:
    return call_with(
        analyst,
        target,
        item.reply_spec,
        item.prompt(),
        cell=item.row_id,
        trial=item.trial,
        priority=(group_number,),
    )
