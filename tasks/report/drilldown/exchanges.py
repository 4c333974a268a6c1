"""What judges were sent and what they answered: the templates of prompts, and the replies that the ledger keeps.

A page fills a template itself (`assets/answers.js`), so that a prompt needs no room. Replies are in files of their own,
which a page loads when somebody asks for one. They are read for the sections that are made again and for no others,
until the ledger deletes replies: then all are read again, so that the report has none that the ledger has not.
"""

import json
import zlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tasks.console import notice
from tasks.figures.scope import task_key
from tasks.llm.ledger.files import deletion_mark
from tasks.llm.ledger.ledger import KeptReply, kept_replies
from tasks.prompts import shipped_templates
from tasks.report.drilldown.packing import handed_over, unpacked, write_data
from tasks.report.drilldown.subjects import Subjects
from tasks.report.drilldown.task_files import Names, Wanted
from tasks.report.rendering.site import Site
from tasks.rules.errors import PipelineError
from tasks.rules.verdict import BINARY, TERNARY, reminder
from tasks.run.judgings import hash_of_template, judgings
from tasks.run.run_context import LEDGER

_MOST_VERDICTS = 200_000
"""Of more verdicts only the replies of those that failed are in a report: reading all takes long, and much room."""
_STATE = "replies"
"""The file that says which replies the report has, and of which ledger; it is there only if they could all be read."""

Exchange = list[Any]
"""When a judge's last reply came (wall-clock time), and the reply; where that came after a reminder, the one before."""


def write_templates(subjects: Subjects, site: Site) -> None:
    """Write what prompts are made of: the templates of the judgings, and the reminder by the steps of a grading."""
    used = {each["template_hash"] for each in subjects.judgings}
    job, benchmark = subjects.edition.job, subjects.edition.benchmark
    texts = (*shipped_templates(), *(each.template for each in judgings(job, benchmark)))
    content = {key: text for text in texts if (key := hash_of_template(text, benchmark)) in used}
    reminders = {"2": reminder(BINARY), "3": reminder(TERNARY)}
    write_data(site, "templates", {"templates": content, "reminders": reminders})


def write_replies(subjects: Subjects, wanted: Wanted, to_make: Names, site: Site) -> set[str]:
    """Write the judges' replies task by task, before the sections that are made again; the ids of tasks with replies.

    Args:
        subjects: whose verdicts the replies are on.
        wanted: the sections of each task.
        to_make: those that are to be made; of the others the replies stay as they are in the report.
        site: where to.
    """
    is_all = subjects.edition.reader.value("select count(*) from verdicts") <= _MOST_VERDICTS
    # Before the replies: what is deleted while they are read leaves the next report.
    state = {"is_all": is_all, "deletion_mark": deletion_mark(subjects.edition.job.warehouse / LEDGER)}
    is_usable = _known(site, _STATE) == state
    known = {task_id: _known(site, _name(task_id)) if is_usable else None for task_id in wanted}
    unknown: Names = {task_id: set(wanted[task_id]) for task_id, replies in known.items() if replies is None}
    lacking = to_make | unknown
    try:
        found = _read(subjects, lacking, is_all=is_all)
    except (PipelineError, OSError) as error:
        notice(f"the report has no replies of judges: {error}")
        return set()
    replied = set()
    for task_id, sections in wanted.items():
        stays = sections.keys() - lacking.get(task_id, set())
        kept = {place: each for place, each in (known[task_id] or {}).items() if place.partition(" ")[0] in stays}
        replies = dict(sorted((kept | found.get(task_id, {})).items()))
        if not replies:
            continue
        replied.add(task_id)
        if replies == known[task_id]:
            site.keep(f"data/{_name(task_id)}.js")
        else:
            write_data(site, _name(task_id), replies)
    write_data(site, _STATE, state)
    return replied


def _name(task_id: str) -> str:
    return f"replies-{task_key(task_id)}"


def _known(site: Site, name: str) -> dict[str, Any] | None:
    """What a file of the report holds: nothing if there was none; None where it is not there any more, or broken."""
    path = f"data/{name}.js"
    if not site.had(path):
        return {}
    try:
        content: dict[str, Any] = json.loads(unpacked(handed_over((site.folder / path).read_text("ascii"))[1]))
    except (OSError, ValueError, TypeError, zlib.error):
        return None
    return content


def _read(subjects: Subjects, names: Names, *, is_all: bool) -> dict[str, dict[str, Exchange]]:
    """Task -> place of a verdict -> what the ledger has of it, of the named sections."""
    found: dict[str, dict[str, Exchange]] = defaultdict(dict)
    folder = subjects.edition.job.warehouse / LEDGER
    keys = {name for of_task in names.values() for name in of_task}
    alone = replace(subjects, entries=tuple(entry for entry in subjects.entries if entry["key"] in keys))
    if not alone.entries or not folder.is_dir():
        return found
    rows = [
        row for row in alone.rows("drilldown/asked_verdicts", tasks=list(names), is_all=is_all)
        if row[1] in names[row[0]]
    ]  # fmt: skip
    by_verdict: dict[str, list[KeptReply]] = defaultdict(list)
    with kept_replies(folder) as kept:
        for reply in kept.made_for({verdict_id for row in rows for verdict_id in row[-1]}):
            by_verdict[reply.cell].append(reply)
    for task_id, *place, is_older, position, is_in_chunks, own, verdict_ids in rows:
        replies = [reply for verdict_id in verdict_ids for reply in by_verdict.get(verdict_id, ())]
        if replies:
            name = " ".join(map(str, (*place, position, *(["older"] if is_older else []))))
            found[task_id][name] = _exchange(replies, own, is_in_chunks=is_in_chunks)
    return found


def _exchange(replies: Sequence[KeptReply], own: str, *, is_in_chunks: bool) -> Exchange:
    """The last reply, and the one before it where that could not be read.

    The last one that was made for the verdict itself (`own`) counts, else that of another verdict with this call. An
    answer that was judged in chunks takes many calls; of those only the last, with the verdict, is here.
    """
    ordered = sorted(replies, key=lambda reply: (reply.finished_at_s, reply.attempt))
    last = next((reply for reply in reversed(ordered) if reply.cell == own), ordered[-1])
    ordered = ordered[: ordered.index(last) + 1]
    # A later program may send other parameters: what was asked before then has nothing to do with this reply.
    asked = [reply for reply in ordered if reply.parameters == last.parameters]
    firsts = [reply for reply in asked if reply.call_key == asked[0].call_key]
    is_reminded = last.call_key != asked[0].call_key and not is_in_chunks
    return [last.finished_at_s, last.text, *([firsts[-1].text] if is_reminded else [])]
