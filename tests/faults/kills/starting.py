"""The side that starts runs: their prepared warehouse, their processes, and the rows and replies
that they leave.
"""

import atexit
import contextlib
import functools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.faults.server import FaultServer
from tests.kit import ROOT, configure, endpoint, prepared_sample, rows_in, until

TICK_S = 0.003
CONCURRENCY = 8
"""The most calls that a run has in flight."""


@dataclass
class Run:
    """A run's process, the leader of a process group of its own."""

    pid: int
    log: Path
    ask: Callable[[], int | None]
    code: int | None = None

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        if self.code is None:
            self.code = self.ask()
        return self.code

    def wait(self) -> int:
        """Wait for the exit code."""
        until(lambda: self.poll() is not None, within_s=240, every_s=TICK_S)
        return int(self.code or 0)

    def members(self) -> list[int]:
        """The living processes of its group, without zombies."""
        members = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                columns = path.read_text(errors="replace").rpartition(")")[2]
                state, _parent, group = columns.split()[:3]
                if state not in "ZX" and int(group) == self.pid:
                    members.append(int(path.parent.name))
        return members

    @property
    def complaint(self) -> str:
        """The text that the run wrote on standard error."""
        return self.log.read_text(encoding="utf-8") if self.log.exists() else ""


class Stages:
    """A context manager that starts runs by forking a process that has imported everything."""

    def __init__(self):
        # Threads of libraries would not survive a fork.
        quiet = {
            "OPENBLAS_NUM_THREADS": "1",
            "ARROW_DEFAULT_MEMORY_POOL": "system",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.kills"],
            cwd=ROOT,
            env={**os.environ, **quiet},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._runs: list[Run] = []

    def start(self, folder: Path, warehouse: Path, **order: Any) -> Run:
        """Start a run with the settings of a folder."""
        log = folder / f"run-{len(self._runs)}-of-{self._process.pid}.log"
        paths = {
            "config": str(folder / "prbench.yaml"),
            "warehouse": str(warehouse),
            "log": str(log),
        }
        pid = self._say("start", {**order, **paths})
        self._runs.append(Run(pid, log, lambda: self._say("poll", pid)))
        return self._runs[-1]

    def rehearse(self, folder: Path, warehouse: Path):
        """Find out from a run what else to import before forking."""
        run = self.start(folder, warehouse, modules=str(folder / "modules"))
        assert run.wait() == 0, run.complaint
        self._say("import", str(folder / "modules"))

    def _say(self, *line: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()
        return self._heard()

    def _heard(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def __enter__(self) -> Self:
        assert self._heard() == "ready"
        return self

    def __exit__(self, *_: object):
        for run in self._runs:
            for pid in run.members():
                os.kill(pid, signal.SIGKILL)
        with self._process:
            self._process.kill()


def configured(folder: Path, api_base: str, **judge_settings: Any) -> Path:
    """Write settings (two models, a judge, two trials, the sample) and a warehouse that only lacks
    the calls.
    """
    configure(
        folder,
        dataset={"source": "sample"},
        models=[endpoint("alpha", api_base), endpoint("beta", api_base)],
        judges=[endpoint("judge", api_base, **judge_settings)],
        trials=2,
        limits={"concurrency": CONCURRENCY},
        report={"enabled": False},
    )
    return Path(
        shutil.copytree(prepared_sample(), folder / "data", dirs_exist_ok=True)
    )


@functools.cache
def started_stages() -> Stages:
    """The one process to fork runs from; a rehearsal has made it import all that runs need."""
    stages = Stages().__enter__()
    atexit.register(stages.__exit__)
    with (
        tempfile.TemporaryDirectory(prefix="rehearsal-") as name,
        FaultServer() as server,
    ):
        stages.rehearse(Path(name), configured(Path(name), server.api_base))
    return stages


TABLES = {
    "responses": "select response_id, status, text from responses order by all",
    "verdicts": (
        "select verdict_id, status, value, probability, explanation from verdicts order by all"
    ),
    # Not compared: times, costs, and what `aggregate` draws, which the undisturbed run leaves out.
    "leaderboard": (
        """
        select * exclude (
            ci_low, ci_high, raw_ci_low, raw_ci_high, is_small, trials_mean, trials_ci_low,
            trials_ci_high, met_ci_low, met_ci_high, is_met_small, cost_usd, first_response_at
        )
        from leaderboard order by all
    """
    ),
}


def tables(warehouse: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows that must be the same, whatever happened during the run."""
    rows = {}
    for name, query in TABLES.items():
        rows[name] = [_rounded(row) for row in rows_in(warehouse, query)]
    return rows


def _rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    """The last digits of a mean depend on the order in which rows were added up."""
    return {
        name: round(value, 12) if isinstance(value, float) else value
        for name, value in row.items()
    }


def recorded(warehouse: Path) -> Counter[str]:
    """Return the number of replies to each call in all files of the ledger, without empty ones."""
    nothing = json.dumps({"answers": {}})[1:-1]
    query = f"select call_key from calls where status = 'ok' and text not like '%{nothing}%'"
    counts = Counter()
    for path in (warehouse / "ledger").glob("*.sqlite"):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            counts.update(key for (key,) in connection.execute(query))
    return counts
