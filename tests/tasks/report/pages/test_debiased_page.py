"""The page on debiased scores: what it draws of each model, and why there is no figure where there is none."""

from pathlib import Path

import pytest

from tasks.aggregate import aggregate
from tasks.report.content.edition import Edition
from tasks.report.pages.corrections import DEBIASED, beside_each_other
from tests.builders import job_on
from tests.tasks.aggregate.debiased_oracle import CATEGORIES, LabelledWorld
from tests.tasks.report.made_up.editions import check_sources, edition_of, edition_on, rows_of
from warehouse import Warehouse

FIGURES = {figure.name: figure for figure in DEBIASED.figures}


@pytest.fixture
def edition(tmp_path: Path) -> Edition:
    """Two models with labels on every category."""
    folder = tmp_path / "warehouse"
    tables = dict(LabelledWorld(seed=5).tables())
    tables["split_members"] = [row | {"split": "sample"} for row in tables["split_members"]]
    edition_of(folder, tables)
    aggregate(job_on("sample", folder))
    return edition_on(Warehouse(folder).reader(), folder)


def test_each_model_has_three_dots_on_a_split_and_each_category_a_row(edition: Edition, tmp_path: Path) -> None:
    whole, categories = (rows_of(FIGURES[name], edition) for name in ("debiased_scores", "debiased_categories"))
    expected = LabelledWorld(seed=5).expected("ada")

    assert {"ada", "bob"} == {row["model"] for row in whole}
    assert expected.debiased == pytest.approx(next(row["debiased"] for row in whole if row["model"] == "ada"))
    (plot,) = beside_each_other([row for row in whole if row["judging"] == "a-judge"])
    assert 3 * 2 == len(next(iter(plot.chart.to_dict()["datasets"].values())))
    assert set(CATEGORIES) == {row["label"] for row in categories}
    for figure in FIGURES.values():
        check_sources(figure, edition, tmp_path / "report")


def test_a_model_without_a_figure_is_in_the_table_with_the_reason_and_in_no_chart(edition: Edition) -> None:
    rows = [row | {"debiased": None, "no_figure": "too few labels: 3, not 30"}
            for row in rows_of(FIGURES["debiased_scores"], edition)]  # fmt: skip

    assert [] == beside_each_other(rows)
