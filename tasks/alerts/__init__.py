"""Alerts: the findings of a night that somebody must know, the message that contains them, and its deliveries.

`findings.py` makes alerts from figures of other stages, which come in as data, and one message of them. `sending.py`
sends and stores it.
"""
