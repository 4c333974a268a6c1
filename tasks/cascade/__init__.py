"""Cascades evaluated: from stored verdicts of a cheap and a strong judge, what each rule to escalate would do."""

from tasks.cascade.evaluate import CascadeAnswer, evaluated
from tasks.cascade.stored import StoredPair
from tasks.cascade.storing import TABLE, rows_of, store

__all__ = ["TABLE", "CascadeAnswer", "StoredPair", "evaluated", "rows_of", "store"]
