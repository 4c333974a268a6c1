"""Writing and unpacking of certificates: one file with figures, their SQL, and the rows behind
them, without texts.

A certificate is a bundle in a ZIP archive, which ends with its digest: the SHA-256 of all bytes
before it.
"""

import json
import os
import platform
import re
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sql
from tasks.bundles.bundle import (
    MANIFEST,
    Bundle,
    Damaged,
    file_at,
    read_bundle,
    verify_bundle,
    write_bundle,
)
from tasks.bundles.stores import Folder
from tasks.config.job import Job
from tasks.dataset.foreign_files import ZIP_ERRORS, data_offset, member_chunks, refuse_bomb
from tasks.measures import SCORE
from tasks.rules.errors import PipelineError, UsageError, disk_errors
from tasks.rules.statistics.intervals import METHOD, RESAMPLES, SEED
from warehouse import TABLES, Reader, Warehouse, quoted
from warehouse.files import DIGEST_HEX, append_digest, verified_digest, write_file

INTERVALS = {"method": METHOD, "resamples": RESAMPLES, "seed": SEED, "level": 0.95}
"""The method by which this version computes intervals, as stated in the manifest."""
_OF_DATA_SET = "benchmark = $benchmark and dataset_revision = $dataset_revision"
"""The condition for the rows of a data set."""
_ORDERS = {"responses": "response_id", "verdicts": "task_id, criterion_id, response_id, verdict_id"}
"""The sort order of large tables; others are sorted by all columns, which would take too long for
these.
"""
RUNS = "runs"
LEADERBOARDS = ("leaderboard", "hard_leaderboard", "breakdown_leaderboard", "severity_leaderboard")
"""The certified figures: these marts, with all their columns."""
MODELS = (*LEADERBOARDS, "trial_scores")
"""The SQL models that figures depend on; trial scores give the intervals over trials."""
SQL = "sql"
_TABLES_OF_RUNS = ("responses", "verdicts")
"""Tables with rows that runs write."""
_LIBRARIES = ("prbench-pipeline", "duckdb", "numpy", "scipy")
_MEMBER_NAME = re.compile(r"manifest\.json|(rows|figures)/[a-z_]+\.jsonl|sql/[a-z_.]+\.sql")
"""Allowed names of members; another name could lead out of the folder, or be that of a file that a
library reads.
"""


def _utc(column: str) -> str:
    """Return the SQL for a column of times as texts in UTC, under the same name."""
    return f"strftime({column} at time zone 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ') as {column}"


_ROW_COLUMNS = {
    "tasks": (
        "task_id, field, topic, expert, turns, has_reference_texts, n_criteria, is_admitted,"
        " conversation_id, content_hash"
    ),
    "labelled_tasks": "task_id, kind, label, source",
    "split_members": "split, task_id, position",
    "criteria": "task_id, position, criterion_id, category, weight, severity, content_hash",
    "criterion_labels": "task_id, criterion_id, kind, label",
    "criterion_variants": (
        "task_id, rubric, criterion_id, original_id, original_hash, content_hash, status"
    ),
    "responses": (
        "response_id, task_id, conversation_id, model, model_config_hash, trial, vintage, source,"
        " status, sha256(text) as text_sha256, chars_alnum, completion_tokens, cost_usd,"
        f" {_utc('created_at')}"
    ),
    "verdicts": (
        "task_id, criterion_id, criterion_hash, response_id, verdict_id, judge, judge_config_hash,"
        " template_hash, grading, judge_trial, source, may_hide_failures, status, value,"
        " probability, confidence, n_in_call, piece_hash, cost_usd"
    ),
    "hard_subset": (
        f"selection_id, field, task_id, rank, mean_score, n_models, {_utc('selected_at')}"
    ),
    "score_definitions": "* exclude (benchmark)",
    "severities": "* exclude (benchmark)",
    "stopping_scores": (
        "split, judge, judge_config_hash, template_hash, grading, judge_trial, vintage, model, "
        "model_config_hash, score_name, n_tasks, n_tasks_evaluated, n_tasks_skipped, sequence_low, "
        "sequence_high, unbiased_mean_score"
    ),
    "coverage_rules": (
        f"model, model_config_hash, vintage, wanted_trials, min_coverage, {_utc('created_at')}"
    ),
}
"""The tables from which figures are computed, with their certified columns, none of which is a
text.
"""
ROWS = tuple(_ROW_COLUMNS)
CERTIFIED = (*ROWS, RUNS, *LEADERBOARDS)
"""All tables with rows in a certificate."""
_RANKED_COLUMNS = (
    "* exclude (benchmark, dataset_revision, may_be_first, latest_may_be_first)"
    f" replace ({_utc('first_response_at')})"
)
"""The columns of a leaderboard with ranks, without those of the paired test, which is not
certified.
"""
_COLUMNS = {
    **_ROW_COLUMNS,
    # The stored configuration of a run has no secrets.
    RUNS: (
        f"run_id, command, config, git_commit, {_utc('started_at')}, {_utc('ended_at')}, outcome"
    ),
    **dict.fromkeys(LEADERBOARDS, _RANKED_COLUMNS),
    # Its rows have no ranks and no times.
    "severity_leaderboard": "* exclude (benchmark, dataset_revision)",
}
"""The certified columns of each table."""
COVERAGE_RULES = "coverage_rules"
"""The table that old certificates lack: those made before a model's current vintage depended on
coverage.
"""
KEYS = {**{name: TABLES[name].key for name in ROWS if name in TABLES}, "tasks": ("task_id",)}
"""The key of each table within a benchmark and revision; labels of tasks have none, because they
may occur twice.
"""


