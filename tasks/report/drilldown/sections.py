"""What the sections of tasks' files should be, and what they are made of: rows as JSON, straight from the database.

A task has a section for its rubric, and one for each entry's answers with all verdicts on them.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path

import sql
from tasks.report.drilldown.markdown import as_html
from tasks.report.drilldown.subjects import Subjects

RUBRIC = "task"
_DIGEST_BYTES = 16

Rows = Mapping[str, str | Sequence[str]]
"""What a section is made of by name: JSON, or the JSON of each answer."""


@dataclass(frozen=True)
class Section:
    """A section as it should be: a stamp that changes with what it is made of, and how many answers it has."""

    stamp: str
    n_answers: int = 0


def wanted_sections(subjects: Subjects, task_ids: Sequence[str]) -> dict[str, dict[str, Section]]:
    """The sections of each task; of answers and verdicts only fingerprints are read."""
    wanted: dict[str, dict[str, Section]] = {task_id: {} for task_id in task_ids}
    for task_id, *rubric in subjects.rows("drilldown/rubrics", tasks=list(task_ids)):
        wanted[task_id][RUBRIC] = Section(digest(_program(), *rubric))
    for task_id, entry, n_answers, fingerprint in subjects.rows("drilldown/fingerprints"):
        if task_id in wanted:
            wanted[task_id][entry] = Section(digest(_program(), fingerprint), n_answers)
    return wanted


def read_sections(subjects: Subjects, names: Mapping[str, Iterable[str]]) -> dict[str, dict[str, Rows]]:
    """What the named sections of some tasks are made of: task -> section -> rows."""
    found: dict[str, dict[str, dict[str, str | Sequence[str]]]] = {
        task_id: {name: {} for name in of_task} for task_id, of_task in names.items()
    }
    rubrics = [task_id for task_id, sections in found.items() if RUBRIC in sections]
    for task_id, conversation, criteria, is_sent in subjects.rows("drilldown/rubrics", tasks=rubrics):
        found[task_id][RUBRIC] = {"conversation": conversation, "criteria": criteria, "is_sent": is_sent}
    keys = {name for sections in found.values() for name in sections}
    alone = replace(subjects, entries=tuple(entry for entry in subjects.entries if entry["key"] in keys))
    if alone.entries:
        for name in ("answers", "verdicts", *(("grounds",) if subjects.has_grounds else ()), "points"):
            for task_id, entry, rows in alone.rows(f"drilldown/{name}", tasks=list(found)):
                if entry in found[task_id]:
                    found[task_id][entry][name] = rows
    return {task_id: dict(sections) for task_id, sections in found.items()}


def content_of(rows: Rows) -> bytes:
    """A section's content as JSON; the rows are JSON already, and of the answers only the HTML has to be made."""
    texts = {name: text if isinstance(text, str) else f"[{','.join(map(_with_html, text))}]" for name, text in
             rows.items()}  # fmt: skip
    return ("{" + ",".join(f'"{name}":{text}' for name, text in texts.items()) + "}").encode("utf-8", "surrogatepass")


def _with_html(answer: str) -> str:
    """An answer with its text as HTML right behind the text, where compression finds them alike."""
    text = json.loads(answer)["text"]
    html = None if text is None else as_html(text)
    return f'{answer[:-1]},"html":{json.dumps(html, ensure_ascii=False)}}}'


def digest(*texts: str | bytes) -> str:
    """A hash of texts."""
    found = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for text in texts:
        found.update(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return found.hexdigest()


@cache
def _program() -> str:
    """Changes with this package, with the queries and models behind its rows, and with the libraries that make them."""
    queries = (sql.FOLDER / f"report/{name}.sql" for name in ("drilldown", "shared"))
    sources = [*Path(__file__).parent.glob("*.py"), *queries]
    texts = [path.read_text(encoding="utf-8") for path in sorted(sources)]
    libraries = [version("pyromark"), version("nh3"), version("duckdb"), version("isal")]
    return digest(*texts, *(model.text for model in sql.models()), *libraries)
