"""Samplings of models over time, and what may change between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.kit import REVISION, Rows, at, combined, row
from tests.tasks.compare.comparisons import judged, tasks_of

RUBRICS = dict.fromkeys(("t0", "t1"), [(5, "Risk")] * 2)


@dataclass(frozen=True)
class Sampling:
    """A model's responses to both tasks at a time, and a judge's values on the four criteria, two
    for each task.

    `judged_s` is the time of judging, if different; `verdict_columns` are changed columns of the verdicts.
    """

    vintage: str
    responded_s: float
    values: Sequence[float | None]
    model: str = "ada"
    judge: str = "judge"
    revision: str = REVISION
    configuration: str = "a-configuration"
    judged_s: float | None = None
    verdict_columns: Mapping[str, Any] = field(default_factory=dict)


def rows_by_table(samplings: Sequence[Sampling]) -> Rows:
    """Return the stored rows of samplings: tasks, criteria, responses and verdicts."""
    revisions = dict.fromkeys(
        (REVISION, *(sampling.revision for sampling in samplings))
    )
    tables = combined(
        *(tasks_of(RUBRICS, revision=revision) for revision in revisions),
        *map(_rows, samplings),
    )
    # Several judge configurations of one sampling share its responses.
    tables["responses"] = list(
        {
            response_row["response_id"]: response_row
            for response_row in tables["responses"]
        }.values()
    )
    return tables


def _rows(sampling: Sampling) -> Rows:
    judged_s = (
        sampling.responded_s if sampling.judged_s is None else sampling.judged_s
    )
    response_columns = {
        "vintage": sampling.vintage,
        "created_at": at(sampling.responded_s),
        "dataset_revision": sampling.revision,
        "model_config_hash": sampling.configuration,
    }
    verdict_columns = {
        "judge": sampling.judge,
        "created_at": at(judged_s + 1),
        **sampling.verdict_columns,
    }
    decided = {"t0": sampling.values[:2], "t1": sampling.values[2:]}
    return judged(
        decided,
        sampling.model,
        rubrics=RUBRICS,
        of_response=response_columns,
        **verdict_columns,
    )


FIRST = Sampling("n1", 100, (1, 0, 0, 0))
SECOND = Sampling("n2", 200, (1, 1, 0, 0))
THIRD = Sampling("n3", 300, (1, 1, 1, 0))
PEOPLE = {"judge_config_hash": "imported", "template_hash": "imported"}


def then(**changes: Any) -> list[Sampling]:
    """The second and third night, with something changed since the first."""
    return [replace(sampling, **changes) for sampling in (SECOND, THIRD)]


SCENARIOS: dict[str, list[Sampling]] = {
    "going on": [
        THIRD,
        Sampling("base", 0, (0, 0, 0, 0)),
        FIRST,
        SECOND,
    ],
    # The scope is of the later revision, so the first night has the other one.
    "data set": [
        replace(FIRST, revision="another"),
        SECOND,
        THIRD,
    ],
    "model": [FIRST, *then(configuration="second-configuration")],
    "judge": [FIRST, *then(verdict_columns={"judge_config_hash": "another"})],
    "template": [FIRST, *then(verdict_columns={"template_hash": "another"})],
    "grading": [FIRST, *then(verdict_columns={"grading": "ternary"})],
    "data set, template": [
        replace(
            FIRST,
            revision="another",
            verdict_columns={"template_hash": "another"},
        ),
        SECOND,
        THIRD,
    ],
    "changed back": [
        FIRST,
        replace(SECOND, verdict_columns={"template_hash": "another"}),
        THIRD,
    ],
    "judged by both": [
        FIRST,
        SECOND,
        replace(
            SECOND,
            values=(1, 1, 1, 1),
            judged_s=250,
            verdict_columns={"template_hash": "of the second"},
        ),
        replace(THIRD, verdict_columns={"template_hash": "of the second"}),
    ],
    "a night lost": [
        FIRST,
        replace(
            SECOND,
            values=(None, 1, None, 1),
            verdict_columns={"template_hash": "lost"},
        ),
        THIRD,
    ],
    "two judges": [
        FIRST,
        SECOND,
        replace(
            FIRST,
            values=(1, 1, 1, 1),
            judge="second",
        ),
        replace(
            SECOND,
            values=(1, 1, 1, 0),
            judge="second",
        ),
    ],
    "taken over": [
        FIRST,
        SECOND,
        replace(THIRD, judge="second"),
    ],
    "people": [FIRST, replace(SECOND, judge="people", verdict_columns=PEOPLE)],
}
"""Model -> its samplings."""
CONTROLLED = {
    "set_id": "a-set",
    "task_id": "t0",
    "judge": "judge",
    "response_id": "r",
    "criterion_id": "c",
    "criterion_hash": "h",
    "verdict_id": "v",
}
DRIFT = {
    "control_set": [row("control_set", first_value=1.0, **CONTROLLED)],
    # The verdict of the second night differs from the first verdict.
    "control_verdicts": [
        row(
            "control_verdicts",
            judge_vintage="n2",
            value=0.0,
            status="unmet",
            **CONTROLLED,
        )
    ],
    "control_limits": [
        row(
            "control_limits",
            set_id="a-set",
            night="n2",
            n_decided=1,
            n_agreeing=0,
            cause="bar",
        )
    ],
}
