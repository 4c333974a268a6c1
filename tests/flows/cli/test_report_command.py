"""What `prbench report` is asked for, and who may read what it serves."""

import http.client
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

import flows.report
import flows.report_server.server
from flows.cli.main import main
from flows.report_server.server import server_of
from tasks.config.job import Job
from tasks.report.build import Written
from tests.flows.conftest import Run
from warehouse import Warehouse


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """The jobs of the reports that a command asks for, beside a configuration that evaluates one split."""
    jobs: list[Job] = []

    def note(job: Job, *_: Any, **__: Any) -> Written:
        jobs.append(job)
        return Written(tmp_path / "index.html", 0)

    monkeypatch.setattr(flows.report, "write_report", note)
    monkeypatch.setattr(flows.report, "basis_of", lambda job: "")
    monkeypatch.setattr(flows.report, "_store_what_was_spent", lambda job: None)
    monkeypatch.chdir(tmp_path)
    dataset = {"source": "sample", "splits": ["finance"]}
    (tmp_path / "prbench.yaml").write_text(yaml.safe_dump({"dataset": dataset}), encoding="utf-8")
    return jobs


@pytest.mark.parametrize(("options", "splits"), [((), ()), (("--split", "legal"), ("legal",))])
def test_the_command_narrows_to_splits_and_the_configuration_does_not(
    asked: list[Job], options: tuple[str, ...], splits: tuple[str, ...]
) -> None:
    assert main(["report", *options]) == 0

    assert [job.settings.dataset.splits for job in asked] == [splits]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, bool]]:
    """What is served: the first page, and whether runs are followed."""
    calls: list[tuple[Path, bool]] = []

    def note(_job: Job, index: Path, _port: int, *, is_live: bool) -> None:
        calls.append((index, is_live))

    monkeypatch.setattr(flows.report_server.server, "serve_report", note)
    return calls


def test_live_without_serve_is_refused_in_one_line(asked: list[Job], run: Run) -> None:

    assert "--live shows a page of the local server; add --serve" in run("report", "--live", code=2)
    assert asked == []


def test_live_writes_no_report_before_anything_is_published_or_while_a_run_goes_on(
    asked: list[Job], served: list[tuple[Path, bool]], tmp_path: Path
) -> None:
    live = ["report", "--serve", "--live", "--warehouse", str(tmp_path / "data")]
    index = tmp_path / "data/report/prbench/index.html"

    assert main(live) == 0
    assert (asked, served) == ([], [(index, True)])

    Warehouse(tmp_path / "data").publish()
    with Warehouse(tmp_path / "data").living("r"):
        assert main(live) == 0
    assert asked == []

    assert main(live) == 0
    assert len(asked) == 1
    assert main(["report", "--serve", "--warehouse", str(tmp_path / "data")]) == 0
    assert served[1:] == [(index, True), (index, True), (index, False)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a page, and one that fills every buffer on its way."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "index.html").write_text("a report")
    (folder / "large.html").write_text("a report " * 10**6)
    return folder


@pytest.fixture(scope="module")
def port(folder: Path) -> Iterator[int]:
    """Where the folder is served."""
    with server_of(folder, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize(("header", "value", "status"), [
    *(("Host", host, 200) for host in ("127.0.0.1", "LocalHost:80", "localhost.:8765", "[::1]:8765")),
    *(("Host", host, 403) for host in (
        "evil.example", "", ":80", "localhost.evil.example", "evil.example:127.0.0.1", "[::1].evil.example", "::1")),
    ("Origin", "HTTP://127.0.0.1:8765", 200),
    *(("Origin", origin, 403) for origin in (
        "http://127.0.0.1:9999", "null", "http://127.0.0.1", "https://127.0.0.1:8765", "http://evil.example", "")),
])  # fmt: skip
def test_only_who_asks_this_machine_by_one_of_its_names_and_from_its_own_page_is_answered(
    port: int, header: str, value: str, status: int
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/", headers={"Host": "127.0.0.1:8765", header: value})

    assert connection.getresponse().status == status


@pytest.mark.parametrize(
    ("site", "mode", "status"),
    [("same-origin", "no-cors", 200), ("none", "navigate", 200), ("cross-site", "navigate", 200),
     ("cross-site", "no-cors", 403), ("same-site", "no-cors", 403)],
)  # fmt: skip
def test_another_site_can_lead_here_and_load_nothing(port: int, site: str, mode: str, status: int) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("GET", "/index.html", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode})
        answer = connection.getresponse()
        assert answer.status == status
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"


@pytest.mark.parametrize("path", [
    "/%00", "/%00/", "/index.html%00", "/%ff%fe", "/%ed%a0%80", "/" + "a" * 5_000, "/%2e%2e/passwd", "//evil",
])  # fmt: skip
def test_a_page_that_cannot_be_is_not_found_and_nothing_is_printed(
    port: int, path: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for method in ("GET", "HEAD"):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request(method, path, headers={"Host": "localhost"})
        assert connection.getresponse().status == 404

    assert capfd.readouterr() == ("", "")


def test_a_browser_that_does_not_wait_for_the_rest_of_a_page_is_nothing_to_print(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with server_of(folder, 0) as server:
        server.daemon_threads = False
        threading.Thread(target=server.serve_forever, daemon=True).start()
        # Such a socket says at once that it is gone.
        browser = socket.create_connection(("127.0.0.1", server.server_port))
        browser.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        browser.sendall(b"GET /large.html HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert browser.recv(1)
        browser.close()
        server.shutdown()
    # Its end has waited for the thread that answered.
    assert capfd.readouterr() == ("", "")
