"""The reader of a pinned revision of a data set, from the hub or from the cache of an earlier read."""

import logging
import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tasks.rules.errors import PipelineError, causes_of

_ADVICE = (
    "check the id, `revision`, `files`, the network, and access (accept the terms on the hub page, set HF_TOKEN); a "
    "commit that was read before needs no network with HF_HUB_OFFLINE=1; delete a damaged file from the cache"
)


class HubError(PipelineError):
    """A data set could not be read; the message is one line with the data set, the reason and the remedy."""


def resolve_revision(dataset_id: str, revision: str) -> str:
    """Return the commit, 40 hex digits, that a revision names.

    A commit is returned unchanged without network access; a branch or tag is looked up at the hub.

    Raises:
        HubError: the hub does not know it, cannot be reached or refuses access.
    """
    return revision if re.compile(r"[0-9a-f]{40}").fullmatch(revision) else _commit_at_hub(dataset_id, revision)


def load_split(dataset_id: str, revision: str, split: str) -> list[dict[str, Any]]:
    """Return all rows of one split as plain Python dicts, in the hub's order.

    Lists are lists and whole numbers are ints. The first read of a revision puts all its splits
    into the cache; under HF_HUB_OFFLINE=1 a commit is then read from there with no network access.

    Raises:
        HubError: it cannot be read.
    """
    import datasets
    from huggingface_hub import constants

    # The hub is called first, even for a commit, because `datasets` retries for 23 s if the hub is down, and hides the
    # cause if the hub refuses.
    commit = (resolve_revision if constants.is_offline_mode() else _commit_at_hub)(dataset_id, revision)
    datasets.disable_progress_bars()
    with _explained(dataset_id, commit):
        splits = datasets.load_dataset(
            # Without this prefix, a local folder of the same name would be read instead.
            f"hf://datasets/{dataset_id}",
            revision=commit,
            # If the hub fails, `datasets` loads the newest revision in its cache, whichever was requested; so each
            # commit has its own cache.
            cache_dir=str(Path(datasets.config.HF_DATASETS_CACHE) / "commits" / commit),
        )
    if split not in splits:
        raise _failure(dataset_id, revision, f"no split '{split}': choose one of {', '.join(splits)}")
    rows: list[dict[str, Any]] = splits[split].to_list()
    return rows


def fetch(dataset_id: str, commit: str, file: str) -> Path:
    """Return the local path of a file in the repository at a commit; a file that was read before is in the cache.

    Raises:
        HubError: it cannot be fetched.
    """
    from huggingface_hub import hf_hub_download

    with _explained(dataset_id, commit):
        return Path(hf_hub_download(dataset_id, file, repo_type="dataset", revision=commit))


def _commit_at_hub(dataset_id: str, revision: str) -> str:
    """Ask the hub for the commit of a revision, in one request without retries."""
    from huggingface_hub import HfApi, constants

    with _explained(dataset_id, revision):
        info = HfApi().dataset_info(dataset_id, revision=revision, timeout=constants.HF_HUB_ETAG_TIMEOUT)
        assert info.sha is not None, "the hub names no commit; check HF_ENDPOINT"
    return info.sha


@contextmanager
def _explained(dataset_id: str, revision: str) -> Iterator[None]:
    """Turn any error into one line, with the original error as its cause; the libraries print and log nothing."""
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    for name in ("datasets", "huggingface_hub"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # they log a broken file as an error before they raise one
    try:
        yield
    except Exception as error:
        # The reason is within a chain of errors: it is an HTTP error of the hub, or else the last cause.
        links, root = list(causes_of(error)), error
        while isinstance(root.__cause__, Exception):
            root = root.__cause__
        root = next((link for link in links if isinstance(link, HfHubHTTPError)), root)
        reason = textwrap.shorten(f"{type(root).__name__}: {root}", 400)
        raise _failure(dataset_id, revision, f"{reason}; {_ADVICE}") from error


def _failure(dataset_id: str, revision: str, reason: str) -> HubError:
    """Return the error for the user: one line, without the token and the hub's user and password."""
    from huggingface_hub import get_token

    line = " ".join(re.sub("//[^/@ ]+@", "//", f"Cannot read {dataset_id}@{revision}: {reason}").split())
    token = get_token()
    return HubError(line.replace(token, "[HF_TOKEN]") if token else line)
