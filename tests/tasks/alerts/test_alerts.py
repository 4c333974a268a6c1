"""Alerts of a night: which findings become alerts, and the stored rows."""

import json
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tasks.alerts import findings
from tasks.alerts.findings import Alert, alerts_of_reports, drift_alerts, drop_alerts
from tasks.alerts.sending import Delivery, store_alerts
from tasks.run.writing import StageReport
from tests.kit import rows_in, values_in
from tests.tasks.alerts.conftest import DRIFT, DRIFTED, DROP, FELL, night_job
from warehouse import Warehouse

pytestmark = pytest.mark.usefixtures("without_scores")
DISK_FULL = findings.failure_alert("out of disk")


def stepped_down(p_values: list[float | None], alpha: float) -> set[int]:
    """Holm's procedure as published: reject from the smallest p-value on, until one is above its
    share of alpha.
    """
    tests = sorted(
        (value, index) for index, value in enumerate(p_values) if value is not None
    )
    rejected = set()
    for p_value, index in tests:
        if p_value * (len(tests) - len(rejected)) > alpha:
            break
        rejected.add(index)
    return rejected


def parts(low: int, high: int) -> st.SearchStrategy[float]:
    """Multiples of 1/1024: their products and sums are exact."""
    return st.integers(low, high).map(lambda part: part / 1024)


_FALLS = st.lists(st.tuples(parts(-40, 40), st.none() | parts(0, 1024)), max_size=12)


@given(
    falls=_FALLS,
    least_drop=parts(0, 30),
    alpha=parts(1, 1023),
)
@example(falls=[(-0.0625, 0.0625)], least_drop=0.0, alpha=0.0625)  # just significant
@example(falls=[(-0.0625, 0.0)], least_drop=0.0625, alpha=0.5)  # just large enough
@example(falls=[(0.0, 0.0)], least_drop=0.0, alpha=0.5)  # no fall
def test_alerts_are_large_falls_that_step_down_rejects(falls, least_drop, alpha):
    rejected = stepped_down([p_value for _, p_value in falls], alpha)
    comparisons = []
    expected_models = []
    for number, (difference, p_value) in enumerate(falls):
        model = str(number)
        comparisons.append(
            FELL
            | {
                "model": model,
                "difference": difference,
                "p_value": p_value,
            }
        )
        if number in rejected and difference < 0 and -difference >= least_drop:
            expected_models.append(model)

    alerts = drop_alerts(comparisons, least_drop=least_drop, alpha=alpha)

    assert [alert.subject for alert in alerts] == expected_models


def test_a_drop_that_rounding_makes_smaller_than_the_least_one_is_an_alert():
    fall = FELL | {"difference": 0.1 - 0.11, "p_value": 0.0}

    assert len(drop_alerts([fall], least_drop=0.01, alpha=0.05)) == 1


def test_a_drop_is_described_with_its_numbers_and_kept_with_all_its_figures():
    second_fall = FELL | {
        "judge": "other",
        "n_tasks": 280,
        "p_value": 0.00001,
    }

    alert, alert_on_drifted = drop_alerts(
        [FELL, second_fall],
        least_drop=0.01,
        alpha=0.05,
        drifted_judges={"other": "other"},
    )

    assert alert.line == (
        "beta fell by 0.120 on finance_hard (score, judged by strict): 0.410 in 2026-11-22, 0.530"
        " in 2026-11-21; 95 % interval -0.150 to -0.090, corrected p 0.0002, 300 tasks"
    )
    assert alert.facts == FELL | {"p_adjusted": 0.0002, "judge_drifted": False}
    facts = "corrected p below 0.0001, 280 of 300 tasks; other drifted the same night"
    assert facts in alert_on_drifted.line


def test_a_drop_under_a_panel_names_the_member_that_drifted():
    (alert,) = drop_alerts(
        [FELL | {"judge": "panel"}],
        least_drop=0.01,
        alpha=0.05,
        drifted_judges={"panel": "strict"},
    )

    assert "; strict, a member of panel, drifted the same night" in alert.line
    assert alert.cause == "judge strict"
    assert alert.facts["judge_drifted"]


def test_a_judge_that_drifted_is_described_with_its_limits_and_its_leaning():
    [alert] = drift_alerts([DRIFTED])

    assert alert.kind == "judge_drift"
    assert alert.subject == "a-judge"
    assert alert.facts == DRIFTED
    assert alert.line == (
        "a-judge repeated its first decision on 91.0% of 200 control verdicts in 2026-11-22, below"
        " the limit (usual 98.0%, limit 95.3%); criteria met: 53.5%, at first 50.0% (+3.5 points);"
        " the judge may be the cause of this night's changes"
    )


