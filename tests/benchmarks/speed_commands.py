"""The cost of commands in seconds of CPU and wall time, beside `python -c "import prefect"` in the
same run.

A scripted provider responds at once. *First call* is the time until it gets the first request.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.figures import Figure, arguments, markdown, report
from tests.faults.server import FaultServer
from tests.flows.prefect_server import serving_prefect
from tests.kit import configure, endpoint

PRBENCH = Path(sys.executable).with_name("prbench")
BASELINE = "import prefect"
LIBRARIES = (BASELINE, "import litellm", "import great_expectations", "import flows.stages")
LOOKING = ("--help", "judge --help", "leaderboard", "status", "sql --describe")
STAGES = ("ingest", "assemble", "sample", "judge", "aggregate", "select-hard", "check")


@dataclass
class Cost:
    """Seconds of CPU, of wall time, and until the first request arrived; None without one."""

    cpu_s: float
    wall_s: float
    first_call_s: float | None = None


def cost_of(
    command: Sequence[str | Path], folder: Path, server: FaultServer | None = None, **more: str
) -> Cost:
    """Run a command to its end; measure it with all processes that it starts."""
    # The environment of a user without a Prefect server, whose Python keeps bytecode, which is the
    # default.
    left_out = ("PREFECT_", "PYTHONDONTWRITEBYTECODE")
    own = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    own |= {"PREFECT_HOME": str(folder / "prefect"), "LITELLM_LOCAL_MODEL_COST_MAP": "True"} | more
    n_before = len(server.entries) if server else 0
    before = os.times()
    began_s = time.monotonic()
    done = subprocess.run(
        command,
        cwd=folder,
        env=own,
        capture_output=True,
        check=False,
    )
    wall_s = time.monotonic() - began_s
    after = os.times()
    if done.returncode:
        raise SystemExit(
            f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr.decode()}"
        )
    cpu_s = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    calls = server.entries[n_before:] if server else []
    return Cost(cpu_s, wall_s, calls[0].arrived_at_s - began_s if calls else None)


def configured(folder: Path, server: FaultServer, *labels: str) -> None:
    """Configure models on the shipped sample, and a judge."""
    models = [endpoint(label, server.api_base) for label in labels]
    configure(
        folder,
        dataset={"source": "sample"},
        models=models,
        judges=[endpoint("judge", server.api_base)],
    )


def measured(folder: Path) -> dict[str, Cost]:
    """The cost of each command in each situation, by name."""
    for name in LIBRARIES:
        cost_of([sys.executable, "-c", name], folder)  # so that its bytecode exists
    costs = {name: cost_of([sys.executable, "-c", name], folder) for name in LIBRARIES}
    with FaultServer() as server:
        configured(folder, server, "a")
        costs["run, new folder"] = cost_of([PRBENCH, "run"], folder, server)
        costs["run, finished"] = cost_of([PRBENCH, "run"], folder, server)
        for command in (*LOOKING, *(f"{stage}, finished" for stage in STAGES)):
            costs[command] = cost_of(
                [PRBENCH, *command.removesuffix(", finished").split()], folder, server
            )
        for number, options in enumerate(([], ["--no-prefect"])):
            configured(folder, server, "a", f"b{number}")
            costs[" ".join(["run, another model", *options])] = cost_of(
                [PRBENCH, "run", *options], folder, server
            )
        home = folder / "server"
        shared = folder / "shared"
        home.mkdir()
        shared.mkdir()
        with serving_prefect(home, shared) as prefect:
            named = {"PREFECT_API_URL": prefect.url, "PREFECT_API_AUTH_STRING": prefect.secret}
            costs["run, finished, with a server"] = cost_of(
                [PRBENCH, "run"], folder, server, **named
            )
            configured(folder, server, "a", "c")
            costs["run, another model, with a server"] = cost_of(
                [PRBENCH, "run"], folder, server, **named
            )
    return costs


def main() -> None:
    """Measure and print."""
    given = arguments(__doc__, keeps=True)
    with tempfile.TemporaryDirectory(prefix="speed-") as name:
        costs = measured(Path(name))
    rows = [
        (
            what,
            f"{cost.cpu_s:.2f}",
            f"{cost.cpu_s / costs[BASELINE].cpu_s:.2f}",
            f"{cost.wall_s:.2f}",
            "" if cost.first_call_s is None else f"{cost.first_call_s:.2f}",
        )
        for what, cost in costs.items()
    ]
    markdown(["command", "CPU s", f"to {BASELINE}", "wall s", "first call s"], rows)
    figures = [
        Figure(what, cost.cpu_s, BASELINE, costs[BASELINE].cpu_s) for what, cost in costs.items()
    ]
    print(report("speed_commands", figures, must_keep=given.keep))


if __name__ == "__main__":
    main()
