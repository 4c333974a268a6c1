"""Sheets of drawn verdicts: what is drawn and stored, how they are imported, and the effect of
other labels.
"""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tasks.config.job import Job
from tasks.config.models import Judge
from tasks.exports.sheets import export_sampled_labelling
from tasks.imports.files import retract
from tasks.imports.responses import import_responses
from tasks.imports.verdicts import import_verdicts
from tasks.measures import renew
from tasks.rules.errors import PipelineError, UsageError
from tests.kit import (
    Row,
    Values,
    good_row,
    job_on,
    prepared,
    rows_in,
    values_in,
    write_jsonl,
)
from tests.tasks.dataset.rows import hub_criterion
from tests.tasks.exports.conftest import (
    DEBIASED,
    filled,
    save_sheet,
    sheet_rows,
    truth,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("only_debiased")]
N_TASKS = 30
N_CRITERIA = 10
TASKS = [f"t{number}" for number in range(N_TASKS)]
MODELS = ("ada", "bob model")


def response_cells(*models: str) -> list[Row]:
    """Return the first columns of a row on each response of these models, or of all."""
    return [
        {"task": task, "model": model} for task in TASKS for model in models or MODELS
    ]


def verdict_cells(*models: str) -> list[Row]:
    """Return the first columns of a row on each criterion of each response."""
    return [
        cell | {"criterion": f"{cell['task']}-c{number}"}
        for cell in response_cells(*models)
        for number in range(N_CRITERIA)
    ]


def is_even(cell: Row) -> bool:
    """Return whether the number of a criterion is even."""
    return cell["criterion"][-1] in "02468"


def erring_decision(cell: Row) -> bool:
    """Return the decision of a judge who errs on every seventh verdict of a response."""
    number = int(cell["task"][1:]) + int(cell["criterion"].partition("-c")[2])
    return truth(cell) != (number % 7 == 0)


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Job:
    """Thirty tasks with responses of two models, and a judge that errs on every seventh verdict."""
    folder = tmp_path_factory.mktemp("drawn")
    rows = [good_row(task, rubric=rubric_of(task)) for task in TASKS]
    source = write_jsonl(folder / "finance.jsonl", rows)
    job = prepared(job_on(source, folder / "warehouse"))
    responses = [
        cell | {"response": f"a response to {cell['task']}"}
        for cell in response_cells()
    ]
    verdicts = [
        cell | {"judge": "a-judge", "criteria_met": erring_decision(cell)}
        for cell in verdict_cells()
    ]
    import_responses(job, write_jsonl(folder / "responses.jsonl", responses))
    import_verdicts(job, write_jsonl(folder / "judged.jsonl", verdicts))
    return job


def rubric_of(task: str) -> list[Row]:
    """Return a criterion of weight 10, and nine of weight 4 in two categories in turn."""
    rubric = []
    for number in range(N_CRITERIA):
        severity, weight = (
            ("important", 4) if number else ("critically important", 10)
        )
        category = "Financial Accuracy" if number % 2 else "Practical Utility"
        criterion_id = f"{task}-c{number}"
        rubric.append(
            hub_criterion(criterion_id, severity, weight, criteria_category=category)
        )
    return rubric


def drawn_sheet(
    job: Job,
    file: Path,
    n_rows: int,
    **options: Any,
) -> list[Row]:
    """The rows of a drawn sheet."""
    settings = {"sampled_for": "leaderboard"} | options
    export_sampled_labelling(job, file, n_rows=n_rows, **settings)
    return list(map(dict, sheet_rows(file)))


def test_a_sampled_sheet_has_single_verdicts_and_its_sample_is_stored(job, tmp_path):
    report = export_sampled_labelling(
        job,
        tmp_path / "a.csv",
        sampled_for="leaderboard",
        n_rows=80,
        seed=3,
    )

    rows = sheet_rows(tmp_path / "a.csv")
    draws = rows_in(job, "select * from label_draws")
    [sheet] = rows_in(job, "select * from label_sheets")
    assert report.rows == 80
    assert len(rows) == 80
    assert len(draws) == 80
    assert sheet["n_drawn"] == 80
    assert sheet["n_population"] == N_TASKS * N_CRITERIA * len(MODELS)
    assert sheet["sheet_id"] == report.sheet_id
    assert {draw["sheet_id"] for draw in draws} == {report.sheet_id}
    criteria = {row["criterion"] for row in rows}
    assert {draw["criterion_id"] for draw in draws} == criteria
    assert Counter(row["model"] for row in rows) == dict.fromkeys(MODELS, 40)


