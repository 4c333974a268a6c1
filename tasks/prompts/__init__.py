"""Judge templates: shipped ones, by name and version, or a user's own file."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tasks.rules.conversation import PLACEHOLDERS, QUESTIONS, is_marked, missing_placeholders
from tasks.rules.errors import UsageError, from_home

FOLDER = Path(__file__).parent


def load_template(name: str, default: str, placeholders: Sequence[str] = PLACEHOLDERS) -> str:
    """Return the text of a judge template.

    Args:
        name: `default`, the name of a template in this folder, or the path of a file.
        default: the template that the benchmark declares.
        placeholders: what it must contain.

    Raises:
        UsageError: there is no such template, or it lacks a placeholder.
    """
    origin = ""
    if name == "default":
        name = default
        origin = " (the benchmark's default)"
    path = FOLDER / f"{name}.txt"
    if not path.is_file():
        path = from_home(name, "template")
    if not path.is_file():
        names = ", ".join(sorted(file.stem for file in FOLDER.glob("*.txt")))
        raise UsageError(f"template: {name} is neither a file nor one of: {names}{origin}")
    text = path.read_text(encoding="utf-8")
    lacking = missing_placeholders(text, placeholders)
    if lacking:
        raise UsageError(
            f"template: {path} lacks {' and '.join(lacking)}; it needs {' and '.join(placeholders)}"
        )
    return text


@cache
def load_analysis_template(name: str) -> str:
    """Return the text of a template below `analyses/`: a prompt on tasks and criteria."""
    return (FOLDER / "analyses" / f"{name}.txt").read_text(encoding="utf-8")


def shipped_templates() -> list[str]:
    """Return the texts of all judge templates in this folder, without templates for evidence."""
    texts = []
    for path in sorted(FOLDER.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        if not missing_placeholders(text, PLACEHOLDERS) and QUESTIONS not in text:
            texts.append(text)
    return texts


def load_evidence_template(name: str, judge_template: str) -> str:
    """Return the evidence template `name` in the form that fits the text of a judge template."""
    # Judge templates without markers keep theirs: both are part of a verdict's identity.
    if name == "evidence_v2" and not is_marked(judge_template):
        name = "evidence_v1"
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
