"""The texts of all replies that the ledger keeps, for those who read them again."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tasks.llm.ledger.reading import LedgerFiles

_NOBODY = "none"
"""No file of a process: all files are others'."""


@dataclass(frozen=True)
class KeptReply:
    """A reply with text: the row that it was made for, the call that it answers, and when it came."""

    cell: str
    call_key: str
    attempt: int
    finished_at_s: float
    text: str


class KeptReplies:
    """The replies of a ledger, read from the disk each time."""

    def __init__(self, files: LedgerFiles) -> None:
        self._files = files

    def __iter__(self) -> Iterator[KeptReply]:
        """All of them, file by file.

        Raises:
            PipelineError: a file is damaged.
        """
        query = "select cell, call_key, attempt, finished_at_s, text from calls where text is not null and is_final"
        return (KeptReply(*row) for row in self._files.each(query))


@contextmanager
def kept_replies(folder: Path) -> Iterator[KeptReplies]:
    """The replies of the ledger in a folder, while the block lasts."""
    files = LedgerFiles(folder, folder / _NOBODY)
    try:
        yield KeptReplies(files)
    finally:
        files.close()
