"""Many nights in a row, one model sampled anew in each: what a night takes, and what the warehouse grows by.

Everything is as `prbench nightly` does it (locks, records, comparisons, tidying up), only that the stages are called
without Prefect. The provider answers at once, and each night's answers are new ones. Since the nights are small and
follow at once, they compact from fewer files on, raw replies are kept for some nights' seconds where a real
configuration names days, and replaced files go without the hour that readers have otherwise.
"""

import asyncio
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partialmethod
from pathlib import Path
from typing import Any
from unittest.mock import patch

from flows import nightly
from flows.execution import Execution, execute
from tasks.aggregate import aggregate
from tasks.config.job import Job
from tasks.drift import choose_control_set, judge_control_set
from tasks.hard_subset.select import select_hard
from tasks.maintain import upkeep
from tasks.run.run_context import LEDGER
from tasks.run.writing import StageReport
from tests.benchmarks.bench import table
from tests.benchmarks.figures import arguments
from tests.faults.behaviours import HttpResponse, Request, is_judge_request, well_behaved
from tests.faults.server import FaultServer
from tests.kit import good_row, job_on, judged, prepared, sampled, write_jsonl
from tests.tasks.dataset.rows import hub_criterion
from warehouse import Warehouse

_FIRST = date(2026, 1, 1)
_COLUMNS = (
    "night", "calls", "s", "CPU s", "parts", "files", "parts MB", "database MB", "ledger MB", "other MB", "memory MB",
)  # fmt: skip
_MANY_ROWS = 20
_KEPT_S = 60.0
"""How long raw replies are kept here."""


@dataclass(frozen=True)
class Size:
    """The size of the data; from `many_parts` files on, a night compacts."""

    nights: int
    tasks: int
    models: int
    criteria: int
    many_parts: int


@dataclass
class Night:
    """The cost of a night, and the size of the data after it."""

    label: str
    calls: int
    seconds: float
    cpu_s: float
    n_parts: int
    n_files: int
    bytes_of: dict[str, int]
    peak_mb: float
    rows_of: dict[str, int] = field(default_factory=dict)

    @property
    def cells(self) -> Sequence[object]:
        """The night as a line of the table."""
        sizes = [f"{self.bytes_of[name] / 1e6:.1f}" for name in ("parts", "database", "ledger", "other")]
        return (
            self.label, self.calls, f"{self.seconds:.1f}", f"{self.cpu_s:.1f}", self.n_parts, self.n_files, *sizes,
            f"{self.peak_mb:.0f}",
        )  # fmt: skip


class Provider:
    """Answers that are new ones in every night, and a count of all calls."""

    def __init__(self) -> None:
        self.night = ""
        self.calls = 0

    def __call__(self, request: Request, number: int) -> HttpResponse:
        self.calls += 1
        good = well_behaved(request, number)
        return (
            good if is_judge_request(request) else HttpResponse(f"{good.text} Of {self.night}. " + "It is so. " * 100)
        )


def configured(folder: Path, api_base: str, size: Size) -> Job:
    """A job on made-up tasks; the first model is sampled anew in every night."""
    rows = []
    for i in range(size.tasks):
        rubric = [hub_criterion(f"task-{i}-c{j}", "important", 5) for j in range(size.criteria)]
        rows.append(good_row(f"task-{i}", prompt_0=f"What about number {i}?", rubric=rubric))
    at = {"api_base": api_base}
    models = [
        {"name": f"hosted_vllm/model-{i}", "label": f"model-{i}", "resample": "never" if i else "nightly", **at}
        for i in range(size.models)
    ]
    job = job_on(
        write_jsonl(folder / "tasks.jsonl", rows), folder / "warehouse", models=models,
        judges=[{"name": "hosted_vllm/judge", "label": "judge", **at}], drift={"verdicts": 50},
    )  # fmt: skip
    kept = job.settings.retention.model_copy(update={"replies_days": _KEPT_S / 86_400})  # no setting of a user
    return job.model_copy(update={"settings": job.settings.model_copy(update={"retention": kept})})


