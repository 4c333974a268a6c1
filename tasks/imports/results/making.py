"""Making rows of a log: which task an answer is to, which criterion a decision is on, and what does not fit.

By content, and by id where the text agrees.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import dropwhile, groupby
from pathlib import Path
from typing import Any, NamedTuple

from tasks.benchmarks.rows import as_text
from tasks.config.job import Job
from tasks.imports.criteria import Criteria, Wording
from tasks.imports.files import ImportRefused, NotHere, origin_of, refuse_conflict
from tasks.imports.responses import answered, response_cell
from tasks.imports.results.records import Answer, Decision, Grading, Log
from tasks.imports.verdicts import verdict_cell
from tasks.llm.replies import EMPTY, PROVIDER_ERROR
from tasks.rules.conversation import Message, build_messages
from tasks.rules.errors import UsageError
from tasks.rules.identity import IMPORTED, conversation_id, criterion_hash
from tasks.rules.records import Turn
from tasks.rules.text.characters import is_blank, one_line, shows_nothing
from tasks.rules.verdict import BINARY, TERNARY, VALUES
from warehouse import Reader

Row = dict[str, Any]
_ANSWERS = "assistant: "
_MODEL, _JUDGE = "{model}", "{judge}"
_STATUS = {value: status for status, value in VALUES.items()}
_TABLES = {"responses": "text", "verdicts": "value"}
"""What a log is made into -> the column that is NULL for a failure."""


class Known(NamedTuple):
    """A task of the data set: its conversation, with and without its reference texts."""

    task_id: str
    conversation: str
    messages: Sequence[Message]
    without_references: Sequence[Message]


class Tasks:
    """The tasks of a data set, refused ones too, by id and by what is asked."""

    def __init__(self, reader: Reader, key: dict[str, str]) -> None:
        """Read them; `key` is the data set's."""
        self._revision = key["dataset_revision"]
        self._by_id: dict[str, Known] = {}
        self._by_conversation: dict[str, list[Known]] = defaultdict(list)
        columns = "task_id, prompt, reference_texts, response"
        rows = reader.select("conversation_turns", columns, order="task_id, position", **key)
        for task_id, of_task in groupby(rows, key=lambda row: row["task_id"]):
            turns = [Turn(row["prompt"], tuple(row["reference_texts"]), row["response"]) for row in of_task]
            messages = build_messages(turns)
            bare = build_messages([replace(turn, reference_texts=()) for turn in turns])
            known = Known(task_id, conversation_id(messages), messages, bare)
            self._by_id[task_id] = known
            self._by_conversation[known.conversation].append(known)

    def of(self, answer: Answer) -> tuple[Known, str | None]:
        """The task that an answer is to, with the answer's text.

        Raises:
            NotHere: there is none, or it is another conversation than the one that was asked.
        """
        named = self._by_id.get(answer.task_id or "")
        if answer.transcript is None and answer.messages is not None:
            # Harnesses add a system prompt in front.
            asked = tuple(dropwhile(lambda message: message[0] == "system", answer.messages))
            found = self._by_conversation.get(conversation_id(asked), [])
            if named is not None and named not in found:
                raise _difference(answer, named, is_bare=asked == tuple(named.without_references))
            if named is None and len(found) == 1:
                return found[0], answer.text
        if named is None:
            said = f"task {answer.task_id!r}" if answer.task_id else "a task with this conversation"
            raise NotHere(f"{answer.where}: {said} is not in revision {self._revision[:12]}")
        if answer.transcript is None:
            return named, answer.text
        text = after(named.messages, answer.transcript)
        if text is None:
            is_bare = after(named.without_references, answer.transcript) is not None
            raise _difference(answer, named, is_bare=is_bare)
        return named, text


def _difference(answer: Answer, task: Known, *, is_bare: bool) -> NotHere:
    if is_bare:
        said = "was asked without its reference texts, so the answer is to another conversation"
    else:
        said = "has another conversation in this data set than in the log"
    return NotHere(f"{answer.where}: task {task.task_id} {said}")


def after(messages: Sequence[Message], transcript: str) -> str | None:
    """What follows a conversation in a text of `role: content` turns, which ends without white space."""
    asked = "".join(f"{role}: {content}\n" for role, content in messages) + _ANSWERS
    if transcript == asked.rstrip():
        return ""
    return transcript[len(asked) :] if transcript.startswith(asked) else None


