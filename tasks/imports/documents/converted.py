"""What comes of a document, and why one may not be taken."""

from typing import NamedTuple

from tasks.rules.errors import PipelineError

PLAIN = (".md", ".markdown", ".txt")
PDF, DOCX = ".pdf", ".docx"
SUFFIXES = (*PLAIN, PDF, DOCX)
"""Endings of files that are documents, in lower case."""


class DocumentRefused(PipelineError):
    """A document cannot be read as it is; the message says why, and what to do."""


class Converted(NamedTuple):
    """A document as Markdown.

    Attributes:
        text: The Markdown; nothing but space where the document holds no text.
        n_pages: Pages of a PDF; 0 for other documents, which have none until they are printed.
        n_pages_without_text: Pages of a PDF that show nothing or pictures only.
        n_unreadable: Characters whose font does not say what they are; each stands as U+FFFD in the text.
        lacks_formulas: Whether formulas were left out, since they are no text.
    """

    text: str
    n_pages: int = 0
    n_pages_without_text: int = 0
    n_unreadable: int = 0
    lacks_formulas: bool = False
