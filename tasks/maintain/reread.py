"""Reread: the stored verdicts and answers that an earlier parser read otherwise than today's, put right without a call.

Once in the life of a warehouse for each version of the parser (`rules/rereading.py`), by the next command that writes.
Rows are compared with the raw replies in the ledger. One that came of another reading is replaced where it stands, with
the status that it should have had: failures are retried as usual. A verdict on an answer whose text changes belongs to
no answer any more and is removed, so that the next `judge` makes it again.

A kill at any instant is made good by the next command: what a table needs follows from the ledger and from tables that
are changed after it, and that all is done is noted last.
"""

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

import sql
from tasks.config import Job
from tasks.console import notice
from tasks.llm import EMPTY, OK, KeptReplies, KeptReply, Ledger, kept_replies
from tasks.rules.conversation import NOTHING_SHOWN, final_text
from tasks.rules.evidence import parse_evidence
from tasks.rules.rereading import PARSER_VERSION, JudgeReplies, answer_again, may_differ
from tasks.rules.text.characters import count_alphanumeric, one_line
from tasks.rules.verdict import DECIDED, PARSE_ERROR, Verdict, parse_verdict
from tasks.run import LEDGER, judge_target, target_of
from warehouse import TABLES, StoredRows, Warehouse

Row = dict[str, Any]
Changes = dict[tuple[Any, ...], Row | None]
_OTHER_EVIDENCE = "its evidence is read otherwise now, so it has to be judged again"
_TABLES = ("responses", "verdicts", "control_verdicts", "evidence", "control_set")


@dataclass
class _Found:
    """What rereading came to: the changes of each table, and how many rows were looked at or could not be."""

    changes: dict[str, Changes] = field(default_factory=lambda: {name: {} for name in _TABLES})
    n_rows: dict[str, int] = field(default_factory=dict)
    n_without_reply: int = 0
    n_on_other_answers: int = 0
    used: list[tuple[str, int]] = field(default_factory=list)

    def change(self, table_name: str, row: Row, other: Row | None) -> None:
        """Note what takes the place of a row."""
        table = TABLES[table_name]
        key = tuple(row[column] for column in table.key)
        self.changes[table_name][key] = None if other is None else {name: other[name] for name in table.columns}


@dataclass(frozen=True)
class _Work:
    """Rows of a table that may have been read otherwise, each with the replies of its call, oldest first."""

    rows: Sequence[Row]
    replies: Mapping[Any, Sequence[KeptReply]]

    def texts(self, row: Row) -> list[str]:
        """The replies that a row rests on."""
        return [reply.text for reply in self.replies[row["call"]]]


def reread(job: Job) -> None:
    """Bring what is stored up to today's parser, unless it is; says in one line what came of it.

    Raises:
        PipelineError: a file of the ledger cannot be read.
        WarehouseError: a part cannot be read, or the disk refuses.
    """
    warehouse = Warehouse(job.warehouse)
    if warehouse.parser >= PARSER_VERSION:
        return
    with warehouse.only_one("reread", wait=True):
        if warehouse.parser >= PARSER_VERSION:
            return
        if any(map(warehouse.store.parts, ("responses", "verdicts"))):
            _reread(job, warehouse)
            # Until it is noted, damage that is mended from an older database is read again.
            warehouse.publish()
        warehouse.note_parser(PARSER_VERSION)


def _reread(job: Job, warehouse: Warehouse) -> None:
    found = _Found()
    (job.warehouse / LEDGER).mkdir(exist_ok=True)
    with kept_replies(job.warehouse / LEDGER) as kept, warehouse.stored_rows(*_TABLES) as stored:
        # Whatever a row rests on is changed after it, so that a second try finds the same.
        _lend_cells(kept, stored)
        _answers(_work(found, kept, stored, "answers"), found, _omitting(job))
        for name in ("verdicts", "control_verdicts"):
            _verdicts(_work(found, kept, stored, name), found, stored, name, _omitting(job))
        n_changed = {name: len(found.changes[name]) for name in ("responses", "verdicts", "control_verdicts")}
        _control_set(found, stored)
        _on_other_answers(found, stored)
    for name in ("control_set", "control_verdicts", "verdicts", "evidence", "responses"):
        warehouse.rewrite(name, found.changes[name])
    _mark_used(job, found)
    _log_result(found, n_changed)


