"""A run over the sample, killed at random instants until it has come to its end; then book and tables are compared.

    python -m tests.faults.kills --kills 1000            the stages' process, many runs over the sample
    python -m tests.faults.kills --kills 10 --of command  `prbench run` itself; set PREFECT_API_URL to save time

The stages' process (`--be-the-stage`) is this program, too; it is described in `forked`.
"""

import argparse
import dataclasses
import json
import tempfile
from pathlib import Path

from tests.faults.kills.forked import be_the_stage
from tests.faults.kills.killing import MOST_COLD_GAP_S, SEED, Killing, provider
from tests.faults.kills.starting import command_started, configured, started_stages


def main() -> None:
    """Kill as the arguments say, and print what that came to."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.kills", description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--of", choices=["stage", "command"], default="stage")
    parser.add_argument("--be-the-stage", action="store_true", help="for this program's own use")
    given = parser.parse_args()
    if given.be_the_stage:
        be_the_stage()
        return
    with tempfile.TemporaryDirectory(prefix="kills-") as name, provider() as server:
        configured(Path(name), server.api_base)
        if given.of == "command":
            killing = Killing(Path(name), server, command_started, 3.0, 0.0, given.seed, most_gap_s=MOST_COLD_GAP_S)
        else:
            killing = Killing(Path(name), server, started_stages().start, seed=given.seed)
        print(json.dumps(dataclasses.asdict(killing.kill(given.kills))))


if __name__ == "__main__":
    main()
