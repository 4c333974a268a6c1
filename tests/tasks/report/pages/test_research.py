"""The report of another benchmark than PRBench: its own labels, scores and ternary grading, and
nothing of others.
"""

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tasks.figures.page import formula
from tasks.figures.shown import PAGES
from tasks.rules.records import ScoreDefinition
from tests.tasks.report.drilldown.drilled import data
from tests.tasks.report.synthetic.research import JUDGES, PERSON, VALUES

pytestmark = pytest.mark.slow

FAMILIES = ("domain", "conceptual_breadth", "logical_nesting", "exploration")
OTHERS_WORDS = re.compile(
    r"topic|pathway|decision type|equation 2|figure \d+ of|min.normali[sz]ed|legal|finance", re.I
)


def explanations(site: Path, page: str) -> dict[str, str]:
    """Figure -> its text on how to read it, or on why it is empty."""
    text = (site / f"{page}.html").read_text(encoding="utf-8")
    section = r'<section class="figure(?: none)?" id="(.*?)".*?<p class="(?:says|empty)">(.*?)</p>'
    return {name: unescape(says) for name, says in re.findall(section, text, re.DOTALL)}


def test_captions_name_its_own_scores_and_nothing_of_another_benchmark(research_site: Path) -> None:
    pages = [page.name for page in PAGES if (research_site / f"{page.name}.html").is_file()]
    actual = {
        name: says for page in pages for name, says in explanations(research_site, page).items()
    }

    assert "conditions" not in pages
    assert [name for name, text in actual.items() if OTHERS_WORDS.search(text) or "$" in text] == []
    assert "Mean compliance score" in actual["leaderboard"]
    assert "criteria that are met (half the weight of those partly met)" in actual["leaderboard"]
    assert "Mean paper score" in actual["categories"]
    assert "points / (positive − negative)" in actual["categories"]
    assert "Mean compliance score on the tasks" in actual["breakdown_domain"]
    assert (
        "Mean paper score (points / (positive − negative)) over the criteria"
        in actual["breakdown_necessity"]
    )
    assert actual["failures"].endswith("counts a mistake that was not made as one.")


def test_the_first_benchmark_still_names_where_its_paper_shows_the_like(world_site: Path) -> None:
    actual = explanations(world_site, "categories")

    assert actual["categories"].endswith("See equation 4 and figure 6 of the paper.")
    assert actual["topics"].startswith("Mean score on the tasks with each label")
    assert "breakdown_domain" not in actual


@pytest.mark.parametrize(
    ("factors", "expected"),
    [
        ((0.0, 1.0, 0.0), "points / positive"),
        ((-1.0, 1.0, -1.0), "(points − negative) / (positive − negative)"),
        ((0.5, 2.0, 0.0), "(points + 0.5 × negative) / 2 × positive"),
    ],
)
def test_a_formula_is_that_of_the_declared_factors(
    factors: tuple[float, float, float], expected: str
) -> None:
    assert formula(ScoreDefinition("score", *factors, clips_mean=True, is_primary=True)) == expected


@pytest.fixture(scope="module")
def held(research_site: Path) -> dict[str, Any]:
    """The content of the data files."""
    return data(research_site)


def test_the_index_tells_the_labels_and_calls_the_field_what_the_benchmark_does(
    held: dict[str, Any],
) -> None:
    index = held["index"]

    assert index["field_title"] == "Domain"
    assert [*FAMILIES[1:], "necessity"] == [each["kind"] for each in index["breakdowns"]]
    assert {each["kind"] for each in index["tasks"][0]["labels"]} == set(FAMILIES)
    assert {each["label"] for of in held["criteria"]["labels"] for each in of} == {
        "mandatory",
        "optional",
    }


def test_a_reading_points_at_what_it_reads_and_repeats_no_explanation(held: dict[str, Any]) -> None:
    judge_configs = {each["label"]: each for each in held["index"]["judge_configs"]}
    assert judge_configs["careful"]["key"] == judge_configs["careful (as binary)"]["reads"]
    scales = {
        f"{name}{reading}": n
        for name in (*JUDGES, PERSON)
        for reading, n in (("", 3), (" (as binary)", 2))
    }
    assert scales == {label: each["scale"] for label, each in judge_configs.items()}

    name = next(name for name in held if name.startswith("task-"))
    verdicts = [each for part in held[name].values() for each in part.get("verdicts", [])]
    careful, read = (
        [each for each in verdicts if each["judge_config"] == judge_configs[label]["key"]]
        for label in ("careful", "careful (as binary)")
    )
    assert {(each["explanation"], each["status"]) for each in read} == {
        (None, "met"),
        (None, "unmet"),
    }
    assert {each["status"] for each in careful} == set(VALUES)
