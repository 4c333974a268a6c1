"""The scope of a report, and the names in it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.config.job import Job
from tasks.figures.scope import Scope, with_labels
from tasks.run.judge_configs import first_judge_config
from tests.kit import row
from tests.tasks.report.synthetic.contenders import NIGHTS
from tests.tasks.report.synthetic.samplings import PEOPLE, Sampling, rows_by_table
from tests.tasks.report.synthetic.scopes import scope_of
from warehouse import Warehouse

IMPORTED = {**PEOPLE, "source": "imported"}
LABELLERS = {"labellers": [row("labellers", judge="eva", import_batch="a-sheet")]}
PARTS = (("vintage", "{}"), ("model_config_hash", "{:.8}"))
few = st.sampled_from(["a", "a base", "base", "b", "a (2)", "", "none"])
rows = st.lists(st.tuples(few, few, few), unique=True, max_size=8)


@given(rows)
def test_labels_are_unique_and_begin_with_the_name(named: list[tuple[str, str, str]]) -> None:
    given_rows = [
        dict(zip(("model", "vintage", "model_config_hash"), row, strict=True)) for row in named
    ]

    labelled = with_labels(given_rows, "entry", "model", PARTS)

    assert len(named) == len({row["entry"] for row in labelled})
    assert all(row["entry"].startswith(row["model"]) for row in labelled)
    assert given_rows == [{name: row[name] for name in row if name != "entry"} for row in labelled]


def test_samplings_and_configurations_of_one_model_are_told_apart_by_what_differs() -> None:
    named = [
        {
            "model": "gpt",
            "vintage": vintage,
            "model_config_hash": configuration,
        }
        for vintage, configuration in [
            ("base", "0123456789ab"),
            ("night", "0123456789ab"),
            ("night", "ba9876543210"),
        ]
    ]

    assert [row["entry"] for row in with_labels(named, "entry", "model", PARTS)] == [
        "gpt base",
        "gpt night 01234567",
        "gpt night ba987654",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("vintage", "nights"), [(None, {"base", NIGHTS[-1]}), ("all", {"base", *NIGHTS})]
)
def test_the_latest_samplings_are_shown_unless_asked(
    world_job: Job, vintage: str | None, nights: set[str]
) -> None:
    with Warehouse(world_job.warehouse).reader() as reader:
        scope = Scope(world_job, reader, vintage)
        of_one = Scope(
            world_job.model_copy(update={"named_models": ("elm-chat",)}), reader, vintage
        )

        assert nights == {entry["vintage"] for entry in scope.entries}
        assert world_job.settings.judges[0].label == scope.main
        assert {entry["model"] for entry in of_one.entries} == {"elm-chat"}


def test_after_a_new_template_the_judge_as_configured_comes_first(scope: Scope) -> None:
    (now,) = [each for each in scope.judge_configs if each["judge_config"] == scope.main]
    # The configuration with an earlier template is listed first, as if it had more verdicts.
    before = {
        **now,
        "template_hash": "an earlier one",
        "judge_config": "strict-judge template an earli",
    }

    first = first_judge_config(scope.job, scope.benchmark, [before, *scope.judge_configs])
    assert first is not None
    assert "strict-judge" == scope.main == first["judge_config"]


def resampled(judge: str, *vintages: str, **other: Any) -> list[Sampling]:
    """Return samplings of a model in several vintages, a day apart, with verdicts of a judge."""
    days = {
        "base": 0,
        "n1": 86_400,
        "n2": 2 * 86_400,
    }
    return [
        Sampling(each, days[each], (1, 1, 1, each == "base"), "cedar", judge, other=other)
        for each in vintages
    ]


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        (resampled("eva", "base", **IMPORTED), ({"judge"}, {"n1"})),
        # `elsewhere` is not known to label, so it is a judge; it has only judged `base`.
        (resampled("elsewhere", "base", **IMPORTED), ({"judge", "elsewhere"}, {"base", "n1"})),
        (resampled("second", "base"), ({"judge", "second"}, {"base", "n1"})),
        (resampled("second", "n2"), ({"judge", "second"}, {"n1", "n2"})),
    ],
    ids=["people who label", "an imported judge", "a judge that saw less", "a judge that saw more"],
)
def test_the_current_vintage_under_each_judge_is_shown(
    tmp_path: Path, others: list[Sampling], expected: tuple[set[str], set[str]]
) -> None:
    scope = scope_of(
        tmp_path, {**rows_by_table([*resampled("judge", "base", "n1"), *others]), **LABELLERS}
    )

    assert (
        (
            {each["judge"] for each in scope.judge_configs},
            {each["vintage"] for each in scope.entries},
        )
    ) == expected


def test_people_who_label_are_shown_where_nobody_else_judged(tmp_path: Path) -> None:
    scope = scope_of(tmp_path, {**rows_by_table(resampled("eva", "base", **IMPORTED)), **LABELLERS})

    assert [(scope.main, entry["entry"]) for entry in scope.entries] == [("eva", "cedar")]
