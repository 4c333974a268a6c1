"""What a cluster could do for a run: its nodes, and whether a sender on each would have what calls need."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.llm.request import Target
from tasks.llm.senders.cluster import Cluster, Node, refuse_without_ray
from tasks.llm.senders.pool import START_S, cause_of
from tasks.llm.senders.process import Equipment, SenderProcess
from tasks.llm.senders.versions import differing, versions


@dataclass(frozen=True)
class NodeState:
    """A node, and what keeps senders on it from making calls; empty: nothing."""

    node: Node
    problem: str


def inspect(address: str, n_senders: int | None, targets: Sequence[Target]) -> list[NodeState]:
    """Start a sender on each node, and look at what it has.

    Raises:
        UsageError: Ray is not installed, or not there.
    """
    refuse_without_ray()
    cluster = Cluster(address, n_senders)
    try:
        return asyncio.run(_inspected(cluster, targets))
    finally:
        cluster.close()


async def _inspected(cluster: Cluster, targets: Sequence[Target]) -> list[NodeState]:
    nodes = cluster.nodes()
    problems = await asyncio.gather(*(_problem(cluster, node, targets) for node in nodes))
    return [NodeState(node, problem) for node, problem in zip(nodes, problems, strict=True)]


async def _problem(cluster: Cluster, node: Node, targets: Sequence[Target]) -> str:
    process = cluster.started(SenderProcess, node)
    try:
        async with asyncio.timeout(START_S):
            equipment: Equipment = await process.get_ready.remote(targets)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is wrong with the node
        return cause_of(error, has_started=False)
    finally:
        cluster.end(process)
    if others := differing(versions(), equipment.versions):
        return f"other versions: {'; '.join(others)}"
    return "; ".join(f"{name}: {', '.join(lacking)} not set" for name, lacking in sorted(equipment.lacking.items()))
