"""Judging call by call, by a cascade of two judges (its rule escalates to the second), and by
provider batches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sql
from tasks.config.job import Job
from tasks.judge.criterion import (
    CriterionJudge,
    CriterionToJudge,
    Done,
    JudgedCriterion,
    VerdictRows,
)
from tasks.judge.groups import by_response, judge_of
from tasks.rules.cascades.rules import When, reasons_to_escalate
from tasks.rules.identity import BASE_VINTAGE
from tasks.run import missing_work
from tasks.run.calls import run_all, sum_usage
from tasks.run.judge_configs import JudgeConfig, judge_configs, judge_target
from tasks.run.missing_work import MissingVerdicts, WantedTasks
from tasks.run.run_context import RunContext
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse


@dataclass(frozen=True)
class CascadeJudge:
    """A cascade that decides criteria: its first judge in each repetition that counts, then its
    second.

    All calls for a criterion are made for the cascade's verdict, so that its row holds their cost.
    The reply to a call that one of the judges has made for itself is taken from the ledger.
    """

    first: Sequence[CriterionJudge]
    then: CriterionJudge
    when: When

    async def judge_response(
        self, criteria: Sequence[CriterionToJudge], priority: tuple[int, ...], done: Done
    ) -> None:
        """Judge the criteria of one response by the first judge, then the escalated ones by the
        second judge.

        The calls of one judge follow each other, so that its provider has the conversation cached.
        """

        async def judged_by(
            judge: CriterionJudge, some: Sequence[CriterionToJudge]
        ) -> dict[str, JudgedCriterion]:
            outcomes: list[JudgedCriterion] = []
            if some:
                await judge.judge_response(some, priority, outcomes.append)
            return {each.criterion.criterion_id: each for each in outcomes}

        first = [await judged_by(judge, criteria) for judge in self.first]
        criteria = [row for row in criteria if row.is_missing]  # the first judge gets whole pieces
        why = {
            row.criterion_id: self._reasons(row, [of[row.criterion_id] for of in first])
            for row in criteria
        }
        escalated = [row for row in criteria if why[row.criterion_id]]
        then = await judged_by(
            self.then, [replace(row, call_index=n) for n, row in enumerate(escalated)]
        )
        for key, reasons in why.items():
            judged = [of[key] for of in (*first, then) if key in of]
            replies = [each.reply for each in judged if each.reply is not None]
            if len(replies) < len(judged):  # one was not called: no decision
                done(replace(judged[0], reply=None))
                continue
            at, by = (-1, self.then) if reasons else (0, self.first[0])
            usage = sum_usage(replies, replies[at], with_tokens=True)
            decision = {
                "decided_by": by.judge_config.judge.label,
                "escalated_because": reasons or None,
            }
            done(replace(judged[at], reply=usage, columns={**judged[at].columns, **decision}))

    def _reasons(self, criterion: CriterionToJudge, first: Sequence[JudgedCriterion]) -> list[str]:
        """Return the reasons to call the second judge; none if the first has decided, or is not
        finished.
        """
        if first[0].reply is None or any(each.reply is None for each in first):
            return []
        confidence = first[0].verdict.confidence if first[0].verdict else None
        values = [each.verdict.value if each.verdict else None for each in first]
        return reasons_to_escalate(self.when, values, confidence, vars(criterion))


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
    `CriterionJudge`.
    """
    gateway = rows.gateway
    judge_config = rows.judge_config
    cascade = rows.judge_config.cascade
    judge: CriterionJudge | CascadeJudge
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
    judge: CriterionJudge | CascadeJudge,
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
