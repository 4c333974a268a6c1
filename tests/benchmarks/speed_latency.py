"""How close the judge stage comes to a client without any overhead, where each answer takes a while.

The time from the first request's arrival at the server to the last answer is held against that of a simulated queue:
the same latencies, the same number of calls at once, and nothing around them.
"""

import heapq
from collections.abc import Mapping, Sequence
from typing import Any

from tests.benchmarks.bench import CRITERIA, WARM_UP, client_figures, in_process_of_its_own, table
from tests.benchmarks.figures import Figure, arguments, report
from tests.faults.behaviours import BookedRequest, lognormal_latency
from tests.faults.process import ServerProcess

CLIENTS = ("stage", "litellm", "openai")
SEED = 20251114


def efficiency(book: Sequence[Mapping[str, Any]], at_once: int, mean_s: float, sigma: float) -> float:
    """The simulated queue's time by the measured one, over all calls but those of the warm-up."""
    entries = sorted(book, key=lambda entry: entry["arrived_at_s"])[WARM_UP:]
    latency = lognormal_latency(SEED, mean_s, sigma)
    waits_s = []
    for entry in entries:
        asked = BookedRequest({})
        asked.digest = entry["digest"]
        waits_s.append(latency(asked, entry["number"]))
    measured_s = max(entry["responded_at_s"] for entry in entries) - entries[0]["arrived_at_s"]
    return queue_s(waits_s, at_once) / measured_s


def queue_s(waits_s: Sequence[float], at_once: int) -> float:
    """Return the end of the last call, if each starts as soon as one of `at_once` slots is free."""
    free_at_s = [0.0] * at_once
    for wait_s in waits_s:
        heapq.heapreplace(free_at_s, free_at_s[0] + wait_s)
    return max(free_at_s)


def main() -> None:
    """Measure and print."""
    asked = arguments(
        __doc__, keeps=True, at_once=([64, 256], "calls at once"), clients=list(CLIENTS),
        rounds_of_calls=(30, "calls of each place, one after the other"), mean_s=(1.0, "mean latency"),
        sigma=(0.5, "how much it varies, as for a lognormal"),
    )  # fmt: skip
    rows, found = [], []
    for at_once in asked.at_once:
        n_calls = WARM_UP + -(-at_once * asked.rounds_of_calls // CRITERIA) * CRITERIA
        for client in asked.clients:
            with ServerProcess(seed=SEED, latency_mean_s=asked.mean_s, latency_sigma=asked.sigma) as server:
                figures = in_process_of_its_own(client_figures, client, server.api_base, n_calls, at_once)
            share = efficiency(server.read_book(), at_once, asked.mean_s, asked.sigma)
            rows.append((client, at_once, figures.calls, f"{share:.3f}",
                         f"{figures.cpu_ms_a_call:.2f}", figures.failures))  # fmt: skip
            found.append(Figure(f"{client} at {at_once}", 1 / share, "the simulated queue", 1.0, "of its time"))
            print(f"{client} at {at_once}: {share:.3f}", flush=True)
    print(f"latency {asked.mean_s:g} s, sigma {asked.sigma:g}; efficiency is against a client without overhead")
    print(table(["client", "at once", "calls", "efficiency", "CPU s per 1,000", "failed"], rows))
    what = f"speed_latency, {asked.mean_s:g} s, sigma {asked.sigma:g}, {asked.rounds_of_calls} rounds"
    print(report(what, found, must_keep=asked.keep))


if __name__ == "__main__":
    main()
