"""Neighbours: a sample of stored responses judged one by one, in the configured groups, and in
shuffled groups.

The verdicts are stored apart from all others, and no score includes them. Calls that a run has made
are not repeated.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import sql
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.judge.criterion import CriterionToJudge, verdict_id_of
from tasks.judge.groups import pieces_of
from tasks.judge.judge import (
    VerdictRows,
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

ALONE, GROUPED, SHUFFLED = ARRANGEMENTS = ("alone", "grouped", "shuffled")
STAGE = "neighbours"


class Arranged(NamedTuple):
    """A judge's missing verdicts in an arrangement: whole pieces, in the order of their
    responses.
    """

    wanted: WantedTasks
    judge_config: JudgeConfig
    arrangement: str
    criteria: list[CriterionToJudge]

    @property
    def n_calls(self) -> int:
        """The largest number of calls that are needed; calls that a run has already made are
        free.
        """
        return sum(len(pieces_of(of_response)) for of_response in by_response(self.criteria))


def group_judges(job: Job, benchmark: Benchmark) -> list[JudgeConfig]:
    """Return the first repetition of the job's judges that decide several criteria in one call,
    without cascades.

    Raises:
        UsageError: there is none.
    """
    plain = [
        each
        for each in judge_configs(job, benchmark)
        if each.judge_trial == 1 and each.cascade is None
    ]
    chosen = [each for each in plain if (each.piece_size or 1) > 1]
    if not chosen:
        raise UsageError(
            "no such judge decides several criteria in one call; set `criteria_per_call`"
        )
    return chosen


def missing(job: Job, reader: Reader) -> list[Arranged]:
    """Return the missing verdicts of each arrangement on the sample; complete arrangements are left
    out.
    """
    wanted = missing_work.wanted_tasks(job, reader)
    given = {
        **wanted.key,
        "tasks": list(wanted.task_ids),
        "number": job.n_responses,
    }
    sampled = [
        row["response_id"]
        for row in reader.rows(sql.read("queries/neighbours/sampled_responses"), given)
    ]
    plans = []
    for judge_config in group_judges(job, wanted.benchmark):
        values = {
            **missing_work.undecided(job, judge_config),
            "responses": sampled,
            "judge_trial": 0,
        }
        criteria = criteria_of(reader, wanted, values)
        columns = "verdict_id, status, value, error"
        rows = reader.select("neighbour_verdicts", columns, **wanted.key, **judge_config.columns)
        accepted = missing_work.accepted_ends(judge_config.judge)
        done = {
            row["verdict_id"] for row in rows if not missing_work.is_repeated(job, row, accepted)
        }
        for name in ARRANGEMENTS:
            arranged = by_response(list(_arranged(criteria, name, judge_config, done)))
            pieces = [piece for of_response in arranged for piece in pieces_of(of_response)]
            lacking = [
                each for piece in pieces if any(one.is_missing for one in piece) for each in piece
            ]
            if lacking:
                plans.append(Arranged(wanted, judge_config, name, lacking))
    return plans


def _arranged(
    criteria: Sequence[CriterionToJudge],
    arrangement: str,
    judge_config: JudgeConfig,
    done: Collection[str],
) -> Iterator[CriterionToJudge]:
    """Yield criteria in the order of an arrangement, each with its piece; `done` are the stored ids
    of verdicts.
    """
    owner = _live(judge_config, arrangement)
    size = 1 if arrangement == ALONE else judge_config.piece_size or 1
    for of_response in by_response(criteria):
        ordered = list(of_response)
        if arrangement == SHUFFLED:
            ordered.sort(key=lambda row: digest("shuffled", row.response_id, row.criterion_id))
        for index, row in enumerate(ordered):
            start = index // size * size
            piece = tuple(each.criterion_hash for each in ordered[start : start + size])
            of_piece = replace(row, piece=piece, call_index=index // size)
            yield replace(of_piece, is_missing=verdict_id_of(owner, of_piece) not in done)


def _live(judge_config: JudgeConfig, arrangement: str) -> JudgeConfig:
    """Return the judge of an arrangement, whose calls are live; its label gives the verdicts ids of
    their own.
    """
    changed = {"mode": "live", "label": f"{judge_config.judge.label} ({arrangement})"}
    return replace(judge_config, judge=judge_config.judge.model_copy(update=changed))


async def judge_arrangement(job: Job, context: RunContext, arranged: Arranged) -> StageReport:
    """Judge the missing criteria of an arrangement, and write the verdicts, failed ones too; the
    calls are live.
    """
    config = arranged.judge_config
    report = StageReport(STAGE)
    columns = {"arrangement": arranged.arrangement}
    live = _live(config, arranged.arrangement)
    with VerdictRows(
        job, context, arranged.wanted, config, report, "neighbour_verdicts", columns
    ) as rows:
        judge = await judge_of(rows.gateway, live, live)
        await judge_each_response(judge, arranged.criteria, rows)
    return report
