"""Alerts and deliveries as rows."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from tasks.alerts.alert import Alert
from tasks.alerts.delivery import Delivery
from tasks.alerts.message import Night
from tasks.config.job import Job
from warehouse import Warehouse, WarehouseError


def delivered(job: Job) -> set[tuple[str, str]]:
    """Return the receivers that got a message, each with the id of an alert in it."""
    query = "select receiver, unnest(alert_ids) as alert_id from alert_deliveries where status = 'sent'"
    return {(row["receiver"], row["alert_id"]) for row in _stored(job, query)}


def _stored(job: Job, query: str) -> list[dict[str, Any]]:
    try:
        with Warehouse(job.warehouse).reader() as reader:
            return reader.rows(query)
    except WarehouseError:  # nothing is published, or the disk fails: alerts are sent all the same
        return []


def store(job: Job, alerts: Sequence[Alert], deliveries: Sequence[Delivery] = ()) -> None:
    """Write alerts and deliveries; they can be read after the next publication.

    An alert that is stored already stays as it is.
    """
    warehouse, night = Warehouse(job.warehouse), Night.of(job)
    known = {row["alert_id"] for row in _stored(job, "select alert_id from alerts")} if alerts else set()
    common = {"run_id": job.run_id, "night": job.night, "created_at": datetime.now(UTC)}
    rows = []
    for alert in alerts:
        facts = json.dumps(alert.facts, sort_keys=True)
        rows.append(
            common | {
                "alert_id": night.id_of(alert),
                "benchmark": job.settings.benchmark,
                "kind": alert.kind, "subject": alert.subject, "detail": alert.line, "facts": facts,
            }
        )  # fmt: skip
    warehouse.write("alerts", [row for row in rows if row["alert_id"] not in known])
    warehouse.write(
        "alert_deliveries",
        [
            common | {
                "receiver": each.receiver, "status": each.status, "attempts": each.attempts, "error": each.error,
                "n_alerts": each.n_alerts, "alert_ids": each.alert_ids,
            }
            for each in deliveries
        ],
    )  # fmt: skip
