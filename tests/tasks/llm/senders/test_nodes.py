"""Three Ray nodes: one is killed, one stopped, one cut off, while a run makes its calls on them."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from typing import NamedTuple

import pytest
import yaml

from tests.faults.behaviours import (
    decision,
    digest_of,
    is_judge_request,
    prompt_of,
    well_behaved,
)
from tests.faults.kills.starting import configured, tables
from tests.faults.nodes import RayCluster, RayNode, ray_cluster, why_no_network
from tests.faults.server import FaultServer, HttpResponse
from tests.kit import configure, endpoint

PRBENCH = Path(sys.executable).with_name("prbench")
CALLS_A_MODEL = 106
N_MODELS = int(os.environ.get("PRBENCH_TEST_NODES_MODELS", "10"))
"""With 38 models there are 4,028 calls. The rate grows with the number of models, so faults last
equally long.
"""
N_CALLS = N_MODELS * CALLS_A_MODEL
RPM = 40 * N_MODELS
CONCURRENCY = 16 * N_MODELS // 10
LATENCY_S = 1.0

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]


def identified(request, number: int) -> HttpResponse:
    """Good responses with the digest of their request, which identifies rows of the ledger."""
    digest = digest_of(request)
    if is_judge_request(request):
        content = {"explanation": digest, **decision(prompt_of(request))}
        return HttpResponse(json.dumps(content))
    return replace(well_behaved(request, number), text=f"A response. {digest}")


def slow(request, number: int) -> HttpResponse:
    return replace(identified(request, number), delay_s=LATENCY_S)


@dataclass
class World:
    """A cluster, its provider, and a run on it."""

    folder: Path
    server: FaultServer
    cluster: RayCluster
    run: "subprocess.Popen[bytes] | None" = None

    def settings(self, name: str, **settings: object) -> tuple[Path, Path]:
        """Make a folder with the settings of a run, and its warehouse."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        warehouse = configured(folder, self.server.api_base)
        usual_settings = yaml.safe_load(
            (folder / "prbench.yaml").read_text(encoding="utf-8")
        )
        models = [
            endpoint(f"model-{number}", self.server.api_base)
            for number in range(N_MODELS)
        ]
        configure(
            folder, **usual_settings | {"models": models, "trials": 1} | settings
        )
        return folder, warehouse

    def begin_run(self) -> Path:
        """Begin a run on the cluster, and return its warehouse."""
        folder, warehouse = self.settings(
            "disturbed",
            calls={"where": "ray"},
            limits={"concurrency": CONCURRENCY, "rpm": RPM},
        )
        environment = {
            **self.cluster.environment(),
            "RAY_ADDRESS": self.cluster.address,
        }
        head, *_ = self.cluster.nodes
        with (folder / "log").open("w") as log:
            self.run = subprocess.Popen(
                head.machine.command(PRBENCH, "run", "--warehouse", warehouse, "-q"),
                cwd=folder,
                env=environment,
                stdout=log,
                stderr=log,
            )
        return warehouse

    def until(self, is_so: Callable[[], bool]):
        while not is_so():
            assert self.run is None or self.run.poll() is None, "the run has ended"
            time.sleep(0.05)

    def until_requests(self, share: float):
        self.until(lambda: len(self.server.entries) >= share * N_CALLS)

    def is_used(self, node: RayNode) -> bool:
        return any(
            entry.headers["authorization"].endswith(node.key)
            for entry in self.server.entries
        )


@pytest.fixture
def world(tmp_path) -> Iterator[World]:
    pytest.importorskip("ray")
    missing_part = why_no_network()
    if missing_part:
        pytest.skip(missing_part)
    with (
        ray_cluster(3) as (address, cluster),
        FaultServer(slow, host=address) as server,
    ):
        yield World(tmp_path, server, cluster)


def disturb(world: World) -> Path:
    """Kill, stop and cut off nodes during a run, wait for its end, and return its warehouse."""
    _, first_node, second_node = world.cluster.nodes
    for node in world.cluster.nodes:
        node.start()
    warehouse = world.begin_run()
    world.until(lambda: world.is_used(first_node) and world.is_used(second_node))
    first_node.machine.kill()
    first_node.start()
    world.until(lambda: world.is_used(first_node))
    world.until_requests(0.30)
    second_node.machine.signal(SIGSTOP)
    world.until_requests(0.60)
    second_node.machine.signal(SIGCONT)
    world.until_requests(0.65)
    first_node.machine.plug(is_in=False)
    world.until_requests(0.92)
    first_node.machine.plug(is_in=True)
    assert world.run is not None
    assert world.run.wait(300) == 0, (warehouse.parent / "log").read_text()
    return warehouse


class StoredCall(NamedTuple):
    """A call of the ledger that has its final reply."""

    key: str
    n_attempts: int
    text: str
    finished_at_s: float

    @property
    def digest(self) -> str:
        """The digest of the request, which the reply repeats."""
        if self.text.startswith("{"):
            return str(json.loads(self.text)["explanation"])
        return self.text.split()[-1]


def stored_calls(warehouse: Path) -> list[StoredCall]:
    query = """
        select call_key, n_attempts, text, finished_at_s from calls
        inner join (select call_key, count(*) as n_attempts from calls group by 1) using (call_key)
        where is_final
    """
    with closing(sqlite3.connect(warehouse / "ledger" / "calls.sqlite")) as ledger:
        return [StoredCall(*row) for row in ledger.execute(query)]


def most_in_a_minute(times_s: list[float]) -> int:
    """The most of these moments, in order, that are less than a minute after one of them."""
    return max(
        bisect_left(times_s, first_s + 60) - index
        for index, first_s in enumerate(times_s)
    )


def files_with_keys(cluster: RayCluster) -> list[Path]:
    """The files that Ray has written, in which a key of a node stands."""
    keys = [key.encode() for node in cluster.nodes for key in node.keys]
    files = [
        path
        for path in cluster.folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    ]
    assert any(path.suffix == ".log" for path in files)
    files_with_key = []
    for path in files:
        content = path.read_bytes()
        if any(key in content for key in keys):
            files_with_key.append(path)
    return files_with_key


def test_nodes_that_are_killed_stopped_and_cut_off_cost_the_calls_in_flight_alone(
    world,
):
    warehouse = disturb(world)

    entries = list(world.server.entries)
    calls = stored_calls(warehouse)
    assert len(calls) == N_CALLS
    assert len({call.key for call in calls}) == N_CALLS
    assert {call.digest for call in calls} == {entry.digest for entry in entries}
    since_epoch_s = time.time() - time.monotonic()
    arrivals_s = defaultdict(list)
    for entry in entries:
        arrivals_s[entry.digest].append(entry.arrived_at_s + since_epoch_s)
    for call in calls:
        requests_s = arrivals_s[call.digest]
        assert len(requests_s) <= call.n_attempts, "a request without an attempt"
        assert max(requests_s) <= call.finished_at_s, "repeated after a reply"
    times_s = sorted(entry.arrived_at_s for entry in entries)
    # Requests arrive some milliseconds after they are admitted.
    assert most_in_a_minute(times_s) <= 1.01 * RPM
    # A lost sender's calls are in hand until it ends.
    assert world.server.most_in_hand <= 2 * CONCURRENCY
    assert files_with_keys(world.cluster) == []

    world.server.behaviour = identified
    folder, undisturbed_warehouse = world.settings("undisturbed")
    command = [PRBENCH, "run", "--warehouse", undisturbed_warehouse, "-q"]
    subprocess.run(command, cwd=folder, check=True)
    assert tables(undisturbed_warehouse) == tables(warehouse)
