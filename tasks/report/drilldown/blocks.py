"""The subjects of the drill-down, and data files with an entry's responses to a block of tasks, and
their verdicts.

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
from functools import partial
from typing import Any, NamedTuple

from isal import isal_zlib

from tasks.console import advance, notice, progress
from tasks.figures.addresses import entry_key, judge_config_key, task_key
from tasks.figures.scope import Scope, Table, entry_table, judge_config_table
from tasks.llm.ledger.files import deletion_mark
from tasks.llm.ledger.ledger import KeptReply, kept_replies
from tasks.report.drilldown.markdown import as_html
from tasks.report.rendering.program import hash_of_program
from tasks.report.rendering.site import Site
from tasks.rules.errors import PipelineError
from tasks.rules.verdict import TERNARY, TERNARY_AS_BINARY
from tasks.run.run_context import LEDGER

Row = Mapping[str, Any]
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
    "no_response": "n",
    "not_judged": "-",
    "unknown": "?",
}
"""Every status of a verdict, and its letter in the list of all verdicts; `unknown` stands for any
other.
"""


class Block(NamedTuple):
    """The responses of an entry to a block of tasks: the number of the block, and the name of their
    data file.
    """

    entry: str
    number: int
    name: str


@dataclass(frozen=True)
class Subjects:
    """The entries and judge configurations of a scope, and earlier vintages of its models, each
    named by `key`.
    """

    scope: Scope
    entries: Sequence[Row]
    judge_configs: Sequence[Row]

    def rows(
        self, name: str, blocks: Sequence[Block] | None = None, **given: Any
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query, of all entries or of those of some blocks, which are
        `wanted`.
        """
        keys = {block.entry for block in blocks or ()}
        entries = [entry for entry in self.entries if blocks is None or entry["key"] in keys]
        # Queries name entries and judge configurations by their keys.
        parameters = {
            "entries": entry_table(entries, label="key"),
            "shown_judge_configs": judge_config_table(self.judge_configs, label="key"),
            "wanted": Table(
                {"entry": "varchar", "block": "integer"},
                [(block.entry, block.number) for block in blocks or ()],
            ),
            "marks": Table({"status": "varchar", "mark": "varchar"}, [*STATUSES.items()]),
            "lost": STATUSES["no_response"],
            "unknown": STATUSES["unknown"],
        }
        return self.scope.reader.table(self.scope.filled(name, {**parameters, **given}))[1]


def subjects_of(scope: Scope, also: Sequence[Row] = ()) -> Subjects:
    """Return the subjects of a scope; `also` are earlier vintages, only for comparison."""
    entries = {entry_key(entry): {**entry, "is_also": False} for entry in scope.entries}
    for entry in also:
        entries.setdefault(entry_key(entry), {**entry, "is_also": True})
    labels = Counter(entry["entry"] for entry in entries.values())
    for key, entry in entries.items():
        # The label of an earlier vintage includes the vintage if several entries have the same
        # label.
        has_vintage = entry["is_also"] and labels[entry["entry"]] > 1
        entry |= {
            "key": key,
            "entry": f"{entry['entry']} {entry['vintage']}" if has_vintage else entry["entry"],
        }
    # `scale` is the number of values of a decision; `reads` is the key of the ternary judge that is
    # read as binary.
    judge_configs = [
        {
            **each,
            "key": judge_config_key(each),
            "scale": 3 if each["grading"] == TERNARY else 2,
            "reads": (
                judge_config_key({**each, "grading": TERNARY})
                if each["grading"] == TERNARY_AS_BINARY
                else None
            ),
        }
        for each in scope.judge_configs
    ]
    return Subjects(scope, [*entries.values()], judge_configs)


_HEX = 16


def data_file(name: str) -> str:
    """Return the path of a data file in a report."""
    return f"data/{name}.js"


def write_packed(site: Site, name: str, content: bytes) -> None:
    """Write JSON, compressed, as a script that passes it to the page under this name."""
    # Level 1 (of 0 to 3) is five times as fast as the fastest level of zlib, with a sixth fewer
    # bytes. 31 selects the gzip format; no time stamp is written, so the same content gives the
    # same bytes.
    packed = base64.b64encode(isal_zlib.compress(content, 1, 31)).decode("ascii")
    site.write(data_file(name), f'prbench.give("{name}","{packed}");\n')


