"""Calls a second, and CPU a call of the driver and of its senders: the judge stage with 1, 2 and 4 senders of Ray.

Beside it are the same stage without Ray and a bare LiteLLM loop. The provider, Ray's own processes, driver and senders
share the machine. The figures are those between the first call and the last. How many calls a second the driver can
take is measured with a sender that makes no call and answers by itself.
"""

import asyncio
import os
from pathlib import Path

from tasks.llm.senders import pool
from tests.benchmarks import bench
from tests.benchmarks.bench import Figures, in_process_of_its_own, table
from tests.benchmarks.figures import Figure, arguments, report
from tests.faults.process import ServerProcess

BARE, HERE, NO_CALLS = "LiteLLM loop", "stage", "1 sender without calls"
SENDERS = {"1 sender": 1, "2 senders": 2, "4 senders": 4, NO_CALLS: 1}
CLIENTS = (BARE, HERE, *SENDERS)


def measure(client: str, api_base: str, n_calls: int, at_once: int) -> Figures:
    """The figures of one client."""
    if client == BARE:
        return asyncio.run(bench.bare_litellm("hosted_vllm/judge", api_base, bench.prompts(n_calls), at_once))
    calls = {"where": "ray", "address": "local", "senders": SENDERS[client]} if client in SENDERS else {}
    if client == NO_CALLS:
        os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])
        pool.SenderProcess = bench.AnswersByItself  # type: ignore[misc]
    return bench.judge_stage(api_base, n_calls, at_once, calls=calls)


def main() -> None:
    """Measure and print."""
    asked = arguments(
        __doc__, keeps=True, calls=(3_000, "calls of each client"), at_once=(128, "calls at once"),
        latency_s=([0.0, 0.2], "how long each answer takes"), clients=list(CLIENTS),
    )  # fmt: skip
    for latency_s in asked.latency_s:
        found = {}
        for client in asked.clients:
            with ServerProcess(latency_mean_s=latency_s) as server:
                figures = in_process_of_its_own(measure, client, server.api_base, asked.calls, asked.at_once)
            found[client] = figures
            if figures.failures:
                print(f"{client}: {figures.failures} of {figures.calls} calls failed")
        print(f"{asked.calls} calls, {asked.at_once} at once, {latency_s:g} s each, the provider on the same cores")
        header = ["client", "calls/s", "driver's CPU ms", "senders' CPU ms", f"calls/s beside {BARE}"]
        print(table(header, _rows(found)))
        name = f"speed_senders, {asked.at_once} at once, {latency_s:g} s"
        print(report(name, _figures(found), must_keep=asked.keep))


def _rows(found: dict[str, Figures]) -> list[tuple[str, ...]]:
    base = found.get(BARE)
    return [
        (
            client, f"{of.calls_a_second:.0f}", f"{of.cpu_ms_a_call:.2f}",
            f"{1000 * of.senders_cpu_s / of.calls:.2f}" if of.senders_cpu_s else "",
            f"{of.calls_a_second / base.calls_a_second:.2f}" if base else "",
        )
        for client, of in found.items()
    ]  # fmt: skip


def _figures(found: dict[str, Figures]) -> list[Figure]:
    """What is compared with earlier runs: each client beside the bare loop."""
    base = found.get(BARE)
    if base is None:
        return []
    others = {client: of for client, of in found.items() if client != BARE}
    return [
        figure
        for client, of in others.items()
        for figure in (
            Figure(f"{client}, ms a call", 1000 / of.calls_a_second, BARE, 1000 / base.calls_a_second, "ms a call"),
            Figure(f"{client}, driver's CPU", of.cpu_ms_a_call, BARE, base.cpu_ms_a_call, "CPU ms a call"),
        )
    ]


if __name__ == "__main__":
    main()
