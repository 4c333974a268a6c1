"""The rows of a Parquet or JSON Lines file."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.text.json_text import KeyTwice, read_json

Row = Mapping[str, Any]
SUFFIXES = {".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl"}


class SourceError(PipelineError):
    """A data set cannot be read; the message names the file and the line where there is one."""


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a Parquet or JSON Lines file."""
    return _read_jsonl(path) if kind_of(path) == "jsonl" else iter(_read_parquet(path))


def kind_of(path: Path) -> str:
    """`parquet` or `jsonl`, by the name of a file.

    Raises:
        UsageError: it is neither.
    """
    kind = SUFFIXES.get(path.suffix)
    if kind is None:
        raise UsageError(f"{path}: a data set is a .parquet or .jsonl file")
    return kind


def _read_parquet(path: Path) -> list[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise SourceError(f"{path}: has the column {twice!r} twice; keep one of the two")
        rows: list[Row] = pq.read_table(path).to_pylist()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise SourceError(f"{path}: cannot be read as Parquet ({reason}); fetch it again") from error
    return rows


def _read_jsonl(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", errors="strict") as file:
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
