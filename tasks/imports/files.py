"""Functions that all imports share: readers of files of rows, storage of new rows, and retraction."""

import csv
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from io import TextIOWrapper
from itertools import dropwhile
from pathlib import Path
from typing import Any, TypeVar

import sql
from tasks.benchmarks.base import Benchmark
from tasks.benchmarks.rows import as_text, as_whole_number
from tasks.config.job import Job
from tasks.dataset.foreign_files import open_regular, read_regular
from tasks.dataset.source import read_rows, refuse_twice
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.text.cells import as_before
from tasks.rules.text.characters import is_blank
from tasks.rules.text.json_text import read_json
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse, unless_unwritable

Given = Mapping[str, Any]
Row = dict[str, Any]
Offered = TypeVar("Offered")
Subject = TypeVar("Subject")
_TEXTS = ("response", "explanation")
_MOST_TRIALS, _DIGITS = 10_000, re.compile("[0-9]{1,19}")


class ImportRefused(PipelineError):
    """A file cannot be imported; none of its rows was stored."""


class NotHere(ImportRefused):
    """A row is about a task or a criterion that the data set does not contain."""


def refuse_not_ingested(job: Job, rows: object) -> None:
    """Refuse an import into a data set without stored rows.

    Raises:
        ImportRefused: it has none.
    """
    if not rows:
        data = job.data
        advice = unless_unwritable(job.warehouse, "run `prbench ingest` first")
        raise ImportRefused(f"revision {data.revision[:12]} of {data.name} is not ingested; {advice}")


def batch_of(content: bytes, *options: str | None) -> str:
    """Return the id of an import batch: a hash of its content and of the given options."""
    hasher = hashlib.sha256(content)
    if any(option is not None for option in options):
        hasher.update(repr(options).encode())
    return hasher.hexdigest()[:16]


def given_rows(file: Path, benchmark: Benchmark | None = None, **defaults: str | None) -> Iterator[tuple[str, Given]]:
    """Yield the rows of a file, each with its location; `defaults` fill a row's empty cells.

    A `.json` file is one object `{task: response}`, another object (a row) or a list of rows; `.jsonl`, `.csv` and
    `.parquet` hold rows. Rows in the own shape of a `benchmark` are converted.

    Raises:
        ImportRefused: a row is no object, or is in the benchmark's own shape and cannot be read.
    """
    in_known_shape = benchmark.graded_rows() if benchmark else lambda row: (row,)
    for number, row in enumerate(_read(file), start=1):
        where = f"{file}: row {number}"
        if not isinstance(row, Mapping):
            raise ImportRefused(f"{where}: not an object but {type(row).__name__}")
        filled = {name: value for name, value in defaults.items() if value is not None and not text_in(row, name)}
        try:
            for each in in_known_shape({**row, **filled}):
                yield where, each
        except (ValueError, RecursionError) as error:
            raise ImportRefused(f"{where}: {error}; correct the row") from error


