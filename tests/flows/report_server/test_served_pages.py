"""Served pages, over a real socket: for this machine only, with names as text, and without writing
anything.
"""

import http.client
import json
import os
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from flows.report_server.server import ReportServer, renderers_of, serve_report
from tasks.figures.shown import COMPARE
from tasks.report.rendering.site import render
from tasks.rules.errors import UsageError
from tests.kit import Printed, at, job_on, reading, row
from tests.tasks.compare.comparisons import ALL_MET, RUBRICS, WORSE_IN_RISK, judged, tasks_of

EVIL = "<script>attacked</script>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("served")
    runs = [
        row(
            "runs",
            run_id="r",
            command=EVIL,
            config=json.dumps({}),
            started_at=at(0),
            outcome="failed",
        )
    ]
    with reading(
        folder / "data",
        tasks_of(RUBRICS),
        judged(ALL_MET, "a"),
        judged(WORSE_IN_RISK, EVIL),
        {"runs": runs},
    ):
        yield folder


@pytest.fixture(scope="module")
def port(folder: Path) -> Iterator[int]:
    index = folder / "report/prbench/index.html"
    index.parent.mkdir(parents=True)
    index.write_text("a report")
    renderers = renderers_of(job_on("sample", folder / "data"), index, is_live=True)
    with ReportServer(folder / "report", 0, renderers) as server:
        threading.Thread(
            target=server.serve_forever,
            args=(0.02,),
            daemon=True,
        ).start()
        yield server.server_port
        server.shutdown()


def fetch(
    port: int, path: str, method: str = "GET", **headers: str
) -> tuple[http.client.HTTPResponse, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, headers={"Host": "127.0.0.1:8765", **headers})
    response = connection.getresponse()
    return response, response.read().decode()


def get(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, str, str]:
    response, text = fetch(port, f"/prbench/{path}", method, **headers)
    return response.status, response.headers["Content-Type"] or "", text


PATHS = ("compare.html", "live.html", "assets/page.js", "assets/live.js", "assets/report.css")


@pytest.mark.parametrize("path", [*PATHS, "index.html"])
def test_a_page_is_served_to_this_machine_only(port: int, path: str) -> None:
    assert get(port, path, "HEAD") == (200, get(port, path)[1], "")
    refused = [
        get(port, path, **given)[0]
        for given in ({"Host": "evil.example"}, {"Origin": "http://evil.example"})
    ]
    assert [get(port, path)[0], *refused] == [200, 403, 403]
    assert get(port, path, "POST")[0] == 501


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        *(
            ("Host", host, 200)
            for host in ("127.0.0.1", "LocalHost:80", "localhost.:8765", "[::1]:8765")
        ),
        *(
            ("Host", host, 403)
            for host in (
                "evil.example",
                "",
                ":80",
                "localhost.evil.example",
                "evil.example:127.0.0.1",
                "[::1].evil.example",
                "::1",
            )
        ),
        ("Origin", "HTTP://127.0.0.1:8765", 200),
        *(
            ("Origin", origin, 403)
            for origin in (
                "http://127.0.0.1:9999",
                "null",
                "http://127.0.0.1",
                "https://127.0.0.1:8765",
                "http://evil.example",
                "",
            )
        ),
        ("Sec-Fetch-Site", "same-origin", 200),
        ("Sec-Fetch-Site", "cross-site", 403),
        ("Sec-Fetch-Site", "same-site", 403),
    ],
)
def test_only_requests_by_own_names_and_pages_are_served(
    port: int, header: str, value: str, status: int
) -> None:
    assert status == get(port, "index.html", **{header: value})[0]


def test_another_site_can_lead_here_but_not_load_or_frame_a_page(port: int) -> None:
    assert (
        (
            get(
                port, "index.html", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
            )[0]
        )
        == 200
    )
    for path in ("index.html", "live.html", "nowhere.html"):
        headers = fetch(port, f"/prbench/{path}")[0].headers
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
def test_an_invalid_path_is_404_without_a_word(port: int, path: str, capfd: Printed) -> None:
    assert [fetch(port, path, method)[0].status for method in ("GET", "HEAD")] == [404, 404]
    assert capfd.readouterr() == ("", "")


