"""Successions: the sample, and what it says about scores and ranks under the new judge."""

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import pytest

from flows.report import write_report
from tasks.aggregate import aggregate
from tasks.benchmarks import load_benchmark
from tasks.config.job import Job, Succession
from tasks.figures.scope import Scope
from tasks.figures.shown import figure_of
from tasks.figures.shown.successions import shown_effects
from tasks.rules.errors import UsageError
from tasks.run.judge_configs import judge_configs
from tasks.run.missing_work import wanted_tasks
from tasks.succession.estimate import next_look
from tasks.succession.sample import judges_of, sample_of, store_sample
from tests.kit import (
    Row,
    admitted,
    at,
    copied,
    criterion,
    job_on,
    response,
    rows_in,
    verdict,
    write_jsonl,
    written,
)
from warehouse import Warehouse

TASK_IDS = [f"t{number}" for number in range(20)]
WEIGHTS = (8, 4, 4, -6)
CATEGORIES = ("Analysis", "Style")
ALL_VERDICTS = 160
"""Two models' verdicts on four criteria of each task."""
NEW_JUDGE = {
    "name": "hosted_vllm/newer",
    "label": "newer",
    "api_base": "http://localhost/v1",
}
Decide = Callable[[Row, str], float | None]
"""(criterion, model) -> the new judge's decision; None: it failed."""
CRITERIA = [
    criterion(task_id, position, weight, CATEGORIES[position % 2])
    for task_id in TASK_IDS
    for position, weight in enumerate(WEIGHTS)
]
RESPONSES = [response(task_id, model) for task_id in TASK_IDS for model in ("a", "b")]


def by_old(criterion_row: Row, model: str) -> float:
    """The old judge's decision: of `b` it sees one more criterion in each task."""
    met_positions = {"a": (0,), "b": (0, 1)}
    return float(criterion_row["position"] in met_positions[model])


def score(model: str, decide: Decide) -> float:
    """A model's mean score: the points that it gets of the 16 that are possible."""
    points = 0.0
    for criterion_row in CRITERIA:
        points += criterion_row["weight"] * (decide(criterion_row, model) or 0.0)
    return points / 16 / len(TASK_IDS)


def verdict_rows(
    criteria: list[Row],
    decide: Decide,
    responses: list[Row] = RESPONSES,
    **columns: Any,
) -> list[Row]:
    rows = []
    for response_row in responses:
        for criterion_row in criteria:
            if criterion_row["task_id"] == response_row["task_id"]:
                value = decide(criterion_row, response_row["model"])
                rows.append(verdict(response_row, criterion_row, value, **columns))
    return rows


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Job:
    """A job with a new judge, on data that an old judge has decided."""
    folder = tmp_path_factory.mktemp("succession")
    source = write_jsonl(folder / "data.jsonl", [{"not": "read"}])
    job = job_on(source, folder / "warehouse", judges=[NEW_JUDGE])
    rows = {
        **admitted(TASK_IDS, split="data"),
        "criteria": CRITERIA,
        "responses": RESPONSES,
        "verdicts": [
            *verdict_rows(CRITERIA, by_old, judge="older", grading="binary"),
            *verdict_rows(CRITERIA[:4], by_old, judge="in-thirds", grading="ternary"),
        ],
    }
    written(job.warehouse, rows, job.data.revision).publish()
    return job


def succession(job: Job, n_verdicts: int, **changes: Any) -> Job:
    judges = {"old_judge": "older", "new_judge": "newer"}
    settings = Succession(n_verdicts=n_verdicts, **judges | changes)
    return job.model_copy(update={"succession": settings})


def drawn_ids(job: Job) -> set[tuple[str, str]]:
    with Warehouse(job.warehouse).reader() as reader:
        return set(sample_of(job, reader).criterion_keys)


def judged_anew(job: Job, decide: Decide) -> list[Row]:
    """Store the sample of a job and the new judge's verdicts on it; return the figure's rows."""
    sample = store_sample(job)
    criteria = []
    for row in CRITERIA:
        if (row["task_id"], row["criterion_id"]) in sample.criterion_keys:
            criteria.append(row)
    columns = sample.judges.new_judge.columns
    rows = verdict_rows(criteria, decide, **columns)
    written(job.warehouse, {"verdicts": rows}, job.data.revision).publish()
    return shown(job, "succession")


def shown(job: Job, figure: str) -> list[Row]:
    with Warehouse(job.warehouse).reader() as reader:
        return Scope(job, reader).rows_of(figure_of(figure))


def by_model(rows: list[Row]) -> Mapping[str, Row]:
    return {row["model"]: row for row in rows}


