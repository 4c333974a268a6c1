"""Tables as a data set of the library `datasets`: Parquet and Arrow files of the same rows, and a
card.
"""

import importlib.metadata
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.dataset.source import sample_of
from tasks.exports import tables as exported
from tasks.rules.errors import UsageError, disk_errors
from tasks.rules.identity import digest
from tasks.rules.text.numbers import counted
from tasks.run.writing import StageReport
from warehouse import Warehouse, sample_path

USUAL = ("leaderboard", "tasks", "criteria", "messages", "responses", "verdicts", "scores")
"""The default tables; `load_dataset(FOLDER)` loads the first one."""
_OF_SAMPLES = "apache-2.0"
_UNKNOWN = "unknown"
_ABOUT = """\
# Results on {title}

**Do not train on this data.** It holds the tasks of a benchmark with responses and verdicts; a model that has seen them
can no longer be evaluated with them. The canaries of the data set are left out. If you pass the data on, keep this
notice, and put the files where crawlers do not reach them.

{licence}

| what | version |
| --- | --- |
| benchmark | `{benchmark}` |
| revision of its data set | `{revision}` |
| splits | {splits} |
| written by | prbench-pipeline {version} |

The Arrow files are a copy of the Parquet files for `load_from_disk`; `--exclude "*.arrow"` leaves them out of uploads.

## Tables

| table | one row is | rows | Parquet | Arrow |
| --- | --- | ---: | ---: | ---: |
"""


def export_data_sets(job: Job, folder: Path, names: Sequence[str] = ()) -> StageReport:
    """Write tables and views of the job's benchmark and revision to a new or empty folder.

    Tables without rows are left out. Each other table is a folder with Parquet files, for
    `datasets.load_dataset(folder, name)`, and an Arrow copy of them, for
    `datasets.load_from_disk(folder / name)`. The card is written last.

    Raises:
        UsageError: the folder is not empty, a table does not exist, or none of them has a row.
        PipelineError: a file cannot be written.
    """
    import yaml

    exported.refuse_filled(folder)
    benchmark = load_benchmark(job.settings.benchmark)
    data = job.data
    key = {"benchmark": benchmark.name, "dataset_revision": data.revision}
    licence, licence_note = _licence_of(job, benchmark)
    with Warehouse(job.warehouse).reader() as reader:
        requested = exported.chosen_tables(reader, names or USUAL)
        # `load_dataset` cannot load a table without rows.
        queries = {name: exported.query_of(reader, name, key)[0] for name in requested}
        chosen = [name for name, query in queries.items() if reader.rows(f"{query} true limit 1")]
        if not chosen:
            raise UsageError(
                f"{folder}: no row of {benchmark.name} in these tables; see `prbench status`"
            )
        with disk_errors(folder):
            written = exported.write_tables(reader, folder, chosen, key)
            arrow = {
                table.name: _copied(folder, written, table, licence) for table in written.tables
            }
            # This file makes the copies one `DatasetDict`.
            (folder / "dataset_dict.json").write_text(
                json.dumps({"splits": chosen}), encoding="utf-8"
            )
            # The hub and `datasets` read this header. The split is `test`: results are not for
            # training.
            header = {
                "license": licence,
                "pretty_name": f"Results on {benchmark.title}",
                "tags": ["evaluation", "do-not-train", benchmark.name],
                "configs": [
                    {
                        "config_name": name,
                        **({"default": True} if name == chosen[0] else {}),
                        "data_files": [{"split": "test", "path": f"{name}/*.parquet"}],
                    }
                    for name in chosen
                ],
            }
            card = f"---\n{yaml.safe_dump(header, sort_keys=False)}---\n\n" + _ABOUT.format(
                title=benchmark.title,
                licence=licence_note,
                benchmark=benchmark.name,
                revision=data.revision,
                splits=", ".join(data.splits),
                version=importlib.metadata.version("prbench-pipeline"),
            )
            (folder / "README.md").write_text(
                card + "\n".join(_described(written, arrow)), encoding="utf-8"
            )
    size = (
        f"{written.n_bytes() / 1e6:.1f} MB of Parquet, {sum(arrow.values()) / 1e6:.1f} MB of Arrow"
    )
    notes = [
        f"{counted(written.n_rows, 'row')} of {counted(len(chosen), 'table')} in {folder} ({size})"
    ]
    empty = [name for name in requested if name not in chosen]
    if empty:
        notes.append(f"empty, left out: {', '.join(empty)}")
    return StageReport("export", rows=written.n_rows, notes=notes)


def _copied(
    folder: Path, written: exported.TableFiles, table: exported.Exported, licence: str
) -> int:
    """Write an Arrow copy of a table's Parquet files next to them, and return its size in bytes."""
    import datasets  # imported here, because its import takes seconds

    datasets.disable_progress_bars()
    fingerprint = digest(
        " ".join(file.sha256 for file in written.files if file.name in table.files)
    )[:16]
    with TemporaryDirectory(prefix="prbench-") as cache:
        read = datasets.Dataset.from_parquet(
            [str(folder / name) for name in table.files], cache_dir=cache
        )
        about = {"description": exported.meaning_of_table(table.name), "license": licence}
        info = datasets.DatasetInfo(features=read.features, **about)
        datasets.Dataset(read.data, info=info, fingerprint=fingerprint).save_to_disk(
            folder / table.name
        )
    return sum(path.stat().st_size for path in (folder / table.name).glob("*.arrow"))


def _described(written: exported.TableFiles, arrow_bytes: dict[str, int]) -> Iterator[str]:
    """Yield the lines of the card that describe the tables and their columns."""
    for table in written.tables:
        meaning = exported.meaning_of_table(table.name).replace("|", "\\|")
        parquet, arrow = (
            f"{n / 1e6:,.2f} MB" for n in (written.n_bytes(table.files), arrow_bytes[table.name])
        )
        yield f"| `{table.name}` | {meaning} | {table.n_rows:,} | {parquet} | {arrow} |"
    for table in written.tables:
        yield f"\n## {table.name}\n\n| column | type | meaning |\n| --- | --- | --- |"
        for column, kind in table.columns.items():
            meaning = (exported.meaning_of_column(column, [table.name]) or "").replace("|", "\\|")
            yield f"| `{column}` | {kind.lower()} | {meaning} |"
    yield ""


def _licence_of(job: Job, benchmark: Benchmark) -> tuple[str, str]:
    """Return the hub's name for the licence of the job's tasks, and a note on the licence."""
    if job.settings.dataset.source == "sample" and sample_of(benchmark.name) == sample_path(
        benchmark.name
    ):
        return (
            _OF_SAMPLES,
            f"The tasks are this pipeline's own sample for {benchmark.title} ({_OF_SAMPLES}).",
        )
    if benchmark.licence is None:
        return (
            _UNKNOWN,
            f"The licence of {benchmark.title} is not known to this pipeline; ask its publisher.",
        )
    where = f"https://huggingface.co/datasets/{benchmark.default_dataset_id}"
    return (
        benchmark.licence,
        (
            f"Tasks, conversations and rubrics are those of {benchmark.title}, which is published"
            f" at {where} under {benchmark.licence}; name it when you pass them on. If yours come"
            " from elsewhere, the terms there count."
        ),
    )
