"""Served pages, over a real socket: for this machine only, with names as text, and without writing
anything.
"""

import http.client
import os
import socket
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

import pytest

from flows.report_server.server import ReportServer, renderers_of, serve_report
from tasks.figures.shown import COMPARE
from tasks.report.rendering.site import render
from tasks.rules.errors import UsageError
from tests.flows.report_server.serving import serving
from tests.kit import at, job_on, reading, row
from tests.tasks.compare.comparisons import (
    ALL_MET,
    RUBRICS,
    WORSE_IN_RISK,
    judged,
    tasks_of,
)

EVIL = "<script>attacked</script>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("served")
    run = row(
        "runs",
        run_id="r",
        command=EVIL,
        config="{}",
        started_at=at(0),
        outcome="failed",
    )
    with reading(
        folder / "data",
        tasks_of(RUBRICS),
        judged(ALL_MET, "a"),
        judged(WORSE_IN_RISK, EVIL),
        {"runs": [run]},
    ):
        yield folder


def times_of(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.fixture(scope="module")
def times_before(folder: Path) -> dict[Path, int]:
    """When each file of the warehouse was written, before anything is served (of the report's
    folder, other tests write in it).
    """
    return times_of(folder / "data")


@pytest.fixture(scope="module")
def port(folder: Path, times_before: dict[Path, int]) -> Iterator[int]:
    index = folder / "report/prbench/index.html"
    index.parent.mkdir(parents=True)
    index.write_text("a report")
    renderers = renderers_of(
        job_on("sample", folder / "data"),
        index,
        is_live=True,
    )
    with serving(folder / "report", renderers) as server:
        yield server.server_port


@dataclass(frozen=True)
class Served:
    """The response of the server."""

    status: int
    headers: Message
    text: str


def fetch(port: int, path: str, method: str = "GET", **headers: str) -> Served:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(
        method,
        path,
        headers={"Host": "127.0.0.1:8765", **headers},
    )
    response = connection.getresponse()
    return Served(
        response.status,
        response.headers,
        response.read().decode(),
    )


def get(port: int, path: str, method: str = "GET", **headers: str) -> Served:
    """Fetch a page of the benchmark's report."""
    return fetch(port, f"/prbench/{path}", method, **headers)


PATHS = (
    "compare.html",
    "live.html",
    "assets/page.js",
    "assets/live.js",
    "assets/report.css",
)


@pytest.mark.parametrize("path", [*PATHS, "index.html"])
def test_a_page_is_served_to_this_machine_only(port, path):
    assert get(port, path).status == 200
    assert get(port, path, Host="evil.example").status == 403
    assert get(port, path, Origin="http://evil.example").status == 403


@pytest.mark.parametrize("path", [*PATHS, "index.html"])
def test_a_page_can_only_be_read(port, path):
    head = get(port, path, "HEAD")

    assert head.status == 200
    assert head.headers["Content-Type"] == get(port, path).headers["Content-Type"]
    assert head.text == ""
    assert get(port, path, "POST").status == 501


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Host", "127.0.0.1"),
        ("Host", "LocalHost:80"),
        ("Host", "localhost.:8765"),
        ("Host", "[::1]:8765"),
        ("Origin", "HTTP://127.0.0.1:8765"),
        ("Sec-Fetch-Site", "same-origin"),
    ],
)
def test_requests_by_own_names_and_pages_are_served(port, header, value):
    assert get(port, "index.html", **{header: value}).status == 200


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Host", "evil.example"),
        ("Host", ""),
        ("Host", ":80"),
        ("Host", "localhost.evil.example"),
        ("Host", "evil.example:127.0.0.1"),
        ("Host", "[::1].evil.example"),
        ("Host", "::1"),
        ("Origin", "http://127.0.0.1:9999"),
        ("Origin", "null"),
        ("Origin", "http://127.0.0.1"),
        ("Origin", "https://127.0.0.1:8765"),
        ("Origin", "http://evil.example"),
        ("Origin", ""),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ],
)
def test_requests_by_other_names_and_pages_are_refused(port, header, value):
    assert get(port, "index.html", **{header: value}).status == 403


def test_another_site_can_link_to_a_page(port):
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}

    assert get(port, "index.html", **headers).status == 200


@pytest.mark.parametrize("path", ["index.html", "live.html", "nowhere.html"])
def test_another_site_can_neither_load_nor_frame_a_page(port, path):
    headers = get(port, path).headers

    assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


