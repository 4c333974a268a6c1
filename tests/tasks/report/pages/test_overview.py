"""The overview is correct: for the whole warehouse, for some splits, and if judging failed or never
began.
"""

import re
from collections import defaultdict
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from flows.report import write_report
from tasks.compare.vintages import changes
from tasks.config.job import Job
from tasks.figures.scope import Scope
from tasks.figures.shown import FIGURES, PAGES
from tasks.figures.shown.leaderboard import LEADERBOARD
from tasks.report.rendering.notices import facts, notices, terminal_notes
from tests.kit import at, combined
from tests.tasks.report.browser import visiting
from tests.tasks.report.drilldown.drilled import (
    data,
    numbers,
    response_rows_of,
    tiny_job,
)
from tests.tasks.report.synthetic.contenders import DRIFT_NIGHT, DROPPING, NIGHTS
from warehouse import Warehouse

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("night", [DRIFT_NIGHT, NIGHTS[3]])
def test_a_night_is_compared_with_the_last_one_in_which_the_judge_had_not_drifted(
    world_job,
    scope,
    night,
):
    night_scope = Scope(
        world_job,
        scope.reader,
        night,
        changes(world_job, night),
    )

    rows = night_scope.rows("figures/overview/changes")

    strict_rows = [row for row in rows if row["judge_config"] == "strict-judge"]
    assert {row["model"] for row in strict_rows} == {DROPPING, "elm-chat"}
    # The night before the drift.
    assert {row["earlier"] for row in strict_rows} == {NIGHTS[1]}
    assert {row["later"] for row in strict_rows} == {night}


def texts(scope: Scope, level: str) -> list[str]:
    """Return the texts of the notices of a level."""
    return [notice.text for notice in notices(scope) if notice.level == level]


@pytest.mark.parametrize(
    ("level", "words"),
    [
        ("bad", f"{DROPPING} fell since"),
        ("bad", "criteria_per_task (1 of 49)."),
        ("warn", "Below the coverage bar of 99%"),
        ("warn", "dogwood-open"),
        ("warn", "1 task refused and left out of all scores."),
    ],
)
def test_a_notice_says_what_is_wrong(scope, level, words):
    assert words in "\n".join(texts(scope, level))


def test_the_gravest_notices_come_first_and_do_not_name_the_steady_model(scope):
    assert notices(scope)[0].level == "bad"
    assert "elm-chat" not in "\n".join(texts(scope, "bad"))


def with_judges(scope: Scope, **update: Any) -> Scope:
    """The scope of a job whose judges have other settings."""
    settings = scope.job.settings
    judges = tuple(judge.model_copy(update=update) for judge in settings.judges)
    settings = settings.model_copy(update={"judges": judges})
    return replace(scope, job=scope.job.model_copy(update={"settings": settings}))


@pytest.mark.parametrize(
    ("settings", "names"),
    [({}, "strict-judge #2"), ({"temperature": 0.3}, "mild-judge, strict-judge, ")],
)
def test_judges_that_had_other_settings_are_named(scope, settings, names):
    changed = with_judges(scope, **settings)

    [text] = [text for text in texts(changed, "warn") if "earlier settings" in text]
    assert text.partition(": ")[2].startswith(names)


def test_one_notice_names_all_judges_that_were_switched_off(scope):
    ended = with_judges(scope, retires_on=date(2026, 1, 14))

    [text] = [text for text in texts(ended, "warn") if "switched off" in text]
    assert text.count("was switched off on 2026-01-14") == len(
        scope.job.settings.judges
    )


def test_the_first_notice_says_that_an_embedded_judge_is_too_small(scope):
    embedded = with_judges(scope, name="embedded/smollm2-135m-instruct")

    text = notices(embedded)[0].text
    assert text.startswith(
        "The embedded model (mild-judge, strict-judge) is far too small"
    )


def test_names_of_files_have_nothing_from_the_data(hostile_site):
    for path in hostile_site.rglob("*"):
        assert re.fullmatch(
            r"[\w./-]+",
            path.relative_to(hostile_site).as_posix(),
            re.ASCII,
        )


WAREHOUSE_FIGURES = set()
for _page in PAGES:
    WAREHOUSE_FIGURES |= {
        figure.name for figure in _page.figures if figure.reach == "warehouse"
    }


def narrowed(job: Job, *splits: str) -> Job:
    """Return a job on some splits."""
    dataset = job.settings.dataset.model_copy(update={"splits": splits})
    return job.model_copy(
        update={"settings": job.settings.model_copy(update={"dataset": dataset})}
    )


@pytest.fixture(scope="module")
def finance(world_job: Job, tmp_path_factory) -> Path:
    """The report of only one of two splits."""
    folder = tmp_path_factory.mktemp("finance")
    write_report(narrowed(world_job, "finance"), folder)
    return folder / world_job.settings.benchmark


