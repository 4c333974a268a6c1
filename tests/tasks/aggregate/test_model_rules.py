"""Rules of single SQL models, each on the few rows that it decides about."""

import json
from collections.abc import Iterator

import pytest

from tests.kit import (
    Row,
    Rows,
    aggregated,
    at,
    combined,
    few_published,
    response,
    row,
    rows_in,
    verdict,
)
from tests.tasks.compare.comparisons import Rubric, criteria_of, judged, tasks_of
from warehouse import Warehouse

FOUR_TASKS: dict[str, Rubric] = {name: [(8, "Accuracy")] for name in "abcd"}


@pytest.fixture(scope="module", autouse=True)
def _few_published() -> Iterator[None]:
    """Publish only the models that the tests of this module read, and those leading to them."""
    with few_published(
        "condition_differences",
        "intermediate.current_reviews",
        "intermediate.rubric_criteria",
        "judge_agreement",
        "judge_drift",
        "leaderboard",
        "run_costs",
        "severity_leaderboard",
    ):
        yield


def labels_of_annotator(template_hash: str, label: str, seconds: float) -> Row:
    return row(
        "task_annotations",
        annotation_id=f"annotation {template_hash}",
        task_id="t1",
        kind="decision_type",
        annotator="an-annotator",
        annotator_config_hash="a-configuration",
        template_hash=template_hash,
        status="ok",
        primary_label=label,
        secondary_labels=[],
        created_at=at(seconds),
    )


def test_only_labels_with_the_annotators_latest_prompt_count(published):
    annotations = [
        labels_of_annotator("z-old", "Planning", seconds=1),
        labels_of_annotator("a-new", "Analysis", seconds=2),
    ]

    reader = published({"task_annotations": annotations})

    labels = reader.rows("select label from intermediate.annotator_labels")
    assert labels == [{"label": "Analysis"}]


def test_two_graders_are_in_the_agreement_before_it_is_measured(published):
    verdicts = {"t2": [1.0, 1.0]}

    reader = published(
        tasks_of({"t2": [(8, "Accuracy"), (2, "Risk")]}),
        judged(verdicts, judge="one"),
        {"verdicts": judged(verdicts, judge="two")["verdicts"]},
    )

    agreement = reader.rows("select grader_a, grader_b, kappa from judge_agreement")
    assert agreement == [{"grader_a": "one", "grader_b": "two", "kappa": None}]


def stopped_after(n_tasks_evaluated: int) -> Row:
    return row(
        "stopping_scores",
        split="finance",
        model="a",
        score_name="score",
        n_tasks_evaluated=n_tasks_evaluated,
        n_tasks_skipped=4 - n_tasks_evaluated,
        sequence_low=0.25,
        sequence_high=0.75,
    )


def test_a_stopped_models_interval_is_valid_while_no_task_was_evaluated_later(
    published,
):
    reader = published(
        tasks_of(FOUR_TASKS),
        judged({"a": [1.0], "b": [0.0]}, rubrics=FOUR_TASKS),
        {"stopping_scores": [stopped_after(2)]},
    )

    (part,) = reader.rows("from intermediate.random_parts")
    assert part["n_tasks_tried"] == 2
    assert part["n_tasks_skipped"] == 2
    assert part["sequence_low"] == 0.25
    assert part["sequence_high"] == 0.75


def test_a_stopped_models_interval_is_not_valid_if_a_task_was_evaluated_later(
    published,
):
    reader = published(
        tasks_of(FOUR_TASKS),
        judged({"a": [1.0], "b": [0.0], "c": [0.0]}, rubrics=FOUR_TASKS),
        {"stopping_scores": [stopped_after(2)]},
    )

    (part,) = reader.rows("from intermediate.random_parts")
    assert part["n_tasks_tried"] == 3
    assert part["n_tasks_skipped"] == 1
    assert part["sequence_low"] is None
    assert part["sequence_high"] is None


