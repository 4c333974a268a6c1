"""The report of another benchmark than PRBench: its own labels, scores and ternary grading, and
nothing of others.
"""

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tasks.figures.figure import grouped
from tasks.figures.page import formula
from tasks.figures.shown import PAGES
from tasks.rules.records import ScoreDefinition
from tests.tasks.report.drilldown.drilled import data
from tests.tasks.report.synthetic.research import JUDGES, PERSON, VALUES

OTHERS_WORDS = re.compile(
    r"topic|pathway|decision type|equation 2|figure \d+ of|min.normali[sz]ed|legal|finance",
    re.I,
)


def explanations(site: Path, page: str) -> dict[str, str]:
    """Figure -> its text on how to read it, or on why it is empty."""
    text = (site / f"{page}.html").read_text()
    section = r'<section class="figure(?: none)?" id="(.*?)".*?<p class="(?:says|empty)">(.*?)</p>'
    return {
        name: unescape(says) for name, says in re.findall(section, text, re.DOTALL)
    }


def test_captions_name_its_own_scores_and_nothing_of_another_benchmark(research_site):
    texts = {}
    for page in PAGES:
        if (research_site / f"{page.name}.html").is_file():
            texts |= explanations(research_site, page.name)

    for text in texts.values():
        assert not OTHERS_WORDS.search(text)
        assert "$" not in text
    criteria = "criteria that are met (half the weight of those partly met)"
    assert "Mean compliance score" in texts["leaderboard"]
    assert criteria in texts["leaderboard"]
    assert "Mean paper score" in texts["categories"]
    assert "points / (positive − negative)" in texts["categories"]
    assert "Mean compliance score on the tasks" in texts["breakdown_domain"]
    assert texts["failures"].endswith("counts a mistake that was not made as one.")
    score = "Mean paper score (points / (positive − negative))"
    assert f"{score} over the criteria" in texts["breakdown_necessity"]


def test_a_page_is_left_out_if_the_benchmark_has_no_rows_in_its_table(research_site):
    assert not (research_site / "conditions.html").exists()


def test_the_first_benchmark_still_names_where_its_paper_shows_the_like(world_site):
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
def test_a_formula_is_that_of_the_declared_factors(factors, expected):
    definition = ScoreDefinition(
        "score",
        *factors,
        clips_mean=True,
        is_primary=True,
    )

    assert formula(definition) == expected


@pytest.fixture(scope="module")
def research_contents(research_site: Path) -> dict[str, Any]:
    """The content of the data files."""
    return data(research_site)


def test_the_index_has_the_labels_and_the_benchmarks_name_for_the_field(
    research_contents,
):
    index = research_contents["index"]

    assert index["field_title"] == "Domain"
    kinds = [breakdown["kind"] for breakdown in index["breakdowns"]]
    assert kinds == [
        "conceptual_breadth",
        "logical_nesting",
        "exploration",
        "necessity",
    ]
    task_labels = index["tasks"][0]["labels"]
    assert {label["kind"] for label in task_labels} == {"domain", *kinds[:3]}


def test_criteria_have_the_labels_of_the_benchmark(research_contents):
    labels = set()
    for criterion_labels in research_contents["criteria"]["labels"]:
        labels.update(label["label"] for label in criterion_labels)

    assert labels == {"mandatory", "optional"}


@pytest.fixture(scope="module")
def judge_configs(research_contents: dict[str, Any]) -> dict[str, Any]:
    """The judge configurations of the index, by label."""
    return {row["label"]: row for row in research_contents["index"]["judge_configs"]}


def test_a_ternary_judge_read_as_binary_is_a_judge_configuration(judge_configs):
    assert len(judge_configs) == 2 * len((*JUDGES, PERSON))
    for label in (*JUDGES, PERSON):
        binary = judge_configs[f"{label} (as binary)"]
        assert judge_configs[label]["scale"] == 3
        assert binary["scale"] == 2
        assert binary["reads"] == judge_configs[label]["key"]


def test_verdicts_read_as_binary_repeat_no_explanation(
    research_contents, judge_configs
):
    name = next(name for name in research_contents if name.startswith("task-"))
    verdicts = []
    for section in research_contents[name].values():
        verdicts += section.get("verdicts", [])
    verdicts_by_judge = grouped(verdicts, "judge_config")

    ternary = verdicts_by_judge[judge_configs["careful"]["key"]]
    binary = verdicts_by_judge[judge_configs["careful (as binary)"]["key"]]
    assert {verdict["status"] for verdict in ternary} == set(VALUES)
    assert {verdict["status"] for verdict in binary} == {"met", "unmet"}
    assert {verdict["explanation"] for verdict in binary} == {None}
