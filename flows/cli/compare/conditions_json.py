"""The answer of `prbench conditions` for machines."""

from dataclasses import asdict
from typing import Any

from flows.cli.compare.conditions_notes import FAMILY, notes_on
from tasks.compare import ConditionsAnswer


def as_json(answer: ConditionsAnswer) -> dict[str, Any]:
    """Everything that is known of the comparisons: a list of tables, each with its rows and the changed criteria."""
    return {
        "conditions": {name: dict(labels) for name, labels in answer.definitions.items()},
        "score": answer.score,
        "label_score": answer.label_score,
        "family": FAMILY,
        "tables": [
            {
                **table.key,
                "differences": [*table.whole, *table.categories],
                "changes": [asdict(changes) for changes in table.changes],
            }
            for table in answer.tables
        ],
        "notes": notes_on(answer),
    }
