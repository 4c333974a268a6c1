"""The report at full size: its size, and the cost to build it, to build it again, and to build it
after another night.

The cost is compared with that of a plain copy of the same rows to compressed JSON by DuckDB. The
texts are made-up words, which compress worse than real texts.
"""

import tempfile
from pathlib import Path

import duckdb

from flows.report import write_report
from tasks.aggregate import aggregate
from tasks.config.job import Job
from tests.benchmarks.bench import Clock, Figures, in_process_of_its_own
from tests.benchmarks.figures import Figure, parse_arguments, print_markdown, report
from tests.benchmarks.synthetic import REVISION, Size, add_night, synthetic_warehouse
from tests.kit import job_on
from warehouse import Warehouse

_COPIES = {
    "responses": (
        "task_id, model, trial, status, error, text, chars_alnum, completion_tokens, cost_usd,"
        " latency_s"
    ),
    "verdicts": "task_id, criterion_id, model, trial, judge, status, explanation, error",
    "criteria": "task_id, criterion_id, position, title, category, severity, weight",
    "message_rows": "task_id, position, role, content",
}
"""The columns of each table that the drill-down shows."""


Built = tuple[Figures, float]
"""The cost of a build, and the size of the report in MB."""


def job_of(folder: Path) -> Job:
    """A job on a made-up warehouse."""
    return job_on(
        "hub",
        folder,
        dataset={
            "source": "hub",
            "revision": REVISION,
            "splits": ["finance", "legal"],
        },
    )


def fill(folder: Path, size: Size):
    """Make the warehouse, and publish it."""
    synthetic_warehouse(folder, size)
    aggregate(job_of(folder))


def one_night_more(folder: Path, size: Size):
    """Add a new sampling of one model, and publish it."""
    night = f"night-{len(Warehouse(folder).store.current_parts('responses')):03d}"
    add_night(Warehouse(folder), size, "model-00", night)
    aggregate(job_of(folder))


def built(folder: Path, site: Path) -> Built:
    """Build the report."""
    clock = Clock()
    n_bytes = write_report(job_of(folder), site)
    return clock.figures(1), n_bytes / 1e6


def copied(folder: Path, target: Path) -> Built:
    """Copy the rows that the report shows, and nothing else, to compressed JSON."""
    target.mkdir(exist_ok=True)
    clock = Clock()
    with duckdb.connect(
        str(Warehouse(folder).database), read_only=True
    ) as connection:
        for name, columns in _COPIES.items():
            connection.execute(
                f"copy (select {columns} from {name}) to '{target / name}.json.gz' (format json)"
            )
    figures = clock.figures(1)
    return figures, sum(path.stat().st_size for path in target.iterdir()) / 1e6


def main():
    """Measure and print."""
    options = parse_arguments(
        __doc__,
        keeps=True,
        models=20,
        trials=3,
        response_words=(700, "about 5,000 characters"),
        explanation_words=45,
        folder=(Path, "keep the made-up warehouse here and use it again"),
    )
    size = Size(
        models=options.models,
        trials=options.trials,
        response_words=options.response_words,
        explanation_words=options.explanation_words,
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary) / "warehouse"
        site = Path(temporary) / "site"
        in_process_of_its_own(fill, folder, size)
        copy, copy_mb = in_process_of_its_own(
            copied, folder, Path(temporary) / "copy"
        )
        builds = {
            "first": in_process_of_its_own(built, folder, site),
            "again": in_process_of_its_own(built, folder, site),
        }
        in_process_of_its_own(one_night_more, folder, size)
        builds["after a night of one model"] = in_process_of_its_own(
            built,
            folder,
            site,
        )
    baseline = "a plain copy to JSON"
    rows = []
    for name, (cost, site_mb) in {baseline: (copy, copy_mb), **builds}.items():
        rows.append(
            [
                name,
                f"{cost.seconds:.1f}",
                f"{cost.seconds / copy.seconds:.2f}",
                f"{cost.cpu_s:.1f}",
                f"{cost.cpu_s / copy.cpu_s:.2f}",
                f"{cost.peak_mb:.0f}",
                f"{site_mb:.0f}",
                f"{site_mb / copy_mb:.2f}",
            ]
        )
    print_markdown(
        ["build", "s", "ratio", "CPU s", "ratio", "peak MB", "MB", "ratio"], rows
    )
    figures = [
        Figure(name, cost.cpu_s, baseline, copy.cpu_s)
        for name, (cost, _) in builds.items()
    ]
    print(
        report(
            f"speed_report, {size.verdicts:,} verdicts",
            figures,
            must_keep=options.keep,
        )
    )


if __name__ == "__main__":
    main()
