"""One response under a judge as a sample of an Inspect log: conversation, scores, verdicts, tokens and cost."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import Any

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
Usage = dict[str, Any]
NEVER_CALLED = ("not_judged", "no_response")
"""The status of a criterion that no judge was asked about."""
_MARKDOWN = re.compile(r"([\\`*_\[\]|~$])")
"""What Markdown would give a meaning to; a title or an explanation is text. Inspect View escapes HTML itself."""
_DECIDED = ("met", "partial", "unmet")
_FAILED, _NOT_JUDGED = "grader_failed", "not_judged"
_ALWAYS_COUNTED = ("input_tokens", "output_tokens", "total_tokens")
_SOMETIMES_COUNTED = ("input_tokens_cache_read", "reasoning_tokens")


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
        {"id": f"{uid}-{place}", "role": role, "content": text, **({"source": "input"} if role == "user" else {})}
        for place, (role, text) in enumerate(messages)
    ]
    answer = None if response["text"] is None else {
        "id": f"{uid}-answer", "role": "assistant", "content": response["text"], "source": "generate",
        "model": response["served_model"] or model_run["model"],
    }  # fmt: skip
    sampled, judged = _usage_of(response), _usage_of_calls(criteria)
    used = [(model_run["model"], sampled), (model_run["judge"], judged)]
    return {
        "id": response["task_id"], "epoch": response["trial"], "input": turns, "target": "",
        "messages": [*turns, *([answer] if answer else [])],
        "output": _output(model_run, response, answer, sampled),
        "scores": _scores(criteria, scores) if answer else {},
        "metadata": {name: response[name] for name in (*_OF_TASK, *_OF_RESPONSE)},
        # Model and judge may have one name.
        "model_usage": {
            name: usage
            for name in (model_run["model"], model_run["judge"])
            if (usage := added(each for other, each in used if other == name))
        },
        "role_usage": {GRADER: judged} if judged else {},
        "completed_at": max(made for row in (response, *criteria) if (made := row["created_at"])).isoformat(),
        "uuid": uid,
        "error": None if answer else dict.fromkeys(("message", "traceback", "traceback_ansi"), _cause(response)),
    }  # fmt: skip


def summary_of(sample: Document) -> Document:
    """What the list of samples shows of one; long texts are cut."""
    asked = next((turn["content"] for turn in reversed(sample["input"]) if turn["role"] == "user"), "")
    scores = {
        name: {"value": score["value"], "explanation": score["explanation"][:_MOST_SHOWN]}
        for name, score in sample["scores"].items()
    }
    kept = ("id", "epoch", "target", "metadata", "model_usage", "role_usage", "completed_at", "uuid")
    return {
        **{name: sample[name] for name in kept}, "input": asked[:_MOST_SHOWN], "scores": scores,
        "error": sample["error"] and sample["error"]["message"], "completed": True,
        "message_count": len(sample["messages"]),
    }  # fmt: skip


def _output(model_run: Row, response: Row, answer: Document | None, usage: Document | None) -> Document:
    stopped = _STOPPED.get(response["status"], "stop" if answer else "unknown")
    message = answer or {"role": "assistant", "content": ""}
    return {
        "model": response["served_model"] or model_run["model"],
        "choices": [{"message": message, "stop_reason": stopped}], "completion": response["text"] or "", "usage": usage,
        "time": response["latency_s"], "error": None if answer else _cause(response),
    }  # fmt: skip


def _cause(response: Row) -> str:
    return f"{response['status']}: {response['error']}" if response["error"] else str(response["status"])


def _scores(criteria: Sequence[Row], scores: Sequence[Row]) -> dict[str, Document]:
    """Each score by its name; the first one carries the criteria."""
    # A judge's call failed, or is still to be made.
    undecided = {row["status"] for row in criteria} - set(_DECIDED)
    reason = None if not undecided else _NOT_JUDGED if undecided == {_NOT_JUDGED} else _FAILED
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


def explanation_of(criteria: Sequence[Row]) -> str:
    """A line that counts the verdicts, and a Markdown table of the criteria; explanations where there are any."""
    counted = Counter(row["status"] for row in criteria)
    order = [*_DECIDED, *sorted(counted.keys() - set(_DECIDED))]
    line = ", ".join(f"{counted[status]} {_in_words(status)}" for status in order if counted[status])
    columns = {
        "Verdict": [_in_words(row["status"]) for row in criteria],
        "Weight": ["" if row["weight"] is None else f"{row['weight']:g}" for row in criteria],
        "Criterion": [_text(row["title"]) for row in criteria],
        "Explanation": [_text(row["explanation"] or row["error"] or "") for row in criteria],
    }
    if not any(columns["Explanation"]):
        del columns["Explanation"]
    cells = [list(columns), ["---"] * len(columns), *zip(*columns.values(), strict=True)]
    return "\n".join([f"{len(criteria)} criteria: {line}", "", *(f"| {' | '.join(row)} |" for row in cells)])


def _in_words(status: str) -> str:
    return status.replace("_", " ")


def _text(text: str) -> str:
    """A text in one cell of a table, with nothing in it that Markdown would read."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def _usage_of(row: Row) -> Usage | None:
    """The usage of one call, as Inspect's `ModelUsage`; None if the provider reported no tokens.

    `input_tokens` leaves out those that came from the provider's cache, which count in `input_tokens_cache_read`.
    """
    prompt, completion = row["prompt_tokens"], row["completion_tokens"]
    if prompt is None or completion is None:
        return None
    cached = row["cached_tokens"]
    return {
        "input_tokens": prompt - (cached or 0), "output_tokens": completion, "total_tokens": prompt + completion,
        "input_tokens_cache_read": cached, "reasoning_tokens": row.get("reasoning_tokens"),
        "total_cost": row["cost_usd"],
    }  # fmt: skip


def _usage_of_calls(rows: Iterable[Row]) -> Usage | None:
    """The usage of several calls: tokens as far as they were reported, and what all calls cost, if that is known."""
    made = [row for row in rows if row["status"] not in NEVER_CALLED]
    usage = added(map(_usage_of, made))
    return None if usage is None else usage | {"total_cost": _sum_if_known([row["cost_usd"] for row in made])}


def added(usages: Iterable[Usage | None]) -> Usage | None:
    """The sum of what was reported; None if nothing was. A cost that is not known makes the sum unknown."""
    known = [usage for usage in usages if usage is not None]
    if not known:
        return None
    sums: Usage = {name: sum(usage[name] for usage in known) for name in _ALWAYS_COUNTED}
    for name in _SOMETIMES_COUNTED:
        reported = [usage[name] for usage in known if usage[name] is not None]
        sums[name] = sum(reported) if reported else None
    return sums | {"total_cost": _sum_if_known([usage["total_cost"] for usage in known])}


def _sum_if_known(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return round(fsum(known), 12) if len(known) == len(costs) else None
