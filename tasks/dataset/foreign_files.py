"""Reading of files from outside: only regular files of bounded size, and no name or link that leads
out of a folder.

The bound on nested JSON is in `tasks/rules/text/json_text.py`.
"""

import hashlib
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from io import BufferedReader
from pathlib import Path, PurePath

from tasks.rules.errors import PipelineError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe would wait for a process at its other end.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


MOST_BYTES = 2 * 2**30
"""Largest size of a file, or of the results in a folder, that is read into memory."""
_MOST_PER_BYTE = 200
_MOST_BESIDE = 20_000_000
_MOST_MEMBERS = 100_000
"""Bounds of archives and Parquet files: unpacked bytes for each packed byte, unpacked bytes in
addition, and members. Real files unpack to 5 to 30 times their size, tiny ones to more.
"""

ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RuntimeError,
    struct.error,
)
"""The errors of the standard library on an archive that is damaged or was made by hand."""


class FileTooLarge(PipelineError):
    """A file is larger than the bound, or unpacks to more."""


class NotInside(PipelineError):
    """A name leads out of its folder, or to something that is not a regular file."""


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file of bounded size for reading; links are followed.

    Raises:
        NotInside: it is a pipe, a device or a folder.
        FileTooLarge: it has more than `MOST_BYTES`.
        OSError: it does not exist, or cannot be read.
    """
    opened = os.open(path, _FILE & ~os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise NotInside(f"{path}: is not a regular file; put one there")
    return bounded(os.fdopen(opened, "rb"), path)


def read_regular(path: Path) -> bytes:
    """Return the content of a regular file of bounded size (see `open_regular`)."""
    with open_regular(path) as file:
        return file.read()


def bounded(file: BufferedReader, shown: PurePath | str) -> BufferedReader:
    """Return an open file if it is small enough for memory; otherwise close it and refuse it.

    Raises:
        FileTooLarge: it has more than `MOST_BYTES`.
    """
    n_bytes = os.fstat(file.fileno()).st_size
    if n_bytes > MOST_BYTES:
        file.close()
        size = f"{n_bytes / 1e9:.1f} GB of at most {MOST_BYTES / 1e9:.1f}"
        raise FileTooLarge(f"{shown}: is too large ({size}); split it")
    return file


def refuse_bomb(shown: PurePath | str, n_bytes: int, unpacked: Iterable[int]) -> None:
    """Refuse an archive by its size and the unpacked sizes of its members, before unpacking.

    Raises:
        FileTooLarge: it has too many members, or they are too large.
    """
    sizes = list(unpacked)
    if len(sizes) > _MOST_MEMBERS:
        raise FileTooLarge(
            f"{shown}: has {len(sizes):,} members, more than {_MOST_MEMBERS:,}; split it"
        )
    n = sum(sizes)
    if n > _MOST_PER_BYTE * n_bytes + _MOST_BESIDE:
        raise FileTooLarge(
            f"{shown}: it would unpack to {n / 1e6:,.0f} MB, far more than its size; get it again"
        )


def member_chunks(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield the unpacked content of a member in chunks, at most its stated size, which may be
    false.

    Raises: zipfile.BadZipFile: it is compressed by a method that unpacks all at once, or does not
        match the archive's entry.
    """
    if member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise zipfile.BadZipFile(f"{member.filename} is compressed with an unsupported method")
    with archive.open(member) as opened:
        while chunk := opened.read(2**16):
            yield chunk


def open_inside(folder: Path, name: PurePath | str) -> BufferedReader:
    """Open a regular file within a folder for reading; a link is followed if it stays within the
    folder.

    The path from the folder to the file is opened one part at a time without following links, so
    that the opened file is the one that was checked, even if a name is replaced meanwhile.

    Raises:
        NotInside: it is elsewhere, or is a pipe, a device or a folder.
        OSError: it does not exist, or cannot be read.
    """
    shown = folder / name
    try:
        *way, last = shown.resolve().relative_to(folder.resolve()).parts
    except (
        ValueError,
        OSError,
        RuntimeError,
    ) as error:  # outside, the folder itself, or a circle of links
        raise NotInside(f"{shown}: leads out of {folder}; put the file itself there") from error
    with ExitStack() as stack:
        at: int | None = None
        try:
            for part in (str(folder.resolve()), *way):
                at = os.open(part, _FOLDER, dir_fd=at)
                stack.callback(os.close, at)
            if not stat.S_ISREG(os.stat(last, dir_fd=at, follow_symlinks=False).st_mode):
                raise NotInside(f"{shown}: is not a regular file; put one there")
            file = os.fdopen(os.open(last, _FILE, dir_fd=at), "rb")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(shown)) from error
    return file


def hash_inside(folder: Path, name: PurePath | str) -> str:
    """Return the SHA-256 of a regular file within a folder (see `open_inside`)."""
    with open_inside(folder, name) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_inside(folder: Path) -> list[Path]:
    """Return all files of a folder and its subfolders, sorted by name.

    Raises:
        NotInside: one is a link that leads out of the folder or to a folder, or is not a regular
            file.
        OSError: a folder cannot be read.
    """

    def stop(error: OSError) -> None:
        raise error

    files = []
    for root, folders, names in os.walk(folder, onerror=stop):
        link = next((Path(root, name) for name in folders if Path(root, name).is_symlink()), None)
        if link:
            raise NotInside(
                f"{link}: is a link to a folder; put the folder itself there, or remove the link"
            )
        for name in names:
            open_inside(folder, Path(root, name).relative_to(folder)).close()
            files.append(Path(root, name))
    return sorted(files)
