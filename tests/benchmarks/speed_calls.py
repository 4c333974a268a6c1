"""Calls a second and CPU a call with a server that answers at once: the judge stage beside bare loops.

Every client has the same prompts and the same concurrency, and server and client share the machine. The CPU figure is
that between the first call and the last; imports are not in it.
"""

from statistics import median_high

from tests.benchmarks.bench import Figures, client_figures, in_process_of_its_own, table
from tests.benchmarks.figures import Figure, arguments, report
from tests.faults.process import ServerProcess

CLIENTS = ("stage", "litellm-hosted_vllm", "litellm-openai", "openai")
_BASES = CLIENTS[1:]


def main() -> None:
    """Measure and print."""
    asked = arguments(
        __doc__, keeps=True, calls=(3_000, "calls of each client"), at_once=(64, "calls at once"),
        rounds=(1, "how often; the median of each figure is shown"), clients=list(CLIENTS),
        route=("hosted_vllm", "by which LiteLLM route the stage calls"),
    )  # fmt: skip
    found: dict[str, list[Figures]] = {client: [] for client in asked.clients}
    for _ in range(asked.rounds):
        for client in asked.clients:
            with ServerProcess() as server:
                of_client = (client, server.api_base, asked.calls, asked.at_once, asked.route)
                figures = in_process_of_its_own(client_figures, *of_client)
            found[client].append(figures)
            if figures.failures:
                print(f"{client}: {figures.failures} of {figures.calls} calls failed")
    print(f"{asked.calls} calls, {asked.at_once} at once, a server without latency on the same cores")
    speed = {client: median_high([each.calls_a_second for each in of]) for client, of in found.items()}
    cpu = {client: median_high([each.cpu_ms_a_call for each in of]) for client, of in found.items()}
    bases = [base for base in _BASES if base in found]
    header = ["client", "calls/s", "CPU s per 1,000", *(f"CPU / {base}" for base in bases)]
    print(table(header, [
        (client, f"{speed[client]:.0f}", f"{cpu[client]:.2f}", *(f"{cpu[client] / cpu[base]:.2f}" for base in bases))
        for client in found
    ]))  # fmt: skip
    print(report(f"speed_calls, {asked.at_once} at once, by {asked.route}", _figures(found), must_keep=asked.keep))


def _figures(found: dict[str, list[Figures]]) -> list[Figure]:
    """What is compared with earlier runs: each client beside the first of the bare loops."""
    base = next((client for client in _BASES if client in found), None)
    measures = {"CPU ms a call": lambda each: each.cpu_ms_a_call, "ms a call": lambda each: 1000 / each.calls_a_second}
    return [
        Figure(
            f"{client}, {unit}",
            median_high([*map(of, found[client])]),
            base,
            median_high([*map(of, found[base])]),
            unit,
        )
        for client in found
        for unit, of in measures.items()
        if base is not None and client != base
    ]


if __name__ == "__main__":
    main()
