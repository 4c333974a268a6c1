"""The hub boundary, with the real `datasets` library against a local server on a real socket."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.researchrubrics import parse_row
from tasks.config.settings import Dataset
from tasks.dataset.source import open_source
from tests.kit import ROOT
from tests.tasks.benchmarks.research import research_row
from tests.tasks.dataset.rows import HUB_SCHEMA, hub_row
from tests.tasks.dataset.server import (
    BROKEN,
    FORBIDDEN,
    GATED,
    LOST_FILES,
    HubServer,
    data_file,
    parquet,
)

ID = "made-up/bench"
LINES = "processed_data.jsonl"
FIRST = "a" * 40
SECOND = "b" * 40
MISSING = "c" * 40
SPLITS = ("finance", "legal", "finance_hard", "legal_hard")
TOKEN = "hf_made_up_token"


def load(
    name: str,
    revision: str = FIRST,
    split: str = "finance",
) -> tuple[str, ...]:
    return "load_split", f"made-up/{name}", revision, split


FAILURES = {
    "missing commit": (
        load("bench", MISSING),
        "RevisionNotFoundError",
        "RevisionNotFoundError: 404",
    ),
    "missing tag": (
        ("resolve_revision", ID, "v9"),
        "RevisionNotFoundError",
        "RevisionNotFoundError: 404",
    ),
    "token as tag": (("resolve_revision", ID, TOKEN), None, ""),
    "gated": (load("gated"), None, "DatasetNotFoundError: "),
    "failing": (load("failing"), None, "HfHubHTTPError: "),
    "unknown id": (
        load("unknown"),
        "RepositoryNotFoundError",
        "RepositoryNotFoundError: 401",
    ),
    "unknown split": (
        load("bench", split="medicine"),
        None,
        f"no split 'medicine': choose one of {', '.join(SPLITS)}",
    ),
    # Only files are missing, so the error must not say that the data set is.
    "lost": (load("lost"), None, "RemoteEntryNotFoundError: 404"),
    "broken": (load("broken"), None, "ArrowInvalid: "),
    "empty": (load("empty"), "EmptyDatasetError", "EmptyDatasetError: "),
    "forbidden": (load("forbidden"), None, "GatedRepoError: 403"),
    "unknown file": (
        ("rows_of_file", "made-up/several", FIRST, "x.jsonl"),
        None,
        "RemoteEntryNotFoundError: 404",
    ),
    "file of a gated id": (
        ("rows_of_file", "made-up/gated", FIRST, "x.jsonl"),
        None,
        "GatedRepoError: 401",
    ),
}
"""Name -> the failing call, the error that caused it, and its message after the data set and the
revision.
"""
SEVERAL = ("rows_of_file", "made-up/several")
ONLINE = {
    "first": load("bench"),
    "other split": load("bench", split="legal_hard"),
    "tag": load("bench", "v2"),
    "resolved tag": ("resolve_revision", ID, "v2"),
    "one file of lines": load("lines", split="train"),
    "one of several files": (*SEVERAL, "main", "all/oss_eval.jsonl"),
    **{name: call for name, (call, _, _) in FAILURES.items()},
}
OFFLINE = {
    "first": load("bench"),
    "second": load("bench", SECOND),
    "not cached": load("bench", MISSING),
    "never seen": load("never-seen"),
    "tag": load("bench", "v2"),
    "one of several files": (*SEVERAL, FIRST, "all/oss_eval.jsonl"),
    "another of several files": (*SEVERAL, FIRST, "all/meta_eval.jsonl"),
}


@dataclass(frozen=True)
class Session:
    """One process: the outcome of each call, its standard error, and its requests to the hub."""

    outcomes: dict[str, dict[str, Any]]
    stderr: str
    requests: list[str]

    def result(self, name: str) -> Any:
        """Return what a call returned, or the line with which it failed."""
        return self.outcomes[name]["error"] or self.outcomes[name]["value"]


def rows_of(version: str) -> dict[str, list[dict[str, Any]]]:
    """Two tasks a split, the first with two turns, named for the version of the data set."""
    turns = {
        "turns": 2,
        "response_0": "Two.",
        "model_0": "made-up",
        "prompt_1": "And taxed?",
    }
    return {
        split: [
            hub_row(f"{version}-{split}-0", **turns),
            hub_row(f"{version}-{split}-1"),
        ]
        for split in SPLITS
    }


HEALTH = [
    {
        "prompt_id": "h0",
        "prompt": [],
        "ideal": None,
    },
    {
        "prompt_id": "h1",
        "prompt": [],
        "ideal": {"refs": ["x"]},
    },
]
RESEARCH = [research_row(number) for number in range(3)]
META = [{"prompt_id": "h0", "binary_labels": [True, False]}]
"""Files of one repository without common columns, so they cannot be splits of one data set."""


def lines_of(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def publish_all(hub: HubServer):
    """Fill the hub with a data set in two revisions and with one data set for each failure."""
    hub.publish(
        ID,
        FIRST,
        rows_of("first"),
        names=["v1"],
    )
    hub.publish(
        ID,
        SECOND,
        rows_of("second"),
        names=["v2", "main"],
    )
    hub.publish(
        "made-up/empty",
        FIRST,
        {},
        replace={"README.md": b"No data yet."},
    )
    hub.publish(
        "made-up/lines",
        FIRST,
        {},
        replace={"README.md": b"Lines.", LINES: lines_of(RESEARCH)},
    )
    several = {
        "README.md": b"Several.",
        "all/oss_eval.jsonl": lines_of(HEALTH),
        "all/meta_eval.jsonl": lines_of(META),
    }
    hub.publish(
        "made-up/several",
        FIRST,
        {},
        names=["main"],
        replace=several,
    )
    cut = {data_file("legal"): parquet(rows_of("cut")["legal"])[:-100]}
    hub.publish(
        "made-up/broken",
        FIRST,
        rows_of("broken"),
        replace=cut,
    )
    for name, refusal in {
        "gated": GATED,
        "forbidden": FORBIDDEN,
        "lost": LOST_FILES,
        "failing": BROKEN,
    }.items():
        hub.publish(f"made-up/{name}", FIRST, rows_of(name))
        hub.refuse(f"made-up/{name}", refusal)


def run(
    calls: Mapping[str, tuple[str, ...]],
    hub: HubServer,
    home: Path,
    **settings: str,
) -> Session:
    """Run `calls` in a new process in `home`, and return their outcomes."""
    n_requests = len(hub.requests)
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HF_")
    }
    environment = inherited | {
        "PYTHONPATH": str(ROOT),
        "HF_ENDPOINT": hub.address,
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": "127.0.0.1",
        # downloads are counted at a host other than HF_ENDPOINT
        "HF_UPDATE_DOWNLOAD_COUNTS": "0",
    }
    command = [
        sys.executable,
        "-m",
        "tests.tasks.dataset.runner",
        json.dumps(list(calls.values())),
    ]
    process = subprocess.run(
        command,
        env=environment | settings,
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    outcomes = dict(zip(calls, json.loads(process.stdout), strict=True))
    return Session(outcomes, process.stderr, hub.requests[n_requests:])


@pytest.fixture(scope="module")
def hub() -> Iterator[HubServer]:
    """A hub with everything that the sessions request."""
    with HubServer() as server:
        publish_all(server)
        yield server


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """The folder of the cache, also the working folder; it has a subfolder with the name of the
    data set.
    """
    home = tmp_path_factory.mktemp("home")
    shadow = home / ID / data_file("finance")
    shadow.parent.mkdir(parents=True)
    shadow.write_bytes(parquet(rows_of("local")["finance"]))
    return home


@pytest.fixture(scope="module")
def online(hub: HubServer, home: Path) -> Session:
    """A process that reaches the hub and starts with an empty cache."""
    return run(ONLINE, hub, home, HF_TOKEN=TOKEN)


@pytest.fixture(scope="module")
def offline(online: Session, hub: HubServer, home: Path) -> Session:
    """A process in offline mode, with the cache that `online` has filled."""
    return run(OFFLINE, hub, home, HF_HUB_OFFLINE="1")


pytestmark = pytest.mark.slow


def test_a_split_arrives_as_the_rows_that_were_published_at_its_revision(online):
    assert online.result("first") == rows_of("first")["finance"]
    assert list(online.result("first")[0]) == HUB_SCHEMA.names
    assert online.result("other split") == rows_of("first")["legal_hard"]
    assert online.result("tag") == rows_of("second")["finance"]
    assert online.result("resolved tag") == SECOND


def test_a_repository_of_one_file_of_lines_is_the_split_train(online):
    assert online.result("one file of lines") == RESEARCH
    for row in RESEARCH:
        assert parse_row(row).task_id == row["sample_id"]


def test_a_configured_file_of_a_repository_is_a_split_and_is_cached(online, offline):
    assert online.result("one of several files") == HEALTH
    assert offline.result("one of several files") == HEALTH


def test_other_files_of_a_commit_are_another_revision():
    def revision(**files):
        dataset = Dataset(
            id=ID,
            revision=FIRST,
            files=files,
        )
        return open_source(dataset, load_benchmark("healthbench")).revision

    same_revision = revision(full="hard.jsonl", hard="oss.jsonl")
    assert revision(a="oss.jsonl", b="hard.jsonl") == same_revision
    assert len({FIRST, revision(a="oss.jsonl"), revision(a="consensus.jsonl")}) == 3


def test_a_data_file_is_downloaded_once_however_many_splits_are_read(online):
    for split in SPLITS:
        request = f"GET /datasets/{ID}/resolve/{FIRST}/{data_file(split)}"
        assert online.requests.count(request) == 1
    prefix = f"GET /datasets/{ID}/resolve/"
    revisions = set()
    for request in online.requests:
        if prefix in request:
            revisions.add(request.removeprefix(prefix).partition("/")[0])
    assert revisions == {FIRST, SECOND}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_names_its_data_set_its_reason_and_what_to_do(online, name):
    (_, dataset_id, revision, *_), cause, reason = FAILURES[name]

    line = f"Cannot read {dataset_id}@{revision}: {reason}".replace(
        TOKEN, "[HF_TOKEN]"
    )
    assert online.result(name).startswith(line)
    if name != "unknown split":
        assert "set HF_TOKEN" in online.result(name)
    if cause is not None:
        assert online.outcomes[name]["cause"] == cause


def test_a_failing_hub_is_not_tried_again_and_again(online):
    assert sum("/made-up/failing" in request for request in online.requests) <= 2


def test_offline_a_commit_is_read_from_the_cache_and_is_never_another_one(offline):
    assert offline.result("first") == rows_of("first")["finance"]
    assert offline.result("second") == rows_of("second")["finance"]
    assert offline.requests == []


@pytest.mark.parametrize(
    "name", ["not cached", "never seen", "tag", "another of several files"]
)
def test_offline_the_message_names_what_is_missing(offline, name):
    assert offline.result(name).startswith("Cannot read made-up/")
    assert "needs no network with HF_HUB_OFFLINE=1" in offline.result(name)


@pytest.mark.parametrize("name", ["online", "offline"])
def test_a_failure_is_one_line_and_nothing_else_is_printed(request, name):
    session = request.getfixturevalue(name)

    assert session.stderr == ""
    failures = [outcome for outcome in session.outcomes.values() if outcome["error"]]
    for failure in failures:
        assert len(failure["error"].splitlines()) == 1
        assert failure["cause"] != "NoneType" or "no split" in failure["error"]


def test_the_token_is_in_no_message(online):
    assert TOKEN not in json.dumps(online.outcomes)
