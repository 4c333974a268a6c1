"""Sample: get a model's response to each conversation without one."""

from collections.abc import Sequence
from typing import Any

from tasks.config.job import Job
from tasks.llm.replies import EMPTY
from tasks.llm.request import Call
from tasks.rules.conversation import NOTHING_SHOWN, final_text, unknown_opening
from tasks.rules.identity import response_id
from tasks.rules.text.characters import count_alphanumeric
from tasks.run.calls import run_all
from tasks.run.judge_configs import target_of
from tasks.run.missing_work import (
    Cell,
    conversations_of,
    messages_to,
    missing_responses,
    wanted_tasks,
)
from tasks.run.run_context import RunContext
from tasks.run.writing import PartWriter, StageReport, call_columns
from warehouse import Warehouse


def plan_samples(job: Job) -> dict[str, list[Cell]]:
    """Return the cells to sample, by model label."""
    with Warehouse(job.warehouse).reader() as reader:
        wanted = wanted_tasks(job, reader)
        return {
            model.label: missing_responses(job, wanted, reader, model)
            for model in job.settings.models
        }


async def sample_cells(
    job: Job, context: RunContext, model_label: str, cells: Sequence[Cell]
) -> StageReport:
    """Sample a batch of one model's cells and write the responses, failed or not."""
    model = next(model for model in job.settings.models if model.label == model_label)
    target = target_of(model)
    gateway = context.gateway("sample", model_label)
    with context.warehouse.reader() as reader:
        wanted = wanted_tasks(job, reader)
        conversations = conversations_of(reader, wanted, (task_id for task_id, _ in cells))
        removed = {
            row["response_id"]: row["created_at"].timestamp()
            for row in reader.rows("from removals")
        }
    report = StageReport("sample")
    with PartWriter(context.warehouse, "responses", context.ledger, report) as writer:

        async def one(index: int, cell: Cell) -> None:
            conversation = conversations[cell[0]]
            messages = [
                {"role": role, "content": content}
                for role, content in messages_to(model, conversation)
            ]
            columns: dict[str, Any] = {
                **wanted.key,
                "task_id": cell[0],
                "conversation_id": conversation.conversation_id,
                "model": model_label,
                "model_config_hash": target.config_hash,
                "trial": cell[1],
                "vintage": job.vintage_of(model),
            }
            identity = response_id(
                benchmark=columns["benchmark"],
                dataset_revision=columns["dataset_revision"],
                task_id=columns["task_id"],
                conversation_id=columns["conversation_id"],
                model=columns["model"],
                model_config_hash=columns["model_config_hash"],
                trial=columns["trial"],
                vintage=columns["vintage"],
            )
            call = Call(
                target,
                messages,
                identity,
                trial=cell[1],
                vintage=columns["vintage"],
                priority=(index,),
                not_before_s=removed.get(identity),
            )
            reply = await gateway.complete(call)
            text = (
                None
                if reply.text is None
                else final_text(reply.text, omits_think_tag=model.omits_think_tag)
            )
            opening = unknown_opening(text or "")
            if opening is not None:
                what = f"{model_label}: responses begin with {opening}, which may be thinking"
                context.remark("sample", f"{what}; it is kept and judged as a part of them")
            status, error = (EMPTY, NOTHING_SHOWN) if text == "" else (reply.status, reply.error)
            row = {
                **call_columns(job, reply),
                **columns,
                "response_id": identity,
                "source": "sampled",
                "import_batch": None,
                "status": status,
                "text": text or None,
                "chars_alnum": count_alphanumeric(text) if text else None,
                "finish_reason": reply.finish_reason,
                "degraded": reply.degraded,
                "reasoning_tokens": reply.reasoning_tokens,
                "error": error,
            }
            writer.add(row, reply, model_label)

        await run_all(report.counted(one(index, cell)) for index, cell in enumerate(cells))
    return report
