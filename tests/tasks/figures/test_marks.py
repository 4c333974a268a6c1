"""Notes on the marks for few tasks: only where a value or a dot has one."""

from tasks.benchmarks import load_benchmark
from tasks.figures import charts
from tasks.figures.figure import Column, Figure
from tasks.report.rendering.page_figures import page_figure_of

FIGURE = Figure(
    "scores",
    "Scores",
    "",
    (
        Column("model", "Model"),
        Column("mean_score", "Score", "score", few="is_small"),
    ),
    charts.intervals(
        value="mean_score",
        label="model",
        hollow="is_small",
    ),
)


def row(model: str, value: float | None, *, is_small: bool) -> dict[str, object]:
    return {
        "model": model,
        "is_small": is_small,
        "mean_score": value,
        "ci_low": 0.1,
        "ci_high": 0.9,
    }


def test_a_note_explains_an_asterisk_in_the_table():
    rows = [row("a", 0.5, is_small=True), row("b", 0.4, is_small=False)]

    [note] = FIGURE.small_notes(rows)
    assert note.startswith("* Few tasks")


def test_no_note_explains_an_asterisk_that_no_value_has():
    without_mark = [row("a", 0.5, is_small=False)]
    without_value = [row("a", None, is_small=True)]

    assert FIGURE.small_notes(without_mark) == []
    assert FIGURE.small_notes(without_value) == []


def test_no_note_explains_an_asterisk_of_a_row_that_the_table_leaves_out():
    rows = [
        row("a", 0.5, is_small=False),
        row("b", 0.4, is_small=True) | {"is_hard": True},
    ]

    page_figure = page_figure_of(FIGURE, rows, load_benchmark("prbench"))

    assert page_figure.table_notes == []


def test_a_chart_has_marks_if_one_of_its_dots_is_hollow():
    full_row = row("a", 0.5, is_small=False)

    [plain] = FIGURE.drawn([full_row])
    [marked] = FIGURE.drawn([full_row, row("b", 0.4, is_small=True)])

    assert not plain.has_marks
    assert marked.has_marks
