"""Alerts: what in a night somebody must know, who gets it, and what became of each message.

What is found (`findings.py`) becomes alerts, and these become one message (`message.py`), which is sent (`sending.py`).
Both are stored (`stored.py`). The figures of other stages come in as data.
"""
