"""Killing runs, and comparing what they come to."""

import itertools
import os
import random
import shutil
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.behaviours import BookedRequest, HttpResponse, seeded_faults
from tests.faults.kills.starting import TICK_S, Run, living, recorded, tables
from tests.faults.process import ServerProcess

SEED, FAULT_RATE, LATENCY_S = 20251114, 0.02, 0.05
LONGEST_S, SHARE_FROM_START = 0.4, 0.3
MOST_GAP_S, MOST_COLD_GAP_S = 0.5, 3.0
"""Of a reply that was sent off longer than this before a kill, the commit is expected. Between the two the client has
to read it, LiteLLM to make it ready, the ledger to commit: 0.3 s at most in 240 kills on two cores that had other work.
In a process that still imports (LiteLLM's rarer parts, pandas for its first part) replies wait until it has done so.
"""


@dataclass
class Kill:
    """A kill: when it was sent, and when everything that it was to end had ended."""

    at_s: float
    whole: list[int]
    gone_s: float = float("inf")

    def look(self) -> None:
        """Take notice of whether all has ended."""
        if self.gone_s == float("inf") and not [pid for pid, _ in living() if pid in self.whole]:
            self.gone_s = time.monotonic()


@dataclass
class Figures:
    """The sums over some kills; `again` are replies that were paid although the call had one before."""

    kills: int = 0
    runs: int = 0
    replies: int = 0
    again: int = 0
    again_after_delivery: int = 0
    most_gap_ms: float = 0.0
    seconds: float = 0.0


@dataclass
class Killing:
    """Runs over one prepared warehouse against one provider, killed at random instants.

    An instant is drawn up to `LONGEST_S` after the first reply of a process, or in a share of cases up to twice that
    after its start.
    """

    folder: Path
    server: ServerProcess
    start: Callable[[Path, Path], Run]
    most_gap_s: float = MOST_GAP_S
    figures: Figures = field(default_factory=Figures)

    def __post_init__(self) -> None:
        self._draw = random.Random(SEED)
        self._undisturbed = self._warehouse("undisturbed")
        run = self.start(self.folder, self._undisturbed)
        assert 0 == run.wait(), run.complaint
        self._expected = Counter(line["digest"] for line in self._good_replies(since_s=0.0))
        assert {1, 2} == set(self._expected.values()), "a reply was paid twice without any kill"

    def kill(self, n_kills: int) -> Figures:
        """Kill so often, over as many runs as that takes; each is let come to its end and compared.

        Raises:
            AssertionError: something was lost, doubled or paid again without need.
        """
        started_s = time.monotonic()
        while self.figures.kills < n_kills:
            warehouse = self._warehouse(f"killed-{self.figures.runs}")
            since_s = time.monotonic()
            kills = self._until_done(warehouse, n_kills - self.figures.kills)
            assert not any(kill.gone_s == float("inf") for kill in kills), "a process outlived its run"
            self._compare(warehouse, since_s, kills)
            self.figures.kills += len(kills)
            self.figures.runs += 1
            shutil.rmtree(warehouse)
        self.figures.seconds = round(time.monotonic() - started_s, 1)
        return self.figures

    def _warehouse(self, name: str) -> Path:
        return Path(shutil.copytree(self.folder / "data", self.folder / name))

    def _until_done(self, warehouse: Path, most_kills: int) -> list[Kill]:
        kills: list[Kill] = []
        while True:
            run = self.start(self.folder, warehouse)
            if len(kills) < most_kills and self._instant_comes(run, kills):
                kills.append(Kill(time.monotonic(), run.members()))
                os.killpg(run.pid, signal.SIGKILL)
            else:
                assert 0 == run.wait(), run.complaint
                deadline_s = time.monotonic() + 20
                while time.monotonic() < deadline_s and any(kill.gone_s == float("inf") for kill in kills):
                    self._tick(kills)
                return kills
            assert run.wait() == -signal.SIGKILL, run.complaint

    def _instant_comes(self, run: Run, kills: list[Kill]) -> bool:
        """Wait for the instant of the next kill; False when the run ends before it."""
        longest_s, size = 2 * LONGEST_S, self._book_bytes()
        if self._draw.random() >= SHARE_FROM_START:
            longest_s = LONGEST_S
            while self._book_bytes() == size and run.poll() is None:
                self._tick(kills)
        at_s = time.monotonic() + self._draw.uniform(0, longest_s)
        while time.monotonic() < at_s and run.poll() is None:
            self._tick(kills)
        return run.poll() is None

    def _tick(self, kills: list[Kill]) -> None:
        for kill in kills[-8:]:
            kill.look()
        time.sleep(TICK_S)

    def _book_bytes(self) -> int:
        return self.server.book_path.stat().st_size if self.server.book_path.exists() else 0

    def _good_replies(self, since_s: float) -> list[dict[str, Any]]:
        """The lines of the book that are good replies: paid, and none of the provider's faults."""
        behaviour = seeded_faults(SEED, FAULT_RATE, then=lambda _request, _number: HttpResponse("good"))

        def is_good(line: dict[str, Any]) -> bool:
            request = BookedRequest({})
            request.digest = line["digest"]
            return bool(line["is_paid"]) and behaviour(request, line["number"]) == HttpResponse("good")

        return [line for line in self.server.read_book() if line["arrived_at_s"] >= since_s and is_good(line)]

    def _compare(self, warehouse: Path, since_s: float, kills: list[Kill]) -> None:
        stored, wanted = tables(warehouse), tables(self._undisturbed)
        for name, rows in wanted.items():
            differing = [pair for pair in itertools.zip_longest(stored[name], rows) if pair[0] != pair[1]]
            assert not differing, f"{name} differ from those of the undisturbed run: {differing[:2]}"
        twice = [key for key, count in recorded(warehouse).items() if count > 1]
        assert not twice, f"{len(twice)} replies were called for again although their commit had been acknowledged"
        by_digest = defaultdict(list)
        for line in self._good_replies(since_s):
            by_digest[line["digest"]].append(line)
        assert by_digest.keys() == self._expected.keys()
        for digest, of_request in by_digest.items():
            n_again = len(of_request) - self._expected[digest]
            assert n_again >= 0, "a row has no reply behind it"
            gaps = sorted(min(_gap_s(line, kill) for kill in kills) if kills else 0.0 for line in of_request[:-1])
            self._count(gaps[:n_again])
            self.figures.replies += len(of_request)

    def _count(self, gaps_s: list[float]) -> None:
        """Take in the replies to one request that were paid and lost: how long before a kill each was sent."""
        assert all(gap_s <= self.most_gap_s for gap_s in gaps_s), f"paid again, {max(gaps_s):.3f} s before any kill"
        self.figures.again += len(gaps_s)
        self.figures.again_after_delivery += sum(gap_s > 0 for gap_s in gaps_s)
        self.figures.most_gap_ms = round(max([self.figures.most_gap_ms, *(1000 * gap_s for gap_s in gaps_s)]), 1)


def _gap_s(line: Mapping[str, Any], kill: Kill) -> float:
    """Return the seconds from a reply to a kill; 0 if it was in flight, infinite if the kill cannot have hit it."""
    if line["arrived_at_s"] > kill.gone_s:
        return float("inf")
    return max(0.0, kill.at_s - line["responded_at_s"])


def provider() -> ServerProcess:
    """A provider that takes its time, fails now and then, and keeps its book in a file."""
    return ServerProcess(seed=SEED, fault_rate=FAULT_RATE, latency_s=LATENCY_S)
