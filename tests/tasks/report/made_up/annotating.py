"""Annotations of the made-up tasks: two models' labels, one of a kind that the data set has and one that it has not."""

from collections.abc import Iterator, Sequence

from tests.builders import at, row
from tests.tasks.report.made_up.attacks import Taint
from tests.tasks.report.made_up.results import Asked, Row

ANNOTATORS = ("annotator-one", "annotator-two")
PLACES = ("DE", "FR", "US-CA")


def annotation_rows(asked: Sequence[Asked], revision: str, taint: Taint) -> list[Row]:
    """The rows of `task_annotations`; which label it is, the places of task and annotator decide."""
    names = [taint.name(name) for name in ANNOTATORS]
    return [found for each in asked for which, name in enumerate(names) for found in _of_task(each, which, name, taint,
                                                                                           revision)]  # fmt: skip


def _of_task(each: Asked, which: int, name: str, taint: Taint, revision: str) -> Iterator[Row]:
    place = PLACES[(each.number // 3 + which * (each.number % 4 == 0)) % len(PLACES)]
    released = list(each.task.decision_types)
    labels = {"jurisdiction": [place], "decision_type": released[: 1 + which] or [f"None of {each.number % 2}"]}
    for kind, (primary, *secondary) in labels.items():
        has_failed = (kind, which, each.number) == ("jurisdiction", 0, 0)
        yield row(
            "task_annotations", dataset_revision=revision, task_id=each.task.task_id,
            annotation_id=f"{kind} {which} {each.number}", conversation_id=each.task.conversation_id, kind=kind,
            annotator=name, annotator_config_hash="a-configuration", template_hash="a-template", trial=1,
            status="parse_error" if has_failed else "ok", primary_label=None if has_failed else primary,
            secondary_labels=None if has_failed else secondary, created_at=at(1),
            explanation=None if has_failed else taint("The request says so."),
        )  # fmt: skip