def matched(
    criteria: Criteria, where: str, task_id: str, decisions: Sequence[Decision]
) -> Iterable[tuple[Decision, Wording] | NotHere]:
    """Decisions with their criteria, or why there is none; equal texts are told apart by their order, or by weight."""
    seen: Counter[str] = Counter()
    weighed = _weighed(criteria, task_id, decisions)
    for place, decision in enumerate(decisions):
        named = list(dict.fromkeys(name for name in (decision.criterion, decision.text) if name))
        seen.update(named)
        try:
            if place in weighed:
                found = _told_apart(where, task_id, named[0], weighed[place])
            elif named:
                found = _found(criteria, where, task_id, decision, [(name, seen[name]) for name in named])
            else:
                found = _at(criteria.in_order(task_id), where, decision.position, len(decisions))
        except NotHere as error:
            if not decision.is_guess:
                yield error
        else:
            yield decision, found


def _told_apart(where: str, task_id: str, text: str, found: Wording | None) -> Wording:
    if found is None:
        said = f"{where}: task {task_id} has the criterion {text[:80]!r} several times"
        raise NotHere(f"{said}, and the log does not say which decision is on which")
    return found


def _at(rubric: Sequence[Wording], where: str, place: int | None, n_decisions: int) -> Wording:
    """The criterion in a place of the rubric, where the log has as many decisions as that has criteria."""
    if len(rubric) != n_decisions or place is None:
        raise NotHere(f"{where}: the log has {n_decisions} grades, and the rubric {len(rubric)} criteria")
    return rubric[place]


def _weighed(criteria: Criteria, task_id: str, decisions: Sequence[Decision]) -> Mapping[int, Wording | None]:
    """The criteria of decisions on equal texts that are in another order than the rubric: told apart by their weights.

    Those of one weight and one value are alike. What is left cannot be told apart, and has None.
    """
    places: dict[tuple[str, float | None], list[int]] = defaultdict(list)
    for place, decision in enumerate(decisions):
        if decision.is_reordered and decision.criterion:
            places[decision.criterion.strip(), decision.weight].append(place)
    found: dict[int, Wording | None] = {}
    for (text, weight), of_weight in places.items():
        alike = criteria.alike(task_id, text)
        wordings = [wording for wording in alike if wording.weight == weight]
        are_alike = len(of_weight) == len(wordings) and len({decisions[place].value for place in of_weight}) == 1
        if len(alike) > 1:
            found |= zip(of_weight, wordings, strict=True) if are_alike else dict.fromkeys(of_weight)
    return found


def _found(
    criteria: Criteria, where: str, task_id: str, decision: Decision, named: Sequence[tuple[str, int]]
) -> Wording:
    """The criterion of the first name that is known."""
    lacking: NotHere | None = None
    for name, occurrence in named:
        try:
            found = criteria.of(where, {"task": task_id, "criterion": name, "occurrence": occurrence})
        except NotHere as error:
            lacking = lacking or error
            continue
        if decision.text is not None and criterion_hash(decision.text) != found.content_hash:
            raise NotHere(f"{where}: criterion {name!r} of task {task_id} has other words in this data set")
        return found
    raise lacking or NotHere(f"{where}: a decision names no criterion")


def refuse_labels(path: Path, log: Log, model: str | None, judge: str | None) -> None:
    """Refuse labels that cannot be; `{model}` and `{judge}` in them stand for the log's.

    Raises:
        UsageError: a label is blank, the log names no model and none is given, or one is given for several.
    """
    models = {answer.model for answer in log.answers}
    judges = {each.judge for answer in log.answers for each in answer.gradings if each.decisions}
    for given, place, named, option in ((model, _MODEL, models, "--as"), (judge, _JUDGE, judges, "--by")):
        if given is not None and is_blank(given):
            raise UsageError(f"{option} {given!r}: a label says something; write a name")
        if given is not None and place not in given and len(named) > 1:
            listed = ", ".join(sorted(map(str, named)))
            raise UsageError(f"{option} {given}: {path} has {listed}; write {place} where its name belongs")
    if any(map(is_blank, models)) and (model is None or _MODEL in model):
        raise UsageError(f"{path}: names no model; give its label with --as LABEL")
    if any(map(is_blank, judges)) and judge is not None and _JUDGE in judge:
        raise UsageError(f"{path}: names no judge; give a label without {_JUDGE} with --by")


def _label(given: str | None, place: str, named: str | None) -> str:
    """The label of a model or a judge, or an empty one."""
    label = named or "" if given is None else given.replace(place, named or "")
    return "" if is_blank(label) else label


