"""Paths as people write them."""

from pathlib import Path

from tasks.rules.errors import UsageError


def from_home(path: str | Path, setting: str) -> Path:
    """A path with the home folder in the place of a leading `~` or `~user`; `setting` is what gave the path.

    Raises:
        UsageError: there is no such user.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise UsageError(f"{setting}: {path}: there is no such user; write the whole path") from error
