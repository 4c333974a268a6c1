"""Reading of files from outside: only regular files, and no name or link out of a folder.

What is read into memory has a bounded size. The bound on nested JSON is in
`tasks/rules/text/json_text.py`.
"""

import hashlib
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from io import BufferedReader
from pathlib import Path, PurePath
from typing import BinaryIO

from tasks.rules.errors import PipelineError

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe would wait for a process at its other end.
_FILE_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


MOST_BYTES = 2 * 2**30
"""Largest size of a file, or of the results in a folder, that is read into memory."""
_MOST_UNPACKED_PER_BYTE = 200
"""Largest number of bytes to which each byte of an archive or a Parquet file may unpack. Real files
unpack to 5 to 30 times their size.
"""
_EXTRA_UNPACKED_BYTES = 20_000_000
"""Number of unpacked bytes that are allowed in addition, because tiny files unpack to more."""
MOST_MEMBERS = 100_000

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


class UnsafeFile(PipelineError):
    """A name leads out of its folder, or to something that is not a regular file."""


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file of bounded size for reading; links are followed.

    Raises:
        UnsafeFile: it is a pipe, a device or a folder.
        FileTooLarge: it has more than `MOST_BYTES`.
        OSError: it does not exist, or cannot be read.
    """
    descriptor = os.open(path, _FILE_FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnsafeFile(f"{path}: is not a regular file; put one there")
    return bounded(os.fdopen(descriptor, "rb"), path)


def read_regular(path: Path) -> bytes:
    """Return the content of a regular file of bounded size (see `open_regular`)."""
    with open_regular(path) as file:
        return file.read()


def bounded(file: BufferedReader, name: PurePath | str) -> BufferedReader:
    """Return an open file if it is small enough for memory; otherwise close it and refuse it.

    Raises:
        FileTooLarge: it has more than `MOST_BYTES`.
    """
    n_bytes = os.fstat(file.fileno()).st_size
    if n_bytes > MOST_BYTES:
        file.close()
        size = f"{n_bytes / 1e9:.1f} GB of at most {MOST_BYTES / 1e9:.1f}"
        raise FileTooLarge(f"{name}: is too large ({size}); split it")
    return file


def refuse_bomb(name: PurePath | str, n_bytes: int, unpacked_sizes: Iterable[int]) -> None:
    """Refuse an archive by its size and the unpacked sizes of its members, before unpacking.

    Raises:
        FileTooLarge: it has too many members, or they are too large.
    """
    sizes = list(unpacked_sizes)
    if len(sizes) > MOST_MEMBERS:
        raise FileTooLarge(
            f"{name}: has {len(sizes):,} members, more than {MOST_MEMBERS:,}; split it"
        )
    n_unpacked = sum(sizes)
    if n_unpacked > _MOST_UNPACKED_PER_BYTE * n_bytes + _EXTRA_UNPACKED_BYTES:
        raise FileTooLarge(
            f"{name}: it would unpack to {n_unpacked / 1e6:,.0f} MB, far more than its size; get"
            " it again"
        )


def member_chunks(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield the unpacked content of a member in chunks: at most as many bytes as the archive states
    for it, which may be fewer than it has.

    Raises:
        BadZipFile: it is compressed by a method that unpacks all at once, or does not match the
            archive's entry.
    """
    if member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise zipfile.BadZipFile(f"{member.filename} is compressed with an unsupported method")
    with archive.open(member) as opened:
        yield from iter(partial(opened.read, 2**16), b"")


def data_offset(file: BinaryIO, member: zipfile.ZipInfo) -> int:
    """Return the position in a ZIP file at which the packed content of a member begins."""
    # The last 4 bytes of the 30-byte header are the lengths of the name and the extra field, which
    # follow it (APPNOTE 4.3.7).
    file.seek(member.header_offset + 26)
    n_bytes: int = sum(struct.unpack("<HH", file.read(4)))
    return member.header_offset + 30 + n_bytes


def open_inside(folder: Path, name: PurePath | str) -> BufferedReader:
    """Open a regular file of any size within a folder for reading; a caller that reads it into
    memory bounds it (`bounded`).

    A link is followed if it stays within the folder. The path from the folder to the file is opened
    one part at a time without following links, so that a name that is replaced meanwhile leads to
    no other folder.

    Raises:
        UnsafeFile: it is elsewhere, or is a pipe, a device or a folder.
        OSError: it does not exist, or cannot be read.
    """
    path = folder / name
    try:
        *subfolders, file_name = path.resolve().relative_to(folder.resolve()).parts
    except (ValueError, OSError, RuntimeError) as error:
        # Outside, the folder itself (it has no last part), or a circle of links.
        raise UnsafeFile(f"{path}: leads out of {folder}; put the file itself there") from error
    with ExitStack() as stack:
        parent: int | None = None
        try:
            for part in (str(folder.resolve()), *subfolders):
                parent = os.open(part, _FOLDER_FLAGS, dir_fd=parent)
                stack.callback(os.close, parent)
            # Checked without opening it: a socket cannot be opened, and a device may react.
            mode = os.stat(file_name, dir_fd=parent, follow_symlinks=False).st_mode
            if not stat.S_ISREG(mode):
                raise UnsafeFile(f"{path}: is not a regular file; put one there")
            descriptor = os.open(file_name, _FILE_FLAGS | os.O_NOFOLLOW, dir_fd=parent)
            return os.fdopen(descriptor, "rb")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error


def hash_inside(folder: Path, name: PurePath | str) -> str:
    """Return the SHA-256 of a regular file within a folder (see `open_inside`)."""
    with open_inside(folder, name) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_inside(folder: Path) -> list[Path]:
    """Return all files of a folder and its subfolders, sorted by name.

    Raises:
        UnsafeFile: one is a link that leads out of the folder or to a folder, or is not a regular
            file.
        OSError: a folder or file cannot be read, or a link leads nowhere.
    """

    def stop(error: OSError) -> None:
        raise error

    files = []
    for root, folders, names in os.walk(folder, onerror=stop):
        for name in folders:
            link = Path(root, name)
            if link.is_symlink():
                raise UnsafeFile(
                    f"{link}: is a link to a folder; put the folder itself there, or remove the"
                    " link"
                )
        for name in names:
            file = Path(root, name)
            open_inside(folder, file.relative_to(folder)).close()
            files.append(file)
    return sorted(files)
