"""The subjects of the drill-down, and data files with responses and their verdicts.

Subjects are entries and judge configurations, with the names that queries and pages use.

One query names every file by a hash of its rows and of this program, without reading texts into
Python. An existing file is not written again, so after a night only the files of models with new
responses are written. Tasks are grouped in blocks to limit the number of files, and because the
database stores the responses of an entry together.

A file is a script, because a page that was opened from disk may not read other files. Its content
is compressed JSON in base64, which the pages decompress with `DecompressionStream`: it has a
quarter of the size of plain JSON, and cannot end a string or begin an element. The name of a file
is a hash of its content or of its inputs, so an existing file is up to date. Only the index, which
lists the other files, has a fixed name.

Judges' replies are read from the ledger only for files that are written. When the ledger deletes
replies, the names of files that could contain them change, so that no report keeps a deleted reply.
"""

import base64
import hashlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any, NamedTuple

from isal import isal_zlib

from tasks.console import advance, notice, progress
from tasks.figures.addresses import entry_key, judge_config_key, task_key
from tasks.figures.figure import Row
from tasks.figures.scope import Scope, Table, entry_table, judge_config_table
from tasks.llm.ledger.files import deletion_mark
from tasks.llm.ledger.ledger import KeptReply, opened_reader
from tasks.report.drilldown.markdown import as_html
from tasks.report.rendering.program import hash_of_program
from tasks.report.rendering.site import Site
from tasks.rules.errors import PipelineError
from tasks.rules.verdict import TERNARY, TERNARY_AS_BINARY
from tasks.run.run_context import LEDGER

STATUSES = {
    "met": "m",
    "partial": "p",
    "unmet": "u",
    "parse_error": "e",
    "refused": "r",
    "truncated": "t",
    "context_length": "c",
    "timeout": "o",
    "provider_error": "v",
    "redirected": "d",
    "too_large": "l",
    "unclear": "k",
    "no_majority": "j",
    "no_response": "n",
    "not_judged": "-",
    "unknown": "?",
}
"""Every status of a verdict, and its letter in the list of all verdicts; `unknown` stands for any
other.
"""


class Block(NamedTuple):
    """The responses of an entry to a block of tasks, and the name of their data file."""

    entry: str
    number: int
    name: str


class Section(NamedTuple):
    """The responses of an entry to a task, as JSON, with their verdicts and points."""

    entry: str
    block_number: int
    task_id: str
    responses: Sequence[str]
    verdicts: str
    points: str


