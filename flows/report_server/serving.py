"""Serving the report of a job, with the pages that compare and that follow runs in progress."""

import webbrowser
from collections.abc import Mapping
from pathlib import Path

from flows.report import is_up_to_date
from flows.report_server.compare_page import comparison
from flows.report_server.live_page import as_json, words
from flows.report_server.live_state import LiveView
from flows.report_server.server import Made, Maker, server_of
from tasks.config import Job
from tasks.console import notice
from tasks.report import ASSETS, COMPARE, LIVE, refuse_other, served_page
from tasks.rules.errors import PipelineError

_OWN_ASSETS = Path(__file__).parent / "assets"
_KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}


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
    """What the server itself answers, by path: pages that are made each time, and files."""
    folder, benchmark = index.parent, job.settings.benchmark
    pages = (LIVE,) if is_live else ()

    def compare(given: Mapping[str, str]) -> Made:
        found = comparison(job, given, folder)
        return Made(served_page(COMPARE, benchmark, folder, pages, asked=found).encode())

    makers: dict[str, Maker | Made] = {f"/{folder.name}/{COMPARE.name}.html": compare}
    for path in (ASSETS / "report.css", ASSETS / "drilldown.css", ASSETS / "theme.js", *_OWN_ASSETS.iterdir()):
        makers[f"/{folder.name}/assets/{path.name}"] = Made(path.read_bytes(), _KINDS[path.suffix])
    if is_live:
        view = LiveView(job)

        def live(_: Mapping[str, str]) -> Made:
            shown = words(view.now(), index, lambda: _shows_everything(job, index))
            return Made(served_page(LIVE, benchmark, folder, pages, live=shown).encode())

        def data(_: Mapping[str, str]) -> Made:
            return Made(as_json(view.now()).encode(), "application/json")

        makers |= {f"/{folder.name}/{LIVE.name}.html": live, f"/{folder.name}/{LIVE.name}.json": data}
    return makers


def _shows_everything(job: Job, index: Path) -> bool:
    """Whether the job's report is as a run would write it now; not of a data set that cannot be read."""
    try:
        return index == job.report_index and is_up_to_date(job)
    except PipelineError:
        return False  # The page says beside the ranking why it cannot be read.
