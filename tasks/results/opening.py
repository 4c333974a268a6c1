"""Opening of the database at a location, with the choice of a benchmark and revision."""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tasks.bundles.bundle import published_in
from tasks.bundles.stores import Folder, Store, open_location
from tasks.config.job import DataRevision, Job
from tasks.config.settings import Settings
from tasks.rules.errors import UsageError
from warehouse import DATABASE, Row, Warehouse


def open_job(location: str, benchmark: str | None, revision: str | None) -> tuple[Job, ExitStack]:
    """Return a job on the data published at a location, and the resources to close.

    Raises:
        UsageError: the location, benchmark or revision does not exist.
        WarehouseError: nothing is published there.
    """
    with ExitStack() as opened:
        folder = _folder(location, opened)
        with Warehouse(folder).reader() as reader:
            revisions = reader.query("queries/run/stored_revisions")
        row = _chosen_revision(location, revisions, benchmark, revision)
        data = DataRevision(
            name=location, revision=row["dataset_revision"], splits=tuple(row["splits"])
        )
        # The source is required, but never read; the run id is empty, because nothing is stored.
        settings = Settings.model_validate(
            {"benchmark": row["benchmark"], "dataset": {"source": "sample"}}
        )
        job = Job(settings=settings, warehouse=folder, run_id="").looking_up(lambda: data)
        # The caller closes the resources; after an exception they are closed here.
        resources = opened.pop_all()
    return job, resources


def _folder(location: str, resources: ExitStack) -> Path:
    """Return a folder with the database: a temporary one if it is in a store or given as a file;
    in a folder of publications, the latest.
    """
    source = open_location(location)
    if isinstance(source, Path) and not source.is_file():
        if not source.is_dir():
            raise UsageError(
                f"{location}: there is no such folder or file; for results there, run `prbench run`"
                " first"
            )
        published = published_in(Folder(source))
        assert isinstance(published, Folder), "a folder contains its own publications"
        return published.path
    folder = Path(resources.enter_context(tempfile.TemporaryDirectory()))
    if isinstance(source, Path):
        (folder / DATABASE).symlink_to(source.resolve())
        return folder
    store = published_in(source)
    assert isinstance(store, Store), "a store contains its own publications"
    if DATABASE not in store.files():
        raise UsageError(f"{store}: has no {DATABASE}; name what `prbench publish` wrote")
    store.get({DATABASE: folder / DATABASE})
    return folder


def _chosen_revision(
    location: str,
    revisions: list[Row],
    benchmark: str | None,
    revision: str | None,
) -> dict[str, Any]:
    """Return the benchmark and revision to use: of those that match, the first, which has the most
    verdicts.
    """
    matches = []
    for row in revisions:
        is_revision = row["dataset_revision"].startswith(revision or "")
        if is_revision and benchmark in {None, row["benchmark"]}:
            matches.append(row)
    names = [f"{row['benchmark']} {row['dataset_revision'][:12]}" for row in revisions]
    stored_names = ", ".join(names) or "nothing"
    if not matches:
        raise UsageError(f"{location}: has no such benchmark or revision; it has {stored_names}")
    if len({row["benchmark"] for row in matches}) > 1:
        raise UsageError(
            f"{location}: has several benchmarks; name one of them (benchmark=...): {stored_names}"
        )
    return matches[0]
