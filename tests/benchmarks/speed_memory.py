"""Peak memory of the judge stage after few calls and after many: does it grow with their number?"""

from tests.benchmarks.bench import in_process_of_its_own, judge_stage, table
from tests.benchmarks.figures import Figure, arguments, report
from tests.faults.process import ServerProcess


def main() -> None:
    """Measure and print."""
    calls = [2_000, 20_000]
    asked = arguments(__doc__, keeps=True, calls=(calls, "calls of each run"), at_once=(64, "calls at once"))
    rows, figures = [], []
    first_mb = 0.0
    for n_calls in asked.calls:
        with ServerProcess() as server:
            found = in_process_of_its_own(judge_stage, server.api_base, n_calls, asked.at_once)
        first_mb = first_mb or found.peak_mb
        figures.append(Figure(f"{n_calls} calls", found.peak_mb, f"{asked.calls[0]} calls", first_mb, "MB"))
        rows.append(
            (found.calls, f"{found.peak_mb:.0f}", f"{found.peak_mb / first_mb:.2f}", f"{found.calls_a_second:.0f}")
        )
        print(f"{found.calls} calls: {found.peak_mb:.0f} MB", flush=True)
    print(table(["calls", "MB", "to the first", "calls/s"], rows))
    print(report(f"speed_memory, {asked.at_once} at once", figures[1:], must_keep=asked.keep))


if __name__ == "__main__":
    main()
