"""Where the rows of a data set come from: the hub, files, the samples that ship."""

from tasks.dataset.foreign_files import NotInside, files_inside, open_inside
from tasks.dataset.rows import SUFFIXES, SourceError, read_rows
from tasks.dataset.source import Source, open_source, sample_of, source_of, with_revision

__all__ = [
    "SUFFIXES",
    "NotInside",
    "Source",
    "SourceError",
    "files_inside",
    "open_inside",
    "open_source",
    "read_rows",
    "sample_of",
    "source_of",
    "with_revision",
]
