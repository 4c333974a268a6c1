"""Conversion of documents to Markdown, each in a process of its own, since files may be harmful.

The process is `python -m tasks.imports.conversion KIND < FILE`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tasks.console import advance, progress
from tasks.dataset.foreign_files import bounded, open_inside
from tasks.rules.errors import PipelineError, UsageError, install_extra

_LIBRARIES = {".pdf": ("pdfplumber",), ".docx": ("mammoth", "markdownify")}
_PLAIN = (".md", ".markdown", ".txt")
SUFFIXES = (*_PLAIN, *_LIBRARIES)
"""File endings of documents, in lower case."""
LONGEST_S = 300.0
"""Time limit of the conversion of a document, in seconds."""


class DocumentRefused(PipelineError):
    """A document cannot be converted; the message gives the reason and the remedy."""


class Converted(NamedTuple):
    """A document as Markdown.

    Attributes:
        text: the Markdown; only white space if the document has no text.
        n_pages_without_text: number of pages of a PDF that are empty or have only pictures.
        n_unreadable: number of characters that their font does not identify; each is U+FFFD in the
            text.
        lacks_formulas: true if formulas were left out, because they are not text.
    """

    text: str
    n_pages_without_text: int = 0
    n_unreadable: int = 0
    lacks_formulas: bool = False


def convert(files: Sequence[Path], folder: Path, *, is_quiet: bool) -> dict[Path, Converted]:
    """Convert every file of a folder to Markdown, as many at a time as there are processors.

    Files are opened only within the folder.

    Raises:
        UsageError: the libraries for a file are not installed.
        DocumentRefused: a file cannot be converted; the message names it.
    """
    for file in files:
        libraries = _LIBRARIES.get(file.suffix.lower(), ())
        if any(find_spec(library) is None for library in libraries):
            raise UsageError(
                f"{file}: PDF and DOCX files need more libraries: {install_extra('documents')}"
            )
    conversions = {}
    with (
        progress("convert", {"": len(files)}, is_quiet=is_quiet),
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        results = pool.map(lambda file: _convert_file(file, folder), files)
        for file, converted in zip(files, results, strict=True):
            conversions[file] = converted
            advance("convert", succeeded=True)
    return conversions


def converters(files: Iterable[Path]) -> list[str]:
    """Return the libraries, with their versions, that convert these files; text files need none."""
    names: set[str] = set()
    for file in files:
        names.update(_LIBRARIES.get(file.suffix.lower(), ()))
    return [f"{name} {version(name)}" for name in sorted(names)]


def _convert_file(file: Path, folder: Path) -> Converted:
    """Convert a document, in a process of its own unless it is plain text."""
    try:
        with bounded(open_inside(folder, file.relative_to(folder)), file) as content:
            if file.suffix.lower() not in _PLAIN:
                return _convert_in_process(file, content)
            # With or without a byte order mark; another encoding cannot be detected.
            text = content.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentRefused(
            f"{file}: not UTF-8 (at byte {error.start}); save it in UTF-8"
        ) from error
    if "\0" in text:
        raise DocumentRefused(
            f"{file}: has NUL characters, perhaps from UTF-16 without its mark; save it in UTF-8"
        )
    return Converted(text)


def _convert_in_process(file: Path, content: BinaryIO) -> Converted:
    """Convert the content of a `.pdf` or `.docx` file in a separate process."""
    # -P: no modules from the current folder.
    command = [sys.executable, "-P", "-m", "tasks.imports.conversion", file.suffix.lower()]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        process = subprocess.run(
            command,
            check=True,
            capture_output=True,
            stdin=content,
            timeout=LONGEST_S,
            env=env,
        )
    except subprocess.SubprocessError as error:
        raise DocumentRefused(
            f"{file}: not converted within {LONGEST_S:.0f} s, or only with more memory than a"
            " report needs; give its text as Markdown"
        ) from error
    result = json.loads(process.stdout)
    if "refused" in result:
        raise DocumentRefused(f"{file}: {result['refused']}")
    return Converted(**result)