def test_tasks_of_a_stopped_model_whose_response_failed_were_tried(published):
    reader = published(
        tasks_of(FOUR_TASKS),
        judged({"a": [1.0]}, rubrics=FOUR_TASKS),
        {"responses": [response("b", "a", status="timeout")]},
        {"stopping_scores": [stopped_after(2)]},
    )

    tried = reader.rows("select n_tasks_tried from intermediate.random_parts")
    assert tried == [{"n_tasks_tried": 2}]


def test_a_model_with_half_as_many_tasks_as_another_is_ranked(published):
    reader = published(
        tasks_of(FOUR_TASKS),
        judged({"a": [1.0], "b": [1.0]}, "many", rubrics=FOUR_TASKS),
        judged({"a": [0.0]}, "half", rubrics=FOUR_TASKS),
    )

    ranks = reader.rows(
        "select model, rank from leaderboard where is_primary order by rank"
    )
    assert ranks == [{"model": "many", "rank": 1}, {"model": "half", "rank": 2}]


def model_review(reviewer: str) -> Row:
    (criterion,) = criteria_of("t1", [(8, "Accuracy")])
    return row(
        "model_reviews",
        review_id=f"review by {reviewer}",
        task_id="t1",
        criterion_id=criterion["criterion_id"],
        criterion_hash=criterion["content_hash"],
        reviewer=reviewer,
        reviewer_config_hash=f"configuration of {reviewer}",
        review_trial=1,
        status="ok",
        findings=json.dumps([{"name": "atomic", "passes": True, "reason": "so"}]),
    )


def test_a_reviewer_that_is_not_configured_counts_beside_one_that_is(published):
    configured = row(
        "analysts",
        purpose="review",
        analyst="configured",
        analyst_config_hash="configuration of configured",
    )

    reader = published(
        tasks_of({"t1": [(8, "Accuracy")]}),
        {"model_reviews": [model_review("configured"), model_review("other")]},
        {"analysts": [configured]},
    )

    reviews = reader.rows(
        "select reviewer from intermediate.current_reviews order by reviewer"
    )
    assert reviews == [{"reviewer": "configured"}, {"reviewer": "other"}]


def test_a_response_without_a_decision_has_met_nothing(published):
    task = tasks_of({"a": FOUR_TASKS["a"]})

    reader = published(task, judged({"a": [None]}, rubrics=FOUR_TASKS))

    points = reader.rows(
        "select n_met from intermediate.response_points where breakdown = 'all'"
    )
    assert points == [{"n_met": 0.0}]


def test_a_variant_of_a_criterion_whose_content_changed_is_not_in_the_rubric(
    published,
):
    rubric = criteria_of("t1", [(8, "Accuracy"), (2, "Risk")])
    original_hashes = [rubric[0]["content_hash"], "hash of a former content"]
    variants = [
        row(
            "criterion_variants",
            task_id="t1",
            rubric="negated",
            criterion_id=f"{criterion['criterion_id']}-negated",
            original_id=criterion["criterion_id"],
            original_hash=original_hash,
            title="A title",
            content_hash=f"hash of {criterion['criterion_id']}",
            status="ok",
        )
        for criterion, original_hash in zip(rubric, original_hashes, strict=True)
    ]

    reader = published({"criteria": rubric, "criterion_variants": variants})

    negated = reader.rows(
        "select original_id from intermediate.rubric_criteria where rubric = 'negated'"
    )
    assert negated == [{"original_id": "t1-c0"}]


def test_a_weight_below_1_is_positive(published):
    rubric = criteria_of("t1", [(1, "Risk"), (-2, "Risk")])
    rubric[0]["weight"] = 0.5

    reader = published(tasks_of({"t1": []}), {"criteria": rubric})

    weights = reader.rows(
        "select positive, negative from intermediate.rubric_weights where breakdown = 'all'"
    )
    assert weights == [{"positive": 0.5, "negative": -2.0}]


def control_rows(first_values: list[float], values: list[float]) -> Rows:
    """A control set of as many members as first values, and one night of it."""
    rows = {"control_set": [], "control_verdicts": []}
    for number, first_value in enumerate(first_values):
        member = {
            "set_id": "a-set",
            "task_id": "t1",
            "verdict_id": f"verdict {number}",
            "response_id": "a-response",
            "criterion_id": f"criterion {number}",
            "criterion_hash": "a-hash",
            "model": "a",
        }
        rows["control_set"].append(
            row("control_set", first_value=first_value, **member)
        )
        if number < len(values):
            night = {
                "judge_vintage": "2026-01-02",
                "value": values[number],
                "status": "met",
            }
            rows["control_verdicts"].append(
                row("control_verdicts", **night, **member)
            )
    return rows


