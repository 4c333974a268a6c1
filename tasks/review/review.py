"""Reviewing rubrics by models: one call for each criterion, with the task's request and its whole rubric."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import sql
from tasks.config.job import Job
from tasks.config.models import Analyst
from tasks.prompts import load_analysis_template
from tasks.review.findings import REMINDER, Finding, reader, reply_shape
from tasks.rules.conversation import rubric_prompt
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.identity import digest, template_hash
from tasks.run.asking import Analysis, Item, Question
from tasks.run.judgings import target_of
from tasks.run.missing_work import Conversation, WantedTasks, conversations_of
from warehouse import Reader

TEMPLATE = "review_v1"
Row = Mapping[str, Any]


def refuse_unready(job: Job) -> None:
    """Refuse a job that names no reviewer.

    Raises:
        UsageError: it is one.
    """
    if not job.settings.reviewer:
        raise UsageError("reviewer: no model is configured that reviews criteria; name one under `reviewer:`")


def review_items(job: Job, wanted: WantedTasks, reader_: Reader, analyst: Analyst) -> list[Item]:
    """What a reviewer is asked: about each criterion of the wanted tasks, in each trial.

    A review depends on the conversation and the whole rubric, so it is asked for again where one of them changes.

    Raises:
        PipelineError: a task has no assembled conversation.
    """
    given = {**wanted.key, "task_ids": list(wanted.task_ids)}
    rows = reader_.rows(sql.read("questions/review/criteria"), given)
    conversations = conversations_of(reader_, wanted, wanted.task_ids)
    template = load_analysis_template(TEMPLATE)
    made_by = {
        "reviewer": analyst.label, "reviewer_config_hash": target_of(analyst).config_hash,
        "template_hash": template_hash(template),
    }  # fmt: skip
    question = _question(analyst)
    items: list[Item] = []
    for task_id, found in groupby(rows, key=lambda row: row["task_id"]):
        if task_id not in conversations:
            raise PipelineError(f"task {task_id}: its conversation is not assembled; run `prbench assemble` first")
        items += _items_of_task(list(found), conversations[task_id], {**wanted.key, **made_by}, template, question,
                                analyst.trials)  # fmt: skip
    return items


def _items_of_task(
    rubric: Sequence[Row], conversation: Conversation, common: Mapping[str, Any], template: str,
    question: Question[Mapping[str, Any]], trials: int,
) -> list[Item]:  # fmt: skip
    listed = [(_word(row["weight"]), row["title"]) for row in rubric]
    rubric_hash = digest("rubric", listed)
    return [
        Item(
            row_id=digest("model review", dict(common), row["task_id"], conversation.conversation_id, rubric_hash,
                          row["criterion_id"], place, trial),
            group=row["task_id"],
            columns={
                **common, "task_id": row["task_id"], "criterion_id": row["criterion_id"],
                "criterion_hash": row["criterion_hash"], "review_trial": trial, "findings": None,
            },
            question=question,
            make_prompt=partial(rubric_prompt, template, conversation.messages, listed, place),
            trial=trial,
        )
        for trial in range(1, trials + 1)
        for place, row in enumerate(rubric)
    ]  # fmt: skip


def _word(weight: float | None) -> str:
    return "undesired" if weight is not None and weight < 0 else "desired"


def _question(analyst: Analyst) -> Question[Mapping[str, Any]]:
    read = reader(omits_think_tag=analyst.omits_think_tag)
    return Question(lambda reply: {"findings": _as_json(read(reply))}, reply_shape(), REMINDER)


def _as_json(findings: Sequence[Finding]) -> str:
    return json.dumps([each._asdict() for each in findings], ensure_ascii=False)


REVIEW = Analysis(
    stage="review", role="reviewer", table="model_reviews", key="review_id", items_of=review_items,
)  # fmt: skip
"""The analysis that `prbench review` makes."""
