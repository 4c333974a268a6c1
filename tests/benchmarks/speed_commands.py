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

from tests.benchmarks.figures import Figure, parse_arguments, print_markdown, report
from tests.faults.server import FaultServer
from tests.flows.prefect_server import serving_prefect
from tests.kit import configure, endpoint

PRBENCH = Path(sys.executable).with_name("prbench")
BASELINE = "import prefect"
LIBRARIES = (
    BASELINE,
    "import litellm",
    "import great_expectations",
    "import flows.stages",
)
LOOKING = ("--help", "judge --help", "leaderboard", "status", "sql --describe")
STAGES = (
    "ingest",
    "assemble",
    "sample",
    "judge",
    "aggregate",
    "select-hard",
    "check",
)


@dataclass
class Cost:
    """Seconds of CPU, of wall time, and until the first request arrived; None without one."""

    cpu_s: float
    wall_s: float
    first_call_s: float | None = None


def cost_of(
    command: Sequence[str | Path],
    folder: Path,
    server: FaultServer | None = None,
    **more: str,
) -> Cost:
    """Run a command to its end; measure it with all processes that it starts."""
    # The environment of a user without a Prefect server, whose Python keeps bytecode, which is the
    # default.
    left_out = ("PREFECT_", "PYTHONDONTWRITEBYTECODE")
    environment = {
        "PREFECT_HOME": str(folder / "prefect"),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        **more,
    }
    for name, value in os.environ.items():
        if not name.startswith(left_out):
            environment.setdefault(name, value)
    n_requests = len(server.entries) if server else 0
    start = os.times()
    began_s = time.monotonic()
    process = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        check=False,
    )
    wall_s = time.monotonic() - began_s
    end = os.times()
    if process.returncode:
        text = " ".join(map(str, command))
        raise SystemExit(
            f"{text}: exit {process.returncode}\n{process.stderr.decode()}"
        )
    user_s = end.children_user - start.children_user
    system_s = end.children_system - start.children_system
    requests = server.entries[n_requests:] if server else []
    first_call_s = requests[0].arrived_at_s - began_s if requests else None
    return Cost(user_s + system_s, wall_s, first_call_s)


def configured(folder: Path, server: FaultServer, *labels: str):
    """Configure models on the shipped sample, and a judge."""
    models = [endpoint(label, server.api_base) for label in labels]
    configure(
        folder,
        dataset={"source": "sample"},
        models=models,
        judges=[endpoint("judge", server.api_base)],
    )


def measured(folder: Path) -> dict[str, Cost]:
    """Return the cost of each command in each situation, by name."""
    costs = {}
    for name in LIBRARIES:
        command = [sys.executable, "-c", name]
        cost_of(command, folder)  # so that its bytecode exists
        costs[name] = cost_of(command, folder)
    with FaultServer() as server:

        def cost(arguments, **environment):
            return cost_of(
                [PRBENCH, *arguments.split()], folder, server, **environment
            )

        configured(folder, server, "a")
        costs["run, new folder"] = cost("run")
        costs["run, finished"] = cost("run")
        costs |= {arguments: cost(arguments) for arguments in LOOKING}
        costs |= {f"{stage}, finished": cost(stage) for stage in STAGES}
        configured(folder, server, "a", "b0")
        costs["run, another model"] = cost("run")
        configured(folder, server, "a", "b1")
        costs["run, another model --no-prefect"] = cost("run --no-prefect")
        home = folder / "server"
        shared = folder / "shared"
        home.mkdir()
        shared.mkdir()
        with serving_prefect(home, shared) as prefect:
            environment = {
                "PREFECT_API_URL": prefect.url,
                "PREFECT_API_AUTH_STRING": prefect.secret,
            }
            costs["run, finished, with a server"] = cost("run", **environment)
            configured(folder, server, "a", "c")
            costs["run, another model, with a server"] = cost("run", **environment)
    return costs


def main():
    """Measure and print."""
    options = parse_arguments(__doc__, keeps=True)
    with tempfile.TemporaryDirectory(prefix="speed-") as name:
        costs = measured(Path(name))
    baseline_s = costs[BASELINE].cpu_s
    rows = []
    figures = []
    for command, cost in costs.items():
        first_call = "" if cost.first_call_s is None else f"{cost.first_call_s:.2f}"
        times = (
            f"{cost.cpu_s:.2f}",
            f"{cost.cpu_s / baseline_s:.2f}",
            f"{cost.wall_s:.2f}",
        )
        rows.append([command, *times, first_call])
        figures.append(Figure(command, cost.cpu_s, BASELINE, baseline_s))
    print_markdown(
        ["command", "CPU s", f"to {BASELINE}", "wall s", "first call s"], rows
    )
    print(report("speed_commands", figures, must_keep=options.keep))


if __name__ == "__main__":
    main()
