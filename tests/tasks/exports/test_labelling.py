"""Sheets for human graders: what is sampled, changes by spreadsheet programs, and the import."""

from collections import Counter
from itertools import groupby, product
from operator import itemgetter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.config.job import Job
from tasks.exports.sheets import export_labelling, spread
from tasks.imports.responses import import_responses
from tasks.imports.verdicts import import_verdicts
from tasks.rules.errors import PipelineError
from tasks.rules.text.cells import defused, shows, without_mark
from tests.kit import (
    Values,
    copied,
    good_row,
    job_on,
    prepared,
    rows_in,
    values_in,
    write_jsonl,
)
from tests.tasks.exports.conftest import formulas_in, save_sheet, sheet_rows

pytestmark = pytest.mark.usefixtures("without_scores")

N_TASKS = 6
N_CRITERIA = 10
FORMULA = '=HYPERLINK("https://example.org","x")'
MODELS = ("ada", FORMULA)


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Job:
    """Six tasks with responses of two models; one task id and one model name look like formulas."""
    folder = tmp_path_factory.mktemp("labelling")
    tasks = ["-t0", *(f"t{i}" for i in range(1, N_TASKS))]
    file = write_jsonl(folder / "finance.jsonl", map(good_row, tasks))
    job = prepared(job_on(file, folder / "warehouse"))
    responses = [
        {"task": task, "model": model, "response": f"- a response\nto {task}"}
        for task, model in product(tasks, MODELS)
    ]
    import_responses(job, write_jsonl(folder / "responses.jsonl", responses))
    return job


def test_a_sheet_has_whole_responses_but_the_last_each_with_its_rows_together(
    shared, tmp_path
):
    report = export_labelling(shared, tmp_path / "sheet.csv", n_rows=25)

    rows = sheet_rows(tmp_path / "sheet.csv")
    runs = groupby(rows, itemgetter("task", "model"))
    assert [len(list(run)) for _, run in runs] == [N_CRITERIA, N_CRITERIA, 5]
    assert report.rows == 25


def test_a_sheet_shows_what_a_grader_needs(shared, tmp_path):
    report = export_labelling(shared, tmp_path / "sheet.csv", n_rows=25)

    instructions = (
        "judge: your name; criteria_met: yes or no; explanation: if you like"
    )
    assert instructions in report.line
    for row in sheet_rows(tmp_path / "sheet.csv"):
        assert row["how_to_fill_in"] == instructions
        for column in ("title", "conversation", "response", "field"):
            assert row[column] != ""
        for column in ("judge", "criteria_met", "explanation"):
            assert row[column] == ""


def test_no_cell_begins_a_formula_and_the_filled_sheet_comes_back_with_its_ids(
    job, tmp_path
):
    export_labelling(job, tmp_path / "sheet.csv", n_rows=10_000)
    rows = sheet_rows(tmp_path / "sheet.csv")
    assert formulas_in(rows) == []

    for number, row in enumerate(rows):
        row |= {"judge": "eva", "criteria_met": "FALSE" if number % 2 else "TRUE"}
    report = import_verdicts(job, save_sheet(tmp_path / "filled.csv", rows))

    assert report.rows == 120
    cell = "task_id, model, judge"
    query = f"select {cell}, count(*), sum(value) from verdicts group by all"
    counts = values_in(job, query)
    assert len(counts) == 12
    assert ("-t0", FORMULA, "eva", 10, 5.0) in counts
    assert ("t1", "ada", "eva", 10, 5.0) in counts


def test_rows_without_a_decision_are_skipped_on_demand_and_decisions_name_a_grader(
    job, tmp_path
):
    export_labelling(job, tmp_path / "sheet.csv", n_rows=10)
    rows = sheet_rows(tmp_path / "sheet.csv")
    rows[0]["criteria_met"] = "yes"
    rows[1]["criteria_met"] = " "
    file = save_sheet(tmp_path / "filled.csv", rows)

    no_decision = r"row 2: the decision is missing \(--skip-empty"
    with pytest.raises(PipelineError, match=no_decision):
        import_verdicts(job, file, judge="eva")
    advice = "enter the grader's name, or give it with --by"
    with pytest.raises(PipelineError, match=f"row 1: `judge` is empty; {advice}"):
        import_verdicts(job, file, skip_empty=True)

    report = import_verdicts(
        job,
        file,
        judge="eva",
        skip_empty=True,
    )

    assert report.rows == 1
    assert "9 rows without a decision skipped" in report.line


NIGHT = "2026-11-03"


@pytest.fixture(scope="module")
def in_two_vintages(tmp_path_factory) -> Job:
    """One task with two vintages of both models; only `fresh` is sampled nightly."""
    folder = tmp_path_factory.mktemp("vintages")
    models = [
        {"name": "m/fresh", "label": "fresh", "resample": "nightly"},
        {"name": "m/pinned", "label": "pinned"},
    ]
    file = write_jsonl(folder / "finance.jsonl", [good_row("t0")])
    job = prepared(job_on(file, folder / "warehouse", models=models))
    responses = [
        {
            "task": "t0",
            "model": model,
            "vintage": vintage,
            "response": f"- {model}\nin {vintage}",
        }
        for model, vintage in product(("fresh", "pinned"), ("base", NIGHT))
    ]
    import_responses(job, write_jsonl(folder / "responses.jsonl", responses))
    return job


