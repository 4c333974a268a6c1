"""Senders: processes on other nodes that make attempts, and the pool that distributes calls to
them.
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

from click import unstyle

from tasks.console import notice
from tasks.llm.calls.sending import NoSender, send
from tasks.llm.redaction import safe
from tasks.llm.replies import PROVIDER_ERROR, Failure, Kind, Reply
from tasks.llm.request import Call, Parameters, Target
from tasks.llm.senders import cluster as ray_cluster
from tasks.llm.senders.cluster import Attempt, Cluster, Equipment, Node
from tasks.rules.errors import PipelineError


class RemoteSender:
    """A process that makes attempts, on a node."""

    def __init__(self, process: Any, node: Node, equipment: Equipment) -> None:
        self.node = node
        self.equipment = equipment
        self._heard_at_s = equipment.at_s
        self._process = process
        self.in_hand: dict[int, asyncio.Future[Reply]] = {}
        self._numbers = itertools.count(1)
        self._attempts: list[Attempt] = []

    async def make(self, call: Call, parameters: Parameters) -> Reply:
        """Make an attempt on the sender; return a failure if the sender dies."""
        number = next(self._numbers)
        outcome: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.in_hand[number] = outcome
        if not self._attempts:
            # Attempts of 2 ms make one message, which takes half a millisecond of the driver's
            # core.
            asyncio.get_running_loop().call_later(0.002, self._send)
        self._attempts.append((number, call, parameters))
        try:
            async with asyncio.timeout(call.target.timeout_s + ray_cluster.SILENCE_S):
                return await outcome
        except TimeoutError:
            return self.lost_reply("it does not respond")
        finally:
            self.in_hand.pop(number, None)

    async def receive(self, on_reply: Callable[[], object]) -> None:
        """Receive outcomes from the sender, until it dies or falls silent.

        Raises:
            Exception: the reason why the sender is gone.
        """
        while True:
            # Ray's future is never cancelled: Ray's client (`ray://`) would print a traceback.
            sent: asyncio.Future[Any] = asyncio.wrap_future(
                self._process.outcomes.remote().future()
            )
            # The error is read even if nobody waits for it.
            sent.add_done_callback(lambda future: future.cancelled() or future.exception())
            # Two waits: the first may have passed while this process was stopped.
            for _ in range(2):
                await asyncio.wait([sent], timeout=ray_cluster.SILENCE_S / 2)
            if not sent.done():
                raise TimeoutError
            self._heard_at_s, outcomes = sent.result()
            for number, reply in outcomes:
                outcome = self.in_hand.get(number)
                if outcome is not None and not outcome.done():
                    outcome.set_result(reply)
            if outcomes:
                on_reply()

    @property
    def state(self) -> dict[str, Any]:
        """The node (`node`), the process id (`pid`), and the number of calls in progress
        (`n_in_hand`).
        """
        return {
            "node": self.node.name,
            "pid": self.equipment.pid,
            "n_in_hand": len(self.in_hand),
        }

    def lost_reply(self, cause: str) -> Reply:
        """Return the reply to an attempt whose sender is gone; its outcome is unknown."""
        error = f"the sender on {self.node.name} is gone: {cause}"
        return Failure(PROVIDER_ERROR, Kind.LOST, error).reply

    def _send(self) -> None:
        # If the message is lost, `receive` fails; if the sender cannot read it, its attempts end at
        # their time limit.
        attempts = self._attempts
        self._attempts = []
        self._process.start.remote(attempts, self._heard_at_s)


LOOK_AT_NODES_EVERY_S = 0.5
WITHOUT_NODES_S = 120.0
"""The time without any node after which a run ends."""
_MOST_DEATHS = 5
"""Number of lost senders on a node, without a reply in between, after which no more are started
there.
"""


@dataclass
class SenderPool:
    """The senders that make attempts; the first attempt connects to Ray.

    `address` is that of Ray, `n_senders` the number of senders (None: one per core), and `targets`
    are all models that may be called. `on_look` gets the `state` of each sender at each look at the
    nodes.
    """

    address: str
    n_senders: int | None
    targets: Sequence[Target]
    on_look: Callable[[list[dict[str, Any]]], None] = lambda _states: None

    def __post_init__(self) -> None:
        self._opening: asyncio.Future[Cluster] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._n_senders_on: Counter[str] = Counter()
        self._refusal_by_node: dict[str, str] = {}
        self._changed = asyncio.Event()
        self._deaths_on: Counter[str] = Counter()
        self._error: PipelineError | None = None
        self.senders: list[RemoteSender] = []

    async def __call__(self, call: Call, parameters: Parameters) -> Reply:
        """Make one attempt on the sender with the fewest calls; the embedded model is called in
        this process.

        Raises:
            NoSender: there are no senders, and there will be none.
        """
        if call.target.is_embedded:
            return await send(call, parameters)
        self.start()
        sender = await self._sender_for(call.target)
        return await sender.make(call, parameters)

    def start(self) -> None:
        """Begin to connect to Ray and to start senders, without waiting."""
        if self._opening is None and not all(target.is_embedded for target in self.targets):
            self._opening = asyncio.ensure_future(
                asyncio.to_thread(Cluster, self.address, self.n_senders)
            )
            self._run(self._keep_senders(self._opening))

    async def ready(self) -> None:
        """Wait until there is a sender, so that admitted calls do not wait for one.

        Raises:
            NoSender: there are no senders, and there will be none.
            UsageError: Ray cannot be reached.
        """
        self.start()
        while self._opening is not None and not self.senders:
            await self._next_change()

    async def close(self) -> None:
        """End all senders, and the local Ray."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._opening is not None:  # a thread, which cannot be cancelled, is connecting
            with suppress(PipelineError):  # it has failed; callers have got the error
                cluster = await self._opening
                await asyncio.to_thread(cluster.close)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        if not isinstance(error, PipelineError):
            error = NoSender(f"Ray: {safe(str(error))}")
        self._error = error
        self._changed.set()

    async def _sender_for(self, target: Target) -> RemoteSender:
        """Return the sender with the fewest calls in progress among those with the key.

        If there is none yet, wait for one.
        """
        while True:
            endpoint = target.endpoint_name
            able_senders = [
                sender for sender in self.senders if endpoint not in sender.equipment.lacking
            ]
            if able_senders:
                return min(able_senders, key=lambda sender: len(sender.in_hand))
            if self.senders and len(self.senders) == self._n_senders_on.total():  # none is starting
                names = ", ".join(self.senders[0].equipment.lacking[endpoint])
                raise NoSender(f"{endpoint}: {names} is set on no node of Ray")
            await self._next_change()

    async def _next_change(self) -> None:
        """Wait until senders have come or gone; raise the reason if none will come."""
        if self._error is not None:
            raise self._error
        self._changed.clear()
        await self._changed.wait()

    async def _keep_senders(self, opening: Awaitable[Cluster]) -> None:
        """Keep the wanted senders running on all nodes, while nodes come and go."""
        cluster = await asyncio.shield(opening)
        missed_since_s: float | None = None
        while True:
            nodes = await asyncio.to_thread(cluster.nodes)
            usable_nodes = [node for node in nodes if node.node_id not in self._refusal_by_node]
            if nodes and not usable_nodes:
                raise NoSender("; ".join(sorted(set(self._refusal_by_node.values()))))
            missed_since_s = None if nodes else self._check_absence(missed_since_s)
            for node, n_senders in senders_by_node(usable_nodes, self.n_senders).items():
                for _ in range(n_senders - self._n_senders_on[node.node_id]):
                    self._n_senders_on[node.node_id] += 1
                    self._run(self._use_sender(cluster, node))
            self.on_look([sender.state for sender in self.senders])
            await asyncio.sleep(LOOK_AT_NODES_EVERY_S)

    def _check_absence(self, earlier_s: float | None) -> float:
        """Print a notice when nodes are first missing; end the run if they are missing for too
        long, or at once if Ray is local.

        Return the time since when there are none: `earlier_s`, or now if that is None.
        """
        if self.address == ray_cluster.LOCAL:
            raise NoSender("Ray on this machine has ended; run again")
        if earlier_s is None:
            notice(
                f"Ray at {self.address} has no node with a core; calls wait up to"
                f" {WITHOUT_NODES_S:g} s for one"
            )
            return time.monotonic()
        if time.monotonic() - earlier_s > WITHOUT_NODES_S:
            raise NoSender(
                f"Ray at {self.address} has had no node with a core for {WITHOUT_NODES_S:g} s"
            )
        return earlier_s

    async def _use_sender(self, cluster: Cluster, node: Node) -> None:
        """Start a sender, and use it until it is gone."""
        process = cluster.start(node)
        sender = None
        try:
            equipment = await _equipment_of(process, self.targets)
            if equipment.other_versions:
                self._refuse(node, f"it runs other versions: {equipment.other_versions}")
                return
            sender = RemoteSender(process, node, equipment)
            self.senders.append(sender)
            self._changed.set()
            await sender.receive(lambda: self._deaths_on.pop(node.node_id, None))
        except Exception as error:  # noqa: BLE001 - the cause of the failures of its attempts
            self._died(node, sender, cause_of(error, has_started=sender is not None))
        finally:
            if sender in self.senders:
                self.senders.remove(sender)
            cluster.end(process)
            self._n_senders_on[node.node_id] -= 1
            self._changed.set()

    def _died(self, node: Node, sender: RemoteSender | None, cause: str) -> None:
        self._deaths_on[node.node_id] += 1
        if self._deaths_on[node.node_id] == 1:  # one line, also if all its senders are lost
            notice(f"a sender on {node.name} is gone: {cause}; its calls in flight are made again")
        if self._deaths_on[node.node_id] >= _MOST_DEATHS:
            self._refuse(
                node,
                f"{_MOST_DEATHS} senders died there without a reply in between, the last one:"
                f" {cause}",
            )
        if sender is not None:
            for outcome in sender.in_hand.values():
                if not outcome.done():
                    outcome.set_result(sender.lost_reply(cause))

    def _refuse(self, node: Node, cause: str) -> None:
        """Start no more senders on a node."""
        if node.node_id not in self._refusal_by_node:
            reason = f"Ray's node {node.name} is not used: {cause}"
            self._refusal_by_node[node.node_id] = reason
            notice(reason)


