"""Analyses: asking models about tasks or criteria, one call and one row each."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import groupby
from typing import Any

import sql
from tasks.config import Analyst, Job
from tasks.console import advance
from tasks.llm import OK, Call, NotCalled, Target
from tasks.run.missing_work import PASSING, WantedTasks, wanted_tasks
from tasks.run.part_writer import PartWriter, target_of, usage_columns
from tasks.run.provider_batches import submit_and_collect
from tasks.run.questions import Question, ask
from tasks.run.run_context import RunContext, run_context_of
from tasks.run.stage_report import StageReport
from warehouse import Reader, Warehouse

Columns = Mapping[str, Any]


@dataclass(frozen=True)
class Item:
    """Something that an analyst is asked about.

    `row_id` is the key of its row, a hash of all that the row depends on. `columns` are those of the row that are known
    before the call, with NULL for what a reply says. The prompts of a `group` begin alike: its first call goes alone,
    so that the provider has the beginning in its cache when the others follow.
    """

    row_id: str
    group: str
    columns: Columns
    question: Question[Columns]
    make_prompt: Callable[[], str]
    trial: int = 1

    @cached_property
    def prompt(self) -> str:
        """The text that is sent."""
        return self.make_prompt()


@dataclass(frozen=True)
class Analysis:
    """What a stage asks analysts about, and where the rows go.

    `stage` is also the role of its calls, `role` the configuration's key of its analysts. The rows are in `table` under
    `key`; its columns `by` and `by`_config_hash say who made them. `items_of` gives all items of an analyst for
    some tasks, in the order in which they are asked.
    """

    stage: str
    role: str
    table: str
    key: str
    items_of: Callable[[Job, WantedTasks, Reader, Analyst], Sequence[Item]]
    other_by: str | None = None

    @property
    def by(self) -> str:
        """The column with the label of who was asked: named like the role, if not otherwise."""
        return self.other_by or self.role

    def analysts(self, job: Job) -> tuple[Analyst, ...]:
        """Who is asked."""
        found: tuple[Analyst, ...] = getattr(job.settings, self.role)
        return found

    def missing(self, job: Job, reader: Reader, *, retry_failed: bool = False) -> dict[str, list[Item]]:
        """The items of each analyst, by label, that have no row, or a failed one that is to be tried again."""
        wanted = wanted_tasks(job, reader)
        query = sql.template("questions/analyses/settled_items", key=self.key, table=self.table)
        parameters = {**wanted.key, "again": list(PASSING), "retry_failed": retry_failed}
        settled = {row["row_id"] for row in reader.rows(query, parameters)}
        return {
            analyst.label: [item for item in self.items_of(job, wanted, reader, analyst) if item.row_id not in settled]
            for analyst in self.analysts(job)
        }

    def changed_analysts(self, job: Job, reader: Reader) -> list[dict[str, Any]]:
        """The rows of `analysts` for those that are configured otherwise than when they were last asked."""
        key = {"benchmark": job.settings.benchmark, "purpose": self.stage}
        query = "select analyst, analyst_config_hash from analysts where benchmark = ? and purpose = ?"
        stored = {row["analyst"]: row["analyst_config_hash"] for row in reader.rows(query, list(key.values()))}
        hashes = {analyst.label: target_of(analyst).config_hash for analyst in self.analysts(job)}
        return [
            {**key, "analyst": label, "analyst_config_hash": config_hash, "created_at": datetime.now(UTC)}
            for label, config_hash in hashes.items()
            if stored.get(label) != config_hash
        ]


async def ask_about(
    job: Job, analysis: Analysis, label: str, row_ids: Collection[str], *, retry_failed: bool = False
) -> StageReport:
    """Ask an analyst about those of its missing items that have these ids, and write their rows, failed ones too."""
    context, report = run_context_of(job), StageReport(analysis.stage)
    with Warehouse(job.warehouse).reader() as reader:
        missing = await asyncio.to_thread(analysis.missing, job, reader, retry_failed=retry_failed)
    items = [item for item in missing[label] if item.row_id in row_ids]
    analyst = next(each for each in analysis.analysts(job) if each.label == label)
    target = target_of(analyst)
    if analyst.mode == "batch" and not context.is_held_back(analysis.stage, label):
        await submit_and_collect(job, context, target, [_call(analyst, target, item, (0,)) for item in items], report)
    with PartWriter(Warehouse(job.warehouse), analysis.table, context.ledger) as writer:
        asking = _Asking(job, context, analysis, analyst, target, writer, report)
        async with asyncio.TaskGroup() as group:
            for place, (_, found) in enumerate(groupby(items, key=lambda item: item.group)):
                group.create_task(asking.group(list(found), place))
    return report


def _call(analyst: Analyst, target: Target, item: Item, priority: tuple[int, ...]) -> Call:
    wants_shape = target.can_follow_schema if analyst.structured_output is None else analyst.structured_output
    shape = item.question.shape if wants_shape else None
    messages = [{"role": "user", "content": item.prompt}]
    return Call(
        target, messages, item.row_id, shape, item.trial, priority=priority, is_batched=analyst.mode == "batch",
        allows_live=analyst.allow_live,
    )  # fmt: skip


@dataclass(frozen=True)
class _Asking:
    """An analyst that is asked, and where the rows go."""

    job: Job
    context: RunContext
    analysis: Analysis
    analyst: Analyst
    target: Target
    writer: PartWriter
    report: StageReport

    async def group(self, items: Sequence[Item], place: int) -> None:
        """Ask about the items of a group, the first alone."""
        await self._one(items[0], place)
        async with asyncio.TaskGroup() as group:
            for item in items[1:]:
                group.create_task(self._one(item, place))

    async def _one(self, item: Item, place: int) -> None:
        stage, label = self.analysis.stage, self.analyst.label
        call = _call(self.analyst, self.target, item, (place,))
        try:
            reply, found = await ask(self.context.gateway(stage, label), call, item.question)
        except NotCalled:
            self.report.skipped += 1
            return
        is_failure = found is None
        row = {
            **item.columns,
            **usage_columns(reply),
            **(found or {}),
            self.analysis.key: item.row_id,
            "status": reply.status if is_failure else OK,
            "run_id": self.job.run_id,
            "created_at": datetime.now(UTC),
        }
        self.writer.add(row, reply, is_failure=is_failure)
        self.report.count(row["status"], row["cost_usd"], is_failure=is_failure)
        advance(stage, label, succeeded=not is_failure)
