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
from tests.tasks.report.browser import Visit, visiting
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


@pytest.mark.slow
def test_tasks_are_filtered_by_the_labels_of_the_benchmark(browser, research_site):
    with visiting(browser, research_site) as visit:
        visit.open("tasks.html")
        assert visit.page.get_by_label("Topic").is_hidden()
        visit.page.get_by_label("Exploration").select_option("Low")
        assert visit.locator("#count").inner_text() == "4 of 12 tasks"
        visit.page.get_by_role("button", name="Reset").click()
        visit.page.get_by_role("searchbox", name="Search").fill("shallow")
        visit.page.wait_for_function(
            "() => document.getElementById('count').textContent === '4 of 12 tasks'"
        )
        assert visit.faults == []


@pytest.mark.slow
def test_a_task_and_its_criteria_have_the_labels_of_the_benchmark(
    browser, research_site
):
    with visiting(browser, research_site) as visit:
        visit.open("task.html")

        assert "Conceptual breadth" in visit.locator("#about").inner_text()
        assert visit.locator("#criteria .tag", has_text="mandatory").count() == 8
        assert visit.faults == []


def decisions(visit: Visit, number: int) -> dict[str, str]:
    """Return the decision of each judge that is listed for a criterion."""
    criterion = visit.locator("#criteria tbody").nth(number)
    rows = criterion.locator("tr:not(.criterion)")
    decision_by_judge = {}
    for row in rows.all():
        badge = row.locator(".badge").first.inner_text()
        decision_by_judge[row.locator("th").inner_text()] = badge.split(maxsplit=1)[1]
    return decision_by_judge


@pytest.mark.slow
def test_a_ternary_decision_is_listed_as_binary_only_if_that_differs(
    browser, research_site
):
    with visiting(browser, research_site) as visit:
        visit.open("task.html")

        n_disputed = 0
        for number in range(20):
            decision_by_judge = decisions(visit, number)
            ternary = {decision_by_judge[judge] for judge in (*JUDGES, PERSON)}
            n_disputed += len(ternary) > 1
            for judge in (*JUDGES, PERSON):
                is_partly_met = decision_by_judge[judge] == "partly met"
                binary = decision_by_judge.get(f"{judge} (as binary)")
                assert binary == ("not met" if is_partly_met else None)
        assert visit.locator("#criteria .tag.dispute").count() == n_disputed
        assert visit.faults == []
