"""What judges were sent and what they answered: the templates of prompts, and the replies that the ledger keeps.

A page fills a template itself (`assets/prompts.js`), so that a prompt needs no room. Replies are read for the files
that are made again and for no others; when the ledger deletes replies, the names of files change that could hold some,
so that the report has none that the ledger has not.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from tasks.console import notice
from tasks.llm.ledger.files import deletion_mark
from tasks.llm.ledger.ledger import KeptReply, kept_replies
from tasks.prompts import shipped_templates
from tasks.report.drilldown.subjects import Block, Subjects
from tasks.rules.errors import PipelineError
from tasks.rules.verdict import BINARY, TERNARY, reminder
from tasks.run.judgings import hash_of_template, judgings
from tasks.run.run_context import LEDGER

_MOST_VERDICTS = 200_000
"""Of more verdicts only the replies of those that failed are in a report: reading all takes long, and much room."""

Replies = Mapping[tuple[str, str], Mapping[str, Sequence[str]]]
"""Entry and task -> place of a verdict -> the judge's last reply, and where that came after a reminder the one before.
"""


def templates_of(subjects: Subjects) -> dict[str, Any]:
    """Return what prompts are made of: the templates of the judgings, and the reminder by the steps of a grading."""
    used = {each["template_hash"] for each in subjects.judgings}
    job, benchmark = subjects.scope.job, subjects.scope.benchmark
    texts = (*shipped_templates(), *(each.template for each in judgings(job, benchmark)))
    content = {key: text for text in texts if (key := hash_of_template(text, benchmark)) in used}
    return {"templates": content, "reminders": {"2": reminder(BINARY), "3": reminder(TERNARY)}}


def ledger_state(subjects: Subjects) -> dict[str, Any]:
    """Return what decides which replies a report has, for queries; to be asked for before replies are read."""
    is_all = subjects.scope.reader.value("select count(*) from verdicts") <= _MOST_VERDICTS
    return {"is_all": is_all, "replies": f"{is_all} {deletion_mark(subjects.scope.job.warehouse / LEDGER)}"}


def read_replies(subjects: Subjects, blocks: Sequence[Block], state: Mapping[str, Any]) -> Replies | None:
    """Return the replies on the answers of some blocks; None where the ledger cannot be read."""
    folder = subjects.scope.job.warehouse / LEDGER
    if not blocks or not folder.is_dir():
        return {}
    rows = subjects.of(blocks).rows("drilldown/asked_verdicts", is_all=state["is_all"])
    by_verdict: dict[str, list[KeptReply]] = defaultdict(list)
    try:
        with kept_replies(folder) as kept:
            for reply in kept.made_for({verdict_id for row in rows for verdict_id in row[-1]}):
                by_verdict[reply.cell].append(reply)
    except (PipelineError, OSError) as error:
        notice(f"the report has no replies of judges: {error}")
        return None
    found: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(dict)
    for entry, task_id, *place, is_older, is_in_chunks, own, verdict_ids in rows:
        if replies := [reply for verdict_id in verdict_ids for reply in by_verdict.get(verdict_id, ())]:
            name = " ".join(map(str, (*place, *(["older"] if is_older else []))))
            found[entry, task_id][name] = _exchange(replies, own, is_in_chunks=is_in_chunks)
    return found


def _exchange(replies: Sequence[KeptReply], own: str, *, is_in_chunks: bool) -> list[str]:
    """Return the last reply, and the one before it where that could not be read.

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
    return [last.text, *([firsts[-1].text] if is_reminded else [])]
