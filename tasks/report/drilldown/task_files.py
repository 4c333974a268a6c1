"""A file for each task: the conversation, the criteria, and of every entry its answers with all verdicts on them.

A file has a section for each entry, packed by itself. A section carries a stamp of the program and of a fingerprint of
its rows, so that a later build reads and makes only the sections whose rows changed: a night's new answers of one model
cost what one model costs. A page unpacks only the sections that it shows.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tasks.report.content.addresses import task_key
from tasks.report.drilldown.packing import handed_over, packed, script
from tasks.report.drilldown.sections import Rows, Section, content_of, digest, read_sections, wanted_sections
from tasks.report.drilldown.subjects import Subjects
from tasks.report.rendering.site import Site

_ANSWERS_IN_HAND = 6_000
"""Answers, with their verdicts, that are read at once, whatever the report's size: twice as many took 300 MB more and a
tenth less of the time, since each reading goes through all texts."""

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
    """The sections that each task should have, and those that are to be made in the tasks whose file has to change."""
    wanted = wanted_sections(subjects, task_ids)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        found = pool.map(lambda task_id: _to_make(site, task_id, wanted[task_id]), task_ids)
        return wanted, {task: names for task, names in zip(task_ids, found, strict=True) if names is not None}


def write_task_files(subjects: Subjects, wanted: Wanted, to_make: Names, site: Site) -> Renewed:
    """Write the files of the tasks in which something changed; while some are made, the rows of the next are read."""
    n_files = n_made = 0
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        in_hand: list[Future[None]] = []
        for batch in _batches(wanted, to_make):
            rows = read_sections(subjects, batch)
            _wait_for(in_hand)
            in_hand = [pool.submit(_renew, site, each, wanted[each], rows.pop(each)) for each in batch]
            n_files += len(batch)
            n_made += sum(map(len, batch.values()))
        _wait_for(in_hand)
    return Renewed(n_files, n_made, sum(map(len, wanted.values())))


def _wait_for(in_hand: Sequence[Future[None]]) -> None:
    for each in in_hand:
        each.result()


def _batches(wanted: Wanted, to_make: Names) -> Iterator[Names]:
    """Tasks to read at once. What is read are all sections of a batch's tasks that one of the tasks needs."""
    batch: Names = {}
    entries: set[str] = set()
    n_answers = 0
    for task_id, names in to_make.items():
        batch[task_id] = names
        is_wider, entries = not names <= entries, entries | names
        counted = batch if is_wider else [task_id]
        n_answers = (0 if is_wider else n_answers) + sum(
            section.n_answers for each in counted for name, section in wanted[each].items() if name in entries
        )
        if n_answers >= _ANSWERS_IN_HAND:
            yield batch
            batch, entries, n_answers = {}, set(), 0
    if batch:
        yield batch


def _file(task_id: str) -> str:
    return f"data/task-{task_key(task_id)}.js"


def _to_make(site: Site, task_id: str, wanted: Mapping[str, Section]) -> set[str] | None:
    """The sections that a task's file lacks or has with other stamps; None where the file is as it should be."""
    name = _file(task_id)
    known = _known(site.folder / name)
    lacking = {section for section in wanted if section not in known or known[section][0] != wanted[section].stamp}
    if not lacking and known.keys() == wanted.keys():
        site.keep(name)
        return None
    return lacking


def _renew(site: Site, task_id: str, wanted: Mapping[str, Section], rows: Mapping[str, Rows]) -> None:
    """Write a task's file, with the sections that it has already where no rows are given."""
    name = _file(task_id)
    known = _known(site.folder / name)
    made: dict[str, list[str]] = {}
    for section, asked in sorted(wanted.items()):
        if section in rows:
            body = packed(content_of(rows[section]))
            made[section] = [asked.stamp, _seal(asked.stamp, body), body]
        else:
            made[section] = known[section]
    site.write(name, script(f"task-{task_key(task_id)}", made))


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


def _seal(stamp: str, body: str) -> str:
    """Holds while neither a section nor its stamp was changed."""
    return digest(stamp, body)
