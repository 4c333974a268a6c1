"""Names of tasks, entries, judgings and criteria in files and addresses: digests, which hold nothing of any text.

A name depends on nothing but what it names, so it stays the same when other tasks or models are added.
"""

import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from tasks.rules.identity import digest

_HEX = 16
_ENTRY = ("model", "model_config_hash", "vintage")
_JUDGING = ("judge", "judge_config_hash", "template_hash", "grading", "judge_trial")


def task_key(task_id: str) -> str:
    """The name of a task."""
    return digest("task", task_id)[:_HEX]


def entry_key(entry: Mapping[str, Any]) -> str:
    """The name of one sampling of a configured model."""
    return digest("entry", *(entry[column] for column in _ENTRY))[:_HEX]


def judging_key(judging: Mapping[str, Any]) -> str:
    """The name of a judging."""
    return digest("judging", *(judging[column] for column in _JUDGING))[:_HEX]


def criterion_key(criterion_id: str) -> str:
    """The name of a criterion within its task: the beginning of what SQL calls `sha256(criterion_id)`."""
    return hashlib.sha256(criterion_id.encode()).hexdigest()[:_HEX]


def task_address(
    task_id: str,
    first: Mapping[str, Any] | None = None,
    second: Mapping[str, Any] | None = None,
    criterion_id: str | None = None,
) -> str:
    """The address, from another page, of a task with the answers of an entry or two, at one of its criteria."""
    parts = {
        "task": task_key(task_id),
        "a": entry_key(first) if first else None,
        "b": entry_key(second) if second else None,
        "criterion": criterion_key(criterion_id) if criterion_id is not None else None,
    }
    return "task.html#" + urlencode({name: part for name, part in parts.items() if part})
