"""Where a command's files go to or come from: a folder of this machine, or a prefix in a store."""

import re
from pathlib import Path

from tasks.rules.errors import UsageError, install_extra
from tasks.stores.store import Store, in_one_line

_KEYS = re.compile(r"[^@]*:[^@]*@|.*\?")
"""What holds a password (`key:secret@bucket`), or may hold a signature (`?sig=...`)."""
_LOCAL = ("file", "local")
_PATTERN = re.compile(r"[*\[\]]")
"""Where files are removed, fsspec takes these for patterns of names."""


def place(given: str) -> Path | Store:
    """What a path, or an address such as `s3://bucket/prefix`, stands for; `file://` is a path.

    Raises:
        UsageError: the address holds keys, or its store is not known or lacks its library.
        PipelineError: the store cannot be reached.
    """
    scheme, mark, rest = given.partition("://")
    if not mark:
        return _path(given)
    scheme = scheme.lower()
    if _KEYS.match(rest) and scheme not in _LOCAL:
        raise UsageError(
            f"{scheme}://...: an address must hold no keys and no parameters; set keys where the library of "
            f"{scheme}:// looks for them (environment, profile or role)"
        )
    import fsspec

    if scheme in _LOCAL:
        return Path(fsspec.filesystem(scheme)._strip_protocol(given))
    if scheme not in fsspec.available_protocols():
        raise UsageError(f"{given}: {scheme}:// is not known; name a folder, or an address such as s3://bucket/prefix")
    _refuse_without_library(given, scheme)
    with in_one_line(given):
        filesystem, root = fsspec.url_to_fs(given)
    if _PATTERN.search(root):
        raise UsageError(f"{given}: *, [ and ] have a meaning in addresses; name a prefix without them")
    if not root.strip("/"):
        raise UsageError(f"{given}: names no bucket or folder; name one, such as {scheme}://bucket/prefix")
    return Store(given.rstrip("/"), filesystem, root.rstrip("/"))


def _path(given: str) -> Path:
    scheme, colon, rest = given.partition(":")
    if colon:
        import fsspec

        if scheme.lower() in fsspec.available_protocols():
            raise UsageError(f"{given}: an address has two slashes: {scheme}://{rest.lstrip('/')}; a folder, ./{given}")
    return Path(given)


def _refuse_without_library(given: str, scheme: str) -> None:
    import fsspec
    from fsspec.registry import known_implementations

    try:
        fsspec.get_filesystem_class(scheme)
    except ImportError as error:
        library = known_implementations[scheme]["class"].partition(".")[0]
        command = install_extra("s3") if library == "s3fs" else f"`uv pip install {library}`"
        # What fsspec brings itself may need a library that only its text names.
        how = str(error) if library == "fsspec" else f"run {command}"
        raise UsageError(f"{given}: the library for {scheme}:// is not installed; {how}") from error
