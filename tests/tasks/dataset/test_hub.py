"""The hub boundary, with the real `datasets` library against a local server on a real socket."""

import json
import socket
from typing import Any

import pytest

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.researchrubrics import parse_row
from tasks.config.settings import Dataset
from tasks.dataset.hub import resolve_revision
from tasks.dataset.source import open_source
from tests.tasks.dataset.rows import HUB_SCHEMA
from tests.tasks.dataset.server import data_file
from tests.tasks.dataset.sessions import (
    DOWN,
    FIRST,
    HEALTH,
    ID,
    MISSING,
    OFFLINE,
    ONLINE,
    SECOND,
    SPLITS,
    TOKEN,
    Session,
    research_rows,
    rows_of,
)

pytestmark = pytest.mark.slow


def task_ids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["task"] for row in rows]


def test_a_split_arrives_as_the_rows_that_were_published(online: Session) -> None:
    assert rows_of("first")["finance"] == online.rows("first")


def test_a_row_keeps_the_order_of_the_48_columns(online: Session) -> None:
    columns = list(online.rows("first")[0])

    assert 48 == len(columns)
    assert HUB_SCHEMA.names == columns


def test_each_split_gives_its_own_rows(online: Session) -> None:
    assert ["first-legal_hard-0", "first-legal_hard-1"] == task_ids(online.rows("other split"))


def test_a_repository_of_one_file_of_lines_is_the_split_train(online: Session) -> None:
    assert research_rows() == online.rows("one file of lines")
    assert [f"r{number}" for number in range(3)] == [parse_row(row).task_id for row in online.rows("one file of lines")]


def test_a_file_of_a_repository_is_a_split_where_that_is_asked_and_is_cached(online: Session, offline: Session) -> None:
    assert HEALTH == online.rows("one of several files") == offline.rows("one of several files")
    assert "hard.jsonl: correct `dataset.files`" in online.error("unknown file")
    assert "set HF_TOKEN" in online.error("file of a gated id")
    assert "not in the cache" in offline.error("another of several files")


def test_other_files_of_a_commit_are_another_revision() -> None:
    def revision(**files: str) -> str:
        dataset = Dataset(id=ID, revision=FIRST, files=files)
        return open_source(dataset, load_benchmark("healthbench")).revision

    assert revision(a="oss.jsonl", b="hard.jsonl") == revision(full="hard.jsonl", hard="oss.jsonl")
    assert 3 == len({FIRST, revision(a="oss.jsonl"), revision(a="consensus.jsonl")})


def test_another_revision_gives_its_own_rows(online: Session) -> None:
    assert ["second-finance-0", "second-finance-1"] == task_ids(online.rows("tag"))


def test_only_the_files_of_the_pinned_commits_are_downloaded(online: Session) -> None:
    files = [request for request in online.requests if f"GET /datasets/{ID}/resolve/" in request]
    commits = {request.split("/resolve/")[1].split("/")[0] for request in files}

    assert {FIRST, SECOND} == commits


def test_a_data_file_is_downloaded_once_however_many_splits_are_read(online: Session) -> None:
    for split in SPLITS:
        request = f"GET /datasets/{ID}/resolve/{FIRST}/{data_file(split)}"
        assert 1 == online.requests.count(request)


def test_a_tag_resolves_to_its_commit(online: Session) -> None:
    assert SECOND == online.outcomes["resolved tag"]["value"]


def test_a_commit_resolves_to_itself_without_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a commit must not need the network")

    monkeypatch.setattr(socket, "socket", refuse)

    assert MISSING == resolve_revision(ID, MISSING)


@pytest.mark.parametrize("name", ["missing commit", "missing tag"])
def test_a_missing_revision_is_called_missing(online: Session, name: str) -> None:
    assert "RevisionNotFoundError" == online.outcomes[name]["cause"]
    assert f"Cannot read {ID}@{ONLINE[name][2]}: the hub has no such revision" in online.error(name)


@pytest.mark.parametrize("name", ["gated", "forbidden"])
def test_a_refused_data_set_asks_to_accept_the_terms_and_set_a_token(online: Session, name: str) -> None:
    line = online.error(name)

    assert f"made-up/{name}@{FIRST}" in line
    assert "refuses access" in line
    assert "accept the terms" in line
    assert "HF_TOKEN" in line


