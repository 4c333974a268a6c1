"""What a benchmark declares. Everything that the stages know of a benchmark, they know from here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tasks.rules.records import Invariant, ScoreDefinition, Task


class RowError(ValueError):
    """A row that cannot be a task at all (it has no usable id); the message says what is wrong."""


@dataclass(frozen=True)
class Benchmark:
    """One benchmark: how its rows become tasks, what must hold for them, how they are graded and scored.

    `columns` are those that the rows must have. `vocabularies` say, for each field and kind of label (`category`,
    `decision_type`, `economic_pathway`), what the label may be. `severities` give each weight class its lowest and
    highest weight. `hard_splits` name, by field, the split of the data set that holds its own choice of hard tasks.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    parse_row: Callable[[Mapping[str, Any]], Task]
    invariants: tuple[Invariant, ...]
    scores: tuple[ScoreDefinition, ...]
    grading: str
    template: str
    default_dataset_id: str
    severities: Mapping[str, tuple[float, float]]
    vocabularies: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    hard_splits: Mapping[str, str] = field(default_factory=dict)

    def missing_columns(self, present: set[str]) -> list[str]:
        """The declared columns that a data set lacks, in their declared order."""
        return [column for column in self.columns if column not in present]

    @property
    def primary_score(self) -> ScoreDefinition:
        """The score that ranks models and selects the hard subset."""
        return next(score for score in self.scores if score.is_primary)

    @property
    def part_score(self) -> ScoreDefinition:
        """The score for parts of a rubric: one that a part of negative weights alone has too, else the primary one."""
        return next((score for score in self.scores if score.denominator_negative), self.primary_score)
