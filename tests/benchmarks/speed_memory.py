"""Peak memory of the judge stage after few calls and after many: does it grow with their number?"""

import argparse
import asyncio
import tempfile
from pathlib import Path

from tests.benchmarks.bench import Figures, in_process_of_its_own, judge_all, owing_job, table
from tests.faults.process import ServerProcess


def measure(api_base: str, n_calls: int, at_once: int, processes: int) -> Figures:
    """The figures of a stage of so many calls."""
    judge = {"name": "hosted_vllm/judge", "api_base": api_base}
    with tempfile.TemporaryDirectory(prefix="speed-") as folder:
        limits = {"concurrency": at_once, "processes": processes}
        job = in_process_of_its_own(owing_job, Path(folder), n_calls, judge, limits)
        return asyncio.run(judge_all(job))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.speed_memory", description=__doc__)
    parser.add_argument("--calls", type=int, nargs="+", default=[2_000, 20_000], help="calls of each run")
    parser.add_argument("--at-once", type=int, default=64, help="calls at once")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2], help="processes of the stage")
    asked = parser.parse_args()
    rows = []
    for processes in asked.processes:
        first_mb = 0.0
        for n_calls in asked.calls:
            with ServerProcess() as server:
                found = in_process_of_its_own(measure, server.api_base, n_calls, asked.at_once, processes)
            own_mb, of_workers_mb = found.peak_mb[0], found.peak_mb[1:]
            first_mb = first_mb or sum(found.peak_mb)
            rows.append((processes, found.calls, f"{own_mb:.0f}", " ".join(f"{mb:.0f}" for mb in of_workers_mb) or "-",
                         f"{sum(found.peak_mb) / first_mb:.2f}", f"{found.calls_a_second:.0f}"))  # fmt: skip
            print(f"{processes} processes, {found.calls} calls: {sum(found.peak_mb):.0f} MB", flush=True)
    print(table(["processes", "calls", "run MB", "workers MB", "to the first", "calls/s"], rows))


if __name__ == "__main__":
    main()