@pytest.fixture
def twice(in_two_vintages: Job, tmp_path) -> Job:
    return copied(in_two_vintages, tmp_path / "warehouse")


def filled(
    job: Job,
    folder: Path,
    **options: object,
) -> list[dict[str, str]]:
    """The sheet of a job with some options, filled in with every criterion met."""
    export_labelling(
        job.model_copy(update=options),
        folder / "sheet.csv",
        n_rows=100,
    )
    return [
        row | {"judge": "eva", "criteria_met": "TRUE"}
        for row in sheet_rows(folder / "sheet.csv")
    ]


def judged_texts(job: Job) -> Values:
    """Return model, vintage and text of each judged response."""
    query = """
        select distinct verdicts.model, verdicts.vintage, text
        from verdicts
        inner join responses using (response_id)
        order by all
    """
    return values_in(job, query)


FRESH = ("fresh", NIGHT, f"- fresh\nin {NIGHT}")
PINNED = ("pinned", "base", "- pinned\nin base")
CASES = {
    "nothing": ({}, [("fresh", "base", "- fresh\nin base"), PINNED]),
    "a vintage": (
        {"vintage": NIGHT},
        [FRESH, ("pinned", NIGHT, f"- pinned\nin {NIGHT}")],
    ),
    "a night": ({"night": NIGHT}, [FRESH, PINNED]),
    "a night of one model": ({"night": NIGHT, "named_models": ("fresh",)}, [FRESH]),
}


@pytest.mark.parametrize("case", CASES)
def test_verdicts_land_on_the_responses_that_were_read_in_every_case(
    twice,
    tmp_path,
    case,
):
    options, expected = CASES[case]
    rows = filled(twice, tmp_path, **options)

    later_job = twice.model_copy(update={"night": "2026-11-09"})
    sheet = save_sheet(tmp_path / "filled.csv", rows)
    import_verdicts(twice, sheet)
    import_verdicts(later_job, sheet)

    assert judged_texts(twice) == expected
    assert len(rows_in(twice, "select 1 from verdicts")) == len(expected) * N_CRITERIA


def test_a_date_may_lose_its_mark(twice, tmp_path):
    rows = filled(twice, tmp_path, night=NIGHT)
    assert {row["vintage"] for row in rows} == {f"'{NIGHT}", "base"}
    for row in rows:
        for name, cell in row.items():
            row[name] = cell.removeprefix("'").replace("\n", "\r\n")

    import_verdicts(twice, save_sheet(tmp_path / "filled.csv", rows))

    assert judged_texts(twice) == [FRESH, PINNED]


def test_rows_without_a_vintage_are_of_the_job_s(twice, tmp_path):
    rows = filled(twice, tmp_path, night=NIGHT)
    for row in rows:
        del row["vintage"]
        del row["response"]

    import_verdicts(
        twice.model_copy(update={"night": NIGHT}),
        save_sheet(tmp_path / "filled.csv", rows),
    )

    assert judged_texts(twice) == [FRESH, PINNED]


@given(
    st.integers(1, 9),
    st.integers(1, 4),
    st.integers(0, 99),
    st.data(),
)
def test_responses_spread_over_tasks_and_models(n_tasks, n_models, seed, data):
    cells = [
        {
            "task_id": f"t{task}",
            "model": f"m{model}",
            "response_id": f"{task}/{model}",
        }
        for task, model in product(range(n_tasks), range(n_models))
    ]
    order = list(spread(data.draw(st.permutations(cells)), seed))
    beginning = order[: data.draw(st.integers(1, len(cells)))]

    assert sorted(order, key=str) == sorted(cells, key=str)
    assert list(spread(cells, seed)) == order
    task_counts = dict.fromkeys([cell["task_id"] for cell in cells], 0)
    for cell in beginning:
        task_counts[cell["task_id"]] += 1
    assert max(task_counts.values()) - min(task_counts.values()) <= 1
    # Each round over the tasks gives every model its share; the last round may be incomplete.
    model_counts = Counter(cell["model"] for cell in beginning)
    share = -(-len(beginning) // n_models)
    assert max(model_counts.values()) <= share + len(beginning) // n_tasks + 1


@given(st.text(alphabet="'=+-@\t\r\n ＝a1:", max_size=8))
def test_a_defused_cell_is_no_formula_and_can_be_read_back(text):
    cell = defused(text)

    assert without_mark(cell) == text
    assert shows(cell, text)
    assert shows(cell.replace("\n", "\r\n"), text)
    assert not cell.startswith(("\t", "\r", "\n"))
    assert not cell.lstrip().startswith(("=", "+", "-", "@", "＝"))


@pytest.mark.parametrize(
    ("texts", "mark"),
    [
        (("2026-11-03", "3/4", "1.10", "12:30", "2026.11.03", "'1-2"), "'"),
        (("base", "1", "2026", "a 2026-11-03", "2026-11-03 late", "gpt-4.1"), ""),
    ],
)
def test_what_a_spreadsheet_would_rewrite_as_a_date_is_marked(texts, mark):
    assert list(map(defused, texts)) == [f"{mark}{text}" for text in texts]
