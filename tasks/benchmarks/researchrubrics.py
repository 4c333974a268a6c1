"""ResearchRubrics (Scale AI, 2025): research questions whose long reports are graded ternarily."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tasks.benchmarks.base import (
    ANY_FIELD,
    USUAL_INVARIANTS,
    Benchmark,
    DataRow,
    GradedRowReader,
    RowError,
    Vocabulary,
)
from tasks.benchmarks.rows import (
    as_items,
    as_list,
    as_mapping,
    as_number,
    as_text,
    band_of,
    cell_label,
    cell_text,
    criterion_from,
    task_from,
)
from tasks.rules.identity import digest
from tasks.rules.records import Criterion, ScoreDefinition, Task, Turn
from tasks.rules.text.json_text import read_json

ID_COLUMNS = ("sample_id", "qid")
"""Names of the id column: on the hub, and in files whose prompts are in a separate file."""

AXES = frozenset(
    {
        "Explicit Criteria",
        "Implicit Criteria",
        "Synthesis of Information",
        "Communication Quality",
        "Instruction Following",
        "References & Citation Quality",
    }
)
ANNOTATIONS = {
    "conceptual_breadth": Vocabulary(
        "Conceptual breadth",
        "How many different subjects does an answer have to bring together?",
        {
            ANY_FIELD: {
                "Simple": "one subject, which one kind of source covers",
                "Moderate": "two or three subjects that have to be combined to some degree",
                "High": "many different subjects, each of which matters to the answer",
            }
        },
        most_secondary=0,
    ),
    "logical_nesting": Vocabulary(
        "Logical nesting",
        "How many steps of reasoning rest on each other before the question is answered?",
        {
            ANY_FIELD: {
                "Shallow": "one step: looking something up, or one inference",
                "Intermediate": "two or three steps, where a later one needs an earlier one",
                "Deep": (
                    "four or more steps, with conditions, or with results that have to be tested"
                    " again"
                ),
            }
        },
        most_secondary=0,
    ),
    "exploration": Vocabulary(
        "Exploration",
        "How much does the request leave open, so that the answer has to find its own aim or"
        " scope?",
        {
            ANY_FIELD: {
                "Low": "the task says exactly what is wanted",
                "Medium": "the aim is clear, the scope or the way to it is open",
                "High": "aim, scope or preferences are open and have to be worked out",
            }
        },
        most_secondary=0,
    ),
}
"""Three kinds of labels of a task's difficulty (paper, section 3); the rows have them, or a model
gives them.
"""
LEVELS = {kind: frozenset(vocabulary.labels[ANY_FIELD]) for kind, vocabulary in ANNOTATIONS.items()}

SEVERITIES = {
    "critically important": (4.0, 5.0),
    "important": (2.0, 3.0),
    "slightly important": (1.0, 1.0),
    "slightly detrimental": (-1.0, -1.0),
    "detrimental": (-3.0, -2.0),
    "critically detrimental": (-5.0, -4.0),
}
"""Weight class -> lowest and highest weight (paper, section 3); the data contains only the weight.
"""


def parse_row(row: DataRow) -> Task:
    """Return a row from the hub, or from a file with `qid`, as a task of one turn.

    Raises:
        RowError: the row has no task id.
    """
    labels = []
    for kind in ("domain", *LEVELS):
        label = cell_label(row, kind)
        if label is not None:
            labels.append((kind, label))
    ids = [cell_label(row, name) for name in ID_COLUMNS]
    criteria = [
        _criterion(position, item) for position, item in enumerate(as_items(row.get("rubrics")))
    ]
    return task_from(
        next(filter(None, ids), None),
        (Turn(cell_text(row, "prompt"), (), None),),
        criteria,
        field=cell_label(row, "domain"),
        labels=labels,
        canary=cell_label(row, "canary"),
    )


def _criterion(position: int, item: DataRow) -> Criterion:
    title = cell_text(item, "criterion") or ""
    axis = cell_label(item, "axis")
    stated_weight = item.get("weight")
    weight = as_number(stated_weight)
    # The data has no ids, and some texts occur on two axes.
    criterion_id = digest("researchrubrics", title, axis)[:12]
    labels = []
    if weight:
        labels.append(("necessity", "mandatory" if abs(weight) >= 4 else "optional"))
    return criterion_from(
        criterion_id,
        position,
        title,
        stated_weight,
        category=axis,
        severity=band_of(weight, SEVERITIES),
        labels=labels,
    )


def graded_rows() -> GradedRowReader:
    """Return a reader of the files that the published code writes.

    A row is one evaluation, or a task with all its verdicts. Evaluations do not name the axis, so
    of two criteria with the same text, the first row is on the first criterion.
    """
    seen = Counter[tuple[str | None, ...]]()

    def read(row: DataRow) -> Iterator[DataRow]:
        if "final_presence" in row:
            yield from _compiled_verdicts(row)
        elif "rubric_title" in row:
            # Files on a single report name the task by its id and are binary; files on all reports
            # are ternary.
            is_single = "sample_id" in row and "task_name" not in row
            has_succeeded = row.get("success", True) in _TRUE
            graded_row = {
                **row,
                "task": row.get("task_name") or row.get("sample_id") or row.get("task"),
                "model": as_text(row.get("model") or row.get("pdf") or row.get("pdf_name")),
                "criterion": row.get("rubric_title"),
                "explanation": row.get("reasoning"),
                "verdict": _verdict_of(row.get("verdict")) if has_succeeded else None,
                "grading": row.get("grading") or ("binary" if is_single else None),
            }
            key = tuple(as_text(graded_row.get(name)) for name in _KEY)
            seen[key] += 1
            yield {**graded_row, "occurrence": seen[key]}
        else:
            yield row

    return read


_TRUE = (True, "True", "TRUE", "true", "1")
"""Values of `success` that mean that the judge's call succeeded."""
_KEY = ("task", "model", "trial", "vintage", "judge", "judge_trial", "grading", "criterion")
"""The columns that identify an evaluation, but for the axis, which the files do not have."""


