"""Alerts and deliveries as rows."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from tasks.alerts.alert import Alert
from tasks.alerts.delivery import Delivery
from tasks.config import Job
from tasks.rules.identity import digest
from warehouse import Warehouse


def store(job: Job, alerts: Sequence[Alert], deliveries: Sequence[Delivery] = ()) -> None:
    """Write alerts and deliveries; they can be read after the next publication.

    Storing the same again changes nothing but when it was stored.
    """
    warehouse = Warehouse(job.warehouse)
    common = {"run_id": job.run_id, "night": job.night, "created_at": datetime.now(UTC)}
    rows = []
    for alert in alerts:
        facts = json.dumps(alert.facts, sort_keys=True)
        rows.append(
            common | {
                "alert_id": digest("alert", job.run_id, alert.kind, alert.subject, alert.line, facts),
                "benchmark": job.settings.benchmark,
                "kind": alert.kind, "subject": alert.subject, "detail": alert.line, "facts": facts,
            }
        )  # fmt: skip
    warehouse.write("alerts", rows)
    warehouse.write(
        "alert_deliveries",
        [
            common | {
                "receiver": each.receiver, "status": each.status, "attempts": each.attempts, "error": each.error,
                "n_alerts": each.n_alerts,
            }
            for each in deliveries
        ],
    )  # fmt: skip
