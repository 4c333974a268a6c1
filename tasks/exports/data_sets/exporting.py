"""Exporting results as a data set: Parquet and Arrow files of the same rows, and a card."""

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path

from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.exports.data_sets.arrow_copy import write_arrow_copy, write_list_of_copies
from tasks.exports.data_sets.card import NAME, Card
from tasks.exports.data_sets.licence import licence_of
from tasks.exports.file_list import Exported
from tasks.exports.meanings import meaning_of_table
from tasks.exports.places import refuse_filled
from tasks.exports.tables import chosen_tables, write_tables
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.text.numbers import counted
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

USUAL = ("leaderboard", "tasks", "criteria", "messages", "responses", "verdicts", "scores")
"""What is exported if nothing is named; the first one is what `load_dataset(FOLDER)` loads."""


def export_data_sets(job: Job, folder: Path, names: Sequence[str] = ()) -> StageReport:
    """Write tables and views of the job's benchmark and revision to a folder that is empty or not there.

    A table without rows is left out.

    Each is a folder with Parquet files, for `datasets.load_dataset(folder, name)`, and an Arrow copy of them, for
    `datasets.load_from_disk(folder / name)`. The card is written last.

    Raises:
        UsageError: the folder holds something, there is no such table, or none of them has a row.
        PipelineError: a file cannot be written.
    """
    refuse_filled(folder)
    benchmark, data = load_benchmark(job.settings.benchmark), job.data
    licence = licence_of(job, benchmark)
    with Warehouse(job.warehouse).reader() as reader:
        key = [benchmark.name, data.revision]
        asked = chosen_tables(reader, names or USUAL)
        chosen = [name for name in asked if _has_rows(reader, name, key)]
        if not chosen:
            raise UsageError(f"{folder}: no row of {benchmark.name} in these tables; see `prbench status`")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            written = write_tables(
                reader, folder, chosen, benchmark.name, revision=data.revision, has_folders=True, root=""
            )
            arrow = {table.name: _copied(folder, table, licence.name) for table in written.tables}
            write_list_of_copies(folder, chosen)
            version = importlib.metadata.version("prbench-pipeline")
            card = Card(benchmark.title, benchmark.name, data.revision, data.splits, version, licence)
            (folder / NAME).write_text(card.text(written.tables, arrow), encoding="utf-8")
        except OSError as error:
            raise PipelineError(f"{folder}: cannot be written ({error.strerror}); free some space") from error
    n_rows = sum(table.n_rows for table in written.tables)
    parquet = sum(file.n_bytes for table in written.tables for file in table.files)
    size = f"{parquet / 1e6:.1f} MB of Parquet, {sum(arrow.values()) / 1e6:.1f} MB of Arrow"
    notes = [f"{counted(n_rows, 'row')} of {counted(len(chosen), 'table')} in {folder} ({size})"]
    if empty := [name for name in asked if name not in chosen]:
        notes.append(f"empty, left out: {', '.join(empty)}")
    return StageReport("export", rows=n_rows, notes=notes)


def _has_rows(reader: Reader, name: str, key: Sequence[str]) -> bool:
    """Whether a table has a row of a benchmark and revision; `load_dataset` cannot load a table without rows."""
    columns = reader.table(f"select * from {name} limit 0")[0]
    keyed = [column for column in ("benchmark", "dataset_revision") if column in columns]
    condition = " and ".join(f"{column} = ?" for column in keyed) or "true"
    return bool(reader.rows(f"select 1 from {name} where {condition} limit 1", key[: len(keyed)]))


def _copied(folder: Path, table: Exported, licence: str) -> int:
    files = [folder / file.name for file in table.files]
    content = " ".join(file.sha256 for file in table.files)
    return write_arrow_copy(
        folder / table.name, files, content, described=meaning_of_table(table.name), licence=licence
    )
