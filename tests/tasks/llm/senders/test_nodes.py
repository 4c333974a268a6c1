"""Three Ray nodes: one is killed, one stopped, one cut off, while a run makes its calls on them."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import pytest
import yaml

from tests.faults.behaviours import decision, digest_of, is_judge_request, prompt_of, well_behaved
from tests.faults.kills.starting import configured, tables
from tests.faults.nodes import RayCluster, RayNode, ray_cluster, why_no_network
from tests.faults.server import Entry, FaultServer, HttpResponse, Request
from tests.kit import configure, endpoint

PRBENCH = Path(sys.executable).with_name("prbench")
CALLS_A_MODEL = 106
N_MODELS = int(os.environ.get("PRBENCH_TEST_NODES_MODELS", "10"))
"""With 38 models there are 4,028 calls. The rate grows with the number of models, so faults last
equally long.
"""
RPM = 40 * N_MODELS
AT_ONCE = 16 * N_MODELS // 10
LATENCY_S = 1.0

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]


def naming(request: Request, number: int) -> HttpResponse:
    """Good responses with the digest of their request, which identifies rows of the ledger."""
    digest = digest_of(request)
    if is_judge_request(request):
        return HttpResponse(json.dumps({"explanation": digest, **decision(prompt_of(request))}))
    return replace(well_behaved(request, number), text=f"A response. {digest}")


@dataclass
class World:
    """A cluster, its provider, and a run on it."""

    folder: Path
    server: FaultServer
    cluster: RayCluster
    run: "subprocess.Popen[bytes] | None" = None

    def settings(self, name: str, **more: object) -> tuple[Path, Path]:
        """Make a folder with the settings of a run, and its warehouse."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        warehouse = configured(folder, self.server.api_base)
        settings = yaml.safe_load((folder / "prbench.yaml").read_text(encoding="utf-8"))
        models = [endpoint(f"model-{number}", self.server.api_base) for number in range(N_MODELS)]
        configure(
            folder,
            **{
                **settings,
                "models": models,
                "trials": 1,
                **more,
            },
        )
        return folder, warehouse

    def until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            assert self.run is None or self.run.poll() is None, "the run has ended"
            time.sleep(0.05)

    def until_requests(self, share: float) -> None:
        self.until(lambda: len(self.server.entries) >= share * N_MODELS * CALLS_A_MODEL)

    def is_used(self, node: RayNode) -> bool:
        return any(
            entry.headers["authorization"].endswith(node.key) for entry in self.server.entries[::-1]
        )


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    pytest.importorskip("ray")
    why = why_no_network()
    if why:
        pytest.skip(why)
    with ray_cluster(3) as (address, cluster):
        behaviour = lambda request, number: replace(naming(request, number), delay_s=LATENCY_S)  # noqa: E731
        with FaultServer(behaviour, host=address) as server:
            yield World(tmp_path, server, cluster)


def test_nodes_that_are_killed_stopped_and_cut_off_cost_the_calls_in_flight_alone(
    world: World,
) -> None:
    head, one, two = world.cluster.nodes
    head.start()
    one.start()
    two.start()
    folder, warehouse = world.settings(
        "disturbed", calls={"where": "ray"}, limits={"concurrency": AT_ONCE, "rpm": RPM}
    )
    environment = {**world.cluster.environment(), "RAY_ADDRESS": world.cluster.address}
    with (folder / "log").open("w") as log:
        world.run = subprocess.Popen(
            head.machine.command(PRBENCH, "run", "--warehouse", warehouse, "-q"),
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=log,
        )
    world.until(lambda: world.is_used(one) and world.is_used(two))
    one.machine.kill()
    one.start()
    world.until(lambda: world.is_used(one))
    world.until_requests(0.30)
    two.machine.signal(SIGSTOP)
    world.until_requests(0.60)
    two.machine.signal(SIGCONT)
    world.until_requests(0.65)
    one.machine.plug(is_in=False)
    world.until_requests(0.92)
    one.machine.plug(is_in=True)
    assert world.run.wait(300) == 0, (folder / "log").read_text()

    entries = list(world.server.entries)
    with closing(sqlite3.connect(warehouse / "ledger" / "calls.sqlite")) as ledger:
        attempts = Counter(dict(ledger.execute("select call_key, count(*) from calls group by 1")))
        decided = ledger.execute(
            "select call_key, text, finished_at_s from calls where is_final"
        ).fetchall()
    by_digest: dict[str, list[Entry]] = {}
    for entry in entries:
        by_digest.setdefault(entry.digest, []).append(entry)
    assert (
        len(decided)
        == len({key for key, _, _ in decided})
        == len(by_digest)
        == N_MODELS * CALLS_A_MODEL
    )
    since_epoch_s = time.time() - time.monotonic()
    for key, text, finished_at_s in decided:
        digest = json.loads(text)["explanation"] if text.startswith("{") else text.split()[-1]
        requests = by_digest[digest]
        assert len(requests) <= attempts[key], "more requests than the ledger has attempts"
        assert max(each.arrived_at_s for each in requests) + since_epoch_s <= finished_at_s, (
            "repeated after a reply"
        )
    arrivals = [entry.arrived_at_s for entry in entries]
    most_in_a_minute = max(sum(start <= at < start + 60 for at in arrivals) for start in arrivals)
    assert most_in_a_minute <= 1.01 * RPM  # they arrive some milliseconds after they are admitted
    assert (
        world.server.most_in_hand <= 2 * AT_ONCE
    )  # a lost sender's calls are in hand until it ends

    written = [
        path for path in world.cluster.folder.rglob("*") if path.is_file() and not path.is_symlink()
    ]
    keys = [key.encode() for node in world.cluster.nodes for key in node.keys]
    assert any(path.suffix == ".log" for path in written)
    assert [path for path in written if any(key in path.read_bytes() for key in keys)] == []

    world.server.behaviour = naming
    folder, undisturbed = world.settings("undisturbed")
    command = [PRBENCH, "run", "--warehouse", undisturbed, "-q"]
    assert subprocess.run(command, cwd=folder, check=False).returncode == 0
    assert tables(undisturbed) == tables(warehouse)