def test_the_alert_of_a_judge_says_which_side_is_right_by_labels():
    labels = {
        "n_labelled": 80,
        "first_people_agreement": 0.9,
        "people_agreement": 0.8,
        "labels_represent": "sampled verdicts",
    }

    [alert] = drift_alerts([DRIFTED | labels])

    assert (
        "(+3.5 points); agreement with people fell from 90.0% to 80.0% on 80 labelled verdicts"
        " (sampled verdicts), so the first decisions were better; the judge"
        in alert.line
    )


def test_data_below_its_bar_is_one_alert_a_stage_with_all_of_it_in_the_facts():
    refusal = (
        "1 of 9 tasks are left out: the rule is that weights are from -10 to 10: t1"
    )
    warnings = ["another_check (warn): 2 of 9 rows fail: t2", refusal]
    ingest = StageReport("ingest", is_below_bar=True, warnings=warnings)
    coverage = StageReport(
        "coverage",
        is_below_bar=True,
        warnings=["1 of 2 are done"],
    )

    [alert] = alerts_of_reports([ingest, coverage])

    assert alert.kind == "quality"
    assert alert.line == f"ingest: data quality is below the bar: {refusal}"
    assert alert.facts["warnings"] == [refusal]


@pytest.mark.parametrize(
    ("kind", "limit"),
    [("budget", "its budget"), ("stop_time", "its stop time")],
)
def test_a_run_that_ended_early_is_one_alert_however_many_stages_that_cost(
    kind, limit
):
    notice = "stopped at 5 USD or 06:30 UTC; finished work is kept"
    reports = []
    for stage, n_skipped in (("sample", 3), ("judge", 50), ("judge", 20)):
        report = StageReport(stage, skipped=n_skipped)
        report.warnings = ["a lane: stopped for this run: outage", notice]
        setattr(report, f"is_at_{kind}", True)
        reports.append(report)

    [alert] = alerts_of_reports(reports)

    assert alert.kind == kind
    skipped = "skipped: 3 in sample, 70 in judge"
    assert alert.line == f"the run reached {limit}; {skipped}; {notice}"
    assert alert.facts["skipped"] == {"sample": 3, "judge": 70}


def test_an_alert_holds_one_line_and_plain_values_and_no_secret(monkeypatch):
    monkeypatch.setenv("AN_API_KEY", "sk-very-secret")

    facts = {"cause": ["sk-very-secret"], "mean": float("nan")}
    alert = Alert("failure", "a\nmodel", "refused\r\nsk-very-secret \ud83d", facts)

    assert alert.subject == "a model"
    assert alert.line == "refused [redacted] \ufffd"
    assert alert.facts == {"cause": ["[redacted]"], "mean": None}


SENT = Delivery("webhook 1", "sent", 1, None, 3)
FAILED = Delivery("slack 2", "failed", 4, "no connection", 3)


def test_alerts_and_what_became_of_them_can_be_queried(tmp_path):
    job = night_job(tmp_path)

    store_alerts(job, [])
    store_alerts(job, [DROP, DRIFT], [SENT, FAILED])

    Warehouse(tmp_path).publish()
    drift, drop = rows_in(tmp_path, "from alerts order by kind")
    assert drift["kind"] == "judge_drift"
    assert drift["night"] == "2026-11-22"
    assert drift["subject"] == "a-judge"
    assert drift["detail"] == "a-judge decided 80.0% as the first time"
    assert json.loads(drift["facts"]) == {"agreement": 0.8}
    assert drop["kind"] == "score_drop"
    columns = "run_id, receiver, status, attempts, error"
    query = f"select {columns} from alert_deliveries order by receiver"
    assert values_in(tmp_path, query) == [
        ("run-1", "slack 2", "failed", 4, "no connection"),
        ("run-1", "webhook 1", "sent", 1, None),
    ]


def test_the_same_finding_of_a_night_is_stored_once_and_one_of_the_data_once_for_all_nights(
    tmp_path,
):
    report = StageReport(
        "check",
        warnings=["x (quarantine): 7 tasks"],
        is_below_bar=True,
    )
    drop_on_legal = replace(DROP, facts={"split": "legal"})
    alerts = [DROP, drop_on_legal, DISK_FULL, *alerts_of_reports([report])]

    for night, run_id in (
        ("2026-11-22", "run-1"),
        ("2026-11-22", "run-2"),
        ("2026-11-23", "run-3"),
    ):
        store_alerts(night_job(tmp_path, night, run_id), alerts)
        Warehouse(tmp_path).publish()

    query = (
        "select kind, count(*), min(run_id) from alerts group by kind order by kind"
    )
    assert values_in(tmp_path, query) == [
        ("failure", 3, "run-1"),
        ("quality", 1, "run-1"),
        ("score_drop", 4, "run-1"),
    ]