@contextmanager
def _without_prefect_and_soon(many_parts: int) -> Iterator[None]:
    def stages(job: Job) -> list[StageReport]:  # those of `flows.pipeline.night`
        reports = [sampled(prepared(job)), judged(job), choose_control_set(job), asyncio.run(judge_control_set(job))]
        return [*reports, aggregate(job), select_hard(job, must_select=False), upkeep.tidy(job, only_if_needed=True)]

    def run(job: Job, *_: Any, **__: Any) -> Execution:
        return execute(job, lambda: stages(job))

    with (
        patch.object(nightly, "execute_flow", run),
        patch.object(upkeep, "_MANY_PARTS", many_parts),
        patch.object(Warehouse, "compact", partialmethod(Warehouse.compact, grace_s=0.0)),
    ):
        yield


def simulated(folder: Path, size: Size) -> Iterator[Night]:
    """The nights, one after the other, in one process."""
    provider = Provider()
    with FaultServer(provider, keeps_book=False) as server, _without_prefect_and_soon(size.many_parts):
        job = configured(folder, server.api_base, size)
        for number in range(size.nights):
            provider.night = f"{_FIRST + timedelta(days=number)}"
            before, began_s, began_cpu_s = provider.calls, time.monotonic(), time.process_time()
            tonight = job.model_copy(update={"night": provider.night, "run_id": f"run-{number:03d}"})
            nightly.run_night(tonight, is_verbose=False)
            took_s, cpu_s = time.monotonic() - began_s, time.process_time() - began_cpu_s
            yield _seen(tonight, provider.calls - before, took_s, cpu_s)


def _seen(job: Job, calls: int, seconds: float, cpu_s: float) -> Night:
    warehouse = Warehouse(job.warehouse)
    of_folder = {"parts": warehouse.store.root, "ledger": job.warehouse / LEDGER, "database": warehouse.database}
    sizes = {path: path.stat().st_size for path in job.warehouse.rglob("*") if path.is_file()}
    bytes_of = {
        name: sum(n for file, n in sizes.items() if file.is_relative_to(place)) for name, place in of_folder.items()
    }
    bytes_of["other"] = sum(sizes.values()) - sum(bytes_of.values())
    query = "select table_name from duckdb_tables() where schema_name = 'main' order by all"
    with warehouse.reader() as reader:
        names = [row["table_name"] for row in reader.rows(query)]
        rows_of = {name: int(reader.value(f'select count(*) from "{name}"')) for name in names}
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Night(job.night or "", calls, seconds, cpu_s, warehouse.n_parts(), len(sizes), bytes_of, peak_mb, rows_of)


def growth(seen: Sequence[Night]) -> str:
    """Return a table of the cost and growth of the last third of the nights, beside the third before it."""
    n = len(seen) // 3
    thirds = [(seen[start : start + n], seen[start - 1]) for start in (n, 2 * n)]

    def a_night(count: Callable[[Night], float]) -> list[float]:
        return [(count(of[-1]) - count(before)) / n for of, before in thirds]

    lines: list[tuple[object, ...]] = [
        ("seconds a night", *(f"{sum(each.seconds for each in of) / n:.2f}" for of, _ in thirds)),
        ("CPU seconds a night", *(f"{sum(each.cpu_s for each in of) / n:.2f}" for of, _ in thirds)),
        ("most parts", *(max(each.n_parts for each in of) for of, _ in thirds)),
        ("most files", *(max(each.n_files for each in of) for of, _ in thirds)),
    ]
    for name in seen[0].bytes_of:
        more = a_night(lambda night, name=name: night.bytes_of[name] / 1e3)
        lines.append((f"{name}, kB more a night", *(f"{each:.0f}" for each in more)))
    for name, count in seen[-1].rows_of.items():
        more = a_night(lambda night, name=name: night.rows_of[name])
        if count > _MANY_ROWS and any(more):
            lines.append((f"rows of {name}, more a night", *(f"{each:.1f}" for each in more)))
    return table((f"of {n} nights", "middle third", "last third"), lines)


def main() -> None:
    """Simulate as the arguments say, and print what each night took and what grew."""
    given = arguments(
        __doc__, nights=30, tasks=60, models=3, criteria=(10, "of each task"),
        many_parts=(100, "files from which on a night compacts"),
    )  # fmt: skip
    size = Size(given.nights, given.tasks, given.models, given.criteria, given.many_parts)
    seen = []
    with tempfile.TemporaryDirectory(prefix="nights-") as folder:
        for night in simulated(Path(folder), size):
            seen.append(night)
            print(table(_COLUMNS, [night.cells]).splitlines()[-1], flush=True)
    print("\n" + table(_COLUMNS, [night.cells for night in seen]))
    if len(seen) >= 3:
        print("\n" + growth(seen))


if __name__ == "__main__":
    main()
