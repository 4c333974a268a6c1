"""Where the rows of a data set come from: the hub, files, the samples that ship."""

from tasks.dataset.foreign_files import (
    MOST_BYTES,
    ZIP_ERRORS,
    NotInside,
    TooLarge,
    bounded,
    files_inside,
    member_chunks,
    open_inside,
    open_regular,
    refuse_bomb,
)
from tasks.dataset.rows import SUFFIXES, SourceError, parquet_batches, read_rows
from tasks.dataset.source import Source, open_source, sample_of, source_of, with_revision

__all__ = [
    "MOST_BYTES",
    "SUFFIXES",
    "ZIP_ERRORS",
    "NotInside",
    "Source",
    "SourceError",
    "TooLarge",
    "bounded",
    "files_inside",
    "member_chunks",
    "open_inside",
    "open_regular",
    "open_source",
    "parquet_batches",
    "read_rows",
    "refuse_bomb",
    "sample_of",
    "source_of",
    "with_revision",
]
