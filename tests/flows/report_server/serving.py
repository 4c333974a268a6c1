"""A report server in a thread of the test."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flows.report_server.server import Renderers, ReportServer


@contextmanager
def serving(folder: Path, renderers: Renderers) -> Iterator[ReportServer]:
    with ReportServer(folder, 0, renderers) as server:
        threading.Thread(
            target=server.serve_forever,
            args=(0.02,),
            daemon=True,
        ).start()
        yield server
        server.shutdown()