@pytest.fixture(scope="module")
def finance_pages(finance: Path) -> dict[str, str]:
    """The pages of figures in the report of one split."""
    paths = [finance / f"{page.name}.html" for page in PAGES]
    return {path.stem: path.read_text() for path in paths if path.exists()}


def test_every_link_to_a_task_leads_to_one_of_the_report(finance, finance_pages):
    keys = {task["key"] for task in data(finance)["index"]["tasks"]}

    text = "".join(finance_pages.values())
    links = re.findall(r'href="task\.html#task=([^&"]+)', text)

    assert len(keys) == 24
    assert len(links) > 20
    assert set(links) <= keys


def test_each_page_says_which_split_it_is_of(finance_pages):
    for text in finance_pages.values():
        assert "only split finance" in text


def test_a_pooled_figure_is_not_shown_on_a_part_of_the_splits(
    finance,
    finance_pages,
    world_site,
):
    pooled_figures = []
    for page in PAGES:
        if page.name in finance_pages:
            pooled_figures += [
                figure for figure in page.figures if figure.reach == "pooled"
            ]

    # A figure that the report of all splits leaves out, because it has no rows, is left out here
    # too.
    n_with_rows = 0
    for figure in pooled_figures:
        assert not list((finance / "figures").glob(f"{figure.name}.*"))
        n_with_rows += (world_site / f"figures/{figure.name}.csv").exists()
    sentence = (
        "Measured over all splits at once, but this report shows only split finance."
    )
    assert n_with_rows > 0
    assert "".join(finance_pages.values()).count(sentence) == n_with_rows


def test_a_figure_of_the_whole_warehouse_says_so_on_a_part_of_the_splits(
    finance, finance_pages
):
    figures_with_rows = [name for name in WAREHOUSE_FIGURES if numbers(finance, name)]

    sentence = "This covers all splits, not only split finance."
    assert figures_with_rows
    assert "".join(finance_pages.values()).count(sentence) >= len(figures_with_rows)


def test_no_number_is_of_the_tasks_of_another_split(finance):
    names = {path.stem for path in (finance / "figures").glob("*.csv")}
    names -= WAREHOUSE_FIGURES

    splits = {None, "", "finance", "Finance (own hard)"}
    assert len(names) > 25
    for name in names:
        for figure_row in numbers(finance, name):
            assert figure_row.get("split") in splits, name
            assert figure_row.get("field") in {None, "", "Finance"}, name
            for cell in figure_row.values():
                assert not cell.startswith("legal-"), name


PARTS = [
    ((), "", ["Finance", "Legal"]),
    (("finance", "legal"), "", ["Finance", "Legal"]),
    (("finance",), "split finance", ["Finance"]),
    (("finance_hard",), "split finance_hard", []),
    (("finance", "legal_hard"), "splits finance, legal_hard", ["Finance"]),
]
"""Splits, how a report names them if they are a part, and the fields whose own hard selections are
in the part.
"""


@pytest.fixture(scope="module", params=PARTS)
def part(request, scope: Scope) -> tuple[Scope, str, list[str]]:
    """The scope of a report on some splits, their name, and the fields."""
    splits, name, fields = request.param
    return Scope(narrowed(scope.job, *splits), scope.reader), name, fields


def test_a_part_shows_only_hard_selections_of_its_own(part):
    part_scope, _, fields = part

    leaderboard = part_scope.rows_of(LEADERBOARD)
    hard_leaderboard = part_scope.rows_of(FIGURES["hard_leaderboard"])

    own_splits = {f"{field} (own hard)" for field in fields}
    assert {row["split"] for row in leaderboard if row["is_own_hard"]} == own_splits
    assert {row["split"] for row in hard_leaderboard} == own_splits
    for query in ("figures/hard/hard_selections", "figures/hard/tasks"):
        assert {row["field"] for row in part_scope.rows(query)} == set(fields)


def test_a_notice_says_that_a_report_is_of_a_part(part):
    part_scope, name, _ = part

    text = (
        f"This report shows only {name}. It includes own hard selections if all their tasks are in"
        " it, and leaves out figures that are measured over all splits at once."
    )
    assert part_scope.split_limit == name
    assert (text in texts(part_scope, "warn")) == bool(name)


TASKS = ("t1", "t2", "t3")


def scope_of(job: Job) -> Scope:
    """Return the scope of a job on its published state."""
    return Scope(job, Warehouse(job.warehouse).reader())


@pytest.fixture(scope="module")
def unjudged_job(tmp_path_factory) -> Job:
    """A job with the report of two models whose responses are not judged."""
    responses = []
    for model in ("m1", "m2"):
        tables = response_rows_of(TASKS[:2], model, cost_usd=0.25)
        responses += tables["responses"]
    job = tiny_job(
        tmp_path_factory.mktemp("unjudged"),
        TASKS,
        models=(),
        further={"responses": responses},
    )
    write_report(job)
    return job


def test_a_report_without_verdicts_says_that_nothing_is_judged(unjudged_job):
    [text] = texts(scope_of(unjudged_job), "bad")

    assert text.startswith("No response has been judged yet, so there are no scores")


