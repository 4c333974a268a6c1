"""Derive: rewrite criteria for judges that use another rubric than the original one."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tasks.config.job import Job
from tasks.console import progress
from tasks.llm.replies import OK, Reply
from tasks.llm.request import Call
from tasks.prompts import load_template
from tasks.rules.conversation import prompt_on
from tasks.rules.identity import criterion_hash, digest, template_hash
from tasks.rules.variants import AUGMENTED, EXAMPLES_REMOVED, read_augmented, without_examples
from tasks.run import missing_work
from tasks.run.calls import read_reply, run_all
from tasks.run.judge_configs import target_of
from tasks.run.missing_work import Conversation, UnwordedCriterion, WantedTasks
from tasks.run.run_context import RunContext, open_run_context
from tasks.run.writing import NO_CALL, STAGES, PartWriter, StageReport, call_columns
from warehouse import Warehouse

TEMPLATE = "augmented_v2"


async def derive(job: Job) -> StageReport:
    """Rewrite the criteria without a wording, and store each with a link to its original; failed
    ones are rows too.
    """
    report = StageReport("derive")
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        wanted = missing_work.wanted_tasks(job, reader)
        rubrics = missing_work.wanted_rubrics(job)
        missing = {
            rubric: missing_work.unworded_criteria(job, wanted, reader, rubric)
            for rubric in rubrics
        }
        task_ids = (each.task_id for each in missing.get(AUGMENTED, ()))
        conversations = missing_work.conversations_of(reader, wanted, task_ids)
        tasks = reader.select("tasks", "n_criteria", task_id=list(wanted.task_ids), **wanted.key)
        n_criteria = sum(task["n_criteria"] for task in tasks)
    rows = [
        _row(job, wanted, EXAMPLES_REMOVED, each, without_examples(each.criterion_text), NO_CALL)
        for each in missing.get(EXAMPLES_REMOVED, ())
    ]
    warehouse.write("criterion_variants", rows)
    report.rows = len(rows)
    if missing.get(AUGMENTED):
        with progress(report.stage, {AUGMENTED: len(missing[AUGMENTED])}, is_quiet=job.is_quiet):
            async with open_run_context(job, STAGES[report.stage].calls) as context:
                await context.ready()
                await _augment(job, wanted, context, missing[AUGMENTED], conversations, report)
                context.add_notices(report)
    if report.rows:
        await asyncio.to_thread(warehouse.publish)
    share_failed = sum(report.failures.values()) / max(1, n_criteria)
    report.is_below_bar = 1 - share_failed < job.settings.coverage.min
    report.notes.append(
        f"{report.rows} criteria rewritten ({', '.join(missing) or 'no judge needs it'})"
    )
    return report


async def _augment(
    job: Job,
    wanted: WantedTasks,
    context: RunContext,
    missing: Sequence[UnwordedCriterion],
    conversations: Mapping[str, Conversation],
    report: StageReport,
) -> None:
    writer_model = job.settings.rubric_writer
    assert writer_model is not None
    target = target_of(writer_model)
    template = load_template(TEMPLATE, TEMPLATE)
    by_model = writer_model.label, target.config_hash, template_hash(template)
    gateway = context.gateway(report.stage, writer_model.label)
    with PartWriter(context.warehouse, "criterion_variants", context.ledger, report) as writer:

        async def one(index: int, criterion: UnwordedCriterion) -> None:
            prompt = prompt_on(
                template, conversations[criterion.task_id].messages, criterion.criterion_text
            )
            call = Call(
                target,
                [{"role": "user", "content": prompt}],
                criterion.criterion_id,
                priority=(index,),
            )
            read = partial(
                read_augmented,
                title=criterion.criterion_text,
                omits_think_tag=writer_model.omits_think_tag,
            )
            reply, text = read_reply(await gateway.complete(call), read)
            writer.add(
                _row(job, wanted, AUGMENTED, criterion, text, reply, by_model), reply, AUGMENTED
            )

        await run_all(
            report.counted(one(index, criterion)) for index, criterion in enumerate(missing)
        )


def _row(
    job: Job,
    wanted: WantedTasks,
    rubric: str,
    criterion: UnwordedCriterion,
    text: str | None,
    reply: Reply,
    by: Sequence[str | None] = (None, None, None),
) -> dict[str, Any]:
    writer = dict(zip(("model", "model_config_hash", "template_hash"), by, strict=True))
    return {
        **wanted.key,
        **writer,
        **call_columns(job, reply),
        "task_id": criterion.task_id,
        "rubric": rubric,
        "criterion_id": (
            None if text is None else digest("variant", rubric, criterion.criterion_id, text)[:16]
        ),
        "original_id": criterion.criterion_id,
        "original_hash": criterion.criterion_hash,
        "title": text,
        "content_hash": None if text is None else criterion_hash(text),
        "status": OK if text else reply.status,
    }
