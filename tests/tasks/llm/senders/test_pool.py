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
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import chain, repeat
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
from tasks.llm.request import Call, Target
from tasks.llm.senders import cluster as nodes
from tasks.llm.senders import pool as pools
from tasks.llm.senders.pool import SenderPool
from tasks.rules.errors import UsageError
from tests.faults.behaviours import prompt_of
from tests.faults.server import FaultServer, HttpResponse
from tests.kit import one_line
from tests.tasks.llm.conftest import (
    DECISION_ROUTES,
    ROUTES,
    Calling,
    call_to,
    calls_to,
    failed,
    responding_with,
    wait_until,
)

SECRET = "sk-planted-0123456789abcdef"
CONCURRENCY = 12
DEAD_ADDRESS = "http://127.0.0.1:9/v1"

pytestmark = pytest.mark.usefixtures("hurried")


def with_pool(
    folder: Path,
    targets: Sequence[Target],
    work: Callable[[Gateway, SenderPool], Awaitable[Any]],
) -> Any:
    """Do some work with a gateway and two senders on this machine, and return its result."""

    async def run():
        ledger = Ledger(folder / "by-senders")
        pool = SenderPool(nodes.LOCAL, 2, targets)
        limiter = Limiter(CONCURRENCY, Budget(None, None))
        gateway = Gateway(limiter, ledger, "a-run", 2, None, "judge", pool)
        try:
            return await work(gateway, pool)
        finally:
            ledger.close()
            await pool.close()

    return asyncio.run(run())


def processes_with(text: str) -> list[int]:
    """The processes whose command line contains a text."""
    pids = []
    for process in psutil.process_iter(["cmdline"]):
        if text in " ".join(process.info["cmdline"] or []):
            pids.append(process.pid)
    return pids


def addresses_listened_on() -> set[str]:
    """The addresses on which this process and its children listen."""
    process = psutil.Process()
    addresses = set()
    for member in [process, *process.children(recursive=True)]:
        for connection in member.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN:
                addresses.add(connection.laddr.ip)
    return addresses


# senders on a local Ray, of which one is killed


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
DECISION_REPLIES = (2, 3, 5, 6, 7)
"""Indices of the replies that a decision model can also send."""


def odd_calls_to(server: FaultServer) -> list[Call]:
    """Calls for each of the replies, on several routes."""
    calls = []
    for route in ("vllm", "openai-streamed", "responses"):
        for number in range(len(REPLIES)):
            calls.append(
                call_to(server, str(number), f"{route} {number}", **ROUTES[route])
            )
    for route, target in DECISION_ROUTES.items():
        for number in DECISION_REPLIES:
            calls.append(call_to(server, str(number), f"{route} {number}", **target))
    return calls


@dataclass
class Observed:
    """What happened with two senders of a local Ray, of which one was killed during 60 calls."""

    replies_here: list[Reply]
    replies_by_senders: list[Reply]
    replies_around_kill: list[Reply]
    addresses: set[str]
    ray_folder: Path
    folder_mode: int
    contents: dict[Path, bytes]


