"""The file: a ZIP archive whose last bytes are the hash of all bytes before them."""

import errno
import hashlib
import re
import shutil
import struct
import zipfile
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO

from tasks.certify.members import FORMAT, MANIFEST, VERSION
from tasks.dataset.foreign_files import ZIP_ERRORS, TooLarge, member_chunks, refuse_bomb
from tasks.maintain import Damaged, read_file_list
from tasks.rules.errors import PipelineError

DIGEST_HEX = 64
_AT_A_TIME = 1 << 20
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
_NAME = re.compile(r"(rows|figures)/[a-z_]+\.jsonl|sql/[a-z_.]+\.sql")
"""What members are called: another name could lead out of the folder, or be a file that a library reads."""
_LOCAL_HEADER, _LENGTHS_AT, _END_RECORD, _TABLE_AT, _END = 30, 26, 22, slice(12, 20), b"PK\x05\x06"
"""Sizes and places in a ZIP file (APPNOTE 4.3.7 and 4.3.16)."""
_SAME_TIME = (1980, 1, 1, 0, 0, 0)


class Refused(PipelineError):
    """A file is no certificate, or not the one that was published."""


def write_archive(path: Path, members: Mapping[str, Path | bytes]) -> str:
    """Write members, in the order of their names, and return the digest.

    The same members give the same bytes.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(members):
            content = members[name]
            info = zipfile.ZipInfo(name, _SAME_TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system, info.external_attr = 3, 0o644 << 16
            info.file_size = len(content) if isinstance(content, bytes) else content.stat().st_size
            with archive.open(info, "w") as member:
                if isinstance(content, bytes):
                    member.write(content)
                else:
                    with content.open("rb") as file:
                        shutil.copyfileobj(file, member, _AT_A_TIME)
        archive.comment = b"0" * DIGEST_HEX
    with path.open("r+b") as file:
        digest = _hash_before_digest(file, path.stat().st_size)
        file.seek(-DIGEST_HEX, 2)
        file.write(digest.encode())
    return digest


def _hash_before_digest(file: BinaryIO, n_bytes: int) -> str:
    """The SHA-256 of all bytes of a file but the digest that it ends with."""
    found, left = hashlib.sha256(), n_bytes - DIGEST_HEX
    while left > 0 and (chunk := file.read(min(_AT_A_TIME, left))):
        found.update(chunk)
        left -= len(chunk)
    return found.hexdigest()


def verified_digest(path: Path, published: str | None) -> str:
    """The digest that a file ends with, which its bytes have; and the one that was published, if that is given.

    Raises:
        Refused: it is another one.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        n_bytes = path.stat().st_size
        actual = _hash_before_digest(file, n_bytes)
        stated = file.read(DIGEST_HEX + 1)
    if stated != actual.encode():
        raise Refused(
            f"{path}: is damaged or no certificate: its bytes do not have the digest that it ends with; get it again"
        )
    if published is not None and published.strip().lower() != actual:
        raise Refused(
            f"{path}: is not the certificate that was published: its digest is {actual}, not {published.strip()}; "
            "get it from whom you have the digest"
        )
    return actual


def unpack(path: Path, folder: Path) -> dict[str, Any]:
    """Unpack a certificate into a folder, and return its manifest.

    Raises:
        Damaged: it does not hold exactly what its manifest lists, in these sizes and with these hashes.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            refuse_bomb(path, path.stat().st_size, (info.file_size for info in archive.infolist()))
            _refuse_other_bytes(path, archive)
            manifest = _manifest(path, archive)
            listed = {each["name"]: each for each in manifest["members"]}
            _refuse_other_members(archive, listed)
            for info in archive.infolist():
                if info.filename != MANIFEST:
                    _unpack_member(archive, info, folder, listed[info.filename]["sha256"])
    except TooLarge as error:
        raise Damaged(str(error)) from error
    except ZIP_ERRORS as error:
        if isinstance(error, OSError) and error.errno in _NO_SPACE:
            raise PipelineError(f"{folder.parent}: there is no space to unpack {path}; free some") from error
        reason = str(error) or type(error).__name__
        raise Damaged(f"{path}: cannot be read as a certificate ({reason}); get it again") from error
    return manifest


def _manifest(path: Path, archive: zipfile.ZipFile) -> dict[str, Any]:
    content = b"".join(member_chunks(archive, archive.getinfo(MANIFEST)))
    manifest = read_file_list(content, f"{path}: {MANIFEST}", FORMAT, VERSION)
    wrong = [name for name in ("benchmark", "dataset_revision") if not isinstance(manifest.get(name), str)]
    for each in manifest["members"]:
        if type(each["n_bytes"]) is not int or type(each["n_rows"]) not in {int, type(None)}:
            wrong.append(str(each["name"]))
    if wrong:
        raise ValueError(f"{MANIFEST} does not say {wrong[0]}")
    return manifest


def _refuse_other_bytes(path: Path, archive: zipfile.ZipFile) -> None:
    """Refuse a file with bytes that belong to no member, to the table of contents or to the digest."""
    with path.open("rb") as file:
        end = 0
        for info in sorted(archive.infolist(), key=attrgetter("header_offset")):
            file.seek(info.header_offset + _LENGTHS_AT)
            header = _LOCAL_HEADER + sum(struct.unpack("<HH", file.read(4)))
            if info.header_offset != end:
                raise ValueError(f"there are other bytes before {info.filename}")
            end += header + info.compress_size
        file.seek(-_END_RECORD - DIGEST_HEX, 2)
        record = file.read(_END_RECORD)
        n_bytes, start = struct.unpack("<LL", record[_TABLE_AT])
        is_last = record.startswith(_END) and start + n_bytes + _END_RECORD + DIGEST_HEX == path.stat().st_size
        if start != end or not is_last:
            raise ValueError("there are other bytes beside its members")


def _refuse_other_members(archive: zipfile.ZipFile, listed: Mapping[str, Mapping[str, Any]]) -> None:
    names = sorted(info.filename for info in archive.infolist())
    if unknown := next((name for name in names if name != MANIFEST and not _NAME.fullmatch(name)), None):
        raise ValueError(f"{unknown!r} is no name of a member")
    if names != sorted([MANIFEST, *listed]):
        raise ValueError("its members are not those that the manifest lists")
    for info in archive.infolist():
        if info.filename != MANIFEST and info.file_size != listed[info.filename]["n_bytes"]:
            raise ValueError(f"{info.filename} does not have the size that the manifest says")


def _unpack_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path, sha256: str) -> None:
    target = folder / info.filename
    target.parent.mkdir(parents=True, exist_ok=True)
    found = hashlib.sha256()
    with target.open("wb") as file:
        for chunk in member_chunks(archive, info):
            found.update(chunk)
            file.write(chunk)
    if found.hexdigest() != sha256:
        raise ValueError(f"{info.filename} does not have the hash that the manifest says")
