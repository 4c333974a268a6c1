"""Alerts of a night: which findings become alerts, and the stored rows."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tasks.alerts import findings
from tasks.alerts.findings import Alert, alert_id, alerts_of_reports, drifts, drops
from tasks.alerts.sending import Delivery, history_of, store
from tasks.run.writing import StageReport
from tests.kit import job_on, rows_in, values_in
from tests.tasks.alerts.conftest import DRIFT, DROP
from warehouse import Warehouse

FULL = findings.failure("out of disk")
FELL: dict[str, Any] = {
    "model": "a-model",
    "judge": "a-judge",
    "judge_trial": 1,
    "split": "finance",
    "score": "score",
    "first_vintage": "2026-11-21",
    "second_vintage": "2026-11-22",
    "first_mean": 0.512,
    "second_mean": 0.469,
    "difference": -0.043,
    "ci_low": -0.062,
    "ci_high": -0.024,
    "p_value": 0.0002,
    "n_tasks": 300,
    "n_wanted": 300,
}


def stepped_down(p_values: list[float | None], alpha: float) -> set[int]:
    """Holm's procedure as published: reject from the smallest p-value on, until one is above its
    share of alpha.
    """
    left = sorted((value, index) for index, value in enumerate(p_values) if value is not None)
    rejected: set[int] = set()
    while left and left[0][0] * len(left) <= alpha:
        rejected.add(left.pop(0)[1])
    return rejected


def parts(first: int, last: int) -> st.SearchStrategy[float]:
    """Multiples of 1/1024: their products and sums are exact."""
    return st.integers(first, last).map(lambda part: part / 1024)


_FALLS = st.lists(st.tuples(parts(-40, 40), st.none() | parts(0, 1024)), max_size=12)


@given(
    falls=_FALLS,
    least_drop=parts(0, 30),
    alpha=parts(1, 1023),
)
@example(
    falls=[(-0.0625, 0.0625)],
    least_drop=0.0,
    alpha=0.0625,
)  # just significant
@example(
    falls=[(-0.0625, 0.0)],
    least_drop=0.0625,
    alpha=0.5,
)  # just large enough
@example(
    falls=[(0.0, 0.0)],
    least_drop=0.0,
    alpha=0.5,
)  # no fall
def test_alerts_are_large_falls_that_step_down_rejects(
    falls: list[tuple[float, float | None]], least_drop: float, alpha: float
) -> None:
    comparisons = [
        FELL
        | {
            "model": str(i),
            "difference": of,
            "p_value": p,
        }
        for i, (of, p) in enumerate(falls)
    ]
    rejected = stepped_down([p_value for _, p_value in falls], alpha)
    expected = [
        str(i) for i, (of, _) in enumerate(falls) if i in rejected and of < 0 and -of >= least_drop
    ]

    assert [
        alert.subject for alert in drops(comparisons, least_drop=least_drop, alpha=alpha)
    ] == expected


def test_a_drop_is_described_with_its_numbers_and_kept_with_all_its_figures() -> None:
    falls = [
        FELL,
        FELL
        | {
            "judge": "another-judge",
            "n_tasks": 280,
            "p_value": 0.00001,
        },
    ]
    alert, other = drops(
        falls,
        least_drop=0.01,
        alpha=0.05,
        drifted_judges={"another-judge"},
    )

    assert alert.line == (
        "a-model fell by 0.043 on finance (score, judged by a-judge): 0.469 in 2026-11-22, 0.512 in"
        " 2026-11-21; 95 % interval -0.062 to -0.024, corrected p 0.0002, 300 tasks"
    )
    assert (
        "corrected p below 0.0001, 280 of 300 tasks; another-judge drifted the same night"
        in other.line
    )
    assert alert.facts == {
        **FELL,
        "p_adjusted": 0.0002,
        "judge_drifted": False,
    }


def test_a_judge_that_drifted_is_described_with_its_limits_and_its_leaning() -> None:
    figures: dict[str, Any] = {
        "judge": "a-judge",
        "night": "2026-11-22",
        "n_decided": 200,
        "agreement": 0.91,
        "centre": 0.98,
        "lower_limit": 0.953,
        "min_agreement": None,
        "met_share": 0.535,
        "first_met_share": 0.5,
        "cause": "limit",
    }

    [alert] = drifts([figures])

    assert alert.kind == "judge_drift"
    assert alert.subject == "a-judge"
    assert figures == alert.facts
    assert alert.line == (
        "a-judge repeated its first decision on 91.0% of 200 control verdicts in 2026-11-22, below"
        " the limit (usual 98.0%, limit 95.3%); criteria met: 53.5%, at first 50.0% (+3.5 points);"
        " the judge may be the cause of this night's changes"
    )


def test_data_below_its_bar_is_one_alert_a_stage_with_all_of_it_in_the_facts() -> None:
    refused = (
        "1 of 9 tasks are left out: the rule is that weights are from -10 to 10 (weight_range): t1"
    )
    reports = [
        StageReport(
            "ingest",
            is_below_bar=True,
            warnings=["another_check (warn): 2 of 9 rows fail: t2", refused],
        ),
        StageReport(
            "coverage", is_below_bar=True, warnings=["responses of m, trial 1: 1 of 2 are done"]
        ),
    ]

    (quality,) = alerts_of_reports(reports)

    assert quality.kind == "quality"
    assert f"ingest: data quality is below the bar: {refused}" == quality.line
    assert [refused] == quality.facts["warnings"]


@pytest.mark.parametrize("kind", ["budget", "stop_time"])
def test_a_run_that_ended_early_is_one_alert_however_many_stages_that_cost(kind: str) -> None:
    notice = "stopped at 5 USD or 06:30 UTC; finished work is kept"
    skipped = {"sample": 3, "judge": 70}
    about: Any = {
        "warnings": ["a lane: stopped for this run: outage", notice],
        f"is_at_{kind}": True,
    }

    [alert] = alerts_of_reports(
        [StageReport(stage, skipped=number, **about) for stage, number in skipped.items()]
    )

    assert kind == alert.kind
    reached = f"the run reached its {kind.replace('_', ' ')}"
    assert f"{reached}; skipped: 3 in sample, 70 in judge; {notice}" == alert.line
    assert skipped == alert.facts["skipped"]


def test_an_alert_holds_one_line_and_plain_values_and_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AN_API_KEY", "sk-very-secret")

    facts = {"cause": ["sk-very-secret"], "mean": float("nan")}
    alert = Alert("failure", "a\nmodel", "refused\r\nsk-very-secret \ud83d", facts)

    assert alert.subject == "a model"
    assert alert.line == "refused [redacted] \ufffd"
    assert alert.facts == {"cause": ["[redacted]"], "mean": None}


SENT = Delivery("webhook 1", "sent", 1, None, 3)
FAILED = Delivery("slack 2", "failed", 4, "no connection", 3)


def test_alerts_and_what_became_of_them_can_be_queried(tmp_path: Path) -> None:
    job = job_on("sample", tmp_path, run_id="run-1").model_copy(update={"night": "2026-11-22"})

    store(job, [])
    store(job, [DROP, DRIFT, FULL], [SENT, FAILED])

    Warehouse(tmp_path).publish()
    falls = rows_in(
        tmp_path, "select night, kind, subject, detail, facts from alerts order by kind"
    )
    assert [
        ("2026-11-22", each.kind, each.subject, each.line, each.facts)
        for each in (FULL, DRIFT, DROP)
    ] == [(*list(row.values())[:-1], json.loads(str(row["facts"]))) for row in falls]
    assert values_in(
        tmp_path,
        "select run_id, receiver, status, attempts, error from alert_deliveries order by receiver",
    ) == [
        ("run-1", "slack 2", "failed", 4, "no connection"),
        ("run-1", "webhook 1", "sent", 1, None),
    ]


def test_the_same_finding_of_a_night_is_stored_once_and_one_of_the_data_once_for_all_nights(
    tmp_path: Path,
) -> None:
    quality = alerts_of_reports(
        [StageReport("check", warnings=["x (quarantine): 7 tasks"], is_below_bar=True)]
    )
    job = job_on("sample", tmp_path, run_id="run-1").model_copy(update={"night": "2026-11-22"})
    sent = [Delivery("webhook 1", "sent", 1, None, 1, (alert_id(job, DROP),))]
    for run_id, night in (
        ("run-1", "2026-11-22"),
        ("run-2", "2026-11-22"),
        ("run-3", "2026-11-23"),
    ):
        again = job.model_copy(update={"run_id": run_id, "night": night})
        store(again, [DROP, replace(DROP, facts={"split": "legal"}), *quality, FULL], sent)
        Warehouse(tmp_path).publish()

    assert {("webhook 1", alert_id(job, DROP))} == history_of(job, []).sent
    assert values_in(
        tmp_path,
        "select kind, count(*) as n, min(run_id) as first from alerts group by kind order by kind",
    ) == [
        ("failure", 3, "run-1"),
        ("quality", 1, "run-1"),
        ("score_drop", 4, "run-1"),
    ]
