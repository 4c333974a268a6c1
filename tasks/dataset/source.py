"""Where rows come from: the hub, files of the hub's shape, or the sample that ships."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasks.benchmarks import folder_of, load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.config import DataRevision, Dataset, Job, Unresolved
from tasks.dataset.prompt_files import SUFFIX as PROMPTS
from tasks.dataset.prompt_files import read_prompts, with_prompts
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.identity import digest
from tasks.rules.text.json_text import KeyTwice, read_json
from warehouse import sample_path

Row = Mapping[str, Any]
_REVISION_HEX = 40
_SUFFIXES = {".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl"}


class SourceError(PipelineError):
    """A data set cannot be read; the message names the file and the line where there is one."""


@dataclass(frozen=True)
class Source:
    """A data set that can be read: its pinned revision, and how to get the rows of each split.

    `files` are read from here, `hub_files` from the hub's repository at the commit. `prompts` is a file with the
    prompts of rows that lack them, which belong to a row by one of the `id_columns`.
    """

    name: str
    revision: str
    splits: tuple[str, ...]
    files: Mapping[str, Path] = field(default_factory=dict)
    commit: str = ""
    hub_files: Mapping[str, str] = field(default_factory=dict)
    prompts: Path | None = None
    id_columns: tuple[str, ...] = ()

    def rows(self, split: str) -> Sequence[Row]:
        """All rows of a split, in the data set's order."""
        if split in self.files:
            rows = read_rows(self.files[split])
            if self.prompts is None:
                return list(rows)
            return list(with_prompts(rows, read_prompts(self.prompts), self.id_columns))
        from tasks.dataset.hub import fetch, load_split  # imports `datasets`, which takes seconds

        if split in self.hub_files:
            return list(read_rows(fetch(self.name, self.commit, self.hub_files[split])))
        return load_split(self.name, self.commit, split)


def with_revision(job: Job) -> Job:
    """The job with the revision of its data set, or with the reason why there is none."""
    resolved: DataRevision | Unresolved
    try:
        source = source_of(job)
        resolved = DataRevision(name=source.name, revision=source.revision, splits=source.splits)
    except PipelineError as error:
        resolved = Unresolved(reason=str(error), exit_code=error.exit_code)
    except OSError as error:
        resolved = Unresolved(reason=f"{error.filename}: {error.strerror}; mend `dataset.source`")
    return job.model_copy(update={"resolved": resolved})


def source_of(job: Job) -> Source:
    """The data set that a job is about (see `open_source` for what can be wrong)."""
    return open_source(job.settings.dataset, load_benchmark(job.settings.benchmark))


def open_source(dataset: Dataset, benchmark: Benchmark) -> Source:
    """The source that a configuration names.

    Raises:
        UsageError: the configuration names no readable source.
        SourceError: a file cannot be read.
    """
    if dataset.source == "hub":
        return _on_hub(dataset, dataset.id or benchmark.default_dataset_id)
    if dataset.source == "sample":
        path = sample_of(benchmark.name)
        if path is None:
            raise UsageError(f"dataset.source: there is no sample of {benchmark.name}; name a file, a folder or `hub`")
        files = {"sample": path}
    else:
        path = Path(dataset.source).expanduser()
        files = _files_by_split(path, dataset.splits)
    chosen = dataset.splits or tuple(files)
    missing = [split for split in chosen if split not in files]
    if missing:
        raise UsageError(f"dataset.splits: {path} has no split {missing[0]!r}; it has {', '.join(files)}")
    prompts = _prompts(dataset, path)
    revision = _content_revision(files if prompts is None else {**files, prompts.name: prompts})
    return Source(str(path), revision, chosen, files, prompts=prompts, id_columns=benchmark.id_columns)


def _on_hub(dataset: Dataset, name: str) -> Source:
    """A data set of the hub. Some of its files are a data set of their own, as other files may have other rubrics."""
    from tasks.dataset.hub import resolve_revision

    assert dataset.revision is not None
    commit = resolve_revision(name, dataset.revision)
    for file in dataset.files.values():
        _kind(Path(file))
    revision = digest(commit, *sorted(dataset.files.values())) if dataset.files else commit
    return Source(name, revision, dataset.splits or tuple(dataset.files), commit=commit, hub_files=dataset.files)


