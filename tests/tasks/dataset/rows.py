"""Made-up rows in the 48-column shape in which the hub serves the benchmark."""

from typing import Any

import pyarrow as pa

TURNS = range(10)

_ANNOTATIONS = pa.struct(
    [
        (name, pa.int64() if name.endswith("_weight") else pa.string())
        for name in (
            "criteria_category",
            "criteria_description",
            "critically_detrimental_weight",
            "critically_important_weight",
            "detrimental_weight",
            "field_for_category",
            "important_weight",
            "slightly_detrimental_weight",
            "slightly_important_weight",
            "weight_class",
        )
    ]
)
_CRITERION = pa.struct(
    [("annotations", _ANNOTATIONS), ("id", pa.string()), ("title", pa.string())]
)


_OF_TURN = (
    ("prompt", pa.string()),
    ("response", pa.string()),
    ("model", pa.string()),
    ("reference_texts", pa.list_(pa.string())),
)
_UNUSED = {"response_9", "model_9"}
"""The last turn is the user's, so it has no response and no model."""
HUB_SCHEMA = pa.schema(
    [
        ("task", pa.string()),
        ("turns", pa.int64()),
        ("field", pa.string()),
        ("topic", pa.string()),
        ("expert", pa.string()),
        ("scratchpad", pa.string()),
        ("rubric", pa.list_(_CRITERION)),
        *(
            (f"{name}_{i}", kind)
            for i in TURNS
            for name, kind in _OF_TURN
            if f"{name}_{i}" not in _UNUSED
        ),
        ("economic_pathway", pa.string()),
        ("decision_type", pa.string()),
        ("canary", pa.string()),
    ]
)
"""The 48 columns in the hub's order, with types, also for columns that are null in every row."""


def hub_criterion(
    criterion_id: str,
    weight_class: str,
    weight: int,
    **changes: Any,
) -> dict[str, Any]:
    """One criterion with `weight` in the field that `weight_class` names.

    `changes` replace annotations, for example a second weight left over from editing.
    """
    annotations = {field.name: None for field in _ANNOTATIONS}
    annotations |= {
        "criteria_category": "Financial Accuracy",
        "criteria_description": f"Why {criterion_id} matters.",
        "field_for_category": "finance",
        "weight_class": weight_class,
        weight_class.replace(" ", "_") + "_weight": weight,
    }
    return {
        "annotations": annotations | changes,
        "id": criterion_id,
        "title": f"States what {criterion_id} asks for. ",
    }


def hub_row(task_id: str, **changes: Any) -> dict[str, Any]:
    """One task as the hub delivers it: all 48 columns, nested rubric, made-up text.

    `changes` replace columns by name. Raises KeyError for a column that the hub does not have.
    """
    row = dict.fromkeys(HUB_SCHEMA.names)
    row |= {f"reference_texts_{turn}": [] for turn in TURNS}
    row |= {
        "task": task_id,
        "turns": 1,
        "field": "Finance",
        "topic": "Corporate Finance",
        "expert": "Expert",
        "scratchpad": "Notes of the author.",
        "prompt_0": f"What does {task_id} cost?",
        "rubric": [
            hub_criterion(
                f"{task_id}-c0",
                "critically important",
                9,
                important_weight=5,
            ),
            hub_criterion(f"{task_id}-c1", "detrimental", -6),
        ],
        "reference_texts_0": ["A price list.", "A second price list."],
        "economic_pathway": "Risk & Resilience",
        "decision_type": "Non-decision / Informational",
        "canary": f"prbench:sample:finance:{task_id}",
    }
    unknown = changes.keys() - row.keys()
    if unknown:
        raise KeyError(f"not a column of the hub: {sorted(unknown)}")
    return row | changes
