"""The judge stage: missing verdicts are found, judged and written."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any

from tasks.config.job import Job
from tasks.judge.cascades import CascadeJudge
from tasks.judge.context_fit import SearchedChunk, context_fit_of
from tasks.judge.criterion import CriterionToJudge, JudgedCriterion
from tasks.judge.groups import GroupJudge
from tasks.judge.responses import ResponseJudge
from tasks.llm.calls.gateway import Gateway
from tasks.llm.replies import OK
from tasks.rules.identity import BASE_VINTAGE, piece_hash
from tasks.run import missing_work
from tasks.run.calls import run_all
from tasks.run.judge_configs import JudgeConfig, judge_configs, judge_target
from tasks.run.missing_work import MissingVerdicts, WantedTasks
from tasks.run.run_context import RunContext
from tasks.run.writing import PartWriter, StageReport, call_columns
from warehouse import Reader, Row, Warehouse


def missing_by_judge(job: Job) -> list[tuple[JudgeConfig, list[MissingVerdicts]]]:
    """Return the responses that lack verdicts, for each judge configuration that makes calls."""
    with Warehouse(job.warehouse).reader() as reader:
        wanted_tasks = missing_work.wanted_tasks(job, reader)
        return [
            (config, missing_work.missing_verdicts(job, wanted_tasks, reader, config))
            for config in judge_configs(job, wanted_tasks.benchmark)
            if not config.panel
        ]


def criteria_to_judge(
    job: Job,
    context: RunContext,
    judge_config: JudgeConfig,
    response_ids: Sequence[str],
) -> tuple[WantedTasks, list[CriterionToJudge]]:
    """Return the wanted tasks, and the criteria to judge of some responses (see `criteria_of`)."""
    with context.warehouse.reader() as reader:
        wanted_tasks = missing_work.wanted_tasks(job, reader)
        parameters = missing_work.undecided_parameters(job, judge_config)
        parameters["responses"] = list(response_ids)
        return wanted_tasks, criteria_of(reader, wanted_tasks, parameters)


def criteria_of(
    reader: Reader,
    wanted_tasks: WantedTasks,
    parameters: Mapping[str, Any],
) -> list[CriterionToJudge]:
    """Return the undecided criteria of responses, with the decided ones of the same calls
    (`is_missing` is false), in the order of the responses and the rubric. Those of calls that
    failed before are the last ones of their response.

    `parameters` are those of the query `missing_verdicts`.
    """
    rows = reader.query("queries/run/missing_verdicts", parameters)
    task_ids = {row["task_id"] for row in rows}
    conversations = missing_work.assembled_conversations(reader, wanted_tasks, task_ids)
    return [CriterionToJudge.of(row, conversations[row["task_id"]].messages) for row in rows]


async def judge_responses(
    job: Job,
    context: RunContext,
    judge_config: JudgeConfig,
    response_ids: Sequence[str],
    batch_index: int,
    sampled: Collection[tuple[str, str]] | None = None,
) -> StageReport:
    """Make the missing verdicts of a batch of responses, and write them, failed ones too.

    `batch_index` is the batch's number among all; see `judge_criteria` for the order of the calls.
    With `sampled`, criteria by task id and criterion id, only calls that decide one of them are
    made.
    """
    wanted_tasks, criteria = criteria_to_judge(job, context, judge_config, response_ids)
    if sampled is not None:
        criteria = _in_calls_with(sampled, criteria)
    report = StageReport("judge")
    table_columns = {
        "source": "judged",
        "import_batch": None,
        "may_hide_failures": False,
        "members_usd": None,
    }
    with VerdictWriter(
        job,
        context,
        wanted_tasks,
        judge_config,
        report,
        "verdicts",
        table_columns,
    ) as writer:
        await judge_criteria(writer, criteria, batch_index)
    return report


def _in_calls_with(
    sampled: Collection[tuple[str, str]],
    criteria: Sequence[CriterionToJudge],
) -> list[CriterionToJudge]:
    """Return the criteria of calls that decide a sampled one."""

    def call_of(criterion: CriterionToJudge) -> tuple[str, int | str]:
        call_index = criterion.call_index
        in_response = criterion.criterion_id if call_index is None else call_index
        return criterion.response_id, in_response

    calls = set()
    for criterion in criteria:
        if (criterion.task_id, criterion.criterion_id) in sampled:
            calls.add(call_of(criterion))
    return [criterion for criterion in criteria if call_of(criterion) in calls]


class VerdictWriter(PartWriter):
    """A writer of verdicts to a table, and of their evidence before them.

    `table_columns` are those that only the table of these verdicts has; `report` counts the rows.
    """

    def __init__(
        self,
        job: Job,
        context: RunContext,
        wanted_tasks: WantedTasks,
        judge_config: JudgeConfig,
        report: StageReport,
        table_name: str,
        table_columns: Row,
    ) -> None:
        super().__init__(context.warehouse, table_name, context.ledger, report)
        self._evidence = PartWriter(context.warehouse, "evidence", context.ledger)
        self.job = job
        self.wanted_tasks = wanted_tasks
        self.judge_config = judge_config
        self.report = report
        self.table_columns = table_columns
        self.gateway = context.gateway(report.stage, judge_config.judge.label)

    def flush(self) -> None:
        """Write the collected evidence, then the verdicts.

        So no verdict is on disk without the evidence for it.
        """
        self._evidence.flush()
        super().flush()

    def write(self, judged: JudgedCriterion) -> None:
        """Write a verdict, or the failure that replaces it, and its evidence.

        A criterion without a call is counted as skipped.
        """
        if judged.reply is None:
            self.report.skipped += 1
            return
        for searched in judged.searches:
            self._evidence.add(self._evidence_row(judged, searched), searched.reply)
        row = verdict_row(self.job, self.wanted_tasks, self.judge_config, judged)
        self.add(row | self.table_columns, judged.reply, judged.criterion.model)

    def _evidence_row(self, judged: JudgedCriterion, searched: SearchedChunk) -> Row:
        """Return the row of evidence in a chunk, or of the failure to search it."""
        criterion = judged.criterion
        chunk = searched.chunk
        return {
            **call_columns(self.job, searched.reply),
            **self.wanted_tasks.key,
            "response_id": criterion.response_id,
            "task_id": criterion.task_id,
            "criterion_id": criterion.criterion_id,
            "verdict_id": judged.verdict_id,
            "round": chunk.round_,
            "chunk_number": chunk.number,
            "n_chunks": chunk.n_chunks,
            "first_char": chunk.first_char,
            "n_chars": len(chunk.text),
            "status": searched.reply.status if searched.evidence is None else OK,
            "evidence": searched.evidence,
        }


def verdict_row(
    job: Job,
    wanted_tasks: WantedTasks,
    judge_config: JudgeConfig,
    judged: JudgedCriterion,
) -> Row:
    """Return the columns of a verdict, or of a failure, on a criterion with a reply."""
    assert judged.reply is not None
    criterion = judged.criterion
    row = {
        **wanted_tasks.key,
        **judge_config.columns,
        "verdict_id": judged.verdict_id,
        "response_id": criterion.response_id,
        "task_id": criterion.task_id,
        "model": criterion.model,
        "trial": criterion.trial,
        "vintage": criterion.vintage,
        "criterion_id": criterion.criterion_id,
        "criterion_hash": criterion.criterion_hash,
        "piece_hash": piece_hash(criterion.piece),
        "n_in_call": judged.n_in_call,
        "position_in_call": judged.position_in_call,
        "decided_by": judged.decided_by,
        "escalated_because": judged.escalated_because,
        "status": judged.reply.status,
        "value": None,
        "explanation": None,
        "probability": None,
        "confidence": None,
    }
    if judged.verdict is not None:
        row |= asdict(judged.verdict)
    return row | call_columns(job, judged.reply)


async def judge_criteria(
    writer: VerdictWriter,
    criteria: Sequence[CriterionToJudge],
    batch_index: int,
    judge_vintage: str = BASE_VINTAGE,
) -> None:
    """Judge criteria, given in the order of their responses, and write the verdicts.

    Calls go out in the order of `batch_index`, then of responses, so that those about one
    conversation follow each other. `judge_vintage` is that of the judging, such as a control set's
    night, not that of the responses.
    """
    owner = writer.judge_config
    judge_for_owner = partial(judge_of, writer.gateway, judge_vintage=judge_vintage, owner=owner)
    judge: ResponseJudge | CascadeJudge
    if owner.cascade is None:
        judge = await judge_for_owner(owner)
    else:
        first_judges = [await judge_for_owner(config) for config in owner.cascade.first]
        second_judge = await judge_for_owner(owner.cascade.then)
        judge = CascadeJudge(first_judges, second_judge, owner.cascade.when)
    await judge_each_response(judge, criteria, writer, batch_index)


async def judge_each_response(
    judge: ResponseJudge | CascadeJudge,
    criteria: Sequence[CriterionToJudge],
    writer: VerdictWriter,
    batch_index: int = 0,
) -> None:
    """Have a judge decide criteria, those of one response together, and write the verdicts."""
    await run_all(
        judge.judge_response(response_criteria, (batch_index, number), writer.write)
        for number, response_criteria in enumerate(by_response(criteria))
    )


async def judge_of(
    gateway: Gateway,
    judge_config: JudgeConfig,
    judge_vintage: str = BASE_VINTAGE,
    owner: JudgeConfig | None = None,
) -> ResponseJudge:
    """Return the judge of a configuration, with the limit of its context.

    The judge decides each criterion by itself, or the pieces of a rubric. `owner` is the cascade
    that its verdicts belong to; without it, they are its own.
    """
    target = judge_target(judge_config.judge)
    fit = await asyncio.to_thread(context_fit_of, judge_config, target)
    judge_class = ResponseJudge if judge_config.judge.piece_size is None else GroupJudge
    return judge_class(gateway, target, judge_config, owner or judge_config, fit, judge_vintage)


def by_response(criteria: Sequence[CriterionToJudge]) -> list[list[CriterionToJudge]]:
    """Return the criteria grouped by response; those of one response must follow each other."""
    responses = groupby(criteria, key=attrgetter("response_id"))
    return [list(response_criteria) for _, response_criteria in responses]


async def judge_by_provider_batches(
    job: Job,
    context: RunContext,
    judge_config: JudgeConfig,
    response_ids: Sequence[str],
) -> StageReport:
    """Submit the missing calls that are in no batch yet, and collect the batches that have ended.

    The collected replies are then in the ledger, where `judge_responses` finds them. Calls of a
    batch that is still running when the wait ends stay missing until a later run. A response that
    is too long for the judge needs calls that depend on others, which no batch can hold;
    `judge_responses` makes them if the judge allows live calls.
    """
    report = StageReport("judge")
    label = judge_config.judge.label
    if context.is_held_back("judge", label):
        return report
    judge = await judge_of(context.gateway("judge", label), judge_config)
    _, criteria = criteria_to_judge(job, context, judge_config, response_ids)
    calls = []
    n_in_whole_calls = 0
    for response_criteria in by_response(criteria):
        async for whole_call in judge.whole_calls(response_criteria):
            n_in_whole_calls += whole_call.n_criteria
            if whole_call.call is not None:
                calls.append(whole_call.call)
    await context.submit_and_collect(judge.target, calls, report)
    n_long = sum(criterion.is_missing for criterion in criteria) - n_in_whole_calls
    if n_long and not judge_config.judge.allow_live:
        report.warnings.append(
            f"{n_long} verdicts on long responses need live calls: set `allow_live: true` for"
            f" {label}"
        )
    return report
