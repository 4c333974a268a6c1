"""The provider as a command: it prints its address and serves until it is told to end."""

import argparse
import asyncio
import gc
import resource
import signal
from pathlib import Path

from tests.faults.behaviours import Behaviour, seeded_faults, slowed, well_behaved
from tests.faults.process import BookFile
from tests.faults.server import FaultServer


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--seed", type=int, default=0, help="decides which calls fail")
    parser.add_argument("--fault-rate", type=float, default=0.0, help="the share of calls that fail")
    parser.add_argument("--latency-s", type=float, default=0.0, help="time of each response")
    parser.add_argument("--book", type=Path, help="a file that gets a line of JSON for every served request")
    return parser.parse_args()


def _behaviour(arguments: argparse.Namespace) -> Behaviour:
    behaviour: Behaviour = well_behaved
    if arguments.fault_rate > 0:
        behaviour = seeded_faults(arguments.seed, arguments.fault_rate)
    return slowed(arguments.latency_s, behaviour) if arguments.latency_s > 0 else behaviour


async def _serve(server: FaultServer) -> None:
    for ending in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(ending, server.stop)
    await server.serve(lambda: print(server.api_base, flush=True))


def main() -> None:
    """Serve as the arguments say."""
    arguments = _arguments()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    on_response = BookFile(arguments.book).append if arguments.book else None
    server = FaultServer(_behaviour(arguments), port=arguments.port, keeps_book=False, on_response=on_response)
    gc.freeze()  # the libraries stay; the collector need not walk through them again and again
    asyncio.run(_serve(server))


if __name__ == "__main__":
    main()