# The sample


def test_a_criterion_is_drawn_for_the_responses_of_all_models(job):
    with Warehouse(job.warehouse).reader() as reader:
        sample = sample_of(succession(job, 40), reader)

    [(_, responses)] = sample.missing_verdicts
    tasks = {"a": [], "b": []}
    for work in responses:
        tasks[work.model] += [work.task_id] * work.n_criteria
    assert len(sample.criteria) == 20
    assert tasks["a"] == tasks["b"]
    assert len(tasks["a"]) == 20


def test_every_stratum_is_drawn_with_the_probability_that_is_stored(job):
    store_sample(succession(job, 60))

    rows = rows_in(
        job,
        """
        select stratum, count(*) as n_drawn, any_value(probability) as probability
        from succession_draws group by stratum
        """,
    )
    # Of 20 tasks: one positive criterion of Analysis with 8 points and one with 4, and one of each
    # sign of Style.
    sizes = {"positive Analysis": 40, "positive Style": 20, "negative Style": 20}
    assert {row["stratum"] for row in rows} == sizes.keys()
    for row in rows:
        assert row["probability"] == row["n_drawn"] / sizes[row["stratum"]]


def test_a_larger_sample_extends_a_smaller_one(job):
    assert drawn_ids(succession(job, 40)) < drawn_ids(succession(job, 90))


def test_another_seed_draws_another_sample(job):
    assert drawn_ids(succession(job, 40)) != drawn_ids(succession(job, 40, seed=1))


def test_what_the_new_judge_has_decided_is_not_missing(job):
    judged_anew(succession(job, 40), by_old)

    with Warehouse(job.warehouse).reader() as reader:
        small_sample = sample_of(succession(job, 40), reader)
        large_sample = sample_of(succession(job, 60), reader)

    [(_, small_rest)] = small_sample.missing_verdicts
    [(_, large_rest)] = large_sample.missing_verdicts
    assert small_rest == []
    assert sum(response.n_criteria for response in large_rest) == 20


def test_a_sample_without_a_criterion_of_each_stratum_is_refused(job):
    with pytest.raises(UsageError, match=r"each of 3 strata .* takes 6 verdicts"):
        drawn_ids(succession(job, 4))


def old_config_hash(job: Job, *configs: Row) -> str:
    """Store a few verdicts of `older` under each of some configurations; return the hash of the
    configuration that is succeeded.
    """
    rows = []
    for config in configs:
        for row in verdict_rows(CRITERIA[:4], by_old, created_at=at(1), **config):
            verdict_id = f"{config['judge_config_hash']} {row['verdict_id']}"
            rows.append(row | {"verdict_id": verdict_id})
    written(job.warehouse, {"verdicts": rows}, job.data.revision).publish()
    with Warehouse(job.warehouse).reader() as reader:
        judges = judges_of(succession(job, 40), reader, wanted_tasks(job, reader))
    return judges.old_judge["judge_config_hash"]


LATER_CONFIG = {"judge": "older", "judge_config_hash": "0"}


def test_the_configuration_of_the_old_judge_that_scored_most_tasks_is_succeeded(job):
    assert old_config_hash(job, LATER_CONFIG) == "a-judge-configuration"


def test_the_configured_old_judge_is_succeeded_whatever_else_has_its_name(job):
    older = NEW_JUDGE | {"label": "older"}
    source = job.settings.dataset.source
    job = job_on(source, job.warehouse, judges=[NEW_JUDGE, older])
    config = judge_configs(job, load_benchmark("prbench"))[1]

    config_hash = old_config_hash(job, LATER_CONFIG, config.columns)

    assert config_hash == config.judge_config_hash


def test_an_unknown_judge_cannot_succeed(job):
    with pytest.raises(UsageError, match="nwer: is not configured as a judge"):
        drawn_ids(succession(job, 40, new_judge="nwer"))


def test_a_judge_of_rewritten_criteria_cannot_succeed(job):
    judge = job.settings.judges[0].model_copy(update={"rubric": "examples_removed"})

    with pytest.raises(UsageError, match="needs `rubric: original`"):
        drawn_ids(succession(job.with_settings(judges=(judge,)), 40))


def test_a_judge_with_another_grading_cannot_succeed(job):
    with pytest.raises(UsageError, match="in-thirds grades ternary, newer binary"):
        drawn_ids(succession(job, 40, old_judge="in-thirds"))


# What it shows


def stricter(criterion_row: Row, model: str) -> float:
    """The new judge's decision: in half of the tasks it does not see what the old one sees."""
    is_strict = TASK_IDS.index(criterion_row["task_id"]) % 2 == 0
    if is_strict and criterion_row["position"] == 0:
        return 0.0
    return by_old(criterion_row, model)


