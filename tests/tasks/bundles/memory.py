"""A store in the memory of this process: empty at first, and deleted at the end."""

from collections.abc import Iterator
from contextlib import contextmanager

import fsspec

from tasks.bundles.stores import Store, open_location


@contextmanager
def memory_store() -> Iterator[Store]:
    store = open_location("memory://bucket/prefix")
    assert isinstance(store, Store)
    _forget(store)
    yield store
    _forget(store)


def _forget(store: Store):
    store.filesystem.store.clear()
    store.filesystem.pseudo_dirs[:] = [""]


class Cut:
    """Interrupts an upload, as Ctrl-C does, after `n_files` files."""

    def __init__(self, monkeypatch, n_files: int):
        self.names: list[str] = []
        for method, position in (("put_file", 1), ("pipe_file", 0)):
            self._note(monkeypatch, n_files, method, position)

    def _note(self, monkeypatch, n_files: int, method: str, position: int):
        filesystem = fsspec.filesystem("memory")
        original = getattr(filesystem, method)

        def write(*args, **kwargs):
            if len(self.names) == n_files:
                raise KeyboardInterrupt
            self.names.append(args[position])
            original(*args, **kwargs)

        monkeypatch.setattr(filesystem, method, write)
