"""Sources of a data set's rows: the hub, Parquet or JSON Lines files, or the included sample.

Prompts may be in a separate file. A revision of the hub is pinned; one that was read before is in
the cache.
"""

import hashlib
import json
import logging
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from tasks.benchmarks import folder_of, load_benchmark
from tasks.benchmarks.base import Benchmark, DataRow, RowError
from tasks.benchmarks.rows import decoded
from tasks.config.job import DataRevision, Job
from tasks.config.settings import Dataset
from tasks.dataset.foreign_files import MOST_BYTES, FileTooLarge, open_regular, refuse_bomb
from tasks.rules.errors import PipelineError, UsageError, causes_of, disk_errors, from_home
from tasks.rules.identity import digest
from tasks.rules.records import Task
from tasks.rules.text.characters import hint_on, one_line
from tasks.rules.text.json_text import read_json
from tasks.rules.text.numbers import list_text
from warehouse import Row, sample_path

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".parquet", ".jsonl", ".ndjson")


class SourceError(PipelineError):
    """A data set cannot be read; the message names the file, and the line if there is one."""


def read_rows(path: Path) -> Iterator[DataRow]:
    """Yield the rows of a Parquet or JSON Lines file.

    Raises:
        UsageError: it has another suffix.
        SourceError: it cannot be read.
    """
    refuse_other_suffix(path)
    if path.suffix == ".parquet":
        yield from _read_parquet(path)
        return
    with TextIOWrapper(open_regular(path), encoding="utf-8-sig") as file:
        try:
            yield from json_rows(path, file)
        except UnicodeDecodeError as error:
            raise SourceError(
                f"{path}: not UTF-8 text ({error.reason}); save it as UTF-8"
            ) from error


def refuse_other_suffix(path: Path) -> None:
    """Refuse a file that is neither Parquet nor JSON Lines, by its suffix.

    Raises:
        UsageError: it has another one.
    """
    if path.suffix not in SUFFIXES:
        raise UsageError(
            f"{path}: unknown kind of file; use one of {', '.join(SUFFIXES)} (imports: or .csv,"
            " .json)"
        )