@pytest.fixture(scope="module")
def judged_job(shared: Job, tmp_path_factory) -> Job:
    """A job whose new judge has decided all criteria; tests must not write to it."""
    job = copied(shared, tmp_path_factory.mktemp("judged") / "warehouse")
    judged_anew(succession(job, ALL_VERDICTS), stricter)
    return job


@pytest.fixture
def judged_copy(judged_job: Job, tmp_path) -> Job:
    """That job on a copy of its warehouse."""
    return copied(judged_job, tmp_path / "judged")


@pytest.fixture(scope="module")
def fully_judged(judged_job: Job) -> list[Row]:
    """What is shown when the new judge has decided all criteria."""
    return shown(judged_job, "succession")


def test_a_sample_of_all_criteria_shows_the_scores_of_a_full_judging(fully_judged):
    rows = by_model(fully_judged)

    for model in ("a", "b"):
        assert rows[model]["old_score"] == pytest.approx(score(model, by_old))
        assert rows[model]["new_score"] == pytest.approx(score(model, stricter))
        assert rows[model]["effect"] == pytest.approx(-0.25)
        assert rows[model]["effect_ci_low"] == pytest.approx(-0.25)
        assert rows[model]["effect_ci_high"] == pytest.approx(-0.25)


def test_an_interval_covers_the_effect_that_a_full_judging_shows(job):
    rows = by_model(judged_anew(succession(job, 100), stricter))

    for model in ("a", "b"):
        assert rows[model]["effect_ci_low"] < -0.25 < rows[model]["effect_ci_high"]
        assert rows[model]["n_verdicts"] == 50


def test_undecided_verdicts_widen_the_interval_by_all_that_they_could_change(job):
    def failing_once(criterion_row: Row, model: str) -> float | None:
        if model == "a" and criterion_row["criterion_id"] == "t3-c0":
            return None
        return by_old(criterion_row, model)

    rows = by_model(judged_anew(succession(job, ALL_VERDICTS), failing_once))

    # The criterion has 8 of 16 points in one of 20 tasks, and `a` met it according to the old judge.
    assert rows["a"]["n_undecided"] == 1
    assert rows["a"]["effect_ci_low"] == pytest.approx(-0.025)
    assert rows["a"]["effect_ci_high"] == pytest.approx(0.0)
    assert rows["b"]["effect_ci_low"] == pytest.approx(0.0)


def test_the_order_holds_if_no_model_could_pass_another(fully_judged):
    rows = by_model(fully_judged)

    assert rows["b"]["old_rank"] == 1
    assert (rows["b"]["new_rank_low"], rows["b"]["new_rank_high"]) == (1, 1)
    assert rows["b"]["keeps_order"]
    assert rows["a"]["keeps_order"]


def test_the_order_does_not_hold_if_the_new_judge_turns_it_round(job):
    def turned(criterion_row: Row, model: str) -> float:
        return by_old(criterion_row, "a" if model == "b" else "b")

    rows = by_model(judged_anew(succession(job, ALL_VERDICTS), turned))

    assert not rows["a"]["keeps_order"]
    assert (rows["a"]["new_rank_low"], rows["a"]["new_rank_high"]) == (1, 1)


def test_too_few_verdicts_show_no_estimate_and_the_reason(job):
    rows = judged_anew(succession(job, 40), stricter)

    assert {row["no_figure"] for row in rows} == {"too few labels: 20, not 30"}
    assert rows[0]["effect"] is None


def test_agreement_counts_the_flips_to_each_side_by_sign_of_the_weight(judged_job):
    rows = {row["label"]: row for row in shown(judged_job, "succession_agreement")}

    # The first of three positive criteria is lower in half of the tasks.
    assert rows["positive"]["lower_share"] == pytest.approx(1 / 6)
    assert rows["positive"]["higher_share"] == 0
    assert rows["negative"]["agreement"] == 1


def test_the_latest_sample_of_two_judges_is_shown(judged_copy):
    rows = judged_anew(succession(judged_copy, 100), stricter)

    assert {row["n_verdicts"] for row in rows} == {50}


def test_of_two_templates_of_the_new_judge_the_later_sample_is_shown(judged_copy):
    judge = judged_copy.settings.judges[0].model_copy(
        update={"template": "binary_v1"}
    )
    changed_job = judged_copy.with_settings(judges=(judge,))

    store_sample(succession(changed_job, ALL_VERDICTS))

    rows = shown(judged_copy, "succession")
    assert len(rows) == 2
    assert rows[0]["n_undecided"] == 80


