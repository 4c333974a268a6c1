"""A file for each task: the conversation, the criteria, and of every entry its answers with all verdicts on them.

A file has a section for its rubric and one for each entry, packed by itself, on a line of its own. A section carries a
stamp of the program and of a fingerprint of its rows, so that a later build reads and makes only the sections whose
rows changed, and copies the lines of the others: a night's new answers of one model cost what one model costs. A page
unpacks only the sections that it shows.
"""

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile

import sql
from tasks.figures.scope import task_key
from tasks.report.drilldown.markdown import as_html
from tasks.report.drilldown.packing import handed_over, packed, script
from tasks.report.drilldown.subjects import Subjects
from tasks.report.rendering.site import Site

RUBRIC = "task"
_DIGEST_BYTES = 16

Rows = Mapping[str, str | Sequence[str]]
"""What a section is made of by name: JSON, or the JSON of each answer."""


@dataclass(frozen=True)
class Section:
    """A section as it should be: a stamp that changes with what it is made of, and how many answers it has."""

    stamp: str
    n_answers: int = 0


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


def digest(*texts: str) -> str:
    """A hash of texts."""
    found = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for text in texts:
        found.update(text.encode("utf-8", "surrogatepass"))
    return found.hexdigest()


@cache
def _program() -> str:
    """Changes with this package, with the queries and models behind its rows, and with the libraries that make them."""
    queries = (sql.FOLDER / f"{name}.sql" for name in ("report/drilldown", "figures/shared"))
    sources = [*Path(__file__).parent.glob("*.py"), *queries]
    texts = [path.read_text(encoding="utf-8") for path in sorted(sources)]
    libraries = [version("pyromark"), version("nh3"), version("duckdb"), version("isal")]
    return digest(*texts, *(model.text for model in sql.models()), *libraries)


_ANSWERS_IN_HAND = 4_000
"""Answers, with their verdicts, that are read at once, whatever the report's size: those of one entry, or of a few
small ones. The database has them beside each other; to find the answers to some tasks it would unpack all texts."""

Wanted = Mapping[str, Mapping[str, Section]]
"""The sections of each task."""
Names = dict[str, set[str]]
"""The sections of each task that are to be made."""


@dataclass(frozen=True)
class Renewed:
    """What a build did: files that it wrote, sections that it made, and all sections that there are."""

    n_files: int
    n_made: int
    n_sections: int


def sections_to_make(subjects: Subjects, task_ids: Sequence[str], site: Site) -> tuple[Wanted, Names]:
    """The sections that each task should have, and those that are to be made in the tasks whose file has to change.

    Of answers and verdicts only fingerprints are read.
    """
    wanted: dict[str, dict[str, Section]] = {task_id: {} for task_id in task_ids}
    for task_id, *rubric in subjects.rows("drilldown/rubrics", tasks=list(task_ids)):
        wanted[task_id][RUBRIC] = Section(digest(_program(), *rubric))
    for task_id, entry, n_answers, fingerprint in subjects.rows("drilldown/fingerprints"):
        if task_id in wanted:
            wanted[task_id][entry] = Section(digest(_program(), fingerprint), n_answers)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        found = pool.map(lambda task_id: _to_make(site, task_id, wanted[task_id]), task_ids)
        return wanted, {task: names for task, names in zip(task_ids, found, strict=True) if names is not None}


def write_task_files(subjects: Subjects, wanted: Wanted, to_make: Names, site: Site) -> Renewed:
    """Make the sections, entry by entry; then write the files of the tasks in which something changed.

    Sections wait in a file, since all of them would not fit in memory.
    """
    with TemporaryFile(dir=site.folder) as file, ExitStack() as ending:
        pool = ThreadPoolExecutor(os.cpu_count() or 1)
        # What has not begun when this fails, as on Ctrl-C, is not done any more.
        ending.callback(pool.shutdown, cancel_futures=True)
        made: dict[tuple[str, str], tuple[int, int]] = {}
        for name, section in _sections(subjects, wanted, to_make, pool):
            made[name] = len(section), file.tell()
            file.write(section)
        file.flush()

        def renew(task_id: str) -> None:
            """Write a task's file, of the sections that were made, and as they are in it those that were not."""
            known = _known(site, task_id)
            lines = []
            for section in sorted(wanted[task_id]):
                place = made.get((task_id, section))
                values = os.pread(file.fileno(), *place).decode("ascii") if place else '","'.join(known[section])
                lines.append(f'"{section}":["{values}"]')
            site.write(_file(task_id), script(_name(task_id), "{\n" + ",\n".join(lines) + "\n}"))

        for _ in pool.map(renew, to_make):
            pass
    return Renewed(len(to_make), sum(map(len, to_make.values())), sum(map(len, wanted.values())))


