"""Tables as a data set of the library `datasets`: Parquet files, Arrow files, and a card."""

import importlib.metadata
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.dataset.source import sample_of
from tasks.exports import tables as table_files
from tasks.rules.errors import UsageError, disk_errors
from tasks.rules.identity import digest
from tasks.rules.text.numbers import counted
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse, sample_path

DEFAULT_TABLES = ("leaderboard", "tasks", "criteria", "messages", "responses", "verdicts", "scores")
"""The default tables; `load_dataset(FOLDER)` loads the first one."""
_SAMPLE_LICENCE = "apache-2.0"
_CARD_TEMPLATE = """\
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
    table_files.refuse_filled(folder)
    benchmark = load_benchmark(job.benchmark)
    key = job.key
    licence = _licence_of(job, benchmark)
    with Warehouse(job.warehouse).reader() as reader:
        requested = table_files.chosen_tables(reader, names or DEFAULT_TABLES)
        # `load_dataset` cannot load a table without rows.
        tables = [name for name in requested if _has_rows(reader, name, key)]
        if not tables:
            raise UsageError(
                f"{folder}: no row of {benchmark.name} in these tables; see `prbench status`"
            )
        with disk_errors(folder):
            export = table_files.write_tables(reader, folder, tables, key)
            arrow_bytes = {}
            for table in export.tables:
                arrow_bytes[table.name] = _write_arrow(folder, export, table, licence.name)
            # This file makes the copies one `DatasetDict`.
            splits = json.dumps({"splits": tables})
            (folder / "dataset_dict.json").write_text(splits, encoding="utf-8")
            card = _card_beginning(job, benchmark, licence, tables)
            card += "\n".join(_card_tables(export, arrow_bytes))
            (folder / "README.md").write_text(card, encoding="utf-8")
    notes = [
        f"{counted(export.n_rows, 'row')} of {counted(len(tables), 'table')} in {folder}"
        f" ({export.n_bytes() / 1e6:.1f} MB of Parquet,"
        f" {sum(arrow_bytes.values()) / 1e6:.1f} MB of Arrow)"
    ]
    empty = [name for name in requested if name not in tables]
    if empty:
        notes.append(f"empty, left out: {', '.join(empty)}")
    return StageReport("export", rows=export.n_rows, notes=notes)


def _has_rows(reader: Reader, name: str, key: dict[str, str]) -> bool:
    query, _ = table_files.query_of(reader, name, key)
    return bool(reader.rows(f"{query} limit 1"))


class Licence(NamedTuple):
    """The licence of tasks: the hub's name for it, and a note."""

    name: str
    note: str


def _card_beginning(job: Job, benchmark: Benchmark, licence: Licence, tables: Sequence[str]) -> str:
    """Return the header of the card, which the hub and `datasets` read, and the text above the
    table of tables.
    """
    import yaml

    configs: list[dict[str, Any]] = []
    for name in tables:
        config: dict[str, Any] = {"config_name": name}
        if not configs:
            config["default"] = True
        # The split is `test`: results are not for training.
        config["data_files"] = [{"split": "test", "path": f"{name}/*.parquet"}]
        configs.append(config)
    header = {
        "license": licence.name,
        "pretty_name": f"Results on {benchmark.title}",
        "tags": ["evaluation", "do-not-train", benchmark.name],
        "configs": configs,
    }
    text = _CARD_TEMPLATE.format(
        title=benchmark.title,
        licence=licence.note,
        benchmark=benchmark.name,
        revision=job.data.revision,
        splits=", ".join(job.data.splits),
        version=importlib.metadata.version("prbench-pipeline"),
    )
    return f"---\n{yaml.safe_dump(header, sort_keys=False)}---\n\n{text}"


def _write_arrow(
    folder: Path,
    export: table_files.TableFiles,
    table: table_files.ExportedTable,
    licence: str,
) -> int:
    """Write an Arrow copy of a table's Parquet files next to them, and return its size in bytes."""
    import datasets  # imported here, because its import takes seconds

    datasets.disable_progress_bars()
    hashes = " ".join(file.sha256 for file in export.files if file.name in table.files)
    target = folder / table.name
    with TemporaryDirectory(prefix="prbench-") as cache:
        paths = [str(folder / name) for name in table.files]
        parquet = datasets.Dataset.from_parquet(paths, cache_dir=cache)
        info = datasets.DatasetInfo(
            description=table_files.meaning_of_table(table.name),
            license=licence,
            features=parquet.features,
        )
        copy = datasets.Dataset(parquet.data, info=info, fingerprint=digest(hashes)[:16])
        copy.save_to_disk(target)
    return sum(path.stat().st_size for path in target.glob("*.arrow"))


def _card_tables(export: table_files.TableFiles, arrow_bytes: dict[str, int]) -> Iterator[str]:
    """Yield the lines of the card that describe the tables and their columns."""
    for table in export.tables:
        meaning = _as_cell(table_files.meaning_of_table(table.name))
        sizes = f"{_megabytes(export.n_bytes(table.files))} | {_megabytes(arrow_bytes[table.name])}"
        yield f"| `{table.name}` | {meaning} | {table.n_rows:,} | {sizes} |"
    for table in export.tables:
        yield f"\n## {table.name}\n\n| column | type | meaning |\n| --- | --- | --- |"
        for column, kind in table.columns.items():
            meaning = _as_cell(table_files.meaning_of_column(column, [table.name]) or "")
            yield f"| `{column}` | {kind.lower()} | {meaning} |"
    yield ""


def _as_cell(text: str) -> str:
    return text.replace("|", "\\|")


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.2f} MB"


def _licence_of(job: Job, benchmark: Benchmark) -> Licence:
    """Return the licence of the job's tasks."""
    title = benchmark.title
    is_sample = job.settings.dataset.source == "sample"
    if is_sample and sample_of(benchmark.name) == sample_path(benchmark.name):
        note = f"The tasks are this pipeline's own sample for {title} ({_SAMPLE_LICENCE})."
        return Licence(_SAMPLE_LICENCE, note)
    if benchmark.licence is None:
        note = f"The licence of {title} is not known to this pipeline; ask its publisher."
        return Licence("unknown", note)
    address = f"https://huggingface.co/datasets/{benchmark.default_dataset_id}"
    note = (
        f"Tasks, conversations and rubrics are those of {title}, which is published at {address}"
        f" under {benchmark.licence}; name it when you pass them on. If yours come from elsewhere,"
        " the terms there count."
    )
    return Licence(benchmark.licence, note)