def _omitting(job: Job) -> frozenset[str]:
    """The configurations whose server omits the tag that opens thinking."""
    models = [target_of(model).config_hash for model in job.settings.models if model.omits_think_tag]
    judges = [judge_target(judge).config_hash for judge in job.settings.judges if judge.omits_think_tag]
    return frozenset([*models, *judges])


def _lend_cells(kept: KeptReplies, stored: StoredRows) -> None:
    """Have the rows that the ledger has replies for as a table, with whether one of these may be read otherwise."""
    cells: dict[str, bool] = {}
    for reply in kept:
        cells[reply.cell] = cells.get(reply.cell, False) or may_differ(reply.text)
    types = {"cell": pa.string(), "may_differ": pa.bool_()}
    stored.lend("replies", pa.table([list(cells), list(cells.values())], pa.schema(types)))


def _query(name: str) -> str:
    return sql.read(f"questions/maintain/reread/{name}")


def _work(found: _Found, kept: KeptReplies, stored: StoredRows, what: str) -> _Work:
    """The rows to look at closely, and their replies; counts the others."""
    steps = {"looked_at": _query(what), "reread_rows": _query("rows")}
    counted = stored.rows(sql.with_steps(_query("counts"), steps))[0]
    found.n_rows[what] = counted["n_rows"]
    found.n_without_reply += counted["n_lost"]
    rows = stored.rows(sql.with_steps(_query("doubtful_rows"), steps))
    call_of = {row["cell"]: row["call"] for row in rows}
    replies: dict[Any, list[KeptReply]] = defaultdict(list)
    for reply in kept if rows else ():
        if reply.cell in call_of:
            replies[call_of[reply.cell]].append(reply)
    return _Work(rows, {call: sorted(of, key=lambda reply: reply.finished_at_s) for call, of in replies.items()})


def _answers(work: _Work, found: _Found, omitting: frozenset[str]) -> None:
    for row in work.rows:
        read = partial(final_text, omits_think_tag=row["model_config_hash"] in omitting)
        text = answer_again(row["text"], list(map(read, work.texts(row))))
        if text is None:
            continue
        if text:
            other = {"status": OK, "error": None, "text": text, "chars_alnum": count_alphanumeric(text)}
        else:
            other = {"status": EMPTY, "error": NOTHING_SHOWN, "text": None, "chars_alnum": None}
        found.change("responses", row, row | other)
        if not text:
            found.used += [(reply.call_key, reply.attempt) for reply in work.replies[row["call"]]]


def _verdicts(work: _Work, found: _Found, stored: StoredRows, table_name: str, omitting: frozenset[str]) -> None:
    evidence = _evidence_of(stored, [row["verdict_id"] for row in work.rows])
    for row in work.rows:
        omits = row["judge_config_hash"] in omitting
        as_verdict = partial(parse_verdict, grading=row["grading"], omits_think_tag=omits)
        replies = JudgeReplies.of(work.texts(row), as_verdict, partial(parse_evidence, omits_think_tag=omits))
        chunks = evidence.get(row["verdict_id"], [])
        decided = [chunk for chunk in chunks if chunk["status"] == OK]
        is_lost = replies.lost_evidence([tuple(chunk["evidence"]) for chunk in decided])
        for chunk in itertools.compress(decided, is_lost):
            other = {"status": PARSE_ERROR, "evidence": None, "error": one_line(replies.cause or "")}
            found.change("evidence", chunk, chunk | other)
        again = _again(row, replies, any(is_lost), any(chunk["status"] == PARSE_ERROR for chunk in chunks))
        if again is not None:
            found.change(table_name, row, row | again)
            calls = {reply.call_key for reply in work.replies[row["call"]]}
            if again["status"] == PARSE_ERROR and not chunks and len(calls) > 1:
                # It was asked for once more already. Where it was not, the first reply stays, and that is what comes.
                found.used += [(reply.call_key, reply.attempt) for reply in work.replies[row["call"]]]


