"""Runs over the sample, killed at random instants until they have come to their end; then book and tables are compared.

`python -m tests.faults.kills` does so as often as it is told. A run is started as the command that it is, or forked
from one process that has imported everything.
"""

from tests.faults.kills.killing import MOST_COLD_GAP_S, MOST_GAP_S, Killing, provider
from tests.faults.kills.outcome import recorded, tables
from tests.faults.kills.starting import Run, Stages, command_started, configured, started_stages

__all__ = [
    "MOST_COLD_GAP_S", "MOST_GAP_S", "Killing", "Run", "Stages", "command_started", "configured", "provider",
    "recorded", "started_stages", "tables",
]  # fmt: skip
