"""Tables tell results of several judges and vintages apart."""

from itertools import product
from pathlib import Path

import pytest

from tests.kit import at, combined, stored
from tests.tasks.compare.comparisons import judged, tasks_of

NIGHT = "2026-11-28"
RUBRICS = {"t0": [(10, "Accuracy")]}
OF_NIGHT = {"vintage": NIGHT, "created_at": at(5)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The folder of `run_here`: two judges on a model in two vintages."""
    rows = [tasks_of(RUBRICS)]
    for judge, sampling in product(("first", "second"), ({}, OF_NIGHT)):
        rows.append(
            judged({"t0": [1.0]}, rubrics=RUBRICS, of_response=sampling, judge=judge)
        )
    return stored(tmp_path_factory.mktemp("apart"), combined(*rows))


def test_criteria_are_of_the_current_vintage_with_each_judge_above_them(run_here):
    lines = run_here("criteria", "always-met").splitlines()

    assert f"Vintage: {NIGHT}" in lines
    assert "Judge: first" in lines
    assert "Judge: second" in lines


@pytest.mark.parametrize(
    ("vintage", "vintages"), [("base", {"base"}), ("all", {"base", NIGHT})]
)
def test_criteria_of_a_requested_vintage_are_shown(run_here, vintage, vintages):
    rows = run_here.json("criteria", "always-met", "--vintage", vintage)

    assert {row["vintage"] for row in rows} == vintages
