"""The declaration of a benchmark: all that stages know about it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tasks.rules.records import ScoreDefinition, Task
from tasks.rules.verdict import GRADINGS

Row = Mapping[str, Any]
ANY_FIELD = ""
"""The key for all fields, in vocabularies that are the same for every field."""

BREAKDOWNS = (
    "category", "topic", "expert", "turns", "decision_type", "economic_pathway", "severity", "reference_texts",
    "subset",
)  # fmt: skip
"""Labels of tasks and rubrics that every benchmark has (`task_breakdowns` and `rubric_weights` of sql/intermediate)."""


class RowError(ValueError):
    """A row that cannot become a task (it has no usable id); the message names the problem."""


@dataclass(frozen=True)
class Reference:
    """A mean of the primary score from the benchmark's own paper; it is shown only with the same split and judge.

    Attributes:
        split: the split of the data set.
        n_tasks: its number of tasks; a sample of a split is a different one.
        judge: the judge's name, without its provider.
        model: the evaluated model, as the paper names it.
        value: the mean score.
        source: where in the paper it is, and how it was measured.
    """

    split: str
    n_tasks: int
    judge: str
    model: str
    value: float
    source: str


@dataclass(frozen=True)
class Vocabulary:
    """The labels that an annotator may give a task, for one kind of label.

    Attributes:
        title: the heading of the labels.
        instruction: the annotator's instruction on the choice of a label.
        labels: for each field (or `ANY_FIELD`), each label with a short description.
        most_secondary: largest number of secondary labels of a task.
        is_listed: true if the prompt lists the labels; otherwise the instruction says how they are written.
    """

    title: str
    instruction: str
    labels: Mapping[str, Mapping[str, str]]
    most_secondary: int = 1
    is_listed: bool = True

    def labels_of(self, task_field: str | None) -> Mapping[str, str]:
        """Return the labels for tasks of a field; empty if it has none."""
        return self.labels.get(task_field or ANY_FIELD, self.labels.get(ANY_FIELD, {}))


@dataclass(frozen=True)
class ReviewReference:
    """The share of its criteria that independent experts agree with, as the benchmark's own paper gives it.

    Attributes:
        value: the share, from 0 to 1.
        source: where in the paper it is, and how it was measured.
    """

    value: float
    source: str


@dataclass(frozen=True)
class Benchmark:
    """A benchmark: how its rows become tasks, the checks on them, and how they are graded and scored.

    Attributes:
        columns: the columns that the rows must have.
        invariants: the checks on its tasks and criteria, each with its bounds (`expectations/README.md`).
        gradings: the judge template of each grading, `binary` or `ternary`; the first one is the default.
        vocabularies: for each field (or `ANY_FIELD`) and kind of label, the allowed labels. Kinds are `category` of
            criteria, `decision_type` and `economic_pathway` of tasks, and those of `breakdowns`.
        annotations: kind -> the labels that a model may give a task (`prbench annotate`); labels in the data set's
            rows take precedence.
        licence: the licence of the data set, by the hub's name for it; None if it is not known.
        severities: each weight class's lowest and highest weight.
        hard_splits: by field, the split of the data set that holds its own choice of hard tasks.
        common_breakdowns: those of `BREAKDOWNS` whose labels its tasks and rubrics have.
        breakdowns: kind -> title of the further labels of its tasks and criteria.
        figure_sources: figure of the report -> where the benchmark's own paper shows a similar one; follows "See".
        references: scores that the paper gives, for the report's ranking.
        review_reference: the paper's result of reviews of its criteria, shown with the own one.
        evidence_template: the template of requests for the evidence in a chunk of a response too long for a judge;
            None: responses are judged whole, and one that is too long is a failure (`context_length`).
        graded_rows: returns a reader of graded rows in the benchmark's own shape, which turns each into rows for
            imports (none if it has no decision); rows in the imports' shape are passed on unchanged.
        id_columns: names of the column with a row's id, in the order of preference; prompts in a separate file are
            found by it.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    parse_row: Callable[[Row], Task]
    invariants: Mapping[str, Mapping[str, Any]]
    scores: tuple[ScoreDefinition, ...]
    gradings: Mapping[str, str]
    default_dataset_id: str
    severities: Mapping[str, tuple[float, float]]
    vocabularies: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    annotations: Mapping[str, Vocabulary] = field(default_factory=dict)
    licence: str | None = None
    hard_splits: Mapping[str, str] = field(default_factory=dict)
    common_breakdowns: tuple[str, ...] = BREAKDOWNS
    breakdowns: Mapping[str, str] = field(default_factory=dict)
    figure_sources: Mapping[str, str] = field(default_factory=dict)
    references: tuple[Reference, ...] = ()
    review_reference: ReviewReference | None = None
    id_columns: tuple[str, ...] = ()
    evidence_template: str | None = None
    graded_rows: Callable[[], Callable[[Row], Iterable[Row]]] = lambda: lambda row: (row,)

    def __post_init__(self) -> None:
        """Refuse contradictory declarations.

        Raises:
            ValueError: a declaration contradicts itself.
        """
        names = [score.score_name for score in self.scores]
        if sum(score.is_primary for score in self.scores) != 1 or len(set(names)) < len(names):
            raise ValueError("`scores` need unique names, and one of them is primary")
        if not self.gradings or not set(self.gradings) <= set(GRADINGS):
            raise ValueError(f"`gradings` has a template for one or more of {', '.join(GRADINGS)}")
        if unknown := set(self.common_breakdowns) - set(BREAKDOWNS):
            raise ValueError(f"`common_breakdowns`: {unknown.pop()} is none of {', '.join(BREAKDOWNS)}")
        if taken := set(self.breakdowns) & {"all", *BREAKDOWNS}:
            raise ValueError(f"`breakdowns`: every benchmark has {taken.pop()}; give the kind another name")

    def missing_columns(self, present: set[str]) -> list[str]:
        """Return the declared columns that a data set lacks, in their declared order."""
        return [column for column in self.columns if column not in present]

    @property
    def own_breakdowns(self) -> dict[str, str]:
        """Kind -> title of the labels that not every benchmark has, including annotators' labels."""
        own = {kind: vocabulary.title for kind, vocabulary in self.annotations.items() if kind not in BREAKDOWNS}
        return {**self.breakdowns, **{kind: title for kind, title in own.items() if kind not in self.breakdowns}}

    @property
    def grading(self) -> str:
        """The grading of verdicts by default."""
        return next(iter(self.gradings))

    @property
    def primary_score(self) -> ScoreDefinition:
        """The score that ranks models and selects the hard subset."""
        return next(score for score in self.scores if score.is_primary)

    @property
    def criteria_score(self) -> ScoreDefinition:
        """The score for some criteria of a rubric: one defined for negative weights alone, else the primary one."""
        return next((score for score in self.scores if score.denominator_negative), self.primary_score)
