"""Sample: get a model's response to each conversation without one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tasks.config.job import Job
from tasks.config.models import Model
from tasks.llm.replies import EMPTY, Reply
from tasks.llm.request import Call, Target
from tasks.rules.conversation import NOTHING_SHOWN, final_text, unknown_opening
from tasks.rules.identity import response_id
from tasks.rules.text.characters import count_alphanumeric
from tasks.run import missing_work
from tasks.run.calls import run_all
from tasks.run.judge_configs import target_of
from tasks.run.missing_work import Cell, Conversation, WantedTasks
from tasks.run.run_context import RunContext
from tasks.run.writing import PartWriter, StageReport, call_columns
from warehouse import Row, Warehouse


def plan_samples(job: Job) -> dict[str, list[Cell]]:
    """Return the cells to sample, by model label."""
    with Warehouse(job.warehouse).reader() as reader:
        wanted_tasks = missing_work.wanted_tasks(job, reader)
        return {
            model.label: missing_work.missing_responses(job, wanted_tasks, reader, model)
            for model in job.settings.models
        }


async def sample_cells(
    job: Job,
    context: RunContext,
    model_label: str,
    cells: Sequence[Cell],
) -> StageReport:
    """Sample a batch of one model's cells (task id and trial), and write the responses, failed or
    not.

    Raises:
        PipelineError: the conversation of a task is not assembled.
    """
    model = next(model for model in job.settings.models if model.label == model_label)
    target = target_of(model)
    task_ids = [task_id for task_id, _ in cells]
    with context.warehouse.reader() as reader:
        wanted_tasks = missing_work.wanted_tasks(job, reader)
        conversations = missing_work.assembled_conversations(reader, wanted_tasks, task_ids)
        removal_times = missing_work.removal_times(reader)
    gateway = context.gateway("sample", model_label)
    report = StageReport("sample")
    with PartWriter(context.warehouse, "responses", context.ledger, report) as writer:

        async def sample(index: int, cell: Cell) -> None:
            task_id, _ = cell
            sampled = SampledCell(job, wanted_tasks, model, target, conversations[task_id], cell)
            reply = await gateway.complete(sampled.call(index, removal_times))
            row = sampled.row(reply)
            opening = unknown_opening(row["text"] or "")
            if opening is not None:
                context.remark(
                    "sample",
                    f"{model_label}: responses begin with {opening}, which may be thinking; it is"
                    " kept and judged as a part of them",
                )
            writer.add(row, reply, model_label)

        await run_all(report.count_skipped(sample(index, cell)) for index, cell in enumerate(cells))
    return report


@dataclass(frozen=True)
class SampledCell:
    """A cell of a model: its call, and the row of its response."""

    job: Job
    wanted_tasks: WantedTasks
    model: Model
    target: Target
    conversation: Conversation
    cell: Cell

    @cached_property
    def response_id(self) -> str:
        """The identity of the response."""
        task_id, trial = self.cell
        return response_id(
            benchmark=self.wanted_tasks.benchmark.name,
            dataset_revision=self.wanted_tasks.dataset_revision,
            task_id=task_id,
            conversation_id=self.conversation.conversation_id,
            model=self.model.label,
            model_config_hash=self.target.config_hash,
            trial=trial,
            vintage=self.job.vintage_of(self.model),
        )

    def call(self, index: int, removal_times: Mapping[str, float]) -> Call:
        """Return the call for the response; `index` orders it among those of a batch."""
        turns = missing_work.messages_to(self.model, self.conversation)
        messages = [{"role": role, "content": content} for role, content in turns]
        _, trial = self.cell
        return Call(
            self.target,
            messages,
            self.response_id,
            trial=trial,
            vintage=self.job.vintage_of(self.model),
            priority=(index,),
            not_before_s=removal_times.get(self.response_id),
        )

    def row(self, reply: Reply) -> Row:
        """Return the row of the response, or of the failure that replaces it."""
        task_id, trial = self.cell
        if reply.text is not None:
            text = final_text(reply.text, omits_think_tag=self.model.omits_think_tag)
            reply = replace(reply, text=text)
            if text == "":
                reply = replace(reply, text=None, status=EMPTY, error=NOTHING_SHOWN)
        return {
            **call_columns(self.job, reply),
            **self.wanted_tasks.key,
            "response_id": self.response_id,
            "task_id": task_id,
            "conversation_id": self.conversation.conversation_id,
            "model": self.model.label,
            "model_config_hash": self.target.config_hash,
            "trial": trial,
            "vintage": self.job.vintage_of(self.model),
            "source": "sampled",
            "import_batch": None,
            "status": reply.status,
            "text": reply.text,
            "chars_alnum": None if reply.text is None else count_alphanumeric(reply.text),
            "finish_reason": reply.finish_reason,
            "degraded": reply.degraded,
            "reasoning_tokens": reply.reasoning_tokens,
        }