def mode_of(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


def contents_of(folder: Path) -> dict[Path, bytes]:
    """The files of a folder, by path."""
    files = [
        path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()
    ]
    return {path: path.read_bytes() for path in files}


async def kill_one(
    gateway: Gateway,
    pool: SenderPool,
    calls: Sequence[Call],
) -> list[Reply]:
    """Make calls, kill a sender meanwhile, and return the replies when another has replaced it."""
    pids = {sender.equipment.pid for sender in pool.senders}
    killed_pid = min(pids)
    tasks = [asyncio.create_task(gateway.complete(call)) for call in calls]
    await wait_until(lambda: sum(task.done() for task in tasks) >= 10)
    await wait_until(lambda: all(sender.in_hand for sender in pool.senders))
    os.kill(killed_pid, signal.SIGKILL)
    replies = await asyncio.gather(*tasks)
    await wait_until(
        lambda: (
            sum(sender.equipment.pid != killed_pid for sender in pool.senders) == 2
        )
    )
    return replies


@pytest.fixture(scope="module")
def observed(tmp_path_factory) -> Observed:
    """Two senders on a local Ray, whose processes each import Ray: minutes on a busy machine."""
    # To import it would read the settings of `Cluster` too early.
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    folder = tmp_path_factory.mktemp("senders")
    # Ray's sockets need a short path.
    ray_folder = Path(f"/tmp/ray-of-{folder.parent.name}-{os.getpid()}")
    ray_folder.mkdir(mode=0o700)
    with (
        pytest.MonkeyPatch.context() as patches,
        FaultServer(
            lambda request, _: REPLIES[int(prompt_of(request))]
        ) as odd_server,
        FaultServer(responding_with(HttpResponse("yes", delay_s=0.2))) as server,
    ):
        patches.setenv("OPENAI_API_KEY", SECRET)
        patches.setattr(nodes, "mkdtemp", lambda **_: str(ray_folder))
        patches.setattr(nodes, "START_S", 3_600)
        patches.setattr("tasks.llm.calls.gateway.FIRST_BACKOFF_S", 0.01)
        odd_calls = odd_calls_to(odd_server)
        calls = calls_to(server, 60)
        replies_here = Calling(folder / "here", concurrency=CONCURRENCY).call_at_once(
            *odd_calls
        )

        async def observe(gateway, pool):
            replies = await asyncio.gather(*map(gateway.complete, odd_calls))
            await wait_until(lambda: len(pool.senders) == 2)
            addresses = addresses_listened_on()
            return Observed(
                replies_here,
                replies,
                replies_around_kill=await kill_one(gateway, pool, calls),
                addresses=addresses,
                ray_folder=ray_folder,
                folder_mode=mode_of(ray_folder),
                contents=contents_of(ray_folder),
            )

        return with_pool(folder, [odd_calls[0].target, calls[0].target], observe)


def on_local_ray(test: Callable[[Observed], None]) -> Callable[[Observed], None]:
    """Mark a test that starts Ray, which may take minutes."""
    return pytest.mark.long(pytest.mark.timeout(3_600)(test))


@on_local_ray
def test_replies_by_senders_equal_those_without_senders(observed):
    replies = [
        replace(reply, latency_s=None) for reply in observed.replies_by_senders
    ]
    expected = [replace(reply, latency_s=None) for reply in observed.replies_here]

    assert replies == expected


@on_local_ray
def test_a_killed_sender_costs_its_own_calls(observed):
    attempts = [reply.attempts for reply in observed.replies_around_kill]

    assert {reply.status for reply in observed.replies_around_kill} == {"ok"}
    assert 0 < len(attempts) - attempts.count(1) <= CONCURRENCY


@on_local_ray
def test_the_key_is_not_written_anywhere(observed):
    assert observed.contents
    assert SECRET.encode() not in b"".join(observed.contents.values())


@on_local_ray
def test_only_its_user_and_this_machine_reach_a_local_ray(observed):
    assert observed.addresses <= {"127.0.0.1", "::ffff:127.0.0.1"}
    assert observed.folder_mode == 0o700


@on_local_ray
def test_nothing_is_left_of_a_local_ray(observed):
    assert not observed.ray_folder.exists()
    assert processes_with(observed.ray_folder.name) == []


# a cluster without Ray


class OneNode:
    """A cluster of one node without Ray; each new sender behaves as the next item of `senders`
    says.
    """

    senders: Iterator[Any]

    def __init__(self, *_: object):
        """Connect to nothing."""

    def nodes(self) -> list[nodes.Node]:
        return [nodes.Node("an-id", "a-node", 1)]

    def start(self, *_: object) -> Any:
        get_ready, reply = next(self.senders)
        outcomes = Future()

        def reply_to_attempts(attempts, *_):
            if reply is not None:
                replies = [(number, reply) for number, *_ in attempts]
                outcomes.set_result((time.monotonic(), replies))

        return SimpleNamespace(
            get_ready=SimpleNamespace(remote=get_ready),
            start=SimpleNamespace(remote=reply_to_attempts),
            outcomes=SimpleNamespace(
                remote=lambda: SimpleNamespace(future=lambda: outcomes)
            ),
        )

    def end(self, _: object):
        """Nothing runs."""

    def close(self):
        """Nothing runs."""


async def get_ready(
    _: object, versions: Any = None, **lacking: Any
) -> nodes.Equipment:
    return nodes.Equipment(
        1,
        versions or nodes.local_versions(),
        lacking,
        time.monotonic(),
    )


async def die(_: object) -> nodes.Equipment:
    raise RuntimeError("the process has ended")


MISTRAL = Target("mistral/mistral-small-latest")
OTHER_VERSIONS = {**nodes.local_versions(), "litellm": "0.1"}
UNUSABLE_SENDERS = {
    "dead": (
        die,
        r"Ray's node a-node is not used: 5 senders died there without a reply",
        1,
    ),
    "other versions": (
        partial(get_ready, versions=OTHER_VERSIONS),
        r"is not used: it runs other versions: litellm 0\.1 there, 1\..+ here",
        0,
    ),
    "no key": (
        partial(get_ready, **{MISTRAL.endpoint_name: ["A_KEY"]}),
        "A_KEY is set on no node of Ray",
        0,
    ),
}


@pytest.mark.parametrize(
    ("get_ready", "reason", "n_deaths"),
    UNUSABLE_SENDERS.values(),
    ids=UNUSABLE_SENDERS,
)
def test_if_no_sender_can_make_a_call_the_run_ends_with_the_reason_in_one_line(
    get_ready,
    reason,
    n_deaths,
    tmp_path,
    monkeypatch,
    capsys,
):
    monkeypatch.setattr(pools, "Cluster", OneNode)
    monkeypatch.setattr(OneNode, "senders", repeat((get_ready, None)), raising=False)
    call = replace(call_to(DEAD_ADDRESS), target=MISTRAL)

    with pytest.raises(NoSender, match=rf"\A.*{reason}.*\Z"):
        with_pool(tmp_path, [MISTRAL], lambda gateway, _: gateway.complete(call))

    assert capsys.readouterr().err.count("is gone") == n_deaths


def test_calls_of_a_silent_sender_are_made_by_another(tmp_path, monkeypatch, capsys):
    """A silent sender stands for a node that was stopped or cut off."""
    silent_sender = (get_ready, None)
    working_sender = (get_ready, Reply("ok", "here"))
    senders = chain([silent_sender], repeat(working_sender))
    monkeypatch.setattr(pools, "Cluster", OneNode)
    monkeypatch.setattr(OneNode, "senders", senders, raising=False)
    monkeypatch.setattr(nodes, "SILENCE_S", 1.0)
    call = call_to(DEAD_ADDRESS)

    reply = with_pool(
        tmp_path,
        [call.target],
        lambda gateway, _: gateway.complete(call),
    )

    printed = capsys.readouterr().err
    assert reply.text == "here"
    assert reply.attempts == 2
    assert "a sender on a-node is gone: it gives no sign of life" in printed


async def test_an_attempt_that_reaches_a_sender_after_it_was_given_up_is_not_made():
    process = nodes.SenderProcess()

    with FaultServer(responding_with(HttpResponse("paid"))) as server:
        await process.start(
            [(1, call_to(server), {})], time.monotonic() - nodes.SILENCE_S
        )
        _, ((number, reply),) = await process.outcomes()

    assert server.book == []
    assert number == 1
    assert reply.failure is not None
    assert reply.failure.kind is Kind.LOST


# the start of Ray, and its absence


def test_without_ray_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr(nodes, "find_spec", lambda _name: None)

    message = "needs Ray; install it with `uv sync --extra ray`"
    with pytest.raises(UsageError, match=message):
        nodes.refuse_without_ray()


@pytest.fixture
def without_ray(tmp_path, monkeypatch):
    """Replace Ray where it need not run; its folders are those of the test."""
    library = SimpleNamespace(
        init=lambda **_: None,
        job_config=SimpleNamespace(JobConfig=lambda **_: None),
        nodes=list,
        shutdown=lambda: None,
    )
    monkeypatch.setattr(nodes, "ray", lambda: library)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def sleep() -> Iterator[Callable[[str], "subprocess.Popen[bytes]"]]:
    """Start processes that sleep, with an argument that can be found."""
    started = []

    def start(argument):
        command = [sys.executable, "-c", "import time; time.sleep(600)", argument]
        started.append(subprocess.Popen(command))
        return started[-1]

    yield start
    for process in started:
        process.kill()


@pytest.mark.usefixtures("without_ray")
def test_the_next_start_ends_the_processes_of_a_killed_driver_and_removes_its_folder(
    tmp_path,
    sleep,
):
    folder = tmp_path / "ray-left"
    folder.mkdir()
    (folder / "token").touch()
    process_of_ray = sleep(f"{folder}/ray/raylet.out")
    other_process = sleep(f"{folder}/notes.txt")
    while len(processes_with(f"{folder}/")) < 2:
        time.sleep(0.01)

    nodes.Cluster(nodes.LOCAL).close()

    assert process_of_ray.wait(60) == -signal.SIGKILL
    assert other_process.poll() is None
    assert list(tmp_path.glob("ray-*")) == []


@pytest.mark.usefixtures("without_ray")
def test_the_next_start_spares_the_folder_of_a_running_driver(tmp_path):
    cluster = nodes.Cluster(nodes.LOCAL)
    [folder] = tmp_path.glob("ray-*")

    nodes.Cluster(nodes.LOCAL).close()

    assert list(tmp_path.glob("ray-*")) == [folder]
    assert mode_of(folder) == 0o700
    assert (folder / "token").is_file()
    cluster.close()
    assert list(tmp_path.glob("ray-*")) == []


@pytest.mark.usefixtures("without_ray")
@pytest.mark.parametrize(
    ("address", "reason", "n_notices"),
    [
        (nodes.LOCAL, "has ended; run again", 0),
        ("auto", "has had no node with a core for 0.5 s", 1),
    ],
)
async def test_a_run_without_nodes_ends_at_once_or_after_it_said_that_it_waits(
    address,
    reason,
    n_notices,
    monkeypatch,
    capsys,
):
    monkeypatch.setattr(pools, "WITHOUT_NODES_S", 0.5)
    monkeypatch.setattr(pools, "LOOK_AT_NODES_EVERY_S", 0.2)
    pool = SenderPool(address, 1, [call_to(DEAD_ADDRESS).target])

    with pytest.raises(NoSender, match=one_line(reason)):
        await pool.ready()
    await pool.close()

    notice = "no node with a core; calls wait up to 0.5 s for one"
    assert capsys.readouterr().err.count(notice) == n_notices


@pytest.mark.parametrize("address", ["auto", "ray://127.0.0.1:{port}"])
def test_a_cluster_that_does_not_listen_is_refused_in_one_line(address, monkeypatch):
    monkeypatch.setattr(nodes, "ray", pytest.fail)
    with socket.socket() as unused_socket:  # bound, but it does not listen
        unused_socket.bind(("127.0.0.1", 0))
        port = unused_socket.getsockname()[1]
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
        reason = rf"\A.*Ray is not there: .*127\.0\.0\.1:{port}: .*refused.*\Z"

        with pytest.raises(UsageError, match=reason):
            nodes.Cluster(address.format(port=port))
