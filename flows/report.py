"""Writing the report of a job, and showing it on this machine."""

import sys
import webbrowser
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from flows.nightly_changes import changes
from flows.report_basis import forget_basis, note_basis, whole_of
from flows.server.loopback import HOST, is_from_here
from tasks.config import Job
from tasks.console import notice
from tasks.maintain import store_spend
from tasks.report import Written, build
from tasks.rules.errors import PipelineError, UsageError
from warehouse import Warehouse

_ALL = "all"


def write_report(job: Job, folder: Path | None = None, vintage: str | None = None) -> Written:
    """Write the report of what is published.

    Args:
        job: what it is about.
        folder: the report folder, in which it gets one of the benchmark's name; None: the one that the job says.
        vintage: which sampling; None: the latest of each model; `all`. The latest ones, or those of a vintage that is
            named, are compared with the ones before.

    Raises:
        UsageError: the folder holds something else.
        WarehouseError: nothing is published yet.
    """
    _store_what_was_spent(job)
    forget_basis(job)
    found = changes(job, None if vintage == _ALL else vintage)
    return build(job, folder or job.report_folder, vintage, found)


def _store_what_was_spent(job: Job) -> None:
    """Publish what the ledger knows of costs, those of this run and of killed ones, which no run has stored yet."""
    warehouse = Warehouse(job.warehouse)
    try:
        if warehouse.database.exists() and store_spend(job):
            warehouse.publish()
    except PipelineError as error:
        notice(f"costs are as of the last finished run: {error}")


def report_of_run(job: Job) -> Written:
    """The report that a run ends with: of all that is there, also where the run was about a part of it.

    Raises:
        UsageError: the folder holds something else.
    """
    whole = whole_of(job)
    written = write_report(whole)
    note_basis(whole)
    return written


def link_to(job: Job, written: Written) -> str:
    """Where people find the benchmark's report: at the configured address, else the file."""
    return job.report_url or written.index.resolve().as_uri()


def serve_report(index: Path, port: int) -> None:
    """Serve the folder of a benchmark's report and of those beside it to this machine until interrupted.

    The report is opened in the browser.

    Raises:
        UsageError: the port is taken.
    """
    try:
        server = _Server((HOST, port), partial(_Pages, directory=str(index.parent.parent)))
    except OSError as error:
        raise UsageError(f"--port {port}: {error.strerror}; name another one, or 0 for any that is free") from error
    with server:
        address = f"http://{HOST}:{server.server_port}/{index.parent.name}/"
        notice(f"{address} (until Ctrl-C)")
        webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            notice("stopped serving the report")


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a browser that went away before it had all; anything else is printed."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Pages(SimpleHTTPRequestHandler):
    """The files of a folder, for this machine alone; nothing is written or listed."""

    def send_head(self) -> object:  # type: ignore[override]
        """Answer only who asks for this machine by name: another site must not read the report through a browser."""
        headers = self.headers
        if not is_from_here(headers.get_all("Host", []), headers.get_all("Origin", [])):
            self.send_error(403, "Only from this machine")
            return None
        try:
            return super().send_head()
        except ValueError:
            # A path that no file can have: a NUL, or half of a character.
            self.send_error(404, "Not found")
            return None

    def list_directory(self, path: object) -> None:
        """A folder without a first page is not listed."""
        self.send_error(404, "Not found")

    def end_headers(self) -> None:
        """Add what keeps a browser from guessing types, and from keeping an old report."""
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing of each request."""
