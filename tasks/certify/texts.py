"""Checks of a certificate: given texts against its hashes, and its ids against recomputed ones."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from tasks.assemble import conversations_of_turns
from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.bundles.bundle import MANIFEST
from tasks.certify.certifying import member_rows
from tasks.config.models import ORIGINAL
from tasks.config.settings import Dataset
from tasks.dataset.source import SUFFIXES, open_source, read_rows, tasks_of
from tasks.exports.tables import opened_export
from tasks.imports.files import number_of, required_text, rows_of_file, text_in
from tasks.llm.replies import OK
from tasks.rules.errors import UsageError
from tasks.rules.identity import BASE_VINTAGE, criterion_hash, piece_hash, response_id, verdict_id
from tasks.rules.text.characters import shows_nothing
from tasks.rules.text.numbers import list_text
from warehouse import DATABASE, Reader

Subject = tuple[Any, ...]
"""The kind of a text, then what identifies it: the task of a conversation; task and position of a
criterion; or task, model, trial and vintage of a response.
"""
CONVERSATION = "conversation"
CRITERION = "criterion"
RESPONSE = "response"
_TEXT_TABLES = ("conversation_turns", "criteria", "responses")
TextRow = Mapping[str, Any]
Key = Mapping[str, str]
"""Benchmark and revision of a data set."""
_CRITERION_VALUES = ("criterion_id", "content_hash", "category", "weight", "severity")
"""The values that a certificate has for a criterion."""
_PLURALS = {
    CONVERSATION: "conversations",
    CRITERION: "criteria",
    RESPONSE: "responses",
}
_DESCRIPTIONS = {
    CONVERSATION: "conversation of task {}",
    CRITERION: "criterion {1} of task {0}",
    RESPONSE: "response of {1} to task {0} (trial {2}, vintage {3})",
}


class Texts(NamedTuple):
    """The result of comparing given texts with a certificate.

    Attributes:
        n_checked: kind of text -> number of texts compared with the certificate.
        n_certified: kind of text -> number of certified texts.
        differing: descriptions of the texts that differ from the certified ones.
        missing: descriptions of certified texts that were not given, although texts of their kind
            were.
        n_others: number of given texts about tasks or models that are not in the certificate.
    """

    n_checked: dict[str, int]
    n_certified: dict[str, int]
    differing: list[str]
    missing: list[str]
    n_others: int

    @property
    def lines(self) -> list[str]:
        """The result in words."""
        counts = ", ".join(
            f"{n} of {self.n_certified[kind]} {_PLURALS[kind]}"
            for kind, n in self.n_checked.items()
        )
        outcome = f"{len(self.differing)} differ" if self.differing else "all match"
        lines = [f"texts: {counts or 'nothing'} checked; {outcome}"]
        if self.missing:
            lines.append(f"not given: {list_text(self.missing)}")
        if self.n_others:
            lines.append(
                f"{self.n_others} given texts are of tasks or models that are not certified"
            )
        return lines


class Ids(NamedTuple):
    """The result of recomputing ids, which are hashes of data.

    Attributes:
        n_checked: kind of row -> number of recomputed ids.
        n_unchecked: number of verdicts on responses whose texts were not given.
        differing: descriptions of the rows whose ids are different.
    """

    n_checked: dict[str, int]
    n_unchecked: int
    differing: list[str]

    @property
    def lines(self) -> list[str]:
        """The result in words."""
        counts = " and ".join(f"{n} {kind}" for kind, n in self.n_checked.items())
        outcome = f"{len(self.differing)} differ" if self.differing else "all equal"
        lines = [f"ids of {counts} recomputed; {outcome}"]
        if self.n_unchecked:
            lines.append(
                f"ids of {self.n_unchecked} verdicts not recomputed: that needs their responses"
                " (--texts)"
            )
        return lines


def check_texts(folder: Path, key: Key, paths: Iterable[Path]) -> tuple[Texts, dict[str, str]]:
    """Compare texts with the hashes of an unpacked certificate.

    Also return those responses that match, by hash.
    """
    certified_values = _certified_values(folder)
    # Dictionaries as sets that keep the order.
    checked_subjects: dict[Subject, None] = {}
    differences: dict[str, None] = {}
    n_others = 0
    texts_by_hash = {}
    for path in paths:
        for text in given_texts(path, key):
            subject = text.subject
            if subject not in certified_values:
                n_others += 1
                continue
            checked_subjects[subject] = None
            if text.value not in certified_values[subject]:
                name = _name_of(subject)
                differences[f"{text.location}: {name} differs from the certified text"] = None
            elif text.response is not None:
                texts_by_hash[text.value] = text.response
    n_checked = Counter(kind for kind, *_ in checked_subjects)
    subjects = [subject for subject in certified_values if subject[0] in n_checked]
    n_certified = Counter(kind for kind, *_ in subjects)
    missing = [_name_of(subject) for subject in subjects if subject not in checked_subjects]
    return Texts(n_checked, n_certified, list(differences), missing, n_others), texts_by_hash


def _certified_values(folder: Path) -> dict[Subject, set[Any]]:
    """Return the values that an unpacked certificate has for each text.

    A label of imported responses may stand for several models, so a response may have several.
    """
    values: dict[Subject, set[Any]] = defaultdict(set)
    for row in member_rows(folder, "tasks"):
        values[CONVERSATION, row["task_id"]].add(row["conversation_id"])
    for row in member_rows(folder, "criteria"):
        subject = (CRITERION, row["task_id"], row["position"])
        values[subject].add(itemgetter(*_CRITERION_VALUES)(row))
    for row in member_rows(folder, "responses"):
        if row["text_sha256"] is not None:  # a failed response has no text
            values[_response_subject(row)].add(row["text_sha256"])
    return values


def _response_subject(row: TextRow) -> Subject:
    return (RESPONSE, row["task_id"], row["model"], row["trial"], row["vintage"])


def check_ids(folder: Path, key: Key, texts_by_hash: Mapping[str, str]) -> Ids:
    """Recompute the ids of an unpacked certificate; ids of verdicts need texts of responses."""
    differing = []
    text_hashes = {}
    for row in member_rows(folder, "responses"):
        text_hashes[row["response_id"]] = row["text_sha256"]
        if row["response_id"] != _recompute_response_id(row, key):
            name = _name_of(_response_subject(row))
            differing.append(
                f"{name} does not have the id of its task, conversation, model, trial and vintage"
            )
    n_checked = 0
    n_unchecked = 0
    pieces = _pieces(folder) if texts_by_hash else {}
    for row in member_rows(folder, "verdicts"):
        text = texts_by_hash.get(text_hashes.get(row["response_id"], ""))
        if text is None:
            n_unchecked += 1
            continue
        n_checked += 1
        piece = pieces.get((row["task_id"], row.get("piece_hash")), ())
        if row["verdict_id"] != _recompute_verdict_id(row, text, piece):
            differing.append(
                f"verdict of {row['judge']} on criterion {row['criterion_id']} of task"
                f" {row['task_id']} does not have the id of its response, criterion, judge,"
                " template and grading"
            )
    return Ids({"responses": len(text_hashes), "verdicts": n_checked}, n_unchecked, differing)


def _recompute_response_id(row: TextRow, key: Key) -> str:
    return response_id(
        **key,
        task_id=row["task_id"],
        conversation_id=row["conversation_id"],
        model=row["model"],
        model_config_hash=row["model_config_hash"],
        trial=row["trial"],
        vintage=row["vintage"],
    )


def _recompute_verdict_id(row: TextRow, text: str, piece: Sequence[str]) -> str:
    return verdict_id(
        response_id=row["response_id"],
        response_text=text,
        criterion_id=row["criterion_id"],
        criterion_hash=row["criterion_hash"],
        judge=row["judge"],
        judge_config_hash=row["judge_config_hash"],
        template_hash=row["template_hash"],
        grading=row["grading"],
        judge_trial=row["judge_trial"],
        piece=piece,
    )


def _pieces(folder: Path) -> dict[tuple[str, str | None], tuple[str, ...]]:
    """Return task and `piece_hash` -> the hashes of the criteria that one call judged.

    A certificate has only the hash of a piece. The criteria of a piece follow each other in a
    rubric, so the hash of every sequence of neighbours is tried.
    """
    verdicts = member_rows(folder, "verdicts")
    certified_hashes = {row.get("piece_hash") for row in verdicts} - {None}
    pieces: dict[tuple[str, str | None], tuple[str, ...]] = {}
    if not certified_hashes:
        return pieces
    for (task_id, _), hashes in _rubrics(folder).items():
        for start, end in combinations(range(len(hashes) + 1), 2):
            piece = tuple(hashes[start:end])
            hash_of_piece = piece_hash(piece)
            if hash_of_piece in certified_hashes:
                pieces[task_id, hash_of_piece] = piece
    return pieces


def _rubrics(folder: Path) -> dict[tuple[str, str], list[str]]:
    """Return task and rubric variant -> the hashes of its criteria in order."""
    variants = defaultdict(list)
    for row in member_rows(folder, "criterion_variants"):
        if row["status"] == OK:
            original = (row["task_id"], row["original_id"], row["original_hash"])
            variants[original].append((row["rubric"], row["content_hash"]))
    rubrics = defaultdict(list)
    criteria = member_rows(folder, "criteria")
    for row in sorted(criteria, key=itemgetter("position")):
        rubrics[row["task_id"], ORIGINAL].append(row["content_hash"])
        original = (row["task_id"], row["criterion_id"], row["content_hash"])
        for rubric, content_hash in variants[original]:
            rubrics[row["task_id"], rubric].append(content_hash)
    return rubrics


def _name_of(subject: Subject) -> str:
    return _DESCRIPTIONS[subject[0]].format(*subject[1:])


class GivenText(NamedTuple):
    """A given text.

    Attributes:
        subject: what the text is.
        value: what a certificate of this text has for it, such as its hash.
        location: where the text was found, for messages.
        response: the text itself, if it is that of a response.
    """

    subject: Subject
    value: Any
    location: str
    response: str | None = None


def given_texts(path: Path, key: Key) -> Iterator[GivenText]:
    """Return the texts in a data set, a file of responses, a folder of `prbench export`, or a
    warehouse.

    Raises:
        UsageError: the path is none of these.
        PipelineError: it cannot be read.
        OSError: it does not exist.
    """
    if (path / DATABASE).is_file():
        with Reader(path / DATABASE) as reader:
            return _texts_in_tables(
                str(path), {name: reader.select(name, **key) for name in _TEXT_TABLES}
            )
    if (path / MANIFEST).is_file():
        return _texts_in_tables(str(path), _exported_tables(path, key))
    benchmark = load_benchmark(key["benchmark"])
    if path.is_dir() or _is_data_set(path, benchmark):
        return _texts_in_data_set(path, benchmark)
    return _texts_in_responses(path, benchmark)


def _exported_tables(path: Path, key: Key) -> dict[str, list[TextRow]]:
    tables: dict[str, list[TextRow]] = {name: [] for name in _TEXT_TABLES}
    with opened_export(path) as (folder, exported):
        for table in exported:
            if table.name in tables:
                for file in table.files:
                    rows = read_rows(folder / file)
                    tables[table.name] += [row for row in rows if key.items() <= row.items()]
    return tables


def _is_data_set(path: Path, benchmark: Benchmark) -> bool:
    if path.suffix not in SUFFIXES or not path.is_file():
        return False
    missing_columns = set(benchmark.columns)
    for row in read_rows(path):  # a row may leave out a column where it is empty
        missing_columns -= row.keys()
        if not missing_columns:
            return True
    return False


def _texts_in_data_set(path: Path, benchmark: Benchmark) -> Iterator[GivenText]:
    source = open_source(Dataset(source=str(path)), benchmark)
    for split in source.splits:
        for number, task in enumerate(tasks_of(source, split, benchmark), start=1):
            location = f"{source.files[split]}: row {number}"
            yield GivenText((CONVERSATION, task.task_id), task.conversation_id, location)
            for criterion in task.criteria:
                subject = (CRITERION, task.task_id, criterion.position)
                yield GivenText(subject, attrgetter(*_CRITERION_VALUES)(criterion), location)


def _texts_in_responses(path: Path, benchmark: Benchmark) -> Iterator[GivenText]:
    for location, row, _ in rows_of_file(path, benchmark):
        if "response" not in row:
            raise UsageError(
                f"{location}: has neither `response` nor all columns of {benchmark.name}; name a"
                " file with responses or a data set"
            )
        subject = (
            RESPONSE,
            required_text(location, row, "task"),
            required_text(location, row, "model"),
            number_of(location, row, "trial"),
            text_in(row, "vintage") or BASE_VINTAGE,
        )
        text = row["response"]
        yield GivenText(subject, _hash(text), location, text)


def _hash(text: str | None) -> str | None:
    """Return the hash of a response; None if it shows nothing, which is a failure without text."""
    if text is None or shows_nothing(text):
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def _texts_in_tables(location: str, tables: Mapping[str, Iterable[TextRow]]) -> Iterator[GivenText]:
    """Yield the texts in stored tables."""
    turns = sorted(tables["conversation_turns"], key=itemgetter("task_id", "position"))
    for task_id, conversation in conversations_of_turns(turns).items():
        yield GivenText((CONVERSATION, task_id), conversation.conversation_id, location)
    for row in tables["criteria"]:
        subject = (CRITERION, row["task_id"], row["position"])
        criterion = {**row, "content_hash": criterion_hash(row["title"])}
        yield GivenText(subject, itemgetter(*_CRITERION_VALUES)(criterion), location)
    for row in tables["responses"]:
        yield GivenText(_response_subject(row), _hash(row["text"]), location, row["text"])
