"""Alerts: what in a night somebody must know, who gets it, and what became of each message.

What is found (`findings.py`) becomes alerts, and these become one message (`message.py`), which is sent (`sending.py`).
Both are stored (`stored.py`). The figures of other stages come in as data.
"""

from tasks.alerts.findings import Alert, Comparison, alerts_of_reports, drifts, drops, failure, settled_drops, skipped
from tasks.alerts.message import Night
from tasks.alerts.sending import Delivery, deliver, ping
from tasks.alerts.stored import delivered, store

__all__ = [
    "Alert", "Comparison", "Delivery", "Night", "alerts_of_reports", "deliver", "delivered", "drifts",
    "drops", "failure", "ping", "settled_drops", "skipped", "store",
]  # fmt: skip
