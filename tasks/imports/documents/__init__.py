"""Documents: reports that come as files, turned into Markdown."""

from tasks.imports.documents.converting import SUFFIXES, Converted, DocumentRefused, convert, converters

__all__ = ["SUFFIXES", "Converted", "DocumentRefused", "convert", "converters"]