@dataclass(frozen=True)
class Subjects:
    """The entries, with earlier vintages (`is_earlier`), and the judge configurations; queries and
    pages name each by its `key`.
    """

    scope: Scope
    entries: Sequence[Row]
    judge_configs: Sequence[Row]

    @cached_property
    def has_all_replies(self) -> bool:
        """True if the replies of all verdicts are shown, not only those of failed ones."""
        n_verdicts: int = self.scope.reader.value("select count(*) from verdicts")
        return n_verdicts <= _MOST_VERDICTS

    def rows(
        self,
        name: str,
        blocks: Sequence[Block] | None = None,
        **parameters: Any,
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query, of all entries, or of those of some blocks."""
        entries = self.entries
        if blocks is not None:
            keys = {block.entry for block in blocks}
            entries = [entry for entry in entries if entry["key"] in keys]
        subjects = {
            "entries": entry_table(entries, label="key"),
            "shown_judge_configs": judge_config_table(self.judge_configs, label="key"),
            "wanted": Table(
                {"entry": "varchar", "block": "integer"},
                [(block.entry, block.number) for block in blocks or ()],
            ),
            "marks": Table({"status": "varchar", "mark": "varchar"}, list(STATUSES.items())),
            "lost": STATUSES["no_response"],
            "unknown": STATUSES["unknown"],
            "is_all": self.has_all_replies,
        }
        query = self.scope.filled(name, subjects | parameters)
        return self.scope.reader.table(query)[1]


def subjects_of(scope: Scope, earlier_entries: Sequence[Row]) -> Subjects:
    """Return the subjects of a scope, with earlier vintages only for comparison (`is_earlier`)."""
    entries: dict[str, dict[str, Any]] = {}
    for row in scope.entries:
        key = entry_key(row)
        entries[key] = {**row, "key": key, "is_earlier": False}
    for earlier in earlier_entries:
        key = entry_key(earlier)
        entries.setdefault(key, {**earlier, "key": key, "is_earlier": True})
    labels = Counter(entry["entry"] for entry in entries.values())
    for entry in entries.values():
        # The label of an earlier vintage includes the vintage if several entries have the same
        # label.
        if entry["is_earlier"] and labels[entry["entry"]] > 1:
            entry["entry"] = f"{entry['entry']} {entry['vintage']}"
    judge_configs = [_described(judge_config) for judge_config in scope.judge_configs]
    return Subjects(scope, list(entries.values()), judge_configs)


def _described(judge_config: Row) -> Row:
    """Return a judge configuration with its key.

    `scale` is the number of values of a decision; `reads` is the key of the ternary judge that is
    read as binary.
    """
    grading = judge_config["grading"]
    read_key = None
    if grading == TERNARY_AS_BINARY:
        read_key = judge_config_key({**judge_config, "grading": TERNARY})
    return {
        **judge_config,
        "key": judge_config_key(judge_config),
        "scale": 3 if grading == TERNARY else 2,
        "reads": read_key,
    }


_HEX = 16
"""Length of the hash in the name of a data file."""


def data_file(name: str) -> str:
    """Return the path of a data file in a report."""
    return f"data/{name}.js"


def as_json(value: Any) -> bytes:
    """Return a value as compact JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def write_packed(site: Site, name: str, content: bytes) -> None:
    """Write JSON, compressed, as a script that passes it to the page under this name."""
    # Level 1 (of 0 to 3) is five times as fast as the fastest level of zlib, with a sixth fewer
    # bytes. 31 selects the gzip format; no time stamp is written, so the same content gives the
    # same bytes.
    packed = base64.b64encode(isal_zlib.compress(content, 1, 31)).decode("ascii")
    site.write(data_file(name), f'prbench.give("{name}","{packed}");\n')


def name_of(content: bytes) -> str:
    """Return the name of a data file: a hash of its content, or of what it is made from."""
    return hashlib.blake2b(content, digest_size=_HEX // 2).hexdigest()


def write_data(site: Site, value: Any) -> str:
    """Write a value into a data file, named by a hash of the content, and return the name."""
    content = as_json(value)
    name = name_of(content)
    if not site.keep(data_file(name)):
        write_packed(site, name, content)
    return name


_MOST_VERDICTS = 200_000
"""With more verdicts than this, a report has the replies of failed ones only: all replies would
take long to read, and much space.
"""

TaskReplies = Mapping[str, Sequence[str]]
"""Key of a verdict -> the judge's last reply, and the first one too if it led to a reminder."""
Replies = Mapping[tuple[str, str], TaskReplies]
"""Entry and task -> the replies on its verdicts."""
_FILES_AT_ONCE = 64
"""Number of files whose rows are read at once: all blocks of an entry, because the database stores
an entry's responses together, and unpacks all their texts to find some of them.
"""


def write_blocks(subjects: Subjects, site: Site) -> list[Block]:
    """Write the files that do not exist yet, and return all blocks."""
    job = subjects.scope.job
    # Read before the replies, so that a deletion in between changes the names in the next report.
    reply_state = f"{subjects.has_all_replies} {deletion_mark(job.warehouse / LEDGER)}"
    blocks = _blocks(subjects, reply_state)
    missing_blocks = _missing(blocks, site)
    replies = _read_replies(subjects, missing_blocks)
    if replies is None:
        # Other names, so that the next report writes these files again, with the replies.
        site.forget_inputs()
        blocks = _blocks(subjects, "not read")
        missing_blocks = _missing(blocks, site)
        replies = {}
    with (
        progress("report files", {"": len(missing_blocks)}, is_quiet=job.is_quiet),
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        for start in range(0, len(missing_blocks), _FILES_AT_ONCE):
            batch = missing_blocks[start : start + _FILES_AT_ONCE]
            write = partial(_write_block, site, _sections(subjects, batch), replies)
            for _ in pool.map(write, batch):
                advance("report files", succeeded=True)
    return blocks


def _blocks(subjects: Subjects, reply_state: str) -> list[Block]:
    """Return all blocks; the state of the replies is part of the names of those with replies."""
    rows = subjects.rows("report/drilldown/blocks", program=hash_of_program(), replies=reply_state)
    return [Block(*row) for row in rows]


def _missing(blocks: Iterable[Block], site: Site) -> list[Block]:
    return [block for block in blocks if not site.keep(data_file(block.name))]


def _sections(subjects: Subjects, blocks: Sequence[Block]) -> dict[tuple[str, int], list[Section]]:
    """Return the sections of some blocks, by entry and number of the block."""
    sections: dict[tuple[str, int], list[Section]] = defaultdict(list)
    for row in subjects.rows("report/drilldown/sections", blocks):
        section = Section(*row)
        sections[section.entry, section.block_number].append(section)
    return sections


def _write_block(
    site: Site,
    sections: dict[tuple[str, int], list[Section]],
    replies: Replies,
    block: Block,
) -> None:
    tasks = {}
    # `pop`, so that the rows of a block are freed as soon as they are written.
    for section in sections.pop((block.entry, block.number), ()):
        task_replies = replies.get((section.entry, section.task_id), {})
        tasks[task_key(section.task_id)] = _task_document(section, task_replies)
    write_packed(site, block.name, as_json(tasks))


def _task_document(section: Section, replies: TaskReplies) -> dict[str, Any]:
    """Return the responses of an entry to a task, as pages read them."""
    responses = []
    for content in section.responses:
        response = json.loads(content)
        # A response's HTML directly follows its text, which comes last, because similar texts
        # compress better side by side.
        text = response["text"]
        response["html"] = None if text is None else as_html(text)
        responses.append(response)
    return {
        "responses": responses,
        "verdicts": json.loads(section.verdicts),
        "points": json.loads(section.points),
        "replies": dict(sorted(replies.items())),
    }


def _read_replies(subjects: Subjects, blocks: Sequence[Block]) -> Replies | None:
    """Return the judges' replies on some blocks; None if the ledger cannot be read."""
    folder = subjects.scope.job.warehouse / LEDGER
    if not blocks or not folder.is_dir():
        return {}
    rows = subjects.rows("report/drilldown/verdicts_with_replies", blocks)
    verdicts = [JudgedVerdict(*row) for row in rows]
    verdict_ids = set(chain.from_iterable(verdict.verdict_ids for verdict in verdicts))
    replies_by_verdict: dict[str, list[KeptReply]] = defaultdict(list)
    try:
        with opened_reader(folder) as ledger:
            for reply in ledger.replies_for(verdict_ids):
                replies_by_verdict[reply.cell].append(reply)
    except (PipelineError, OSError) as error:
        notice(f"the report has no replies of judges: {error}")
        return None
    replies: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(dict)
    for verdict in verdicts:
        candidates: list[KeptReply] = []
        for verdict_id in verdict.verdict_ids:
            candidates += replies_by_verdict[verdict_id]
        if candidates:
            replies[verdict.entry, verdict.task_id][verdict.key] = _exchange(verdict, candidates)
    return replies


class JudgedVerdict(NamedTuple):
    """A verdict of a judge, and all verdicts from the same calls.

    `key` is the key of its replies in the data file of its task.
    """

    entry: str
    task_id: str
    key: str
    shows_last_call: bool
    verdict_id: str
    verdict_ids: Sequence[str]


def _exchange(verdict: JudgedVerdict, replies: Sequence[KeptReply]) -> list[str]:
    """Return the last reply; after a reminder, also the reply that could not be parsed.

    The last reply is that of the verdict itself if there is one, else that of another verdict with
    the same call. For a cascade, and for a response that was judged in chunks, only the reply of
    the last call is shown, which gave the verdict (`shows_last_call`).
    """
    replies = sorted(replies, key=lambda reply: (reply.finished_at_s, reply.attempt))
    own_replies = [reply for reply in replies if reply.cell == verdict.verdict_id]
    last_reply = (own_replies or replies)[-1]
    # Replies to a request with other parameters, as an earlier version may have sent, are left out.
    replies = replies[: replies.index(last_reply) + 1]
    replies = [reply for reply in replies if reply.parameters == last_reply.parameters]
    first_call = replies[0].call_key
    if verdict.shows_last_call or last_reply.call_key == first_call:
        return [last_reply.text]
    first_replies = [reply for reply in replies if reply.call_key == first_call]
    return [last_reply.text, first_replies[-1].text]
