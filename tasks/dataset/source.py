"""Where rows come from: the hub, files of the hub's shape, or the sample that ships."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tasks.benchmarks import folder_of, load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.config.job import DataRevision, Job
from tasks.config.settings import Dataset
from tasks.dataset.foreign_files import open_regular
from tasks.dataset.rows import PROMPTS, SUFFIXES, Row, SourceError, kind_of, read_prompts, read_rows, with_prompts
from tasks.rules.errors import UsageError, from_home
from tasks.rules.identity import digest
from warehouse import sample_path

_REVISION_HEX = 40


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
    """The job, which looks up the revision of its data set when that is first needed."""
    dataset, benchmark = job.settings.dataset, job.settings.benchmark

    def find() -> DataRevision:
        # A split that is not there is missed by those who need its tasks.
        found = _located(dataset, load_benchmark(benchmark))
        return DataRevision(name=found.name, revision=found.revision, splits=dataset.splits or found.splits)

    return job.looking_up(find)


def source_of(job: Job) -> Source:
    """The data set that a job is about (see `open_source` for what can be wrong)."""
    return open_source(job.settings.dataset, load_benchmark(job.settings.benchmark))


def open_source(dataset: Dataset, benchmark: Benchmark) -> Source:
    """The source that a configuration names.

    Raises:
        UsageError: the configuration names no readable source, or a split that it lacks.
        SourceError: a file cannot be read.
    """
    source = _located(dataset, benchmark)
    if missing := next((split for split in dataset.splits if split not in source.splits), None):
        raise UsageError(f"dataset.splits: {source.name} has no split {missing!r}; it has {', '.join(source.splits)}")
    return replace(source, splits=dataset.splits or source.splits)


def _located(dataset: Dataset, benchmark: Benchmark) -> Source:
    """The source that a configuration names, with every split that it has; of the hub, those that are configured."""
    if dataset.source == "hub":
        return _on_hub(dataset, dataset.id or benchmark.default_dataset_id)
    path = _path(dataset, benchmark)
    try:
        files = {"sample": path} if dataset.source == "sample" else _files_by_split(path, dataset.splits)
        prompts = _prompts(dataset, path)
        revision = _content_revision(files if prompts is None else {**files, prompts.name: prompts})
    except OSError as error:
        # What fails in the middle of a file does not say which one it was.
        where, why = error.filename or path, error.strerror or error
        raise SourceError(f"dataset.source: {where}: {why}; check the path and its permissions") from error
    return Source(str(path), revision, tuple(files), files, prompts=prompts, id_columns=benchmark.id_columns)


def _path(dataset: Dataset, benchmark: Benchmark) -> Path:
    """The file or folder of a data set that is not on the hub."""
    if dataset.source != "sample":
        return from_home(dataset.source, "dataset.source")
    path = sample_of(benchmark.name)
    if path is None:
        raise UsageError(f"dataset.source: there is no sample of {benchmark.name}; name a file, a folder or `hub`")
    return path


def _on_hub(dataset: Dataset, name: str) -> Source:
    """A data set of the hub. Some of its files are a data set of their own, as other files may have other rubrics."""
    from tasks.dataset.hub import resolve_revision

    assert dataset.revision is not None
    commit = resolve_revision(name, dataset.revision)
    for file in dataset.files.values():
        kind_of(Path(file))
    revision = digest(commit, *sorted(dataset.files.values())) if dataset.files else commit
    return Source(name, revision, dataset.splits or tuple(dataset.files), commit=commit, hub_files=dataset.files)


def sample_of(benchmark: str) -> Path | None:
    """The sample of a benchmark: the one that ships, or the one beside its module."""
    beside = folder_of(benchmark) / f"{benchmark}.jsonl"
    return next((path for path in (sample_path(benchmark), beside) if path.is_file()), None)


def _files_by_split(path: Path, splits: tuple[str, ...]) -> dict[str, Path]:
    if path.is_dir():
        found = [file for file in sorted(path.iterdir()) if file.suffix in SUFFIXES]
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
        prompts = from_home(dataset.prompts, "dataset.prompts")
        if prompts.is_file():
            return prompts
        raise UsageError(
            f"dataset.prompts: {prompts} is not a file; give one with a line `id<TAB>prompt` for each task"
        )
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
    hashes = {}
    for split, file in files.items():
        with open_regular(file) as opened:
            hashes[split] = hashlib.file_digest(opened, "sha256").hexdigest()
    if len(hashes) > 1:
        return hashlib.sha256(json.dumps(sorted(hashes.items())).encode()).hexdigest()[:_REVISION_HEX]
    return next(iter(hashes.values()))[:_REVISION_HEX]
