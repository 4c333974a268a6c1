"""What a report is about, and under which names."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.report import write_report
from tasks.config.job import Job
from tasks.report.content.edition import _labelled, open_edition
from tests.tasks.report.made_up.contenders import NIGHTS
from warehouse import Warehouse

PARTS = (("vintage", "{}"), ("model_config_hash", "{:.8}"))
few = st.sampled_from(["a", "a base", "base", "b", "a (2)", "", "none"])
rows = st.lists(st.tuples(few, few, few), unique=True, max_size=8)


@given(rows)
def test_labels_are_unique_and_begin_with_the_name(found: list[tuple[str, str, str]]) -> None:
    given_rows = [dict(zip(("model", "vintage", "model_config_hash"), row, strict=True)) for row in found]

    labelled = _labelled(given_rows, "entry", "model", PARTS)

    labels = [row["entry"] for row in labelled]
    assert len(set(labels)) == len(labels)
    assert all(row["entry"].startswith(row["model"]) for row in labelled)
    assert [{name: row[name] for name in given_rows[0]} for row in labelled] == given_rows if given_rows else True


def test_a_name_that_stands_once_is_the_label() -> None:
    one: dict[str, Any] = {"model": "gpt", "vintage": "base", "model_config_hash": "1"}

    assert [row["entry"] for row in _labelled([one], "entry", "model", PARTS)] == ["gpt"]


def test_samplings_and_configurations_of_one_model_are_told_apart_by_what_differs() -> None:
    found = [
        {"model": "gpt", "vintage": vintage, "model_config_hash": configuration}
        for vintage, configuration in [("base", "0123456789ab"), ("night", "0123456789ab"), ("night", "ba9876543210")]
    ]

    assert [row["entry"] for row in _labelled(found, "entry", "model", PARTS)] == [
        "gpt base", "gpt night 01234567", "gpt night ba987654",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("vintage", "nights"), [(None, {"base", NIGHTS[-1]}), ("all", {"base", *NIGHTS})])
def test_the_latest_samplings_are_shown_unless_others_are_asked_for(
    world_job: Job, vintage: str | None, nights: set[str]
) -> None:
    with Warehouse(world_job.warehouse).reader() as reader:
        edition = open_edition(world_job, reader, vintage)

    assert {entry["vintage"] for entry in edition.entries} == nights
    assert edition.main == world_job.settings.judges[0].label


def test_after_a_new_template_the_judge_as_configured_comes_first(world_job: Job) -> None:
    with Warehouse(world_job.warehouse).reader() as reader:
        edition = open_edition(world_job, reader)
        (now,) = [each for each in edition.judgings if each["judging"] == edition.main]
        # What was judged more under an earlier template stands before it.
        before = {**now, "template_hash": "an earlier one", "judging": "strict-judge template an earli"}
        changed = replace(edition, judgings=(before, *edition.judgings))

        assert changed.main == edition.main == "strict-judge"


@pytest.mark.long
def test_a_report_of_one_model_names_no_other(world_job: Job, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("narrow")
    write_report(world_job.model_copy(update={"named_models": ("elm-chat",)}), folder)

    board = (folder / "prbench/figures/leaderboard.csv").read_text(encoding="utf-8")
    assert "elm-chat" in board
    assert "birch-2" not in board
