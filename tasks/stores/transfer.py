"""Telling how far an upload or a download has come, by megabytes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fsspec.callbacks import Callback

from tasks.console import advance, progress

_MEGABYTE = 1_000_000
_WORTH_TELLING_MB = 10
"""Less than this is over before anybody wonders."""


class _OneFile(Callback):  # type: ignore[misc]  # fsspec ships without types
    """Passes on the bytes of one file."""

    def __init__(self, whole: "_Megabytes") -> None:
        super().__init__()
        self._whole = whole

    def relative_update(self, inc: int = 1) -> None:
        self._whole.add(inc)


class _Megabytes(Callback):  # type: ignore[misc]  # fsspec ships without types
    """Counts the bytes of all files; what fsspec says of itself is how many files are done."""

    def __init__(self, what: str, label: str) -> None:
        super().__init__()
        self._what, self._label = what, label
        self._n_bytes = 0

    def branched(self, path_1: str, path_2: str, **kwargs: Any) -> Callback:
        return _OneFile(self)

    def add(self, n_bytes: int) -> None:
        before, self._n_bytes = self._n_bytes, self._n_bytes + n_bytes
        for _ in range(before // _MEGABYTE, self._n_bytes // _MEGABYTE):
            advance(self._what, self._label, succeeded=True)


@contextmanager
def transfer(what: str, address: str, n_bytes: int, *, is_quiet: bool) -> Iterator[Callback]:
    """A callback for fsspec that shows the progress of an upload or a download, if it is large."""
    n_megabytes, label = n_bytes // _MEGABYTE, f"{address} (MB)"
    totals = {label: n_megabytes} if n_megabytes >= _WORTH_TELLING_MB else {}
    with progress(what, totals, is_quiet=is_quiet):
        yield _Megabytes(what, label)
