"""Calls per second, and CPU per call: the judge stage, alone and with Ray senders, beside a bare
loop.

Every client has the same prompts and the same concurrency; the provider, Ray's own processes and
the client share the machine. Figures are measured from the first call to the last, without imports.
"""

from itertools import product
from statistics import median_high

from tests.benchmarks.bench import SENDERS, Figures, client_figures, in_process_of_its_own
from tests.benchmarks.figures import Figure, arguments, markdown, report
from tests.faults.process import ServerProcess

CLIENTS = ("stage", "litellm", *SENDERS)
MEASURES = {
    "ms a call": lambda of: 1000 / of.calls_a_second,
    "CPU ms a call": lambda of: of.cpu_ms_a_call,
    "senders' CPU ms a call": lambda of: 1000 * of.senders_cpu_s / of.calls,
}


def main() -> None:
    """Measure and print."""
    given = arguments(
        __doc__,
        keeps=True,
        calls=(3_000, "calls of each client"),
        at_once=(64, "calls at once"),
        latency_s=([0.0], "how long each reply takes"),
        clients=list(CLIENTS),
        rounds=(1, "how often; the median of each figure is shown"),
    )
    for latency_s in given.latency_s:
        figures_of: dict[str, list[Figures]] = {client: [] for client in given.clients}
        for _, client in product(range(given.rounds), given.clients):
            with ServerProcess(latency_s=latency_s) as server:
                of_client = client, server.api_base, given.calls, given.at_once
                figures = in_process_of_its_own(client_figures, *of_client)
            figures_of[client].append(figures)
            if figures.failures:
                print(f"{client}: {figures.failures} of {figures.calls} calls failed")
        print(
            f"{given.calls} calls, {given.at_once} at once, {latency_s:g} s each, the provider on"
            " the same cores"
        )
        medians = {
            name: [median_high(map(of, each)) for of in MEASURES.values()]
            for name, each in figures_of.items()
        }
        base = "litellm" if "litellm" in figures_of else CLIENTS[0]
        rows = [
            (
                client,
                f"{1000 / each[0]:.0f}",
                *(f"{value:.2f}" for value in each),
                *(f"{each[i] / medians[base][i]:.2f}" for i in (0, 1)),
                f"{max(of.peak_mb for of in figures_of[client]):.0f}",
            )
            for client, each in medians.items()
        ]
        markdown(["client", "calls/s", *MEASURES, f"ms / {base}", f"CPU / {base}", "peak MB"], rows)
        compared = [
            Figure(f"{client}, {unit}", value, base, beside, unit)
            for client, each in medians.items()
            for unit, value, beside in zip(MEASURES, each, medians[base], strict=True)
            if client != base and beside
        ]
        name = f"speed_calls, {given.at_once} at once, {latency_s:g} s"
        print(report(name, compared, must_keep=given.keep))


if __name__ == "__main__":
    main()
