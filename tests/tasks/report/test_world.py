"""The made-up warehouse holds something of all that a report shows; else the tests of the report would be blind."""

from collections.abc import Iterator

import pytest

from tasks.config.job import Job
from tests.tasks.report.made_up.attacks import ATTACKS
from tests.tasks.report.made_up.contenders import (
    CONTENDERS,
    DRIFT_NIGHT,
    DROP_NIGHT,
    DROPPING,
    IMPORTED_MODEL,
    JUDGES,
    NIGHTS,
)
from tests.tasks.report.made_up.results import CAUSES
from tests.tasks.report.made_up.texts import CANARY
from warehouse import Reader, Warehouse

READ = (
    "alerts", "category_scores", "checks", "criterion_statistics", "breakdown_agreement", "breakdown_leaderboard",
    "grader_reliability", "graders", "hard_leaderboard", "hard_overlaps", "hard_stability", "hard_subset",
    "judge_agreement", "judge_drift", "judge_leniency", "leaderboard", "length_correlations", "messages", "quarantine",
    "response_lengths", "runs", "score_history", "severity_leaderboard", "spend", "task_scores", "verdict_details",
    "criterion_reviews", "review_agreement", "review_predictions", "reviewer_agreement",
    "annotation_agreement", "labelled_tasks", "debiased_scores", "debiased_differences",
    "stopped_comparisons",
)  # fmt: skip
FIRST_JUDGE = f"judge = '{JUDGES[0]}' and judge_trial = 1"


@pytest.fixture(scope="module")
def reader(world_job: Job) -> Iterator[Reader]:
    with Warehouse(world_job.warehouse).reader() as reader:
        yield reader


@pytest.mark.parametrize("name", READ)
def test_every_table_that_a_report_reads_has_rows(reader: Reader, name: str) -> None:
    assert reader.value(f"select count(*) from {name}") > 0


def test_seven_models_are_ranked_together_with_intervals(reader: Reader) -> None:
    rows = reader.rows(
        f"select model, ci_low, mean_score, ci_high, cost_usd from leaderboard where {FIRST_JUDGE} and is_primary "
        "and is_latest and split = 'finance' and n_tasks_wanted = 24 order by latest_rank"
    )
    assert {row["model"] for row in rows} == {*(each.label for each in CONTENDERS), IMPORTED_MODEL}
    assert all(row["ci_low"] < row["mean_score"] < row["ci_high"] for row in rows)
    assert {row["model"] for row in rows if row["cost_usd"] is None} == {"dogwood-open", IMPORTED_MODEL}


def test_one_model_is_below_the_bar_of_coverage_and_every_cause_of_a_failure_is_there(reader: Reader) -> None:
    below = reader.rows(
        f"select model, sum(n_decided) / sum(n_wanted) as coverage from category_scores where {FIRST_JUDGE} "
        "and score_name = 'score' group by model having coverage < 0.99"
    )
    assert [row["model"] for row in below] == ["dogwood-open"]
    assert below[0]["coverage"] == pytest.approx(0.97, abs=0.005)
    failed = reader.rows("select distinct status from verdicts where value is null")
    assert {row["status"] for row in failed} == set(CAUSES)


def test_the_judge_is_out_of_control_in_one_night_and_a_model_drops_in_another(reader: Reader) -> None:
    nights = reader.rows("select night, is_out_of_control from judge_drift order by night")
    assert [(row["night"], row["is_out_of_control"]) for row in nights] == [(n, n == DRIFT_NIGHT) for n in NIGHTS]
    alerts = reader.rows("select distinct kind, night, subject from alerts order by kind")
    assert [tuple(row.values()) for row in alerts] == [
        ("judge_drift", DRIFT_NIGHT, JUDGES[0]),
        ("score_drop", DROP_NIGHT, DROPPING),
    ]


def test_the_hard_tasks_of_both_fields_are_selected_beside_the_official_ones(reader: Reader) -> None:
    rows = reader.rows("select field, n_selected, n_shared from hard_overlaps where kind = 'official' order by field")
    assert [(row["field"], row["n_selected"]) for row in rows] == [("Finance", 12), ("Legal", 12)]
    assert all(0 < row["n_shared"] < 12 for row in rows)
    assert reader.value("select count(*) from hard_stability where is_border") > 0


def test_the_canaries_are_there_to_be_left_out(reader: Reader) -> None:
    assert reader.value(f"select bool_and(starts_with(canary, '{CANARY}')) from split_members") is True


def test_every_attack_stands_in_names_and_in_texts_of_the_hostile_world(hostile_job: Job) -> None:
    with Warehouse(hostile_job.warehouse).reader() as reader:
        texts = {
            name: reader.value(f"select string_agg({column}, chr(31)) from {table}")
            for table, column, name in (
                ("responses", "text", "answers"), ("verdicts", "explanation", "explanations"),
                ("criteria", "title", "titles"), ("messages", "content", "conversations"), ("tasks", "task_id", "ids"),
            )
        }  # fmt: skip
        models = reader.rows("select distinct model from leaderboard")
    missing = {(name, attack) for name, text in texts.items() for attack in ATTACKS if attack not in text}
    assert {name for name, _ in missing} <= {"ids"}
    assert len({attack for attack in ATTACKS if any(attack in row["model"] for row in models)}) == len(models) == 7
