"""The rows of a Parquet or JSON Lines file, and prompts that come in a file of their own."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.dataset.foreign_files import MOST_BYTES, TooLarge, open_regular, refuse_bomb
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.text.json_text import KeyTwice, read_json

if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, Any]
SUFFIXES = {".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_ROW_BYTES = 64
"""What a row takes beside its values."""
_ROWS_AT_ONCE = 256
"""Few, since a text that is stored once may stand in every row."""


class SourceError(PipelineError):
    """A data set cannot be read; the message names the file and the line where there is one."""


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a Parquet or JSON Lines file."""
    return _read_jsonl(path) if kind_of(path) == "jsonl" else _read_parquet(path)


def kind_of(path: Path) -> str:
    """`parquet` or `jsonl`, by the name of a file.

    Raises:
        UsageError: it is neither.
    """
    kind = SUFFIXES.get(path.suffix)
    if kind is None:
        raise UsageError(f"{path}: a data set is a .parquet or .jsonl file")
    return kind


def parquet_batches(
    path: Path, n_rows: int, columns: Sequence[str] | None = None, most_bytes: float = float("inf")
) -> Iterator["pa.RecordBatch"]:
    """The rows of a Parquet file, so many at a time; all of them have at most so many bytes.

    Raises:
        TooLarge: they have more, or the file unpacks to far more than its size.
        ArrowException: it is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_regular(path) as opened, pq.ParquetFile(opened) as file:
        groups = [file.metadata.row_group(n).total_byte_size for n in range(file.metadata.num_row_groups)]
        refuse_bomb(path, path.stat().st_size, groups)
        for batch in file.iter_batches(n_rows, columns=columns):
            most_bytes -= _ROW_BYTES * batch.num_rows + sum(
                (column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column).nbytes
                for column in batch.columns
            )
            if most_bytes < 0:
                raise TooLarge(f"{path}: it would unpack to more than {MOST_BYTES / 1e9:.1f} GB; split it")
            yield batch


def _read_parquet(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open_regular(path) as file:
            names = pq.read_schema(file).names
        if twice := next((name for name, n in Counter(names).items() if n > 1), None):
            raise SourceError(f"{path}: has the column {twice!r} twice; keep one of the two")
        for batch in parquet_batches(path, _ROWS_AT_ONCE, most_bytes=MOST_BYTES):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise SourceError(f"{path}: cannot be read as Parquet ({reason}); fetch it again") from error


def _read_jsonl(path: Path) -> Iterator[Row]:
    with TextIOWrapper(open_regular(path), encoding="utf-8-sig", errors="strict") as file:
        try:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield _json_row(path, number, line)
        except UnicodeDecodeError as error:
            raise SourceError(f"{path}: not UTF-8 text ({error.reason}); save it as UTF-8") from error


def _json_row(path: Path, number: int, line: str) -> Row:
    try:
        row = read_json(line)
    except KeyTwice as error:
        raise SourceError(f"{path}:{number}: {error} in the row; keep one of the two") from error
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path}:{number}: not a JSON object ({error}); correct or remove the line") from error
    if not isinstance(row, dict):
        raise SourceError(f"{path}:{number}: not a JSON object but {type(row).__name__}; correct or remove the line")
    return row


PROMPTS = ".tsv"


def read_prompts(path: Path) -> dict[str, str]:
    """The prompts of a file with a line for each: the task's id, a tab, the prompt as it stands (no quoting).

    Raises:
        SourceError: a line has no tab, or an id appears twice.
    """
    prompts: dict[str, str] = {}
    try:
        # Only line feeds end a line: a prompt may hold other characters that Python takes for line ends.
        with TextIOWrapper(open_regular(path), encoding="utf-8-sig") as file:
            lines = file.read().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: cannot be read ({error}); give a UTF-8 file of `id<TAB>prompt` lines") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        task_id, tab, prompt = line.rstrip("\r").partition("\t")
        if not tab:
            raise SourceError(f"{path}:{number}: no tab between the id and the prompt; correct the line")
        if task_id in prompts:
            raise SourceError(f"{path}:{number}: id {task_id!r} appears twice; keep one of the lines")
        prompts[task_id] = prompt
    return prompts


def with_prompts(rows: Iterable[Row], prompts: Mapping[str, str], id_columns: Iterable[str]) -> Iterator[Row]:
    """Rows with the prompt that belongs to their id; a row that has one keeps it, one without stays without."""
    names = tuple(id_columns)
    for row in rows:
        found = next((prompts[row[name]] for name in names if row.get(name) in prompts), None)
        yield row if found is None or row.get("prompt") else {**row, "prompt": found}
