"""The files that a log is made of, opened so that their content says what they are."""

import hashlib
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from tasks.benchmarks.rows import as_mapping
from tasks.dataset import foreign_files
from tasks.imports.files import BATCH_HEX, ImportRefused
from tasks.rules.text.characters import one_line
from tasks.rules.text.json_text import read_json

_RESULTS = {"predictions", "reviews", "reports"}
"""The folders in which a harness keeps results."""
_ZIP = b"PK\x03\x04"
_ZSTD = 93
"""The method of a zip file's member (APPNOTE 4.4.5) that Python reads from 3.14 on."""
_LOCAL_HEADER, _NAME_LENGTH, _EXTRA_LENGTH = 30, slice(26, 28), slice(28, 30)


class Source:
    """A file or a folder that is offered; what it holds is read once, when it is first asked for."""

    def __init__(self, path: Path) -> None:
        """A path that exists."""
        self.path = path

    @cached_property
    def content(self) -> bytes:
        """The bytes of a file; a folder has none."""
        if self.path.is_dir():
            return b""
        with foreign_files.open_regular(self.path) as file:
            return file.read()

    @cached_property
    def files(self) -> Mapping[str, bytes]:
        """The results in a folder, which are JSON and JSON Lines, by their names in it; a file has none."""
        if not self.path.is_dir():
            return {}
        found, n_bytes = {}, 0
        for file in foreign_files.files_inside(self.path):
            name = file.relative_to(self.path).as_posix()
            if name.endswith((".json", ".jsonl")) and _RESULTS & set(file.parts):
                with foreign_files.bounded(foreign_files.open_inside(self.path, name), file) as opened:
                    found[name] = opened.read()
                n_bytes += len(found[name])
                if n_bytes > foreign_files.MOST_BYTES:
                    most_gb = foreign_files.MOST_BYTES / 1e9
                    raise foreign_files.TooLarge(f"{self.path}: holds more than {most_gb:.1f} GB of results; split it")
        return found

    @property
    def is_zip(self) -> bool:
        """Whether the file is an archive."""
        return self.content.startswith(_ZIP)

    @cached_property
    def text(self) -> str:
        """The text of a file, or an empty one where it holds none."""
        try:
            return "" if self.is_zip else self.content.decode("utf-8-sig")
        except UnicodeDecodeError:
            return ""

    @cached_property
    def _parsed(self) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]], str | None]:
        """The object that a file of JSON is; the objects of one of JSON Lines; why one that begins so is neither."""
        if not self.text.lstrip().startswith("{"):
            return {}, [], None
        try:
            document = as_mapping(read_json(self.text))
        except (ValueError, RecursionError) as error:
            damage = one_line(str(error))
        else:
            return document, [document], None
        try:
            return {}, rows_of(self.path.name, self.content), None
        except ImportRefused:
            return {}, [], damage

    @property
    def document(self) -> Mapping[str, Any]:
        """The object that a file of JSON is, or an empty one."""
        return self._parsed[0]

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """The objects of a file of JSON Lines, or none."""
        return self._parsed[1]

    @property
    def damage(self) -> str | None:
        """Why a file that begins as JSON can be read neither as an object nor as JSON Lines; None for any other."""
        return self._parsed[2]

    def batch_with(self, *options: str | None) -> str:
        """The hash of all that was offered, and of the options that were given."""
        found = hashlib.sha256(self.content)
        for name, content in self.files.items():
            found.update(f"\n{name}\n{hashlib.sha256(content).hexdigest()}".encode(errors="surrogateescape"))
        if any(option is not None for option in options):
            found.update(repr(options).encode())
        return found.hexdigest()[:BATCH_HEX]


def rows_of(where: str, content: bytes) -> list[Mapping[str, Any]]:
    """The objects of JSON Lines.

    Raises:
        ImportRefused: a line is no JSON object.
    """
    found = []
    for number, line in enumerate(content.decode("utf-8-sig", errors="replace").split("\n"), start=1):
        if line.strip():
            try:
                row = read_json(line)
            except (ValueError, RecursionError) as error:
                raise ImportRefused(f"{where}:{number}: not JSON ({error}); correct the line") from error
            if not isinstance(row, Mapping):
                raise ImportRefused(f"{where}:{number}: not an object; correct the line")
            found.append(row)
    return found


class Archive:
    """A zip file whose members may be compressed with Zstandard."""

    def __init__(self, path: Path, content: bytes) -> None:
        """Read the table of contents.

        Raises:
            ImportRefused: it is damaged.
            TooLarge: it would unpack to too much.
        """
        self._path, self._content = path, content
        try:
            self._opened = zipfile.ZipFile(pa.BufferReader(content))
        except foreign_files.ZIP_ERRORS as error:
            raise ImportRefused(f"{path}: is a damaged archive ({error}); copy it again") from error
        foreign_files.refuse_bomb(path, len(content), (member.file_size for member in self._opened.infolist()))
        # A member that was written again stands at the end.
        self._members = {member.filename: member for member in self._opened.infolist()}

    @property
    def names(self) -> list[str]:
        """The names of the members, in their order."""
        return list(self._members)

    def json(self, name: str) -> Any:
        """A member as JSON.

        Raises:
            ImportRefused: it is damaged, or no JSON.
        """
        try:
            return read_json(self._bytes(self._members[name]))
        except (*foreign_files.ZIP_ERRORS, pa.ArrowException) as error:
            raise ImportRefused(f"{self._path}: {name} cannot be read ({error}); copy the file again") from error

    def _bytes(self, member: zipfile.ZipInfo) -> bytes:
        if member.file_size > foreign_files.MOST_BYTES:
            raise ValueError("it is too large")
        if member.compress_type != _ZSTD:
            return b"".join(foreign_files.member_chunks(self._opened, member))
        start = member.header_offset + _LOCAL_HEADER
        header = self._content[member.header_offset : start]
        start += int.from_bytes(header[_NAME_LENGTH], "little") + int.from_bytes(header[_EXTRA_LENGTH], "little")
        packed = pa.BufferReader(self._content[start : start + member.compress_size])
        with pa.input_stream(packed, compression="zstd") as opened:
            content: bytes = opened.read(member.file_size + 1)
        if zlib.crc32(content) != member.CRC:
            raise ValueError("its checksum is wrong")
        return content
