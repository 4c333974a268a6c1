"""Texts that somebody has, with the hashes that a certificate would hold of them."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark, RowError
from tasks.benchmarks.rows import as_text
from tasks.config.settings import Dataset
from tasks.dataset import SUFFIXES, SourceError, open_source, read_rows
from tasks.exports import read_export
from tasks.imports import given_rows, in_known_shape, number_of, refuse_unreadable, required_text, vintage_in
from tasks.rules.conversation import build_messages
from tasks.rules.errors import UsageError
from tasks.rules.identity import BASE_VINTAGE, conversation_id, criterion_hash
from tasks.rules.records import Turn
from tasks.rules.text.characters import shows_nothing
from warehouse import DATABASE, Reader

Row = Mapping[str, Any]
CONVERSATION, CRITERION, RESPONSE = "conversation", "criterion", "response"
OF_RESPONSE = ("task_id", "model", "trial", "vintage")
_STORED = ("conversation_turns", "criteria", "responses")


class Given(NamedTuple):
    """A text: its kind, what it is of, what a certificate would say of it, where it was, and a response itself."""

    kind: str
    of: tuple[Any, ...]
    value: Any
    where: str
    text: str | None = None


def given_texts(path: Path, benchmark: str, revision: str) -> Iterator[Given]:
    """The texts in a data-set file or folder, a file of responses, a folder of `prbench export`, or a warehouse.

    Raises:
        UsageError: there is nothing of that name, or it is none of these.
        PipelineError: it cannot be read.
    """
    if (path / DATABASE).is_file():
        return _of_tables(str(path), _of_warehouse(path, benchmark, revision))
    if (path / "manifest.json").is_file():
        return _of_tables(str(path), _of_export(path, benchmark, revision))
    adapter = load_benchmark(benchmark)
    if path.is_dir() or (path.suffix in SUFFIXES and path.is_file() and _is_data_set(path, adapter)):
        return _of_data_set(path, adapter)
    refuse_unreadable(path)
    return _of_responses(path, adapter)


def _is_data_set(path: Path, benchmark: Benchmark) -> bool:
    first = next(iter(read_rows(path)), {})
    return not benchmark.missing_columns(set(first))


def _of_data_set(path: Path, benchmark: Benchmark) -> Iterator[Given]:
    source = open_source(Dataset(source=str(path)), benchmark)
    for split in source.splits:
        for number, row in enumerate(source.rows(split), start=1):
            where = f"{source.files[split]}: row {number}"
            try:
                task = benchmark.parse_row(row)
            except RowError as error:
                raise SourceError(f"{where}: {error}; correct or remove the row") from error
            yield Given(CONVERSATION, (task.task_id,), task.conversation_id, where)
            for each in task.criteria:
                value = (each.criterion_id, each.content_hash, each.category, each.weight, each.severity)
                yield Given(CRITERION, (task.task_id, each.position), value, where)


def _of_responses(path: Path, benchmark: Benchmark) -> Iterator[Given]:
    for where, row in in_known_shape(benchmark, given_rows(path)):
        if "response" not in row:
            lacking = f"has neither `response` nor all columns of {benchmark.name}"
            raise UsageError(f"{where}: {lacking}; name a file with responses or a data set")
        of = (
            required_text(where, row, "task"), required_text(where, row, "model"), number_of(where, row, "trial"),
            vintage_in(row) or BASE_VINTAGE,
        )  # fmt: skip
        text = as_text(row["response"])
        yield Given(RESPONSE, of, _hash(text), where, text)


def _hash(text: str | None) -> str | None:
    """A response's hash; one that shows nothing is a failed response, which has no text."""
    return None if text is None or shows_nothing(text) else hashlib.sha256(text.encode()).hexdigest()


def _of_tables(where: str, tables: Mapping[str, Iterable[Row]]) -> Iterator[Given]:
    """Texts as a warehouse holds them."""
    turns = sorted(tables["conversation_turns"], key=itemgetter("task_id", "position"))
    for task_id, of_task in groupby(turns, key=itemgetter("task_id")):
        conversation = [Turn(row["prompt"], tuple(row["reference_texts"] or ()), row["response"]) for row in of_task]
        yield Given(CONVERSATION, (task_id,), conversation_id(build_messages(conversation)), where)
    for row in tables["criteria"]:
        value = (row["criterion_id"], criterion_hash(row["title"]), row["category"], row["weight"], row["severity"])
        yield Given(CRITERION, (row["task_id"], row["position"]), value, where)
    for row in tables["responses"]:
        of = tuple(row[name] for name in OF_RESPONSE)
        yield Given(RESPONSE, of, _hash(row["text"]), where, row["text"])


def _of_warehouse(path: Path, benchmark: str, revision: str) -> dict[str, Iterable[Row]]:
    query = "select * from {} where benchmark = ? and dataset_revision = ?"
    with Reader(path / DATABASE) as reader:
        return {name: reader.rows(query.format(name), [benchmark, revision]) for name in _STORED}


def _of_export(path: Path, benchmark: str, revision: str) -> dict[str, Iterable[Row]]:
    key = (benchmark, revision)
    files = {table.name: [path / file.name for file in table.files] for table in read_export(path).tables}
    return {
        name: [
            row for file in files.get(name, ()) for row in read_rows(file)
            if (row["benchmark"], row["dataset_revision"]) == key
        ]
        for name in _STORED
    }  # fmt: skip
