"""Ray, imported and connected to when it is needed: nodes, and processes on them."""

import fcntl
import logging
import os
import secrets
import shutil
import signal
import socket
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import Any
from urllib.parse import urlsplit

from tasks.rules.errors import PipelineError, UsageError, install_extra

LOCAL = "local"
_AUTO = "auto"
_CLIENT_PORT = 10001
"""Of `ray://HOST`, where Ray takes it for granted."""
_ANSWER_WITHIN_S = 10.0
_N_TRIES = "3"
"""To connect where something listens: a token that is refused is refused each time, with a line of Ray's own."""
_HINT = "; is the token of RAY_AUTH_TOKEN_PATH the cluster's, and RAY_AUTH_MODE set?"
_LOCAL_STORE_BYTES = 128 << 20
"""For messages above 100 kB; Ray would take a third of the memory."""
_SETTINGS = {
    # Ray would start each process through `uv run`, and upload the folder it is called in.
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    # Each process would warn about what a later Ray will do with accelerators.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}

_START_S = 180
"""How long the parts of a local Ray may take to start; Ray's own 30 s are too few on a busy machine."""
_LOCAL_SETTINGS = {
    # With it, and with the address below, every port is bound to the loopback interface.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_raylet_start_wait_time_s": str(_START_S),
    "RAY_gcs_server_port_wait_time_s": str(_START_S),
    "RAY_AUTH_TOKEN_PATH": None,
    "RAY_AUTH_MODE": None,  # without it Ray turns authentication on, whatever was read before
}
_LOOPBACK = "127.0.0.1"
_PREFIX, _TOKEN = "ray-", "token"


@dataclass(frozen=True)
class Node:
    """A machine of the cluster: Ray's id of it, its name, and how many processor cores it offers."""

    node_id: str
    name: str
    n_cores: int


def refuse_without_ray() -> None:
    """Refuse what needs Ray where it is not installed.

    Raises:
        UsageError: it is not.
    """
    if find_spec("ray") is None:
        raise UsageError(f"`calls.where: ray` needs Ray; install it with {install_extra('ray')}")


@cache
def ray() -> Any:
    """The module `ray`; its import takes a second."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    import ray as library

    logging.getLogger("ray").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module=r"ray\.")
    return library


class Cluster:
    """A connection to Ray: to a cluster, or to one of this machine's cores that ends with it."""

    def __init__(self, address: str, n_cores: int | None = None) -> None:
        """Connect; one of this machine is to have so many cores (None: those that there are).

        Raises:
            UsageError: there is no such cluster, or it runs other versions.
            PipelineError: Ray does not start on this machine.
        """
        _refuse_where_nothing_listens(address)
        if address != LOCAL:
            os.environ.setdefault("RAY_gcs_server_port_wait_time_s", _N_TRIES)
        self._local = _LocalFolder() if address == LOCAL else None
        options = self._local.options(n_cores) if self._local else {"address": address}
        try:
            ray().init(**options, log_to_driver=False, logging_level="ERROR", configure_logging=False)
        except Exception as error:
            self.close()
            cause = f"{type(error).__name__}: {' '.join(str(error).split())}"
            if address == LOCAL:
                what_to_do = "run again when the machine is less busy, or without `calls.where: ray`"
                raise PipelineError(f"Ray did not start on this machine ({cause}); {what_to_do}") from error
            raise UsageError(f"calls.address: {address}: Ray is not there ({cause}){_HINT}") from error

    def nodes(self) -> list[Node]:
        """The nodes that are alive and have cores to offer."""
        return [
            Node(node["NodeID"], _name(node), int(node["Resources"]["CPU"]))
            for node in ray().nodes()
            if node["Alive"] and node["Resources"].get("CPU", 0) >= 1
        ]

    def started(self, process: type, node: Node) -> Any:
        """A process on a node, which Ray neither starts again nor asks again by itself."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        placed = NodeAffinitySchedulingStrategy(node.node_id, soft=False)
        options = {"num_cpus": 1, "max_restarts": 0, "max_task_retries": 0, "scheduling_strategy": placed}
        return ray().remote(**options)(process).remote()

    def end(self, started: Any) -> None:
        """End a process at once, if it is still there."""
        with suppress(Exception):
            ray().kill(started, no_restart=True)

    def close(self) -> None:
        """End all processes that were started here, and the connection."""
        ray().shutdown()
        if self._local is not None:
            self._local.remove()


class _LocalFolder:
    """The folder of a Ray on this machine, only for this user; Ray lets everybody write to what it makes below.

    Its token is locked while its driver lives. What a killed one left is cleared when the next one starts.
    """

    def __init__(self) -> None:
        _clear_abandoned()
        self._environment = {name: os.environ.get(name) for name in _LOCAL_SETTINGS}
        self._folder = Path(mkdtemp(prefix=_PREFIX))
        file = self._folder / "new"
        file.touch(0o600)
        file.write_text(_token(), encoding="ascii")
        self._lock = file.open()
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        file.rename(self._folder / _TOKEN)

    def options(self, n_cores: int | None) -> Mapping[str, Any]:
        """What Ray is started with."""
        # Ray's own token would stay in the home folder, where everybody may read it.
        _set({**_LOCAL_SETTINGS, "RAY_AUTH_TOKEN_PATH": str(self._folder / _TOKEN)})
        return {
            "num_cpus": n_cores, "include_dashboard": False, "object_store_memory": _LOCAL_STORE_BYTES,
            "_temp_dir": str(self._folder / "s"), "_node_ip_address": _LOOPBACK,
        }  # fmt: skip

    def remove(self) -> None:
        """Remove it, and set the environment as it was."""
        _set(self._environment)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._lock.close()


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def _clear_abandoned() -> None:
    """End the processes of local Rays of this user whose driver is gone, and remove their folders."""
    for token in Path(gettempdir()).glob(f"{_PREFIX}*/{_TOKEN}"):
        with suppress(OSError), token.open() as file:
            if token.parent.lstat().st_uid == os.getuid():
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while the driver lives
                for process in Path("/proc").glob("[0-9]*"):
                    with suppress(OSError):
                        command = (process / "cmdline").read_text(errors="replace")
                        if f"{token.parent}/" in command and "/ray/" in command:
                            os.kill(int(process.name), signal.SIGKILL)
                shutil.rmtree(token.parent)


def _refuse_where_nothing_listens(address: str) -> None:
    """Ray itself would try for a quarter of an hour, and write 60 lines meanwhile."""
    named = os.environ.get("RAY_ADDRESS", "") if address == _AUTO else address
    try:
        place = urlsplit(named if "://" in named else f"//{named}")
        port = place.port or (_CLIENT_PORT if place.scheme else None)
        if port is not None:  # otherwise Ray starts here, or looks for a cluster of this machine
            socket.create_connection((place.hostname or "", port), _ANSWER_WITHIN_S).close()
    except (OSError, ValueError) as error:
        raise UsageError(f"calls.address: {address}: Ray is not there: {named}: {error}") from error


def _name(node: Mapping[str, Any]) -> str:
    """The name that a node was started with (Ray's default is its address), or its host's with the address."""
    name, address = node["NodeName"], node["NodeManagerAddress"]
    return str(name) if name not in {"", address} else f"{node['NodeManagerHostname']} ({address})"


@cache
def _token() -> str:
    """The secret of the clusters that this process starts: Ray reads it once."""
    return secrets.token_hex(32)
