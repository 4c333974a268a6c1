"""From a judge's reply to a row of verdicts."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tasks.calls import usage_columns
from tasks.llm.replies import EMPTY, OK, Reply
from tasks.rules.identity import verdict_id
from tasks.rules.text import one_line
from tasks.rules.verdict import PARSE_ERROR, Verdict, VerdictError, parse_verdict
from tasks.scope import Judging, Scope
from tasks.settings import Job

_QUOTED_CHARS = 300


def read_verdict(reply: Reply) -> tuple[Verdict | None, Reply]:
    """The verdict that a judge's reply is, or none and the reply with the reason why it is not one."""
    if reply.status not in {OK, EMPTY}:
        return None, reply
    try:
        return parse_verdict(reply.text or ""), reply
    except VerdictError as error:
        cause = one_line(f"{error}; reply: {(reply.text or '')[:_QUOTED_CHARS]!r}")
        return None, replace(reply, status=PARSE_ERROR, error=cause)


def id_of(judging: Judging, criterion: Mapping[str, Any]) -> str:
    """The identity of a judging's verdict on an owed criterion."""
    columns = judging.columns
    return verdict_id(
        criterion["response_id"], criterion["text"], criterion["criterion_id"], criterion["criterion_hash"],
        columns["judge"], columns["judge_config_hash"], columns["template_hash"], columns["grading"],
        columns["judge_trial"],
    )  # fmt: skip


def verdict_row(
    job: Job, scope: Scope, judging: Judging, criterion: Mapping[str, Any], identity: str, reply: Reply,
    verdict: Verdict | None,
) -> dict[str, Any]:  # fmt: skip
    """The row of a verdict, or of the failure that stands in its place."""
    return {
        **scope.key,
        **judging.columns,
        **usage_columns(reply),
        **{name: criterion[name] for name in ("response_id", "task_id", "criterion_id", "criterion_hash")},
        **{name: criterion[name] for name in ("model", "trial", "vintage")},
        "verdict_id": identity,
        "source": "judged",
        "import_batch": None,
        "status": verdict.status if verdict else reply.status,
        "value": verdict.value if verdict else None,
        "explanation": verdict.explanation if verdict else None,
        "run_id": job.run_id,
        "created_at": datetime.now(UTC),
    }
