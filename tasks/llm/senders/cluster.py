"""Ray, imported and connected to when it is needed: nodes, and the processes on them that make
attempts.
"""

import asyncio
import fcntl
import hashlib
import logging
import os
import platform
import secrets
import shutil
import signal
import socket
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tasks.llm.calls.sending import send
from tasks.llm.failures import failure_of
from tasks.llm.litellm_setup import collect_seldom, warm_up
from tasks.llm.providers import missing_variables
from tasks.llm.redaction import guard_logs
from tasks.llm.replies import PROVIDER_ERROR, Failure, Kind, Reply
from tasks.llm.request import Call, Parameters, Target
from tasks.rules.errors import PipelineError, UsageError, install_extra

LOCAL = "local"
START_S = 900
"""Time limit for the start of a local Ray, and of a sender, whose imports take minutes on a busy
machine.
"""
_PREFIX = "ray-"
_TOKEN = "token"
_SECRET = secrets.token_hex(32)
"""The token of the clusters that this process starts: Ray reads it once."""


class Node(NamedTuple):
    """A machine of the cluster: Ray's id, its name, and its number of processor cores."""

    node_id: str
    name: str
    n_cores: int


def refuse_without_ray() -> None:
    """Refuse to use Ray if it is not installed.

    Raises:
        UsageError: Ray is not installed.
    """
    if find_spec("ray") is None:
        raise UsageError(f"`calls.where: ray` needs Ray; install it with {install_extra('ray')}")


@cache
def ray() -> Any:
    """Return the module `ray`; its import takes a second."""
    # By default Ray starts each process through `uv run` and uploads the current folder, it sends
    # statistics of usage, and each process warns about a future change of Ray.
    for name in (
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV",
        "RAY_USAGE_STATS_ENABLED",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO",
    ):
        os.environ.setdefault(name, "0")
    import ray as library

    logging.getLogger("ray").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module=r"ray\.")
    return library


