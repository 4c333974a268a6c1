"""A cluster of Ray on the machines of a made-up network: a head, and workers that join it."""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.faults.nodes.network import Machine, network

PROJECT = Path(__file__).parents[3]
_RAY = Path(sys.executable).with_name("ray")
_PORT = 6379
KEY = "HOSTED_VLLM_API_KEY"


class RayNode:
    """A node: its machine, and what Ray writes there. Every start of it has a key of its own, which tells its calls."""

    def __init__(self, cluster: "RayCluster", number: int, machine: Machine) -> None:
        self.machine, self.name = machine, f"node{number}"
        self.folder = cluster.folder / str(number)
        self.keys: list[str] = []
        self._cluster, self._is_head = cluster, number == 1

    @property
    def key(self) -> str:
        """The key of its latest start."""
        return self.keys[-1]

    def start(self, *, python_path: Path = PROJECT, has_dashboard: bool = False) -> subprocess.Popen[bytes]:
        """Start Ray there, as `ray start --block`; it is the caller's matter when it is ready."""
        self.keys.append(f"sk-planted-{self.name}-{len(self.keys)}-{secrets.token_hex(8)}")
        environment = {**self._cluster.environment(python_path), KEY: self.key}
        role = (
            ("--head", f"--port={_PORT}", f"--include-dashboard={has_dashboard}")
            if self._is_head
            else (f"--address={self._cluster.address}",)
        )
        command = self.machine.command(
            _RAY, "start", *role, f"--node-ip-address={self.machine.address}", f"--node-name={self.name}",
            f"--temp-dir={self.folder}", "--num-cpus=1", f"--object-store-memory={80 << 20}", "--block",
        )  # fmt: skip
        with (self._cluster.folder / f"{self.name}.log").open("ab") as log:
            return subprocess.Popen(command, env=environment, cwd="/", stdout=log, stderr=log, start_new_session=True)


class RayCluster:
    """A head and workers, with a token of their own. The addresses: `address` for nodes, `client_address` from afar."""

    def __init__(self, folder: Path, machines: list[Machine]) -> None:
        self.folder = folder
        self.token_file = folder / "token"
        self.token_file.touch(0o600)
        self.token_file.write_text(secrets.token_hex(32), encoding="ascii")
        self.nodes = [RayNode(self, number, machine) for number, machine in enumerate(machines, start=1)]
        self.address = f"{machines[0].address}:{_PORT}"
        self.client_address = f"ray://{machines[0].address}:10001"

    def environment(self, python_path: Path = PROJECT) -> Mapping[str, str]:
        """The environment of whatever belongs to the cluster: the token's file, and no key."""
        kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        return {
            **kept, "RAY_AUTH_TOKEN_PATH": str(self.token_file), "RAY_AUTH_MODE": "token",
            "RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "PYTHONPATH": str(python_path),
        }  # fmt: skip


@contextmanager
def ray_cluster(n_nodes: int) -> Iterator[tuple[str, RayCluster]]:
    """The machines of a cluster, on which Ray is not started yet, and the address of this one for servers."""
    folder = Path(tempfile.mkdtemp(prefix="rn-", dir="/tmp"))  # the path of a socket has 107 characters at most
    try:
        with network(n_nodes) as (address, machines):
            yield address, RayCluster(folder, machines)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
