"""What is compared: model runs as they are stored, and the question about them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

Kind = Literal["model", "judge", "template", "run", "vintage", "revision"]
KINDS: tuple[Kind, ...] = get_args(Kind)

COLUMN_OF = {
    "model": "model",
    "judge": "judge",
    "template": "template_hash",
    "vintage": "vintage",
    "revision": "dataset_revision",
}
"""The column of `staging.model_runs` that each kind of name stands in; a run stands in none."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: the names to compare, the first against each other one, and what they are looked for in.

    `kind` None is found out from the names. `revision` is the one that is meant unless revisions are compared; where
    nothing of it is there, all are. `clips_mean` says whether the leaderboard shows a mean of the score below 0 as 0.
    `models`, `judges` and `vintage` narrow what stays equal on both sides.
    """

    benchmark: str
    names: tuple[str, ...]
    kind: Kind | None = None
    revision: str | None = None
    splits: tuple[str, ...] = ()
    is_hard: bool = False
    score: str = "score"
    clips_mean: bool = False
    models: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    vintage: str | None = None


@dataclass(frozen=True, slots=True)
class ModelRun:
    """A configured model, sampled in one vintage, under one judging; `is_by_judge` unless people who label gave it."""

    model_run_id: int
    dataset_revision: str
    model: str
    model_config_hash: str
    vintage: str
    judge: str
    judge_config_hash: str
    template_hash: str
    grading: str
    judge_trial: int
    n_trials: int
    is_by_judge: bool
    answered_at: datetime
    judged_at: datetime


@dataclass(frozen=True, slots=True)
class Side:
    """A model run under the name that the question gives it; of a pipeline run, the only tasks that count."""

    name: str
    model_run: ModelRun
    only_tasks: frozenset[str] | None = None

    def counts(self, task_id: str) -> bool:
        """Whether the side has anything to say about a task."""
        return self.only_tasks is None or task_id in self.only_tasks


@dataclass(frozen=True, slots=True)
class Pair:
    """Two model runs that differ in nothing but what is compared."""

    first: Side
    second: Side
    notes: tuple[str, ...] = ()
