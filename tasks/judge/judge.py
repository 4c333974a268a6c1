"""Judging call by call, by a cascade of two judges, and by provider batches; and the rows of verdicts."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

import sql
from tasks.config.job import Job
from tasks.judge.cascades import CascadeJudge
from tasks.judge.context_fit import context_fit_of
from tasks.judge.criterion import CriterionToJudge, JudgedCriterion
from tasks.judge.groups import GroupJudge
from tasks.judge.long_responses import ResponseJudge
from tasks.llm.calls.gateway import Gateway
from tasks.llm.replies import OK
from tasks.rules.identity import BASE_VINTAGE, piece_hash
from tasks.run import missing_work
from tasks.run.calls import run_all
from tasks.run.judge_configs import JudgeConfig, judge_configs, judge_target
from tasks.run.missing_work import MissingVerdicts, WantedTasks
from tasks.run.run_context import RunContext
from tasks.run.writing import PartWriter, StageReport, call_columns
from warehouse import Reader, Warehouse


def plan_verdicts(job: Job) -> list[tuple[JudgeConfig, list[MissingVerdicts]]]:
    """Return for each judge configuration the responses that lack verdicts."""
    with Warehouse(job.warehouse).reader() as reader:
        wanted = missing_work.wanted_tasks(job, reader)
        return [
            (judge_config, missing_work.missing_verdicts(job, wanted, reader, judge_config))
            for judge_config in judge_configs(job, wanted.benchmark)
        ]


def criteria_to_judge(
    job: Job, context: RunContext, judge_config: JudgeConfig, response_ids: Sequence[str]
) -> tuple[WantedTasks, list[CriterionToJudge]]:
    """Return the wanted tasks, and the undecided criteria of some responses."""
    with context.warehouse.reader() as reader:
        wanted = missing_work.wanted_tasks(job, reader)
        values = {**missing_work.undecided(job, judge_config), "responses": list(response_ids)}
        return wanted, criteria_of(reader, wanted, values)


def criteria_of(
    reader: Reader, wanted: WantedTasks, values: Mapping[str, Any]
) -> list[CriterionToJudge]:
    """Return the undecided criteria of responses, these in the order given, criteria in the
    rubric's order.
    """
    rows = reader.rows(sql.read("queries/run/missing_verdicts"), values)
    conversations = missing_work.conversations_of(reader, wanted, (row["task_id"] for row in rows))
    return [CriterionToJudge.of(row, conversations[row["task_id"]].messages) for row in rows]


class VerdictRows(PartWriter):
    """Writes verdicts to a table, and their evidence before them.

    `own_columns` are those that only the table of these verdicts has; `report` counts the rows.
    """

    def __init__(
        self,
        job: Job,
        context: RunContext,
        wanted: WantedTasks,
        judge_config: JudgeConfig,
        report: StageReport,
        table_name: str,
        own_columns: Mapping[str, Any],
    ) -> None:
        self._evidence = PartWriter(context.warehouse, "evidence", context.ledger)
        super().__init__(context.warehouse, table_name, context.ledger, report)
        self.job = job
        self.wanted = wanted
        self.judge_config = judge_config
        self.report = report
        self.own_columns = own_columns
        self.gateway = context.gateway(report.stage, judge_config.judge.label)

    def flush(self) -> None:
        """Write the collected evidence, then the verdicts, so that none is on disk without the
        evidence for it.
        """
        self._evidence.flush()
        super().flush()

    def write(self, judged: JudgedCriterion) -> None:
        """Write a verdict, or the failure that replaces it, and its evidence; without a call, count
        it as skipped.
        """
        if judged.reply is None:
            self.report.skipped += 1
            return
        criterion = judged.criterion
        for chunk, chunk_reply, evidence in judged.searches:
            evidence_row = {
                **self.wanted.key,
                **call_columns(self.job, chunk_reply),
                "response_id": criterion.response_id,
                "task_id": criterion.task_id,
                "criterion_id": criterion.criterion_id,
                "verdict_id": judged.verdict_id,
                "round": chunk.round_,
                "chunk_number": chunk.number,
                "n_chunks": chunk.n_chunks,
                "first_char": chunk.first_char,
                "n_chars": len(chunk.text),
                "status": chunk_reply.status if evidence is None else OK,
                "evidence": None if evidence is None else list(evidence),
            }
            self._evidence.add(evidence_row, chunk_reply)
        row = {
            **verdict_columns(self.job, self.wanted, self.judge_config, judged),
            **self.own_columns,
        }
        self.add(row, judged.reply, criterion.model)


def verdict_columns(
    job: Job, wanted: WantedTasks, config: JudgeConfig, judged: JudgedCriterion
) -> dict[str, Any]:
    """Return the columns of a verdict, or of a failure, on a criterion with a reply."""
    criterion = judged.criterion
    reply = judged.reply
    assert reply is not None
    same = ("response_id", "task_id", "criterion_id", "criterion_hash", "model", "trial", "vintage")
    unknown = ("value", "explanation", "probability", "confidence")
    not_of_all = ("n_in_call", "position_in_call", "decided_by", "escalated_because")
    return {
        **wanted.key,
        **config.columns,
        **call_columns(job, reply),
        "status": reply.status,
        **{name: getattr(criterion, name) for name in same},
        **dict.fromkeys((*unknown, *not_of_all)),
        **(asdict(judged.verdict) if judged.verdict else {}),
        **judged.columns,
        "verdict_id": judged.verdict_id,
        "piece_hash": piece_hash(criterion.piece),
    }


async def judge_responses(
    job: Job,
    context: RunContext,
    judge_config: JudgeConfig,
    response_ids: Sequence[str],
    batch_index: int = 0,
) -> StageReport:
    """Make the missing verdicts of a batch of responses, and write them, failed ones too.

    `batch_index` is the batch's number among all; see `judge_criteria` for the order of the calls.
    """
    wanted, criteria = criteria_to_judge(job, context, judge_config, response_ids)
    report = StageReport("judge")
    own_columns = {
        "source": "judged",
        "import_batch": None,
        "may_hide_failures": False,
    }
    with VerdictRows(job, context, wanted, judge_config, report, "verdicts", own_columns) as rows:
        await judge_criteria(rows, criteria, batch_index)
    return report


async def judge_criteria(
    rows: VerdictRows,
    criteria: Sequence[CriterionToJudge],
    batch_index: int,
    vintage: str = BASE_VINTAGE,
) -> None:
    """Judge criteria, given in the order of their responses, by a judge or a cascade, and write the
    verdicts.

    The criteria of one response go out together. Calls go out in the order of `batch_index`, then
    of responses, so that those about one conversation follow each other. `vintage` is that of
    `ResponseJudge`.
    """
    gateway = rows.gateway
    judge_config = rows.judge_config
    cascade = rows.judge_config.cascade
    judge: ResponseJudge | CascadeJudge
    if cascade is None:
        judge = await judge_of(gateway, judge_config, judge_config, vintage)
    else:
        *first, then = [
            await judge_of(gateway, each, judge_config, vintage)
            for each in (*cascade.first, cascade.then)
        ]
        judge = CascadeJudge(first, then, cascade.when)
    await judge_each_response(judge, criteria, rows, batch_index)


async def judge_each_response(
    judge: ResponseJudge | CascadeJudge,
    criteria: Sequence[CriterionToJudge],
    rows: VerdictRows,
    batch_index: int = 0,
) -> None:
    """Have a judge decide criteria, those of one response together, and write the verdicts."""
    responses = enumerate(by_response(criteria))
    await run_all(
        judge.judge_response(each, (batch_index, number), rows.write) for number, each in responses
    )


async def judge_by_provider_batches(
    job: Job, context: RunContext, judge_config: JudgeConfig, response_ids: Sequence[str]
) -> StageReport:
    """Submit the calls of missing verdicts that are in no batch yet, and collect the batches that
    have ended.

    The collected replies are then in the ledger, where `judge_responses` finds them. Calls of a
    batch that is still running when the wait ends stay missing until a later run. A response that
    is too long for the judge needs calls that depend on others, which no batch can hold;
    `judge_responses` makes them if the judge allows live calls.
    """
    report = StageReport("judge")
    label = judge_config.judge.label
    if context.is_held_back("judge", label):
        return report
    judge = await judge_of(context.gateway("judge", label), judge_config, judge_config)
    _, missing = criteria_to_judge(job, context, judge_config, response_ids)
    whole = [
        each for of_response in by_response(missing) for each in judge.whole_calls(of_response)
    ]
    calls = [call for call, _ in whole if call is not None]
    await context.submit_and_collect(judge_target(judge_config.judge), calls, report)
    n_long = sum(each.is_missing for each in missing) - sum(n_criteria for _, n_criteria in whole)
    if n_long and not judge_config.judge.allow_live:
        warning = (
            f"{n_long} verdicts on long responses need live calls: set `allow_live: true` for"
            f" {label}"
        )
        report.warnings.append(warning)
    return report


async def judge_of(
    gateway: Gateway, judge_config: JudgeConfig, owner: JudgeConfig, vintage: str = BASE_VINTAGE
) -> ResponseJudge:
    """Return the judge of a configuration, with the limit of its context.

    It decides each criterion by itself, or the pieces of a rubric.
    """
    kind = ResponseJudge if judge_config.judge.piece_size is None else GroupJudge
    target = judge_target(judge_config.judge)
    fit = await asyncio.to_thread(context_fit_of, judge_config, target)
    return kind(gateway, target, judge_config, owner, fit, vintage)


def by_response(criteria: Sequence[CriterionToJudge]) -> list[list[CriterionToJudge]]:
    """Return the criteria grouped by response; those of one response must follow each other."""
    return [list(group) for _, group in groupby(criteria, key=lambda row: row.response_id)]
