"""A bundle as one file: a ZIP archive that ends with its digest, the SHA-256 of all bytes before."""

import hashlib
import re
import shutil
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from tasks.bundles.bundle import Damaged
from tasks.dataset.foreign_files import ZIP_ERRORS, TooLarge, member_chunks, refuse_bomb
from tasks.rules.errors import PipelineError

_DIGEST_HEX = 64
_AT_A_TIME = 1 << 20


class Refused(PipelineError):
    """A file is no certificate, or not the one that was published."""


def write_archive(path: Path, folder: Path, members: Iterable[str]) -> str:
    """Write members from a folder, in the order of their names, and return the digest.

    The same members give the same bytes.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system, info.external_attr = 3, 0o644 << 16
            info.file_size = (folder / name).stat().st_size
            with archive.open(info, "w") as member, (folder / name).open("rb") as content:
                shutil.copyfileobj(content, member, _AT_A_TIME)
        archive.comment = b"0" * _DIGEST_HEX
    with path.open("r+b") as file:
        digest = _hash_before_digest(file, path.stat().st_size)
        file.seek(-_DIGEST_HEX, 2)
        file.write(digest.encode())
    return digest


def _hash_before_digest(file: BinaryIO, n_bytes: int) -> str:
    """The SHA-256 of all bytes of a file but the digest that it ends with."""
    found, left = hashlib.sha256(), n_bytes - _DIGEST_HEX
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
        actual = _hash_before_digest(file, path.stat().st_size)
        stated = file.read(_DIGEST_HEX + 1)
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


def unpack(path: Path, folder: Path, names: re.Pattern[str]) -> None:
    """Unpack an archive whose digest was verified into a folder.

    Raises:
        Damaged: it would unpack to far more than its size, or holds members with other names or other bytes.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            refuse_bomb(path, path.stat().st_size, (info.file_size for info in archive.infolist()))
            for info in archive.infolist():
                target = folder / info.filename
                if not names.fullmatch(info.filename) or target.exists():
                    raise ValueError(f"{info.filename!r} is no name of a member, or of two")
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as file:
                    file.writelines(member_chunks(archive, info))
    except TooLarge as error:
        raise Damaged(str(error)) from error
    except ZIP_ERRORS as error:
        reason = str(error) or type(error).__name__
        raise Damaged(f"{path}: cannot be read as a certificate ({reason}); get it again") from error
