"""Made-up rows in the shape of ResearchRubrics."""

from typing import Any

AXES = (
    "Explicit Criteria",
    "Implicit Criteria",
    "Synthesis of Information",
    "Communication Quality",
    "Instruction Following",
    "References & Citation Quality",
)
WEIGHTS = (5, 4, 4, 3, 3, 2, 2, 1, 1, 5, 4, 3, 2, 1, 3, 2, -1, -2, -4, -5)


def research_row(
    number: int,
    n_criteria: int = 20,
    **changed: Any,
) -> dict[str, Any]:
    """A task in the hub's shape with criteria of all axes and weights, some with examples in
    parentheses.
    """
    rubrics = [
        {
            "criterion": (
                f"Says {i} about subject {number}"
                + (f" (e.g., the case of (a) {i})." if i % 2 else ".")
            ),
            "weight": float(WEIGHTS[i % len(WEIGHTS)]),
            "axis": AXES[i % len(AXES)],
        }
        for i in range(n_criteria)
    ]
    return {
        "sample_id": f"r{number}",
        "prompt": f"Write a report on subject {number}.",
        "domain": ("STEM", "Travel", "Current Events")[number % 3],
        "conceptual_breadth": ("Simple", "Moderate", "High")[number % 3],
        "logical_nesting": ("Shallow", "Intermediate", "Deep")[number // 3 % 3],
        "exploration": ("Low", "Medium", "High")[number // 2 % 3],
        "rubrics": rubrics,
        **changed,
    }
