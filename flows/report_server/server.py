"""The server of a job's report for this machine, with the pages Compare and Live."""

import io
import sys
import threading
import webbrowser
from collections.abc import Callable, Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from flows.report_server.compare_page import KINDS, compare_page
from flows.report_server.live import LiveView
from flows.run.outcomes import explained
from flows.server import HOST, is_from_here
from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.console import notice
from tasks.dataset.foreign_files import open_inside
from tasks.figures.shown import COMPARE, LIVE
from tasks.report.build import served_page
from tasks.report.rendering.site import ASSETS, refuse_other
from tasks.rules.errors import PipelineError, UsageError

Renderer = Callable[[Mapping[str, str]], str]
"""Renders a page from the parameters in the address."""
Renderers = Mapping[str, Renderer]
"""Path -> renderer. The ending of the path gives the media type."""


class ReportServer(ThreadingHTTPServer):
    """A server of rendered pages, by path, and of the files in a folder, for this machine only."""

    def __init__(self, folder: Path, port: int, renderers: Renderers) -> None:
        """Listen on a port.

        Raises:
            UsageError: the port is taken.
        """
        self.renderers = renderers
        self.rendering = threading.Lock()  # held while a page is rendered
        try:
            super().__init__((HOST, port), partial(Pages, directory=str(folder)))
        except OSError as error:
            raise UsageError(
                f"--port {port}: {error.strerror}; choose another port, or 0 for any free port"
            ) from error

    def server_close(self) -> None:
        """Close when no page is being rendered, so that no database is in use at the end.

        The lock is never released: no page is rendered afterwards.
        """
        self.rendering.acquire()
        super().server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Print an error, unless the browser closed the connection."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Pages(SimpleHTTPRequestHandler):
    """The files of a folder and rendered pages, for this machine only.

    Nothing is written or listed.
    """

    server: ReportServer

    def send_head(self) -> Any:
        """Respond only to requests that name this machine.

        So no other site reads the report through a browser.
        """
        if not self._is_allowed():
            self.send_error(403, "Only for this machine, and not for other sites")
            return None
        try:
            address = urlsplit(self.path)
            renderer = self.server.renderers.get(unquote(address.path))
            parameters = dict(parse_qsl(address.query, max_num_fields=20))
            if renderer is None:
                self._refuse_outside()
                return super().send_head()
        except (OSError, ValueError, PipelineError):
            # An invalid path (a NUL, half of a character, too long), one outside the folder, or too
            # many parameters.
            self.send_error(404, "Not found")
            return None
        content = self._render(renderer, parameters)
        if content is None:
            return None
        self.send_response(200)
        self.send_header("Content-Type", f"{self.guess_type(address.path)}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        return io.BytesIO(content)

    def _is_allowed(self) -> bool:
        """Return whether a request names this machine, and is not sent by another site.

        A link on another site is allowed.
        """
        headers = self.headers
        is_cross_site = headers.get("Sec-Fetch-Site") in {"cross-site", "same-site"}
        if is_cross_site and headers.get("Sec-Fetch-Mode") != "navigate":
            return False
        return is_from_here(headers.get_all("Host", []), headers.get_all("Origin", []))

    def _refuse_outside(self) -> None:
        """Refuse a link out of the folder, and anything but a regular file that can be read.

        A folder without an `index.html` is refused too: the base class would look for other names.
        """
        path = Path(self.translate_path(self.path))
        if path.is_dir():
            path /= "index.html"
        open_inside(Path(self.directory), path.relative_to(self.directory)).close()

    def _render(self, renderer: Renderer, parameters: Mapping[str, str]) -> bytes | None:
        """Return the rendered page; None after an error, which browser and terminal show."""
        try:
            with self.server.rendering:  # one page at a time
                return renderer(parameters).encode()
        # The browser gets an error page, and the server keeps running.
        except Exception as error:  # noqa: BLE001
            notice(f"{self.path}: {explained(error).line}")
            self.send_error(500, "This page could not be rendered; the terminal shows why")
            return None

    def list_directory(self, path: object) -> None:
        """Refuse to list a folder without a first page."""
        self.send_error(404, "Not found")

    def end_headers(self) -> None:
        """Add headers: no guessed types, no cached report, no access by other sites."""
        self.send_header("X-Content-Type-Options", "nosniff")
        # The report's data are scripts, which any site could load without this header.
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        # Another site could put a page in a frame and steal clicks; the pages' own policy cannot
        # forbid that.
        self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Log no request."""


_ASSETS = ("report.css", "tabulator.css", "page.js", "live.js")
"""The assets of rendered pages. A report may not exist yet, so they are served from the program."""


def serve_report(job: Job, index: Path, port: int, *, is_live: bool) -> None:
    """Serve the reports of all benchmarks to this machine until interrupted; open the browser.

    Args:
        job: the job whose warehouse, data set and splits rendered pages show.
        index: the first page of the benchmark's report, which may not exist.
        port: the port; 0 for any free one.
        is_live: also serve the page about runs in progress, and open that one.

    Raises:
        UsageError: the port is taken.
    """
    report_folder = index.parent.parent
    refuse_other(report_folder)
    with ReportServer(report_folder, port, renderers_of(job, index, is_live=is_live)) as server:
        host, bound_port = server.server_address[:2]
        address = f"http://{host!s}:{bound_port}/{index.parent.name}/"
        if is_live:
            address += f"{LIVE.name}.html"
        notice(f"{address} (until Ctrl-C)")
        # A browser in the terminal returns only when it is closed.
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            notice("stopped serving the report")


def _asset(name: str, _: Mapping[str, str]) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def renderers_of(job: Job, index: Path, *, is_live: bool) -> Renderers:
    """Return the renderers by path: pages that are rendered for each request, and assets."""
    folder = index.parent
    render = partial(
        served_page,
        benchmark=load_benchmark(job.benchmark),
        folder=folder,
        pages=(LIVE,) if is_live else (),
    )

    def render_comparison(parameters: Mapping[str, str]) -> str:
        return render(COMPARE, comparison=compare_page(job, parameters, folder), kinds=KINDS)

    renderers: dict[str, Renderer] = {f"{COMPARE.name}.html": render_comparison}
    for name in _ASSETS:
        renderers[f"assets/{name}"] = partial(_asset, name)
    if is_live:
        view = LiveView(job, index)
        renderers[f"{LIVE.name}.html"] = lambda _: render(LIVE, live=view.now())
    return {f"/{folder.name}/{name}": renderer for name, renderer in renderers.items()}