def write_data(site: Site, value: Any, name: str | None = None) -> str:
    """Write a value into a data file and return its name: the given one, or a hash of the
    content.
    """
    content = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )
    hashed = hashlib.blake2b(content, digest_size=_HEX // 2).hexdigest()
    if name or not site.keep(data_file(hashed)):
        write_packed(site, name or hashed, content)
    return name or hashed


_MOST_VERDICTS = 200_000
"""With more verdicts than this, a report has the replies of failed ones only: all replies would
take long to read, and much space.
"""

Replies = Mapping[tuple[str, str], Mapping[str, Sequence[str]]]
"""Entry and task -> key of a verdict -> the judge's last reply, and the first one too if it led to
a reminder.
"""
_AT_ONCE = 64
"""Number of files whose rows are read at once: all blocks of an entry, because the database stores
an entry's responses together, and unpacks all their texts to find some of them.
"""


def write_blocks(subjects: Subjects, site: Site) -> list[Block]:
    """Write the files that do not exist yet, and return all blocks."""
    # What decides which replies a report has, as query parameters; read before the replies.
    is_all = subjects.scope.reader.value("select count(*) from verdicts") <= _MOST_VERDICTS
    state = {
        "is_all": is_all,
        "replies": f"{is_all} {deletion_mark(subjects.scope.job.warehouse / LEDGER)}",
    }
    blocks = _blocks(subjects, state)
    replies = read_replies(subjects, _missing(blocks, site), state)
    if (
        replies is None
    ):  # other names, so that the next report writes these files again, with the replies
        blocks = _blocks(subjects, {**state, "replies": "not read"})
        replies = {}
    missing = _missing(blocks, site)
    is_quiet = subjects.scope.job.is_quiet
    with (
        progress("report files", {"": len(missing)}, is_quiet=is_quiet),
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        for start in range(0, len(missing), _AT_ONCE):
            batch = missing[start : start + _AT_ONCE]
            sections = _sections(subjects, batch, replies)
            for _ in pool.map(partial(_write, site, sections), batch):
                advance("report files", succeeded=True)
    return blocks


def _blocks(subjects: Subjects, state: Mapping[str, Any]) -> list[Block]:
    return [
        Block(*row)
        for row in subjects.rows("report/drilldown/blocks", program=hash_of_program(), **state)
    ]


def _missing(blocks: Iterable[Block], site: Site) -> list[Block]:
    return [block for block in blocks if not site.keep(data_file(block.name))]


def _sections(
    subjects: Subjects, blocks: Sequence[Block], replies: Replies
) -> dict[tuple[str, int], list[list[str]]]:
    """Return the rows of some blocks: for each task its key, further members as JSON, and its
    responses as JSON.
    """
    sections: dict[tuple[str, int], list[list[str]]] = defaultdict(list)
    for entry, number, task_id, responses, verdicts, points in subjects.rows(
        "report/drilldown/sections", blocks
    ):
        more = f'"verdicts":{verdicts},"points":{points}'
        of_task = json.dumps(
            dict(sorted(replies.get((entry, task_id), {}).items())), ensure_ascii=False
        )
        sections[entry, number].append(
            [task_key(task_id), f'{more},"replies":{of_task}', *responses]
        )
    return sections


def _write(site: Site, sections: dict[tuple[str, int], list[list[str]]], block: Block) -> None:
    tasks = []
    # `pop`, so that the rows of a block are freed as soon as they are written.
    for key, more, *responses in sections.pop((block.entry, block.number), ()):
        texts = (json.loads(response)["text"] for response in responses)
        html = (
            json.dumps(None if text is None else as_html(text), ensure_ascii=False)
            for text in texts
        )
        # A response's HTML directly follows its text, because similar texts compress better side by
        # side.
        joined = ",".join(
            f'{response[:-1]},"html":{each}}}'
            for response, each in zip(responses, html, strict=True)
        )
        tasks.append(f'"{key}":{{"responses":[{joined}],{more}}}')
    write_packed(site, block.name, f"{{{','.join(tasks)}}}".encode("utf-8", "surrogatepass"))


def read_replies(
    subjects: Subjects, blocks: Sequence[Block], state: Mapping[str, Any]
) -> Replies | None:
    """Return the judges' replies on the responses of some blocks; None if the ledger cannot be
    read.
    """
    folder = subjects.scope.job.warehouse / LEDGER
    if not blocks or not folder.is_dir():
        return {}
    rows = subjects.rows("report/drilldown/verdicts_with_replies", blocks, is_all=state["is_all"])
    by_verdict: dict[str, list[KeptReply]] = defaultdict(list)
    try:
        with kept_replies(folder) as kept:
            for reply in kept.replies_for({verdict_id for row in rows for verdict_id in row[-1]}):
                by_verdict[reply.cell].append(reply)
    except (PipelineError, OSError) as error:
        notice(f"the report has no replies of judges: {error}")
        return None
    exchanges: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(dict)
    for entry, task_id, *key, is_older, is_in_chunks, own, verdict_ids in rows:
        replies = [reply for verdict_id in verdict_ids for reply in by_verdict.get(verdict_id, ())]
        if replies:
            name = " ".join(map(str, (*key, *(["older"] if is_older else []))))
            exchanges[entry, task_id][name] = _exchange(replies, own, is_in_chunks=is_in_chunks)
    return exchanges


def _exchange(replies: Sequence[KeptReply], own: str, *, is_in_chunks: bool) -> list[str]:
    """Return the last reply; after a reminder, also the reply that could not be parsed.

    The last reply is that of the verdict itself (`own`) if there is one, else that of another
    verdict with the same call. Of a response that was judged in chunks, only the last call, which
    gave the verdict, is shown.
    """
    ordered = sorted(replies, key=lambda reply: (reply.finished_at_s, reply.attempt))
    last = next((reply for reply in reversed(ordered) if reply.cell == own), ordered[-1])
    ordered = ordered[: ordered.index(last) + 1]
    # Replies to a request with other parameters, as an earlier version may have sent, are left out.
    of_same_request = [reply for reply in ordered if reply.parameters == last.parameters]
    firsts = [reply for reply in of_same_request if reply.call_key == of_same_request[0].call_key]
    is_reminded = last.call_key != of_same_request[0].call_key and not is_in_chunks
    return [last.text, *([firsts[-1].text] if is_reminded else [])]