def parquet_batches(
    path: Path,
    n_rows: int,
    columns: Sequence[str] | None = None,
    most_bytes: float = float("inf"),
) -> Iterator["pa.RecordBatch"]:
    """Yield the rows of a Parquet file in batches of `n_rows`; all batches together have at most
    `most_bytes`.

    Raises:
        FileTooLarge: the batches have more, or the file unpacks to far more than its size.
        ArrowException: it is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_regular(path) as content, pq.ParquetFile(content) as file:
        refuse_repeated_columns(path, file.schema_arrow.names)
        metadata = file.metadata
        sizes = [metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups)]
        refuse_bomb(path, path.stat().st_size, sizes)
        n_bytes = 0
        for batch in file.iter_batches(n_rows, columns=columns):
            # Each row counts for 64 bytes in addition to its values.
            n_bytes += 64 * batch.num_rows
            for column in batch.columns:
                is_encoded = isinstance(column, pa.DictionaryArray)
                values = column.dictionary_decode() if is_encoded else column
                n_bytes += values.nbytes
            if n_bytes > most_bytes:
                raise FileTooLarge(
                    f"{path}: it would unpack to more than {most_bytes / 1e9:.1f} GB; split it"
                )
            yield batch


def _read_parquet(path: Path) -> Iterator[DataRow]:
    import pyarrow as pa

    try:
        # Small batches, because each row may unpack a long text that the file stores only once.
        for batch in parquet_batches(path, 256, most_bytes=MOST_BYTES):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError, ValueError, OverflowError, LookupError) as error:
        reason = str(error).splitlines()[0]
        raise SourceError(
            f"{path}: cannot be read as Parquet ({reason}); fetch it again"
        ) from error


def refuse_repeated_columns(path: Path, columns: Iterable[str]) -> None:
    """Refuse a file that has two columns of one name.

    Raises:
        SourceError: two columns have the same name.
    """
    for name, n in Counter(columns).items():
        if name and n > 1:
            raise SourceError(f"{path}: has the column {name!r} twice; keep one of the two")


def json_rows(where: object, lines: Iterable[str]) -> Iterator[DataRow]:
    """Yield the objects of JSON Lines.

    Raises:
        SourceError: a line is not a JSON object.
    """
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                row = read_json(line)
            except (ValueError, RecursionError) as error:
                raise SourceError(
                    f"{where}:{number}: not a JSON object ({error}); correct the line"
                ) from error
            if not isinstance(row, dict):
                raise SourceError(
                    f"{where}:{number}: not a JSON object but {type(row).__name__}; correct the"
                    " line"
                )
            yield row


_PROMPTS_SUFFIX = ".tsv"


def read_prompts(path: Path) -> dict[str, str]:
    """Return the prompts by task id from a file with lines of a task id, a tab, and the prompt
    (unquoted).

    Raises:
        SourceError: a line has no tab, an id appears twice, or the file cannot be read.
    """
    try:
        with TextIOWrapper(open_regular(path), encoding="utf-8-sig") as file:
            lines = [line.rstrip("\n").partition("\t") for line in file if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(
            f"{path}: cannot be read ({error}); give a UTF-8 file of `id<TAB>prompt` lines"
        ) from error
    prompts = {task_id: prompt for task_id, tab, prompt in lines if tab}
    if len(prompts) < len(lines):
        raise SourceError(
            f"{path}: a line has no tab after its id, or an id appears twice; correct the file"
        )
    return prompts


def with_prompt(row: DataRow, prompts: Mapping[str, str], id_columns: Iterable[str]) -> DataRow:
    """Return a row with the prompt for its id; a row that has a prompt, or whose id has none, is
    unchanged.
    """
    if row.get("prompt"):
        return row
    for name in id_columns:
        task_id = decoded(row.get(name))
        if isinstance(task_id, str | int) and str(task_id) in prompts:
            return {**row, "prompt": prompts[str(task_id)]}
    return row


class Source(NamedTuple):
    """A readable data set: its pinned revision, and a function that returns the rows of a split, in
    their order.

    `files` are the local files, by split; empty for a data set of the hub.
    """

    name: str
    revision: str
    splits: tuple[str, ...]
    rows: Callable[[str], Sequence[DataRow]]
    files: Mapping[str, Path] = {}


def tasks_of(source: Source, split: str, benchmark: Benchmark) -> Iterator[Task]:
    """Yield the tasks in the rows of a split.

    Raises:
        SourceError: there is no row, a column is missing, or a row cannot become a task.
    """
    rows = source.rows(split)
    where = str(source.files.get(split, f"{source.name}@{source.revision[:12]}, split {split}"))
    if not rows:
        raise SourceError(f"{where}: there is no row")
    # Columns that no row has: JSON Lines may leave out a column where it is empty.
    missing_columns = set(benchmark.columns).difference(*rows)
    if missing_columns:
        raise SourceError(
            f"{where}: lacks the column {list_text(sorted(missing_columns), 5)}; all"
            f" {benchmark.name} rows have it"
        )
    for number, row in enumerate(rows, start=1):
        try:
            yield benchmark.parse_row(row)
        except Exception as error:
            cause = str(error)
            if not isinstance(error, RowError):
                cause = f"{benchmark.name}.parse_row: {type(error).__name__}: {error}"
            raise SourceError(
                f"{where}: row {number}: {one_line(cause)}; correct or remove it"
            ) from error


def with_revision(job: Job) -> Job:
    """Return the job with a function that finds its data set's revision when it is first needed."""
    dataset = job.settings.dataset

    def find() -> DataRevision:
        # A missing split is reported only by commands that need its tasks.
        source = _find_source(dataset, load_benchmark(job.benchmark))
        return DataRevision(
            name=source.name,
            revision=source.revision,
            splits=dataset.splits or source.splits,
        )

    return job.looking_up(find)


def source_of(job: Job) -> Source:
    """Return the data set of a job (see `open_source` for its errors)."""
    return open_source(job.settings.dataset, load_benchmark(job.benchmark))


def open_source(dataset: Dataset, benchmark: Benchmark) -> Source:
    """Return the source that a configuration names.

    Raises:
        UsageError: the configuration names no readable source, or a split that the source lacks.
        SourceError: a file cannot be read.
    """
    source = _find_source(dataset, benchmark)
    for split in dataset.splits:
        if split not in source.splits:
            hint = hint_on(split, source.splits)
            raise UsageError(f"dataset.splits: {source.name} has no split {split!r}{hint}")
    return source._replace(splits=dataset.splits or source.splits)


