"""The revision of a job's data set, and the holder that finds it when it is first needed."""

from collections.abc import Callable
from threading import Lock

from tasks.config.models import Strict


class DataRevision(Strict):
    """A data set at one revision: the hub's commit, or the content hash of its files; `splits` are the chosen ones."""

    name: str
    revision: str
    splits: tuple[str, ...]


class DataLookup:
    """Finds a revision when it is first asked for, and then gives the same one; an error is not kept."""

    def __init__(self, find: Callable[[], DataRevision]) -> None:
        self._find = find
        self._found: DataRevision | None = None
        # Stages of several models may ask at the same time, in threads of their own.
        self._lock = Lock()

    def __call__(self) -> DataRevision:
        """The revision."""
        with self._lock:
            if self._found is None:
                self._found = self._find()
            return self._found