def sample_of(benchmark: str) -> Path | None:
    """The sample of a benchmark: the one that ships, or the one beside its module."""
    beside = folder_of(benchmark) / f"{benchmark}.jsonl"
    return next((path for path in (sample_path(benchmark), beside) if path.is_file()), None)


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a Parquet or JSON Lines file."""
    return _read_jsonl(path) if _kind(path) == "jsonl" else iter(_read_parquet(path))


def _files_by_split(path: Path, splits: tuple[str, ...]) -> dict[str, Path]:
    if path.is_dir():
        found = [file for file in sorted(path.iterdir()) if file.suffix in _SUFFIXES]
        files = {file.stem: file for file in found}
        if not files:
            raise UsageError(f"dataset.source: {path} holds no .parquet or .jsonl file")
        if len(files) < len(found):
            raise UsageError(f"dataset.source: {path} has two files for one split; keep one of them")
        _refuse_irregular(found)
        return files
    if not path.is_file():
        raise UsageError(f"dataset.source: {path} is not a file; give a .parquet or .jsonl file, `hub` or `sample`")
    if len(splits) > 1:
        raise UsageError(f"dataset.splits: {path} is one file and can be one split, not {len(splits)}")
    return {splits[0] if splits else path.stem: path}


def _prompts(dataset: Dataset, path: Path) -> Path | None:
    """The file of prompts that is configured, or the one in the data set's folder."""
    if dataset.prompts is not None:
        prompts = Path(dataset.prompts).expanduser()
        if not prompts.is_file():
            raise UsageError(
                f"dataset.prompts: {prompts} is not a file; give one with a line `id<TAB>prompt` for each task"
            )
        return prompts
    found = sorted(path.glob(f"*{PROMPTS}")) if path.is_dir() else []
    if len(found) > 1:
        raise UsageError(f"dataset.source: {path} holds {len(found)} {PROMPTS} files; name one as `dataset.prompts`")
    _refuse_irregular(found)
    return found[0] if found else None


def _refuse_irregular(found: Sequence[Path]) -> None:
    """Refuse what was found in a folder and is not a file: reading a pipe would wait for somebody at its other end."""
    wrong = next((path for path in found if not path.is_file()), None)
    if wrong is not None:
        raise UsageError(f"dataset.source: {wrong} is not a file, or a broken link; remove it from the folder")


def _content_revision(files: Mapping[str, Path]) -> str:
    """One file's revision is the hash of its bytes; a folder's that of all its files, whichever splits are chosen."""
    hashes = {split: hashlib.sha256(file.read_bytes()).hexdigest() for split, file in files.items()}
    if len(hashes) > 1:
        named = json.dumps(sorted(hashes.items()))
        return hashlib.sha256(named.encode()).hexdigest()[:_REVISION_HEX]
    return next(iter(hashes.values()))[:_REVISION_HEX]


def _kind(path: Path) -> str:
    kind = _SUFFIXES.get(path.suffix)
    if kind is None:
        raise UsageError(f"{path}: a data set is a .parquet or .jsonl file")
    return kind


def _read_parquet(path: Path) -> list[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise SourceError(f"{path}: has the column {twice!r} twice; keep one of the two")
        rows: list[Row] = pq.read_table(path).to_pylist()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise SourceError(f"{path}: cannot be read as Parquet ({reason}); fetch it again") from error
    return rows


def _read_jsonl(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", errors="strict") as file:
        try:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield _json_row(path, number, line)
        except UnicodeDecodeError as error:
            raise SourceError(f"{path}: not UTF-8 text ({error.reason}); save it as UTF-8") from error


def _json_row(path: Path, number: int, line: str) -> Row:
    try:
        row = read_json(line)
    except KeyTwice as error:
        raise SourceError(f"{path}:{number}: {error} in the row; keep one of the two") from error
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path}:{number}: not a JSON object ({error}); correct or remove the line") from error
    if not isinstance(row, dict):
        raise SourceError(f"{path}:{number}: not a JSON object but {type(row).__name__}; correct or remove the line")
    return row
