"""Killing runs, and comparing what they come to."""

import itertools
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.behaviours import BookedRequest, HttpResponse, seeded_faults
from tests.faults.kills.starting import TICK_S, Run, recorded, tables
from tests.faults.process import ServerProcess
from tests.kit import until

SEED, FAULT_RATE, LATENCY_S = 20251114, 0.02, 0.05
LONGEST_S, SHARE_FROM_START = 0.4, 0.3


@dataclass
class Killing:
    """Runs over one prepared warehouse against one provider, killed at random instants.

    An instant is drawn up to `LONGEST_S` after the first reply of a process, or in a share of cases up to twice that
    after its start. `n_again` are replies that were paid although the call had one before.
    """

    folder: Path
    server: ServerProcess
    start: Callable[[Path, Path], Run]
    n_kills: int = 0
    n_again: int = 0

    def __post_init__(self) -> None:
        self._draw = random.Random(SEED)
        self._undisturbed = self._warehouse("undisturbed")
        run = self.start(self.folder, self._undisturbed)
        assert 0 == run.wait(), run.complaint
        self._expected = Counter(self._good_replies())
        assert {1, 2} == set(self._expected.values()), "a reply was paid twice without any kill"

    def kill(self, n_kills: int) -> None:
        """Kill so often, over as many runs as that takes; each is let come to its end and compared.

        Raises:
            AssertionError: something was lost, doubled or paid again without need.
        """
        while self.n_kills < n_kills:
            warehouse, n_before = self._warehouse("killed"), len(self._good_replies())
            while self._is_killed(self.start(self.folder, warehouse), n_kills):
                pass
            self._compare(warehouse, Counter(self._good_replies()[n_before:]))
            shutil.rmtree(warehouse)

    def _warehouse(self, name: str) -> Path:
        return Path(shutil.copytree(self.folder / "data", self.folder / name))

    def _is_killed(self, run: Run, n_kills: int) -> bool:
        """Let a run come to its end, or kill it before, with all that it has started."""
        if is_killed := self.n_kills < n_kills and self._instant_comes(run):
            os.killpg(run.pid, signal.SIGKILL)
            self.n_kills += 1
        assert (-signal.SIGKILL if is_killed else 0) == run.wait(), run.complaint
        until(lambda: run.members() == [], within_s=20)
        return is_killed

    def _instant_comes(self, run: Run) -> bool:
        """Wait for the instant of the next kill; False when the run ends before it."""
        longest_s, size = 2 * LONGEST_S, self._book_bytes()
        if self._draw.random() >= SHARE_FROM_START:
            longest_s = LONGEST_S
            while self._book_bytes() == size and run.poll() is None:
                time.sleep(TICK_S)
        at_s = time.monotonic() + self._draw.uniform(0, longest_s)
        while time.monotonic() < at_s and run.poll() is None:
            time.sleep(TICK_S)
        return run.poll() is None

    def _book_bytes(self) -> int:
        return self.server.book_path.stat().st_size if self.server.book_path.exists() else 0

    def _good_replies(self) -> list[str]:
        """The digests of the requests in the book that got good replies: paid, and none of the provider's faults."""
        behaviour = seeded_faults(SEED, FAULT_RATE, then=lambda _request, _number: HttpResponse("good"))

        def is_good(line: dict[str, Any]) -> bool:
            request = BookedRequest({})
            request.digest = line["digest"]
            return bool(line["is_paid"]) and behaviour(request, line["number"]) == HttpResponse("good")

        return [line["digest"] for line in self.server.read_book() if is_good(line)]

    def _compare(self, warehouse: Path, paid: Counter[str]) -> None:
        stored, wanted = tables(warehouse), tables(self._undisturbed)
        for name, rows in wanted.items():
            differing = [pair for pair in itertools.zip_longest(stored[name], rows) if pair[0] != pair[1]]
            assert [] == differing[:2], f"{name} differ from those of the undisturbed run"
        twice = [key for key, count in recorded(warehouse).items() if count > 1]
        assert [] == twice, "replies were called for again although their commit had been acknowledged"
        assert self._expected.keys() == paid.keys()
        assert self._expected <= paid, "a row has no reply behind it"
        self.n_again += (paid - self._expected).total()


def provider() -> ServerProcess:
    """A provider that takes its time, fails now and then, and keeps its book in a file."""
    return ServerProcess(seed=SEED, fault_rate=FAULT_RATE, latency_s=LATENCY_S)
