"""The provider as a process of its own, for benchmarks and for clients that get killed."""

import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Self

from tests.faults.behaviours import Entry

_ROOT = Path(__file__).parents[2]
_START_S = 60
_STOP_S = 10


class BookFile:
    """A file that gets one line per served request, each in a single write, so that no line is ever half there."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def append(self, entry: Entry) -> None:
        """Write the facts of an entry as one line of JSON."""
        os.write(self._descriptor, json.dumps(entry.facts()).encode() + b"\n")


class ServerProcess:
    """A context manager that runs `python -m tests.faults` and ends it."""

    def __init__(self, *, seed: int = 0, fault_rate: float = 0.0, latency_s: float = 0.0) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="provider-")
        self.book_path = Path(self._folder.name) / "book.jsonl"
        settings = {"seed": seed, "fault-rate": fault_rate, "book": self.book_path, "latency-s": latency_s}
        self._arguments = [text for name, value in settings.items() for text in (f"--{name}", str(value))]
        self._process: subprocess.Popen[str] | None = None
        self._read_at_end: list[dict[str, Any]] | None = None
        self.api_base = ""

    @property
    def pid(self) -> int:
        """The id of the running process."""
        if self._process is None:
            raise RuntimeError("the provider does not run")
        return self._process.pid

    def read_book(self) -> list[dict[str, Any]]:
        """Return the served requests so far, as `Entry.facts`, in the order of their responses; also after the end."""
        if self._read_at_end is not None:
            return self._read_at_end
        if not self.book_path.exists():
            return []
        return [json.loads(line) for line in self.book_path.read_text(encoding="utf-8").splitlines()]

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.faults", *self._arguments]
        self._process = subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True)
        output = self._process.stdout
        if output is not None and select.select([output], [], [], _START_S)[0]:
            self.api_base = output.readline().strip()
        if not self.api_base:
            self._process.kill()
            raise RuntimeError("the provider did not start")
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.communicate(timeout=_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.communicate()
            self._process = None
        self._read_at_end = self.read_book()
        self._folder.cleanup()
