"""Alerts and deliveries as rows."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from tasks.alerts.findings import Alert
from tasks.alerts.message import Night
from tasks.alerts.sending import Delivery
from tasks.config.job import Job
from warehouse import Warehouse, WarehouseError


def delivered(job: Job) -> set[tuple[str, str]]:
    """Return the receivers that got a message, each with the id of an alert in it."""
    rows = _stored(job, "alert_deliveries", "receiver, unnest(alert_ids) as alert_id", status="sent")
    return {(row["receiver"], row["alert_id"]) for row in rows}


def _stored(job: Job, table: str, columns: str, **where: Any) -> list[dict[str, Any]]:
    try:
        with Warehouse(job.warehouse).reader() as reader:
            return reader.select(table, columns, **where)
    except WarehouseError:  # nothing is published, or the disk fails: alerts are sent all the same
        return []


def store(job: Job, alerts: Sequence[Alert], deliveries: Sequence[Delivery] = ()) -> None:
    """Write alerts and deliveries; they can be read after the next publication.

    An alert that is stored already stays as it is.
    """
    warehouse, night = Warehouse(job.warehouse), Night.of(job)
    known = {row["alert_id"] for row in _stored(job, "alerts", "alert_id")} if alerts else set()
    common = {"run_id": job.run_id, "night": job.night, "created_at": datetime.now(UTC)}
    rows = [
        common | {
            "alert_id": night.id_of(each), "benchmark": job.settings.benchmark, "kind": each.kind,
            "subject": each.subject, "detail": each.line, "facts": json.dumps(each.facts, sort_keys=True),
        }
        for each in alerts
    ]  # fmt: skip
    warehouse.write("alerts", [row for row in rows if row["alert_id"] not in known])
    warehouse.write("alert_deliveries", [common | asdict(each) for each in deliveries])
