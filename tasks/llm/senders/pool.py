"""All senders of a run: started on the nodes that are there, replaced when they die, given attempts in turn."""

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any

from click import unstyle

from tasks.console import notice
from tasks.llm.live.sending import NoSender, send
from tasks.llm.redaction import safe
from tasks.llm.request import Call, Target
from tasks.llm.senders.cluster import LOCAL, Cluster, Node
from tasks.llm.senders.process import Equipment, SenderProcess
from tasks.llm.senders.remote import Made, RemoteSender, SenderState
from tasks.llm.senders.versions import differing, versions

_LOOK_AT_NODES_EVERY_S = 10.0
START_S = 180.0
"""How long a sender may take to start: it imports LiteLLM, which takes a busy node a minute."""
_WITHOUT_NODES_S = 120.0
_MOST_DEATHS = 5
"""After so many on a node, without any reply in between, no more are started there."""


class SenderPool:
    """Makes attempts on senders; it connects to Ray at the first one."""

    def __init__(self, address: str, n_senders: int | None, targets: Sequence[Target]) -> None:
        """Arguments: where Ray is, how many senders (None: one a core), and all models that may be called."""
        self._address, self._n_senders, self._targets = address, n_senders, targets
        self._cluster: Cluster | None = None
        self._opening: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._n_on: Counter[str] = Counter()
        self._refused: dict[str, str] = {}
        self._changed, self._is_short = asyncio.Event(), asyncio.Event()
        self._deaths_on: Counter[str] = Counter()
        self._error: NoSender | None = None
        self.senders: list[RemoteSender] = []

    async def __call__(self, call: Call, parameters: Mapping[str, Any]) -> Made:
        """Make one attempt on the sender that has the least in hand; the embedded model is called here.

        Raises:
            NoSender: there are no senders, and there will be none.
        """
        if call.target.is_embedded:
            return await send(call, parameters)
        await self._connect()
        sender = await self._free_for(call.target)
        return await sender.make(call, parameters)

    def start(self) -> None:
        """Begin to connect to Ray and to start senders, without waiting for it."""
        if self._opening is None and not all(target.is_embedded for target in self._targets):
            self._opening = asyncio.create_task(self._open())

    async def ready(self) -> None:
        """Wait until there is a sender, so that no call that may start has to wait for one.

        Raises:
            NoSender: there are no senders, and there will be none.
            UsageError: Ray is not there.
        """
        if all(target.is_embedded for target in self._targets):
            return
        await self._connect()
        while not self.senders:
            if self._error is not None:
                raise self._error
            self._changed.clear()
            await self._changed.wait()

    async def _connect(self) -> None:
        """Connect to Ray and have senders started, once."""
        self.start()
        if self._opening is not None:
            await asyncio.shield(self._opening)

    @property
    def states(self) -> list[SenderState]:
        """How each sender is doing, by node."""
        return sorted((sender.state for sender in self.senders), key=lambda state: (state.node, state.pid))

    @property
    def line(self) -> str:
        """The senders of each node in one line; empty where there are none."""
        by_node: dict[str, list[SenderState]] = {}
        for state in self.states:
            by_node.setdefault(state.node, []).append(state)
        nodes = (
            f"{len(states)} on {node} ({sum(each.n_made for each in states):,} calls, "
            f"{sum(each.calls_per_s for each in states):.1f}/s)"
            for node, states in by_node.items()
        )
        return f"senders: {', '.join(nodes)}" if by_node else ""

    async def close(self) -> None:
        """End all senders, and what was started of Ray."""
        if self._opening is not None:  # a thread connects, which cannot be cancelled
            await asyncio.gather(self._opening, return_exceptions=True)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._cluster is not None:
            await asyncio.to_thread(self._cluster.close)

    async def _open(self) -> None:
        self._cluster = await asyncio.to_thread(Cluster, self._address, self._n_senders)
        self._run(self._keep_senders(self._cluster))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._error = error if isinstance(error, NoSender) else NoSender(f"Ray: {safe(str(error))}")
            self._changed.set()

    async def _free_for(self, target: Target) -> RemoteSender:
        """The sender with the least in hand of those that have the key; if none is there yet, it is waited for."""
        while True:
            able = [sender for sender in self.senders if target.endpoint_name not in sender.lacking]
            if able:
                return min(able, key=lambda sender: sender.n_in_hand)
            if self._error is not None:
                raise self._error
            if len(self.senders) == self._n_on.total() > 0:
                names = ", ".join(self.senders[0].lacking[target.endpoint_name])
                raise NoSender(f"{target.endpoint_name}: {names} is set on no node of Ray")
            self._changed.clear()
            await self._changed.wait()

    async def _keep_senders(self, cluster: Cluster) -> None:
        """Have the senders that are wanted on the nodes that are there, now and while nodes come and go."""
        missed_since_s: float | None = None
        while True:
            self._is_short.clear()
            nodes = await asyncio.to_thread(cluster.nodes)
            usable = [node for node in nodes if node.node_id not in self._refused]
            if nodes and not usable:
                raise NoSender("; ".join(sorted(set(self._refused.values()))))
            missed_since_s = None if nodes else self._missed_since_s(missed_since_s)
            for node, n_senders in wanted(usable, self._n_senders).items():
                for _ in range(n_senders - self._n_on[node.node_id]):
                    self._n_on[node.node_id] += 1
                    self._run(self._have_sender(cluster, node))
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_AT_NODES_EVERY_S):
                    await self._is_short.wait()

    def _missed_since_s(self, known_s: float | None) -> float:
        """Since when there are no nodes, which is said at first, and ends the run after some time."""
        if self._address == LOCAL:
            raise NoSender("Ray on this machine has ended; run again")
        if known_s is None:
            notice(f"Ray at {self._address} has no node with a core; calls wait up to {_WITHOUT_NODES_S:g} s for one")
            return time.monotonic()
        if time.monotonic() - known_s > _WITHOUT_NODES_S:
            raise NoSender(f"Ray at {self._address} has had no node with a core for {_WITHOUT_NODES_S:g} s")
        return known_s

    async def _have_sender(self, cluster: Cluster, node: Node) -> None:
        """Start a sender, and let it make attempts until it is gone."""
        process, sender = cluster.started(SenderProcess, node), None
        try:
            async with asyncio.timeout(START_S):
                equipment: Equipment = await process.get_ready.remote(self._targets)
            if others := differing(versions(), equipment.versions):
                self._refuse(node, f"it runs other versions: {'; '.join(others)}")
                return
            sender = RemoteSender(process, node, equipment)
            self.senders.append(sender)
            self._changed.set()
            await sender.receive(lambda: self._deaths_on.pop(node.node_id, None))
        except Exception as error:  # noqa: BLE001 - whatever ends a sender, its attempts fail with that cause
            self._died(node, sender, cause_of(error, has_started=sender is not None))
        finally:
            if sender in self.senders:
                self.senders.remove(sender)
            cluster.end(process)
            self._n_on[node.node_id] -= 1
            self._changed.set()
            self._is_short.set()

    def _died(self, node: Node, sender: RemoteSender | None, cause: str) -> None:
        self._deaths_on[node.node_id] += 1
        if self._deaths_on[node.node_id] == 1:  # with a node, all its senders go
            notice(f"a sender on {node.name} is gone: {cause}; its calls in flight are made again")
        if self._deaths_on[node.node_id] >= _MOST_DEATHS:
            self._refuse(node, f"{_MOST_DEATHS} senders died there without a reply in between, the last one: {cause}")
        if sender is not None:
            sender.give_up(cause)

    def _refuse(self, node: Node, why: str) -> None:
        """Start no more senders on a node."""
        if node.node_id not in self._refused:
            self._refused[node.node_id] = f"Ray's node {node.name} is not used: {why}"
            notice(self._refused[node.node_id])


def wanted(nodes: Sequence[Node], n_senders: int | None) -> dict[Node, int]:
    """How many senders each node is to have: one a core, or so many in all, spread evenly over the nodes."""
    if n_senders is None:
        return {node: node.n_cores for node in nodes}
    places = sorted((place, node.node_id, node) for node in nodes for place in range(node.n_cores))
    return dict(Counter(node for _, _, node in places[:n_senders]))


def cause_of(error: Exception, *, has_started: bool) -> str:
    """Why a sender is gone, or did not start, in one line."""
    if isinstance(error, TimeoutError):
        return "it gives no sign of life" if has_started else f"it did not start within {START_S:g} s"
    return safe(f"{type(error).__name__}: {unstyle(str(error)).strip().splitlines()[0]}")
