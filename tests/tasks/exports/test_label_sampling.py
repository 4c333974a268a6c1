"""Sheets of drawn verdicts: what is drawn and stored, what comes back, and what labels of other origin are worth."""

import random
from collections import Counter
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
from tests.kit import good_row, job_on, prepared, rows_in, values_in, write_jsonl
from tests.tasks.dataset.rows import hub_criterion
from tests.tasks.exports.conftest import save_sheet, sheet_rows

pytestmark = pytest.mark.slow
N_TASKS, N_CRITERIA = 30, 10
MODELS = ("ada", "bob model")
Row = dict[str, Any]


def truth(task: str, model: str, criterion: str) -> bool:
    """Return the decision of people."""
    return random.Random(f"{task} {model} {criterion}").random() < (0.7 if model == "ada" else 0.5)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Thirty tasks with responses of two models, and a judge that is wrong on every seventh verdict."""
    folder = tmp_path_factory.mktemp("drawn")
    tasks = [f"t{i}" for i in range(N_TASKS)]
    rows = [
        good_row(t, rubric=[
            hub_criterion(f"{t}-c{i}", "critically important" if i == 0 else "important", 10 if i == 0 else 4,
                          criteria_category="Financial Accuracy" if i % 2 else "Practical Utility")
            for i in range(N_CRITERIA)
        ])
        for t in tasks
    ]  # fmt: skip
    job = prepared(job_on(write_jsonl(folder / "finance.jsonl", rows), folder / "warehouse"))
    responses = [{"task": t, "model": m, "response": f"a response to {t} by {m}"} for t in tasks for m in MODELS]
    import_responses(job, write_jsonl(folder / "responses.jsonl", responses))
    judged = [
        {"task": t, "model": m, "criterion": f"{t}-c{i}", "judge": "a-judge",
         "criteria_met": truth(t, m, f"{t}-c{i}") != ((7 * i + len(t) + n) % 7 == 0)}
        for n, t in enumerate(tasks) for m in MODELS for i in range(N_CRITERIA)
    ]  # fmt: skip
    import_verdicts(job, write_jsonl(folder / "judged.jsonl", judged))
    aggregate(job)
    return job


def filled(rows: list[dict[str, str]], person: str = "eva") -> list[dict[str, str]]:
    return [
        row | {"judge": person, "criteria_met": "yes" if truth(row["task"], row["model"], row["criterion"]) else "no"}
        for row in rows
    ]


def labelled(job: Job, folder: Path, n_rows: int, **options: Any) -> list[dict[str, str]]:
    """Import the labels of a drawn sheet, and return its rows."""
    export_sampled_labelling(job, folder / "a.csv", sampled_for="leaderboard", n_rows=n_rows, **options)
    rows = sheet_rows(folder / "a.csv")
    import_verdicts(job, save_sheet(folder / "filled.csv", filled(rows)))
    aggregate(job)
    return rows


def test_a_sampled_sheet_has_single_verdicts_with_stored_probabilities_that_sum_to_their_number(
    job: Job, tmp_path: Path
) -> None:
    report = export_sampled_labelling(job, tmp_path / "a.csv", sampled_for="leaderboard", n_rows=80, seed=3)
    rows = sheet_rows(tmp_path / "a.csv")
    draws = rows_in(job, "select * from label_draws")
    (of_sheet,) = rows_in(job, "select * from label_sheets")

    assert 80 == report.rows == len(rows) == len(draws) == of_sheet["n_drawn"]
    assert {draw["criterion_id"] for draw in draws} == {row["criterion"] for row in rows}
    assert N_TASKS * N_CRITERIA * len(MODELS) == of_sheet["n_population"]
    assert {report.sheet_id} == {of_sheet["sheet_id"], *(draw["sheet_id"] for draw in draws)}
    assert all(0 < draw["probability"] <= 1 and not draw["is_known"] for draw in draws)
    # A criterion that weighs 10 is drawn with two and a half times the probability of one that weighs 4.
    by_weight = {draw["criterion_id"].endswith("c0"): draw["probability"] for draw in draws}
    assert by_weight[True] == pytest.approx(2.5 * by_weight[False])
    assert {40} == set(Counter(row["model"] for row in rows).values())
    assert "judged by a-judge" in report.line
    assert "each model needs 30 labels in 15 tasks; 2 models need about 60; with 80 the interval is" in report.line
    assert [0, 50, 80, 100, 200] == [each["n_labels"] for each in report.expected_widths]
    widths = [each["width"] for each in report.expected_widths]
    assert [None, *sorted(widths[1:], reverse=True)] == widths


def test_only_what_the_first_configured_judge_decided_is_drawn_and_every_label_counts(job: Job, tmp_path: Path) -> None:
    lacking = "t0-c0"
    judged = [
        {"task": f"t{n}", "model": m, "criterion": f"t{n}-c{i}", "judge": "b-judge", "criteria_met": i % 2 == 0}
        for n in range(20) for m in MODELS for i in range(N_CRITERIA) if f"t{n}-c{i}" != lacking
    ]  # fmt: skip
    import_verdicts(job, write_jsonl(tmp_path / "judged.jsonl", judged))
    judges = (Judge.model_validate({"name": "provider/b", "label": "b-judge"}),)
    chosen = job.model_copy(update={"settings": job.settings.model_copy(update={"judges": judges})})
    report = export_sampled_labelling(chosen, tmp_path / "a.csv", sampled_for="leaderboard", n_rows=100)
    rows = sheet_rows(tmp_path / "a.csv")
    import_verdicts(chosen, save_sheet(tmp_path / "filled.csv", filled(rows)))
    aggregate(chosen)
    counted = rows_in(job, "select n_labels, no_figure from debiased_scores where judge = 'b-judge' and is_primary "
                          "and breakdown = 'all'")  # fmt: skip
    (of_sheet,) = rows_in(job, "select * from label_sheets")

    assert "judged by b-judge" in report.line
    assert {row["task"] for row in rows} <= {f"t{n}" for n in range(20)}
    # What the judge has begun is covered, so that figures stay when it completes it, and is hardly ever drawn.
    assert 20 * N_CRITERIA * len(MODELS) == of_sheet["n_population"]
    assert [None, None] == [row["no_figure"] for row in counted]
    assert 100 - sum(row["task"] == "t0" for row in rows) == sum(row["n_labels"] for row in counted)
    assert sum(row["task"] == "t0" for row in rows) < 3


def test_a_leaderboard_is_drawn_from_the_latest_vintages_two_models_from_that_of_the_job(
    job: Job, tmp_path: Path
) -> None:
    night = [{"task": f"t{n}", "model": "ada", "response": f"a later response to t{n}", "vintage": "2026-11-20"}
             for n in range(N_TASKS)]  # fmt: skip
    judged = [
        {"task": f"t{n}", "model": "ada", "criterion": f"t{n}-c{i}", "vintage": "2026-11-20", "judge": "a-judge",
         "criteria_met": i % 2 == 0}
        for n in range(N_TASKS) for i in range(N_CRITERIA)
    ]  # fmt: skip
    import_responses(job, write_jsonl(tmp_path / "night.jsonl", night))
    import_verdicts(job, write_jsonl(tmp_path / "judged.jsonl", judged))
    sampled = {}
    for name, options in (("leaderboard", {}), ("bob model ada", {}), ("Financial Accuracy", {"of_latest": False})):
        export_sampled_labelling(job, tmp_path / f"{name}.csv", sampled_for=name, n_rows=20, **options)
        sampled[name] = {(row["model"], row["vintage"].lstrip("'")) for row in sheet_rows(tmp_path / f"{name}.csv")}

    of_base = {("ada", "base"), ("bob model", "base")}
    assert {("ada", "2026-11-20"), ("bob model", "base")} == sampled["leaderboard"]
    assert of_base == sampled["bob model ada"] == sampled["Financial Accuracy"]


def test_the_same_seed_draws_the_same_sheet_which_is_stored_once(job: Job, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        export_sampled_labelling(job, tmp_path / f"{name}.csv", sampled_for="leaderboard", n_rows=20, seed=seed)

    texts = [(tmp_path / f"{name}.csv").read_bytes() for name in "abc"]
    assert texts[0] == texts[1] != texts[2]
    assert 40 == len(rows_in(job, "select * from label_draws"))


def test_labels_of_a_sheet_correct_the_score_and_the_next_sheet_draws_other_verdicts(job: Job, tmp_path: Path) -> None:
    first = labelled(job, tmp_path, 150)
    scores = rows_in(job, "select * from debiased_scores where breakdown = 'all' and is_primary order by model")

    assert [None, None] == [row["no_figure"] for row in scores]
    for row in scores:
        met = [
            (10 if i == 0 else 4) * truth(f"t{n}", row["model"], f"t{n}-c{i}") / 46
            for n in range(N_TASKS) for i in range(N_CRITERIA)
        ]  # fmt: skip
        assert row["debiased_ci_low"] < sum(met) / N_TASKS < row["debiased_ci_high"]
        assert (
            row["debiased_ci_high"] - row["debiased_ci_low"] < row["labels_alone_ci_high"] - row["labels_alone_ci_low"]
        )
    report = export_sampled_labelling(job, tmp_path / "b.csv", sampled_for="leaderboard", n_rows=100)
    second = sheet_rows(tmp_path / "b.csv")
    cells = [{(row["model"], row["criterion"]) for row in rows} for rows in (first, second)]
    assert not cells[0] & cells[1]
    now = report.expected_widths[0]["width"]
    assert pytest.approx(
        sum(row["debiased_ci_high"] - row["debiased_ci_low"] for row in scores) / len(scores)
    ) == now  # fmt: skip
    known = Counter(row["is_known"] for row in rows_in(
        job, f"select is_known from label_draws where sheet_id = '{report.sheet_id}'"
    ))  # fmt: skip
    assert {True: 150, False: 100} == known


def test_where_rows_of_a_sheet_are_left_empty_the_others_stand_for_them(job: Job, tmp_path: Path) -> None:
    export_sampled_labelling(job, tmp_path / "a.csv", sampled_for="leaderboard", n_rows=100)
    rows = filled(sheet_rows(tmp_path / "a.csv"))
    import_verdicts(job, save_sheet(tmp_path / "half.csv", rows[::2]))
    draws = {(d["response_id"], d["criterion_id"]): d["probability"] for d in rows_in(job, "select * from label_draws")}
    factors = rows_in(job, "select * from intermediate.sampled_labels")

    assert 50 == len(factors)
    assert all(f["factor"] == pytest.approx(2 / draws[f["response_id"], f["criterion_id"]]) for f in factors)


def test_labels_without_a_probability_are_beside_the_figure_unless_they_are_a_random_sample(
    job: Job, tmp_path: Path
) -> None:
    dice = random.Random(1)
    cells = dice.sample([(f"t{n}", m, i) for n in range(N_TASKS) for m in MODELS for i in range(N_CRITERIA)], 150)
    labels = write_jsonl(tmp_path / "labels.jsonl", [
        {"task": t, "model": m, "criterion": f"{t}-c{i}", "criteria_met": truth(t, m, f"{t}-c{i}"), "judge": "eva"}
        for t, m, i in cells
    ])  # fmt: skip
    query = "select * from debiased_scores where breakdown = 'all' and is_primary and judge = 'a-judge' order by model"
    import_verdicts(job, labels)
    aggregate(job)
    before = rows_in(job, query)
    assert ["no label of known probability"] * 2 == [row["no_figure"] for row in before]
    assert 150 == sum(row["n_unsampled_labels"] for row in before)
    assert [None, None] == [row["debiased"] for row in before]

    import_verdicts(job, labels, is_random_sample=True)
    aggregate(job)
    after = rows_in(job, query)
    assert [None, None] == [row["no_figure"] for row in after]
    n_of = Counter(model for _, model, _ in cells)
    assert [(n_of[m], 0) for m in MODELS] == [(row["n_labels"], row["n_unsampled_labels"]) for row in after]
    factors = rows_in(job, "select distinct model, factor from intermediate.sampled_labels inner join responses using "
                          "(response_id) order by model")  # fmt: skip
    assert [pytest.approx(N_TASKS * N_CRITERIA / n_of[m]) for m in MODELS] == [row["factor"] for row in factors]
    (batch,) = rows_in(job, "select distinct import_batch as batch from labellers")
    retract(job, batch["batch"])
    assert [] == rows_in(job, query)


def test_labels_of_a_sampled_sheet_count_without_its_other_columns_unless_a_judge_gave_them(
    job: Job, tmp_path: Path
) -> None:
    export_sampled_labelling(job, tmp_path / "a.csv", sampled_for="leaderboard", n_rows=100)
    cells = values_in(job, "select responses.task_id, responses.model, criterion_id, value from verdicts "
                           "inner join responses using (response_id)")  # fmt: skip
    decided = {tuple(key): value for *key, value in cells}
    for judge, labellers in (("a-judge", []), ("eva", ["eva"])):
        rows = [{name: row[name] for name in ("task", "model", "criterion", "judge", "criteria_met")}
                for row in filled(sheet_rows(tmp_path / "a.csv"), judge)]  # fmt: skip
        if judge == "a-judge":
            rows = [row | {"criteria_met": decided[row["task"], row["model"], row["criterion"]] == 1} for row in rows]
        import_verdicts(job, write_jsonl(tmp_path / f"{judge}.jsonl", rows))
        assert [(name,) for name in labellers] == values_in(job, "select judge from labellers")
        assert [(False if labellers else None,)] == values_in(
            job, f"select distinct may_hide_failures from verdicts where judge = '{judge}' and source = 'imported'"
        )


def test_what_cannot_be_sampled_is_refused_and_a_sampled_sheet_is_no_simple_random_sample(
    job: Job, tmp_path: Path
) -> None:
    file, nobody = tmp_path / "a.csv", job.model_copy(update={"named_judges": ("nobody",)})
    with pytest.raises(UsageError, match=r"neither `leaderboard`, nor two models .*\(ada, bob model\), nor a category"):
        export_sampled_labelling(job, file, sampled_for="ada", n_rows=5)
    with pytest.raises(UsageError, match="no judge has a verdict on these responses"):
        export_sampled_labelling(nobody, file, sampled_for="leaderboard", n_rows=5)
    export_sampled_labelling(job, file, sampled_for="leaderboard", n_rows=10_000)
    labels = save_sheet(tmp_path / "filled.csv", filled(sheet_rows(file)))
    with pytest.raises(PipelineError, match="their probabilities are stored; leave --random-sample out"):
        import_verdicts(job, labels, is_random_sample=True)
    import_verdicts(job, labels)
    with pytest.raises(UsageError, match="every verdict has a label already"):
        export_sampled_labelling(job, tmp_path / "b.csv", sampled_for="leaderboard", n_rows=5)