def test_the_probabilities_of_sampled_verdicts_follow_their_weights(job, tmp_path):
    drawn_sheet(job, tmp_path / "a.csv", 80, seed=3)

    draws = rows_in(job, "select * from label_draws")
    assert not any(draw["is_known"] for draw in draws)
    assert all(0 < draw["probability"] <= 1 for draw in draws)
    probabilities = {
        draw["criterion_id"].endswith("c0"): draw["probability"] for draw in draws
    }
    # The first criterion has weight 10, the others have weight 4.
    assert probabilities[True] == pytest.approx(2.5 * probabilities[False])


def test_only_what_the_first_configured_judge_decided_is_drawn_and_every_label_counts(
    job,
    tmp_path,
):
    judged_tasks = TASKS[:20]
    verdicts = [
        cell | {"judge": "b-judge", "criteria_met": is_even(cell)}
        for cell in verdict_cells()
        if cell["task"] in judged_tasks and cell["criterion"] != "t0-c0"
    ]
    import_verdicts(job, write_jsonl(tmp_path / "judged.jsonl", verdicts))
    judges = (Judge.model_validate({"name": "provider/b", "label": "b-judge"}),)
    settings = job.settings.model_copy(update={"judges": judges})
    job = job.model_copy(update={"settings": settings})

    rows = drawn_sheet(job, tmp_path / "a.csv", 100)
    import_verdicts(job, save_sheet(tmp_path / "filled.csv", filled(rows)))
    renew(job, DEBIASED)

    [sheet] = rows_in(job, "select * from label_sheets")
    assert "judged by b-judge" in sheet["design"]
    assert {row["task"] for row in rows} <= set(judged_tasks)
    # Responses that the judge has only begun are covered, so that figures stay when it completes
    # them, but rarely drawn.
    assert sheet["n_population"] == len(judged_tasks) * N_CRITERIA * len(MODELS)
    n_incomplete = sum(row["task"] == "t0" for row in rows)
    assert n_incomplete < 3
    condition = "judge = 'b-judge' and is_primary and breakdown = 'all'"
    scores = rows_in(job, f"from debiased_scores where {condition}")
    assert [score["no_figure"] for score in scores] == [None, None]
    assert sum(score["n_labels"] for score in scores) == 100 - n_incomplete


def test_a_leaderboard_is_drawn_from_the_latest_vintages_a_pair_from_the_job_s(
    job, tmp_path
):
    verdicts = [
        cell
        | {
            "vintage": "2026-11-20",
            "response": f"later to {cell['task']}",
            "judge": "a-judge",
            "criteria_met": is_even(cell),
        }
        for cell in verdict_cells("ada")
    ]
    import_responses(
        job, write_jsonl(tmp_path / "later.jsonl", verdicts[::N_CRITERIA])
    )
    import_verdicts(job, write_jsonl(tmp_path / "judged.jsonl", verdicts))

    def vintages(name, **options):
        rows = drawn_sheet(
            job,
            tmp_path / f"{name}.csv",
            20,
            sampled_for=name,
            **options,
        )
        return {(row["model"], row["vintage"].lstrip("'")) for row in rows}

    base = {("ada", "base"), ("bob model", "base")}
    assert vintages("leaderboard") == {("ada", "2026-11-20"), ("bob model", "base")}
    assert vintages("bob model ada") == base
    assert vintages("Financial Accuracy", is_latest=False) == base


def test_the_same_seed_draws_the_same_sheet_which_is_stored_once(job, tmp_path):
    sheet = drawn_sheet(job, tmp_path / "a.csv", 20, seed=1)

    assert drawn_sheet(job, tmp_path / "b.csv", 20, seed=1) == sheet
    assert drawn_sheet(job, tmp_path / "c.csv", 20, seed=2) != sheet
    assert len(rows_in(job, "select * from label_draws")) == 40
    with pytest.raises(UsageError, match="may be filled in"):
        drawn_sheet(job, tmp_path / "a.csv", 20, seed=3)