def _read(file: Path) -> Iterable[Any]:
    if file.suffix == ".csv":
        return _csv_rows(file)
    if file.suffix != ".json":
        return read_rows(file)
    try:
        document = read_json(read_regular(file).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ImportRefused(f"{file}: not JSON ({error}); correct the file") from error
    if isinstance(document, dict) and not any(isinstance(value, dict | list) for value in document.values()):
        return [{"task": task, "response": response} for task, response in document.items()]
    return document if isinstance(document, list) else [document]


def _csv_rows(file: Path) -> Sequence[Given]:
    """Return the rows of a CSV file, with all cells as text, without the mark that our sheets put before a formula.

    Texts of models and graders stay unchanged. Semicolons and tabs separate cells too, because spreadsheets in many
    languages write them.

    Polars and PyArrow are not used, because they misread some files without an error: Polars (2.1) fills up short rows,
    and finds no rows if lines end in a carriage return; PyArrow (26) joins lines if a quote is closed too late.
    """
    csv.field_size_limit(2**31 - 1)  # a whole response is one cell
    try:
        with TextIOWrapper(open_regular(file), encoding="utf-8-sig", newline="") as lines:
            first = next(csv.reader(dropwhile(str.isspace, lines)), [])
            separator = next((each for each in (";", "\t") if len(first) == 1 and each in first[0]), ",")
            lines.seek(0)
            reader = csv.DictReader(dropwhile(str.isspace, lines), strict=True, delimiter=separator)
            refuse_twice(file, filter(str.strip, reader.fieldnames or ()))
            rows = list(reader)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ImportRefused(f"{file}: not CSV in UTF-8 ({error}); save it again") from error
    for number, row in enumerate(rows, start=1):
        if None in row or None in row.values():
            raise ImportRefused(f"{file}: row {number}: has fewer or more cells than there are columns; correct it")
    return [{name: cell if name in _TEXTS else as_before(cell) for name, cell in row.items()} for row in rows]


def text_in(row: Given, name: str) -> str | None:
    """Return the text of a cell; None if it is blank."""
    text = as_text(row.get(name))
    return None if is_blank(text) else text


def required_text(where: str, row: Given, name: str, option: str = "") -> str:
    """Return a required text of a row; the error message names the option that sets it for all rows."""
    if (text := text_in(row, name)) is None:
        how = f" ({option} gives it to all rows)" if option else ""
        raise ImportRefused(f"{where}: `{name}` is missing; add it{how}")
    return text


def of_what_is_here(
    rows: Iterable[Offered], find: Callable[[Offered], Subject], *, skip_unknown: bool
) -> tuple[list[tuple[Offered, Subject]], list[str]]:
    """Return rows with what `find` returns for them, and a note on skipped rows.

    A row on an unknown subject is refused, or with `skip_unknown` skipped.
    """
    here, n_unknown = list[tuple[Offered, Subject]](), 0
    for row in rows:
        try:
            here.append((row, find(row)))
        except NotHere as error:
            if not skip_unknown:
                raise ImportRefused(f"{error} (--skip-unknown skips such rows)") from error
            n_unknown += 1
    return here, [f"{n_unknown} rows skipped whose task or criterion is not in the data set"] if n_unknown else []


def number_of(where: str, row: Given, name: str, first: int = 1) -> int:
    """Return the number of a trial, counted from 1, or 1 if the row has none; the rows count from `first`.

    Raises:
        ImportRefused: it is not a whole number, or is too large or too small for a trial.
    """
    given, last = row.get(name), first + _MOST_TRIALS - 1
    if given is None or given == "":
        return 1
    number = int(given) if isinstance(given, str) and _DIGITS.fullmatch(given) else as_whole_number(given)
    if number is None or not first <= number <= last:
        raise ImportRefused(f"{where}: `{name}` is {repr(given)[:80]}; it is a whole number from {first} to {last}")
    return number - first + 1


CONTENT = {
    "responses": ("text", "model {model}, trial {trial}"), "verdicts": ("value", "judge {judge}, value {value:g}"),
    "reviews": ("value explanation better_wording", "reviewer {reviewer}, value {value:g}"),
}  # fmt: skip
"""Kind of rows -> the columns of their content, the first of which is NULL for a failure, and a format for the
description of a row."""


def stored_cells(reader: Reader, table: str) -> dict[str, Row]:
    """Return the stored rows of a table that were imported: id -> content and batch."""
    identity = f"{table[:-1]}_id"
    rows = reader.select(table, f"{identity}, {CONTENT[table][0]}, import_batch", order=identity, source="imported")
    return {row[identity]: row for row in rows}


class Cells:
    """The rows of a kind to import, compared by id with stored rows and with earlier rows of the import.

    Attributes:
        new: the rows to store.
        given: the ids of all rows.
        n_hidden: number of decisions left out because the call is known to have failed, so they may hide the failure.
    """

    def __init__(self, kind: str, known: dict[str, Row], batch: str, *, gives_way: bool = False) -> None:
        """Start with the `known` rows, by id: stored ones, and earlier ones of this import.

        With `gives_way`, a failure is ignored if a text or a decision is known; otherwise it is refused.
        """
        self._kind, self._known, self._batch, self._gives_way = kind, known, batch, gives_way
        self.new: dict[str, Row] = {}
        self.given: set[str] = set()
        self.n_hidden = 0

    def put(self, where: str, row: Row) -> Row:
        """Add a row; a text or a decision replaces a failure. Return the row to store.

        Raises:
            ImportRefused: a different row with this id exists.
        """
        kind, columns, named = self._kind[:-1], CONTENT[self._kind][0].split(), CONTENT[self._kind][1]
        identity, content = row[f"{kind}_id"], row[columns[0]]
        self.given.add(identity)
        if (before := self._known.get(identity)) is not None and before[columns[0]] is not None:
            is_other = any(row[column] != before[column] for column in columns)
            if is_other and not (content is None and self._gives_way):
                is_own = before["import_batch"] == self._batch
                origin = "earlier in this import" if is_own else f"import batch {before['import_batch']}"
                about = f"{named.format(**{**row, **before})}, {origin}"
                advice = "retract it, or use another label or trial"
                raise ImportRefused(f"{where}: a different {kind} already exists ({about}); {advice}")
        elif before is not None and content is not None and row.get("may_hide_failures"):
            self.n_hidden += 1
        elif before is None or content is not None:
            self._known[identity] = self.new[identity] = row
        return self.new.get(identity, row)


def store(job: Job, batch: str, cells: Mapping[str, Cells], notes: Iterable[str] = ()) -> StageReport:
    """Write the new rows of each kind and report on them, with further notes; a retracted batch is restored."""
    warehouse = Warehouse(job.warehouse)
    _, _, was_retracted = batch_in(warehouse, batch)
    for kind, of_kind in cells.items():
        warehouse.write({"reviews": "expert_reviews"}.get(kind, kind), of_kind.new.values())
    if was_retracted:
        _write_retraction(job, batch, is_retracted=False)
    warehouse.publish()
    n_new = sum(len(of_kind.new) for of_kind in cells.values())
    n_given = sum(len(of_kind.given) for of_kind in cells.values())
    brought = " and ".join(f"{len(of_kind.new)} {kind}" for kind, of_kind in cells.items())
    note = f"{brought} imported, {n_given - n_new} already present"
    if was_retracted:
        note = f"{batch_in(warehouse, batch)[0]} restored"
    report = StageReport("import", rows=n_new, notes=[f"{note} (batch {batch})", *notes])
    configured = {model.label for model in job.settings.models}
    imported = cells["responses"].new.values() if "responses" in cells else ()
    labels = list(dict.fromkeys(row["model"] for row in imported if row["model"] not in configured))
    if configured and labels:
        how = f"run with --model, or add them to `models` (as {{label: {labels[0]}, source: imported}})"
        report.warnings.append(f"{', '.join(labels)}: not configured, so no run judges these responses; {how}")
    return report


def batch_in(warehouse: Warehouse, batch: str) -> tuple[str, int, bool]:
    """Return the published rows of an import batch in words, their number, and whether the batch is retracted.

    They are responses, verdicts (also of judges on these responses), and reviews.
    """
    with warehouse.reader() as reader:
        *counts, is_retracted = reader.rows(sql.read("queries/imports/batch"), {"batch": batch})[0].values()
    named = zip(counts, ("responses", "verdicts", "reviews"), strict=True)
    return " and ".join(f"{n} {kind}" for n, kind in named if n), sum(counts), is_retracted


def _write_retraction(job: Job, batch: str, *, is_retracted: bool) -> None:
    """Store whether a batch counts."""
    row = {"import_batch": batch, "is_retracted": is_retracted, "run_id": job.run_id, "created_at": datetime.now(UTC)}
    Warehouse(job.warehouse).write("retractions", [row])


def retract(job: Job, batch: str) -> StageReport:
    """Retract an import batch: its responses with all verdicts on them, its verdicts, and its reviews.

    No row is deleted. Importing the same file again restores all rows, including the verdicts of judges.

    Raises:
        UsageError: the batch does not exist.
    """
    warehouse = Warehouse(job.warehouse)
    warehouse.publish()
    before, n_rows, is_retracted = batch_in(warehouse, batch)
    if is_retracted:
        return StageReport("import", notes=[f"batch {batch} is already retracted"])
    if not n_rows:
        raise UsageError(f"--retract {batch}: no such batch; the column `import_batch` has the ids of all")
    _write_retraction(job, batch, is_retracted=True)
    warehouse.publish()
    note = f"{before} retracted (batch {batch}); import the same file again to restore them"
    return StageReport("import", rows=n_rows, notes=[note])