@pytest.mark.parametrize("name", ["unknown id", "private"])
def test_an_id_that_the_hub_does_not_show_is_called_missing_or_private(online: Session, name: str) -> None:
    assert "RepositoryNotFoundError" == online.outcomes[name]["cause"]
    assert "no such data set, or it is private: check the id" in online.error(name)


def test_a_malformed_id_is_told_with_the_reason_of_the_library(online: Session) -> None:
    assert "HFValidationError" == online.outcomes["malformed id"]["cause"]
    assert "Cannot read a/b/c@main: unexpected HFValidationError" in online.error("malformed id")


def test_a_lost_data_file_is_not_told_as_a_lost_data_set(online: Session) -> None:
    path = f"/datasets/made-up/lost/resolve/{FIRST}/{data_file('finance')}"

    assert f"the hub has no file {path}" in online.error("lost")


def test_an_unforeseen_failure_is_told_with_the_reason_of_the_library(online: Session) -> None:
    assert "EmptyDatasetError" == online.outcomes["empty"]["cause"]
    assert f"made-up/empty@{FIRST}: unexpected EmptyDatasetError" in online.error("empty")


def test_a_failing_hub_is_told_with_its_status_and_without_a_wait(online: Session) -> None:
    assert "made-up/failing" in online.error("failing")
    assert "HTTP 500" in online.error("failing")
    assert online.outcomes["failing"]["seconds"] < 2


def test_an_unknown_split_is_told_with_the_splits_that_exist(online: Session) -> None:
    expected = "no split 'medicine': choose one of finance, legal, finance_hard, legal_hard"

    assert f"Cannot read {ID}@{FIRST}: {expected}" == online.error("unknown split")


def test_splits_cannot_be_pooled(online: Session) -> None:
    assert "no split 'finance+finance_hard'" in online.error("pooled splits")


def test_a_broken_data_file_is_named(online: Session) -> None:
    line = online.error("broken")

    assert f"made-up/broken@{FIRST}: a data file is not readable Parquet" in line
    assert "delete" in line


def test_a_token_is_never_told(online: Session) -> None:
    assert f"Cannot read {ID}@[HF_TOKEN]: " in online.error("token as tag")
    assert TOKEN not in json.dumps(online.outcomes)


def test_offline_a_commit_is_read_from_the_cache_and_is_never_another_one(
    offline: Session,
) -> None:
    assert rows_of("first")["finance"] == offline.rows("first")
    assert rows_of("second")["finance"] == offline.rows("second")


def test_offline_the_hub_is_asked_nothing(offline: Session) -> None:
    assert [] == offline.requests


@pytest.mark.parametrize("name", ["not cached", "never seen"])
def test_offline_a_commit_outside_the_cache_is_missed_although_another_is_cached(offline: Session, name: str) -> None:
    _, dataset_id, commit, _ = OFFLINE[name]
    reason = "offline and not in the cache: run once without HF_HUB_OFFLINE to fill it"

    assert f"Cannot read {dataset_id}@{commit}: {reason}" == offline.error(name)


def test_offline_a_tag_is_refused_because_its_commit_is_unknown(offline: Session) -> None:
    assert f"Cannot read {ID}@v2: offline, so its commit is unknown" in offline.error("tag")


def test_offline_an_unknown_split_is_told_with_the_splits_that_exist(offline: Session) -> None:
    assert "choose one of finance, legal" in offline.error("unknown split")


@pytest.mark.parametrize("name", DOWN)
def test_a_hub_that_is_down_is_told_within_seconds_even_with_a_filled_cache(down: Session, name: str) -> None:
    assert "The hub cannot be reached (no network?" in down.error(name)
    assert down.error(name).endswith("). With a cached copy: HF_HUB_OFFLINE=1.")
    assert down.outcomes[name]["seconds"] < 5


def test_each_failure_is_one_line_and_keeps_its_cause(online: Session, offline: Session, down: Session) -> None:
    for session in (online, offline, down):
        for outcome in session.outcomes.values():
            if line := outcome["error"]:
                assert [line] == line.splitlines()
                assert "NoneType" != outcome["cause"] or "no split" in line


def test_the_libraries_print_neither_progress_nor_warnings(online: Session, offline: Session, down: Session) -> None:
    assert ["", "", ""] == [online.stderr, offline.stderr, down.stderr]
