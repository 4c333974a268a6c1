"""The provider as a process of its own, for benchmarks."""

import asyncio
import gc
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Self

from tests.faults.behaviours import slowed, well_behaved
from tests.faults.server import FaultServer


def _serve(address: Connection, latency_s: float):
    server = FaultServer(slowed(latency_s, well_behaved))
    gc.freeze()  # spares the garbage collector the libraries, which stay in memory anyway
    asyncio.run(server.serve(lambda: address.send(server.api_base)))


class ServerProcess:
    """A context manager that runs the provider in a process, and ends it."""

    def __init__(self, *, latency_s: float = 0.0):
        self._address, theirs = get_context("spawn").Pipe()
        self._process = get_context("spawn").Process(
            target=_serve,
            args=(theirs, latency_s),
            daemon=True,
        )
        self.api_base = ""

    def __enter__(self) -> Self:
        self._process.start()
        if not self._address.poll(60):
            raise RuntimeError("the provider did not start")
        self.api_base = self._address.recv()
        return self

    def __exit__(self, *_: object):
        self._process.kill()
        self._process.join()
