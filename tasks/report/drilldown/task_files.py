"""A file for each task: the conversation, the criteria, and of every entry its answers with all verdicts on them.

A file has a section for each entry, packed by itself. A section carries a stamp of the rows and the program that it was
made of, so that a later build makes only the sections whose rows changed: a night's new answers of one model cost what
one model costs. A page unpacks only the sections that it shows.
"""

import hashlib
import json
import os
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from tasks.report.content.addresses import task_key
from tasks.report.drilldown.markdown import as_html
from tasks.report.drilldown.packing import as_bytes, handed_over, packed, script
from tasks.report.drilldown.subjects import Subjects
from tasks.report.rendering.site import Site

_ANSWERS_IN_HAND = 6_000
"""Answers, with their verdicts, that are read at once, whatever the report's size: twice as many took 300 MB more and a
tenth less of the time, since each reading goes through all texts."""
_RUBRIC = "task"
_DIGEST_BYTES = 16


@dataclass(frozen=True)
class Renewed:
    """What a build did: files that it wrote, sections that it made, and all sections that there are."""

    n_files: int
    n_made: int
    n_sections: int


def write_task_files(subjects: Subjects, task_ids: Sequence[str], site: Site) -> Renewed:
    """Write the tasks' files; while some are made, the rows of the next are read."""
    results: list[Renewed] = []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        in_hand: list[Future[Renewed]] = []
        for batch in _batches(subjects, task_ids):
            sections = _sections(subjects, batch)
            results += [each.result() for each in in_hand]
            in_hand = [pool.submit(_renew, site, task_id, sections.pop(task_id)) for task_id in batch]
        results += [each.result() for each in in_hand]
    return Renewed(*(sum(getattr(each, name) for each in results) for name in ("n_files", "n_made", "n_sections")))


def _batches(subjects: Subjects, task_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    ((n_answers,),) = subjects.rows("drilldown/size")
    size = max(1, _ANSWERS_IN_HAND * len(task_ids) // max(n_answers, 1))
    return (task_ids[start : start + size] for start in range(0, len(task_ids), size))


def _sections(subjects: Subjects, task_ids: Sequence[str]) -> dict[str, dict[str, bytes]]:
    """The rows that some tasks' files are made of, as JSON: task -> entry, or the rubric -> rows."""
    found: dict[str, dict[str, dict[str, str]]] = {task_id: defaultdict(dict) for task_id in task_ids}
    for task_id, conversation, criteria, is_sent in subjects.rows("drilldown/rubrics", tasks=list(task_ids)):
        found[task_id][_RUBRIC] = {"conversation": conversation, "criteria": criteria, "is_sent": is_sent}
    for name in ("answers", "verdicts", *(("grounds",) if subjects.has_grounds else ()), "points"):
        for task_id, entry, rows in subjects.rows(f"drilldown/{name}", tasks=list(task_ids)):
            found[task_id][entry][name] = rows
    return {
        # The pieces are JSON already.
        task_id: {
            section: ("{" + ",".join(f'"{name}":{text}' for name, text in rows.items()) + "}").encode()
            for section, rows in sections.items()
        }
        for task_id, sections in found.items()
    }


def _renew(site: Site, task_id: str, sections: Mapping[str, bytes]) -> Renewed:
    """Write a task's file, with the sections that it has already where they still hold."""
    key = task_key(task_id)
    name = f"data/task-{key}.js"
    known = _known(site.folder / name)
    made: dict[str, list[str]] = {}
    n_made = 0
    for section, rows in sorted(sections.items()):
        stamp = _digest(_program(), rows)
        if section in known and known[section][0] == stamp:
            made[section] = known[section]
        else:
            body = packed(rows if section == _RUBRIC else _with_html(rows))
            made[section] = [stamp, _seal(stamp, body), body]
            n_made += 1
    if n_made == 0 and known.keys() == made.keys():
        site.keep(name)
        return Renewed(0, 0, len(made))
    site.write(name, script(f"task-{key}", made))
    return Renewed(1, n_made, len(made))


def _known(path: Path) -> dict[str, list[str]]:
    """The sections of a file that is there, as far as they are whole; none where it is no such file."""
    try:
        _, sections = handed_over(path.read_text(encoding="ascii"))
        return {
            section: [stamp, seal, body]
            for section, (stamp, seal, body) in sections.items()
            if seal == _seal(stamp, body)
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _with_html(rows: bytes) -> bytes:
    """An entry's rows with each answer as HTML right behind its text, where compression finds them alike."""
    content = json.loads(rows)
    for answer in content.get("answers", ()):
        answer["html"] = None if answer["text"] is None else as_html(answer["text"])
    return as_bytes(content)


def _seal(stamp: str, body: str) -> str:
    """Holds while neither a section nor its stamp was changed."""
    return _digest(stamp.encode(), body.encode())


def _digest(*texts: bytes) -> str:
    found = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for text in texts:
        found.update(text)
    return found.hexdigest()


@cache
def _program() -> bytes:
    """Changes with this package and with the libraries that make a part of its rows."""
    sources = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    libraries = [version("pyromark"), version("nh3"), zlib.ZLIB_RUNTIME_VERSION]
    return _digest(*sources, *map(str.encode, libraries)).encode()
