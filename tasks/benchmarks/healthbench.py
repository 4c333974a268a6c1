"""HealthBench (OpenAI, 2025): conversations about health, graded by physicians' rubrics.

The consensus subset has other rubrics for the same prompts, so it is a separate data set: ingest it
alone. The hard subset repeats rows of the full set, and can be a split of the same data set.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tasks.benchmarks.base import (
    ANY_FIELD,
    USUAL_INVARIANTS,
    Benchmark,
    DataRow,
    GradedRowReader,
    RowError,
)
from tasks.benchmarks.rows import (
    as_items,
    as_list,
    as_text,
    cell_label,
    cell_text,
    criterion_from,
    message_text,
    nested,
    response_text,
    task_from,
)
from tasks.rules.identity import digest
from tasks.rules.records import Criterion, Label, ScoreDefinition, Task, Turn
from tasks.rules.text.characters import is_blank

AXES = frozenset(
    {
        "accuracy",
        "completeness",
        "context_awareness",
        "communication_quality",
        "instruction_following",
    }
)
_TAG = "tag"
"""The kind of label of a tag that names no kind (it has no colon)."""
META_MODEL = "meta-evaluation"
"""The label for models whose responses physicians graded, because the data does not name these
models.
"""


def parse_row(row: DataRow) -> Task:
    """Return a row as a task; example tags become labels, and the theme is the field.

    Raises:
        RowError: the row has no id, or a message has another role than user or assistant.
    """
    labels = _labels(row.get("example_tags"))
    return task_from(
        cell_label(row, "prompt_id"),
        _conversation(as_items(row.get("prompt"))),
        _criteria(as_items(row.get("rubrics"))),
        field=_label_of(labels, "theme"),
        labels=labels,
        canary=cell_label(row, "canary"),
    )


def _conversation(messages: Sequence[DataRow]) -> tuple[Turn, ...]:
    turns = []
    for message in messages:
        role = cell_label(message, "role")
        content = message_text(message)
        if role == "user":
            turns.append(Turn(content, (), None))
        elif role == "assistant":
            follows_prompt = bool(turns) and turns[-1].response is None
            prompt = turns.pop().prompt if follows_prompt else None
            turns.append(Turn(prompt, (), content))
        else:
            raise RowError(f"a message has the role {role!r}; it is user or assistant")
    return tuple(turns)


def _criteria(items: Sequence[DataRow]) -> tuple[Criterion, ...]:
    seen = Counter[str]()
    criteria = []
    for position, item in enumerate(items):
        title = cell_text(item, "criterion") or ""
        labels = _labels(item.get("tags"))
        # The data has no ids. An id depends on the text alone, since points and tags may change; a
        # text may occur twice.
        criterion_id = digest("healthbench", title)[:12]
        seen[criterion_id] += 1
        if seen[criterion_id] > 1:
            criterion_id += f"-{seen[criterion_id]}"
        criteria.append(
            criterion_from(
                criterion_id,
                position,
                title,
                item.get("points"),
                category=_label_of(labels, "axis"),
                labels=labels,
            )
        )
    return tuple(criteria)


def _label_of(labels: Iterable[Label], kind: str) -> str | None:
    """Return the first label of a kind, if there is one."""
    return next((label for label_kind, label in labels if label_kind == kind), None)


def _labels(tags: Any) -> tuple[Label, ...]:
    """Return tags such as `theme:hedging` as kind and label."""
    labels = []
    for tag in map(as_text, as_list(nested(tags))):
        if tag is not None and not is_blank(tag):
            kind, colon, label = tag.partition(":")
            labels.append((kind, label) if colon else (_TAG, kind))
    return tuple(labels)


def graded_rows() -> GradedRowReader:
    """Return a reader of meta-evaluation rows.

    Such a row has a completion, a criterion, and every physician's decision. The completions of a
    prompt are numbered as trials, in the order of their first appearance. The physicians of a row
    are numbered as graders, in its order; their ids are in the explanation.
    """
    trials: dict[str, dict[str, int]] = defaultdict(dict)

    def read(row: DataRow) -> Iterator[DataRow]:
        if "binary_labels" not in row:
            yield row
            return
        task = cell_label(row, "prompt_id") or ""
        text = response_text(row, "completion")
        completion = cell_label(row, "completion_id") or digest("completion", text)
        trial = trials[task].setdefault(completion, len(trials[task]) + 1)
        judge = cell_label(row, "judge") or "physician"
        physicians = as_list(nested(row.get("anonymized_physician_ids")))
        for index, decision in enumerate(as_list(nested(row.get("binary_labels")))):
            yield {
                "task": task,
                "model": cell_label(row, "model") or META_MODEL,
                "trial": row.get("trial") or trial,
                "response": row.get("completion"),
                "criterion": row.get("rubric"),
                "judge": f"{judge} {index + 1}",
                "criteria_met": decision,
                "grading": "binary",
                "explanation": f"by {physicians[index]}" if index < len(physicians) else None,
            }

    return read


BENCHMARK = Benchmark(
    name="healthbench",
    title="HealthBench: conversations about health",
    columns=("prompt", "prompt_id", "rubrics"),
    parse_row=parse_row,
    invariants={
        **USUAL_INVARIANTS,
        "weight_range": {"lowest": -10, "highest": 10},
        "criteria_per_task": {"fewest": 1},
        "turns_contiguous": {},
    },
    # Achieved points divided by positive points; the mean over examples is clipped.
    scores=(
        ScoreDefinition(
            "score",
            numerator_negative=0.0,
            denominator_positive=1.0,
            denominator_negative=0.0,
            clips_mean=True,
            is_primary=True,
        ),
    ),
    gradings={"binary": "healthbench_v2"},
    default_dataset_id="openai/healthbench",
    licence="mit",
    severities={},
    vocabularies={ANY_FIELD: {"category": AXES}},
    common_breakdowns=("category", "turns", "subset"),
    breakdowns={
        "theme": "Theme",
        "physician_agreed_category": "Category that physicians agreed on",
        "level": "Level of criteria",
        "axis": "Axis",
        "cluster": "Cluster of criteria",
        _TAG: "Other tags",
    },
    id_columns=("prompt_id",),
    graded_rows=graded_rows,
)