class Cluster:
    """A connection to Ray: to a cluster, or to a local Ray on this machine's cores.

    A local Ray ends with its connection.
    """

    def __init__(self, address: str, n_senders: int | None = None) -> None:
        """Connect; a local Ray gets a core for each of `n_senders` (None: all cores).

        Raises:
            UsageError: there is no such cluster, or it runs other versions.
            PipelineError: Ray does not start on this machine.
        """
        _refuse_where_nothing_listens(address)
        self._local_ray_stack = ExitStack()
        options: Mapping[str, Any] = {"address": address}
        if address == LOCAL:
            options = self._local_ray_stack.enter_context(_local_ray(n_senders))
        else:
            # To Ray this is the number of attempts to connect, and it prints a line for each
            # refused token. Something listens there, so few attempts are enough.
            os.environ.setdefault("RAY_gcs_server_port_wait_time_s", "3")
        try:
            ray().init(
                **options,
                log_to_driver=False,
                logging_level="ERROR",
                configure_logging=False,
                # A job of a remote client; in any other, Ray puts the current folder of this
                # process first where its processes look for modules.
                job_config=ray().job_config.JobConfig(_client_job=True),
            )
        except Exception as error:
            self.close()
            cause = f"{type(error).__name__}: {' '.join(str(error).split())}"
            if address == LOCAL:
                raise PipelineError(
                    f"Ray did not start on this machine ({cause}); run again when the machine is"
                    " less busy, or without `calls.where: ray`"
                ) from error
            raise UsageError(
                f"calls.address: {address}: Ray is not there ({cause}); is the token of"
                " RAY_AUTH_TOKEN_PATH the cluster's, and RAY_AUTH_MODE set?"
            ) from error

    def nodes(self) -> list[Node]:
        """Return the nodes that are alive and have cores."""
        nodes = []
        for node in ray().nodes():
            n_cores = int(node["Resources"].get("CPU", 0))
            if node["Alive"] and n_cores >= 1:
                name = f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
                nodes.append(Node(node["NodeID"], name, n_cores))
        return nodes

    def start(self, node: Node) -> Any:
        """Start a sender on a node; Ray neither restarts it nor repeats its calls."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        strategy = NodeAffinitySchedulingStrategy(node.node_id, soft=False)
        actor = ray().remote(
            num_cpus=1,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy=strategy,
        )(SenderProcess)
        return actor.remote()

    def end(self, process: Any) -> None:
        """End a process at once, if it is still running."""
        with suppress(Exception):
            ray().kill(process, no_restart=True)

    def close(self) -> None:
        """End all processes of this connection, and the connection."""
        ray().shutdown()
        self._local_ray_stack.close()


@contextmanager
def _local_ray(n_cores: int | None) -> Iterator[Mapping[str, Any]]:
    """Yield the options of a local Ray, with a folder only for this user, which exists until the
    block ends; after an error in the block, the next start clears it.

    Ray makes its own files in it writable for everybody. Its token is locked while its driver runs.
    The next start clears the folder of a killed driver.
    """
    _clear_abandoned()
    folder = Path(mkdtemp(prefix=_PREFIX))
    # This is its name until it is locked: `_clear_abandoned` of another process removes an unlocked
    # token.
    file = folder / "new"
    file.touch(0o600)
    file.write_text(_SECRET, encoding="ascii")
    with file.open() as lock:
        # A shared lock is enough: `_clear_abandoned` needs an exclusive one.
        fcntl.flock(lock, fcntl.LOCK_SH)
        file.rename(folder / _TOKEN)
        os.environ.pop("RAY_AUTH_MODE", None)  # so that Ray turns authentication on
        # Ray would store its own token in the home folder, readable for everybody. The setting with
        # WINDOWS in its name and the loopback address bind every port to the loopback interface.
        os.environ.update(
            RAY_AUTH_TOKEN_PATH=str(folder / _TOKEN),
            RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0",
            RAY_raylet_start_wait_time_s=str(START_S),
            RAY_gcs_server_port_wait_time_s=str(START_S),
        )
        # By default Ray takes a third of the memory for messages above 100 kB.
        yield {
            "num_cpus": n_cores,
            "include_dashboard": False,
            "object_store_memory": 128 << 20,
            "_temp_dir": str(folder / "s"),
            "_node_ip_address": "127.0.0.1",
        }
        shutil.rmtree(folder, ignore_errors=True)


def _clear_abandoned() -> None:
    """End the processes of local Rays of this user whose driver is gone, and remove their
    folders.
    """
    for token in Path(gettempdir()).glob(f"{_PREFIX}*/{_TOKEN}"):
        folder = token.parent
        with suppress(OSError), token.open() as file:
            if folder.lstat().st_uid == os.getuid():
                # This fails while the driver is running.
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _end_processes_of(folder)
                shutil.rmtree(folder)


def _end_processes_of(folder: Path) -> None:
    """End the processes of the Ray that has its files in a folder."""
    for process_folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process_folder / "cmdline").read_text(errors="replace")
            if f"{folder}/" in command and "/ray/" in command:
                os.kill(int(process_folder.name), signal.SIGKILL)


def _refuse_where_nothing_listens(address: str) -> None:
    """Refuse an address without a server: Ray itself would try for a quarter of an hour, and print
    60 lines.
    """
    server = os.environ.get("RAY_ADDRESS", "") if address == "auto" else address
    try:
        url = urlsplit(server if "://" in server else f"//{server}")
        port = url.port
        if port is None and url.scheme:
            port = 10001  # Ray's default for `ray://HOST`
        # Other addresses start Ray here, or look for a cluster of this machine.
        if port is not None:
            socket.create_connection((url.hostname or "", port), 10.0).close()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"calls.address: {address}: Ray is not there: {server}: {error}"
        ) from error


_CODE = Path(__file__).parents[2]
"""The folder `tasks`."""


@cache
def local_versions() -> Mapping[str, str]:
    """Return the versions of Python and of the libraries of an attempt, and a hash of this
    project's code.
    """
    digest = hashlib.sha256()
    for path in sorted(_CODE.rglob("*.py")):
        digest.update(f"{path.relative_to(_CODE)}\0".encode() + path.read_bytes() + b"\0")
    versions = {"Python": platform.python_version()}
    for name in ("litellm", "openai", "httpx", "aiohttp", "pydantic", "ray"):
        versions[name] = version(name)
    versions["prbench"] = digest.hexdigest()[:12]
    return versions


LIFE_SIGN_EVERY_S = 5.0
SILENCE_S = 6 * LIFE_SIGN_EVERY_S
"""Silence after which the driver gives up on a sender: Ray needs a minute to detect a lost node."""


class Equipment(NamedTuple):
    """A sender's process id, its versions, and for each endpoint the environment variables that its
    calls lack.

    `at_s` is the time of its own clock.
    """

    pid: int
    versions: Mapping[str, str]
    lacking: Mapping[str, Sequence[str]]
    at_s: float

    @property
    def other_versions(self) -> str:
        """The versions that differ here, such as `litellm 1.106.2 there, 1.106.0 here`; empty if
        none differ.
        """
        differences = []
        for name, version_here in sorted(local_versions().items()):
            version_there = self.versions.get(name, "missing")
            if version_here != version_there:
                differences.append(f"{name} {version_there} there, {version_here} here")
        return "; ".join(differences)


Attempt = tuple[int, Call, Parameters]
"""The number of an attempt, its call, and the parameters that are sent with the messages."""


class SenderProcess:
    """The sender in its own process. Its methods are called from the driver, through Ray."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._finished: asyncio.Queue[tuple[int, Reply]] = asyncio.Queue()

    async def get_ready(self, targets: Sequence[Target]) -> Equipment:
        """Import the libraries of attempts, and return the sender's equipment."""
        guard_logs()
        collect_seldom()
        await asyncio.to_thread(warm_up)
        lacking = {}
        for target in targets:
            missing_names = missing_variables(target)
            if missing_names:
                lacking[target.endpoint_name] = missing_names
        return Equipment(os.getpid(), local_versions(), lacking, time.monotonic())

    async def start(self, attempts: Sequence[Attempt], heard_at_s: float) -> None:
        """Begin these attempts.

        `heard_at_s` is when the driver had last heard from this process, by this process's clock.
        If it is too long ago, because this process was stopped or cut off, the driver has given the
        attempts to other senders, so they must not begin here.
        """
        is_too_late = time.monotonic() >= heard_at_s + SILENCE_S
        failure = Failure(PROVIDER_ERROR, Kind.LOST, "the message reached the sender too late")
        for number, call, parameters in attempts:
            if is_too_late:
                self._finished.put_nowait((number, failure.reply))
                continue
            task = asyncio.create_task(self._make(number, call, parameters))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def outcomes(self) -> tuple[float, list[tuple[int, Reply]]]:
        """Wait for finished calls, and return the time by this process's clock and the calls
        finished since last time.

        After some time it returns even if none have finished.
        """
        finished = []
        with suppress(TimeoutError):
            async with asyncio.timeout(LIFE_SIGN_EVERY_S):
                finished.append(await self._finished.get())
        while not self._finished.empty():
            finished.append(self._finished.get_nowait())
        return time.monotonic(), finished

    async def _make(self, number: int, call: Call, parameters: Parameters) -> None:
        try:
            reply = await send(call, parameters)
        except Exception as error:  # noqa: BLE001 - the driver waits for it
            reply = failure_of(error).reply
        self._finished.put_nowait((number, reply))