def _find_source(dataset: Dataset, benchmark: Benchmark) -> Source:
    """Return the source that a configuration names, with all its splits, or on the hub with the
    configured ones.
    """
    if dataset.source == "hub":
        return _at_hub(dataset, benchmark)
    is_sample = dataset.source == "sample"
    path = sample_of(benchmark.name) if is_sample else from_home(dataset.source, "dataset.source")
    if path is None:
        raise UsageError(
            f"dataset.source: there is no sample of {benchmark.name}; name a file, a folder or"
            " `hub`"
        )
    with disk_errors(path, "check the path and its permissions"):
        files = {"sample": path} if is_sample else _files_by_split(path, dataset.splits)
        prompts_file = _prompts_file(dataset, path)
        prompts_files = {} if prompts_file is None else {prompts_file.name: prompts_file}
        revision = _content_revision(files | prompts_files)

    def rows(split: str) -> Sequence[DataRow]:
        prompts = {} if prompts_file is None else read_prompts(prompts_file)
        return [with_prompt(row, prompts, benchmark.id_columns) for row in read_rows(files[split])]

    return Source(str(path), revision, tuple(files), rows, files)


def _at_hub(dataset: Dataset, benchmark: Benchmark) -> Source:
    assert dataset.revision is not None
    name = dataset.id or benchmark.default_dataset_id
    files = dataset.files
    commit = resolve_revision(name, dataset.revision)
    for file in files.values():
        refuse_other_suffix(Path(file))
    # A choice of files in the repository has a revision of its own, because files may differ in
    # their rubrics. The names of the splits are not part of it.
    revision = digest(commit, *sorted(files.values())) if files else commit

    def rows(split: str) -> Sequence[DataRow]:
        if files:
            return list(read_rows(fetch(name, commit, files[split])))
        return load_split(name, commit, split)

    return Source(name, revision, dataset.splits or tuple(files), rows)


_ADVICE = (
    "check the id, `revision`, `files`, the network, and access (accept the terms on the hub page,"
    " set HF_TOKEN); a commit that was read before needs no network with HF_HUB_OFFLINE=1; delete a"
    " damaged file from the cache"
)


def resolve_revision(dataset_id: str, revision: str) -> str:
    """Return the commit, 40 hex digits, that a revision names.

    A commit is returned unchanged without network access; a branch or tag is looked up at the hub.

    Raises:
        SourceError: the hub does not know it, cannot be reached or refuses access.
    """
    if re.fullmatch(r"[0-9a-f]{40}", revision):
        return revision
    return _commit_at_hub(dataset_id, revision)


def check_hub(job: Job) -> str:
    """Ask the hub for the configured revision, and return a line that says that it responds, or
    that HF_HUB_OFFLINE prevents asking.

    Raises:
        SourceError: the hub cannot be reached, does not know the revision or refuses access.
    """
    from huggingface_hub import constants

    if constants.is_offline_mode():
        return "the hub is not asked (HF_HUB_OFFLINE)"
    dataset = job.settings.dataset
    assert dataset.revision is not None
    address = urlsplit(constants.ENDPOINT)
    where = f"{address.hostname}:{address.port or (443 if address.scheme == 'https' else 80)}"
    try:
        _commit_at_hub(job.data.name, dataset.revision)
    except SourceError as error:
        raise SourceError(f"the hub at {where}: {error}") from error
    return f"{where} responds"


def load_split(dataset_id: str, revision: str, split: str) -> list[Row]:
    """Return all rows of one split as plain Python dicts, in the hub's order.

    Lists are lists and whole numbers are ints. The first read of a revision puts all its splits
    into the cache; under HF_HUB_OFFLINE=1 a commit is then read from there with no network access.

    Raises:
        SourceError: it cannot be read.
    """
    import datasets
    from huggingface_hub import constants

    # The hub is called first, even for a commit, because `datasets` retries for 23 s if the hub is
    # down, and hides the cause if the hub refuses.
    is_offline = constants.is_offline_mode()
    resolve = resolve_revision if is_offline else _commit_at_hub
    commit = resolve(dataset_id, revision)
    datasets.disable_progress_bars()
    with _explaining(dataset_id, commit):
        splits = datasets.load_dataset(
            # Without this prefix, a local folder of the same name would be read instead.
            f"hf://datasets/{dataset_id}",
            revision=commit,
            # If the hub fails, `datasets` loads the newest revision in its cache, whichever was
            # requested; so each commit has its own cache.
            cache_dir=str(Path(datasets.config.HF_DATASETS_CACHE) / "commits" / commit),
        )
    if split not in splits:
        raise _failure(
            dataset_id, revision, f"no split '{split}': choose one of {', '.join(splits)}"
        )
    rows: list[Row] = splits[split].to_list()
    return rows