def test_chance_agreement_of_a_control_set_counts_partly_met(published):
    reader = published(
        control_rows(first_values=[0.5, 0.5, 1.0], values=[0.5, 1.0, 1.0])
    )

    (night,) = reader.rows("select agreement, kappa from judge_drift")
    # Of 9 pairs of a first and a new decision, 2 are equal at 0.5 and 2 at 1.
    assert night["agreement"] == pytest.approx(2 / 3)
    assert night["kappa"] == pytest.approx((2 / 3 - 4 / 9) / (1 - 4 / 9))


def test_a_control_set_has_no_drift_before_its_first_night(published):
    reader = published(control_rows(first_values=[1.0], values=[]))

    assert reader.value("select count(*) from control_set") == 1
    assert reader.rows("from judge_drift") == []


def test_a_corrected_p_value_of_exactly_5_percent_is_significant(tmp_path):
    conditions = {"gpt": {"baseline": "plain", "web": "search"}}
    sides = [
        judged({"a": [1.0], "b": [1.0]}, name, rubrics=FOUR_TASKS)
        for name in ("plain", "search")
    ]
    root = aggregated(
        tmp_path, combined(tasks_of(FOUR_TASKS), *sides), conditions=conditions
    ).root
    where = "breakdown = 'all' and score_name = 'score'"
    (figure,) = rows_in(
        root,
        f"select figure_id, basis from intermediate.condition_figures where {where}",
    )
    measures = [
        row(
            "measures",
            measure="difference",
            p_value=0.05,
            method="a-method",
            **figure,
        ),
        row("measures", measure="smallest_detectable", method="a-method", **figure),
    ]

    warehouse = Warehouse(root)
    warehouse.write("measures", measures)
    warehouse.publish()

    (difference,) = rows_in(root, f"from condition_differences where {where}")
    assert difference["p_holm"] == 0.05
    assert difference["is_significant"] is True


def test_the_cached_tokens_of_a_run_are_a_sum(published):
    responses = [response(task_id, cached_tokens=100) for task_id in ("a", "b")]

    reader = published({"responses": responses})

    assert reader.value("select cached_tokens from run_costs") == 200


def test_only_the_members_of_a_configured_majority_decide_its_grading(published):
    responses = judged({"a": [1.0]}, rubrics=FOUR_TASKS)["responses"]
    criteria = criteria_of("a", FOUR_TASKS["a"])
    gradings = {"one": "ternary", "two": "ternary", "three": "binary"}
    verdicts = [
        verdict(responses[0], criteria[0], 1.0, judge=judge, grading=grading)
        for judge, grading in gradings.items()
    ]
    majority = row("grader_sets", majority="one and two", members=["one", "two"])

    reader = published(
        tasks_of({"a": FOUR_TASKS["a"]}),
        {"responses": responses, "verdicts": verdicts, "grader_sets": [majority]},
    )

    majorities = reader.rows(
        "select grading from graders where grader = 'one and two'"
    )
    assert majorities == [{"grading": "ternary"}]


def test_a_severity_without_a_negative_weight_is_no_mistake(published):
    tasks = tasks_of({"t1": [(8, "Accuracy"), (2, "Accuracy")]})
    tasks["criteria"][0]["severity"] = "important"
    tasks["criteria"][1]["severity"] = "minor"
    tasks["severities"] = [
        row("severities", severity="important", min_weight=4, max_weight=10),
        row("severities", severity="minor", min_weight=0, max_weight=3),
    ]

    verdicts = judged({"t1": [1.0, 1.0]}, criteria={"t1": tasks["criteria"]})

    reader = published(tasks, verdicts)

    (risks,) = reader.rows("from severity_leaderboard")
    assert risks["n_critical"] == 1
    assert risks["n_mistakes_possible"] is None
