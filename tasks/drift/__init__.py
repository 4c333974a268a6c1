"""Judge drift: stored verdicts are judged again every night, to find judges that decide differently than before."""

from tasks.drift.control_sets import choose_control_set, drifted
from tasks.drift.nights import judge_control_set

__all__ = ["choose_control_set", "drifted", "judge_control_set"]
