"""Data files with an entry's answers to a block of tasks, and all verdicts on them.

A night's new answers of one model cost what one model costs: one query names every file by a hash of the rows that it
is made of and of this program, without reading texts into Python, and a file that exists is not made again. Tasks come
in blocks, because the database has the answers of an entry beside each other, and so that there are not too many files.

A file is a script, since a page that was opened from disk may not read files otherwise. Its content is JSON,
compressed and written in base64, which the pages take apart with `DecompressionStream`: a quarter of plain JSON, and
nothing in it that could end a string or begin an element. A file is named by a hash of what it holds or is made of, so
one that exists is as it should be. Only the index has a name of its own: by it pages find the others.
"""

import base64
import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from isal import isal_zlib

import sql
from tasks.figures.scope import task_key
from tasks.report.drilldown.markdown import as_html
from tasks.report.drilldown.replies import Replies, ledger_state, read_replies
from tasks.report.drilldown.subjects import Block, Subjects
from tasks.report.rendering.site import Site

INDEX = "index"
_GZIP = 31
"""The gzip format; without a time stamp, so that the same content gives the same bytes."""
_LEVEL = 1
"""Of 0 to 3. Five times as fast as the fastest level of zlib, for a sixth fewer bytes."""
_HEX = 16


def data_file(name: str) -> str:
    """Return the path of a data file in a report."""
    return f"data/{name}.js"


def write_packed(site: Site, name: str, content: bytes) -> None:
    """Write JSON as a script that hands it over under its name."""
    packed = base64.b64encode(isal_zlib.compress(content, _LEVEL, _GZIP)).decode("ascii")
    site.write(data_file(name), f'prbench.give("{name}","{packed}");\n')


def write_data(site: Site, value: Any, name: str | None = None) -> str:
    """Write a value into a data file, unless it exists, and return its name, by default a hash of the content."""
    content = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    hashed = hashlib.blake2b(content, digest_size=_HEX // 2).hexdigest()
    if name or not site.keep(data_file(hashed)):
        write_packed(site, name or hashed, content)
    return name or hashed


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
    """Yield blocks to read at once, as many as fit in hand, but at least one."""
    some: list[Block] = []
    for block in blocks:
        if some and block.n_answers + sum(each.n_answers for each in some) > _ANSWERS_IN_HAND:
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
    tasks = []
    for key, more, *answers in sections:
        texts = (json.loads(answer)["text"] for answer in answers)
        html = (json.dumps(None if text is None else as_html(text), ensure_ascii=False) for text in texts)
        # An answer's HTML stands right behind its text, where compression finds them alike.
        joined = ",".join(f'{answer[:-1]},"html":{each}}}' for answer, each in zip(answers, html, strict=True))
        tasks.append(f'"{key}":{{"answers":[{joined}],{more}}}')
    write_packed(site, block.name, f"{{{','.join(tasks)}}}".encode("utf-8", "surrogatepass"))
