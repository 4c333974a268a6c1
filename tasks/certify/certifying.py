"""Certifying: the rows that figures rest on, without texts, with the figures and the SQL that makes them."""

import json
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sql
from tasks.aggregate.intervals import has_stale_figures
from tasks.certify.archive import write_archive
from tasks.certify.members import (
    FORMAT,
    INTERVALS,
    LEADERBOARDS,
    MANIFEST,
    ROWS,
    RUNS,
    VERSION,
    member_of,
    model_texts,
    write_rows,
)
from tasks.config.job import Job
from tasks.maintain import hash_of
from tasks.rules.errors import PipelineError, UsageError
from warehouse import Reader, Warehouse

_LIBRARIES = ("prbench-pipeline", "duckdb", "numpy", "scipy")


@dataclass(frozen=True)
class Certificate:
    """What was written: the file with its size, its digest, and how many rows of each table it holds."""

    file: str
    n_bytes: int
    digest: str
    benchmark: str
    dataset_revision: str
    n_rows: dict[str, int]


def certify(job: Job, file: Path) -> Certificate:
    """Write the certificate of the published figures of a job's data set.

    Raises:
        UsageError: the file is there already, or its folder is not.
        PipelineError: nothing is judged yet, figures lack their intervals, or the file cannot be written.
    """
    with TemporaryDirectory(prefix="prbench-") as temporary:
        folder = Path(temporary)
        with Warehouse(job.warehouse).reader(folder / "spill") as reader:
            benchmark, revision = job.settings.benchmark, job.data.revision
            _refuse_unready(reader, benchmark, revision)
            _refuse_present(file)
            n_rows = write_rows(reader, (*ROWS, RUNS, *LEADERBOARDS), folder, benchmark, revision)
            digest = _write(file, folder, n_rows, _about(reader, job))
    return Certificate(str(file), file.stat().st_size, digest, benchmark, revision, n_rows)


def _refuse_unready(reader: Reader, benchmark: str, revision: str) -> None:
    key = [benchmark, revision]
    if not reader.value("select count(*) from leaderboard where benchmark = ? and dataset_revision = ?", key):
        raise PipelineError(
            f"no model has a verdict on {benchmark} {revision[:12]} yet, so there are no figures; run `prbench judge`"
        )
    if has_stale_figures(reader):
        raise PipelineError("figures have no interval for their present values yet; run `prbench aggregate` first")


def _refuse_present(file: Path) -> None:
    if file.exists():
        raise UsageError(f"{file}: is there already; name a new file")
    if not file.parent.is_dir():
        raise UsageError(f"{file.parent}: no such folder; check the path")


def _about(reader: Reader, job: Job) -> dict[str, Any]:
    """What the manifest says beside the members; nothing of it changes while the rows stay the same."""
    benchmark, revision = job.settings.benchmark, job.data.revision
    given = {"benchmark": benchmark, "revision": revision}
    return {
        "benchmark": benchmark,
        "dataset_revision": revision,
        "rows_until": reader.value(sql.read("questions/certify/latest_row"), given),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in _LIBRARIES},
        },
        # As a run stores it: secrets are not in it.
        "configuration": job.settings.model_dump(mode="json"),
        "intervals": INTERVALS,
    }  # fmt: skip


def _write(file: Path, folder: Path, n_rows: dict[str, int], about: dict[str, Any]) -> str:
    rows = {member_of(name): (folder / member_of(name), n) for name, n in n_rows.items()}
    texts = {name: text.encode() for name, text in model_texts().items()}
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(text)
    listed = [(name, folder / name, rows[name][1] if name in rows else None) for name in sorted([*rows, *texts])]
    members = [
        {"name": name, "n_rows": n, "n_bytes": path.stat().st_size, "sha256": hash_of(path)} for name, path, n in listed
    ]
    document = {"format": FORMAT, "version": VERSION, **about, "members": members}
    manifest = json.dumps(document, indent=1, ensure_ascii=False).encode()
    beside = file.with_name(f".{file.name}.tmp")
    try:
        digest = write_archive(beside, {MANIFEST: manifest, **{name: path for name, path, _ in listed}})
        beside.replace(file)
    except OSError as error:
        raise PipelineError(f"{file}: cannot be written ({error.strerror}); free some space") from error
    finally:
        beside.unlink(missing_ok=True)
    return digest
