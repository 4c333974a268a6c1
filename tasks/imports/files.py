"""What all imports share: reading files of rows, storing new rows, and retraction."""

import csv
import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from io import BufferedReader, TextIOWrapper
from itertools import chain, filterfalse
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

from tasks.benchmarks.base import Benchmark, pass_on
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
from tasks.dataset.source import read_rows, refuse_repeated_columns
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.text.cells import without_mark
from tasks.rules.text.characters import did_you_mean, is_blank
from tasks.rules.text.json_text import read_json
from tasks.rules.text.numbers import counted, list_text
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse, advice_if_writable
from warehouse.compaction import imported_batches

FileRow = Mapping[str, Any]
StoredRow = dict[str, Any]
Subject = TypeVar("Subject")
Columns = Mapping[tuple[str, ...], str]
"""The names that a needed column may have -> the option of the command that gives all rows its
value; an empty text if there is no such option.
"""


class LocatedRow(NamedTuple):
    """A row of a file, with its location for messages, such as `labels.csv: row 3`.

    `document` is the file that holds its response, if the row does not.
    """

    where: str
    row: FileRow
    document: Path | None = None


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
"""Columns of names, ids and words. A file may have numbers in them, which are read as texts."""
_READERS: Mapping[str, Callable[[FileRow, str], str | None]] = {
    **dict.fromkeys(_LABELS, cell_label),
    **dict.fromkeys(("explanation", "reason", "better_wording", "title"), cell_text),
    "response": response_text,
}
"""Column -> the function that reads the text of its cells."""
_WHOLE_NUMBER = re.compile(r"([0-9]{1,19})(?:\.0*)?")
_SEPARATORS = ",;\t|"
_STATED_SEPARATOR = re.compile(r'"?sep=([,;|:^~\t])\s*"?\s*', re.IGNORECASE)
"""Matches the first line of a file that states the separator of its cells."""
_BYTE_ORDER_MARK = "\ufeff"
_BEFORE_HEADINGS = b" \t\r\n" + _BYTE_ORDER_MARK.encode()
"""Bytes that may come before the headings; `lstrip` removes each of them, in any order."""
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


class NotInDataSet(ImportRefused):
    """A row is about a task or a criterion that is not in the data set, or fits several in it."""


def refuse_not_ingested(job: Job, tasks: object) -> None:
    """Refuse an import into a data set without stored tasks.

    Raises:
        ImportRefused: it has none.
    """
    if not tasks:
        advice = advice_if_writable(job.warehouse, "run `prbench ingest` first")
        revision = job.data.revision[:12]
        raise ImportRefused(f"revision {revision} of {job.data.name} is not ingested; {advice}")


def batch_of(content: bytes, *options: str | None) -> str:
    """Return the id of an import batch: a hash of its content and of the given options."""
    hasher = hashlib.sha256(content)
    if any(option is not None for option in options):
        hasher.update(repr(options).encode())
    return hasher.hexdigest()[:16]


def rows_of_file(
    file: Path,
    benchmark: Benchmark | None = None,
    **defaults: str | None,
) -> Iterator[LocatedRow]:
    """Yield the rows of a file; `defaults` fill a row's empty cells.

    A `.json` file is one object `{task: response}`, another object (a row) or a list of rows;
    `.jsonl`, `.csv` and `.parquet` hold rows. Rows in the own shape of a `benchmark` are converted.

    Raises:
        ImportRefused: a row is no object; or it has something else where a text belongs; or it is
            in the benchmark's own shape, and its reader refuses it.
    """
    # One reader for the whole file, because what it makes of a row may depend on earlier rows.
    read_graded = benchmark.graded_rows() if benchmark else pass_on
    for number, row in enumerate(_entries_of(file), start=1):
        where = f"{file}: row {number}"
        if not isinstance(row, Mapping):
            raise ImportRefused(f"{where}: not an object but {type(row).__name__}")
        cells = {name: decoded(value) for name, value in row.items()}
        for name, value in defaults.items():
            if value is not None and not is_filled(cells.get(name)):
                cells[name] = value
        try:
            for converted in read_graded(cells):
                yield LocatedRow(where, _with_texts(converted))
        except (ValueError, RecursionError) as error:
            raise ImportRefused(f"{where}: {error}; correct the row") from error


