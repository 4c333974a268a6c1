"""Neighbours: a sample of stored responses judged one by one, in the configured groups, and in
shuffled groups.

The verdicts are stored apart from all others, and no score includes them. Calls that a run has made
are not repeated.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.judge.criterion import CriterionToJudge, verdict_id_of
from tasks.judge.groups import pieces_of
from tasks.judge.judge import (
    VerdictWriter,
    by_response,
    criteria_of,
    judge_each_response,
    judge_of,
)
from tasks.rules.errors import UsageError
from tasks.rules.identity import digest
from tasks.run import missing_work
from tasks.run.judge_configs import JudgeConfig, judge_configs
from tasks.run.missing_work import WantedTasks
from tasks.run.run_context import RunContext
from tasks.run.writing import StageReport
from warehouse import Reader

ALONE = "alone"
GROUPED = "grouped"
SHUFFLED = "shuffled"
ARRANGEMENTS = (ALONE, GROUPED, SHUFFLED)
"""Each criterion by itself, groups in the rubric's order, and groups in a random one."""
STAGE = "neighbours"


class ArrangedWork(NamedTuple):
    """The pieces in which a judge's verdicts are missing in an arrangement, in the order of their
    responses.

    A piece is given whole, with its decided criteria.
    """

    wanted_tasks: WantedTasks
    judge_config: JudgeConfig
    arrangement: str
    criteria: list[CriterionToJudge]

    @property
    def n_calls(self) -> int:
        """The number of calls if every reply can be read and every piece fits; stored replies
        are free.
        """
        return len(pieces_of(self.criteria))


def group_judges(job: Job, benchmark: Benchmark) -> list[JudgeConfig]:
    """Return the first repetition of the job's judges that decide several criteria in one call.

    Cascades are left out.

    Raises:
        UsageError: there is none.
    """
    judges = []
    for judge_config in judge_configs(job, benchmark):
        is_first = judge_config.judge_trial == 1 and judge_config.cascade is None
        if is_first and (judge_config.piece_size or 1) > 1:
            judges.append(judge_config)
    if not judges:
        raise UsageError(
            "none of these judges decides several criteria in one call (cascades do not count); set"
            " `criteria_per_call`"
        )
    return judges


def missing_arrangements(job: Job, reader: Reader) -> list[ArrangedWork]:
    """Return the missing verdicts of each arrangement on the sample.

    Complete arrangements are left out.
    """
    wanted_tasks = missing_work.wanted_tasks(job, reader)
    sample_parameters = {
        **wanted_tasks.key,
        "tasks": list(wanted_tasks.task_ids),
        "number": job.n_neighbour_responses,
    }
    sample = reader.query("queries/neighbours/sampled_responses", sample_parameters)
    response_ids = [row["response_id"] for row in sample]
    arrangements = []
    for judge_config in group_judges(job, wanted_tasks.benchmark):
        parameters = missing_work.undecided_parameters(job, judge_config)
        parameters["responses"] = response_ids
        parameters["judge_trial"] = 0  # no verdict has this trial, so all criteria are returned
        criteria = criteria_of(reader, wanted_tasks, parameters)
        finished_ids = _finished_ids(job, reader, wanted_tasks, judge_config)
        for arrangement in ARRANGEMENTS:
            arranged = []
            for piece in pieces_of(_arrange(criteria, arrangement, judge_config, finished_ids)):
                if any(criterion.is_missing for criterion in piece):
                    arranged += piece
            if arranged:
                arrangements.append(ArrangedWork(wanted_tasks, judge_config, arrangement, arranged))
    return arrangements


def _finished_ids(
    job: Job,
    reader: Reader,
    wanted_tasks: WantedTasks,
    judge_config: JudgeConfig,
) -> set[str]:
    """Return the ids of a judge's stored verdicts that are not to be made again."""
    columns = "verdict_id, status, error"
    key = wanted_tasks.key | judge_config.columns
    rows = reader.select("neighbour_verdicts", columns, **key)
    accepted_ends = missing_work.accepted_ends(judge_config.judge)
    return {
        row["verdict_id"] for row in rows if not missing_work.is_repeated(job, row, accepted_ends)
    }


def _arrange(
    criteria: Sequence[CriterionToJudge],
    arrangement: str,
    judge_config: JudgeConfig,
    finished_ids: Collection[str],
) -> list[CriterionToJudge]:
    """Return criteria in the order of an arrangement, each with its piece, and `is_missing` unless
    its verdict in this arrangement is finished.
    """
    owner = _arranged_config(judge_config, arrangement)
    size = 1 if arrangement == ALONE else judge_config.piece_size or 1
    arranged = []
    for response_criteria in by_response(criteria):
        if arrangement == SHUFFLED:
            response_criteria.sort(
                key=lambda member: digest("shuffled", member.response_id, member.criterion_id)
            )
        for call_index, start in enumerate(range(0, len(response_criteria), size)):
            members = response_criteria[start : start + size]
            piece = tuple(member.criterion_hash for member in members)
            for member in members:
                in_piece = replace(member, piece=piece, call_index=call_index)
                is_missing = verdict_id_of(owner, in_piece) not in finished_ids
                arranged.append(replace(in_piece, is_missing=is_missing))
    return arranged


def _arranged_config(judge_config: JudgeConfig, arrangement: str) -> JudgeConfig:
    """Return the judge of an arrangement, whose calls are live; its label gives the verdicts ids of
    their own.
    """
    live = judge_config.live
    label = f"{live.judge.label} ({arrangement})"
    return replace(live, judge=live.judge.model_copy(update={"label": label}))


async def judge_arrangement(job: Job, context: RunContext, arranged: ArrangedWork) -> StageReport:
    """Judge the missing criteria of an arrangement, and write the verdicts, failed ones too.

    The calls are live.
    """
    report = StageReport(STAGE)
    arranged_config = _arranged_config(arranged.judge_config, arranged.arrangement)
    with VerdictWriter(
        job,
        context,
        arranged.wanted_tasks,
        arranged.judge_config,
        report,
        "neighbour_verdicts",
        {"arrangement": arranged.arrangement},
    ) as writer:
        judge = await judge_of(writer.gateway, arranged_config)
        await judge_each_response(judge, arranged.criteria, writer)
    return report
