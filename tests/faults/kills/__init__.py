"""Runs over the sample, killed at random instants until they have come to their end; then book and tables are compared.

`python -m tests.faults.kills` does so as often as it is told. A run is started as the command that it is, or forked
from one process that has imported everything.
"""
