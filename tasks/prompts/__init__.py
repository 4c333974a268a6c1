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
    wanted = default if name == "default" else name
    shipped = FOLDER / f"{wanted}.txt"
    path = shipped if shipped.is_file() else from_home(wanted, "template")
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in FOLDER.glob("*.txt")))
        whose = " (the benchmark's default)" if name == "default" else ""
        raise UsageError(f"template: {wanted} is neither a file nor one of: {known}{whose}")
    text = path.read_text(encoding="utf-8")
    missing = missing_placeholders(text, placeholders)
    if missing:
        raise UsageError(
            f"template: {path} lacks {' and '.join(missing)}; it needs {' and '.join(placeholders)}"
        )
    return text


@cache
def load_analysis_template(name: str) -> str:
    """Return the text of a template below `analyses/`: the prompt of analysts on tasks and
    criteria.
    """
    return (FOLDER / "analyses" / f"{name}.txt").read_text(encoding="utf-8")


def shipped_templates() -> list[str]:
    """Return the texts of all judge templates in this folder, without templates for evidence."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.txt"))]
    return [
        text
        for text in texts
        if not missing_placeholders(text, PLACEHOLDERS) and QUESTIONS not in text
    ]


def load_evidence_template(name: str, beside: str) -> str:
    """Return the evidence template `name` in the form that fits the text of a judge template
    (`beside`).
    """
    # Judge templates without markers keep theirs: both are part of a verdict's identity.
    fitting = "evidence_v1" if name == "evidence_v2" and not is_marked(beside) else name
    return (FOLDER / f"{fitting}.txt").read_text(encoding="utf-8")
