"""Serving the report of a job to this machine, with the pages that compare and that follow runs in progress."""

import contextlib
import io
import sys
import threading
import webbrowser
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from flows.report_server.compare_page import KINDS, comparison
from flows.report_server.live import LiveView, words
from flows.run.outcomes import explained
from flows.server.server_process import HOST, is_from_here
from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.console import notice
from tasks.dataset.foreign_files import open_inside
from tasks.figures.shown import COMPARE, LIVE
from tasks.report.build import served_page
from tasks.report.rendering.site import ASSETS, refuse_other
from tasks.rules.errors import PipelineError, UsageError

_MOST_PARAMETERS = 20
_OTHER_SITES = {"cross-site", "same-site"}
MOST_MAKING = 4
"""So many answers are made at once; further ones wait."""


@dataclass(frozen=True)
class Made:
    """The content of a response, with its media type."""

    content: bytes
    kind: str = "text/html; charset=utf-8"


Maker = Callable[[Mapping[str, str]], Made]
"""Makes an answer from the parameters in the address."""
Makers = Mapping[str, Maker | Made]
"""By path, what makes an answer, or an answer that is always the same and is sent without waiting."""


class Server(ThreadingHTTPServer):
    """A server on this machine alone."""

    def __init__(self, *arguments: Any) -> None:
        self.making = threading.Semaphore(MOST_MAKING)
        super().__init__(*arguments)

    def server_close(self) -> None:
        """Close when no answer is being made any more: this process may end then, and no database be in use."""
        for _ in range(MOST_MAKING):
            self.making.acquire()
        super().server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a browser that went away before it had all; anything else is printed."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def server_of(folder: Path, port: int, makers: Makers | None = None) -> Server:
    """Return a server of the responses of makers, by path, and of the files in a folder.

    Raises:
        UsageError: the port is taken.
    """
    try:
        return Server((HOST, port), partial(Pages, directory=str(folder), makers=makers or {}))
    except OSError as error:
        raise UsageError(f"--port {port}: {error.strerror}; name another one, or 0 for any that is free") from error


class Pages(SimpleHTTPRequestHandler):
    """The files of a folder and what makers answer, for this machine alone; nothing is written or listed."""

    index_pages = ("index.html",)

    def __init__(self, *arguments: Any, makers: Makers, **named: Any) -> None:
        self._makers = makers
        super().__init__(*arguments, **named)

    def send_head(self) -> Any:
        """Answer only who asks for this machine by name: another site must not read the report through a browser."""
        headers = self.headers
        if not is_from_here(headers.get_all("Host", []), headers.get_all("Origin", [])):
            self.send_error(403, "Only for this machine")
            return None
        if headers.get("Sec-Fetch-Site") in _OTHER_SITES and headers.get("Sec-Fetch-Mode") != "navigate":
            self.send_error(403, "Not for other sites")
            return None
        try:
            parts = urlsplit(self.path)
            maker = self._makers.get(unquote(parts.path))
            given = dict(parse_qsl(parts.query, max_num_fields=_MOST_PARAMETERS))
            if maker is None:
                self._refuse_outside()
                return super().send_head()
        except (OSError, ValueError, PipelineError):
            # A path that no file can have (a NUL, half of a character, too long), one outside, or too many parameters.
            self.send_error(404, "Not found")
            return None
        answer = maker if isinstance(maker, Made) else self._made(maker, given)
        if answer is None:
            return None
        self.send_response(200)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        return io.BytesIO(answer.content)

    def _refuse_outside(self) -> None:
        """Refuse a link that leads out of the folder, and what is no regular file."""
        path = Path(self.translate_path(self.path))
        if path.is_dir():
            path /= self.index_pages[0]
        # What is not there or may not be read is answered as such.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            open_inside(Path(self.directory), path.relative_to(self.directory)).close()

    def _made(self, maker: Maker, given: Mapping[str, str]) -> Made | None:
        """Return the response of a maker; None if it fails, after the browser and the terminal show the error."""
        try:
            with cast("Server", self.server).making:
                return maker(given)
        except Exception as error:  # noqa: BLE001 - the reply says so, and the server goes on
            notice(f"{self.path}: {explained(error)[1]}")
            self.send_error(500, "This page could not be made; the terminal says why")
            return None

    def list_directory(self, path: object) -> None:
        """A folder without a first page is not listed."""
        self.send_error(404, "Not found")

    def end_headers(self) -> None:
        """Keep a browser from guessing types, from keeping an old report, and from giving it to other sites."""
        self.send_header("X-Content-Type-Options", "nosniff")
        # The data of the report are scripts, which any site could load.
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        # A page in the frame of another site could be clicked unseen; the pages' own policy cannot forbid that.
        self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing of each request."""


_ASSETS = dict.fromkeys(("report.css", "tabulator.css"), "text/css") | dict.fromkeys(
    ("page.js", "live.js"), "text/javascript"
)


def serve_report(job: Job, index: Path, port: int, *, is_live: bool) -> None:
    """Serve the folder of a benchmark's report and of those beside it to this machine until interrupted.

    The report, or with `is_live` the page about runs in progress, is opened in the browser.

    Args:
        job: whose warehouse, data set and splits the pages are about that are made when they are opened.
        index: the first page of the benchmark's report; it need not be there.
        port: where to; 0 for any that is free.
        is_live: whether there is the page about runs in progress.

    Raises:
        UsageError: the port is taken.
    """
    refuse_other(index.parent.parent)
    with server_of(index.parent.parent, port, makers_of(job, index, is_live=is_live)) as server:
        host, number = server.server_address[:2]
        address = f"http://{host!s}:{number}/{index.parent.name}/{f'{LIVE.name}.html' if is_live else ''}"
        notice(f"{address} (until Ctrl-C)")
        webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            notice("stopped serving the report")


def makers_of(job: Job, index: Path, *, is_live: bool) -> dict[str, Maker | Made]:
    """Return the responses of the server itself, by path: pages that are made each time, and files."""
    folder, benchmark = index.parent, job.settings.benchmark
    pages = (LIVE,) if is_live else ()

    def compare(given: Mapping[str, str]) -> Made:
        found = comparison(job, given, folder)
        return Made(served_page(COMPARE, benchmark, folder, pages, asked=found, kinds=KINDS).encode())

    makers: dict[str, Maker | Made] = {f"/{folder.name}/{COMPARE.name}.html": compare}
    # The pages that the server makes are there before a report is.
    for name, kind in _ASSETS.items():
        makers[f"/{folder.name}/assets/{name}"] = Made((ASSETS / name).read_bytes(), f"{kind}; charset=utf-8")
    if is_live:
        view, about = LiveView(job), load_benchmark(benchmark)

        def live(_: Mapping[str, str]) -> Made:
            return Made(served_page(LIVE, benchmark, folder, pages, live=words(view.now(), index, about)).encode())

        makers[f"/{folder.name}/{LIVE.name}.html"] = live
    return makers