@pytest.mark.parametrize(
    ("interval_of", "is_larger"), [("scores", True), ("ranks", False)]
)
def test_a_sample_grows_only_if_failures_alone_leave_intervals_narrow_enough(
    job, interval_of, is_larger
):
    def failing(criterion_row: Row, model: str) -> float | None:
        is_failed = criterion_row["position"] == 1
        return None if is_failed else stricter(criterion_row, model)

    # A failure could move each score by 2 of 16 points, and a difference by twice as much.
    job_with_width = succession(job, 100, width=0.26, interval_of=interval_of, look=1)
    judged_anew(job_with_width, failing)
    with Warehouse(job.warehouse).reader() as reader:
        sample = sample_of(job_with_width, reader)

    assert (next_look(job_with_width, sample) is not None) == is_larger


def test_a_sample_of_another_judge_is_no_sample_of_this_one(job):
    sample = store_sample(succession(job, 40))
    columns = sample.judges.new_judge.columns | {"judge": "third"}
    rows = verdict_rows(CRITERIA[:30], stricter, **columns)
    written(job.warehouse, {"verdicts": rows}, job.data.revision).publish()

    assert {row["n_undecided"] for row in shown(job, "succession")} == {20}


def test_tasks_that_were_not_sampled_are_left_out_of_old_and_new_scores(job):
    limited = succession(job, 64).model_copy(update={"limit": 8})

    rows = by_model(judged_anew(limited, stricter))

    # Tasks are drawn in their order; the new judge is stricter in every second one.
    assert rows["a"]["n_tasks"] == 8
    assert rows["a"]["effect"] == pytest.approx(-0.25)
    assert rows["a"]["n_verdicts"] == rows["a"]["n_all_verdicts"] == 32


def sampled_later(job: Job, vintage: str, decide: Decide, **judge: Any):
    """Publish a later vintage of model `a`, decided by a judge."""
    responses = [
        response(task_id, "a", vintage=vintage)
        | {
            "response_id": f"{task_id}/{vintage}",
            "created_at": datetime.fromisoformat(f"{vintage}T01:00Z"),
        }
        for task_id in TASK_IDS
    ]
    rows = verdict_rows(CRITERIA, decide, responses, **judge)
    tables = {"responses": responses, "verdicts": rows}
    written(job.warehouse, tables, job.data.revision).publish()


OLDER = {"judge": "older", "grading": "binary"}


def test_a_later_vintage_of_a_model_changes_nothing(judged_copy, fully_judged):
    sampled_later(
        judged_copy, "2026-11-02", lambda criterion_row, model: 0.0, **OLDER
    )

    assert shown(judged_copy, "succession") == fully_judged


def test_scores_before_the_new_judge_are_moved_by_the_effect(job):
    effects = by_model(judged_anew(succession(job, 76), stricter))
    with Warehouse(job.warehouse).reader() as reader:
        new_judge = sample_of(succession(job, 76), reader).judges.new_judge.columns
    sampled_later(job, "2026-11-02", by_old, **OLDER)
    sampled_later(job, "2026-11-03", stricter, **new_judge)

    rows = shown(job, "bridged_history")

    shown_points = {(row["label"], row["vintage"]): row for row in rows}
    assert set(shown_points) == {
        ("a", "base"),
        ("a", "2026-11-02"),
        ("a", "2026-11-03"),
        ("b", "base"),
    }
    for (model, vintage), row in shown_points.items():
        assert row["is_estimated"] == (vintage != "2026-11-03")
        if row["is_estimated"]:
            moved_score = score(model, by_old) + effects[model]["effect"]
            assert row["mean_score"] == pytest.approx(moved_score)
            assert row["ci_low"] is None  # not computed yet
    assert shown_points["a", "2026-11-03"]["mean_score"] == score("a", stricter)
    assert shown_points["a", "2026-11-03"]["changed"] == "judge"


def test_an_alert_on_the_end_of_a_judge_can_say_what_its_succession_shows(
    judged_job, fully_judged
):
    with Warehouse(judged_job.warehouse).reader() as reader:
        scope = Scope(judged_job, reader)
        assert shown_effects(scope, "older") == sentence(*fully_judged)
        assert shown_effects(scope, "newer") == ""


def test_verdicts_on_a_sample_are_no_point_of_the_history(job):
    judged_anew(succession(job, 60), stricter)
    with Warehouse(job.warehouse).reader() as reader:
        new_judge = sample_of(succession(job, 60), reader).judges.new_judge.columns
    sampled_later(job, "2026-11-03", stricter, **new_judge)

    points = [
        (row["vintage"], row["changed"])
        for row in shown(job, "history")
        if row["judged_by"] == "newer"
    ]

    assert points == [("2026-11-03", "judge (before: older)")]


