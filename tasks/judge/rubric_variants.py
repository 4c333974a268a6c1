"""Derive: rewrite criteria for judges that use another rubric than the original one."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

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
from tasks.run.missing_work import Conversation, CriterionToRewrite, WantedTasks
from tasks.run.run_context import RunContext, open_run_context
from tasks.run.writing import NO_CALL, STAGES, PartWriter, StageReport, call_columns
from warehouse import Row, Warehouse

TEMPLATE = "augmented_v2"


async def derive(job: Job) -> StageReport:
    """Rewrite the criteria that have not been rewritten, and store each with a link to its
    original.

    Failed ones are rows too.
    """
    report = StageReport("derive")
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        tasks = missing_work.wanted_tasks(job, reader)
        criteria_by_rubric = {
            rubric: missing_work.criteria_to_rewrite(job, tasks, reader, rubric)
            for rubric in missing_work.wanted_rubrics(job)
        }
        to_augment = criteria_by_rubric.get(AUGMENTED, [])
        conversations = missing_work.assembled_conversations(
            reader, tasks, {criterion.task_id for criterion in to_augment}
        )
        task_rows = reader.select("tasks", "n_criteria", task_id=list(tasks.task_ids), **tasks.key)
    rows = []
    for criterion in criteria_by_rubric.get(EXAMPLES_REMOVED, []):
        text = without_examples(criterion.criterion_text)
        rows.append(_variant_row(job, tasks, EXAMPLES_REMOVED, criterion, text, NO_CALL))
    warehouse.write("criterion_variants", rows)
    report.rows = len(rows)
    if to_augment:
        await _augment(job, tasks, to_augment, conversations, report)
    if report.rows:
        await asyncio.to_thread(warehouse.publish)
    n_criteria = sum(row["n_criteria"] for row in task_rows)
    n_failed = report.failures.total()
    failed_share = n_failed / max(1, n_criteria)
    report.is_below_bar = 1 - failed_share < job.settings.coverage.min
    rubrics = ", ".join(criteria_by_rubric) or "no judge needs it"
    report.notes.append(f"{report.rows - n_failed} criteria rewritten ({rubrics})")
    return report


async def _augment(
    job: Job,
    tasks: WantedTasks,
    criteria: Sequence[CriterionToRewrite],
    conversations: Mapping[str, Conversation],
    report: StageReport,
) -> None:
    """Have the rubric writer add detail to criteria, and write the rows; show the progress."""
    with progress(report.stage, {AUGMENTED: len(criteria)}, is_quiet=job.is_quiet):
        async with open_run_context(job, STAGES[report.stage].calls) as context:
            await context.get_ready()
            await _call_writer(job, tasks, context, criteria, conversations, report)
            context.add_notices(report)


async def _call_writer(
    job: Job,
    tasks: WantedTasks,
    context: RunContext,
    criteria: Sequence[CriterionToRewrite],
    conversations: Mapping[str, Conversation],
    report: StageReport,
) -> None:
    rubric_writer = job.settings.rubric_writer
    assert rubric_writer is not None
    target = target_of(rubric_writer)
    template = load_template(TEMPLATE, TEMPLATE)
    origin = {
        "model": rubric_writer.label,
        "model_config_hash": target.config_hash,
        "template_hash": template_hash(template),
    }
    gateway = context.gateway(report.stage, rubric_writer.label)
    with PartWriter(context.warehouse, "criterion_variants", context.ledger, report) as writer:

        async def augment(index: int, criterion: CriterionToRewrite) -> None:
            title = criterion.criterion_text
            prompt = prompt_on(template, conversations[criterion.task_id].messages, title)
            messages = [{"role": "user", "content": prompt}]
            call = Call(target, messages, criterion.criterion_id, priority=(index,))
            read = partial(
                read_augmented, title=title, omits_think_tag=rubric_writer.omits_think_tag
            )
            reply, text = read_reply(await gateway.complete(call), read)
            row = _variant_row(job, tasks, AUGMENTED, criterion, text, reply)
            writer.add(row | origin, reply, AUGMENTED)

        await run_all(
            report.count_skipped(augment(index, criterion))
            for index, criterion in enumerate(criteria)
        )


def _variant_row(
    job: Job,
    tasks: WantedTasks,
    rubric: str,
    criterion: CriterionToRewrite,
    text: str | None,
    reply: Reply,
) -> Row:
    """Return the row of a rewritten criterion, or of a failure if there is no text."""
    row = {
        **call_columns(job, reply),
        **tasks.key,
        "task_id": criterion.task_id,
        "rubric": rubric,
        "criterion_id": None,
        "original_id": criterion.criterion_id,
        "original_hash": criterion.criterion_hash,
        "title": text,
        "content_hash": None,
        "status": reply.status,
        "model": None,
        "model_config_hash": None,
        "template_hash": None,
    }
    if text is not None:
        row["criterion_id"] = digest("variant", rubric, criterion.criterion_id, text)[:16]
        row["content_hash"] = criterion_hash(text)
        row["status"] = OK
    return row
