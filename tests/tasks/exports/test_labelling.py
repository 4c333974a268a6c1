"""Sheets for human graders: what is sampled, changes by spreadsheet programs, and the import."""

from collections import Counter
from itertools import pairwise, product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.config.job import Job
from tasks.exports.sheets import export_labelling, spread
from tasks.imports.responses import import_responses
from tasks.imports.verdicts import import_verdicts
from tasks.rules.errors import PipelineError
from tasks.rules.text.cells import as_before, defused, shows
from tests.kit import copied, good_row, job_on, prepared, rows_in, values_in, write_jsonl
from tests.tasks.exports.conftest import save_sheet, sheet_rows

pytestmark = pytest.mark.usefixtures("without_scores")

N_TASKS = 6
N_CRITERIA = 10
FORMULA = '=HYPERLINK("https://example.org","x")'
MODELS = ("ada", FORMULA)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Six tasks with responses of two models; one task id and one model name look like formulas."""
    folder = tmp_path_factory.mktemp("labelling")
    tasks = ["-t0", *(f"t{i}" for i in range(1, N_TASKS))]
    job = prepared(
        job_on(write_jsonl(folder / "finance.jsonl", map(good_row, tasks)), folder / "warehouse")
    )
    responses = [
        {
            "task": t,
            "model": m,
            "response": f"- a response\nto {t}",
        }
        for t in tasks
        for m in MODELS
    ]
    import_responses(job, write_jsonl(folder / "responses.jsonl", responses))
    return job


def test_a_sheet_has_the_rows_that_were_asked_for_and_whole_responses_but_the_last(
    shared: Job, tmp_path: Path
) -> None:
    report = export_labelling(shared, tmp_path / "sheet.csv", n_rows=25)
    rows = sheet_rows(tmp_path / "sheet.csv")
    counts = Counter((row["task"], row["model"]) for row in rows)

    assert list(counts.values()) == [N_CRITERIA, N_CRITERIA, 5]
    assert len(rows) == report.rows == 25
    assert "judge: your name; criteria_met: yes or no; explanation: if you like" in report.line
    assert {row["how_to_fill_in"] in report.line for row in rows} == {True}
    assert all(
        row["title"] and row["conversation"] and row["response"] and row["field"] for row in rows
    )
    assert {(row["judge"], row["criteria_met"], row["explanation"]) for row in rows} == {
        ("", "", "")
    }
    # The rows of a response are together, so that a person reads it once.
    assert len(counts) - 1 == sum(
        a["response"] + a["model"] != b["response"] + b["model"] for a, b in pairwise(rows)
    )


def test_no_cell_begins_a_formula_and_the_filled_sheet_comes_back_with_its_ids(
    job: Job, tmp_path: Path
) -> None:
    export_labelling(job, tmp_path / "sheet.csv", n_rows=10_000)
    rows = sheet_rows(tmp_path / "sheet.csv")
    assert not [
        cell for row in rows for cell in row.values() if cell[:1] and cell[0] in "=+-@\t\r\n"
    ]
    for number, row in enumerate(rows):
        row |= {
            "judge": "eva",
            "criteria_met": str(number % 2 == 0).upper(),
            "explanation": "so",
        }
    report = import_verdicts(job, save_sheet(tmp_path / "filled.csv", rows))

    assert N_TASKS * len(MODELS) * N_CRITERIA == report.rows
    actual = values_in(
        job, "select task_id, model, judge, count(*), sum(value) from verdicts group by all"
    )
    assert {("-t0", FORMULA, "eva", 10, 5.0), ("t1", "ada", "eva", 10, 5.0)} <= set(actual)
    assert N_TASKS * len(MODELS) == len(actual)


def test_rows_without_a_decision_are_skipped_on_demand_and_decisions_name_a_grader(
    job: Job, tmp_path: Path
) -> None:
    export_labelling(job, tmp_path / "sheet.csv", n_rows=10)
    rows = sheet_rows(tmp_path / "sheet.csv")
    rows[0]["criteria_met"] = "yes"
    rows[1]["criteria_met"] = " "
    file = save_sheet(tmp_path / "filled.csv", rows)

    with pytest.raises(PipelineError, match=r"row 2: the decision is missing \(--skip-empty"):
        import_verdicts(job, file, judge="eva")
    with pytest.raises(
        PipelineError,
        match=r"row 1: `judge` is empty; enter the grader's name, or give it with --by",
    ):
        import_verdicts(job, file, skip_empty=True)
    report = import_verdicts(job, file, judge="eva", skip_empty=True)
    assert report.rows == 1
    assert "9 rows without a decision skipped" in report.line


NIGHT = "2026-11-03"


@pytest.fixture(scope="module")
def in_two_vintages(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """One task with two vintages of both models; only `fresh` is sampled nightly."""
    folder = tmp_path_factory.mktemp("vintages")
    models = [
        {
            "name": "m/fresh",
            "label": "fresh",
            "resample": "nightly",
        },
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
        for model in ("fresh", "pinned")
        for vintage in ("base", NIGHT)
    ]
    import_responses(job, write_jsonl(folder / "responses.jsonl", responses))
    return job


@pytest.fixture
def twice(in_two_vintages: Job, tmp_path: Path) -> Job:
    return copied(in_two_vintages, tmp_path / "warehouse")


def filled(job: Job, folder: Path, **options: object) -> list[dict[str, str]]:
    """The sheet of a job with some options, filled in with every criterion met."""
    export_labelling(job.model_copy(update=options), folder / "sheet.csv", n_rows=100)
    return [
        row | {"judge": "eva", "criteria_met": "TRUE"} for row in sheet_rows(folder / "sheet.csv")
    ]


def graded(job: Job) -> dict[tuple[str, str], str]:
    """(model, vintage) -> the text of the judged response."""
    query = (
        "select distinct v.model, v.vintage, r.text from verdicts v join responses r using"
        " (response_id)"
    )
    return {(model, vintage): text for model, vintage, text in values_in(job, query)}


CASES: dict[str, tuple[dict[str, object], set[tuple[str, str]]]] = {
    "nothing": ({}, {("fresh", "base"), ("pinned", "base")}),
    "a vintage": ({"vintage": NIGHT}, {("fresh", NIGHT), ("pinned", NIGHT)}),
    "a night": ({"night": NIGHT}, {("fresh", NIGHT), ("pinned", "base")}),
    "a night of one model": ({"night": NIGHT, "named_models": ("fresh",)}, {("fresh", NIGHT)}),
}


@pytest.mark.parametrize("case", CASES)
def test_verdicts_land_on_the_responses_that_were_read_in_every_case(
    twice: Job, tmp_path: Path, case: str
) -> None:
    options, expected = CASES[case]
    rows = filled(twice, tmp_path, **options)
    import_verdicts(twice, save_sheet(tmp_path / "filled.csv", rows))
    import_verdicts(twice.model_copy(update={"night": "2026-11-09"}), tmp_path / "filled.csv")

    assert {cell: f"- {cell[0]}\nin {cell[1]}" for cell in expected} == graded(twice)
    assert len(expected) * N_CRITERIA == len(rows_in(twice, "select 1 from verdicts"))


def test_a_date_may_lose_its_mark_and_rows_without_a_vintage_are_of_the_job_s(
    twice: Job, tmp_path: Path
) -> None:
    rows = filled(twice, tmp_path, night=NIGHT)
    assert {row["vintage"] for row in rows} == {f"'{NIGHT}", "base"}
    bare = [
        {name: cell.removeprefix("'").replace("\n", "\r\n") for name, cell in row.items()}
        for row in rows
    ]
    without = [
        {name: cell for name, cell in row.items() if name not in {"vintage", "response"}}
        for row in rows
    ]
    for night, cells in ((None, bare), (NIGHT, without)):
        import_verdicts(
            twice.model_copy(update={"night": night}), save_sheet(tmp_path / f"{night}.csv", cells)
        )
        assert graded(twice).keys() == {("fresh", NIGHT), ("pinned", "base")}


@given(st.integers(1, 9), st.integers(1, 4), st.integers(0, 99), st.data())
def test_responses_spread_over_tasks_and_models(
    n_tasks: int, n_models: int, seed: int, data: st.DataObject
) -> None:
    pairs = product(range(n_tasks), range(n_models))
    cells = [
        {
            "task_id": f"t{i}",
            "model": f"m{j}",
            "response_id": f"{i}/{j}",
        }
        for i, j in pairs
    ]
    order = list(spread(data.draw(st.permutations(cells)), seed))
    taken = order[: data.draw(st.integers(1, len(cells)))]
    tasks, models = (Counter(each[name] for each in taken) for name in ("task_id", "model"))

    assert sorted(cells, key=str) == sorted(order, key=str)
    assert order == list(spread(cells, seed))
    assert max(tasks.values()) - min(tasks.get(f"t{i}", 0) for i in range(n_tasks)) <= 1
    # Each round over the tasks gives every model its share; the last round may be incomplete.
    assert max(models.values()) <= -(-len(taken) // n_models) + len(taken) // n_tasks + 1


@given(st.text(alphabet="'=+-@\t\r\n ＝a1:", max_size=8))
def test_a_defused_cell_is_no_formula_and_can_be_read_back(text: str) -> None:
    cell = defused(text)

    assert text == as_before(cell)
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
def test_what_a_spreadsheet_would_rewrite_as_a_date_is_marked(
    texts: tuple[str, ...], mark: str
) -> None:
    assert [f"{mark}{text}" for text in texts] == list(map(defused, texts))


def test_a_cell_that_was_cut_where_spreadsheets_end_shows_its_text_and_a_shorter_one_does_not() -> (
    None
):
    text = "word " * 8_000

    assert shows(text[:32_767], text)
    assert not shows(text[:31_000], text)
    assert not shows("x" + text[:32_766], text)
    assert not shows("a response", "another response")
