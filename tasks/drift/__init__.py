"""Judge drift: stored verdicts are judged anew every night, and a judge that decides otherwise than before is found."""

from tasks.drift.choosing import choose_control_set
from tasks.drift.findings import drifted
from tasks.drift.nights import judge_control_set

__all__ = ["choose_control_set", "drifted", "judge_control_set"]
