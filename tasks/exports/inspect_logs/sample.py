"""One response under a judge as a sample of an Inspect log."""

from collections.abc import Mapping, Sequence
from typing import Any

from tasks.exports.inspect_logs.criteria import explanation_of, unscored_reason
from tasks.exports.inspect_logs.usage import Usage, added, usage_of, usage_of_calls
from tasks.rules.conversation import Message
from tasks.rules.identity import digest

Document = dict[str, Any]
Row = Mapping[str, Any]
GRADER = "grader"
"""The role of the judge; Inspect calls judges so."""
_UNSCORED = float("nan")
"""The value by which Inspect knows a sample that no metric counts."""
_STOPPED = {"truncated": "max_tokens", "context_length": "model_length", "refused": "content_filter"}
_MOST_SHOWN = 1_000
"""Characters of a text in a summary."""
_JUDGING = ("judge", "judge_config_hash", "template_hash", "grading", "judge_trial")
_OF_TASK = ("field", "topic", "expert", "splits", "decision_types", "economic_pathways")
_OF_RESPONSE = ("response_id", "source", "degraded", "finish_reason", "served_model", "cost_usd")
_OF_CRITERION = (
    "criterion_id", "title", "category", "severity", "weight", "status", "value", "explanation", "error", "cost_usd",
    "may_hide_failures",
)  # fmt: skip


def sample_of(
    model_run: Row, response: Row, messages: Sequence[Message], criteria: Sequence[Row], scores: Sequence[Row]
) -> Document:
    """A sample: conversation, answer, scores with every criterion, usage; the error if there is no answer.

    Args:
        model_run: who answered and who judged.
        response: the answer with its task's labels, or how it failed.
        messages: the conversation that was sent.
        criteria: every criterion of the task, with the verdict on this response.
        scores: the response's scores, the main one first; empty for a failed response.
    """
    uid = digest("inspect sample", response["response_id"], *(model_run[name] for name in _JUDGING))[:22]
    turns = [
        {"id": f"{uid}-{place}", "role": role, "content": text, "source": "input"} if role == "user"
        else {"id": f"{uid}-{place}", "role": role, "content": text}
        for place, (role, text) in enumerate(messages)
    ]  # fmt: skip
    answer = None if response["text"] is None else {
        "id": f"{uid}-answer", "role": "assistant", "content": response["text"], "source": "generate",
        "model": response["served_model"] or model_run["model"],
    }  # fmt: skip
    sampled, judged = usage_of(response), usage_of_calls(criteria)
    return {
        "id": response["task_id"],
        "epoch": response["trial"],
        "input": turns,
        "target": "",
        "messages": [*turns, *([answer] if answer else [])],
        "output": _output(model_run, response, answer, sampled),
        "scores": _scores(criteria, scores) if answer else {},
        "metadata": {name: response[name] for name in (*_OF_TASK, *_OF_RESPONSE)},
        "model_usage": usage_by_name(model_run, sampled, judged),
        "role_usage": {GRADER: judged} if judged else {},
        "completed_at": max(made for row in (response, *criteria) if (made := row["created_at"])).isoformat(),
        "uuid": uid,
        "error": None if answer else _error(response),
    }  # fmt: skip


def usage_by_name(model_run: Row, sampled: Usage | None, judged: Usage | None) -> dict[str, Usage]:
    """The usage of a model and of its judge under their names, which may be one."""
    named = [(model_run["model"], sampled), (model_run["judge"], judged)]
    sums = {name: added(usage for other, usage in named if other == name) for name, _ in named}
    return {name: usage for name, usage in sums.items() if usage is not None}


def summary_of(sample: Document) -> Document:
    """What the list of samples shows of one; long texts are cut."""
    asked = next((turn["content"] for turn in reversed(sample["input"]) if turn["role"] == "user"), "")
    scores = {
        name: {"value": score["value"], "explanation": score["explanation"][:_MOST_SHOWN]}
        for name, score in sample["scores"].items()
    }
    kept = ("id", "epoch", "target", "metadata", "model_usage", "role_usage", "completed_at", "uuid")
    return {
        **{name: sample[name] for name in kept},
        "input": asked[:_MOST_SHOWN],
        "scores": scores,
        "error": sample["error"] and sample["error"]["message"],
        "completed": True,
        "message_count": len(sample["messages"]),
    }


def _output(model_run: Row, response: Row, answer: Document | None, usage: Document | None) -> Document:
    stopped = _STOPPED.get(response["status"], "stop" if answer else "unknown")
    message = answer or {"role": "assistant", "content": ""}
    return {
        "model": response["served_model"] or model_run["model"],
        "choices": [{"message": message, "stop_reason": stopped}],
        "completion": response["text"] or "",
        "usage": usage,
        "time": response["latency_s"],
        "error": None if answer else _cause(response),
    }


def _cause(response: Row) -> str:
    return f"{response['status']}: {response['error']}" if response["error"] else str(response["status"])


def _error(response: Row) -> Document:
    cause = _cause(response)
    return {"message": cause, "traceback": cause, "traceback_ansi": cause}


def _scores(criteria: Sequence[Row], scores: Sequence[Row]) -> dict[str, Document]:
    """Each score by its name; the first one carries the criteria."""
    reason = unscored_reason(criteria)
    found = {}
    for place, score in enumerate(scores):
        value = score["value"]
        bounds = {} if value is not None else {name: score[name] for name in ("value_lower", "value_upper")}
        more = {"criteria": [{name: row[name] for name in _OF_CRITERION} for row in criteria]} if place == 0 else {}
        found[score["score_name"]] = {
            "value": _UNSCORED if value is None else value,
            "explanation": explanation_of(criteria) if place == 0 else "",
            "reason": reason if value is None else None,
            "metadata": {**bounds, **more},
        }
    return found