def test_the_next_sheet_draws_other_verdicts_and_knows_how_wide_intervals_are_now(
    job, tmp_path
):
    labelled = drawn_sheet(job, tmp_path / "a.csv", 150)
    import_verdicts(job, save_sheet(tmp_path / "filled.csv", filled(labelled)))
    renew(job, DEBIASED)

    report = export_sampled_labelling(
        job,
        tmp_path / "b.csv",
        sampled_for="leaderboard",
        n_rows=100,
    )

    drawn_cells = {
        (row["model"], row["criterion"]) for row in sheet_rows(tmp_path / "b.csv")
    }
    assert drawn_cells.isdisjoint(
        (row["model"], row["criterion"]) for row in labelled
    )
    query = """
        select avg(debiased_ci_high - debiased_ci_low)
        from debiased_scores
        where breakdown = 'all' and is_primary
    """
    ((current_width,),) = values_in(job, query)
    assert report.expected_widths[0]["width"] == pytest.approx(current_width)
    query = (
        "select is_known, count(*) from label_draws where sheet_id = ? group by all"
    )
    assert dict(values_in(job, query, report.sheet_id)) == {True: 150, False: 100}


def test_labels_without_a_probability_do_not_count_unless_they_are_a_random_sample(
    job, tmp_path
):
    rows = filled(random.Random(1).sample(verdict_cells(), 150))
    n_ada = sum(row["model"] == "ada" for row in rows)
    n_bob = 150 - n_ada
    labels = write_jsonl(tmp_path / "labels.jsonl", rows)
    query = """select no_figure, n_labels, n_unsampled_labels from debiased_scores
               where breakdown = 'all' and is_primary and judge = 'a-judge' order by model"""

    import_verdicts(job, labels)
    renew(job, DEBIASED)

    reason = "no label of known probability"
    assert values_in(job, query) == [(reason, 0, n_ada), (reason, 0, n_bob)]

    import_verdicts(job, labels, is_random_sample=True)
    renew(job, DEBIASED)

    assert values_in(job, query) == [(None, n_ada, 0), (None, n_bob, 0)]
    factor_query = """
        select distinct model, factor
        from intermediate.sampled_labels
        inner join responses using (response_id)
        order by model
    """
    assert values_in(job, factor_query) == [
        ("ada", pytest.approx(300 / n_ada)),
        ("bob model", pytest.approx(300 / n_bob)),
    ]
    ((batch,),) = values_in(job, "select distinct import_batch from labellers")
    retract(job, batch)
    assert values_in(job, query) == []


def import_columns(job: Job, rows: list[Row], folder: Path) -> Values:
    """Import the needed columns of a sheet's rows; return who labels, and the marks of verdicts."""
    columns = ["task", "model", "criterion", "judge", "criteria_met"]
    pl.DataFrame(rows).select(columns).write_ndjson(folder / "rows.jsonl")
    import_verdicts(job, folder / "rows.jsonl")
    marks = "select distinct may_hide_failures from verdicts where judge = ?"
    return [
        *values_in(job, "select judge from labellers"),
        *values_in(job, marks, rows[0]["judge"]),
    ]


def test_labels_of_a_sheet_count_without_its_other_columns(job, tmp_path):
    rows = filled(drawn_sheet(job, tmp_path / "a.csv", 100))

    assert import_columns(job, rows, tmp_path) == [("eva",), (False,)]


def test_a_judge_s_verdicts_on_the_rows_of_a_sheet_are_no_labels(job, tmp_path):
    rows = [
        row | {"judge": "a-judge", "criteria_met": erring_decision(row)}
        for row in drawn_sheet(job, tmp_path / "a.csv", 100)
    ]

    assert import_columns(job, rows, tmp_path) == [(None,)]


def test_what_cannot_be_sampled_is_refused(job, tmp_path):
    file = tmp_path / "a.csv"
    nobody = job.model_copy(update={"named_judges": ("nobody",)})

    models = r"nor two models .*\(ada, bob model\)"
    reason = f"neither `leaderboard`, {models}, nor a category"
    with pytest.raises(UsageError, match=reason):
        drawn_sheet(job, file, 5, sampled_for="ada")
    with pytest.raises(UsageError, match="no judge has a verdict on these responses"):
        drawn_sheet(nobody, file, 5)


def test_a_sheet_is_no_simple_random_sample_and_nothing_is_left_after_a_full_one(
    job, tmp_path
):
    rows = filled(drawn_sheet(job, tmp_path / "a.csv", 10_000))
    labels = save_sheet(tmp_path / "filled.csv", rows)

    reason = "whose probabilities are stored; leave --random-sample out"
    with pytest.raises(PipelineError, match=reason):
        import_verdicts(job, labels, is_random_sample=True)
    import_verdicts(job, labels)
    with pytest.raises(UsageError, match="every verdict has a label already"):
        drawn_sheet(job, tmp_path / "b.csv", 5)
