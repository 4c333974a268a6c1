"""Data files with an entry's answers to a block of tasks, and all verdicts on them.

A night's new answers of one model cost what one model costs: one query names every file by a hash of the rows that it
is made of and of this program, without reading texts into Python, and a file that exists is not made again. Tasks come
in blocks, because the database has the answers of an entry beside each other, and so that there are not too many files.
"""

import hashlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib.metadata import version
from pathlib import Path

import sql
from tasks.figures.scope import task_key
from tasks.report.drilldown.markdown import as_html
from tasks.report.drilldown.packing import data_file, write_packed
from tasks.report.drilldown.replies import Replies, ledger_state, read_replies
from tasks.report.drilldown.subjects import Block, Subjects
from tasks.report.rendering.site import Site

_ANSWERS_IN_HAND = 4_000
"""Answers, with their verdicts, that are read at once, whatever the report's size: those of one entry, or of a few
small ones. The database has them beside each other; to find the answers to some tasks it would unpack all texts."""


def write_blocks(subjects: Subjects, site: Site) -> list[Block]:
    """Write the files that do not exist yet, and return all: while some are made, the rows of the next are read."""
    state = ledger_state(subjects)
    blocks = _blocks(subjects, state)
    replies = read_replies(subjects, _missing(blocks, site), state)
    if replies is None:  # the next report, under other names, may have what this one lacks
        blocks, replies = _blocks(subjects, {**state, "replies": "not read"}), {}
    in_work: list[Future[None]] = []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for batch in _batches(_missing(blocks, site)):
            sections = _sections(subjects, batch, replies)
            for each in in_work:
                each.result()
            in_work = [pool.submit(_write, site, block, sections[block.entry, block.number]) for block in batch]
        for each in in_work:
            each.result()
    return blocks


def _blocks(subjects: Subjects, state: Mapping[str, object]) -> list[Block]:
    return [Block(*row) for row in subjects.rows("drilldown/blocks", program=_program(), **state)]


def _missing(blocks: Iterable[Block], site: Site) -> list[Block]:
    return [block for block in blocks if not site.keep(data_file(block.name))]


@cache
def _program() -> str:
    """Return a hash that changes with this package, the queries behind its rows, and the libraries that make them."""
    queries = (sql.FOLDER / f"{name}.sql" for name in ("report/drilldown", "figures/shared"))
    sources = [*Path(__file__).parent.glob("*.py"), *queries]
    texts = [path.read_text(encoding="utf-8") for path in sorted(sources)]
    libraries = [version("pyromark"), version("nh3"), version("duckdb"), version("isal")]
    return hashlib.sha256("\n".join([*texts, *(model.text for model in sql.models()), *libraries]).encode()).hexdigest()


def _batches(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Yield blocks to read at once: entries as long as they fit in hand whole, of a larger one as many as do."""
    some: list[Block] = []
    sizes: Counter[str] = Counter()
    for block in blocks:
        sizes[block.entry] += block.n_answers
    for block in blocks:
        # Each reading goes through all texts of an entry, so none is read in two.
        more = block.n_answers if some and block.entry == some[-1].entry else sizes[block.entry]
        if some and more + sum(each.n_answers for each in some) > _ANSWERS_IN_HAND:
            yield some
            some = []
        some.append(block)
    if some:
        yield some


def _sections(subjects: Subjects, blocks: Sequence[Block], replies: Replies) -> dict[tuple[str, int], list[list[str]]]:
    """Return the rows of some blocks: of each task its name, its answers as JSON, and the further members as JSON."""
    found: dict[tuple[str, int], list[list[str]]] = defaultdict(list)
    for entry, number, task_id, answers, verdicts, grounds, points in subjects.of(blocks).rows("drilldown/sections"):
        more = f'"verdicts":{verdicts},"grounds":{grounds},"points":{points}'
        of_task = json.dumps(dict(sorted(replies.get((entry, task_id), {}).items())), ensure_ascii=False)
        found[entry, number].append([task_key(task_id), f'{more},"replies":{of_task}', *answers])
    return found


def _write(site: Site, block: Block, sections: Iterable[Sequence[str]]) -> None:
    tasks = (f'"{key}":{{"answers":[{",".join(map(_with_html, answers))}],{more}}}' for key, more, *answers in sections)
    write_packed(site, block.name, f"{{{','.join(tasks)}}}".encode("utf-8", "surrogatepass"))


def _with_html(answer: str) -> str:
    """Return an answer with its text as HTML right behind the text, where compression finds them alike."""
    text = json.loads(answer)["text"]
    html = None if text is None else as_html(text)
    return f'{answer[:-1]},"html":{json.dumps(html, ensure_ascii=False)}}}'