def test_a_browser_that_does_not_wait_is_nothing_to_print(tmp_path: Path, capfd: Printed) -> None:
    (tmp_path / "large.html").write_text("a report " * 10**6)
    with ReportServer(tmp_path, 0, {}) as server:
        server.daemon_threads = False
        threading.Thread(
            target=server.serve_forever,
            args=(0.02,),
            daemon=True,
        ).start()
        # Such a socket resets the connection when it closes.
        browser = socket.create_connection(("127.0.0.1", server.server_port))
        browser.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        browser.sendall(b"GET /large.html HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert browser.recv(1)
        browser.close()
        server.shutdown()
    # The server has waited for the thread that responds.
    assert capfd.readouterr() == ("", "")


def test_links_that_lead_out_of_the_folder_are_not_followed(
    port: int, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "index.html").write_text("a secret")
    (inside := folder / "report/prbench/linked").mkdir()
    for name, target in (
        ("out.html", tmp_path / "index.html"),
        ("out", tmp_path),
        ("linked/index.html", tmp_path / "index.html"),
        ("same.html", folder / "report/prbench/index.html"),
    ):
        (inside.parent / name).symlink_to(target)
    os.mkfifo(inside / "pipe.html")

    for path in (
        "out.html",
        "out/index.html",
        "out/",
        "linked/index.html",
        "linked/",
        "linked/pipe.html",
    ):
        assert get(port, path)[0] == 404, path
    assert get(port, "same.html")[2] == get(port, "index.html")[2] == get(port, "")[2] == "a report"


def test_the_pages_have_a_policy_and_names_and_parameters_are_text_in_them(port: int) -> None:
    compared = get(port, "compare.html?of=model&first=a&second=%3Cscript%3Eattacked%3C/script%3E")[
        2
    ]
    refused = get(port, "compare.html?of=model&first=a&second=%3Cscript%3Eother%3C/script%3E")[2]
    live = get(port, "live.html")[2]

    for page in (compared, refused, live):
        assert "default-src &#39;none&#39;; script-src &#39;self&#39;" in page
        assert "<script>attacked" not in page
        assert "<script>other" not in page
    assert "There are no two of these" in compared
    assert "&lt;script&gt;other" in refused
    assert "&lt;script&gt;attacked" in live


def test_in_a_folder_the_page_says_how_any_two_are_compared_and_may_ask_nobody() -> None:
    common = {
        "heading": "A benchmark",
        "pages": (COMPARE,),
        "footer": "",
    }

    page = render(COMPARE, common, comparison=None)

    assert "prbench report --serve" in page
    assert "connect-src &#39;none&#39;" in page
    assert "<form" not in page


def test_too_many_parameters_are_status_404_and_nothing_is_written(port: int, folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}

    assert get(port, "compare.html?" + "&".join(f"p{n}=1" for n in range(99)))[0] == 404
    for path in PATHS:
        get(port, path)

    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_the_server_closes_when_the_page_in_progress_is_rendered(tmp_path: Path) -> None:
    begun = threading.Event()
    go_on = threading.Event()
    has_ended = threading.Event()

    def make(_: Mapping[str, str]) -> str:
        begun.set()
        assert go_on.wait(30)
        has_ended.set()
        return ""

    server = ReportServer(tmp_path, 0, {"/prbench/slow": make})
    threading.Thread(
        target=server.serve_forever,
        args=(0.02,),
        daemon=True,
    ).start()
    with ThreadPoolExecutor() as others:
        others.submit(get, server.server_port, "slow")
        assert begun.wait(30)
        server.shutdown()
        closing = others.submit(server.server_close)
        assert not has_ended.is_set()
        go_on.set()
        closing.result(30)

        assert has_ended.is_set()


def test_a_folder_of_other_files_is_not_served(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A_KEY=secret", encoding="utf-8")
    with pytest.raises(UsageError, match="has files that are not a report"):
        serve_report(
            job_on("sample", tmp_path / "data"),
            tmp_path / "prbench" / "index.html",
            0,
            is_live=True,
        )


def test_a_broken_page_is_an_error_in_browser_and_terminal(tmp_path: Path, capsys: Printed) -> None:
    def broken(_: Mapping[str, str]) -> str:
        raise ValueError("a bug")

    with ReportServer(tmp_path, 0, {"/page.html": broken}) as server:
        threading.Thread(
            target=server.serve_forever,
            args=(0.02,),
            daemon=True,
        ).start()
        assert fetch(server.server_port, "/page.html")[0].status == 500
        server.shutdown()
    assert "/page.html: unexpected ValueError: a bug" in capsys.readouterr().err
