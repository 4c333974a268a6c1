"""Alerts: important findings of a night, the message that contains them, and its deliveries.

`findings.py` turns figures of other stages, which it gets as data, into alerts and one message. `sending.py` sends and
stores the message.
"""