class Scored(NamedTuple):
    """The scores that a harness made of a judge's decisions on an answer, and what may make ours differ."""

    answer: Answer
    grading: Grading
    response: Row
    judge: str
    other_weights: int


@dataclass
class Made:
    """The new rows of a log by table and id, and what could not be made into one.

    `known` are the rows by table and id that are stored or of earlier logs, to which the new ones are added; `given`
    the ids of all rows that the log has.
    """

    batch: str
    log: Log
    known: Mapping[str, dict[str, Row]]
    rows: dict[str, dict[str, Row]] = field(default_factory=lambda: {table: {} for table in _TABLES})
    given: dict[str, set[str]] = field(default_factory=lambda: {table: set() for table in _TABLES})
    unfit: list[str] = field(default_factory=list)
    scored: list[Scored] = field(default_factory=list)
    n_found: Counter[str] = field(default_factory=Counter)

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
        if not self.given["responses"]:
            raise ImportRefused(f"{path}: has no answer on this data set; check --benchmark and what is ingested")

    def put(self, table: str, where: str, identity: str, row: Row) -> None:
        """Put a row in its place, unless one that says the same is there; a decision takes the place of a failure.

        One by a tool that may store a failure as a decision does not: there the call is known to have failed.

        Raises:
            ImportRefused: something else is in its place.
        """
        column, kept = _TABLES[table], self.rows[table]
        self.given[table].add(identity)
        before = self.known[table].get(identity)
        if before is not None:
            if row[column] is None:
                return
            judge = f", judge {row['judge']}" if "judge" in row else ""
            about = f"model {row['model']}, trial {row['trial']}{judge}, {origin_of(before, self.batch)}"
            refuse_conflict(where, table.removesuffix("s"), row[column], before[column], about)
            if before[column] is None and row.get("may_hide_failures"):
                self.n_found["known failure"] += 1
                return
            if before[column] is not None and identity not in kept:
                return
        kept[identity] = self.known[table][identity] = row


def made_of(
    job: Job, key: dict[str, str], made: Made, tasks: Tasks, criteria: Criteria, *, model: str | None, judge: str | None
) -> None:
    """Make the rows of a log; `model` and `judge` are labels instead of those in it."""
    for answer in made.log.answers:
        try:
            known, text = tasks.of(answer)
        except NotHere as error:
            made.unfit.append(str(error))
            continue
        label = _label(model, _MODEL, answer.model)
        cell = response_cell(job, key, known.task_id, known.conversation, label, answer.trial or 1, job.vintage)
        response = cell | _present(answer.usage, cell) | _said(answer, text) | {"import_batch": made.batch}
        made.put("responses", answer.where, response["response_id"], response)
        is_read = [
            _add_grading(
                made, job, answer, grading, response, _label(judge, _JUDGE, grading.judge) or IMPORTED, criteria
            )
            for grading in answer.gradings
        ]
        made.n_found["no criteria"] += bool(is_read) and not any(is_read) and response["text"] is not None


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
    stored = None if status is not None else as_text(text)
    return answered(stored, status or PROVIDER_ERROR, one_line(error) if error else None)


def _add_grading(
    made: Made, job: Job, answer: Answer, grading: Grading, response: Row, judge: str, criteria: Criteria
) -> bool:
    """Add the verdicts of a grading; False if it names no criterion, so that its scores are of something else."""
    found = list(matched(criteria, answer.where, response["task_id"], grading.decisions))
    if not found:
        return False
    made.unfit += [str(each) for each in found if isinstance(each, NotHere)]
    fitting = [each for each in found if not isinstance(each, NotHere)]
    n_other = sum(decision.weight not in {None, wording.weight} for decision, wording in fitting)
    made.scored.append(Scored(answer, grading, response, judge, n_other))
    made.n_found["other weight"] += n_other
    if response["text"] is None:
        made.n_found["on no response"] += len(fitting)
        return True
    for decision, wording in fitting:
        value = decision.value
        cell = verdict_cell(job, response, wording, judge, grading.judge_trial, made.grading)
        row = cell | {
            "may_hide_failures": grading.may_hide_failures, "import_batch": made.batch, "value": value,
            "status": decision.status if value is None else _STATUS[value],
            "explanation": as_text(decision.explanation),
            "error": one_line(decision.error) if value is None and decision.error else None,
        }  # fmt: skip
        made.put("verdicts", answer.where, row["verdict_id"], row | _present(decision.usage, cell))
    return True
