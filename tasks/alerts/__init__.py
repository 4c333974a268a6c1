"""Alerts: what of a night somebody has to know, who is told, and what became of the telling.

What is found (`findings.py`) becomes alerts (`alert.py`), these one message a receiver (`message.py`), which goes out
over the web (`web.py`), by mail (`mail.py`) or through a block of Prefect's (`blocks.py`), tried again where that may
help (`delivery.py`); both are stored (`stored.py`). Other stages' figures come in as data.
"""

from tasks.alerts.alert import KINDS, Alert, Kind
from tasks.alerts.delivery import Backoff, Delivery, deliver, ping
from tasks.alerts.findings import (
    Comparison,
    alerts_of_reports,
    drifts,
    drops,
    failure,
    skipped,
)
from tasks.alerts.message import Night
from tasks.alerts.stored import store

__all__ = [
    "KINDS", "Alert", "Backoff", "Comparison", "Delivery", "Kind", "Night", "alerts_of_reports",
    "deliver", "drifts", "drops", "failure", "ping", "skipped", "store",
]  # fmt: skip