def test_the_interval_of_a_moved_score_has_the_errors_of_score_and_shift(job):
    def varied(criterion_row: Row, model: str) -> float:
        is_better = TASK_IDS.index(criterion_row["task_id"]) % 2 == 0
        return by_old(criterion_row, "b" if is_better else "a")

    effects = by_model(judged_anew(succession(job, 100), stricter))
    sampled_later(job, "2026-11-02", varied, **OLDER)
    aggregate(job)

    def reach(figure: str) -> float:
        (point,) = (
            row for row in shown(job, figure) if row["vintage"] == "2026-11-02"
        )
        return point["mean_score"] - point["ci_low"]

    shift_reach = effects["a"]["effect"] - effects["a"]["effect_ci_low"]
    assert reach("history") > 0
    assert shift_reach > 0
    expected_reach = math.hypot(reach("history"), shift_reach)
    assert reach("bridged_history") == pytest.approx(expected_reach)


def test_a_judge_cannot_succeed_itself(judged_job):
    with pytest.raises(
        UsageError, match="newer: no other judge of this name has verdicts"
    ):
        drawn_ids(succession(judged_job, 40, old_judge="newer"))


def test_failures_alone_are_no_difference_between_models(job):
    def failing_for_a(criterion_row: Row, model: str) -> float | None:
        return None if model == "a" else by_old(criterion_row, model)

    rows = by_model(judged_anew(succession(job, 100), failing_for_a))

    assert rows["a"]["no_figure"] is None
    assert rows["a"]["interaction_p_value"] > 0.5


def sentence(*rows: Row) -> str:
    heading = figure_of("succession").heading
    assert heading is not None
    return heading(rows)


def shown_row(model: str, effect: float, **columns: Any) -> Row:
    return {
        "succession": "older → newer",
        "split": "finance",
        "model": model,
        "no_figure": None,
        "effect": effect,
        "effect_ci_low": effect - 0.01,
        "effect_ci_high": effect + 0.01,
        "keeps_order": True,
        "n_verdicts": 600,
        "n_all_verdicts": 10_000,
        "rejudging_usd": 4.0,
        "half_width_verdicts": None,
        **columns,
    }


def test_the_first_sentence_says_order_levels_and_cost():
    text = sentence(shown_row("a", -0.05), shown_row("b", -0.03))

    assert text == (
        "older → newer, finance: the order holds; levels fall by 0.030 to 0.050; judging the other"
        " 18,800 verdicts as well costs $8.00."
    )


def test_the_first_sentence_names_the_models_whose_order_may_change():
    text = sentence(
        shown_row("a", -0.05, keeps_order=False),
        shown_row("b", 0.03, keeps_order=False),
        shown_row("c", 0.0),
    )

    assert (
        "the order may change among a, b; levels change by -0.050 to +0.030" in text
    )


def test_the_first_sentence_says_of_which_model_nothing_is_known():
    text = sentence(
        shown_row("a", -0.05), shown_row("b", 0.0, no_figure="too few labels")
    )

    assert "the order may change: no estimate for b" in text


def test_the_interaction_is_shown_though_the_best_model_has_no_estimate():
    notes = figure_of("succession").notes
    assert notes is not None
    rows = [
        shown_row("a", 0.0, no_figure="too few labels", interaction_p_value=None),
        shown_row("b", 0.0, interaction_p_value=0.00001),
    ]

    shown_notes = notes(rows)

    expected = "finance: the effect differs between models (p below 0.0001)."
    assert expected in shown_notes


def test_the_first_sentence_on_one_model_is_not_about_an_order():
    assert "order" not in sentence(shown_row("a", -0.05))


def test_the_first_sentence_says_why_there_is_no_estimate():
    text = sentence(shown_row("a", 0.0, no_figure="too few labels: 20, not 30"))

    assert text == "older → newer, finance: no estimate (too few labels: 20, not 30)."


@pytest.mark.slow
def test_the_report_has_a_page_with_the_first_sentence_and_the_numbers(
    judged_copy, tmp_path
):
    write_report(judged_copy, tmp_path / "site")

    site = tmp_path / "site" / "prbench"
    page = (site / "successions.html").read_text(encoding="utf-8")
    assert "older → newer, data: the order holds; levels fall by 0.250" in page
    assert (site / "figures" / "succession.csv").exists()
    assert not (site / "figures" / "succession.sql").exists()