def _compiled_verdicts(row: DataRow) -> Iterator[DataRow]:
    """Yield the verdicts on all models' reports, in the order of the rubric.

    Rubric and verdicts are cells with JSON. They count as people's unless a column `judge` names a
    judge, because the published code writes both alike.
    """
    rubrics = as_list(_decoded(row, "rubrics"))
    presence = as_mapping(_decoded(row, "final_presence"))
    for name, content in (("rubrics", rubrics), ("final_presence", presence)):
        if not content:
            raise RowError(f"`{name}` holds nothing")
    for key, model_presence in presence.items():
        values = as_list(as_mapping(model_presence).get("values"))
        if len(values) != len(rubrics):
            raise RowError(
                f"{key} has {len(values)} values for {len(rubrics)} criteria, so they cannot be"
                " matched"
            )
        seen = Counter[str]()
        for entry, verdict in zip(map(as_mapping, rubrics), values, strict=True):
            title = as_text(entry.get("title") or entry.get("criterion")) or ""
            seen[title] += 1
            yield {
                "task": row.get("task_name") or row.get("task"),
                "model": key.removesuffix("_present"),
                "criterion": title,
                "category": entry.get("category") or entry.get("axis"),
                "occurrence": seen[title],
                "verdict": _verdict_of(verdict),
                "judge": cell_label(row, "judge") or "people",
                "grading": row.get("grading"),
            }


def _verdict_of(verdict: Any) -> Any:
    """Return a verdict, or None for a word that marks a failed call or a reply without one."""
    return None if verdict in ("Error", "Unknown") else verdict


def _decoded(row: DataRow, name: str) -> Any:
    cell = row.get(name)
    try:
        return read_json(cell) if isinstance(cell, str) else cell
    except (ValueError, RecursionError) as error:
        raise RowError(f"`{name}` is not JSON ({error})") from error


BENCHMARK = Benchmark(
    name="researchrubrics",
    title="ResearchRubrics: deep research reports",
    columns=("prompt", "rubrics"),
    parse_row=parse_row,
    invariants={
        **USUAL_INVARIANTS,
        "weight_range": {"lowest": -5, "highest": 5},
        "criteria_per_task": {"fewest": 20, "most": 60},
        "title_once": {},
    },
    scores=(
        # The formula of the published code.
        ScoreDefinition(
            "compliance",
            numerator_negative=0.0,
            denominator_positive=1.0,
            denominator_negative=0.0,
            clips_mean=False,
            is_primary=True,
        ),
        # Equation 1 of the paper.
        ScoreDefinition(
            "paper_score",
            numerator_negative=0.0,
            denominator_positive=1.0,
            denominator_negative=-1.0,
            clips_mean=False,
            is_primary=False,
        ),
    ),
    gradings={"ternary": "researchrubrics_ternary_v2", "binary": "researchrubrics_binary_v2"},
    evidence_template="evidence_v2",
    default_dataset_id="ScaleAI/researchrubrics",
    licence="mit",
    severities=SEVERITIES,
    annotations=ANNOTATIONS,
    vocabularies={ANY_FIELD: {"category": AXES, **LEVELS}},
    common_breakdowns=("category", "severity", "subset"),
    breakdowns={
        "domain": "Domain",
        **{kind: vocabulary.title for kind, vocabulary in ANNOTATIONS.items()},
        "necessity": "Mandatory or optional",
    },
    figure_sources={
        "leaderboard": "equation 1 of the paper for the other score, paper_score",
        "failures": (
            "table 3 of the paper, whose figure is neither of these: it is a mean over tasks with a"
            " failure and counts a mistake that was not made as one"
        ),
        "variant_agreement": "tables 4 and 5 of the paper",
    },
    id_columns=ID_COLUMNS,
    graded_rows=graded_rows,
)
