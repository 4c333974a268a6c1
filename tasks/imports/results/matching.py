"""Which task an answer is to, and which criterion a decision is on: by content, and by id where the text agrees."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import sql
from tasks.imports.criteria import Criteria, Wording
from tasks.imports.files import NotHere
from tasks.imports.results.records import Answer, Decision
from tasks.rules.conversation import Message, build_messages
from tasks.rules.identity import conversation_id, criterion_hash
from tasks.rules.records import Turn
from warehouse import Reader

_ANSWERS = "assistant: "


@dataclass(frozen=True)
class Known:
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
        rows = reader.rows(sql.read("questions/imports/turns"), key)
        for task_id, of_task in groupby(rows, key=lambda row: row["task_id"]):
            turns = [Turn(row["prompt"], tuple(row["reference_texts"]), row["response"]) for row in of_task]
            messages = build_messages(turns)
            bare = build_messages([replace(turn, reference_texts=()) for turn in turns])
            known = Known(task_id, conversation_id(messages), messages, bare)
            self._by_id[task_id] = known
            self._by_conversation[known.conversation].append(known)

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._by_id)

    def of(self, answer: Answer) -> tuple[Known, str | None]:
        """The task that an answer is to, with the answer's text.

        Raises:
            NotHere: there is none, or it is another conversation than the one that was asked.
        """
        if answer.transcript is not None:
            return self._of_transcript(answer, answer.transcript)
        asked = _without_system(answer.messages)
        named = self._by_id.get(answer.task_id or "")
        if asked is None:
            if named is None:
                raise self._unknown(answer)
            return named, answer.text
        found = self._by_conversation.get(conversation_id(asked), [])
        if named is not None:
            if named not in found:
                raise NotHere(f"{answer.where}: {_difference(named, tuple(asked) == tuple(named.without_references))}")
            return named, answer.text
        if len(found) != 1:
            raise self._unknown(answer)
        return found[0], answer.text

    def _of_transcript(self, answer: Answer, transcript: str) -> tuple[Known, str]:
        named = self._by_id.get(answer.task_id or "")
        if named is None:
            raise self._unknown(answer)
        text = _after(named.messages, transcript)
        if text is None:
            is_bare = _after(named.without_references, transcript) is not None
            raise NotHere(f"{answer.where}: {_difference(named, is_bare)}")
        return named, text

    def _unknown(self, answer: Answer) -> NotHere:
        said = f"task {answer.task_id!r}" if answer.task_id else "a task with this conversation"
        return NotHere(f"{answer.where}: {said} is not in revision {self._revision[:12]}")


def _difference(task: Known, is_bare: bool) -> str:
    if is_bare:
        return f"task {task.task_id} was asked without its reference texts, so the answer is to another conversation"
    return f"task {task.task_id} has another conversation in this data set than in the log"


def _without_system(messages: Sequence[Message] | None) -> Sequence[Message] | None:
    """The conversation behind a system prompt, which harnesses add."""
    if messages is None:
        return None
    place = next((place for place, (role, _) in enumerate(messages) if role != "system"), len(messages))
    return messages[place:]


def _after(messages: Sequence[Message], transcript: str) -> str | None:
    """What follows a conversation in a text of `role: content` turns, which ends without white space."""
    asked = "".join(f"{role}: {content}\n" for role, content in messages) + _ANSWERS
    if transcript == asked.rstrip():
        return ""
    return transcript[len(asked) :] if transcript.startswith(asked) else None


@dataclass(frozen=True)
class Matched:
    """A decision with the criterion that it is on."""

    decision: Decision
    wording: Wording

    @property
    def has_other_weight(self) -> bool:
        """Whether the log weighs the criterion differently."""
        stated = self.decision.weight
        return stated is not None and stated != self.wording.weight


def matched(criteria: Criteria, where: str, task_id: str, decisions: Sequence[Decision]) -> Iterable[Matched | NotHere]:
    """Decisions with their criteria, or why there is none; equal texts are told apart by their order, or by weight."""
    seen: Counter[str] = Counter()
    weighed = _weighed(criteria, where, task_id, decisions)
    for place, decision in enumerate(decisions):
        named = list(dict.fromkeys(name for name in (decision.criterion, decision.text) if name))
        seen.update(named)
        try:
            if place in weighed:
                found = weighed[place]
                if isinstance(found, NotHere):
                    raise found
            elif named:
                found = _found(criteria, where, task_id, decision, [(name, seen[name]) for name in named])
            else:
                found = _at(criteria.in_order(task_id), where, decision.position, len(decisions))
        except NotHere as error:
            if not decision.is_guess:
                yield error
        else:
            yield Matched(decision, found)


def _weighed(
    criteria: Criteria, where: str, task_id: str, decisions: Sequence[Decision]
) -> Mapping[int, Wording | NotHere]:
    """The criteria of decisions on equal texts that are in another order than the rubric: told apart by their weights.

    Those of one weight and one value are alike. What is left cannot be told apart, and is refused.
    """
    by_text: dict[str, list[int]] = defaultdict(list)
    for place, decision in enumerate(decisions):
        if decision.is_reordered and decision.criterion:
            by_text[decision.criterion.strip()].append(place)
    found: dict[int, Wording | NotHere] = {}
    for text, places in by_text.items():
        alike = criteria.alike(task_id, text)
        if len(alike) < 2:
            continue
        weights = {wording.weight for wording in alike} | {decisions[place].weight for place in places}
        for weight in weights:
            of_weight = [place for place in places if decisions[place].weight == weight]
            wordings = [wording for wording in alike if wording.weight == weight]
            values = {decisions[place].value for place in of_weight}
            if len(of_weight) == len(wordings) and len(values) == 1:
                found.update(zip(of_weight, wordings, strict=True))
            else:
                said = f"{where}: task {task_id} has the criterion {text[:80]!r} {len(alike)} times"
                error = NotHere(f"{said}, and the log does not say which decision is on which")
                found.update(dict.fromkeys(of_weight, error))
    return found


def _at(rubric: Sequence[Wording], where: str, place: int | None, n_decisions: int) -> Wording:
    """The criterion in a place of the rubric, where the log has as many decisions as that has criteria."""
    if len(rubric) != n_decisions or place is None:
        raise NotHere(f"{where}: the log has {n_decisions} grades, and the rubric {len(rubric)} criteria")
    return rubric[place]


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
