"""Making rows of a log: responses, verdicts, and what does not fit."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tasks.benchmarks.rows import as_text
from tasks.config.job import Job
from tasks.imports.criteria import Criteria
from tasks.imports.files import ImportRefused, NotHere, origin_of, refuse_conflict
from tasks.imports.responses import response_cell
from tasks.imports.results.labels import Labels
from tasks.imports.results.matching import Matched, Tasks, matched
from tasks.imports.results.records import Answer, Decision, Grading, Log
from tasks.imports.verdicts import verdict_cell
from tasks.llm import EMPTY, OK, PROVIDER_ERROR
from tasks.rules.text.characters import count_alphanumeric, one_line, shows_nothing
from tasks.rules.verdict import BINARY, TERNARY, VALUES

Row = dict[str, Any]
_STATUS = {value: status for status, value in VALUES.items()}
_NAMED = 3


@dataclass(frozen=True)
class Scored:
    """The scores that a harness made of a judge's decisions on an answer, and what may make ours differ."""

    answer: Answer
    grading: Grading
    response: Row
    judge: str
    other_weights: int


@dataclass
class Made:
    """The rows of a log by their ids, and what could not be made into one."""

    batch: str
    log: Log
    responses: dict[str, Row] = field(default_factory=dict)
    verdicts: dict[str, Row] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    unfit: list[str] = field(default_factory=list)
    scored: list[Scored] = field(default_factory=list)
    n_given: Counter[str] = field(default_factory=Counter)

    @cached_property
    def grading(self) -> str:
        """How the log grades: in three steps if any decision is half."""
        given = (each for answer in self.log.answers for grading in answer.gradings for each in grading.decisions)
        return TERNARY if any(each.value == VALUES["partial"] for each in given) else BINARY

    def refuse_unfit(self, path: Path, *, skip_unknown: bool) -> None:
        """Refuse a log of which something does not fit, unless that is to be left out.

        Raises:
            ImportRefused: something does not.
        """
        if self.unfit and not skip_unknown:
            more = f", and {len(self.unfit) - 1} more of {path}" if len(self.unfit) > 1 else ""
            raise ImportRefused(f"{self.unfit[0]}{more} (--skip-unknown skips such rows)")
        if not self.responses:
            raise ImportRefused(f"{path}: has no answer on this data set; check --benchmark and what is ingested")

    def take_places(self, responses: dict[str, Row], verdicts: dict[str, Row]) -> None:
        """Leave out what is stored already, and add the rest to what is known.

        Raises:
            ImportRefused: something else is stored in a place.
        """
        for kept, known, what, column in (
            (self.responses, responses, "response", "text"), (self.verdicts, verdicts, "verdict", "value"),
        ):  # fmt: skip
            self.n_given[what] = len(kept)
            for place, row in list(kept.items()):
                before = known.get(place)
                if before is not None:
                    _refuse_other(self.places[place], what, row, before, column, self.batch)
                    if _is_known_failure(row, before, column):
                        self.n_given["known failure"] += 1
                        del kept[place]
                        continue
                    if before[column] is not None or row[column] is None:
                        del kept[place]
                        continue
                known[place] = row


def _refuse_other(where: str, what: str, row: Row, known: Mapping[str, Any], column: str, batch: str) -> None:
    """Refuse a row if another one is known in its place; a failure gives way to a decision and never replaces one."""
    if row[column] is not None:
        named = f"model {row['model']}, trial {row['trial']}"
        judge = f", judge {row['judge']}" if "judge" in row else ""
        refuse_conflict(where, what, row[column], known[column], f"{named}{judge}, {origin_of(known, batch)}")


def _is_known_failure(row: Row, known: Mapping[str, Any], column: str) -> bool:
    """Whether a call is known to have failed, and a tool that may store a failure as a decision has one here."""
    return known[column] is None and row[column] is not None and bool(row.get("may_hide_failures"))


