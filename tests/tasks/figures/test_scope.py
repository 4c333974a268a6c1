"""The scope of a report, and the names in it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.figures.scope import Scope, with_labels
from tasks.run.judge_configs import first_judge_config
from tests.kit import row
from tests.tasks.report.synthetic.contenders import NIGHTS
from tests.tasks.report.synthetic.samplings import PEOPLE, Sampling, rows_by_table
from tests.tasks.report.synthetic.scopes import scope_of
from warehouse import Warehouse

IMPORTED = {**PEOPLE, "source": "imported"}
"""Columns of verdicts that were imported."""
LABELLERS = {"labellers": [row("labellers", judge="eva", import_batch="a-sheet")]}
PARTS = (("vintage", "{}"), ("model_config_hash", "{:.8}"))
"""Columns that a label may have after the name, and the form of each."""
names = st.sampled_from(["a", "a base", "base", "b", "a (2)", "", "none"])


def sampling_row(model: str, vintage: str, configuration: str) -> dict[str, Any]:
    """A sampling of a model, without a label."""
    return {"model": model, "vintage": vintage, "model_config_hash": configuration}


@given(st.lists(st.tuples(names, names, names), unique=True, max_size=8))
def test_labels_are_unique_and_begin_with_the_name(samplings):
    rows = [sampling_row(*sampling) for sampling in samplings]

    labelled_rows = with_labels(rows, "entry", "model", PARTS)

    assert len({row["entry"] for row in labelled_rows}) == len(samplings)
    for labelled_row, unlabelled_row in zip(labelled_rows, rows, strict=True):
        label = labelled_row["entry"]
        assert label.startswith(unlabelled_row["model"])
        assert labelled_row == unlabelled_row | {"entry": label}


def test_samplings_and_configurations_of_one_model_are_labelled_by_what_differs():
    rows = [
        sampling_row("gpt", "base", "0123456789ab"),
        sampling_row("gpt", "night", "0123456789ab"),
        sampling_row("gpt", "night", "ba9876543210"),
    ]

    labelled_rows = with_labels(rows, "entry", "model", PARTS)

    assert [row["entry"] for row in labelled_rows] == [
        "gpt base",
        "gpt night 01234567",
        "gpt night ba987654",
    ]


@pytest.mark.parametrize(
    ("vintage", "nights"),
    [(None, {"base", NIGHTS[-1]}), ("all", {"base", *NIGHTS})],
)
def test_the_latest_samplings_are_shown_unless_a_vintage_is_named(
    world_job,
    vintage,
    nights,
):
    with Warehouse(world_job.warehouse).reader() as reader:
        entries = Scope(world_job, reader, vintage).entries

    assert {entry["vintage"] for entry in entries} == nights


def test_only_named_models_are_shown(world_job, scope):
    job = world_job.model_copy(update={"named_models": ("elm-chat",)})

    entries = Scope(job, scope.reader).entries

    assert {entry["model"] for entry in entries} == {"elm-chat"}


def test_after_a_new_template_the_judge_as_configured_comes_first(scope):
    [current] = [
        config
        for config in scope.judge_configs
        if config["judge_config"] == scope.main
    ]
    # The configuration with an earlier template is listed first, as if it had more verdicts.
    earlier = {
        **current,
        "template_hash": "an earlier one",
        "judge_config": "strict-judge template an earli",
    }

    judge_config = first_judge_config(
        scope.job,
        scope.benchmark,
        [earlier, *scope.judge_configs],
    )

    assert scope.main == "strict-judge"
    assert judge_config is not None
    assert judge_config["judge_config"] == "strict-judge"


def resampled(judge: str, *vintages: str, **columns: Any) -> list[Sampling]:
    """Return samplings of a model in several vintages, a day apart, with verdicts of a judge."""
    times_s = {
        "base": 0,
        "n1": 86_400,
        "n2": 2 * 86_400,
    }
    samplings = []
    for vintage in vintages:
        sampling = Sampling(
            vintage,
            times_s[vintage],
            values=(1, 1, 1, 1),
            model="cedar",
            judge=judge,
            verdict_columns=columns,
        )
        samplings.append(sampling)
    return samplings


@pytest.mark.usefixtures("only_leaderboard")
@pytest.mark.parametrize(
    ("samplings", "judges", "vintages"),
    [
        (
            resampled("eva", "base", **IMPORTED),
            {"judge"},
            {"n1"},
        ),
        # `elsewhere` is not known to label, so it is a judge; it has only judged `base`.
        (
            resampled("elsewhere", "base", **IMPORTED),
            {"judge", "elsewhere"},
            {"base", "n1"},
        ),
        (
            resampled("second", "base"),
            {"judge", "second"},
            {"base", "n1"},
        ),
        (
            resampled("second", "n2"),
            {"judge", "second"},
            {"n1", "n2"},
        ),
    ],
    ids=[
        "people who label",
        "an imported judge",
        "a judge that saw less",
        "a judge that saw more",
    ],
)
def test_the_current_vintage_under_each_judge_is_shown(
    tmp_path,
    samplings,
    judges,
    vintages,
):
    tables = rows_by_table([*resampled("judge", "base", "n1"), *samplings])

    scope = scope_of(tmp_path, tables | LABELLERS)

    assert {row["judge"] for row in scope.judge_configs} == judges
    assert {entry["vintage"] for entry in scope.entries} == vintages


@pytest.mark.usefixtures("only_leaderboard")
def test_people_who_label_are_shown_where_nobody_else_judged(tmp_path):
    tables = rows_by_table(resampled("eva", "base", **IMPORTED))

    scope = scope_of(tmp_path, tables | LABELLERS)

    assert scope.main == "eva"
    assert [entry["entry"] for entry in scope.entries] == ["cedar"]
