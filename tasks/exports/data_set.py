"""Results as a data set of the library `datasets`: Parquet and Arrow files of the same rows, and a card."""

import importlib.metadata
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.config import Dataset, Job
from tasks.dataset import sample_of, with_revision
from tasks.exports.meanings import meaning_of_column, meaning_of_table
from tasks.exports.tables import Exported, chosen_tables, refuse_filled, write_tables
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.identity import digest
from tasks.rules.text.numbers import counted
from tasks.run import StageReport
from warehouse import Reader, Warehouse, sample_path

USUAL = ("leaderboard", "tasks", "criteria", "messages", "responses", "verdicts", "scores")
"""What is exported if nothing is named; the first one is what `load_dataset(FOLDER)` loads."""


_OF_SAMPLES = "apache-2.0"


_UNKNOWN = "unknown"


@dataclass(frozen=True)
class Licence:
    """A licence by the hub's name for it, and what is to be said about it."""

    name: str
    said: str


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


SPLIT = "test"
"""The split that every table is: results are for evaluation, and not for training."""
NAME = "README.md"
_NOTICE = """\
**Do not train on this data.** It holds the tasks of a benchmark with answers and verdicts; a model that has seen them
can no longer be evaluated with them. The data set marks its rows with canaries, so that they can be kept out of
training data. Canaries are left out here, since they belong to the data set itself and are never put beside other
texts. Whoever passes this on should keep this notice, and put the files where crawlers do not reach them."""


@dataclass(frozen=True)
class Card:
    """What the card says beside the tables: what was evaluated, at which revision, by which version."""

    title: str
    benchmark: str
    revision: str
    splits: Sequence[str]
    version: str
    licence: Licence

    def text(self, tables: Sequence[Exported], arrow_bytes: dict[str, int]) -> str:
        """The card, with its header for machines."""
        import yaml

        header = {
            "license": self.licence.name,
            "pretty_name": f"Results on {self.title}",
            "tags": ["evaluation", "do-not-train", self.benchmark],
            "configs": [
                {
                    "config_name": table.name, **({"default": True} if place == 0 else {}),
                    "data_files": [{"split": SPLIT, "path": f"{table.name}/*.parquet"}],
                }
                for place, table in enumerate(tables)
            ],
        }  # fmt: skip
        lines = [
            *self._about(tables),
            *_sizes(tables, arrow_bytes),
            *(line for table in tables for line in _columns(table)),
        ]
        return f"---\n{yaml.safe_dump(header, sort_keys=False)}---\n\n" + "\n".join(lines) + "\n"

    def _about(self, tables: Sequence[Exported]) -> Iterator[str]:
        shown = next((table.name for table in tables if table.name == "verdicts"), tables[0].name)
        yield from (f"# Results on {self.title}", "", _NOTICE, "", self.licence.said, "")
        yield from (
            "| what | version |", "| --- | --- |",
            f"| benchmark | `{self.benchmark}` |",
            f"| revision of its data set | `{self.revision}` |",
            f"| splits | {', '.join(self.splits)} |",
            f"| written by | prbench-pipeline {self.version} |", "",
        )  # fmt: skip
        yield from (
            "```python", "from datasets import load_dataset, load_from_disk", "",
            f'load_dataset("FOLDER", "{shown}", split="{SPLIT}")   # the Parquet files',
            f'load_from_disk("FOLDER/{shown}")   # the Arrow files, which are mapped into memory',
            'load_from_disk("FOLDER")   # all tables', "```", "",
            'The Arrow files are a copy of the Parquet files; `--exclude "*.arrow"` leaves them out of an upload.', "",
        )  # fmt: skip


def _sizes(tables: Sequence[Exported], arrow_bytes: dict[str, int]) -> Iterator[str]:
    yield from (
        "## Tables",
        "",
        "| table | one row is | rows | Parquet | Arrow |",
        "| --- | --- | ---: | ---: | ---: |",
    )
    for table in tables:
        parquet = sum(file.n_bytes for file in table.files)
        cells = (f"`{table.name}`", _cell(meaning_of_table(table.name)), f"{table.n_rows:,}",
                 _megabytes(parquet), _megabytes(arrow_bytes[table.name]))  # fmt: skip
        yield f"| {' | '.join(cells)} |"
    yield ""


def _columns(table: Exported) -> Iterator[str]:
    yield from (f"## {table.name}", "", "| column | type | meaning |", "| --- | --- | --- |")
    for column, kind in table.columns.items():
        yield f"| `{column}` | {kind.lower()} | {_cell(meaning_of_column(column, [table.name]) or '')} |"
    yield ""


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.2f} MB"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def licence_of(job: Job, benchmark: Benchmark) -> Licence:
    """The licence of the tasks at the job's revision."""
    if _is_own_sample(job, benchmark):
        return Licence(_OF_SAMPLES, f"The tasks are this pipeline's own sample for {benchmark.title} ({_OF_SAMPLES}).")
    if benchmark.licence is None:
        return Licence(_UNKNOWN, f"The licence of {benchmark.title} is not known to this pipeline; ask its publisher.")
    where = f"https://huggingface.co/datasets/{benchmark.default_dataset_id}"
    return Licence(
        benchmark.licence,
        f"Tasks, conversations and rubrics are those of {benchmark.title}, which is published at {where} under "
        f"{benchmark.licence}; name it when you pass them on. If yours come from elsewhere, the terms there count.",
    )


def _is_own_sample(job: Job, benchmark: Benchmark) -> bool:
    """Whether the job's revision is that of the sample that ships."""
    if sample_of(benchmark.name) != sample_path(benchmark.name):
        return False
    settings = job.settings.model_copy(update={"dataset": Dataset(source="sample")})
    return with_revision(job.model_copy(update={"settings": settings})).data.revision == job.data.revision


_ROWS_AT_ONCE = 10_000


def write_arrow_copy(folder: Path, parquet_files: Sequence[Path], content: str, *, described: str, licence: str) -> int:
    """Copy the Parquet files of one table into Arrow files beside them, and return their size in bytes.

    Args:
        folder: the folder of the table.
        parquet_files: one or more files of one schema.
        content: what identifies the content; the library's fingerprint is made of it.
        described: what a row is.
        licence: the licence's name.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq
    from datasets import Features  # imports for seconds

    schema = pq.read_schema(parquet_files[0]).remove_metadata()
    features = Features.from_arrow_schema(schema)
    names = [f"data-{place:05d}-of-{len(parquet_files):05d}.arrow" for place in range(len(parquet_files))]
    for name, parquet in zip(names, parquet_files, strict=True):
        with pa.OSFile(str(folder / name), "wb") as sink, pa.ipc.new_stream(sink, features.arrow_schema) as stream:
            for batch in pq.ParquetFile(parquet).iter_batches(batch_size=_ROWS_AT_ONCE):
                stream.write_batch(batch.cast(features.arrow_schema))
    _write(folder / "dataset_info.json", {
        "citation": "", "description": described, "features": features.to_dict(), "homepage": "", "license": licence,
    })  # fmt: skip
    _write(folder / "state.json", {
        "_data_files": [{"filename": name} for name in names], "_fingerprint": digest(content)[:16],
        "_format_columns": None, "_format_kwargs": {}, "_format_type": None, "_output_all_columns": False,
        "_split": None,
    })  # fmt: skip
    return sum((folder / name).stat().st_size for name in names)


def write_list_of_copies(folder: Path, names: Sequence[str]) -> None:
    """Write what makes the copies below a folder one `DatasetDict`."""
    _write(folder / "dataset_dict.json", {"splits": list(names)})


def _write(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")
