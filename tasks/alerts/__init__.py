"""Alerts: what in a night somebody must know, who gets it, and what became of each message.

What is found becomes alerts, and these one message (`findings.py`), which is sent and stored (`sending.py`). The
figures of other stages come in as data.
"""
