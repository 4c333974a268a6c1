"""Alerts: what in a night somebody must know, who gets it, and what became of each message.

What is found (`findings.py`) becomes alerts (`alert.py`), and these become one message (`message.py`). Apprise or a
block of Prefect sends it (`receivers.py`, `blocks.py`), with a limit on the time of an attempt and no library's text
in logs or causes (`attempt.py`, `causes.py`), and again where that may help (`delivery.py`). Both are stored
(`stored.py`). The figures of other stages come in as data.
"""

from tasks.alerts.alert import KINDS, Alert, Kind
from tasks.alerts.delivery import Delivery, deliver, ping
from tasks.alerts.findings import (
    Comparison,
    alerts_of_reports,
    drifts,
    drops,
    failure,
    settled_drops,
    skipped,
)
from tasks.alerts.message import Night
from tasks.alerts.stored import delivered, store

__all__ = [
    "KINDS", "Alert", "Comparison", "Delivery", "Kind", "Night", "alerts_of_reports", "deliver", "delivered", "drifts",
    "drops", "failure", "ping", "settled_drops", "skipped", "store",
]  # fmt: skip