def _again(row: Row, replies: JudgeReplies, has_lost: bool, has_failed: bool) -> Row | None:
    """What of a verdict changes; None if nothing."""
    is_decided = row["status"] in DECIDED
    # A failed chunk may be of an earlier try, so it takes no decision away; but it gives none either.
    if not is_decided and (has_lost or has_failed):
        return None
    before = Verdict(row["status"], row["value"], row["explanation"] or "") if is_decided else None
    outcome = _OTHER_EVIDENCE if has_lost else replies.again(before)
    if outcome is None:
        return None
    if isinstance(outcome, str):
        return {"status": PARSE_ERROR, "value": None, "explanation": None, "error": one_line(outcome)}
    return {"status": outcome.status, "value": outcome.value, "explanation": outcome.explanation, "error": None}


def _evidence_of(stored: StoredRows, verdict_ids: list[str]) -> dict[str, list[Row]]:
    """The evidence of some verdicts, those failed too."""
    stored.lend("asked", pa.table({"verdict_id": pa.array(verdict_ids, pa.string())}))
    found: dict[str, list[Row]] = defaultdict(list)
    for row in stored.rows("select * from evidence where verdict_id in (select verdict_id from asked)"):
        found[row["verdict_id"]].append(row)
    return found


def _control_set(found: _Found, stored: StoredRows) -> None:
    """The first values of control sets that were read otherwise; a member without one is none."""
    values = {key[0]: row["value"] for key, row in found.changes["verdicts"].items() if row is not None}
    for row in stored.rows("select * from control_set") if values else ():
        if row["verdict_id"] in values:
            value = values[row["verdict_id"]]
            found.change("control_set", row, None if value is None else row | {"first_value": value})


def _on_other_answers(found: _Found, stored: StoredRows) -> None:
    """Remove the verdicts on answers whose text changes, with their evidence; imported ones too."""
    if not found.changes["responses"]:
        return
    stored.lend("changed", pa.table({"response_id": [response_id for (response_id,) in found.changes["responses"]]}))
    for name in ("verdicts", "evidence"):
        for row in stored.rows(f"select * from {name} where response_id in (select response_id from changed)"):
            found.change(name, row, None)
            found.n_on_other_answers += name == "verdicts"


def _mark_used(job: Job, found: _Found) -> None:
    """Note that the replies behind new failures answer no later call."""
    if found.used:
        ledger = Ledger(job.warehouse / LEDGER, Warehouse(job.warehouse).why_lost)
        ledger.mark_used(found.used)
        ledger.close()


def _log_result(found: _Found, n_changed: Mapping[str, int]) -> None:
    n_verdicts = found.n_rows["verdicts"] + found.n_rows["control_verdicts"]
    n_other = n_changed["verdicts"] + n_changed["control_verdicts"]
    if not n_verdicts + found.n_rows["answers"]:
        return
    line = (
        f"stored replies were read again by a stricter parser: {n_other} of {n_verdicts} verdicts and "
        f"{n_changed['responses']} of {found.n_rows['answers']} responses changed"
    )
    if found.n_on_other_answers:
        line += (
            f"; {found.n_on_other_answers} verdicts on changed responses were removed, `prbench judge` makes them again"
        )
    if found.n_without_reply:
        line += f"; {found.n_without_reply} could not be read again, their replies are no longer in the ledger"
    notice(line)
