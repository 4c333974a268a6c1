"""What an annotator replies: a primary label, and further ones."""

from collections.abc import Collection, Mapping
from typing import Any

from tasks.rules.text.characters import storable
from tasks.rules.verdict import VerdictError, json_object

REMINDER = (
    'Reply again with only the JSON object: {"explanation": "...", "primary": "...", "secondary": ["..."]}, with '
    "labels exactly as they are given."
)


def reply_format(labels: Collection[str], most_secondary: int, *, is_listed: bool) -> dict[str, Any]:
    """The structured output that is asked for; labels that the prompt lists are the only ones allowed."""
    label = {"type": "string", "enum": list(labels)} if is_listed else {"type": "string"}
    schema = {
        "type": "object",
        "properties": {
            "explanation": {"type": "string"},
            "primary": label,
            "secondary": {"type": "array", "items": label, "maxItems": most_secondary},
        },
        "required": ["explanation", "primary", "secondary"],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": "labels", "strict": True, "schema": schema}}


def read_labels(
    reply: str, labels: Collection[str], most_secondary: int, *, omits_think_tag: bool = False
) -> Mapping[str, Any]:
    """The columns of an annotation that a reply holds.

    A label must be a known one, exactly; none is named twice.

    Raises:
        VerdictError: for anything else.
    """
    answer = json_object(reply, omits_think_tag=omits_think_tag)
    primary, secondary = answer.get("primary"), answer.get("secondary", [])
    if not isinstance(secondary, list):
        raise VerdictError("secondary is no list")
    named = [primary, *secondary]
    for label in named:
        if not isinstance(label, str) or label not in labels:
            raise VerdictError(f"{str(label)[:60]!r} is no label")
    if len(set(named)) < len(named):
        raise VerdictError("a label is named twice")
    if len(secondary) > most_secondary:
        raise VerdictError(f"more than {most_secondary} secondary labels")
    explanation = answer.get("explanation", "")
    if not isinstance(explanation, str):
        raise VerdictError("explanation is no text")
    return {"primary_label": primary, "secondary_labels": secondary, "explanation": storable(explanation)}
