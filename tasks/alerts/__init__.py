"""Alerts: important findings of a night, the message that contains them, and its deliveries.

`findings.py` turns figures of other stages, which it gets as data, into alerts, `causes.py` does
that for low coverage. `message.py` writes the message, `sending.py` sends it and stores what was
sent.
"""
