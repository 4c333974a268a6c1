"""The checks of `prbench doctor` on the warehouse, the disk and the installed versions."""

import importlib.metadata
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb

from flows.cli.operate.findings import Finding
from tasks.config.job import Job
from warehouse import Warehouse, WarehouseError, WarehouseOutdated, lines_on, refuse_other_version

_PACKAGES = ("prefect", "duckdb", "polars", "pyarrow", "datasets", "litellm", "great-expectations")
_CONSTRAINED = {"fastapi": (0, 151), "sqlalchemy": (2, 1)}
"""Versions from which on Prefect 3.8 does not start, or never fires a schedule."""
_LOW_DISK_BYTES = 2**30


def check_warehouse(job: Job) -> Iterator[Finding]:
    """Whether the warehouse can be written to, and everything in it is whole."""
    warehouse = Warehouse(job.warehouse)
    subject = f"warehouse {warehouse.root}"
    folder = f"{warehouse.root} ({job.warehouse_source})"
    existing = next(folder for folder in (warehouse.root, *warehouse.root.parents) if folder.exists())
    if obstacle := _obstacle(warehouse.root, existing):
        yield Finding("data folder", False, f"{folder}: {obstacle}; choose another --warehouse")
        if existing != warehouse.root:
            return
    else:
        yield Finding("data folder", True, folder)
    free = shutil.disk_usage(existing).free
    yield Finding("disk", free >= _LOW_DISK_BYTES, f"{free / 2**30:.0f} GiB free")
    if host := warehouse.elsewhere():
        yield Finding("another machine", None, f"{host} writes this warehouse, or did so until it failed")
    try:
        refuse_other_version(warehouse.root)
    except WarehouseError as error:
        yield Finding(subject, False, str(error))
        return
    damage = list(_damage(warehouse))
    yield from damage
    if warehouse.database.exists():
        yield from _database(warehouse, subject, is_damaged=bool(damage))
    elif not damage:
        yield Finding(subject, True, "empty; `prbench run` fills it")


def _obstacle(folder: Path, existing: Path) -> str:
    """Why a folder cannot be written to, or cannot be made in the nearest one that exists; empty: nothing."""
    if not os.access(existing, os.W_OK):
        return f"{existing} cannot be written to"
    if folder == existing:
        return ""
    try:
        # Permissions do not tell of file systems that let nobody make a folder, such as /proc.
        with tempfile.TemporaryDirectory(dir=existing):
            return ""
    except OSError as error:
        return f"no folder can be made in {existing} ({error.strerror})"


def _database(warehouse: Warehouse, subject: str, *, is_damaged: bool) -> Iterator[Finding]:
    """What the published database holds; where the warehouse is damaged, that is the reason if it cannot be read."""
    try:
        with warehouse.reader() as reader:
            counts = ", ".join(f"{reader.value(f'select count(*) from {t}')} {t}" for t in ("tasks", "verdicts"))
        waiting = warehouse.n_unpublished()
    except WarehouseOutdated as error:
        yield Finding(subject, False, str(error))
        return
    except (WarehouseError, duckdb.Error) as error:
        if not is_damaged:
            yield Finding(subject, False, " ".join(str(error).split()))
        return
    unpublished = f", {waiting} parts not published yet (the next run publishes them)" if waiting else ""
    yield Finding(subject, True, counts + unpublished)


def _damage(warehouse: Warehouse) -> Iterator[Finding]:
    """What is damaged, missing or lost of the stored data; every part and every block of the database is read."""
    found = warehouse.damage()
    for line in found:
        yield Finding("stored data", False, line, is_damage=True)
    if found:
        mended = "`prbench aggregate` sets damaged files aside and restores what it can, without a model call"
        yield Finding("stored data", None, mended)
    for loss in warehouse.losses():
        yield Finding("stored data", False, loss.line, is_damage=True)
    if warehouse.losses():
        yield Finding("stored data", None, lines_on(warehouse.losses())[-1])


def check_versions() -> Iterator[Finding]:
    """The installed versions, and those that Prefect does not work with."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES)
    yield Finding("versions", True, versions)
    for name, bound in _CONSTRAINED.items():
        version = importlib.metadata.version(name)
        major, minor = (int(part) for part in version.split(".")[:2])
        if (major, minor) >= bound:
            yield Finding(
                "versions", False, f"{name} {version} does not work with Prefect; install {name}<{bound[0]}.{bound[1]}"
            )
