"""A pool of senders on this machine's cores, and senders as the driver sees them."""

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from tasks.llm.calls.gateway import Gateway
from tasks.llm.calls.sending import NoSender
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.limiter import Budget, Limiter
from tasks.llm.replies import Kind, Reply
from tasks.llm.request import Target
from tasks.llm.senders import cluster as nodes
from tasks.llm.senders import pool as pools
from tasks.llm.senders.pool import SenderPool
from tasks.rules.errors import UsageError
from tests.faults.behaviours import prompt_of
from tests.faults.server import FaultServer, HttpResponse
from tests.kit import Patch, Printed
from tests.tasks.llm.conftest import DECISION_ROUTES, ROUTES, Calling, Serve, call_to, failed

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
SECRET = "sk-planted-0123456789abcdef"
N_CALLS = 60
AT_ONCE = 12

pytestmark = pytest.mark.usefixtures("hurried")


def with_pool(
    folder: Path, targets: Sequence[Target], work: Callable[[Gateway, SenderPool], Awaitable[Any]]
) -> Any:
    """Do some work with a gateway and two senders on this machine, and return its result."""

    async def run() -> Any:
        ledger = Ledger(folder / "by-senders")
        pool = SenderPool(nodes.LOCAL, 2, targets)
        try:
            gateway = Gateway(
                Limiter(AT_ONCE, Budget(None, None)), ledger, "a-run", 2, None, "judge", pool
            )
            return await work(gateway, pool)
        finally:
            ledger.close()
            await pool.close()

    return asyncio.run(run())


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0.01)


def processes(mark: str) -> list[int]:
    """The processes whose command line contains a text."""
    return [
        each.pid
        for each in psutil.process_iter(["cmdline"])
        if mark in " ".join(each.info["cmdline"] or [])
    ]


def addresses_listened_on() -> set[str]:
    """Return the addresses on which this process and its children listen."""
    own = psutil.Process()
    connections = [
        each
        for process in [own, *own.children(recursive=True)]
        for each in process.net_connections("tcp")
    ]
    return {each.laddr.ip for each in connections if each.status == psutil.CONN_LISTEN}


REPLIES = (
    HttpResponse("A debt.", reasoning_tokens=7),
    HttpResponse(None, refusal="no"),
    HttpResponse(""),
    failed(400, "odd"),
    HttpResponse("cut", finish_reason="length"),
    failed(429),
    failed(400, "prompt is too long"),
    HttpResponse(raw=b"<html>hello</html>"),
)
OF_DECISIONS = (2, 3, 5, 6, 7)
"""Indices of the replies that a decision model can also send."""


@pytest.mark.slow
@pytest.mark.timeout(
    3_600
)  # it starts ten processes, each of which imports Ray: five minutes beside fourteen others
@needs_ray
def test_a_killed_sender_costs_its_own_calls(
    calling: Calling, serve: Serve, tmp_path: Path, monkeypatch: Patch
) -> None:
    """All other replies equal those of calls without senders, and the key is not written
    anywhere.
    """
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    folders: list[Path] = []
    monkeypatch.setattr(nodes, "mkdtemp", lambda **_: _job(folders, tmp_path))
    monkeypatch.setattr(nodes, "START_S", 3_600)
    odd = serve(lambda request, _number: REPLIES[int(prompt_of(request))])
    server = serve(HttpResponse("yes", delay_s=0.2))
    routes = {
        route: (ROUTES[route], range(len(REPLIES)))
        for route in ("vllm", "openai-streamed", "responses")
    }
    routes |= {route: (of_route, OF_DECISIONS) for route, of_route in DECISION_ROUTES.items()}
    odd_calls = [
        call_to(odd, str(n), f"{route} {n}", **to)
        for route, (to, own) in routes.items()
        for n in own
    ]
    calling.concurrency = AT_ONCE
    here = calling.at_once(*odd_calls)

    async def work(
        gateway: Gateway, pool: SenderPool
    ) -> tuple[list[Reply], list[Reply], dict[Path, bytes]]:
        there = await asyncio.gather(*map(gateway.complete, odd_calls))
        await until(lambda: len(pool.senders) == 2)
        assert addresses_listened_on() <= {"127.0.0.1", "::ffff:127.0.0.1"}
        assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}
        first = [sender.equipment.pid for sender in pool.senders]
        calls = [
            asyncio.create_task(gateway.complete(call_to(server, str(n)))) for n in range(N_CALLS)
        ]
        await until(
            lambda: (
                all(sender.in_hand for sender in pool.senders)
                and sum(c.done() for c in calls) >= 10
            )
        )
        os.kill(first[0], signal.SIGKILL)
        replies = await asyncio.gather(*calls)
        await until(
            lambda: len({sender.equipment.pid for sender in pool.senders} - {first[0]}) == 2
        )
        written = (path for folder in folders for path in folder.rglob("*"))
        kept = {
            path: path.read_bytes() for path in written if path.is_file() and not path.is_symlink()
        }
        return there, replies, kept

    there, replies, written = with_pool(
        tmp_path, [odd_calls[0].target, call_to(server).target], work
    )
    assert [replace(each, latency_s=None) for each in here] == [
        replace(each, latency_s=None) for each in there
    ]
    assert {reply.status for reply in replies} == {"ok"}
    again = [reply for reply in replies if reply.attempts > 1]
    assert 0 < len(again) <= AT_ONCE
    assert written
    assert [path for path, content in written.items() if SECRET.encode() in content] == []
    assert not any(folder.exists() for folder in folders)
    assert [processes(folder.name) for folder in folders] == [[]]


