"""Functions that all imports share: readers of files of rows, storage of new rows, and
retraction.
"""

import csv
import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from io import BufferedReader, TextIOWrapper
from itertools import chain, dropwhile
from pathlib import Path
from typing import Any, TypeVar

import sql
from tasks.benchmarks.base import Benchmark
from tasks.benchmarks.rows import (
    as_whole_number,
    cell_label,
    cell_text,
    decoded,
    is_conversation,
    response_text,
)
from tasks.config.job import Job
from tasks.dataset.foreign_files import open_regular, read_regular
from tasks.dataset.source import read_rows, refuse_twice
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.text.cells import as_before
from tasks.rules.text.characters import did_you_mean, is_blank
from tasks.rules.text.json_text import read_json
from tasks.rules.text.numbers import some
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse, unless_unwritable
from warehouse.compaction import imported_batches

Given = Mapping[str, Any]
Row = dict[str, Any]
Offered = TypeVar("Offered")
Subject = TypeVar("Subject")
_TEXTS = ("explanation", "reason", "better_wording", "title")
_LABELS = (
    "task",
    "model",
    "vintage",
    "file",
    "criterion",
    "criterion_hash",
    "category",
    "axis",
    "judge",
    "grading",
    "decision",
    "reviewer",
    "sample",
)
"""Columns with names, ids and words, which may be numbers."""
_MOST_TRIALS = 10_000
_WHOLE_NUMBER = re.compile(r"([0-9]{1,19})(?:\.0*)?")
_SEPARATORS = ",;\t|"
_STATED_SEPARATOR = re.compile(r'"?sep=([,;|:^~\t])\s*"?\s*', re.IGNORECASE)
_BYTE_ORDER_MARK = "\ufeff"
_BEFORE_HEADINGS = b" \t\r\n" + _BYTE_ORDER_MARK.encode()
_OTHER_KINDS = {
    b"PK\x03\x04": "a workbook or another archive",
    b"\xd0\xcf\x11\xe0": "a workbook of old Excel",
    b"PAR1": "Parquet",
    b"%PDF": "PDF",
    b"\x1f\x8b": "a compressed file",
    b"<": "HTML or XML",
}
"""The first bytes of files that are often named like CSV -> what they are."""


class ImportRefused(PipelineError):
    """A file cannot be imported; none of its rows was stored."""


class NothingToImport(ImportRefused):
    """A file lacks a column, or none of its rows holds anything to import."""

    exit_code = UsageError.exit_code


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
        raise ImportRefused(
            f"revision {data.revision[:12]} of {data.name} is not ingested; {advice}"
        )


def batch_of(content: bytes, *options: str | None) -> str:
    """Return the id of an import batch: a hash of its content and of the given options."""
    hasher = hashlib.sha256(content)
    if any(option is not None for option in options):
        hasher.update(repr(options).encode())
    return hasher.hexdigest()[:16]


def given_rows(
    file: Path, benchmark: Benchmark | None = None, **defaults: str | None
) -> Iterator[tuple[str, Given]]:
    """Yield the rows of a file, each with its location; `defaults` fill a row's empty cells.

    A `.json` file is one object `{task: response}`, another object (a row) or a list of rows;
    `.jsonl`, `.csv` and `.parquet` hold rows. Rows in the own shape of a `benchmark` are converted.

    Raises:
        ImportRefused: a row is no object, is in the benchmark's own shape and cannot be read, or
            has something else where a text belongs.
    """
    in_known_shape = benchmark.graded_rows() if benchmark else lambda row: (row,)
    for number, row in enumerate(_read(file), start=1):
        where = f"{file}: row {number}"
        if not isinstance(row, Mapping):
            raise ImportRefused(f"{where}: not an object but {type(row).__name__}")
        cells = {name: decoded(value) for name, value in row.items()}
        for name, value in defaults.items():
            if value is not None and not is_filled(cells.get(name)):
                cells[name] = value
        try:
            for each in in_known_shape(cells):
                yield where, _with_texts(each)
        except (ValueError, RecursionError) as error:
            raise ImportRefused(f"{where}: {error}; correct the row") from error


def _with_texts(row: Given) -> Given:
    """Return a row with the texts and labels in its columns."""
    texts = {name: cell_text(row, name) for name in _TEXTS if name in row}
    labels = {name: cell_label(row, name) for name in _LABELS if name in row}
    response = {"response": response_text(row, "response")} if "response" in row else {}
    return {
        **row,
        **texts,
        **labels,
        **response,
    }


