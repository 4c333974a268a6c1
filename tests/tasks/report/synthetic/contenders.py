"""The models and judges of the made-up warehouse, their abilities, and the events of each night."""

import math
import random
from dataclasses import dataclass
from functools import cache
from typing import Any

from tasks.rules.records import Criterion

NIGHTS = ("2026-10-01", "2026-10-02", "2026-10-03", "2026-10-04", "2026-10-05")
OLDER_NIGHT = "2026-09-28"
"""A night on an older revision of the data set."""
DRIFT_NIGHT = NIGHTS[2]
"""In this night the first judge is more lenient."""
DROP_NIGHT = NIGHTS[4]
"""In this night the model `DROPPING` is much worse."""
DROPPING = "fir-flash"
IMPORTED_MODEL = "grove-external"
PEOPLE = "lawyers"


@dataclass(frozen=True)
class Contender:
    """A model.

    Attributes:
        skill: in logits; `is_met` uses it.
        style: 1 to 4, the amount of additional content in its responses.
        usd_per_mtok: price of its input and output tokens; None if unknown.
        is_nightly: whether it is sampled again each night.
        weak_at: a category in which it is worse.
        finance_bonus: how much better it is in finance.
    """

    label: str
    skill: float
    style: int
    usd_per_mtok: tuple[float, float] | None
    is_nightly: bool = False
    weak_at: str = ""
    finance_bonus: float = 0.0

    @property
    def settings(self) -> dict[str, Any]:
        """The model's settings in a configuration, without its label."""
        settings = {
            "name": f"hosted_vllm/{self.label}",
            "api_base": "http://127.0.0.1:9/v1",
        }
        if self.usd_per_mtok is not None:
            input_usd, output_usd = self.usd_per_mtok
            settings["price"] = {
                "input_usd_per_mtok": input_usd,
                "output_usd_per_mtok": output_usd,
            }
        if self.is_nightly:
            settings["resample"] = "nightly"
        return settings

    def ability(self, field: str, category: str, night: str) -> float:
        """Its skill in a field and category on a night."""
        ability = self.skill
        if field == "Finance":
            ability += self.finance_bonus
        if category == self.weak_at:
            ability -= 1.1
        if (self.label, night) == (DROPPING, DROP_NIGHT):
            ability -= 1.3
        return ability


CONTENDERS = (
    Contender("alder-large", 1.15, 4, (3.0, 15.0), weak_at="Instruction Following"),
    Contender(
        "birch-2",
        0.75,
        2,
        (1.25, 10.0),
        weak_at="Supplemental Insight",
        finance_bonus=0.35,
    ),
    Contender("cedar-mini", -0.05, 2, (0.25, 2.0), weak_at="Handling Uncertainty"),
    Contender(
        "dogwood-open",
        -0.55,
        3,
        None,
        weak_at="Practical Utility",
        finance_bonus=-0.4,
    ),
    Contender(
        "elm-chat",
        0.4,
        3,
        (1.0, 5.0),
        is_nightly=True,
        weak_at="Legal Accuracy",
    ),
    Contender(
        DROPPING,
        0.2,
        1,
        (0.1, 0.4),
        is_nightly=True,
        weak_at="Financial Accuracy",
    ),
)
OUTSIDER = Contender(IMPORTED_MODEL, 0.55, 3, None)
"""A model whose responses were made elsewhere and imported."""
JUDGES = ("strict-judge", "mild-judge")
ERROR_RATES = {
    "strict-judge": (0.03, 0.04),
    "mild-judge": (0.2, 0.02),
    PEOPLE: (0.06, 0.09),
}
"""Grader -> its chances of calling an unmet criterion met, and a met one unmet."""
DRIFTED = (0.3, 0.02)
"""The chances of the first judge in the night in which it drifts."""


def is_met(
    contender: Contender,
    number: int,
    field: str,
    criterion: Criterion,
    trial: int,
    night: str,
) -> bool:
    """Return whether a response meets a criterion, before any judge decides; `number` is the
    task's.
    """
    cell = f"{contender.label} {number} {criterion.position}"
    ability = contender.ability(field, criterion.category or "", night)
    if (criterion.weight or 0.0) > 0:
        logit = ability - difficulty(number, criterion.position)
    else:
        logit = -1.2 - 0.8 * ability  # better models avoid what is not wanted
    return logit + _chance(cell, 1.3) + _chance(f"{cell} {trial} {night}", 0.7) > 0


def difficulty(number: int, position: int | None = None) -> float:
    """Return the difficulty of a task, or of one of its criteria, in logits."""
    task_difficulty = 0.1 + _chance(f"task {number}", 0.7)
    if position is None:
        return task_difficulty
    return task_difficulty + _chance(f"{number} {position}", 0.8)


@cache
def _chance(cell: str, spread: float) -> float:
    """Return the random part of a cell, always the same."""
    # Without the cache this would take half of the time that building the warehouse
    # takes.
    return random.Random(cell).gauss(0, spread)


def decides(judge: str, truth: bool, dice: random.Random, night: str = "") -> bool:
    """Return a grader's decision; the first judge decides differently in the night in which it
    drifts.
    """
    lenient, severe = ERROR_RATES[judge]
    if (judge, night) == (JUDGES[0], DRIFT_NIGHT):
        lenient, severe = DRIFTED
    return dice.random() >= severe if truth else dice.random() < lenient


def tokens_of(text: str) -> int:
    """The approximate number of tokens in a text."""
    return math.ceil(len(text) / 4)


def run_of(night: str) -> str:
    """The id of a night's run."""
    return f"{night.replace('-', '')}T010000-night"
