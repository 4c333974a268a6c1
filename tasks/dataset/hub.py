"""Reading a pinned revision of a data set from the hub, or from the cache of an earlier read."""

import logging
import os
import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.rules.errors import PipelineError, causes_of

if TYPE_CHECKING:
    from datasets import DatasetDict
    from huggingface_hub.errors import HfHubHTTPError

_COMMIT = re.compile(r"[0-9a-f]{40}")
_GET_ACCESS = "accept the terms on the data set's hub page and set HF_TOKEN"
_LONGEST_CAUSE = 300  # characters of a library's message that still fit a line


class HubError(PipelineError):
    """A data set could not be read; one line that names the data set, the reason and the remedy."""


def resolve_revision(dataset_id: str, revision: str) -> str:
    """The commit, 40 hex digits, that a revision names.

    A commit is returned unchanged without any network access; a branch or tag is looked up at the
    hub. Raises HubError when the hub does not know it, cannot be reached or refuses access.
    """
    return revision if _COMMIT.fullmatch(revision) else _ask_hub(dataset_id, revision)


def load_split(dataset_id: str, revision: str, split: str) -> list[dict[str, Any]]:
    """All rows of one split as plain Python dicts, in the hub's order.

    Lists are lists and whole numbers are ints. The first read of a revision puts all its splits
    into the cache; under HF_HUB_OFFLINE=1 a commit is then read from there with no network access.
    Raises HubError, always one line.
    """
    from huggingface_hub import constants

    # The hub is asked first even for a commit, because `datasets` answers a hub that is down with
    # 23 s of retries, and a refusal with an exception that has lost its cause.
    ask = resolve_revision if constants.is_offline_mode() else _ask_hub
    splits = _load_commit(dataset_id, ask(dataset_id, revision))
    if split not in splits:
        raise _failure(dataset_id, revision, f"no split '{split}': choose one of {', '.join(splits)}")
    rows: list[dict[str, Any]] = splits[split].to_list()
    return rows


def fetch(dataset_id: str, commit: str, file: str) -> Path:
    """A file of the repository at a commit as it is there, from the cache if it was read before.

    Raises HubError, always one line.
    """
    from huggingface_hub import hf_hub_download

    with _explained(dataset_id, commit), _quiet():
        return Path(hf_hub_download(dataset_id, file, repo_type="dataset", revision=commit))


def _ask_hub(dataset_id: str, revision: str) -> str:
    """The commit of a revision according to the hub: one request, no retries."""
    from huggingface_hub import HfApi, constants

    with _explained(dataset_id, revision):
        info = HfApi().dataset_info(dataset_id, revision=revision, timeout=constants.HF_HUB_ETAG_TIMEOUT)
    if info.sha is None:
        raise _failure(dataset_id, revision, "the hub names no commit for it: check HF_ENDPOINT")
    return info.sha


def _load_commit(dataset_id: str, commit: str) -> "DatasetDict":
    """All splits at a commit that the hub is known to have, or that has to be in the cache."""
    import datasets

    with _explained(dataset_id, commit), _quiet():
        return datasets.load_dataset(
            # The prefix keeps a local folder of the same name from being read instead.
            f"hf://datasets/{dataset_id}",
            revision=commit,
            # When the hub fails, `datasets` takes the newest revision it finds in its cache,
            # whichever was asked for. In a cache of its own that can only be this commit.
            cache_dir=str(Path(datasets.config.HF_DATASETS_CACHE) / "commits" / commit),
        )


@contextmanager
def _explained(dataset_id: str, revision: str) -> Iterator[None]:
    """Report whatever is raised in one line, with the error as its cause."""
    try:
        yield
    except Exception as error:
        raise _failure(dataset_id, revision, _reason(error, dataset_id, revision)) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars and no log lines from the libraries: what matters reaches the caller."""
    import datasets
    from huggingface_hub.utils.tqdm import disable_progress_bars

    datasets.disable_progress_bars()
    disable_progress_bars()
    loggers = [logging.getLogger(name) for name in ("datasets", "huggingface_hub")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)  # a broken file is logged as an error, then raised
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _failure(dataset_id: str, revision: str, reason: str) -> HubError:
    """The error for the user: one line, and without the token, whatever text it may stand in."""
    from huggingface_hub import get_token

    line = " ".join(f"Cannot read {dataset_id}@{revision}: {reason}".split())
    token = get_token()
    return HubError(line.replace(token, "[HF_TOKEN]") if token else line)


def _reason(error: Exception, dataset_id: str, revision: str) -> str:
    """Why a read failed and what to do; the libraries hide the reason in a chain of errors."""
    from huggingface_hub import constants

    links, root = list(causes_of(error)), error
    while isinstance(root.__cause__, Exception):
        root = root.__cause__  # what was deliberately named as the cause
    if type(error).__name__ == "DatasetNotFoundError":  # it exists, so it is the files that are refused
        return f"the hub refuses access to its files: {_GET_ACCESS}"
    if type(root).__name__ == "ArrowInvalid":
        cached = Path(constants.HF_HUB_CACHE) / f"datasets--{dataset_id.replace('/', '--')}"
        return f"a data file is not readable Parquet: delete {cached} and retry, or pin another revision"
    if constants.is_offline_mode() and any(isinstance(link, ConnectionError | FileNotFoundError) for link in links):
        if _COMMIT.fullmatch(revision):
            return "offline and not in the cache: run once without HF_HUB_OFFLINE to fill it"
        return "offline, so its commit is unknown: pin a 40-digit commit or unset HF_HUB_OFFLINE"
    unexpected = textwrap.shorten(f"unexpected {type(root).__name__}: {root}", _LONGEST_CAUSE)
    return next(filter(None, map(_network_reason, links)), unexpected)


def _network_reason(error: BaseException) -> str | None:
    import httpx
    from huggingface_hub import constants, errors

    if isinstance(error, errors.HfHubHTTPError):
        return _http_reason(error)
    if isinstance(error, httpx.TransportError | ConnectionError):
        hub = constants.ENDPOINT.rpartition("@")[2]  # without a user and password
        named = f"; HF_ENDPOINT is {hub}" if "HF_ENDPOINT" in os.environ else ""
        return f"The hub cannot be reached (no network?{named}). With a cached copy: HF_HUB_OFFLINE=1."
    return None


def _http_reason(error: "HfHubHTTPError") -> str:
    """What an error answer of the hub means for the user."""
    from huggingface_hub import errors

    status = error.response.status_code
    if isinstance(error, errors.RevisionNotFoundError):
        return "the hub has no such revision: give a commit, branch or tag that exists"
    if isinstance(error, errors.EntryNotFoundError):
        return f"the hub has no file {error.response.url.path}: correct `dataset.files` or pin another revision"
    is_gated = isinstance(error, errors.GatedRepoError)
    if status == 404 or (isinstance(error, errors.RepositoryNotFoundError) and not is_gated):
        return "no such data set, or it is private: check the id, or set HF_TOKEN to read it"
    if status in (401, 403):
        return f"the hub refuses access (HTTP {status}): {_GET_ACCESS}"
    if status == 429 or status >= 500:
        return f"the hub failed (HTTP {status}): try again later"
    return f"the hub refuses the request (HTTP {status}): check the id and the revision"