def made_of(
    job: Job, key: dict[str, str], batch: str, log: Log, labels: Labels, tasks: Tasks, criteria: Criteria
) -> Made:
    """The rows of a log."""
    made = Made(batch, log)
    for answer in log.answers:
        try:
            known, text = tasks.of(answer)
        except NotHere as error:
            made.unfit.append(str(error))
            continue
        cell = response_cell(
            job, key, known.task_id, known.conversation, labels.model(answer.model), answer.trial or 1, job.vintage
        )
        response = cell | _present(answer.usage, cell) | _said(answer, text) | {"import_batch": batch}
        _put(made, made.responses, "response", "text", response["response_id"], answer.where, response)
        is_read = [
            _add_grading(made, job, answer, grading, response, labels.judge(grading.judge), criteria)
            for grading in answer.gradings
        ]
        made.n_given["no criteria"] += bool(is_read) and not any(is_read) and response["text"] is not None
    return made


def _present(usage: Mapping[str, Any], row: Mapping[str, Any]) -> Row:
    """Those columns on a call that a log states and the row has."""
    return {name: value for name, value in usage.items() if value is not None and name in row}


def _said(answer: Answer, text: str | None) -> Row:
    """What an answer says, or the failure in its place."""
    status, error = answer.status, answer.error
    if text is not None and text.strip() in answer.failure_texts:
        status, error = answer.failure_texts[text.strip()], f"the harness stored {text.strip()!r}"
    if status is None and text is not None and shows_nothing(text):
        status = EMPTY
    stored = as_text(text)
    if status is not None or stored is None:
        cause = one_line(error) if error else None
        return {"status": status or PROVIDER_ERROR, "text": None, "chars_alnum": None, "error": cause}
    return {"status": OK, "text": stored, "chars_alnum": count_alphanumeric(stored), "error": None}


def _add_grading(
    made: Made, job: Job, answer: Answer, grading: Grading, response: Row, judge: str, criteria: Criteria
) -> bool:
    """Add the verdicts of a grading; False if it names no criterion, so that its scores are of something else."""
    found = list(matched(criteria, answer.where, response["task_id"], grading.decisions))
    if not found:
        return False
    made.unfit += [str(each) for each in found if isinstance(each, NotHere)]
    fitting = [each for each in found if isinstance(each, Matched)]
    n_other = sum(each.has_other_weight for each in fitting)
    made.scored.append(Scored(answer, grading, response, judge, n_other))
    made.n_given["other weight"] += n_other
    if response["text"] is None:
        made.n_given["on no response"] += len(fitting)
        return True
    for each in fitting:
        cell = verdict_cell(job, response, each.wording, judge, grading.judge_trial, made.grading)
        row = (
            cell | _decided(each.decision, grading) | _present(each.decision.usage, cell) | {"import_batch": made.batch}
        )
        _put(made, made.verdicts, "verdict", "value", row["verdict_id"], answer.where, row)
    return True


def _decided(decision: Decision, grading: Grading) -> Row:
    value = decision.value
    return {
        "may_hide_failures": grading.may_hide_failures,
        "status": decision.status if value is None else _STATUS[value],
        "value": value,
        "explanation": as_text(decision.explanation),
        "error": one_line(decision.error) if value is None and decision.error else None,
    }


def _put(made: Made, rows: dict[str, Row], what: str, column: str, place: str, where: str, row: Row) -> None:
    """Put a row in its place of the log, in which another one may stand that says the same."""
    if place in rows:
        _refuse_other(where, what, row, rows[place], column, made.batch)
        if _is_known_failure(row, rows[place], column):
            made.n_given["known failure"] += 1
            return
        if row[column] is None:
            return
    made.places[place] = where
    rows[place] = row


def unfit_lines(made: Made) -> list[str]:
    """What was left out, counted, with the first few."""
    if not made.unfit:
        return []
    more = f" and {len(made.unfit) - _NAMED} more" if len(made.unfit) > _NAMED else ""
    return [f"{len(made.unfit)} rows skipped: {'; '.join(made.unfit[:_NAMED])}{more}"]
