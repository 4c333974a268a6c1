"""Alerts and deliveries as rows."""

import json
from pathlib import Path

from tasks.alerts.findings import alerts_of_reports, failure
from tasks.alerts.message import Night
from tasks.alerts.sending import Delivery
from tasks.alerts.stored import delivered, store
from tasks.run.writing import StageReport
from tests.kit import job_on, rows_in
from tests.tasks.alerts.conftest import DRIFT, DROP
from warehouse import Warehouse

SENT, FAILED = Delivery("webhook 1", "sent", 1, None, 3), Delivery("slack 2", "failed", 4, "no connection", 3)


def rows(root: Path, query: str) -> list[dict[str, object]]:
    warehouse = Warehouse(root)
    warehouse.publish()
    return rows_in(warehouse.root, query)


def test_alerts_and_what_became_of_them_can_be_queried(tmp_path: Path) -> None:
    job = job_on("sample", tmp_path, run_id="run-1").model_copy(update={"night": "2026-11-22"})

    store(job, [DROP, DRIFT, failure("out of disk")], [SENT, FAILED])

    found = rows(tmp_path, "select night, kind, subject, detail, facts from alerts order by kind")
    assert [
        ("2026-11-22", alert.kind, alert.subject, alert.line, alert.facts)
        for alert in (failure("out of disk"), DRIFT, DROP)
    ] == [(*list(row.values())[:-1], json.loads(str(row["facts"]))) for row in found]
    assert [
        {"run_id": "run-1", "receiver": "slack 2", "status": "failed", "attempts": 4, "error": "no connection"},
        {"run_id": "run-1", "receiver": "webhook 1", "status": "sent", "attempts": 1, "error": None},
    ] == rows(tmp_path, "select run_id, receiver, status, attempts, error from alert_deliveries order by receiver")


def test_two_alerts_of_a_kind_about_one_model_are_two_rows_and_one_stored_again_is_one(tmp_path: Path) -> None:
    job = job_on("sample", tmp_path)
    on_another_split = type(DROP)(DROP.kind, DROP.subject, DROP.line, {"split": "legal"})

    store(job, [DROP, on_another_split])
    store(job, [DROP], [FAILED])
    store(job, [], [SENT])

    assert [{"n_alerts": 2}] == rows(tmp_path, "select count(*) as n_alerts from alerts")
    assert [{"n": 2}] == rows(tmp_path, "select count(*) as n from alert_deliveries")


def test_the_same_finding_of_a_night_is_stored_once_and_one_of_the_data_once_for_all_nights(tmp_path: Path) -> None:
    quality = alerts_of_reports([StageReport("check", warnings=["x (quarantine): 7 tasks"], is_below_bar=True)])
    job = job_on("sample", tmp_path, run_id="run-1").model_copy(update={"night": "2026-11-22"})
    sent = [Delivery("webhook 1", "sent", 1, None, 1, (Night.of(job).id_of(DROP),))]
    for run_id, night in (("run-1", "2026-11-22"), ("run-2", "2026-11-22"), ("run-3", "2026-11-23")):
        again = job.model_copy(update={"run_id": run_id, "night": night})
        store(again, [DROP, *quality, failure("out of disk")], sent)
        Warehouse(tmp_path).publish()

    assert {("webhook 1", Night.of(job).id_of(DROP))} == delivered(job)
    assert [
        {"kind": "failure", "n": 3, "first": "run-1"},
        {"kind": "quality", "n": 1, "first": "run-1"},
        {"kind": "score_drop", "n": 2, "first": "run-1"},
    ] == rows(tmp_path, "select kind, count(*) as n, min(run_id) as first from alerts group by kind order by kind")


def test_a_night_without_alerts_leaves_no_row(tmp_path: Path) -> None:
    store(job_on("sample", tmp_path), [])

    assert [] == rows(tmp_path, "select * from alerts")
