"""Writing the report of a job, and showing it on this machine."""

import webbrowser
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from flows.night_changes import changes
from tasks.progress import say
from tasks.report import Written, build
from tasks.rules.errors import UsageError
from tasks.settings import Job

_HOST = "127.0.0.1"


def write_report(job: Job, folder: Path | None = None, vintage: str | None = None) -> Written:
    """Write the report of what is published.

    Args:
        job: what it is about.
        folder: where to; None: where the job says.
        vintage: which sampling; None: the latest of each model, compared with the one before.

    Raises:
        UsageError: the folder holds something else.
        WarehouseError: nothing is published yet.
    """
    found = changes(job) if vintage is None else []
    return build(job, folder or job.report_folder, vintage, found)


def report_of_run(job: Job) -> Written:
    """The report that a run ends with: of all that is there, also where the run was about a part of it.

    Raises:
        UsageError: the folder holds something else.
    """
    dataset = job.settings.dataset.model_copy(update={"splits": ()})
    settings = job.settings.model_copy(update={"dataset": dataset})
    return write_report(job.model_copy(update={"settings": settings, "named_models": None, "named_judges": None}))


def link_to(job: Job, written: Written) -> str:
    """Where people find the report: the configured address, else the file."""
    return job.settings.report.url or written.index.resolve().as_uri()


def serve_report(folder: Path, port: int) -> None:
    """Serve a report to this machine until interrupted, and open it in the browser.

    Raises:
        UsageError: the port is taken.
    """
    try:
        server = ThreadingHTTPServer((_HOST, port), partial(_Pages, directory=str(folder)))
    except OSError as error:
        raise UsageError(f"--port {port}: {error.strerror}; name another one, or 0 for any that is free") from error
    with server:
        address = f"http://{_HOST}:{server.server_port}/"
        say(f"{address} (until Ctrl-C)")
        webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("the report is no longer served")


class _Pages(SimpleHTTPRequestHandler):
    """The files of a folder, for this machine alone; nothing is written or listed."""

    def send_head(self) -> object:  # type: ignore[override]
        """Answer only who asks for this machine by name: another site must not read the report through a browser."""
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        if host not in {_HOST, "localhost"}:
            self.send_error(403, "Only from this machine")
            return None
        return super().send_head()

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
