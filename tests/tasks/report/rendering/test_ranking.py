"""The ranking: leading and tied models, the order of models, and the judge that the paper's scores
are shown with.
"""

import re
from datetime import date
from typing import Any
from unittest.mock import patch

import pytest

from tasks.benchmarks.base import Reference
from tasks.benchmarks.prbench import BENCHMARK
from tasks.config.models import Judge
from tasks.report.rendering.page_figures import table
from tasks.report.rendering.ranking import (
    Quote,
    Ranking,
    called_names,
    is_for_split,
    leaders,
    order_of,
    ranking_of,
    ticks,
)
from tasks.run.judge_configs import judge_target


def row(model: str, rank: int | None, **values: Any) -> dict[str, Any]:
    """A row of a leaderboard, for a model whose interval allows only its own rank, and that is tied
    with no other.
    """
    usual = {
        "model": model,
        "rank": rank,
        "judge_config": "j",
        "split": "finance",
        "is_own_hard": False,
        "rank_low": rank,
        "mean_score": 1 - (rank or 0) / 10,
        "may_be_first": rank == 1,
    }
    return usual | values


HARD = [row("bob", 1, split="hard"), row("cy", 1, split="mine", is_own_hard=True)]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            [
                row("ada", 1),
                row("bob", 2, may_be_first=True),
                row("cy", 3),
            ],
            "ada leads on finance with 0.900, ahead by 0.100 (tied with bob).",
        ),
        (
            [row("ada", 1), row("bob", 3)],
            "ada leads on finance with 0.900, ahead by 0.200 (no other model is tied).",
        ),
        # Ranked on fewer tasks than it has a score on.
        (
            [row("ada", 1), row("bob", 2, mean_score=0.95)],
            "ada leads on finance with 0.900 (no other model is tied).",
        ),
        (
            [row("ada", 1), row("bob", 1)],
            "ada, bob lead on finance with 0.900 (no other model is tied).",
        ),
        # Hard splits and own selections are left out if there is a full split.
        ([row("ada", 1), *HARD], "ada leads on finance with 0.900 (the only model)."),
        (HARD, "bob leads on hard with 0.900 (the only model)."),
    ],
)
def test_leaders_are_named_with_those_that_could_be_first(rows, sentence):
    assert leaders(rows, {"hard"}, "j") == f"Judged by j, {sentence}"


def test_a_part_of_the_models_has_a_highest_score_instead_of_leaders():
    sentence = leaders(
        [row("ada", 3)],
        set(),
        "j",
        is_part=True,
    )

    assert (
        sentence == "Judged by j, ada has the highest score shown on finance, 0.700."
    )


def test_without_a_score_no_model_is_named():
    assert leaders([row("ada", None)], set(), "j") == "No model has a score by j yet."


def test_models_are_ordered_by_their_mean_rank_and_those_without_one_come_last():
    rows = [
        row("ada", 1),
        row("ada", 4, split="legal"),
        row("bob", 2),
        row("bob", 2, split="legal"),
        row("cy", None),
    ]

    assert order_of(rows, ["cy", "ada", "bob"]) == ["bob", "ada", "cy"]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.12, 0.81, [0.2, 0.4, 0.6, 0.8]),
        (0.31, 0.44, [0.32, 0.34, 0.36, 0.38, 0.4, 0.42, 0.44]),
        (-0.3, 0.1, [-0.3, -0.2, -0.1, 0.0, 0.1]),
    ],
)
def test_ticks_are_round_numbers_within_what_is_shown(low, high, expected):
    assert ticks(low, high) == pytest.approx(expected)


def test_a_judge_is_identified_by_the_name_of_its_model_without_provider_and_date():
    judge = Judge(name="openai/o4-mini-2025-04-16", label="mine")

    assert called_names(judge_target(judge).config_hash, [judge]) == {"o4-mini"}


@pytest.mark.parametrize(
    "settings",
    [
        {"name": "openai/gpt-4.1-mini", "label": "o4-mini"},
        {"name": "openai/o4-mini", "temperature": 0.0},
        {"name": "openai/o4-mini", "api_base": "http://127.0.0.1:9/v1"},
        {"name": "openai/o4-mini", "rubric": "augmented"},
    ],
)
def test_a_label_or_a_name_makes_no_judge_the_papers_without_its_configuration(
    settings,
):
    judge = Judge(**settings)

    assert "o4-mini" not in called_names(judge_target(judge).config_hash, [judge])


