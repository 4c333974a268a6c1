"""Two machines and one warehouse: the command runs on one of them, and waits for or loses to the
other, `node7`.
"""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.server import FaultServer, HttpResponse, well_behaved
from tests.flows.conftest import PROJECT
from tests.kit import file_times, until
from warehouse.locks import Machine, Owner

pytestmark = pytest.mark.slow
FAST = {
    "interval_s": 0.3,
    "takeover_after_s": 2.7,
    "settling_s": 2.1,
}
NODE7 = Machine(kernel="kernel of node7", host="node7", started_at_s=0.0)
SPEED_UP = f"""
import sys
from pathlib import Path
from warehouse.locks import Machine, Owner

for name, value in {FAST}.items():
    setattr(Owner, name, value)
"""
ON_NODE7 = f"""
{SPEED_UP}
Owner(Path(sys.argv[1]), {NODE7!r}).begin()
print("writes", flush=True)
sys.stdin.read()
"""
RUN_COMMAND = f"""
{SPEED_UP}
from flows.cli.main import entry
entry()
"""


@contextmanager
def started(
    script: str,
    *arguments: str,
    folder: Path,
) -> Iterator[subprocess.Popen[str]]:
    """A piece of Python as a process, which is killed with the block."""
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=folder,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    for name, value in FAST.items():
        monkeypatch.setattr(Owner, name, value)


def test_a_run_is_refused_while_another_machine_writes_and_replaces_a_killed_one(
    command,
    monkeypatch,
):
    data = command.folder / "data"
    data.mkdir()
    command.configure(
        dataset={"source": "sample"},
        models=[],
        judges=[],
    )
    with (
        started(ON_NODE7, str(data), folder=PROJECT) as node7,
        monkeypatch.context() as patch,
    ):
        assert node7.stdout is not None
        assert node7.stdout.readline() == "writes\n"
        # This process waits long enough not to take a slow node7 for a failed one.
        patch.setattr(Owner, "takeover_after_s", 120.0)
        refusal = command("run", "--warehouse", "data", code=1).stderr
        findings = command.json("doctor", "--warehouse", "data")
    takeover = command("run", "--warehouse", "data").stderr

    assert f"{data}: node7 wrote here last; waiting up to " in refusal
    reason = "node7 writes this warehouse, or did so until it failed"
    assert f"prbench: {data}: {reason}, and only one machine can at" in refusal
    states = {finding["what"]: finding["state"] for finding in findings}
    assert states["another machine"] == "unknown"
    assert f"{data}: node7 no longer writes here; this machine takes over" in takeover
    # The run that took over has stored the sample.
    assert len(command.sql("from tasks")) == 8
    assert not (data / "machine.lock").exists()


@pytest.mark.long
def test_a_run_that_another_machine_took_over_ends_in_one_line_and_writes_nothing(
    command,
):
    def slow(request, number):
        return HttpResponse(well_behaved(request, number).text, delay_s=0.3)

    data = command.folder / "data"
    with FaultServer(slow) as server:
        model = {"api_base": server.api_base, "name": "hosted_vllm/m"}
        command.configure(
            dataset={"source": "sample"},
            models=[model],
            judges=[model],
            limits={"concurrency": 4},
        )
        with started(
            RUN_COMMAND,
            "run",
            "--limit",
            "3",
            "--warehouse",
            "data",
            folder=command.folder,
        ) as run:
            until(lambda: len(server.book) > 12)  # in the middle of its calls
            run.send_signal(signal.SIGSTOP)
            node7 = Owner(data, NODE7)
            node7.begin(print)
            times = times_of_files(data)
            run.send_signal(signal.SIGCONT)
            _, stderr = run.communicate(timeout=60)

    assert run.returncode == 1
    assert stderr.splitlines()[-1] == (
        f"prbench: {data}: node7 took over this warehouse; nothing more is written, run again when"
        " no other machine writes"
    )
    assert "Traceback" not in stderr
    # The command has not taken the warehouse back.
    assert node7.renew() is None
    node7.end()
    assert times_of_files(data) == times


def times_of_files(data: Path) -> dict[str, int]:
    """The times at which the stored parts, the published database and the ledger last changed."""
    # SQLite's shared memory, which changes with every reader, is left out.
    suffixes = (".parquet", ".duckdb", ".sqlite", ".sqlite-wal")
    times = file_times(data)
    return {name: times[name] for name in times if name.endswith(suffixes)}
