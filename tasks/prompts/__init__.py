"""Judge templates: shipped ones, by name and version, or a user's own file."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tasks.rules.conversation import (
    GROUP,
    PLACEHOLDERS,
    QUESTIONS,
    is_marked,
    missing_placeholders,
)
from tasks.rules.errors import UsageError, from_home

FOLDER = Path(__file__).parent
_OF_SOME_KINDS = (GROUP, QUESTIONS, "<<part>>")
"""Placeholders of templates for several criteria, for decision models, and for evidence."""


def load_template(name: str, default: str, placeholders: Sequence[str] = PLACEHOLDERS) -> str:
    """Return the text of a judge template.

    Args:
        name: `default`, the name of a template in this folder, or the path of a file.
        default: the template that the benchmark declares.
        placeholders: what it must contain.

    Raises:
        UsageError: there is no such template, it is not UTF-8, or it is of another kind.
    """
    origin = ""
    if name == "default":
        name = default
        origin = " (the benchmark's default)"
    path = FOLDER / f"{name}.txt"
    if not path.is_file():
        path = from_home(name, "template")
    if not path.is_file():
        names = ", ".join(_fitting_templates(placeholders))
        raise UsageError(f"template: {name} is neither a file nor one of: {names}{origin}")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"template: {path} is not UTF-8 text; save it as UTF-8") from error
    lacking = missing_placeholders(text, placeholders)
    if lacking:
        raise UsageError(
            f"template: {path} lacks {' and '.join(lacking)}; it needs {' and '.join(placeholders)}"
        )
    foreign = _foreign_placeholders(text, placeholders)
    if foreign:
        raise UsageError(f"template: {path} is of another kind: nothing fills in {foreign[0]} here")
    return text


def _foreign_placeholders(text: str, placeholders: Sequence[str]) -> list[str]:
    return [name for name in _OF_SOME_KINDS if name in text and name not in placeholders]


def _fitting_templates(placeholders: Sequence[str]) -> dict[str, str]:
    """Return name -> text of the templates in this folder for these placeholders."""
    templates = {}
    for path in sorted(FOLDER.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        lacking = missing_placeholders(text, placeholders)
        if not lacking and not _foreign_placeholders(text, placeholders):
            templates[path.stem] = text
    return templates


@cache
def load_analysis_template(name: str) -> str:
    """Return the text of a template below `analyses/`: a prompt on tasks and criteria."""
    return (FOLDER / "analyses" / f"{name}.txt").read_text(encoding="utf-8")


def shipped_templates() -> list[str]:
    """Return the texts of the templates in this folder for one criterion a call."""
    return list(_fitting_templates(PLACEHOLDERS).values())


def load_evidence_template(name: str, judge_template: str) -> str:
    """Return the evidence template `name` in the form that fits the text of a judge template."""
    # Judge templates without markers keep theirs: both are part of a verdict's identity.
    if name == "evidence_v2" and not is_marked(judge_template):
        name = "evidence_v1"
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
