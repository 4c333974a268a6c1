"""`python -m tests.mutants.marts DIR`: publish made-up warehouses again, and compare their rows with
the kept outputs (`tests.golden`).

`--build` makes the warehouses in DIR first. The exit code is 1 if a row differs.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tasks.config.job import Job
from tests.golden.outputs import differences, kept, relations
from tests.tasks.report.synthetic.research import research_job
from tests.tasks.report.synthetic.world import report_world
from warehouse import Warehouse

WORLDS = {"world": report_world, "research": research_job}


def build(folder: Path):
    """Make the warehouses."""
    for name, world in WORLDS.items():
        (folder / name).mkdir(parents=True)
        text = world(folder / name).model_dump_json()
        (folder / name / "job.json").write_text(text)


def differing(folder: Path) -> list[str]:
    """Publish copies of the warehouses from their Parquet files; return differences of the first
    changed relation (one that is missing is not noticed).
    """
    kept_outputs = kept()
    for name in WORLDS:
        text = (folder / name / "job.json").read_text()
        job = Job.model_validate_json(text)
        with tempfile.TemporaryDirectory() as scratch:
            copy = Path(shutil.copytree(job.warehouse, Path(scratch) / "warehouse"))
            (copy / "prbench.duckdb").unlink()
            Warehouse(copy).publish()
            copied_job = job.model_copy(update={"warehouse": copy})
            for relation, lines in relations(copied_job):
                output = f"{name}/tables/{relation}"
                changes = differences(
                    output,
                    kept_outputs.get(output, []),
                    lines,
                )
                if changes:
                    return changes
    return []


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--build", action="store_true")
    options = parser.parse_args()
    if options.build:
        build(options.folder)
    changes = differing(options.folder)
    print(*changes, sep="\n")
    sys.exit(1 if changes else 0)