def test_the_papers_scores_are_of_splits_that_the_benchmark_has_and_of_its_judge():
    references = BENCHMARK.references

    hard_splits = set(BENCHMARK.hard_splits.values())
    assert {reference.judge for reference in references} == {"o4-mini"}
    assert {reference.split for reference in references} >= hard_splits
    for reference in references:
        assert 0 < reference.value < 1
        assert reference.source


@pytest.mark.parametrize(
    ("split", "n_tasks", "is_whole_split"),
    [("finance", 590, True), ("finance", 24, False), ("legal", 600, False)],
)
def test_a_score_of_the_paper_is_of_the_whole_split_only(
    split,
    n_tasks,
    is_whole_split,
):
    reference = Reference("finance", 600, "o4-mini", "somebody", 0.4, "table 1")

    assert (
        is_for_split(reference, split, [{"n_tasks_wanted": n_tasks}])
        == is_whole_split
    )


def ranking_with_paper(
    *, is_same_judge: bool, scores: tuple[float, float] = (0.45, 0.35)
) -> Ranking:
    """The ranking of two models with a score of the paper, 0.4."""
    values = {
        "ci_low": 0.3,
        "ci_high": 0.5,
        "rank_high": 2,
        "n_tasks": 7,
        "n_tasks_ranked": 7,
        "coverage": 0.999,
        "is_below_bar": True,
        "n_tasks_wanted": 600,
    }
    rows = [
        row("ada", 1, mean_score=scores[0], **values),
        row("<b>", 2, mean_score=scores[1], **values),
    ]
    reference = Reference("finance", 600, "o4-mini", "somebody", 0.4, "table 1")
    quotes = [Quote(reference, is_same_judge=is_same_judge)]
    return ranking_of(rows, quotes, "A sentence.", ["ada", "<b>"])


@pytest.fixture(scope="module")
def ranking() -> Ranking:
    """The ranking with a score of the paper by the same judge."""
    return ranking_with_paper(is_same_judge=True)


@pytest.fixture(scope="module")
def html(ranking: Ranking) -> str:
    """The board of the ranking."""
    return table("board", ranking.columns, ranking.boards[0][1])


def test_a_score_of_the_paper_is_between_the_models_without_a_rank(ranking):
    ((_, lines),) = ranking.boards

    assert [line["model"] for line in lines] == [
        "ada",
        "somebody <small>paper</small>",
        "<b>",
    ]
    assert [line["rank"] for line in lines] == [1, None, 2]
    assert "the paper's own scores (table 1)" in ranking.notes[-1]


def test_models_with_equal_scores_stay_in_the_order_of_ranks_beside_one_of_the_paper():
    ranking = ranking_with_paper(is_same_judge=True, scores=(0.0, 0.0))

    ((_, lines),) = ranking.boards
    assert [line["rank"] for line in lines] == [None, 1, 2]


def test_a_score_of_the_paper_by_another_judge_is_grey_with_the_end_of_that_judge():
    looked_up = "tasks.report.rendering.ranking.retirement_date"
    with patch(looked_up, return_value=date(2026, 10, 23)):
        ranking = ranking_with_paper(is_same_judge=False)

    ((_, lines),) = ranking.boards
    name = '<span class="grey">somebody <small>paper, by o4-mini</small></span>'
    assert [line["model"] for line in lines] == ["ada", name, "<b>"]
    assert "(table 1), by another judge, o4-mini" in ranking.notes[-1]
    assert ranking.notes[-1].endswith("o4-mini was switched off on 2026-10-23.")


def test_a_score_of_the_paper_has_neither_coverage_nor_interval(html):
    coverages = re.findall(r'<td headers="board-coverage".*?>(.*?)</td>', html)
    drawings = re.findall(
        r'<td headers="board-drawn".*?><svg class="(.*?)" role="img" aria-label="(.*?)"',
        html,
    )

    assert coverages == ["99.9%", "–", "99.9%"]
    assert drawings == [
        ("tied", "0.300 to 0.500"),
        ("quoted", "no interval"),
        ("", "0.300 to 0.500"),
    ]


def test_the_name_of_a_model_is_text_on_a_board(html):
    assert "<b>" not in html
    assert "&lt;b&gt;" in html
