"""Machines of a made-up network: network namespaces on one bridge, each with an address of its own."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_TICK_S = 0.05
_GONE_WITHIN_S = 30.0


def why_no_network() -> str:
    """Why there can be none here; empty: there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "network namespaces need the command `ip` (iproute2)"
    tried = subprocess.run(["ip", "netns", "add", _name("try")], capture_output=True, text=True, check=False)
    if tried.returncode == 0:
        _ip("netns", "delete", _name("try"))
    return tried.stderr.strip()


class Machine:
    """A namespace: what runs in it sees the network from its address alone."""

    def __init__(self, bridge: str, number: int, network: str) -> None:
        self.name, self.address = _name(number), f"{network}.{number}"
        self._cable = f"v{self.name}"
        _ip("netns", "add", self.name)
        _ip("link", "add", self._cable, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        _ip("link", "set", self._cable, "master", bridge, "up")
        _ip("-n", self.name, "address", "add", f"{self.address}/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            _ip("-n", self.name, "link", "set", device, "up")

    def command(self, *words: str | Path) -> Sequence[str | Path]:
        """A command as it is run in this machine."""
        return ("ip", "netns", "exec", self.name, *words)

    def processes(self) -> list[int]:
        """All that runs in it."""
        return [int(pid) for pid in _ip("netns", "pids", self.name).split()]

    def signal(self, number: signal.Signals) -> None:
        """Send all that runs in it a signal."""
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """End all that runs in it at once, as a power cut does."""
        until_s = time.monotonic() + _GONE_WITHIN_S
        while self.processes():
            self.signal(signal.SIGKILL)
            assert time.monotonic() < until_s, f"it still runs: {self.processes()}"
            time.sleep(_TICK_S)

    def plug(self, *, is_in: bool) -> None:
        """Plug its cable in, or pull it."""
        _ip("link", "set", self._cable, "up" if is_in else "down")

    def close(self) -> None:
        """End what runs in it, and take it away."""
        self.kill()
        _ip("netns", "delete", self.name)


@contextmanager
def network(n_machines: int) -> Iterator[tuple[str, list[Machine]]]:
    """So many machines, and the address of this one, which all of them reach; they go with all that runs in them."""
    bridge, prefix = _name("br"), f"10.77.{os.getpid() % 250}"
    machines: list[Machine] = []
    _ip("link", "add", bridge, "type", "bridge")
    try:
        _ip("address", "add", f"{prefix}.254/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for number in range(1, n_machines + 1):
            machines.append(Machine(bridge, number, prefix))
        yield f"{prefix}.254", machines
    finally:
        for machine in machines:
            machine.close()
        _ip("link", "delete", bridge)


def _name(what: str | int) -> str:
    return f"pr{os.getpid()}-{what}"  # the name of a cable has 15 characters at most


def _ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout
