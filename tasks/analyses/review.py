"""Reviews of rubrics by models: one call for each criterion, with the task's whole rubric.

A reply is exactly one JSON object with a finding for each check. Anything else is a `VerdictError`,
and such a review is stored without findings, never as a failed check.
"""

import json
from functools import partial
from itertools import product
from typing import Any

from tasks.analyses import provenance
from tasks.config.job import Job
from tasks.config.models import Analyst
from tasks.prompts import load_analysis_template
from tasks.rules.conversation import rubric_prompt
from tasks.rules.errors import UsageError
from tasks.rules.identity import digest, template_hash
from tasks.rules.text.characters import storable
from tasks.rules.verdict import VerdictError, json_object, object_of, strict_format
from tasks.run.calls import Analysis, Columns, Item, ReplySpec
from tasks.run.missing_work import WantedTasks, assembled_conversations
from warehouse import Reader, Row

CHECKS = ("atomic", "objective", "self_contained", "consistent", "not_given_away")
"""The checks of a criterion (`prompts/analyses/review_v1.txt` defines them); to pass is good."""
REMINDER = (
    "Reply again with only the JSON object. Its keys are "
    + ", ".join(f'"{name}"' for name in CHECKS)
    + '; the value of each is {"reason": "...", "passes": true or false}.'
)


def read_findings(reply: str, *, omits_think_tag: bool = False) -> list[dict[str, Any]]:
    """Return the findings in a reply (`name`, `passes`, `reason`), in the order of `CHECKS`.

    The reply is one JSON object, bare or in one Markdown fence, with exactly the checks as keys.
    The value of each is an object with a boolean `passes` and a text `reason`, which may be missing
    or blank only if the check passes.

    Raises:
        VerdictError: the reply is anything else.
    """
    content = json_object(reply, omits_think_tag=omits_think_tag)
    unknown = sorted(content.keys() - CHECKS)
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


def refuse_unready_review(job: Job) -> None:
    """Refuse a job that names no reviewer.

    Raises:
        UsageError: it names none.
    """
    if not job.settings.reviewer:
        raise UsageError(
            "reviewer: no model is configured that reviews criteria; name one under `reviewer:`"
        )


def review_items(
    job: Job,
    selected_tasks: WantedTasks,
    reader: Reader,
    analyst: Analyst,
) -> list[Item]:
    """Return the items of a reviewer: one for each criterion of the wanted tasks, in each trial.

    A review depends on the conversation and the whole rubric, so it is requested again where one of
    them changes.

    Raises:
        PipelineError: a task has no assembled conversation.
    """
    rubrics = _rubrics(reader, selected_tasks)
    conversations = assembled_conversations(reader, selected_tasks, selected_tasks.task_ids)
    template = load_analysis_template(TEMPLATE)
    origin = {**selected_tasks.key, **provenance("reviewer", analyst, template_hash(template))}
    reply_spec = _reply_spec(analyst)
    items = []
    for task_id, rubric in rubrics.items():
        conversation = conversations[task_id]
        texts = [(_desirability(criterion), criterion["title"]) for criterion in rubric]
        task_parts = (origin, task_id, conversation.conversation_id, digest("rubric", texts))
        trials = range(1, analyst.trials + 1)
        for trial, (index, criterion) in product(trials, enumerate(rubric)):
            criterion_id = criterion["criterion_id"]
            items.append(
                Item(
                    row_id=digest("model review", *task_parts, criterion_id, index, trial),
                    group=task_id,
                    columns={
                        **origin,
                        "task_id": task_id,
                        "criterion_id": criterion_id,
                        "criterion_hash": criterion["criterion_hash"],
                        "review_trial": trial,
                        "findings": None,
                    },
                    reply_spec=reply_spec,
                    prompt=partial(rubric_prompt, template, conversation.messages, texts, index),
                    trial=trial,
                )
            )
    return items


def _rubrics(reader: Reader, selected_tasks: WantedTasks) -> dict[str, list[Row]]:
    """Return the criteria of the wanted tasks, by task id."""
    rubrics: dict[str, list[Row]] = {task_id: [] for task_id in selected_tasks.task_ids}
    for criterion in reader.select(
        "criteria",
        "task_id, criterion_id, content_hash as criterion_hash, title, weight",
        order="position",
        **selected_tasks.key,
        task_id=list(selected_tasks.task_ids),
    ):
        rubrics[criterion["task_id"]].append(criterion)
    return rubrics


def _desirability(criterion: Row) -> str:
    """Return the word for the sign of a criterion's weight; without a weight it is desired."""
    return "undesired" if (criterion["weight"] or 0) < 0 else "desired"


def _reply_spec(analyst: Analyst) -> ReplySpec[Columns]:
    def read(reply: str) -> Columns:
        findings = read_findings(reply, omits_think_tag=analyst.omits_think_tag)
        return {"findings": json.dumps(findings, ensure_ascii=False)}

    finding = object_of({"reason": {"type": "string"}, "passes": {"type": "boolean"}})
    return ReplySpec(read, strict_format("review", dict.fromkeys(CHECKS, finding)), REMINDER)


REVIEW = Analysis(
    stage="review",
    settings_key="reviewer",
    table="model_reviews",
    id_column="review_id",
    analyst_column="reviewer",
    items_of=review_items,
)
"""The analysis that `prbench review` makes."""