def _job(folders: list[Path], tmp_path: Path) -> str:
    folder = Path(f"/tmp/ray-of-{tmp_path.parent.name}-{os.getpid()}-{len(folders)}")
    folder.mkdir(mode=0o700)
    folders.append(folder)
    return str(folder)


class OneNode:
    """A cluster of one node without Ray; each new sender behaves as the next item of `senders`
    says.
    """

    senders: Iterator[Any]

    def __init__(self, *_: object) -> None:
        """Connect to nothing."""

    def nodes(self) -> list[nodes.Node]:
        return [nodes.Node("an-id", "a-node", 1)]

    def started(self, *_: object) -> Any:
        get_ready, reply = next(self.senders)
        outcomes: Future[Any] = Future()

        def start(attempts: Any, *_: object) -> None:
            if reply is not None and attempts:
                outcomes.set_result(
                    (time.monotonic(), [(number, reply) for number, *_ in attempts])
                )

        remote = {
            "get_ready": get_ready,
            "start": start,
            "outcomes": lambda: SimpleNamespace(future=lambda: outcomes),
        }
        return SimpleNamespace(
            **{name: SimpleNamespace(remote=call) for name, call in remote.items()}
        )

    def end(self, _: object) -> None:
        """Nothing runs."""

    def close(self) -> None:
        """Nothing runs."""


async def ready(_: object, versions: Any = None, **lacking: Any) -> nodes.Equipment:
    return nodes.Equipment(1, versions or nodes.local_versions(), lacking, time.monotonic())


async def dies(_: object) -> nodes.Equipment:
    raise RuntimeError("the process has ended")


MISTRAL = Target("mistral/mistral-small-latest")


@pytest.mark.parametrize(
    ("get_ready", "why", "n_gone"),
    [
        (dies, r"Ray's node a-node is not used: 5 senders died there without a reply", 1),
        (
            partial(ready, versions={**nodes.local_versions(), "litellm": "0.1"}),
            r"is not used: it runs other versions: litellm 0\.1 there, 1\..+ here",
            0,
        ),
        (partial(ready, **{MISTRAL.endpoint_name: ["A_KEY"]}), "A_KEY is set on no node of Ray", 0),
    ],
)
def test_where_no_sender_can_make_a_call_the_run_ends_with_one_line_that_says_why(
    get_ready: Any, why: str, n_gone: int, tmp_path: Path, monkeypatch: Patch, capsys: Printed
) -> None:
    monkeypatch.setattr(pools, "Cluster", OneNode)
    monkeypatch.setattr(OneNode, "senders", repeat((get_ready, None)), raising=False)
    call = replace(call_to("http://127.0.0.1:9/v1"), target=MISTRAL)
    with pytest.raises(NoSender, match=rf"\A.*{why}.*\Z"):
        with_pool(tmp_path, [call.target], lambda gateway, _: gateway.complete(call))
    assert n_gone == capsys.readouterr().err.count("is gone")


