"""A Ray cluster on the machines of a simulated network: namespaces on one bridge, each with an
address of its own.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.kit import ROOT, until


def why_no_network() -> str:
    """Return why no network can be made here; empty if it can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "network namespaces need the command `ip` (iproute2)"
    tried = subprocess.run(
        ["ip", "netns", "add", _name("try")],
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode == 0:
        _ip(f"netns delete {_name('try')}")
    return tried.stderr.strip()


class Machine:
    """A network namespace: its processes see the network from its address only."""

    def __init__(self, bridge: str, number: int, network: str):
        self.name = _name(number)
        self.address = f"{network}.{number}"
        self._cable = f"v{self.name}"
        _ip(f"netns add {self.name}")
        _ip(f"link add {self._cable} type veth peer name eth0 netns {self.name}")
        _ip(f"link set {self._cable} master {bridge} up")
        _ip(f"-n {self.name} address add {self.address}/24 dev eth0")
        for device in ("eth0", "lo"):
            _ip(f"-n {self.name} link set {device} up")

    def command(self, *words: str | Path) -> Sequence[str | Path]:
        """The command line that runs a command on this machine."""
        return ("ip", "netns", "exec", self.name, *words)

    def processes(self) -> list[int]:
        """The processes on this machine."""
        return [int(pid) for pid in _ip(f"netns pids {self.name}").split()]

    def signal(self, number: signal.Signals):
        """Send a signal to all its processes."""
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self):
        """Kill all its processes at once, as a power cut does."""
        until(
            lambda: self.signal(signal.SIGKILL) or not self.processes(), within_s=30
        )

    def plug(self, *, is_in: bool):
        """Connect or disconnect its cable."""
        state = "up" if is_in else "down"
        _ip(f"link set {self._cable} {state}")

    def close(self):
        """Kill its processes and delete it."""
        self.kill()
        _ip(f"netns delete {self.name}")


@contextmanager
def network(n_machines: int) -> Iterator[tuple[str, list[Machine]]]:
    """Some machines, and this one's address, which all of them reach; they and their processes end
    with the block.
    """
    bridge = _name("br")
    prefix = f"10.77.{os.getpid() % 250}"
    machines = []
    _ip(f"link add {bridge} type bridge")
    try:
        _ip(f"address add {prefix}.254/24 dev {bridge}")
        _ip(f"link set {bridge} up")
        for number in range(1, n_machines + 1):
            machines.append(Machine(bridge, number, prefix))
        yield f"{prefix}.254", machines
    finally:
        for machine in machines:
            machine.close()
        _ip(f"link delete {bridge}")


def _name(suffix: str | int) -> str:
    return (
        f"pr{os.getpid()}-{suffix}"  # the name of a cable has 15 characters at most
    )


def _ip(arguments: str) -> str:
    """Run the command `ip`, and return what it prints."""
    return subprocess.check_output(["ip", *arguments.split()], text=True)


_RAY = Path(sys.executable).with_name("ray")
_PORT = 6379
KEY = "HOSTED_VLLM_API_KEY"


class RayNode:
    """A node: its machine, and what Ray writes there.

    Every start has a key of its own, which identifies its calls.
    """

    def __init__(self, cluster: "RayCluster", number: int, machine: Machine):
        self.machine = machine
        self.name = f"node{number}"
        self.folder = cluster.folder / str(number)
        self.keys: list[str] = []
        self._cluster = cluster
        self._is_head = number == 1

    @property
    def key(self) -> str:
        """The key of its latest start."""
        return self.keys[-1]

    def start(self) -> subprocess.Popen[bytes]:
        """Start Ray there, as `ray start --block`, without waiting until it is ready."""
        self.keys.append(
            f"sk-planted-{self.name}-{len(self.keys)}-{secrets.token_hex(8)}"
        )
        environment = {**self._cluster.environment(), KEY: self.key}
        options = [f"--address={self._cluster.address}"]
        if self._is_head:
            options = ["--head", f"--port={_PORT}", "--include-dashboard=False"]
        command = self.machine.command(
            _RAY,
            "start",
            *options,
            f"--node-ip-address={self.machine.address}",
            f"--node-name={self.name}",
            f"--temp-dir={self.folder}",
            "--num-cpus=1",
            f"--object-store-memory={80 << 20}",
            "--block",
        )
        with (self._cluster.folder / f"{self.name}.log").open("ab") as log:
            return subprocess.Popen(
                command,
                env=environment,
                cwd="/",
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


class RayCluster:
    """A head node and workers, with a token of their own."""

    def __init__(self, folder: Path, machines: list[Machine]):
        self.folder = folder
        self.token_file = folder / "token"
        self.token_file.touch(0o600)
        self.token_file.write_text(secrets.token_hex(32), encoding="ascii")
        self.nodes = [
            RayNode(self, number, machine)
            for number, machine in enumerate(machines, start=1)
        ]
        self.address = f"{machines[0].address}:{_PORT}"

    def environment(self) -> Mapping[str, str]:
        """The environment of the cluster's processes: with the token's file, without a key."""
        without_keys = {
            name: value
            for name, value in os.environ.items()
            if not name.endswith("_API_KEY")
        }
        return {
            **without_keys,
            "RAY_AUTH_TOKEN_PATH": str(self.token_file),
            "RAY_AUTH_MODE": "token",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
            "PYTHONPATH": str(ROOT),
        }


@contextmanager
def ray_cluster(n_nodes: int) -> Iterator[tuple[str, RayCluster]]:
    """The machines of a cluster, before Ray is started, and the address of this machine for
    servers.
    """
    # The path of a socket has 107 characters at most.
    folder = Path(tempfile.mkdtemp(prefix="rn-", dir="/tmp"))
    try:
        with network(n_nodes) as (address, machines):
            yield address, RayCluster(folder, machines)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
