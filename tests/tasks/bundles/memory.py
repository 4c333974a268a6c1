"""A store in the memory of this process, empty at first and forgotten at the end."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fsspec
import pytest

from tasks.bundles.stores import Store, open_location


@contextmanager
def memory_store() -> Iterator[Store]:
    store = open_location("memory://bucket/prefix")
    assert isinstance(store, Store)
    _forget(store)
    yield store
    _forget(store)


def _forget(store: Store) -> None:
    store.filesystem.store.clear()
    store.filesystem.pseudo_dirs[:] = [""]


class Cut:
    """Ends an upload as Ctrl-C does, before so many files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, n_files: int) -> None:
        filesystem = fsspec.filesystem("memory")
        self.names: list[str] = []
        put, pipe = filesystem.put_file, filesystem.pipe_file

        def noted(path: str) -> None:
            if len(self.names) == n_files:
                raise KeyboardInterrupt
            self.names.append(path)

        def put_file(source: str, path: str, **more: Any) -> None:
            noted(path)
            put(source, path, **more)

        def pipe_file(path: str, content: bytes, **more: Any) -> None:
            noted(path)
            pipe(path, content, **more)

        monkeypatch.setattr(filesystem, "put_file", put_file)
        monkeypatch.setattr(filesystem, "pipe_file", pipe_file)
