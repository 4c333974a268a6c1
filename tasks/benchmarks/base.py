"""The declaration of a benchmark: all that stages know about it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tasks.rules.records import ScoreDefinition, Task
from tasks.rules.verdict import GRADINGS

DataRow = Mapping[str, Any]
GradedRowReader = Callable[[DataRow], Iterable[DataRow]]
"""Returns the rows for an import that a graded row stands for (see `Benchmark.graded_rows`)."""
ANY_FIELD = ""
"""The key of a vocabulary that is the same for all fields."""

BREAKDOWNS = (
    "category",
    "topic",
    "expert",
    "turns",
    "decision_type",
    "economic_pathway",
    "severity",
    "reference_texts",
    "subset",
)
"""Kinds of labels that any benchmark can have (`task_breakdowns` and `labelled_criteria` in
sql/intermediate).
"""

USUAL_INVARIANTS: Mapping[str, Mapping[str, Any]] = {
    name: {}
    for name in (
        "positive_criterion",
        "category_known",
        "labels_known",
        "unique_task_id",
        "unique_criterion_id",
        "title_not_empty",
        "prompt_not_empty",
    )
}
"""The invariants that hold for every benchmark that ships with the project; they have no bounds."""


def pass_on(row: DataRow) -> Iterable[DataRow]:
    """Return the row itself, as the only one: the reader of benchmarks without another shape."""
    return (row,)


class RowError(ValueError):
    """A row, or a value in it, that cannot be read: a task without an id, a list where a text
    belongs, a message of an unknown role. The message names the problem, and not the row.
    """


class Reference(NamedTuple):
    """A mean of the primary score in the benchmark's own paper; it is shown only beside the same
    split, and in grey beside another judge.

    Attributes:
        split: the split of the data set.
        n_tasks: the number of tasks in the split; a sample of a split is another split.
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


class Vocabulary(NamedTuple):
    """The labels that an annotator may give a task, for one kind of label.

    Attributes:
        title: the heading of the labels.
        instruction: tells the annotator how to choose a label.
        labels: field (or `ANY_FIELD`) -> label -> a short description of it.
        most_secondary: the largest number of secondary labels that a task may get.
        is_listed: true if the prompt lists the labels; otherwise the instruction says how to write
            them.
    """

    title: str
    instruction: str
    labels: Mapping[str, Mapping[str, str]]
    most_secondary: int = 1
    is_listed: bool = True

    def labels_of(self, task_field: str | None) -> Mapping[str, str]:
        """Return the labels for tasks of a field; empty if it has none."""
        return self.labels.get(task_field or ANY_FIELD, self.labels.get(ANY_FIELD, {}))


class ReviewReference(NamedTuple):
    """The share of a benchmark's criteria that independent experts agree with, as its own paper
    gives it.

    Attributes:
        value: the share, from 0 to 1.
        source: where in the paper it is, and how it was measured.
    """

    value: float
    source: str


@dataclass(frozen=True)
class Benchmark:
    """A benchmark: how its rows become tasks, the checks on them, and how they are graded and
    scored.

    Attributes:
        name: the name of its module, by which options choose it.
        title: its name for readers.
        columns: the columns that the rows must have.
        parse_row: returns a row of the data set as a task, or raises a `RowError`.
        scores: its scores, one of which is primary.
        default_dataset_id: the data set on the hub that is read if no other is configured.
        invariants: the checks on its tasks and criteria, each with its bounds
            (`expectations/README.md`).
        gradings: grading (`binary` or `ternary`) -> its judge template; the first grading is the
            default.
        vocabularies: field (or `ANY_FIELD`) -> kind of label -> allowed labels. Kinds are
            `category` (of criteria), `decision_type` and `economic_pathway` (of tasks), and those
            in `breakdowns`.
        annotations: kind -> the labels that a model may give a task (`prbench annotate`); labels in
            the data set's rows take precedence.
        licence: the hub's name for the licence of the data set; None if it is not known.
        severities: weight class -> its lowest and highest weight.
        hard_splits: field -> the split with the data set's own choice of hard tasks.
        common_breakdowns: the kinds in `BREAKDOWNS` for which its tasks or criteria have labels.
        breakdowns: further kinds of labels of its tasks and criteria -> their titles.
        figure_sources: figure of the report -> where the benchmark's own paper shows a similar one;
            the report puts "See" before it.
        references: scores in the paper, which the report's ranking shows.
        review_reference: the result of the reviews of criteria in the paper, shown beside your own.
        evidence_template: the template that asks for the evidence in a chunk of a response that is
            too long for a judge. If None, a response that is too long is a failure
            (`context_length`).
        graded_rows: returns a reader that converts a graded row in the benchmark's own shape to
            rows for imports (none if it has no decision), and passes on all other rows.
        id_columns: possible names of the column with a row's id, the preferred one first. Prompts
            in a separate file are found by this id.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    parse_row: Callable[[DataRow], Task]
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
    graded_rows: Callable[[], GradedRowReader] = lambda: pass_on

    def __post_init__(self) -> None:
        """Refuse contradictory declarations.

        Raises:
            ValueError: a declaration contradicts itself.
        """
        names = {score.score_name for score in self.scores}
        n_primary = sum(score.is_primary for score in self.scores)
        if n_primary != 1 or len(names) < len(self.scores):
            raise ValueError("`scores` need unique names, and one of them is primary")
        if not self.gradings or not set(self.gradings) <= set(GRADINGS):
            raise ValueError(f"`gradings` has a template for one or more of {', '.join(GRADINGS)}")
        unknown = set(self.common_breakdowns) - set(BREAKDOWNS)
        if unknown:
            raise ValueError(
                f"`common_breakdowns`: {unknown.pop()} is none of {', '.join(BREAKDOWNS)}"
            )
        taken = set(self.breakdowns) & {"all", *BREAKDOWNS}
        if taken:
            raise ValueError(
                f"`breakdowns`: every benchmark has {taken.pop()}; give the kind another name"
            )

    @property
    def own_breakdowns(self) -> dict[str, str]:
        """Kind -> title, for kinds of labels not in `BREAKDOWNS`, including those of annotators."""
        titles = dict(self.breakdowns)
        for kind, vocabulary in self.annotations.items():
            if kind not in BREAKDOWNS:
                titles.setdefault(kind, vocabulary.title)
        return titles

    @property
    def grading(self) -> str:
        """The default grading."""
        return next(iter(self.gradings))

    @property
    def primary_score(self) -> ScoreDefinition:
        """The score that ranks models and selects the hard subset."""
        return next(score for score in self.scores if score.is_primary)

    @property
    def expected_score(self) -> ScoreDefinition:
        """The primary score with probabilities instead of decisions, for judges that give them."""
        return replace(
            self.primary_score,
            score_name=f"expected_{self.primary_score.score_name}",
            is_primary=False,
        )

    @property
    def criteria_score(self) -> ScoreDefinition:
        """The score for a part of a rubric: one that is defined for negative weights alone, else
        the primary one.
        """
        return next(
            (score for score in self.scores if score.denominator_negative), self.primary_score
        )