def senders_by_node(nodes: Sequence[Node], n_senders: int | None) -> dict[Node, int]:
    """Return the wanted number of senders of each node: one a core, or `n_senders` spread evenly
    over the nodes.
    """
    if n_senders is None:
        return {node: node.n_cores for node in nodes}
    cores = []
    for node in nodes:
        cores += [(number, node) for number in range(node.n_cores)]
    cores.sort()  # the first core of each node, then the second ones
    return dict(Counter(node for _, node in cores[:n_senders]))


async def _equipment_of(process: Any, targets: Sequence[Target]) -> Equipment:
    async with asyncio.timeout(ray_cluster.START_S):
        equipment: Equipment = await process.get_ready.remote(targets)
        return equipment


def cause_of(error: Exception, *, has_started: bool) -> str:
    """Return the reason why a sender is gone, or did not start, in one line."""
    if isinstance(error, TimeoutError):
        if has_started:
            return "it gives no sign of life"
        return f"it did not start within {ray_cluster.START_S:g} s"
    first_line = unstyle(str(error)).strip().partition("\n")[0]
    return safe(f"{type(error).__name__}: {first_line}")


async def inspect(
    address: str,
    n_senders: int | None,
    targets: Sequence[Target],
) -> list[tuple[Node, str]]:
    """Start a sender on each node, and return by node the reason why it cannot make calls; empty:
    none.

    Raises:
        UsageError: Ray is not installed, or cannot be reached.
    """
    ray_cluster.refuse_without_ray()

    with closing(Cluster(address, n_senders)) as cluster:
        nodes = cluster.nodes()
        problems = await asyncio.gather(*[_problem_of(cluster, node, targets) for node in nodes])
        return list(zip(nodes, problems, strict=True))


async def _problem_of(cluster: Cluster, node: Node, targets: Sequence[Target]) -> str:
    process = cluster.start(node)
    try:
        equipment = await _equipment_of(process, targets)
    except Exception as error:  # noqa: BLE001 - any error is the node's problem
        return cause_of(error, has_started=False)
    finally:
        cluster.end(process)
    if equipment.other_versions:
        return f"other versions: {equipment.other_versions}"
    lacking = sorted(equipment.lacking.items())
    return "; ".join(f"{endpoint}: {', '.join(names)} not set" for endpoint, names in lacking)