def _sections(
    subjects: Subjects, wanted: Wanted, to_make: Names, pool: ThreadPoolExecutor
) -> Iterator[tuple[tuple[str, str], bytes]]:
    """The sections that are to be made, by task and name; while some are made, the rows of the next are read."""
    in_hand: list[tuple[tuple[str, str], Future[bytes]]] = []
    for batch in _batches(wanted, to_make):
        next_in_hand = [
            ((task_id, name), pool.submit(_section, wanted[task_id][name].stamp, rows))
            for task_id, sections in read_sections(subjects, batch).items()
            for name, rows in sections.items()
        ]
        yield from ((name, section.result()) for name, section in in_hand)
        in_hand = next_in_hand
    yield from ((name, section.result()) for name, section in in_hand)


def _section(stamp: str, rows: Rows) -> bytes:
    """A section as it stands in a file: its stamp, its seal and its body."""
    body = packed(content_of(rows))
    return f'{stamp}","{digest(stamp, body)}","{body}'.encode("ascii")


def _batches(wanted: Wanted, to_make: Names) -> Iterator[Names]:
    """Sections to read at once: those of entries that lack the same tasks; of a large entry only some tasks."""
    lacking: dict[str, list[str]] = defaultdict(list)
    for task_id, names in to_make.items():
        for name in sorted(names):
            lacking[name].append(task_id)
    alike: dict[tuple[str, ...], dict[str, int]] = defaultdict(dict)
    for name, task_ids in lacking.items():
        alike[tuple(task_ids)][name] = sum(wanted[task_id][name].n_answers for task_id in task_ids)
    for tasks, sizes in alike.items():
        for some in _fitting(sizes):
            n_answers = sum(sizes[name] for name in some)
            n_tasks = max(1, len(tasks) * _ANSWERS_IN_HAND // max(n_answers, _ANSWERS_IN_HAND))
            for start in range(0, len(tasks), n_tasks):
                yield {task_id: set(some) for task_id in tasks[start : start + n_tasks]}


def _fitting(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Names one after the other, as many at once as fit in hand, but at least one."""
    some: list[str] = []
    for name, size in sizes.items():
        if some and size + sum(sizes[each] for each in some) > _ANSWERS_IN_HAND:
            yield some
            some = []
        some.append(name)
    yield some


def _name(task_id: str) -> str:
    return f"task-{task_key(task_id)}"


def _file(task_id: str) -> str:
    return f"data/{_name(task_id)}.js"


def _to_make(site: Site, task_id: str, wanted: Mapping[str, Section]) -> set[str] | None:
    """The sections that a task's file lacks or has with other stamps; None where the file is as it should be."""
    known = {section: stamp for section, (stamp, *_) in _known(site, task_id).items()}
    if known == {section: each.stamp for section, each in wanted.items()}:
        site.keep(_file(task_id))
        return None
    return {section for section, each in wanted.items() if known.get(section) != each.stamp}


def _known(site: Site, task_id: str) -> dict[str, list[str]]:
    """Stamp, seal and body of each section of a task's file; none where it is not there, or is no such file.

    The seal holds while neither a section nor its stamp was changed.
    """
    try:
        name, content = handed_over((site.folder / _file(task_id)).read_text("ascii"))
        sections = {section: [stamp, seal, body] for section, (stamp, seal, body) in content.items()}
        sealed = {section: values for section, values in sections.items() if values[1] == digest(values[0], values[2])}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
    return sealed if name == _name(task_id) else {}
