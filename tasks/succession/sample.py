"""The sample of a succession: criteria that the old judge has scored, for the new judge to decide.

A criterion is decided in the responses of all models, so each model gets equally many verdicts, and
differences between models are paired. Strata are the sign of the weight with the category.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import sql
from tasks.config.job import Job
from tasks.config.models import ORIGINAL
from tasks.rules.errors import UsageError
from tasks.rules.identity import digest
from tasks.rules.statistics.sampling import proportional_sample
from tasks.rules.text.characters import did_you_mean
from tasks.run.judge_configs import JudgeConfig, judge_configs
from tasks.run.missing_work import MissingVerdicts, WantedTasks, undecided_parameters, wanted_tasks
from warehouse import Reader, Row, Warehouse


class Judges(NamedTuple):
    """The judges of a succession: the stored configuration of the old one, and the configured new
    one.

    `old_judge` has the columns of the judge configuration, and its `judging_id`.
    """

    old_judge: Row
    new_judge: JudgeConfig

    @property
    def called(self) -> list[JudgeConfig]:
        """The judges whose calls decide for the new judge: itself, or the members of a panel."""
        return [config.live for config in self.new_judge.panel or (self.new_judge,)]

    @property
    def columns(self) -> Row:
        """The columns that identify both on a row of `successions`."""
        columns = dict(self.old_judge)
        del columns["judging_id"]
        columns["new_judge"] = self.new_judge.judge.label
        columns["new_judge_config_hash"] = self.new_judge.judge_config_hash
        columns["new_template_hash"] = self.new_judge.template_hash
        return columns


@dataclass(frozen=True)
class Sample:
    """The sample, and what the new judge still has to decide.

    Attributes:
        judges: the old judge and the new one.
        succession: the row of `successions`.
        criteria: the rows of `succession_draws`.
        missing_verdicts: each judge to call (the new one, or the members of a panel), with the
            responses that lack its verdicts on these criteria.
    """

    judges: Judges
    succession: Row
    criteria: list[Row]
    missing_verdicts: list[tuple[JudgeConfig, list[MissingVerdicts]]]

    @property
    def criterion_keys(self) -> frozenset[tuple[str, str]]:
        """The task id and the criterion id of each drawn criterion."""
        return frozenset((row["task_id"], row["criterion_id"]) for row in self.criteria)


def judges_of(job: Job, reader: Reader, tasks: WantedTasks) -> Judges:
    """Return the judges of a job's succession.

    Raises:
        UsageError: the old judge has no verdict, or the new one cannot take its place.
    """
    assert job.succession is not None
    old_label = job.succession.old_judge
    new_label = job.succession.new_judge
    configured = judge_configs(job, tasks.benchmark)
    configs = [config for config in configured if config.judge.label == new_label]
    if not configs:
        hint = did_you_mean(new_label, job.configured_labels.get("judge", ()))
        raise UsageError(f"{new_label}: is not configured as a judge{hint}")
    new_judge = configs[0]  # in its first trial
    if any(config.judge.rubric != ORIGINAL for config in (new_judge, *new_judge.panel)):
        raise UsageError(
            f"{new_label}: judges rewritten criteria; to succeed another judge, it"
            f" needs `rubric: {ORIGINAL}`"
        )
    parameters = {**tasks.key, "old": old_label}
    candidates = [
        row
        for row in reader.query("queries/succession/old_judge_configs", parameters)
        if not new_judge.columns.items() <= row.items()
    ]
    if not candidates:
        raise UsageError(f"{old_label}: no other judge of this name has verdicts here")
    return Judges(_old_judge(candidates, configured, new_judge), new_judge)


def _old_judge(
    candidates: list[Row],
    configured: list[JudgeConfig],
    new_judge: JudgeConfig,
) -> Row:
    """Return the stored configuration of the old judge that a succession is about.

    One with the new judge's grading is preferred, then a configured one, then the first candidate.

    Raises:
        UsageError: none has the same grading.
    """

    def preference(row: Row) -> tuple[bool, bool]:
        is_configured = any(config.columns.items() <= row.items() for config in configured)
        return row["grading"] != new_judge.grading, not is_configured

    old_judge = min(candidates, key=preference)  # of equal ones the first
    if old_judge["grading"] != new_judge.grading:
        raise UsageError(
            f"{old_judge['judge']} grades {old_judge['grading']}, {new_judge.judge.label}"
            f" {new_judge.grading}; give it the same `grading`"
        )
    return old_judge


def sample_of(job: Job, reader: Reader) -> Sample:
    """Draw the sample of a job's succession; the same data, number and seed draw the same one.

    Raises:
        UsageError: the judges or the number of verdicts cannot be used.
    """
    assert job.succession is not None
    tasks = wanted_tasks(job, reader)
    judges = judges_of(job, reader, tasks)
    run_parameters = {**tasks.key, "judging_id": judges.old_judge["judging_id"]}
    runs = reader.query("queries/succession/sampled_runs", run_parameters)
    parameters = {
        **run_parameters,
        "score": tasks.benchmark.primary_score.score_name,
        "tasks": list(tasks.task_ids),
    }
    frame = reader.arrays(sql.read("queries/succession/frame"), parameters)
    criteria = _drawn_criteria(frame, job.succession.n_verdicts, job.succession.seed)
    succession = {
        **tasks.key,
        **judges.columns,
        "n_population": len(frame["task_id"]),
        "n_drawn": len(criteria),
        "seed": job.succession.seed,
        "look": job.succession.look,
        "sampled_tasks": sorted(set(frame["task_id"])),
        "sampled_runs": [row["sampled_run"] for row in runs],
    }
    keys = [(row["task_id"], row["criterion_hash"], row["probability"]) for row in criteria]
    succession["succession_id"] = digest("succession", sorted(succession.items()), keys)
    drawn_parameters = {
        **parameters,
        "drawn_tasks": [row["task_id"] for row in criteria],
        "drawn_criteria": [row["criterion_id"] for row in criteria],
    }
    missing_verdicts = []
    for config in judges.called:
        missing_parameters = drawn_parameters | undecided_parameters(job, config)
        rows = reader.query("queries/succession/missing", missing_parameters)
        missing_verdicts.append((config, [MissingVerdicts(**row) for row in rows]))
    return Sample(judges, succession, criteria, missing_verdicts)


def _drawn_criteria(
    frame: Mapping[str, NDArray[Any]],
    n_verdicts: int,
    seed: int,
) -> list[Row]:
    """Return the columns of drawn criteria; the verdicts on them are about `n_verdicts`.

    Args:
        frame: the columns of the query `frame`.
        n_verdicts: the wanted number of verdicts.
        seed: the seed of the sample.
    """
    n_criteria = len(frame["task_id"])
    if n_criteria == 0:
        raise UsageError("the old judge has scored no response to these tasks")
    verdicts_per_criterion = frame["n_verdicts"].sum() / n_criteria
    n_strata = len(set(frame["stratum"]))
    n_drawn = math.ceil(n_verdicts / verdicts_per_criterion)
    if n_drawn < n_strata:
        raise UsageError(
            f"-n {n_verdicts}: too few; each of {n_strata} strata (sign of the weight, category)"
            f" needs a criterion, which takes {math.ceil(n_strata * verdicts_per_criterion)}"
            " verdicts"
        )
    units = proportional_sample(
        keys=(frame["task_id"] + " " + frame["criterion_id"]).tolist(),
        strata=frame["stratum"].tolist(),
        sizes=np.asarray(frame["size"]),
        n_wanted=n_drawn,
        seed=seed,
    )
    criteria = []
    for unit in units:
        row = {"stratum": unit.stratum, "probability": unit.probability}
        for name in ("task_id", "criterion_id", "criterion_hash"):
            row[name] = frame[name][unit.position]
        criteria.append(row)
    return criteria


def refuse_impossible_succession(job: Job) -> None:
    """Refuse a succession before anything is started for it.

    Raises:
        UsageError: the judges or the number of verdicts cannot be used.
    """
    with Warehouse(job.warehouse).reader() as reader:
        sample_of(job, reader)


def is_done(sample: Sample, reader: Reader) -> bool:
    """Return whether a sample is the latest one of its judges, and judged."""
    return not any(responses for _, responses in sample.missing_verdicts) and _is_latest(
        sample, reader
    )


def _is_latest(sample: Sample, reader: Reader) -> bool:
    succession_id = sample.succession["succession_id"]
    return bool(reader.select("intermediate.latest_successions", succession_id=succession_id))


def store_sample(job: Job) -> Sample:
    """Draw the sample of a job's succession, store it and publish it."""
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        sample = sample_of(job, reader)
        if _is_latest(sample, reader):
            return sample
    key = {**job.key, "succession_id": sample.succession["succession_id"]}
    warehouse.write("succession_draws", [row | key for row in sample.criteria])
    times = {"run_id": job.run_id, "created_at": datetime.now(UTC)}
    warehouse.write("successions", [{**sample.succession, **times}])
    warehouse.publish()
    return sample