@pytest.mark.parametrize(
    "path",
    [
        "/%00",
        "/%00/",
        "/index.html%00",
        "/%ff%fe",
        "/%ed%a0%80",
        "/" + "a" * 5_000,
        "/%2e%2e/passwd",
        "//evil",
    ],
)
def test_an_invalid_path_is_404_without_a_word(port, path, capfd):
    assert fetch(port, path).status == 404
    assert fetch(port, path, "HEAD").status == 404
    assert capfd.readouterr() == ("", "")


def test_a_browser_that_does_not_wait_is_nothing_to_print(tmp_path, capfd):
    (tmp_path / "large.html").write_text("a report " * 10**6)
    with serving(tmp_path, {}) as server:
        server.daemon_threads = False
        # Such a socket resets the connection when it closes.
        browser = socket.create_connection(("127.0.0.1", server.server_port))
        browser.setsockopt(
            socket.SOL_SOCKET,
            socket.SO_LINGER,
            struct.pack("ii", 1, 0),
        )
        browser.sendall(b"GET /large.html HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert browser.recv(1)
        browser.close()
    # The server has waited for the thread that responds.
    assert capfd.readouterr() == ("", "")


def test_links_that_lead_out_of_the_folder_are_not_followed(port, folder, tmp_path):
    secret = tmp_path / "index.html"
    secret.write_text("a secret")
    report = folder / "report/prbench"
    (report / "linked").mkdir()
    (report / "out.html").symlink_to(secret)
    (report / "out").symlink_to(tmp_path)
    (report / "linked/index.html").symlink_to(secret)
    os.mkfifo(report / "linked/pipe.html")
    (report / "other").mkdir()
    (report / "other/index.htm").symlink_to(secret)

    for path in (
        "out.html",
        "out/index.html",
        "out/",
        "linked/index.html",
        "linked/",
        "linked/pipe.html",
        "other/",
    ):
        assert get(port, path).status == 404, path


def test_a_link_within_the_folder_is_followed(port, folder):
    report = folder / "report/prbench"
    (report / "same.html").symlink_to(report / "index.html")

    assert get(port, "same.html").text == "a report"
    assert get(port, "").text == "a report"


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (
            "compare.html?of=model&first=a&second=%3Cscript%3Eattacked%3C/script%3E",
            "There are no two of these",
        ),
        (
            "compare.html?of=model&first=a&second=%3Cscript%3Eother%3C/script%3E",
            "&lt;script&gt;other",
        ),
        ("live.html", "&lt;script&gt;attacked"),
    ],
)
def test_a_page_has_a_policy_and_names_and_parameters_are_text_in_it(
    port,
    address,
    text,
):
    page = get(port, address).text

    assert text in page
    assert "default-src &#39;none&#39;; script-src &#39;self&#39;" in page
    assert "<script>attacked" not in page
    assert "<script>other" not in page


def test_the_page_of_a_folder_says_how_to_compare_any_two_and_may_connect_nowhere():
    report = {
        "heading": "A benchmark",
        "pages": (COMPARE,),
        "footer": "",
    }

    page = render(COMPARE, report, comparison=None)

    assert "prbench report --serve" in page
    assert "connect-src &#39;none&#39;" in page
    assert "<form" not in page


def test_too_many_parameters_are_status_404(port):
    assert get(port, "compare.html?" + "p=1&" * 99).status == 404


def test_serving_writes_nothing(port, folder, times_before):
    for path in PATHS:
        get(port, path)

    assert times_of(folder / "data") == times_before


def test_the_server_closes_when_the_page_in_progress_is_rendered(tmp_path):
    begun = threading.Event()
    go_on = threading.Event()

    def make(_):
        begun.set()
        assert go_on.wait(30)
        return ""

    server = ReportServer(tmp_path, 0, {"/prbench/slow": make})
    threading.Thread(
        target=server.serve_forever,
        args=(0.02,),
        daemon=True,
    ).start()
    with ThreadPoolExecutor() as pool:
        pool.submit(get, server.server_port, "slow")
        assert begun.wait(30)
        server.shutdown()
        closing = pool.submit(server.server_close)

        with pytest.raises(TimeoutError):
            closing.result(0.2)
        go_on.set()
        closing.result(30)


def test_a_folder_of_other_files_is_not_served(tmp_path):
    (tmp_path / ".env").write_text("A_KEY=secret")
    job = job_on("sample", tmp_path / "data")

    with pytest.raises(UsageError, match="has files that are not a report"):
        serve_report(job, tmp_path / "prbench/index.html", 0, is_live=True)


def test_a_broken_page_is_an_error_in_browser_and_terminal(tmp_path, capsys):
    def broken(_):
        raise ValueError("a bug")

    with serving(tmp_path, {"/page.html": broken}) as server:
        response = fetch(server.server_port, "/page.html")

    assert response.status == 500
    assert "/page.html: unexpected ValueError: a bug" in capsys.readouterr().err
