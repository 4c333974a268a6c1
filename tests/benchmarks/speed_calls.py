"""Calls per second, and CPU per call: the judge stage, alone and with Ray senders, beside a bare
loop.

Every client has the same prompts and the same concurrency; the provider, Ray's own processes and
the client share the machine. Figures are measured from the first call to the last, without imports.
"""

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from statistics import median_high

from tests.benchmarks.bench import (
    SENDERS,
    Figures,
    client_figures,
    in_process_of_its_own,
)
from tests.benchmarks.figures import Figure, parse_arguments, print_markdown, report
from tests.faults.process import ServerProcess

CLIENTS = ("stage", "litellm", "openai", *SENDERS)
MEASURES: dict[str, Callable[[Figures], float]] = {
    "ms a call": lambda figures: 1000 / figures.calls_a_second,
    "CPU ms a call": lambda figures: figures.cpu_ms_a_call,
    "senders' CPU ms a call": lambda figures: (
        1000 * figures.senders_cpu_s / figures.calls
    ),
}


def measured(client: str, options: Namespace, latency_s: float) -> Figures:
    """Return the figures of a client, which has a provider of its own."""
    with ServerProcess(latency_s=latency_s) as server:
        figures = in_process_of_its_own(
            client_figures,
            client,
            server.api_base,
            options.calls,
            options.at_once,
        )
    if figures.failures:
        print(f"{client}: {figures.failures} of {figures.calls} calls failed")
    return figures


def medians(rounds: Sequence[Figures]) -> list[float]:
    """Return the median of each of the `MEASURES`."""
    return [median_high(map(measure, rounds)) for measure in MEASURES.values()]


def print_comparison(
    figures: Mapping[str, Sequence[Figures]],
    options: Namespace,
    latency_s: float,
):
    """Print the figures of all clients, beside those of the baseline."""
    print(
        f"{options.calls} calls, {options.at_once} at once, {latency_s:g} s each, the provider on"
        " the same cores"
    )
    baseline = "litellm" if "litellm" in figures else CLIENTS[0]
    baseline_medians = medians(figures[baseline])
    rows = []
    compared = []
    for client, rounds in figures.items():
        client_medians = medians(rounds)
        ratios = [client_medians[index] / baseline_medians[index] for index in (0, 1)]
        rows.append(
            [
                client,
                f"{1000 / client_medians[0]:.0f}",
                *(f"{value:.2f}" for value in (*client_medians, *ratios)),
                f"{max(round_figures.peak_mb for round_figures in rounds):.0f}",
            ]
        )
        for unit, value, beside in zip(
            MEASURES,
            client_medians,
            baseline_medians,
            strict=True,
        ):
            if client != baseline and beside:
                compared.append(
                    Figure(f"{client}, {unit}", value, baseline, beside, unit)
                )
    ratio_columns = [f"ms / {baseline}", f"CPU / {baseline}"]
    print_markdown(["client", "calls/s", *MEASURES, *ratio_columns, "peak MB"], rows)
    name = f"speed_calls, {options.at_once} at once, {latency_s:g} s"
    print(report(name, compared, must_keep=options.keep))


def main():
    """Measure and print."""
    options = parse_arguments(
        __doc__,
        keeps=True,
        calls=(3_000, "calls of each client"),
        at_once=(64, "calls at once"),
        latency_s=([0.0], "how long each reply takes"),
        clients=list(CLIENTS),
        rounds=(1, "how often; the median of each figure is shown"),
    )
    for latency_s in options.latency_s:
        figures = {client: [] for client in options.clients}
        for _ in range(options.rounds):
            for client in options.clients:
                figures[client].append(measured(client, options, latency_s))
        print_comparison(figures, options, latency_s)


if __name__ == "__main__":
    main()