def test_calls_of_a_silent_sender_are_made_by_another(
    tmp_path: Path, monkeypatch: Patch, capsys: Printed
) -> None:
    """A silent sender stands for a node that was stopped or cut off."""
    monkeypatch.setattr(pools, "Cluster", OneNode)
    monkeypatch.setattr(nodes, "SILENCE_S", 0.2)
    monkeypatch.setattr(
        OneNode,
        "senders",
        iter([(ready, None), *[(ready, Reply("ok", "here"))] * 9]),
        raising=False,
    )
    call = call_to("http://127.0.0.1:9/v1")
    reply = with_pool(tmp_path, [call.target], lambda gateway, _: gateway.complete(call))
    assert reply.status == "ok"
    assert reply.text == "here"
    assert reply.attempts == 2
    assert "a sender on a-node is gone: it gives no sign of life" in capsys.readouterr().err


def test_without_ray_one_line_says_what_to_install(monkeypatch: Patch) -> None:
    monkeypatch.setattr(nodes, "find_spec", lambda _name: None)
    with pytest.raises(UsageError, match="needs Ray; install it with `uv sync --extra ray`"):
        nodes.refuse_without_ray()


def ray_alike() -> Any:
    """Replace Ray where it need not run."""
    job_config = SimpleNamespace(JobConfig=lambda **_: None)
    return SimpleNamespace(
        init=lambda **_: None,
        job_config=job_config,
        nodes=list,
        shutdown=lambda: None,
    )


def test_the_next_start_ends_and_removes_what_a_killed_driver_left(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(nodes, "ray", ray_alike)
    left = tmp_path / "ray-left"
    left.mkdir()
    (left / "token").touch()
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    ours, others = (
        subprocess.Popen([*sleep, f"{left}/{name}"]) for name in ("ray/raylet.out", "notes.txt")
    )
    try:
        while len(processes(f"{left}/")) < 2:
            time.sleep(0.01)
        living = nodes.Cluster(nodes.LOCAL)
        assert ours.wait(60) == -signal.SIGKILL
        (folder,) = tmp_path.glob("ray-*")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert (folder / "token").is_file()
        nodes.Cluster(nodes.LOCAL).close()
        assert [folder] == list(tmp_path.glob("ray-*"))
        living.close()
        assert list(tmp_path.glob("ray-*")) == []
        assert others.poll() is None
    finally:
        ours.kill()
        others.kill()


@pytest.mark.parametrize(("address", "n_notices"), [(nodes.LOCAL, 0), ("auto", 1)])
async def test_where_ray_has_ended_the_run_ends_and_where_nodes_may_return_it_says_what_it_waits_for(
    address: str, n_notices: int, tmp_path: Path, monkeypatch: Patch, capsys: Printed
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(nodes, "ray", ray_alike)
    monkeypatch.setattr(pools, "WITHOUT_NODES_S", 0.5)
    monkeypatch.setattr(pools, "LOOK_AT_NODES_EVERY_S", 0.2)
    pool = SenderPool(address, 1, [call_to("http://127.0.0.1:9/v1").target])
    with pytest.raises(
        NoSender, match=r"has ended; run again|has had no node with a core for 0\.5 s"
    ):
        await pool.ready()
    await pool.close()
    assert n_notices == capsys.readouterr().err.count(
        "no node with a core; calls wait up to 0.5 s for one"
    )


@pytest.mark.parametrize("address", ["auto", "ray://127.0.0.1:{port}"])
def test_a_cluster_that_does_not_listen_is_refused_in_one_line(
    address: str, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(nodes, "ray", pytest.fail)
    with socket.socket() as bound:  # nothing listens there
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
        with pytest.raises(
            UsageError, match=rf"\A.*Ray is not there: .*127\.0\.0\.1:{port}: .*refused.*\Z"
        ):
            nodes.Cluster(address.format(port=port))


async def test_an_attempt_that_reaches_a_sender_after_it_was_given_up_is_not_made() -> None:
    process = nodes.SenderProcess()
    with FaultServer(lambda _request, _number: HttpResponse("paid")) as server:
        await process.start([(1, call_to(server), {})], time.monotonic() - nodes.SILENCE_S)
        _, outcomes = await process.outcomes()
        assert server.book == []
    assert [(number, reply.failure and reply.failure.kind) for number, reply in outcomes] == [
        (1, Kind.LOST)
    ]
