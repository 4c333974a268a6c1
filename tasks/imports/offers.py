"""What an import of responses is offered: rows of a file, which may name documents, or the documents of a folder."""

import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from tasks.benchmarks.base import Benchmark
from tasks.benchmarks.rows import as_text
from tasks.dataset import NotInside, files_inside, open_inside
from tasks.imports.documents import SUFFIXES
from tasks.imports.files import BATCH_HEX, Given, ImportRefused, batch_of, given_rows, in_known_shape
from tasks.imports.naming import Pattern, pattern_of
from tasks.rules.errors import UsageError
from tasks.rules.text.characters import is_blank


class Offered(NamedTuple):
    """A row, its place, and the document with its response, if that is not in the row."""

    where: str
    row: Given
    document: Path | None


class Offer(NamedTuple):
    """All rows; `batch` is the same for the same files, `n_left_out` the number of files of a folder not among them.

    All documents lie in `folder`.

    A batch is the hash of all that was given: a file, with the documents that it names, or a folder's documents with
    their names and the pattern.
    """

    rows: Sequence[Offered]
    folder: Path
    batch: str
    n_left_out: int = 0

    @property
    def documents(self) -> list[Path]:
        """Every document that a row is about, once."""
        return list(dict.fromkeys(row.document for row in self.rows if row.document is not None))


def offer_of(
    source: Path, model: str | None, pattern: str | None, benchmark: Benchmark, *, skip_other: bool,
    tasks: Collection[str],
) -> Offer:  # fmt: skip
    """What a file or a folder offers; `benchmark` knows its own shape of rows, `tasks` decides how a name is read.

    Raises:
        UsageError: there is nothing of that name, or an option does not go with it.
        ImportRefused: a file of the folder fits no name, or a row names what is no document.
    """
    if source.is_dir():
        return _of_folder(source, pattern_of(pattern, model), model, skip_other=skip_other, tasks=tasks)
    if pattern is not None or skip_other:
        option = "--skip-other" if pattern is None else "--pattern"
        raise UsageError(f"{option}: works only with a folder of documents, and {source} is not a folder")
    batch = batch_of(source, model)
    given = in_known_shape(benchmark, given_rows(source, model=model))
    rows = [Offered(where, row, _document(source, where, row)) for where, row in given]
    offer = Offer(rows, source.parent, batch)
    if not offer.documents:
        return offer
    return offer._replace(batch=_batch([batch, *(_hash_of(source.parent, file) for file in offer.documents)]))


def _document(source: Path, where: str, row: Given) -> Path | None:
    """The document that a row names, found from the folder of the file that the row is in."""
    name = as_text(row.get("file"))
    if name is None or is_blank(name):
        return None
    response = as_text(row.get("response"))
    if response is not None and not is_blank(response):
        raise ImportRefused(f"{where}: has both `response` and `file`; remove one")
    document = source.parent / name
    if document.suffix.lower() not in SUFFIXES:
        raise ImportRefused(f"{where}: `file` {name} is not a document; documents end in {', '.join(SUFFIXES)}")
    try:
        open_inside(source.parent, name).close()
    except FileNotFoundError as error:
        raise ImportRefused(
            f"{where}: there is no file {document}; paths in `file` start in the folder of {source.name}"
        ) from error
    except NotInside as error:
        raise ImportRefused(f"{where}: `file` {error}") from error
    return document


def _of_folder(folder: Path, pattern: Pattern, model: str | None, *, skip_other: bool, tasks: Collection[str]) -> Offer:
    rows: list[Offered] = []
    others: list[Path] = []
    for file in files_inside(folder):
        row = _named(folder, file, pattern, tasks)
        if row is None:
            others.append(file)
        else:
            rows.append(Offered(str(file), row if model is None else {"model": model} | row, file))
    if others and not skip_other:
        more = f", and {len(others) - 1} more," if others[1:] else ""
        raise ImportRefused(
            f"{others[0]}{more}: not a document ({', '.join(SUFFIXES)}) named like {pattern.text}; give "
            "--pattern, list the files in a table with a column `file`, or skip other files with --skip-other"
        )
    if not rows:
        raise ImportRefused(f"{folder}: contains no document ({', '.join(SUFFIXES)}) named like {pattern.text}")
    offer = Offer(rows, folder, "", len(others))
    names = (part for file in offer.documents for part in (file.relative_to(folder).as_posix(), _hash_of(folder, file)))
    return offer._replace(batch=_batch([pattern.text, *names]))


def _named(folder: Path, file: Path, pattern: Pattern, tasks: Collection[str]) -> dict[str, str] | None:
    """What a file's name says, read so that the task is one of the data set where that can be; None if nothing."""
    if file.suffix.lower() not in SUFFIXES:
        return None
    readings = pattern.readings(file.relative_to(folder))
    known = [reading for reading in readings if reading["task"] in tasks] or readings
    if len(known) > 1:
        said = " or ".join(f"task {reading['task']!r}" for reading in known[:2])
        raise ImportRefused(
            f"{file}: its name fits {said}; list it in a table with a column `file`, or use a pattern with folders"
        )
    return known[0] if known else None


def _hash_of(folder: Path, file: Path) -> str:
    with open_inside(folder, file.relative_to(folder)) as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _batch(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode(errors="surrogateescape")).hexdigest()[:BATCH_HEX]
