"""What a run wants, minus what is stored: the anti-joins that decide which calls are made."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tasks.benchmarks.base import Benchmark
from tasks.calls import judge_target, target_of
from tasks.endpoints import Judge, Model
from tasks.prompts import load_template
from tasks.rules.errors import PipelineError
from tasks.rules.identity import template_hash
from tasks.settings import Job
from tasks.sources import source_of
from warehouse import Reader

PASSING = ("timeout", "provider_error", "parse_error", "empty")
"""Failures whose cause may pass: the next run tries them again."""


@dataclass(frozen=True)
class Scope:
    """The part of a data set that a job is about: `task_ids` are the wanted tasks, in order."""

    benchmark: Benchmark
    dataset_revision: str
    splits: tuple[str, ...]
    task_ids: tuple[str, ...]

    @property
    def key(self) -> dict[str, str]:
        """The columns that every row of this scope carries."""
        return {"benchmark": self.benchmark.name, "dataset_revision": self.dataset_revision}


@dataclass(frozen=True)
class Judging:
    """A judge with everything that makes its verdicts its own."""

    judge: Judge
    judge_config_hash: str
    template: str
    template_hash: str
    grading: str
    judge_trial: int

    @property
    def columns(self) -> dict[str, Any]:
        """The columns that identify the judging on a verdict."""
        return {
            "judge": self.judge.label,
            "judge_config_hash": self.judge_config_hash,
            "template_hash": self.template_hash,
            "grading": self.grading,
            "judge_trial": self.judge_trial,
        }


def open_scope(job: Job, reader: Reader) -> Scope:
    """The admitted tasks of the chosen splits, the first N of them under a limit.

    Raises:
        PipelineError: the data set is not ingested.
    """
    benchmark, source = source_of(job)
    key = [benchmark.name, source.revision]
    stored = {
        row["split"]
        for row in reader.rows(
            "select distinct split from split_members where benchmark = ? and dataset_revision = ?", key
        )
    }
    missing = [split for split in source.splits if split not in stored]
    if missing:
        raise PipelineError(
            f"{source.name}: split {missing[0]!r} of revision {source.revision[:12]} is not in the warehouse; "
            "run `prbench ingest` first"
        )
    rows = reader.rows(
        "select task_id from split_members inner join tasks using (benchmark, dataset_revision, task_id) "
        "where benchmark = ? and dataset_revision = ? and is_admitted and list_contains(?, split) "
        "group by task_id order by min((list_position(?, split), position))",
        [*key, list(source.splits), list(source.splits)],
    )
    task_ids = tuple(row["task_id"] for row in rows)[: job.limit]
    return Scope(benchmark, source.revision, source.splits, task_ids)


def judgings(job: Job, benchmark: Benchmark) -> list[Judging]:
    """Every configured judge in every judge trial."""
    found = []
    for judge in job.settings.judges:
        template = load_template(judge.template, benchmark.template)
        found += [
            Judging(judge, judge_target(judge).config_hash, template, template_hash(template), benchmark.grading, trial)
            for trial in range(1, judge.trials + 1)
        ]
    return found


def missing_responses(
    job: Job, scope: Scope, reader: Reader, model: Model, model_config_hash: str, *, retry_failed: bool
) -> list[tuple[str, int]]:
    """The (task, trial) cells of a model that have no response, or a failed one that is to be tried again.

    An imported response of the same label, trial and vintage fills its cell.
    """
    rows = reader.rows(
        """
        with wanted as (
            select task_id, trial, position
            from (select unnest(?::varchar[]) as task_id, generate_subscripts(?::varchar[], 1) as position)
            cross join range(1, ? + 1) as trials(trial)
        ),
        filled as (
            select task_id, trial
            from responses inner join tasks using (benchmark, dataset_revision, task_id, conversation_id)
            where benchmark = ? and dataset_revision = ? and model = ? and vintage = ?
                and (model_config_hash = ? or source = 'imported')
                and not (list_contains(?, status) or (? and status <> 'ok'))
        )
        select task_id, trial from wanted anti join filled using (task_id, trial) order by trial, position
        """,
        [
            list(scope.task_ids), list(scope.task_ids), job.settings.trials,
            scope.benchmark.name, scope.dataset_revision, model.label, job.vintage, model_config_hash,
            list(PASSING), retry_failed,
        ],
    )  # fmt: skip
    return [(row["task_id"], row["trial"]) for row in rows]


def missing_verdicts(
    job: Job, scope: Scope, reader: Reader, judging: Judging, *, retry_failed: bool
) -> list[tuple[str, int]]:
    """The responses that a judging still owes verdicts, with how many: (response id, criteria to judge).

    Answers to one task stand together, so that the provider's cache serves what their prompts have in common, and equal
    ones next to each other: they are judged by the same calls.

    Imported responses are judged like sampled ones, unless models are named and theirs is not among them.
    """
    rows = reader.rows(
        f"{_ANSWERS_OF_SCOPE} select response_id, count(*) as n from owed "
        "group by response_id, task_id, text, model, trial order by task_id, text, model, trial",
        _owed_parameters(job, scope, judging, retry_failed),
    )
    return [(row["response_id"], row["n"]) for row in rows]


def owed_criteria(
    job: Job, scope: Scope, reader: Reader, judging: Judging, response_ids: Sequence[str], *, retry_failed: bool
) -> list[dict[str, Any]]:
    """The criteria to judge of some responses, one row each: responses in the order given, criteria in the rubric's."""
    return reader.rows(
        f"{_ANSWERS_OF_SCOPE} select * from owed where list_contains(?, response_id) "
        "order by list_position(?, response_id), position",
        [*_owed_parameters(job, scope, judging, retry_failed), list(response_ids), list(response_ids)],
    )


_ANSWERS_OF_SCOPE = """
    with answers as (
        select response_id, benchmark, dataset_revision, task_id, conversation_id, model, trial, vintage, text
        from responses
        where benchmark = ? and dataset_revision = ? and vintage = ? and status = 'ok'
            and list_contains(?, task_id) and trial <= ?
            and (
                list_contains(?::varchar[], model_config_hash || ' ' || model)
                or (source = 'imported' and (? or list_contains(?::varchar[], model)))
            )
    ),
    done as (
        select response_id, criterion_id, criterion_hash
        from verdicts
        where judge = ? and judge_config_hash = ? and template_hash = ? and grading = ? and judge_trial = ?
            and not (list_contains(?, status) or (? and value is null))
    ),
    owed as (
        select
            answers.*, criteria.criterion_id, criteria.content_hash as criterion_hash, criteria.title, criteria.position
        from answers
        inner join criteria using (benchmark, dataset_revision, task_id)
        anti join done
            on answers.response_id = done.response_id and criteria.criterion_id = done.criterion_id
            and criteria.content_hash = done.criterion_hash
    )
"""


def model_hashes(job: Job) -> dict[str, str]:
    """The configuration hash of each configured model, by label."""
    return {model.label: target_of(model).config_hash for model in job.settings.models}


def _owed_parameters(job: Job, scope: Scope, judging: Judging, retry_failed: bool) -> list[Any]:
    named, models = job.named_models, model_hashes(job)
    return [
        scope.benchmark.name, scope.dataset_revision, job.vintage, list(scope.task_ids), job.settings.trials,
        [f"{config} {label}" for label, config in models.items()], named is None, list(named or ()),
        *judging.columns.values(), list(PASSING), retry_failed,
    ]  # fmt: skip
