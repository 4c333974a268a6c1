"""Made-up looks: a comparison that was settled in its second block, and one that is open after all tasks."""

from typing import Any

from tests.builders import at, row
from tests.tasks.report.made_up.results import Row


def look_rows(board: list[dict[str, Any]]) -> dict[str, list[Row]]:
    """The looks of the first model of a board beside the two that follow, each with all columns of a judging."""
    first, *others = board[:3]
    judging = {name: first[name] for name in ("dataset_revision", "judge", "judge_config_hash", "template_hash")}
    found = []
    for place, other in enumerate(others):
        for block in (1, 2):
            is_open = place == 1 or block == 1
            found.append(row(
                "stopping_looks", **judging, stopping_id="made up", grading=first["grading"], judge_trial=1,
                score_name="score", model=first["model"], model_config_hash=first["model_config_hash"],
                vintage=first["vintage"], compared_model=other["model"],
                compared_config_hash=other["model_config_hash"], compared_vintage=other["vintage"], block=block,
                n_tasks=20 * block - 1, n_tasks_evaluated=20 * block, n_tasks_planned=60 - 20 * place,
                mean_difference=0.2 - 0.19 * place, unbiased_difference=None if is_open else 0.17,
                sequence_low=None if block == 1 else 0.05 - 0.2 * place,
                sequence_high=None if block == 1 else 0.35 - 0.1 * place, comparison_alpha=0.025,
                least_difference=0.02, decision="open" if is_open else "different", created_at=at(block),
            ))  # fmt: skip
    return {"stopping_looks": found}
