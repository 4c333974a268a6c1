"""Reviews of the made-up criteria: two people's on a sample, and a model's on all, in two repetitions."""

import json
from collections.abc import Sequence

from tests.builders import at, row
from tests.tasks.report.made_up.attacks import Taint
from tests.tasks.report.made_up.results import Asked, Row

PEOPLE = ("Reviewer One", "Reviewer Two")
MODEL = "reviewer-model"
CHECKS = ("atomic", "objective", "self_contained", "consistent", "not_given_away")
_PROBABILITY = 0.5


def review_rows(asked: Sequence[Asked], revision: str, taint: Taint) -> dict[str, list[Row]]:
    """The rows by table; what each reviewer says is decided by the places of task and criterion."""
    places = [
        (each.number, criterion.position, {
            "dataset_revision": revision, "task_id": each.task.task_id, "criterion_id": criterion.criterion_id,
            "criterion_hash": criterion.content_hash,
        })
        for each in asked
        for criterion in each.task.criteria
    ]  # fmt: skip
    sampled = [place for place in places if (place[0] + place[1]) % 2 == 0]
    people, model = [taint.name(name) for name in PEOPLE], taint.name(MODEL)
    return {
        "review_samples": [
            row("review_samples", **key, sample_id="a-sample", population_id="all", n_population=len(places),
                design="simple random", stratum="all", probability=_PROBABILITY)
            for _, _, key in sampled
        ],
        "expert_reviews": [
            row("expert_reviews", **key, review_id=f"{name} {number} {position}", reviewer=name, sample_id="a-sample",
                value=float(not is_bad), explanation=taint("Two experts would differ.") if is_bad else None,
                better_wording=taint("Says which year.") if is_bad else None, import_batch="a-batch")
            for which, name in enumerate(people)
            for number, position, key in sampled
            for is_bad in [(number * 7 + position * 3 + which) % 11 == 0]
        ],
        "model_reviews": [
            row("model_reviews", **key, review_id=f"{trial} {number} {position}", reviewer=model,
                reviewer_config_hash="a-configuration", review_trial=trial, created_at=at(trial),
                status="timeout" if (number, position) == (0, 0) else "ok",
                findings=None if (number, position) == (0, 0) else json.dumps([
                    {"name": name, "passes": (number * 5 + position * (place + 2) + trial // 2) % 7 > 0,
                     "reason": taint(f"It is {name}, or not.")}
                    for place, name in enumerate(CHECKS)
                ]))
            for trial in (1, 2)
            for number, position, key in places
        ],
    }  # fmt: skip