def _read(file: Path) -> Iterable[Any]:
    if file.suffix == ".csv":
        return _csv_rows(file)
    if file.suffix != ".json":
        return read_rows(file)
    try:
        document = read_json(read_regular(file).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ImportRefused(f"{file}: not JSON ({error}); correct the file") from error
    if (
        isinstance(document, dict)
        and "task" not in document
        and not any(map(_is_nested, document.values()))
    ):
        return [{"task": task, "response": response} for task, response in document.items()]
    return document if isinstance(document, list) else [document]


def _is_nested(value: Any) -> bool:
    """Return whether a value is a list or an object, and not a response as a list of messages."""
    return isinstance(value, dict | list) and not is_conversation(value)


def _csv_rows(file: Path) -> Sequence[Given]:
    """Return the rows of a CSV file, with all cells as text, without the mark that our files put
    before a formula.

    Cells are separated by a comma, a semicolon, a tab or a bar: by the one in the first line
    `sep=;`, which spreadsheets write, or else by the one that gives most columns. Cells without a
    column may be empty.

    Polars and PyArrow are not used, because they misread some files without an error: Polars (2.1)
    fills up short rows, and finds no rows if lines end in a carriage return; PyArrow (26) joins
    lines if a quote is closed too late.
    """
    csv.field_size_limit(2**31 - 1)  # a whole response is one cell
    rows: list[dict[Any, Any]] = []
    unread = "its headings"
    try:
        with open_regular(file) as opened:
            _refuse_other_kind(file, opened)
            reader = _csv_reader(TextIOWrapper(opened, encoding="utf-8", newline=""))
            reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
            refuse_twice(file, filter(None, reader.fieldnames))
            unread = "row 1"
            for row in reader:
                rows.append(row)
                unread = f"row {len(rows) + 1}"
    except UnicodeDecodeError as error:
        raise ImportRefused(f"{file}: not CSV in UTF-8 ({error}); save it again") from error
    except csv.Error as error:
        fault = "a quote that begins there is not closed before the end of its cell"
        raise ImportRefused(f"{file}: {unread}: {fault} ({error}); correct it") from error
    for number, row in enumerate(rows, start=1):
        without_column = row.pop(None, [])
        if any(without_column) or None in row.values():
            raise ImportRefused(
                f"{file}: row {number}: has fewer or more cells than there are columns; correct it"
            )
    return [{name: as_before(cell) for name, cell in row.items()} for row in rows]


def _refuse_other_kind(file: Path, opened: BufferedReader) -> None:
    """Refuse a file that is named like CSV and begins like another kind of file."""
    beginning = opened.read(512)
    opened.seek(0)
    for first_bytes, kind in _OTHER_KINDS.items():
        if beginning.lstrip(_BEFORE_HEADINGS).startswith(first_bytes):
            raise ImportRefused(f"{file}: not CSV but {kind}; save it as CSV in UTF-8")


def _csv_reader(lines: Iterable[str]) -> "csv.DictReader[str]":
    """Return a reader of rows, without byte order marks and blank lines before the headings."""
    shown_lines = dropwhile(is_blank, (line.lstrip(_BYTE_ORDER_MARK) for line in lines))
    first = next(shown_lines, "")
    stated = _STATED_SEPARATOR.fullmatch(first)
    if stated is None:
        return csv.DictReader(chain([first], lines), strict=True, delimiter=_separator_in(first))
    return csv.DictReader(chain([next(shown_lines, "")], lines), strict=True, delimiter=stated[1])


def _separator_in(header: str) -> str:
    """Return the separator that is most frequent outside of quotes."""
    bare_header = re.sub(r'"[^"]*"', "", header)
    return max(_SEPARATORS, key=bare_header.count)


def is_filled(value: Any) -> bool:
    """Return whether a cell has a value: not None, NaN or a blank text."""
    if isinstance(value, float):
        return not math.isnan(value)
    return not is_blank(value) if isinstance(value, str | None) else True


def refuse_missing_column(
    file: Path, rows: Iterable[Given], names: Sequence[str], option: str = ""
) -> None:
    """Refuse rows none of which has one of these columns; the message names the nearest column.

    `option` is an option of the command that gives the value to all rows.

    Raises:
        NothingToImport: there are rows, and none has one of the columns.
    """
    columns = {column: None for row in rows for column in row}
    if not columns or not columns.keys().isdisjoint(names):
        return
    hints = filter(None, (did_you_mean(name, columns) for name in names))
    hint = next(hints, f" (the columns are {some(list(columns), 8)})")
    others = "".join(f", or `{name}`" for name in names[1:])
    how = f", or give {option}" if option else ""
    raise NothingToImport(f"{file}: `{names[0]}` is missing{hint}; add the column{others}{how}")


def refuse_nothing(source: object, notes: Iterable[str]) -> None:
    """Refuse a file that gave nothing; `notes` say how many rows were skipped, and why.

    Raises:
        NothingToImport: always.
    """
    reasons = "; ".join(notes) or "it has no rows"
    raise NothingToImport(f"{source}: holds nothing to import ({reasons}); check the file")


def text_in(row: Given, name: str) -> str | None:
    """Return the text of a cell in a column of texts or labels; None if it is blank."""
    text: str | None = row.get(name)
    return None if is_blank(text) else text


def required_text(where: str, row: Given, name: str, option: str = "") -> str:
    """Return a required text of a row; the error message names the option that sets it for all
    rows.
    """
    text = text_in(row, name)
    if text is None:
        how = f" ({option} gives it to all rows)" if option else ""
        raise ImportRefused(f"{where}: `{name}` is missing; add it{how}")
    return text


def of_what_is_here(
    rows: Iterable[Offered], find: Callable[[Offered], Subject], *, skip_unknown: bool
) -> tuple[list[tuple[Offered, Subject]], list[str]]:
    """Return rows with what `find` returns for them, and a note on skipped rows.

    A row on an unknown subject is refused, or with `skip_unknown` skipped.
    """
    here = list[tuple[Offered, Subject]]()
    n_unknown = 0
    for row in rows:
        try:
            here.append((row, find(row)))
        except NotHere as error:
            if not skip_unknown:
                raise ImportRefused(f"{error} (--skip-unknown skips such rows)") from error
            n_unknown += 1
    return here, (
        [f"{n_unknown} rows skipped whose task or criterion is not in the data set"]
        if n_unknown
        else []
    )


def number_of(where: str, row: Given, name: str, first: int = 1) -> int:
    """Return the number of a trial, counted from 1, or 1 if the row has none; the rows count from
    `first`.

    Raises:
        ImportRefused: it is not a whole number, or is too large or too small for a trial.
    """
    given = row.get(name)
    last = first + _MOST_TRIALS - 1
    if not is_filled(given):
        return 1
    digits = _WHOLE_NUMBER.fullmatch(given.strip()) if isinstance(given, str) else None
    number = int(digits[1]) if digits else as_whole_number(given)
    if number is None or not first <= number <= last:
        raise ImportRefused(
            f"{where}: `{name}` is {repr(given)[:80]}; it is a whole number from {first} to {last}"
        )
    return number - first + 1


CONTENT = {
    "responses": ("text", "model {model}, trial {trial}"),
    "verdicts": ("value", "judge {judge}, value {value:g}"),
    "reviews": ("value explanation better_wording", "reviewer {reviewer}, value {value:g}"),
}
"""Kind of rows -> the columns of their content, the first of which is NULL for a failure, and a
format for the description of a row.
"""


def stored_cells(reader: Reader, table: str) -> dict[str, Row]:
    """Return the stored rows of a table that were imported: id -> content and batch."""
    identity = f"{table[:-1]}_id"
    rows = reader.select(
        table, f"{identity}, {CONTENT[table][0]}, import_batch", order=identity, source="imported"
    )
    return {row[identity]: row for row in rows}


class Cells:
    """The rows of a kind to import, compared by id with stored rows and with earlier rows of the
    import.

    Attributes:
        new: the rows to store.
        given: the ids of all rows.
        n_hidden: number of decisions left out because the call is known to have failed, so they may
            hide the failure.
    """

    def __init__(
        self, kind: str, known: dict[str, Row], batch: str, *, gives_way: bool = False
    ) -> None:
        """Start with the `known` rows, by id: stored ones, and earlier ones of this import.

        With `gives_way`, a failure is ignored if a text or a decision is known; otherwise it is
        refused.
        """
        self._kind = kind
        self._known = known
        self._batch = batch
        self._gives_way = gives_way
        self.new: dict[str, Row] = {}
        self.given: set[str] = set()
        self.n_hidden = 0

    def put(self, where: str, row: Row) -> Row:
        """Add a row; a text or a decision replaces a failure. Return the row to store.

        Raises:
            ImportRefused: a different row with this id exists.
        """
        kind = self._kind[:-1]
        columns = CONTENT[self._kind][0].split()
        named = CONTENT[self._kind][1]
        identity = row[f"{kind}_id"]
        content = row[columns[0]]
        self.given.add(identity)
        before = self._known.get(identity)
        if before is not None and before[columns[0]] is not None:
            is_other = any(row[column] != before[column] for column in columns)
            if is_other and not (content is None and self._gives_way):
                is_own = before["import_batch"] == self._batch
                origin = (
                    "earlier in this import" if is_own else f"import batch {before['import_batch']}"
                )
                about = f"{named.format(**{**row, **before})}, {origin}"
                advice = "retract it, or use another label or trial"
                raise ImportRefused(
                    f"{where}: a different {kind} already exists ({about}); {advice}"
                )
        elif before is not None and content is not None and row.get("may_hide_failures"):
            self.n_hidden += 1
        elif before is None or content is not None:
            self._known[identity] = self.new[identity] = row
        return self.new.get(identity, row)


def store(
    job: Job, batch: str, cells: Mapping[str, Cells], notes: Iterable[str] = ()
) -> StageReport:
    """Write the new rows of each kind and report on them, with further notes; a retracted batch is
    restored.
    """
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
        how = (
            f"run with --model, or add them to `models` (as {{label: {labels[0]}, source:"
            " imported})"
        )
        report.warnings.append(
            f"{', '.join(labels)}: not configured, so no run judges these responses; {how}"
        )
    return report


def batch_in(warehouse: Warehouse, batch: str) -> tuple[str, int, bool]:
    """Return the published rows of an import batch in words, their number, and whether the batch is
    retracted.

    They are responses, verdicts (also of judges on these responses), and reviews.
    """
    with warehouse.reader() as reader:
        *counts, is_retracted = reader.rows(sql.read("queries/imports/batch"), {"batch": batch})[
            0
        ].values()
    named = zip(counts, ("responses", "verdicts", "reviews"), strict=True)
    return " and ".join(f"{n} {kind}" for n, kind in named if n), sum(counts), is_retracted


def batches(job: Job) -> list[Row]:
    """Return all import batches, the latest first: time, numbers of rows, retracted or not, and the
    import's command.

    The command names the imported files; it is None if its run is not stored.

    Raises:
        WarehouseError: a part cannot be read.
    """
    warehouse = Warehouse(job.warehouse)
    stored = imported_batches(warehouse.store)
    with warehouse.reader() as reader:
        retracted = {row["import_batch"] for row in reader.select("retractions", is_retracted=True)}
        runs = reader.select("runs", "run_id, command", run_id=[row["run_id"] for row in stored])
    commands = {run["run_id"]: run["command"] for run in runs}
    for row in stored:
        row["is_retracted"] = row["import_batch"] in retracted
        row["command"] = commands.get(row.pop("run_id"))
    return stored


def _write_retraction(job: Job, batch: str, *, is_retracted: bool) -> None:
    """Store whether a batch counts."""
    row = {
        "import_batch": batch,
        "is_retracted": is_retracted,
        "run_id": job.run_id,
        "created_at": datetime.now(UTC),
    }
    Warehouse(job.warehouse).write("retractions", [row])


def retract(job: Job, batch: str) -> StageReport:
    """Retract an import batch: its responses with all verdicts on them, its verdicts, and its
    reviews.

    No row is deleted. Importing the same file again restores all rows, including the verdicts of
    judges.

    Raises:
        UsageError: the batch does not exist.
    """
    warehouse = Warehouse(job.warehouse)
    warehouse.publish()
    before, n_rows, is_retracted = batch_in(warehouse, batch)
    if is_retracted:
        return StageReport("import", notes=[f"batch {batch} is already retracted"])
    if not n_rows:
        raise UsageError(f"--retract {batch}: no such batch; `prbench import --list` shows all")
    _write_retraction(job, batch, is_retracted=True)
    warehouse.publish()
    note = f"{before} retracted (batch {batch}); import the same file again to restore them"
    return StageReport("import", rows=n_rows, notes=[note])