def _with_texts(row: FileRow) -> FileRow:
    """Return a row with the texts and labels in its columns."""
    converted = dict(row)
    for name in row:
        read = _READERS.get(name)
        if read is not None:
            converted[name] = read(row, name)
    return converted


def _entries_of(file: Path) -> Iterable[Any]:
    """Return the entries of a file, each of which should be a row."""
    if file.suffix == ".csv":
        return _csv_rows(file)
    if file.suffix != ".json":
        return read_rows(file)
    try:
        document = read_json(read_regular(file).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ImportRefused(f"{file}: not JSON ({error}); correct the file") from error
    if isinstance(document, list):
        return document
    if not isinstance(document, dict) or "task" in document:
        return [document]
    for value in document.values():
        # A list of messages is a response, too.
        if isinstance(value, dict | list) and not is_conversation(value):
            return [document]
    return [{"task": task, "response": response} for task, response in document.items()]


def _csv_rows(file: Path) -> Sequence[FileRow]:
    """Return the rows of a CSV file as texts, without the mark that exports put before formulas.

    Cells are separated by a comma, a semicolon, a tab or a bar: by the one in the first line
    `sep=;`, which spreadsheets write, or else by the one that gives most columns. Cells without a
    column may be empty.

    Polars and PyArrow are not used, because they misread some files without an error: Polars (2.1)
    fills up short rows, and finds no rows if lines end in a carriage return; PyArrow (26) joins
    lines if a quote is closed too late.
    """
    csv.field_size_limit(2**31 - 1)  # a whole response is one cell
    rows = []
    # Where the reader is: an error names the row that could not be read.
    location = "its headings"
    try:
        with open_regular(file) as opened:
            _refuse_other_kind(file, opened)
            reader = _csv_reader(TextIOWrapper(opened, encoding="utf-8", newline=""))
            reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
            refuse_repeated_columns(file, reader.fieldnames)
            location = "row 1"
            for row in reader:
                rows.append(row)
                location = f"row {len(rows) + 1}"
    except UnicodeDecodeError as error:
        raise ImportRefused(f"{file}: not CSV in UTF-8 ({error}); save it again") from error
    except csv.Error as error:
        raise ImportRefused(
            f"{file}: {location}: a quote that begins there is not closed before the end of its"
            f" cell ({error}); correct it"
        ) from error
    for number, row in enumerate(rows, start=1):
        # `DictReader` has surplus cells under None, and None for missing ones.
        surplus_cells = row.pop(None, [])
        if any(surplus_cells) or None in row.values():
            raise ImportRefused(
                f"{file}: row {number}: has fewer or more cells than there are columns; correct it"
            )
        for name, cell in row.items():
            row[name] = without_mark(cell)
    return rows


def _refuse_other_kind(file: Path, opened: BufferedReader) -> None:
    """Refuse a file that is named like CSV and begins like another kind of file."""
    beginning = opened.read(512)
    opened.seek(0)
    for first_bytes, kind in _OTHER_KINDS.items():
        if beginning.lstrip(_BEFORE_HEADINGS).startswith(first_bytes):
            raise ImportRefused(f"{file}: not CSV but {kind}; save it as CSV in UTF-8")


def _csv_reader(lines: Iterator[str]) -> "csv.DictReader[str]":
    """Return a reader of the rows in `lines`, without byte order marks and blank lines before the
    headings.

    This function reads `lines` up to the headings; the returned reader reads the rest.
    """
    filled_lines = filterfalse(is_blank, (line.lstrip(_BYTE_ORDER_MARK) for line in lines))
    headings = next(filled_lines, "")
    stated_separator = _STATED_SEPARATOR.fullmatch(headings)
    if stated_separator is None:
        unquoted_headings = re.sub(r'"[^"]*"', "", headings)
        separator = max(_SEPARATORS, key=unquoted_headings.count)
    else:
        separator = stated_separator[1]
        headings = next(filled_lines, "")
    return csv.DictReader(chain([headings], lines), strict=True, delimiter=separator)


def is_filled(value: Any) -> bool:
    """Return whether a cell has a value: not None, NaN or a blank text."""
    if isinstance(value, float):
        return not math.isnan(value)
    return not (isinstance(value, str | None) and is_blank(value))


def rows_with_columns(
    file: Path,
    columns: Columns,
    benchmark: Benchmark | None = None,
    **defaults: str | None,
) -> list[LocatedRow]:
    """Return the rows of a file that has the needed columns (see `rows_of_file`).

    A file without rows is not refused here.

    Raises:
        NothingToImport: there are rows, and none has one of the columns; the message names the
            nearest column.
    """
    rows = list(rows_of_file(file, benchmark, **defaults))
    file_columns = {}
    for located in rows:
        file_columns.update(dict.fromkeys(located.row))
    for names, option in columns.items():
        if file_columns and file_columns.keys().isdisjoint(names):
            hints = filter(None, (did_you_mean(name, file_columns) for name in names))
            hint = next(hints, f" (the columns are {list_text(list(file_columns), 8)})")
            advice = "".join(f", or `{name}`" for name in names[1:])
            if option:
                advice += f", or give {option}"
            raise NothingToImport(f"{file}: `{names[0]}` is missing{hint}; add the column{advice}")
    return rows


def raise_nothing_to_import(source: object, notes: Iterable[str]) -> NoReturn:
    """Refuse a file that gave nothing; `notes` say how many rows were skipped, and why.

    Raises:
        NothingToImport: always.
    """
    reasons = "; ".join(notes) or "it has no rows"
    raise NothingToImport(f"{source}: holds nothing to import ({reasons}); check the file")


def count_notes(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a note for each description whose number is not 0."""
    for description, count in counts.items():
        if count:
            yield f"{count} {description}"


def text_in(row: FileRow, name: str) -> str | None:
    """Return the text of a cell in a column of texts or labels; None if it is blank.

    The row is one of `rows_of_file`, which has only texts in such columns.
    """
    text: str | None = row.get(name)
    return None if is_blank(text) else text


def required_text(where: str, row: FileRow, name: str, option: str = "") -> str:
    """Return a required text of a row; `option` is what gives it to all rows.

    Raises:
        ImportRefused: the cell is blank or missing.
    """
    text = text_in(row, name)
    if text is None:
        advice = f" ({option} gives it to all rows)" if option else ""
        raise ImportRefused(f"{where}: `{name}` is missing; add it{advice}")
    return text


def decided_rows(
    rows: Sequence[LocatedRow],
    decision_in: Callable[[FileRow], object],
) -> tuple[list[LocatedRow], list[str]]:
    """Return the rows with a decision, and a note on the others, if there are any.

    `decision_in` returns the decision of a row, or nothing (such as None).
    """
    decided = [located for located in rows if decision_in(located.row)]
    n_empty = len(rows) - len(decided)
    notes = []
    if n_empty:
        notes.append(f"{counted(n_empty, 'row')} without a decision skipped")
    return decided, notes


def matched_rows(
    rows: Iterable[LocatedRow],
    subject_of: Callable[[LocatedRow], Subject],
    *,
    skip_unknown: bool,
) -> tuple[list[tuple[LocatedRow, Subject]], list[str]]:
    """Return rows with the subject that each is about, and a note on skipped rows.

    A row on an unknown subject (`NotInDataSet`) is refused, or with `skip_unknown` skipped.
    """
    matched = []
    n_unknown = 0
    for located in rows:
        try:
            subject = subject_of(located)
        except NotInDataSet as error:
            if not skip_unknown:
                raise ImportRefused(f"{error} (--skip-unknown skips such rows)") from error
            n_unknown += 1
        else:
            matched.append((located, subject))
    notes = []
    if n_unknown:
        skipped = f"{counted(n_unknown, 'row')} skipped"
        notes.append(f"{skipped}: the task or criterion is not in the data set")
    return matched, notes


def number_of(where: str, row: FileRow, name: str, lowest: int = 1) -> int:
    """Return the number in a cell, such as that of a trial; 1 if the cell is empty or missing.

    It is counted from 1, also if the file counts from another `lowest`.

    Raises:
        ImportRefused: it is not a whole number, or not one of the 10,000 from `lowest`.
    """
    cell = row.get(name)
    if not is_filled(cell):
        return 1
    digits = _WHOLE_NUMBER.fullmatch(cell.strip()) if isinstance(cell, str) else None
    number = int(digits[1]) if digits else as_whole_number(cell)
    highest = lowest + 9_999
    if number is None or not lowest <= number <= highest:
        raise ImportRefused(
            f"{where}: `{name}` is {repr(cell)[:80]}; it is a whole number from {lowest} to"
            f" {highest}"
        )
    return number - lowest + 1


class Content(NamedTuple):
    """A kind of rows: its table, and how two rows with one id are compared.

    Attributes:
        noun: the word for one row, such as `verdict`, whose id is the column `verdict_id`.
        table: the table of these rows.
        columns: the columns that must be equal.
        description: a format that describes a row in messages.
    """

    noun: str
    table: str
    columns: tuple[str, ...]
    description: str

    @property
    def decided_column(self) -> str:
        """The column that is NULL for a failure, and only for one: the first."""
        return self.columns[0]


CONTENT = {
    "responses": Content("response", "responses", ("text",), "model {model}, trial {trial}"),
    "verdicts": Content("verdict", "verdicts", ("value",), "judge {judge}, value {value:g}"),
    "reviews": Content(
        "review",
        "expert_reviews",
        ("value", "explanation", "better_wording"),
        "reviewer {reviewer}, value {value:g}",
    ),
}
"""Kind of rows -> its content."""


def imported_rows(reader: Reader, kind: str) -> dict[str, StoredRow]:
    """Return the imported responses or verdicts that are stored: id -> content and batch.

    Not for reviews, whose content has more columns.
    """
    content = CONTENT[kind]
    id_column = f"{content.noun}_id"
    columns = f"{id_column}, {content.decided_column}, import_batch"
    rows = reader.select(content.table, columns, order=id_column, source="imported")
    return {row[id_column]: row for row in rows}


class RowsToImport:
    """The rows of a kind to import, compared by id with stored rows and earlier ones of the import.

    Attributes:
        content: how rows of this kind are stored and compared.
        batch: the id of the import batch.
        new: the rows to store, by id.
        ids: the ids of all rows.
        n_left_out: number of decisions that are not stored, because a failure of the same call is
            stored, and their tool may write failures as decisions.
    """

    def __init__(
        self,
        kind: str,
        stored_rows: dict[str, StoredRow],
        batch: str,
        *,
        ignores_failures: bool = False,
    ) -> None:
        """Start with the stored rows of a kind, by id.

        `stored_rows` is updated, so that later files of the same import, which get the same
        mapping, see the rows of this one. With `ignores_failures`, a failure is ignored if there is
        a text or a decision already; otherwise it is refused.
        """
        self.content = CONTENT[kind]
        self._rows_by_id = stored_rows
        self.batch = batch
        self._ignores_failures = ignores_failures
        self.new: dict[str, StoredRow] = {}
        self.ids: set[str] = set()
        self.n_left_out = 0

    def is_in_batch(self, row_id: str) -> bool:
        """Return whether the batch already has a row with this id, stored or put."""
        earlier_row = self._rows_by_id.get(row_id)
        return earlier_row is not None and earlier_row["import_batch"] == self.batch

    def put(self, where: str, row: StoredRow) -> StoredRow:
        """Add a row to the batch; a text or a decision replaces a failure.

        Return the row of this import with the same id that will be stored; `row` itself if none
        will be, because an earlier row stays.

        Raises:
            ImportRefused: a different row with this id exists.
        """
        row["import_batch"] = self.batch
        row_id = row[f"{self.content.noun}_id"]
        self.ids.add(row_id)
        earlier_row = self._rows_by_id.get(row_id)
        if earlier_row is None:
            must_store = True
        elif self.is_failure(earlier_row):
            # A decision replaces a failure, unless its tool writes failures as decisions.
            is_decided = not self.is_failure(row)
            must_store = is_decided and not row.get("may_hide_failures")
            if is_decided and not must_store:
                self.n_left_out += 1
        else:
            self._refuse_difference(where, row, earlier_row)
            must_store = False
        if must_store:
            self._rows_by_id[row_id] = row
            self.new[row_id] = row
        return self.new.get(row_id, row)

    def is_failure(self, row: StoredRow) -> bool:
        """Return whether a row is a failure, without a text or a decision."""
        return row[self.content.decided_column] is None

    def _refuse_difference(self, where: str, row: StoredRow, earlier_row: StoredRow) -> None:
        is_equal = all(row[column] == earlier_row[column] for column in self.content.columns)
        if is_equal or (self._ignores_failures and self.is_failure(row)):
            return
        if earlier_row["import_batch"] == self.batch:
            origin = "earlier in this import"
        else:
            origin = f"import batch {earlier_row['import_batch']}"
        # The values of the earlier row count; a stored one has only its content.
        description = self.content.description.format(**{**row, **earlier_row})
        raise ImportRefused(
            f"{where}: a different {self.content.noun} already exists ({description}, {origin});"
            " retract it, or use another label or trial"
        )


def store_batch(
    job: Job,
    imports: Sequence[RowsToImport],
    notes: Iterable[str] = (),
) -> StageReport:
    """Write the new rows of a batch, publish them, and report on them, with further notes.

    `imports` has the rows of each kind, all of the same batch, in the order of the report. A
    retracted batch is restored. Models that are not configured are warned of.
    """
    warehouse = Warehouse(job.warehouse)
    batch = imports[0].batch
    was_retracted = published_batch(warehouse, batch).is_retracted
    n_rows = 0
    n_new = 0
    counts = []
    imported_labels: Iterable[str] = ()
    for rows in imports:
        warehouse.write(rows.content.table, rows.new.values())
        n_rows += len(rows.ids)
        n_new += len(rows.new)
        counts.append(counted(len(rows.new), rows.content.noun))
        if rows.content.noun == "response":
            imported_labels = dict.fromkeys(row["model"] for row in rows.new.values())
    if was_retracted:
        _write_retraction(job, batch, is_retracted=False)
    warehouse.publish()
    note = f"{' and '.join(counts)} imported, {n_rows - n_new} already present"
    if was_retracted:
        note = f"{published_batch(warehouse, batch).description} restored"
    report = StageReport("import", rows=n_new, notes=[f"{note} (batch {batch})", *notes])
    configured_labels = job.settings.model_labels
    labels = [label for label in imported_labels if label not in configured_labels]
    if configured_labels and labels:
        report.warnings.append(
            f"{', '.join(labels)}: not configured, so no run judges these responses; run with"
            f" --model, or add them to `models` (as {{label: {labels[0]}, source: imported}})"
        )
    return report


class PublishedBatch(NamedTuple):
    """The published rows of an import batch, in words, and their number."""

    description: str
    n_rows: int
    is_retracted: bool


def published_batch(warehouse: Warehouse, batch: str) -> PublishedBatch:
    """Return what is published of an import batch; its `n_rows` is 0 if no row is stored.

    Its rows are responses, verdicts (also of judges on these responses), and reviews.
    """
    with warehouse.reader() as reader:
        row = reader.query("queries/imports/batch", {"batch": batch})[0]
    counts = {kind: row[f"n_{kind}"] for kind in CONTENT}
    parts = [counted(n, CONTENT[kind].noun) for kind, n in counts.items() if n]
    return PublishedBatch(" and ".join(parts), sum(counts.values()), row["is_retracted"])


def batches(job: Job) -> list[StoredRow]:
    """Return all import batches, the latest first.

    A row has the time, numbers of rows, whether the batch is retracted, and the import's command,
    which names the imported files; the command is None if the import's run is not stored.

    Raises:
        WarehouseError: a part cannot be read.
    """
    warehouse = Warehouse(job.warehouse)
    rows = imported_batches(warehouse.store)
    run_ids = [row["run_id"] for row in rows]
    with warehouse.reader() as reader:
        retracted = {row["import_batch"] for row in reader.select("retractions", is_retracted=True)}
        runs = reader.select("runs", "run_id, command", run_id=run_ids)
    commands = {run["run_id"]: run["command"] for run in runs}
    for row in rows:
        row["is_retracted"] = row["import_batch"] in retracted
        row["command"] = commands.get(row.pop("run_id"))
    return rows


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
    """Retract an import batch: its responses with all verdicts on them, its verdicts, its reviews.

    No row is deleted. Importing the same file again restores all rows, including the verdicts of
    judges.

    Raises:
        UsageError: the batch does not exist.
    """
    warehouse = Warehouse(job.warehouse)
    warehouse.publish()
    published = published_batch(warehouse, batch)
    if published.is_retracted:
        return StageReport("import", notes=[f"batch {batch} is already retracted"])
    if not published.n_rows:
        raise UsageError(f"--retract {batch}: no such batch; `prbench import --list` shows all")
    _write_retraction(job, batch, is_retracted=True)
    warehouse.publish()
    note = (
        f"{published.description} retracted (batch {batch}); import the same file again to restore"
        " them"
    )
    return StageReport("import", rows=published.n_rows, notes=[note])
