"""Sample: a model's final answer to each conversation that has none yet."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tasks.config.job import Job
from tasks.config.models import Model
from tasks.console import advance
from tasks.llm.limiter import NotCalled
from tasks.llm.replies import EMPTY, OK, Reply
from tasks.llm.request import Call, Target
from tasks.rules.conversation import NOTHING_SHOWN, final_text
from tasks.rules.identity import response_id
from tasks.rules.text.characters import count_alphanumeric
from tasks.run.judgings import target_of
from tasks.run.missing_work import (
    Conversation,
    WantedTasks,
    conversations_of,
    messages_to,
    missing_responses,
    wanted_tasks,
)
from tasks.run.run_context import run_context_of
from tasks.run.writing import PartWriter, StageReport, usage_columns
from warehouse import Warehouse

Cell = tuple[str, int]
"""(task id, trial)"""


def plan_samples(job: Job, *, retry_failed: bool) -> dict[str, list[Cell]]:
    """The cells to sample, by model label."""
    with Warehouse(job.warehouse).reader() as reader:
        wanted = wanted_tasks(job, reader)
        return {
            model.label: missing_responses(job, wanted, reader, model, retry_failed=retry_failed)
            for model in job.settings.models
        }


async def sample_cells(job: Job, model_label: str, cells: Sequence[Cell]) -> StageReport:
    """Sample a batch of one model's cells and write the responses, failed ones too."""
    warehouse = Warehouse(job.warehouse)
    model = next(model for model in job.settings.models if model.label == model_label)
    target = target_of(model)
    context = run_context_of(job)
    gateway = context.gateway("sample", model_label)
    with warehouse.reader() as reader:
        wanted = wanted_tasks(job, reader)
        conversations = conversations_of(reader, wanted, (task_id for task_id, _ in cells))
        removed = {row["response_id"]: row["created_at"].timestamp() for row in reader.rows("from removals")}
    report = StageReport("sample")
    with PartWriter(warehouse, "responses", context.ledger) as writer:

        async def one(place: int, cell: Cell) -> None:
            conversation = conversations[cell[0]]
            messages = [{"role": role, "content": content} for role, content in messages_to(model, conversation)]
            identity = _identity(job, wanted, model, target, cell, conversation)
            call = Call(
                target, messages, identity["response_id"], trial=cell[1], vintage=identity["vintage"],
                priority=(place,), not_before_s=removed.get(identity["response_id"]),
            )  # fmt: skip
            try:
                reply = await gateway.complete(call)
            except NotCalled:
                report.skipped += 1
                return
            row = _response_row(job, model, identity, reply)
            writer.add(row, reply, is_failure=row["status"] != OK)
            report.count(row["status"], row["cost_usd"], is_failure=row["status"] != OK)
            advance("sample", model_label, succeeded=row["status"] == OK)

        async with asyncio.TaskGroup() as group:
            for place, cell in enumerate(cells):
                group.create_task(one(place, cell))
    return report


def _identity(
    job: Job, wanted: WantedTasks, model: Model, target: Target, cell: Cell, conversation: Conversation
) -> dict[str, Any]:
    """The columns that make a response what it is, and the id that is made of them."""
    columns: dict[str, Any] = {
        **wanted.key, "task_id": cell[0], "conversation_id": conversation.conversation_id, "model": model.label,
        "model_config_hash": target.config_hash, "trial": cell[1], "vintage": job.vintage_of(model),
    }  # fmt: skip
    return columns | {"response_id": response_id(*columns.values())}


def _response_row(job: Job, model: Model, identity: Mapping[str, Any], reply: Reply) -> dict[str, Any]:
    text = None if reply.text is None else final_text(reply.text, omits_think_tag=model.omits_think_tag)
    status, error = (EMPTY, NOTHING_SHOWN) if text == "" else (reply.status, reply.error)
    return {
        **usage_columns(reply), **identity, "source": "sampled", "import_batch": None, "status": status,
        "text": text or None, "chars_alnum": count_alphanumeric(text) if text else None,
        "finish_reason": reply.finish_reason, "degraded": reply.degraded, "reasoning_tokens": reply.reasoning_tokens,
        "error": error, "run_id": job.run_id, "created_at": datetime.now(UTC),
    }  # fmt: skip
