"""Sheets of drawn verdicts: what is drawn and stored, how they are imported, and the effect of
other labels.
"""

import random
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tasks.aggregate import aggregate
from tasks.config.job import Job
from tasks.config.models import Judge
from tasks.exports.sheets import export_sampled_labelling
from tasks.imports.files import retract
from tasks.imports.responses import import_responses
from tasks.imports.verdicts import import_verdicts
from tasks.rules.errors import PipelineError, UsageError
from tests.kit import Row, good_row, job_on, prepared, rows_in, values_in, write_jsonl
from tests.tasks.dataset.rows import hub_criterion
from tests.tasks.exports.conftest import save_sheet, sheet_rows

pytestmark = pytest.mark.slow
N_TASKS = 30
N_CRITERIA = 10
CRITERIA = list(product(range(N_TASKS), range(N_CRITERIA)))
"""(number of the task, number of the criterion in its rubric)"""
MODELS = ("ada", "bob model")


def truth(task: str, model: str, criterion: str) -> bool:
    """Return people's decision."""
    return random.Random(f"{task} {model} {criterion}").random() < (0.7 if model == "ada" else 0.5)


def cells(n: int, i: int = 0, *models: str, **more: Any) -> list[Row]:
    """The first columns of rows on a criterion, for each model."""
    return [
        {
            "task": f"t{n}",
            "model": m,
            "criterion": f"t{n}-c{i}",
            **more,
        }
        for m in models or MODELS
    ]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Thirty tasks with responses of two models, and a judge that errs on every seventh verdict."""
    folder = tmp_path_factory.mktemp("drawn")
    kinds = [
        ("critically important", 10, "Practical Utility"),
        *[("important", 4, "Financial Accuracy"), ("important", 4, "Practical Utility")] * 5,
    ][:N_CRITERIA]
    rows = [
        good_row(
            t,
            rubric=[
                hub_criterion(f"{t}-c{i}", severity, weight, criteria_category=category)
                for i, (severity, weight, category) in enumerate(kinds)
            ],
        )
        for t in (f"t{n}" for n in range(N_TASKS))
    ]
    job = prepared(job_on(write_jsonl(folder / "finance.jsonl", rows), folder / "warehouse"))
    decisions = [
        row
        | {"criteria_met": truth(row["task"], row["model"], row["criterion"]) != ((n + i) % 7 == 0)}
        for n, i in CRITERIA
        for row in cells(n, i)
    ]
    responses = [
        row | {"response": f"a response to {row['task']}"}
        for n in range(N_TASKS)
        for row in cells(n)
    ]
    import_responses(job, write_jsonl(folder / "responses.jsonl", responses))
    import_verdicts(
        job, write_jsonl(folder / "judged.jsonl", [row | {"judge": "a-judge"} for row in decisions])
    )
    aggregate(job)
    return job


def filled(rows: list[Row], person: str = "eva") -> list[Row]:
    decisions = (
        "yes" if truth(row["task"], row["model"], row["criterion"]) else "no" for row in rows
    )
    return [
        row | {"judge": person, "criteria_met": decision}
        for row, decision in zip(rows, decisions, strict=True)
    ]


def drawn_sheet(job: Job, file: Path, n_rows: int, **options: Any) -> list[Row]:
    """The rows of a drawn sheet."""
    export_sampled_labelling(
        job,
        file,
        **{
            "sampled_for": "leaderboard",
            "n_rows": n_rows,
            **options,
        },
    )
    return [dict(row) for row in sheet_rows(file)]


def test_a_sampled_sheet_has_single_verdicts_and_their_probabilities_are_stored(
    job: Job, tmp_path: Path
) -> None:
    report = export_sampled_labelling(
        job,
        tmp_path / "a.csv",
        sampled_for="leaderboard",
        n_rows=80,
        seed=3,
    )
    rows = sheet_rows(tmp_path / "a.csv")
    draws = rows_in(job, "select * from label_draws")
    (of_sheet,) = rows_in(job, "select * from label_sheets")

    assert 80 == report.rows == len(rows) == len(draws) == of_sheet["n_drawn"]
    assert {draw["criterion_id"] for draw in draws} == {row["criterion"] for row in rows}
    assert N_TASKS * N_CRITERIA * len(MODELS) == of_sheet["n_population"]
    assert {report.sheet_id} == {of_sheet["sheet_id"], *(draw["sheet_id"] for draw in draws)}
    assert all(0 < draw["probability"] <= 1 and not draw["is_known"] for draw in draws)
    # Weight 10 has two and a half times the probability of weight 4.
    by_weight = {draw["criterion_id"].endswith("c0"): draw["probability"] for draw in draws}
    assert pytest.approx(2.5 * by_weight[False]) == by_weight[True]
    assert set(Counter(row["model"] for row in rows).values()) == {40}


def test_only_what_the_first_configured_judge_decided_is_drawn_and_every_label_counts(
    job: Job, tmp_path: Path
) -> None:
    judged = [
        row
        for n, i in CRITERIA
        if n < 20
        for row in cells(n, i, judge="b-judge", criteria_met=i % 2 == 0)
        if row["criterion"] != "t0-c0"
    ]
    import_verdicts(job, write_jsonl(tmp_path / "judged.jsonl", judged))
    judges = (Judge.model_validate({"name": "provider/b", "label": "b-judge"}),)
    chosen = job.model_copy(update={"settings": job.settings.model_copy(update={"judges": judges})})
    report = export_sampled_labelling(
        chosen, tmp_path / "a.csv", sampled_for="leaderboard", n_rows=100
    )
    rows: list[Row] = [*sheet_rows(tmp_path / "a.csv")]
    import_verdicts(chosen, save_sheet(tmp_path / "filled.csv", filled(rows)))
    aggregate(chosen)
    counted = values_in(
        job,
        "select n_labels, no_figure from debiased_scores where judge = 'b-judge' and is_primary "
        "and breakdown = 'all'",
    )

    assert "judged by b-judge" in report.line
    assert {row["task"] for row in rows} <= {f"t{n}" for n in range(20)}
    # Responses that the judge has only begun are covered, so that figures stay when it completes
    # them, but rarely drawn.
    assert [(20 * N_CRITERIA * len(MODELS),)] == values_in(
        job, "select n_population from label_sheets"
    )
    n_uncounted = sum(row["task"] == "t0" for row in rows)
    assert [no_figure for _, no_figure in counted] == [None, None]
    assert 100 - n_uncounted == sum(n_labels for n_labels, _ in counted)
    assert n_uncounted < 3


def test_a_leaderboard_is_drawn_from_the_latest_vintages_a_pair_from_the_job_s(
    job: Job, tmp_path: Path
) -> None:
    later = [
        row
        for n, i in CRITERIA
        for row in cells(
            n,
            i,
            "ada",
            vintage="2026-11-20",
            response=f"later to t{n}",
            judge="a-judge",
            criteria_met=i % 2 == 0,
        )
    ]
    import_responses(job, write_jsonl(tmp_path / "later.jsonl", later[::N_CRITERIA]))
    import_verdicts(job, write_jsonl(tmp_path / "judged.jsonl", later))
    sampled = {}
    for name, options in (
        ("leaderboard", {}),
        ("bob model ada", {}),
        ("Financial Accuracy", {"is_latest": False}),
    ):
        rows = drawn_sheet(job, tmp_path / f"{name}.csv", 20, sampled_for=name, **options)
        sampled[name] = {(row["model"], row["vintage"].lstrip("'")) for row in rows}

    of_base = {("ada", "base"), ("bob model", "base")}
    assert sampled["leaderboard"] == {("ada", "2026-11-20"), ("bob model", "base")}
    assert of_base == sampled["bob model ada"] == sampled["Financial Accuracy"]


def test_the_same_seed_draws_the_same_sheet_which_is_stored_once(job: Job, tmp_path: Path) -> None:
    sheets = [
        drawn_sheet(job, tmp_path / f"{name}.csv", 20, seed=n)
        for name, n in (("a", 1), ("b", 1), ("c", 2))
    ]
    assert sheets[0] == sheets[1] != sheets[2]
    assert len(rows_in(job, "select * from label_draws")) == 40
    with pytest.raises(UsageError, match="may be filled in"):
        drawn_sheet(job, tmp_path / "a.csv", 20, seed=3)


def test_the_next_sheet_draws_other_verdicts_and_knows_how_wide_intervals_are_now(
    job: Job, tmp_path: Path
) -> None:
    first = drawn_sheet(job, tmp_path / "a.csv", 150)
    import_verdicts(job, save_sheet(tmp_path / "filled.csv", filled(first)))
    aggregate(job)
    scores = rows_in(
        job, "select * from debiased_scores where breakdown = 'all' and is_primary order by model"
    )

    report = export_sampled_labelling(
        job, tmp_path / "b.csv", sampled_for="leaderboard", n_rows=100
    )
    second = sheet_rows(tmp_path / "b.csv")
    drawn = [{(row["model"], row["criterion"]) for row in rows} for rows in (first, second)]
    assert not drawn[0] & drawn[1]
    widths = [row["debiased_ci_high"] - row["debiased_ci_low"] for row in scores]
    assert pytest.approx(sum(widths) / len(MODELS)) == report.expected_widths[0]["width"]
    query = "select is_known, count(*) from label_draws where sheet_id = ? group by all"
    assert dict(values_in(job, query, report.sheet_id)) == {True: 150, False: 100}


def test_labels_without_a_probability_do_not_count_unless_they_are_a_random_sample(
    job: Job, tmp_path: Path
) -> None:
    given = random.Random(1).sample([row for n, i in CRITERIA for row in cells(n, i)], 150)
    labels = write_jsonl(tmp_path / "labels.jsonl", filled(given))
    n_of = Counter(row["model"] for row in given)
    query = """select no_figure, n_labels, n_unsampled_labels from debiased_scores
               where breakdown = 'all' and is_primary and judge = 'a-judge' order by model"""
    import_verdicts(job, labels)
    aggregate(job)
    assert [("no label of known probability", 0, n_of[m]) for m in MODELS] == values_in(job, query)

    import_verdicts(job, labels, is_random_sample=True)
    aggregate(job)
    assert [(None, n_of[m], 0) for m in MODELS] == values_in(job, query)
    factors = values_in(
        job,
        "select distinct model, factor from intermediate.sampled_labels "
        "inner join responses using (response_id) order by model",
    )
    assert [(m, pytest.approx(N_TASKS * N_CRITERIA / n_of[m])) for m in MODELS] == factors
    ((batch,),) = values_in(job, "select distinct import_batch from labellers")
    retract(job, batch)
    assert values_in(job, query) == []


def test_labels_of_a_sheet_count_without_its_other_columns_unless_a_judge_gave_them(
    job: Job, tmp_path: Path
) -> None:
    drawn = drawn_sheet(job, tmp_path / "a.csv", 100)
    query = "select task_id, model, criterion_id, value = 1 from verdicts"
    decided = {tuple(key): value for *key, value in values_in(job, query)}
    for judge, labellers in (("a-judge", []), ("eva", ["eva"])):
        rows = [
            {name: row[name] for name in ("task", "model", "criterion", "judge", "criteria_met")}
            for row in filled(drawn, judge)
        ]
        for row in rows if judge == "a-judge" else ():
            row["criteria_met"] = decided[row["task"], row["model"], row["criterion"]]
        import_verdicts(job, write_jsonl(tmp_path / f"{judge}.jsonl", rows))
        assert [(name,) for name in labellers] == values_in(job, "select judge from labellers")
        query = (
            "select distinct may_hide_failures from verdicts where judge = ? and source ="
            " 'imported'"
        )
        assert [(False if labellers else None,)] == values_in(job, query, judge)


def test_what_cannot_be_sampled_is_refused_and_a_sheet_is_no_simple_random_sample(
    job: Job, tmp_path: Path
) -> None:
    file = tmp_path / "a.csv"
    nobody = job.model_copy(update={"named_judges": ("nobody",)})
    with pytest.raises(
        UsageError,
        match=r"neither `leaderboard`, nor two models .*\(ada, bob model\), nor a category",
    ):
        export_sampled_labelling(job, file, sampled_for="ada", n_rows=5)
    with pytest.raises(UsageError, match="no judge has a verdict on these responses"):
        export_sampled_labelling(nobody, file, sampled_for="leaderboard", n_rows=5)
    labels = save_sheet(tmp_path / "filled.csv", filled(drawn_sheet(job, file, 10_000)))
    with pytest.raises(
        PipelineError, match="whose probabilities are stored; leave --random-sample out"
    ):
        import_verdicts(job, labels, is_random_sample=True)
    import_verdicts(job, labels)
    with pytest.raises(UsageError, match="every verdict has a label already"):
        export_sampled_labelling(job, tmp_path / "b.csv", sampled_for="leaderboard", n_rows=5)
