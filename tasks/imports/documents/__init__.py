"""Documents: reports that come as files, turned into Markdown."""

from tasks.imports.documents.converted import SUFFIXES, Converted, DocumentRefused
from tasks.imports.documents.converting import convert, converters

__all__ = ["SUFFIXES", "Converted", "DocumentRefused", "convert", "converters"]
