"""The provider as a process of its own, for benchmarks and for clients that get killed."""

import asyncio
import gc
import json
import os
import resource
import tempfile
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from tests.faults.behaviours import Entry, seeded_faults, slowed
from tests.faults.server import FaultServer


def _serve(address: Connection, book: Path, seed: int, fault_rate: float, latency_s: float) -> None:
    """Serve until the process is ended, and write one line for each served request, so that none is ever half there."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    file = os.open(book, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def append(entry: Entry) -> None:
        line = {"digest": entry.digest, "number": entry.number, "is_paid": entry.is_paid}
        os.write(file, json.dumps(line).encode() + b"\n")

    server = FaultServer(slowed(latency_s, seeded_faults(seed, fault_rate)), keeps_book=False, on_response=append)
    gc.freeze()  # the libraries stay; the collector need not walk through them again and again
    asyncio.run(server.serve(lambda: address.send(server.api_base)))


class ServerProcess:
    """A context manager that runs the provider in a process, and ends it."""

    def __init__(self, *, seed: int = 0, fault_rate: float = 0.0, latency_s: float = 0.0) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="provider-")
        self.book_path = Path(self._folder.name) / "book.jsonl"
        self._address, theirs = get_context("spawn").Pipe()
        arguments = (theirs, self.book_path, seed, fault_rate, latency_s)
        self._process = get_context("spawn").Process(target=_serve, args=arguments, daemon=True)
        self.api_base = ""

    def read_book(self) -> list[dict[str, Any]]:
        """Return the served requests so far, in the order of their responses."""
        if not self.book_path.exists():
            return []
        return [json.loads(line) for line in self.book_path.read_text(encoding="utf-8").splitlines()]

    def __enter__(self) -> Self:
        self._process.start()
        if not self._address.poll(60):
            raise RuntimeError("the provider did not start")
        self.api_base = self._address.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        self._folder.cleanup()
