"""Exporting: the rows that stand, as Parquet files, with a list of them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tasks.config.job import Job
from tasks.exports.file_list import write_export_list
from tasks.exports.places import refuse_filled
from tasks.exports.tables import NOT_EXPORTED, ROWS_A_FILE, chosen_tables, write_tables
from tasks.rules.errors import PipelineError
from tasks.rules.text.numbers import counted
from tasks.run.writing import StageReport
from tasks.stores import Folder, Store
from warehouse import TABLES, Warehouse


def export_tables(
    job: Job, target: Path | Store, names: Sequence[str] = (), benchmark: str | None = None,
    *, rows_a_file: int = ROWS_A_FILE,
) -> StageReport:  # fmt: skip
    """Write tables to a folder, or a prefix of a store, that is empty or not there.

    Without names all stored ones, whole or of one benchmark. Views and computed tables may be named too; they are
    marked as derived, and not imported again.

    Raises:
        UsageError: the target holds something, or there is no such table.
        PipelineError: a file cannot be written.
    """
    refuse_filled(target)
    with Warehouse(job.warehouse).reader() as reader:
        chosen = chosen_tables(reader, names or [name for name in TABLES if name not in NOT_EXPORTED])
        try:
            with _folder_for(target) as folder:
                files = write_tables(reader, folder, chosen, benchmark, rows_a_file=rows_a_file)
                if isinstance(target, Store):
                    names_of = [file.name for table in files.tables for file in table.files]
                    target.put({name: folder / name for name in names_of}, is_quiet=job.is_quiet)
                write_export_list(Folder(folder) if isinstance(target, Path) else target, files)
        except OSError as error:
            raise PipelineError(f"{target}: cannot be written ({error.strerror}); free some space") from error
    tables = files.tables
    n_rows, n_bytes = sum(table.n_rows for table in tables), sum(f.n_bytes for table in tables for f in table.files)
    filled = sum(1 for table in tables if table.n_rows)
    note = f"{counted(n_rows, 'row')} of {counted(filled, 'table')} in {target} ({n_bytes / 1e6:.1f} MB)"
    return StageReport("export", rows=n_rows, notes=[note])


@contextmanager
def _folder_for(target: Path | Store) -> Iterator[Path]:
    """The folder to write to: the target itself, or one for what is to be uploaded."""
    if isinstance(target, Path):
        target.mkdir(parents=True, exist_ok=True)
        yield target
    else:
        with TemporaryDirectory(prefix="prbench-") as temporary:
            yield Path(temporary)