CALLS = "calls_sha256"
"""The entry of the manifest with the hash of `n_in_call` of all verdicts."""
# `{{condition}}` stays a field, `{condition}`, which the user of the query fills in.
CALLS_QUERY = f"""
    select
        sha256(
            string_agg(verdict_id || ' ' || n_in_call, chr(10) order by verdict_id)
            filter (where n_in_call is not null)
        ) as {CALLS}
    from verdicts
    where {{condition}}
"""


def member_of(name: str) -> str:
    """Return the name of the member with a table's rows."""
    return f"{'figures' if name in LEADERBOARDS else 'rows'}/{name}.jsonl"


def member_rows(folder: Path, table: str) -> Iterator[Any]:
    """Yield a table's rows in an unpacked certificate."""
    with (folder / member_of(table)).open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def write_rows(
    reader: Reader,
    names: Sequence[str],
    folder: Path,
    key: Mapping[str, str],
) -> dict[str, int]:
    """Write the rows of a data set as members; return the number of rows by table."""
    n_rows = {}
    for name in names:
        path = folder / member_of(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        query = query_of(name)
        parameters = {column: value for column, value in key.items() if f"${column}" in query}
        copy = f"copy ({query}) to {quoted(path)} (format json)"
        n_rows[name] = reader.value(copy, parameters)
    return n_rows


def condition_of(name: str) -> str:
    """Return the condition for the certified rows of a table."""
    if name == RUNS:
        # Those that wrote rows of the data set.
        queries = [f"select run_id from {table} where {_OF_DATA_SET}" for table in _TABLES_OF_RUNS]
        return f"run_id in ({' union '.join(queries)})"
    has_revision = name not in TABLES or "dataset_revision" in TABLES[name].columns
    condition = _OF_DATA_SET if has_revision else "benchmark = $benchmark"
    if name == "hard_subset":
        latest = (
            f"select (field, selection_id) from intermediate.latest_selections where {_OF_DATA_SET}"
        )
        condition += f" and (field, selection_id) in ({latest})"
    elif name == "verdicts":
        # Without those that were replaced because another criterion of their call changed.
        condition += (
            " and (piece_hash is null or verdict_id in (select verdict_id from"
            " intermediate.graded_verdicts))"
        )
    return condition


def query_of(name: str) -> str:
    """Return the query for the certified rows of a table, with the data set as parameters."""
    columns = _COLUMNS[name]
    order = _ORDERS.get(name, "all")
    return f"select {columns} from {name} where {condition_of(name)} order by {order}"


def model_texts() -> dict[str, str]:
    """Return the SQL of each model behind the leaderboards by its member, in the building order."""
    models = sql.leading_to(MODELS, ROWS)
    return {f"{SQL}/{model.name}.sql": model.query + "\n" for model in models}


def certify(job: Job, file: Path) -> dict[str, Any]:
    """Write the certificate of the published figures of a job's data set.

    Return `file`, `n_bytes` and `digest`, the key of the data set, and `n_rows` of each table.

    Raises:
        UsageError: the file exists already, or its folder does not.
        PipelineError: nothing is judged yet, figures lack their intervals, or the file cannot be
            written.
    """
    with TemporaryDirectory(prefix="prbench-") as temporary:
        folder = Path(temporary)
        with Warehouse(job.warehouse).reader(folder / "spill") as reader:
            key = job.key
            if not reader.select("leaderboard", "1", **key):
                raise PipelineError(
                    f"no model has a verdict on {' '.join(key.values())} yet; run `prbench judge`"
                )
            if SCORE.stale(reader):
                raise PipelineError(
                    "figures lack the interval of their present values; run `prbench aggregate`"
                    " first"
                )
            if file.exists():
                raise UsageError(f"{file}: exists already; name a new file")
            if not file.parent.is_dir():
                raise UsageError(f"{file.parent}: no such folder; check the path")
            n_rows = write_rows(reader, CERTIFIED, folder, key)
            _write(file, folder, n_rows, _about(reader, job))
    return {
        "file": str(file),
        "n_bytes": file.stat().st_size,
        "digest": verified_digest(file),
        **key,
        "n_rows": n_rows,
    }


def _about(reader: Reader, job: Job) -> dict[str, Any]:
    """Return the entries of the manifest that say what was certified, and how.

    They do not depend on the time of writing.
    """
    key = job.key
    queries = [f"select created_at from {table} where {_OF_DATA_SET}" for table in _TABLES_OF_RUNS]
    latest_time = f"select max(created_at) as created_at from ({' union all '.join(queries)})"
    query = f"select {_utc('created_at')} from ({latest_time}) as latest"
    versions = {"python": platform.python_version()}
    for name in _LIBRARIES:
        versions[name] = version(name)
    return {
        **key,
        "rows_until": reader.value(query, key),
        "versions": versions,
        # In the form that runs store, without secrets.
        "configuration": job.settings.model_dump(mode="json"),
        "intervals": INTERVALS,
        CALLS: reader.value(CALLS_QUERY.format(condition=condition_of("verdicts")), key),
    }


def _write(file: Path, folder: Path, n_rows: dict[str, int], about: dict[str, Any]) -> None:
    texts = model_texts()
    (folder / SQL).mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    names = sorted([*map(member_of, n_rows), *texts])
    files = {file_at(folder / name, name): folder / name for name in names}
    write_bundle(Folder(folder), "certificate", files, {**about, "n_rows": n_rows})
    with disk_errors(file):
        write_file(
            file.parent,
            lambda path: _write_archive(path, folder, [MANIFEST, *names]),
            lambda _: file.name,
        )


def _write_archive(path: Path, folder: Path, members: Iterable[str]) -> None:
    """Write members from a folder in the order of their names, and the digest.

    The same members give the same file.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(members):
            # The earliest time of ZIP, and the same system (3 is Unix) and rights everywhere.
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = 0o644 << 16
            info.file_size = (folder / name).stat().st_size
            with archive.open(info, "w") as member, (folder / name).open("rb") as content:
                shutil.copyfileobj(content, member)
        # The archive states the length of its comment, so the digest, which takes the place of the
        # zeros, is the comment.
        archive.comment = b"0" * DIGEST_HEX
    os.truncate(path, path.stat().st_size - DIGEST_HEX)
    append_digest(path)


def unpack(path: Path, folder: Path) -> None:
    """Unpack a verified archive into a folder.

    Raises:
        Damaged: it is no ZIP file, or has unknown members or extra bytes.
        FileTooLarge: it would unpack to far more than its size.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            refuse_bomb(path, path.stat().st_size, (info.file_size for info in archive.infolist()))
            _refuse_other_bytes(path, archive)
            for info in archive.infolist():
                target = folder / info.filename
                if not _MEMBER_NAME.fullmatch(info.filename) or target.exists():
                    raise ValueError(
                        f"{info.filename!r} is not the name of a member, or is the name of two"
                    )
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as file:
                    file.writelines(member_chunks(archive, info))
    except ZIP_ERRORS as error:
        reason = str(error) or type(error).__name__
        raise Damaged(
            f"{path}: cannot be read as a certificate ({reason}); get it again"
        ) from error


def _refuse_other_bytes(path: Path, archive: zipfile.ZipFile) -> None:
    """Refuse a file with bytes outside its members, its table of contents and its digest."""
    end = 0
    with path.open("rb") as file:
        for info in sorted(archive.infolist(), key=attrgetter("header_offset")):
            if info.header_offset != end:
                raise ValueError(f"there are other bytes before {info.filename}")
            end = data_offset(file, info) + info.compress_size
        file.seek(-DIGEST_HEX, 2)
        if end != archive.start_dir or archive.comment != file.read():
            raise ValueError("there are bytes outside its members")


def unpack_verified(path: Path, folder: Path) -> Bundle:
    """Unpack a certificate into a folder, verify its members, and return its manifest.

    The caller has verified its digest.

    Raises:
        Damaged: its members are not those that its manifest lists.
    """
    unpack(path, folder)
    location = Folder(folder, str(path))
    bundle = read_bundle(location, "certificate")
    if location.files().keys() != {MANIFEST, *(file.name for file in bundle.files)}:
        raise Damaged(f"{path}: its members are not those that the manifest lists; get it again")
    verify_bundle(location, bundle)
    return bundle
