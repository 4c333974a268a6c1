"""What a process runs: the versions that have to be the same wherever attempts of one run are made."""

import asyncio
import hashlib
import os
import platform
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tasks.llm.calls.sending import send
from tasks.llm.environment import guard_logs, missing_variables
from tasks.llm.litellm_setup import collect_seldom, warm_up
from tasks.llm.replies import PROVIDER_ERROR, Failure, Kind, Reply, failure_of
from tasks.llm.request import Call, Target

_LIBRARIES = ("litellm", "openai", "httpx", "aiohttp", "pydantic", "ray")
_CODE = Path(__file__).parents[2]


@cache
def versions() -> Mapping[str, str]:
    """Python, the libraries that an attempt goes through, and a hash of this project's own code."""
    digest = hashlib.sha256()
    for path in sorted(_CODE.rglob("*.py")):
        digest.update(f"{path.relative_to(_CODE)}\0".encode() + path.read_bytes() + b"\0")
    libraries = {name: version(name) for name in _LIBRARIES}
    return {"Python": platform.python_version(), **libraries, "prbench": digest.hexdigest()[:12]}


Attempt = tuple[int, Call, Mapping[str, Any]]
"""A number that the driver gave it, the call, and the parameters that are sent."""
Outcome = tuple[int, Reply]
"""The attempt's number, and what came of it."""
LIFE_SIGN_EVERY_S = 5.0
SILENCE_S = 6 * LIFE_SIGN_EVERY_S
"""After so long without a sign of life the driver gives a sender up: Ray needs a minute to notice a lost node."""


@dataclass(frozen=True)
class Equipment:
    """A sender's process id, what it runs, and by endpoint which environment variables it lacks for calls to it.

    `at_s` is the moment by its own clock.
    """

    pid: int
    versions: Mapping[str, str]
    lacking: Mapping[str, Sequence[str]]
    at_s: float

    @property
    def other_versions(self) -> str:
        """What differs from what this process runs, as `litellm 1.106.2 there, 1.106.0 here`; empty: nothing."""
        own, other = versions(), self.versions
        return "; ".join(
            f"{name} {other.get(name, 'missing')} there, {own.get(name, 'missing')} here"
            for name in sorted(own.keys() | other.keys())
            if own.get(name) != other.get(name)
        )


class SenderProcess:
    """What runs in the process. Its methods are called from the driver, through Ray."""

    def __init__(self) -> None:
        self._in_hand: dict[int, asyncio.Task[None]] = {}
        self._finished: list[Outcome] = []
        self._has_finished = asyncio.Event()

    async def get_ready(self, targets: Sequence[Target]) -> Equipment:
        """Import what attempts need, and say what is there."""
        guard_logs()
        collect_seldom()
        await asyncio.to_thread(warm_up)
        lacking: dict[str, list[str]] = {}
        for target in targets:
            if missing := missing_variables(target):
                lacking.setdefault(target.endpoint_name, []).extend(missing)
        return Equipment(os.getpid(), versions(), lacking, time.monotonic())

    async def start(self, attempts: Sequence[Attempt], cancelled: Sequence[int], heard_at_s: float) -> None:
        """Begin these attempts, and end those that were cancelled, some of which may be among them.

        `heard_at_s` is the moment, by this process's clock, of the last sign of life that the driver had before it sent
        this. After a longer silence the driver has given this sender up, and has the attempts made by others: so they
        are not begun when a process that was stopped, or cut off, reads them at last.
        """
        if time.monotonic() < heard_at_s + SILENCE_S:
            for number, call, parameters in attempts:
                task = self._in_hand[number] = asyncio.create_task(self._make(number, call, parameters))
                task.add_done_callback(partial(self._in_hand.pop, number))
        else:
            failure = Failure(PROVIDER_ERROR, Kind.LOST, "the message reached the sender too late")
            self._finished += [(number, failure.reply) for number, _, _ in attempts]
            self._has_finished.set()
        for number in cancelled:
            if number in self._in_hand:
                self._in_hand[number].cancel()

    async def outcomes(self) -> tuple[float, list[Outcome]]:
        """The moment by its own clock, and what has finished since the last time; after a while that is nothing."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LIFE_SIGN_EVERY_S):
                await self._has_finished.wait()
        self._has_finished.clear()
        finished, self._finished = self._finished, []
        return time.monotonic(), finished

    async def _make(self, number: int, call: Call, parameters: Mapping[str, Any]) -> None:
        try:
            reply = await send(call, parameters)
        except Exception as error:  # noqa: BLE001 - it is the driver that has to know of it
            reply = failure_of(error).reply
        self._finished.append((number, reply))
        self._has_finished.set()
