"""Checks of a certificate: given texts against its hashes, and its ids against recomputed ones."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from tasks.assemble import conversations_of_turns
from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.certify.certifying import member_of, rows_of
from tasks.config.models import ORIGINAL
from tasks.config.settings import Dataset
from tasks.dataset.source import SUFFIXES, open_source, read_rows, tasks_of
from tasks.exports.tables import opened_export
from tasks.imports.files import number_of, required_text, rows_of_file, text_in
from tasks.llm.replies import OK
from tasks.rules.errors import UsageError
from tasks.rules.identity import BASE_VINTAGE, criterion_hash, piece_hash, response_id, verdict_id
from tasks.rules.text.characters import shows_nothing
from tasks.rules.text.numbers import some
from warehouse import DATABASE, Reader

Of = tuple[Any, ...]
"""A text's kind, then what identifies it: a task; a task and a position; or task, model, trial and
vintage.
"""
CONVERSATION = "conversation"
CRITERION = "criterion"
RESPONSE = "response"
OF_RESPONSE = ("task_id", "model", "trial", "vintage")
_STORED = ("conversation_turns", "criteria", "responses")
Row = Mapping[str, Any]
Key = Mapping[str, str]
"""Benchmark and revision of a data set."""
_SEVERAL = {
    CONVERSATION: "conversations",
    CRITERION: "criteria",
    RESPONSE: "responses",
}
_NAMED = {
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
            f"{n} of {self.n_certified[kind]} {_SEVERAL[kind]}"
            for kind, n in self.n_checked.items()
        )
        outcome = f"{len(self.differing)} differ" if self.differing else "all match"
        lines = [f"texts: {counts or 'nothing'} checked; {outcome}"]
        if self.missing:
            lines.append(f"not given: {some(self.missing)}")
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
        lines = [f"ids: of {counts} recomputed; {outcome}"]
        if self.n_unchecked:
            lines.append(
                f"ids: of {self.n_unchecked} verdicts not recomputed: that needs their responses"
                " (--texts)"
            )
        return lines


def check_texts(folder: Path, key: Key, texts: Iterable[Path]) -> tuple[Texts, dict[str, str]]:
    """Compare texts with the hashes of an unpacked certificate; also return those responses that
    match, by hash.
    """
    certified: dict[Of, set[Any]] = defaultdict(
        set
    )  # a label of imported responses may stand for several models
    for row in rows_of(folder / member_of("tasks")):
        certified[CONVERSATION, row["task_id"]].add(row["conversation_id"])
    for row in rows_of(folder / member_of("criteria")):
        value = tuple(
            row[name] for name in ("criterion_id", "content_hash", "category", "weight", "severity")
        )
        certified[CRITERION, row["task_id"], row["position"]].add(value)
    for row in rows_of(folder / member_of("responses")):
        certified[RESPONSE, *(row[name] for name in OF_RESPONSE)].add(row["text_sha256"])
    checked: dict[Of, None] = {}
    differing: dict[str, None] = {}
    n_others = 0
    by_hash = {}
    for given in (given for path in texts for given in given_texts(path, key)):
        if given.of not in certified:
            n_others += 1
            continue
        checked[given.of] = None
        if given.value not in certified[given.of]:
            differing[f"{given.where}: {_named(given.of)} differs from the certified text"] = None
        elif given.text is not None:
            by_hash[given.value] = given.text
    n_checked = Counter(kind for kind, *_ in checked)
    missing = [_named(of) for of in certified if of[0] in n_checked and of not in checked]
    n_certified = {
        kind: n for kind, n in Counter(kind for kind, *_ in certified).items() if kind in n_checked
    }
    return Texts(dict(n_checked), n_certified, list(differing), missing, n_others), by_hash


def check_ids(folder: Path, key: Key, texts: Mapping[str, str]) -> Ids:
    """Recompute the ids of an unpacked certificate; `texts` maps hashes to responses, which ids of
    verdicts need.
    """
    differing: list[str] = []
    hashes: dict[str, str] = {}
    for row in rows_of(folder / member_of("responses")):
        hashes[row["response_id"]] = row["text_sha256"]
        identity = response_id(
            benchmark=key["benchmark"],
            dataset_revision=key["dataset_revision"],
            task_id=row["task_id"],
            conversation_id=row["conversation_id"],
            model=row["model"],
            model_config_hash=row["model_config_hash"],
            trial=row["trial"],
            vintage=row["vintage"],
        )
        if row["response_id"] != identity:
            named = _named((RESPONSE, *(row[name] for name in OF_RESPONSE)))
            differing.append(
                f"{named} does not have the id of its task, conversation, model, trial and vintage"
            )
    n_checked = 0
    n_unchecked = 0
    pieces = _pieces(folder) if texts else {}
    for row in rows_of(folder / member_of("verdicts")):
        text = texts.get(hashes.get(row["response_id"], ""))
        if text is None:
            n_unchecked += 1
            continue
        n_checked += 1
        identity = verdict_id(
            response_id=row["response_id"],
            response_text=text,
            criterion_id=row["criterion_id"],
            criterion_hash=row["criterion_hash"],
            judge=row["judge"],
            judge_config_hash=row["judge_config_hash"],
            template_hash=row["template_hash"],
            grading=row["grading"],
            judge_trial=row["judge_trial"],
            piece=pieces.get((row["task_id"], row.get("piece_hash")), ()),
        )
        if row["verdict_id"] != identity:
            named = (
                f"verdict of {row['judge']} on criterion {row['criterion_id']} of task"
                f" {row['task_id']}"
            )
            differing.append(
                f"{named} does not have the id of its response, criterion, judge, template and"
                " grading"
            )
    return Ids({"responses": len(hashes), "verdicts": n_checked}, n_unchecked, differing)


def _pieces(folder: Path) -> dict[tuple[str, str | None], tuple[str, ...]]:
    """Return task and `piece_hash` -> the hashes of criteria in one call: any that follow each
    other in a rubric.
    """
    wanted = {row.get("piece_hash") for row in rows_of(folder / member_of("verdicts"))} - {None}
    originals = (
        sorted(rows_of(folder / member_of("criteria")), key=itemgetter("position"))
        if wanted
        else []
    )
    hashes: dict[tuple[str, str], list[str]] = defaultdict(list)
    rubrics: dict[Of, list[tuple[str, str]]] = defaultdict(list)
    for row in rows_of(folder / member_of("criterion_variants")) if wanted else ():
        if row["status"] == OK:
            rubrics[row["task_id"], row["original_id"], row["original_hash"]].append(
                (row["rubric"], row["content_hash"])
            )
    for row in originals:
        wordings = rubrics[row["task_id"], row["criterion_id"], row["content_hash"]]
        for rubric, content_hash in [(ORIGINAL, row["content_hash"]), *wordings]:
            hashes[row["task_id"], rubric].append(content_hash)
    pieces: dict[tuple[str, str | None], tuple[str, ...]] = {}
    for (task_id, _), of_rubric in hashes.items():
        for first, last in combinations(range(len(of_rubric) + 1), 2):
            piece = tuple(of_rubric[first:last])
            name = piece_hash(piece)
            if name in wanted:
                pieces[task_id, name] = piece
    return pieces


def _named(of: Of) -> str:
    return _NAMED[of[0]].format(*of[1:])


class Given(NamedTuple):
    """A given text: what it is of, the value that a certificate has for it, where it is, and the
    text of a response.
    """

    of: Of
    value: Any
    where: str
    text: str | None = None


def given_texts(path: Path, key: Key) -> Iterator[Given]:
    """Return the texts in a data set, a file of responses, a folder of `prbench export`, or a
    warehouse.

    Raises:
        UsageError: the path is none of these.
        PipelineError: it cannot be read.
        OSError: it does not exist.
    """
    if (path / DATABASE).is_file():
        with Reader(path / DATABASE) as reader:
            return _of_tables(str(path), {name: reader.select(name, **key) for name in _STORED})
    if (path / "manifest.json").is_file():
        tables: dict[str, list[Row]] = {name: [] for name in _STORED}
        with opened_export(path) as (folder, exported):
            for table in (each for each in exported if each.name in tables):
                rows = (row for file in table.files for row in read_rows(folder / file))
                tables[table.name] += [row for row in rows if key.items() <= row.items()]
        return _of_tables(str(path), tables)
    adapter = load_benchmark(key["benchmark"])
    is_rows = path.suffix in SUFFIXES and path.is_file()
    if path.is_dir() or (is_rows and set(adapter.columns) <= {*next(iter(read_rows(path)), {})}):
        return _of_data_set(path, adapter)
    return _of_responses(path, adapter)


def _of_data_set(path: Path, benchmark: Benchmark) -> Iterator[Given]:
    source = open_source(Dataset(source=str(path)), benchmark)
    for split in source.splits:
        for number, task in enumerate(tasks_of(source, split, benchmark), start=1):
            where = f"{source.files[split]}: row {number}"
            yield Given((CONVERSATION, task.task_id), task.conversation_id, where)
            for each in task.criteria:
                value = (
                    each.criterion_id,
                    each.content_hash,
                    each.category,
                    each.weight,
                    each.severity,
                )
                yield Given((CRITERION, task.task_id, each.position), value, where)


def _of_responses(path: Path, benchmark: Benchmark) -> Iterator[Given]:
    for where, row, _ in rows_of_file(path, benchmark):
        if "response" not in row:
            lacking = f"has neither `response` nor all columns of {benchmark.name}"
            raise UsageError(f"{where}: {lacking}; name a file with responses or a data set")
        of = (
            RESPONSE,
            required_text(where, row, "task"),
            required_text(where, row, "model"),
            number_of(where, row, "trial"),
            text_in(row, "vintage") or BASE_VINTAGE,
        )
        text = row["response"]
        yield Given(of, _hash(text), where, text)


def _hash(text: str | None) -> str | None:
    """Return a response's hash; None for a response without visible text, which is a failure and
    has no text.
    """
    return (
        None if text is None or shows_nothing(text) else hashlib.sha256(text.encode()).hexdigest()
    )


def _of_tables(where: str, tables: Mapping[str, Iterable[Row]]) -> Iterator[Given]:
    """Yield the texts in stored tables."""
    turns = sorted(tables["conversation_turns"], key=itemgetter("task_id", "position"))
    for task_id, conversation in conversations_of_turns(turns).items():
        yield Given((CONVERSATION, task_id), conversation.conversation_id, where)
    for row in tables["criteria"]:
        value = (
            row["criterion_id"],
            criterion_hash(row["title"]),
            row["category"],
            row["weight"],
            row["severity"],
        )
        yield Given((CRITERION, row["task_id"], row["position"]), value, where)
    for row in tables["responses"]:
        yield Given(
            (RESPONSE, *(row[name] for name in OF_RESPONSE)), _hash(row["text"]), where, row["text"]
        )