def fetch(dataset_id: str, commit: str, file: str) -> Path:
    """Return the local path of a file in the repository at a commit; a file that was read before is
    in the cache.

    Raises:
        SourceError: it cannot be fetched.
    """
    from huggingface_hub import hf_hub_download

    with _explaining(dataset_id, commit):
        return Path(hf_hub_download(dataset_id, file, repo_type="dataset", revision=commit))


def _commit_at_hub(dataset_id: str, revision: str) -> str:
    """Ask the hub for the commit of a revision, in one request without retries."""
    from huggingface_hub import HfApi, constants

    with _explaining(dataset_id, revision):
        info = HfApi().dataset_info(
            dataset_id, revision=revision, timeout=constants.HF_HUB_ETAG_TIMEOUT
        )
        # `_explaining` makes this a `SourceError`.
        assert info.sha is not None, "the hub names no commit; check HF_ENDPOINT"
    return info.sha


@contextmanager
def _explaining(dataset_id: str, revision: str) -> Iterator[None]:
    """Turn any error into one line, with the original error as its cause; from then on, the
    libraries print and log nothing.
    """
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    for name in ("datasets", "huggingface_hub"):
        # They log a broken file as an error before they raise one.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    except Exception as error:
        # The reason is within a chain of errors: it is an HTTP error of the hub, or else the last
        # cause.
        last_cause = error
        while isinstance(last_cause.__cause__, Exception):
            last_cause = last_cause.__cause__
        http_errors = (cause for cause in causes_of(error) if isinstance(cause, HfHubHTTPError))
        root = next(http_errors, last_cause)
        reason = textwrap.shorten(f"{type(root).__name__}: {root}", 400)
        raise _failure(dataset_id, revision, f"{reason}; {_ADVICE}") from error


def _failure(dataset_id: str, revision: str, reason: str) -> SourceError:
    """Return the error for the user: one line, without the token and the hub's user and
    password.
    """
    from huggingface_hub import get_token

    message = re.sub("//[^/@ ]+@", "//", f"Cannot read {dataset_id}@{revision}: {reason}")
    line = " ".join(message.split())
    token = get_token()
    if token:
        line = line.replace(token, "[HF_TOKEN]")
    return SourceError(line)


def sample_of(benchmark: str) -> Path | None:
    """Return the sample of a benchmark: the included one, or the one next to its module."""
    for path in (sample_path(benchmark), folder_of(benchmark) / f"{benchmark}.jsonl"):
        if path.is_file():
            return path
    return None


def _files_by_split(path: Path, splits: tuple[str, ...]) -> dict[str, Path]:
    if path.is_dir():
        candidates = [file for file in sorted(path.iterdir()) if file.suffix in SUFFIXES]
        files = {file.stem: file for file in candidates}
        if not files or len(files) < len(candidates):
            raise UsageError(
                f"dataset.source: {path} has no .parquet or .jsonl file, or two files for one split"
            )
        return files
    if not path.is_file():
        raise UsageError(
            f"dataset.source: {path} is not a file; give a .parquet or .jsonl file, `hub` or"
            " `sample`"
        )
    if len(splits) > 1:
        raise UsageError(
            f"dataset.splits: {path} is one file and can be one split, not {len(splits)}"
        )
    return {splits[0] if splits else path.stem: path}


def _prompts_file(dataset: Dataset, path: Path) -> Path | None:
    """Return the configured file of prompts, or the one in the data set's folder."""
    if dataset.prompts is not None:
        file = from_home(dataset.prompts, "dataset.prompts")
        if not file.is_file():
            raise UsageError(
                f"dataset.prompts: {file} is not a file; give one of lines `id<TAB>prompt`"
            )
        return file
    files = sorted(path.glob(f"*{_PROMPTS_SUFFIX}")) if path.is_dir() else []
    if len(files) > 1:
        raise UsageError(
            f"dataset.source: {path} holds {len(files)} {_PROMPTS_SUFFIX} files; name one as"
            " `dataset.prompts`"
        )
    return files[0] if files else None


def _content_revision(files: Mapping[str, Path]) -> str:
    """Return the revision of files: a hash of the bytes of all given files, whichever splits are
    configured, with as many digits as a commit of the hub.
    """
    hashes = {}
    for split, file in files.items():
        with open_regular(file) as content:
            hashes[split] = hashlib.file_digest(content, "sha256").hexdigest()
    if len(hashes) == 1:  # the name of a single file is not part of its revision
        (revision,) = hashes.values()
    else:
        listed_hashes = json.dumps(sorted(hashes.items()))
        revision = hashlib.sha256(listed_hashes.encode()).hexdigest()
    return revision[:40]