def test_responses_without_a_verdict_are_counted_and_priced(unjudged_job):
    scope = scope_of(unjudged_job)

    numbers_by_name = {name: number for name, number, _ in facts(scope)}
    costs = scope.rows("figures/costs/costs")

    assert numbers_by_name["Models"] == "2"
    assert numbers_by_name["Responses"] == "4"
    assert numbers_by_name["Cost"] == "$1.00"
    assert [cost["model"] for cost in costs] == ["m1", "m2"]
    assert {cost["response_usd"] for cost in costs} == {0.25}
    assert {cost["mean_score"] for cost in costs} == {None}


def test_responses_without_a_verdict_can_be_read(unjudged_job):
    contents = data(unjudged_job.report_index.parent)

    response_texts = []
    for name, sections in contents.items():
        if name.startswith("task-"):
            for section in sections.values():
                response_texts += [
                    response["text"] for response in section.get("responses", ())
                ]
    assert sorted(response_texts) == [
        "m1 says t1.",
        "m1 says t2.",
        "m2 says t1.",
        "m2 says t2.",
    ]


def test_a_report_of_tasks_alone_says_that_there_is_nothing_to_rank(tmp_path):
    job = tiny_job(tmp_path, TASKS, models=())

    write_report(job)

    text = job.report_index.read_text()
    assert "There are no responses yet, so there is nothing to rank." in text


def test_a_model_without_a_verdict_is_listed_beside_judged_ones(tmp_path):
    second_model = response_rows_of(TASKS, "m2")
    later_night = response_rows_of(
        TASKS,
        "m1",
        "2026-10-01",
        created_at=at(9000),
    )
    responses = second_model["responses"] + later_night["responses"]
    job = tiny_job(tmp_path, TASKS, ("m1",), further={"responses": responses})

    scope = scope_of(job)

    judged_row, unjudged_row = scope.rows_of(LEADERBOARD)
    assert [entry["entry"] for entry in scope.entries] == ["m1", "m2"]
    assert "Not judged yet, so without scores: m2." in texts(scope, "warn")
    assert judged_row["model"] == "m1"
    assert judged_row["mean_score"] is not None
    assert unjudged_row["model"] == "m2"
    assert unjudged_row["mean_score"] is None


def test_many_failed_responses_are_grave_and_few_failed_verdicts_are_not(tmp_path):
    responses = response_rows_of(["t0", "t1", "t2"], "m2")["responses"]
    responses[2] |= {
        "status": "timeout",
        "text": None,
        "error": "no reply within 600 s",
    }
    further = response_rows_of(["t0"], "m3")
    for verdict_row in further["verdicts"]:
        verdict_row |= {"value": None, "status": "refused"}
    further["responses"] += responses
    # The twenty tasks of m1 are judged, so few of all verdicts failed.
    task_ids = [f"t{number}" for number in range(20)]
    job = tiny_job(tmp_path, task_ids, models=("m1",), further=further)

    assert texts(scope_of(job), "bad") == ["1 of 3 responses of m2 failed (timeout)."]


@pytest.fixture(scope="module")
def undecided_job(tmp_path_factory) -> Job:
    """A job with the report of two models, all of whose verdicts failed."""
    parts = []
    for model in ("m1", "m2"):
        for vintage in ("base", "2026-10-01"):
            parts.append(response_rows_of(TASKS, model, vintage))
    tables = combined(*parts)
    for verdict_row in tables["verdicts"]:
        verdict_row |= {
            "value": None,
            "status": "parse_error",
            "error": "no JSON object",
        }
    job = tiny_job(
        tmp_path_factory.mktemp("undecided"),
        TASKS,
        models=(),
        further=tables,
    )
    write_report(job)
    return job


def test_a_report_without_a_decision_says_why_there_are_no_scores(undecided_job):
    folder = undecided_job.report_index.parent

    overview = (folder / "index.html").read_text()
    categories = (folder / "categories.html").read_text()

    assert texts(scope_of(undecided_job), "bad") == [
        "12 of 12 verdicts of a-judge failed (parse error): there are no scores."
    ]
    assert "No model has a score by a-judge yet." in overview
    assert 'id="leaderboard"' in overview
    assert "Not drawn, because no value is known: finance" in categories


def test_pages_without_a_decision_open_without_faults(undecided_job, browser):
    folder = undecided_job.report_index.parent
    with visiting(browser, folder) as visit:
        for path in sorted(folder.glob("*.html")):
            if path.name != "compare.html":  # it has no chart
                visit.open(path.name)

        assert visit.faults == []


def test_an_unbiased_score_is_stated_on_each_split_even_if_it_is_0(world_job):
    row = defaultdict(str, model="elm", split="finance", unbiased_mean_score=0.0)

    [line] = terminal_notes(world_job, [row, row | {"split": "legal"}])

    assert line.endswith(": elm on finance 0.000, elm on legal 0.000")
