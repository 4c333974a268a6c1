"""Reviews of rubrics by models: one call for each criterion, with the task's request and its whole
rubric.

A reply is exactly one JSON object with a finding for each check. Anything else is a `VerdictError`.
It never becomes "fails": a failure has no value.
"""

import json
from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any

from tasks.analyses import assembled, provenance
from tasks.config.job import Job
from tasks.config.models import Analyst
from tasks.prompts import load_analysis_template
from tasks.rules.conversation import rubric_prompt
from tasks.rules.errors import UsageError
from tasks.rules.identity import digest, template_hash
from tasks.rules.text.characters import storable
from tasks.rules.verdict import VerdictError, json_object, object_of, strict_format
from tasks.run.calls import Analysis, Item, ReplySpec
from tasks.run.missing_work import WantedTasks
from warehouse import Reader

CHECKS = ("atomic", "objective", "self_contained", "consistent", "not_given_away")
"""The checks of a criterion (`prompts/analyses/review_v1.txt` defines them); true is good."""
REMINDER = (
    "Reply again with only the JSON object. Its keys are "
    + ", ".join(f'"{name}"' for name in CHECKS)
    + '; the value of each is {"reason": "...", "passes": true or false}.'
)


def read_findings(reply: str, *, omits_think_tag: bool = False) -> list[dict[str, Any]]:
    """Return the findings in a reply (`name`, `passes`, `reason`), one for each check in the order
    of `CHECKS`.

    The reply is one JSON object, bare or in one Markdown fence, with exactly the checks as keys.
    The value of each is an object with a boolean `passes` and a text `reason`, which must not be
    blank if the check fails.

    Raises:
        VerdictError: the reply is anything else.
    """
    content = json_object(reply, omits_think_tag=omits_think_tag)
    unknown = sorted(content.keys() - set(CHECKS))
    if unknown:
        raise VerdictError(f"{unknown[0][:40]!r} is not a check")
    return [_finding(name, content.get(name)) for name in CHECKS]


def _finding(name: str, finding: Any) -> dict[str, Any]:
    if not isinstance(finding, dict) or finding.keys() - {"reason", "passes"}:
        raise VerdictError(f"{name} is missing, or not an object of reason and passes")
    passes = finding.get("passes")
    reason = finding.get("reason", "")
    if not isinstance(passes, bool) or not isinstance(reason, str):
        raise VerdictError(f"{name}: passes is not true or false, or reason is not a text")
    if not passes and not reason.strip():
        raise VerdictError(f"{name} fails without a reason")
    return {
        "name": name,
        "passes": passes,
        "reason": storable(reason).replace("\0", "\N{REPLACEMENT CHARACTER}"),
    }


TEMPLATE = "review_v1"
Row = Mapping[str, Any]


def refuse_unready(job: Job) -> None:
    """Refuse a job that names no reviewer.

    Raises:
        UsageError: it names none.
    """
    if not job.settings.reviewer:
        raise UsageError(
            "reviewer: no model is configured that reviews criteria; name one under `reviewer:`"
        )


def review_items(job: Job, wanted: WantedTasks, reader: Reader, analyst: Analyst) -> list[Item]:
    """Return the items of a reviewer: one for each criterion of the wanted tasks, in each trial.

    A review depends on the conversation and the whole rubric, so it is requested again where one of
    them changes.

    Raises:
        PipelineError: a task has no assembled conversation.
    """
    columns = "task_id, criterion_id, content_hash as criterion_hash, title, weight"
    rubrics: dict[str, list[Row]] = {task_id: [] for task_id in wanted.task_ids}
    for row in reader.select(
        "criteria", columns, order="position", **wanted.key, task_id=list(wanted.task_ids)
    ):
        rubrics[row["task_id"]].append(row)
    conversations = assembled(reader, wanted)
    template = load_analysis_template(TEMPLATE)
    common = {**wanted.key, **provenance("reviewer", analyst, template_hash(template))}
    finding = object_of({"reason": {"type": "string"}, "passes": {"type": "boolean"}})
    shape = strict_format("review", dict.fromkeys(CHECKS, finding))
    reply_spec = ReplySpec(
        partial(_columns, omits_think_tag=analyst.omits_think_tag), shape, REMINDER
    )
    items = []
    for task_id, rubric in rubrics.items():
        conversation = conversations[task_id]
        listed = [
            ("undesired" if (row["weight"] or 0) < 0 else "desired", row["title"]) for row in rubric
        ]
        of_task = (common, task_id, conversation.conversation_id, digest("rubric", listed))
        for trial, (index, each) in product(range(1, analyst.trials + 1), enumerate(rubric)):
            items.append(
                Item(
                    row_id=digest("model review", *of_task, each["criterion_id"], index, trial),
                    group=task_id,
                    reply_spec=reply_spec,
                    trial=trial,
                    columns={
                        **common,
                        "task_id": task_id,
                        "criterion_id": each["criterion_id"],
                        "criterion_hash": each["criterion_hash"],
                        "review_trial": trial,
                        "findings": None,
                    },
                    prompt=partial(rubric_prompt, template, conversation.messages, listed, index),
                )
            )
    return items


def _columns(reply: str, *, omits_think_tag: bool) -> Row:
    return {
        "findings": json.dumps(
            read_findings(reply, omits_think_tag=omits_think_tag), ensure_ascii=False
        )
    }


REVIEW = Analysis("review", "reviewer", "model_reviews", "review_id", "reviewer", review_items)
"""The analysis that `prbench review` makes."""
