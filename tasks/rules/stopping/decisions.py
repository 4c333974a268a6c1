"""What an interval of a difference decides, and how the chance of a false decision is divided."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tasks.rules.statistics.quantiles import Floats
from tasks.rules.stopping.confidence_sequence import sequence_ends, unseen_sum
from tasks.rules.stopping.thresholds import thresholds

Asked = Literal["different", "dropped"]
OPEN, DIFFERENT, EQUAL, DROPPED, NOT_DROPPED = "open", "different", "equal", "dropped", "not_dropped"
_DECISIONS: dict[Asked, tuple[str, str, str]] = {
    "different": (OPEN, DIFFERENT, EQUAL),
    "dropped": (OPEN, DROPPED, NOT_DROPPED),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """How a comparison is decided.

    Attributes:
        asked: whether the two differ, or whether the first has dropped below the second.
        alpha: the chance of a false decision on this comparison, all looks together.
        least_difference: in the unit of the score; what is nearer to 0 is called equal, or not dropped.
        ends: how many tasks are evaluated at each look; the last is all of them.
    """

    asked: Asked
    alpha: float
    least_difference: float
    ends: Sequence[int]

    @property
    def n_planned(self) -> int:
        """The tasks that are evaluated at most."""
        return self.ends[-1]

    def ends_at(self, differences: Floats) -> Floats:
        """The intervals after the tasks given, shape (n_figures, 2); NaN where no look is taken after so many."""
        square = thresholds(self.ends, self.alpha).get(len(differences))
        if square is None:
            return np.full((differences.shape[1], 2), np.nan)
        return sequence_ends(differences, square, unseen_sum(self.alpha))

    def decide(self, low: float, high: float) -> str:
        """What an interval decides; an unknown one decides nothing."""
        return _DECISIONS[self.asked][int(self._settled(np.array([[low, high]]))[0])]

    def are_settled(self, differences: Floats) -> NDArray[np.bool_]:
        """Which figures the tasks given settle; shape (n_tasks, n_figures)."""
        return np.asarray(self._settled(self.ends_at(differences)) > 0)

    def _settled(self, ends: Floats) -> NDArray[np.int64]:
        """0 where an interval is open, 1 where it shows a difference or a drop, 2 where it rules it out."""
        low, high, least = ends[:, 0], ends[:, 1], self.least_difference
        if self.asked == "dropped":
            return np.where(high < -least, 1, np.where(low > -least, 2, 0))
        differs = (low > 0.0) | (high < 0.0)
        return np.where(differs, 1, np.where((low > -least) & (high < least), 2, 0))


def alpha_of_each(alpha: float, n_comparisons: int) -> float:
    """The chance of a false decision of each comparison, so that that of any is at most alpha (Bonferroni).

    It holds however the comparisons depend on each other, as they do: all pairs share models, and all share tasks. It
    is fixed before the first look, so comparisons that are settled early change nothing for the others.
    """
    return alpha / max(1, n_comparisons)
