"""Converting files, each in a process of its own: what one does to it harms nothing else, and it has its limits."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

from tasks.console import advance, progress
from tasks.dataset import NotInside, TooLarge, bounded, open_inside
from tasks.imports.documents.converted import DOCX, PDF, PLAIN, Converted, DocumentRefused
from tasks.imports.documents.plain import read_plain
from tasks.rules.errors import UsageError, install_extra

_LONGEST_S = 300.0
_WHAT = "convert"
_LIBRARIES = {PDF: ("pdfplumber",), DOCX: ("mammoth", "markdownify")}


def convert(files: Sequence[Path], folder: Path | None = None, *, is_quiet: bool = False) -> dict[Path, Converted]:
    """Every file as Markdown, as many at a time as there are processors.

    Files of a folder that came from elsewhere are read within it.

    Raises:
        UsageError: the libraries for one are not installed.
        DocumentRefused: one cannot be read; the message names it.
    """
    _refuse_without_libraries(files)
    with (
        progress(_WHAT, {"": len(files)}, is_quiet=is_quiet),
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        done: dict[Path, Converted] = {}
        try:
            for file, converted in zip(files, pool.map(lambda file: _converted(file, folder), files), strict=True):
                done[file] = converted
                advance(_WHAT, succeeded=True)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return done


def converters(files: Sequence[Path]) -> list[str]:
    """The libraries with their versions that turn these files into Markdown; none for text that is taken as it is."""
    names = {name for file in files for name in _LIBRARIES.get(file.suffix.lower(), ())}
    return [f"{name} {version(name)}" for name in sorted(names)]


def _refuse_without_libraries(files: Sequence[Path]) -> None:
    for file in files:
        if any(find_spec(name) is None for name in _LIBRARIES.get(file.suffix.lower(), ())):
            raise UsageError(
                f"{file}: PDF and DOCX files need more libraries; install them with {install_extra('documents')}"
            )


def _converted(file: Path, folder: Path | None) -> Converted:
    kind = file.suffix.lower()
    try:
        with bounded(open_inside(folder or file.parent, file.relative_to(folder or file.parent)), file) as content:
            return read_plain(content.read()) if kind in PLAIN else _converted_apart(content, kind)
    except (NotInside, TooLarge) as error:
        raise DocumentRefused(str(error)) from error
    except DocumentRefused as error:
        raise DocumentRefused(f"{file}: {error}") from error
    except OSError as error:
        raise DocumentRefused(f"{file}: can't be read ({error.strerror})") from error


def _converted_apart(content: BinaryIO, kind: str) -> Converted:
    """What `tasks.imports.documents.__main__` makes of a file of a kind, `.pdf` or `.docx`."""
    try:
        process = subprocess.run(
            [sys.executable, "-m", "tasks.imports.documents", kind], check=False, capture_output=True,
            stdin=content, timeout=_LONGEST_S,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise DocumentRefused(f"not converted within {_LONGEST_S:.0f} s; give its text as Markdown") from error
    if process.returncode:
        raise DocumentRefused(f"its conversion failed (exit {process.returncode}); give its text as Markdown")
    said = json.loads(process.stdout)
    if "refused" in said:
        raise DocumentRefused(said["refused"])
    return Converted(**said)
