"""Rows that are replaced where they stand: nothing else changes, and what is published follows."""

from typing import Any

import pytest

from tests.builders import criterion, response, verdict
from tests.warehouse.parts import published
from warehouse import Warehouse, take_notices
from warehouse.parts import manifest

RESPONSES = [response("t1"), response("t2")]


def decisions(value: float | None, *tasks: str) -> list[dict[str, Any]]:
    return [verdict(one, criterion(one["task_id"], 0, 1.0), value) for one in RESPONSES if one["task_id"] in tasks]


def standing(warehouse: Warehouse) -> dict[str, float | None]:
    return {row["task_id"]: row["value"] for row in published(warehouse, "verdicts")}


@pytest.fixture
def filled(warehouse: Warehouse) -> Warehouse:
    """Two verdicts in two parts; on one of them there was a failure first."""
    warehouse.write("responses", RESPONSES)
    warehouse.write("verdicts", decisions(None, "t1"))
    warehouse.write("verdicts", decisions(1.0, "t1", "t2"))
    warehouse.publish()
    assert {"t1": 1.0, "t2": 1.0} == standing(warehouse)
    return warehouse


def test_a_decided_row_can_become_a_failure_and_be_decided_again(filled: Warehouse) -> None:
    (failed,) = decisions(None, "t1")
    filled.rewrite("verdicts", {(failed["verdict_id"],): failed})
    assert filled.publish()
    assert {"t1": None, "t2": 1.0} == standing(filled)

    filled.write("verdicts", decisions(0.0, "t1"))
    filled.publish()
    assert {"t1": 0.0, "t2": 1.0} == standing(filled)
    filled.compact(grace_s=0.0)
    filled.compact(grace_s=0.0)
    filled.publish(must_rebuild=True)
    assert {"t1": 0.0, "t2": 1.0} == standing(filled)


def test_a_part_that_was_rewritten_is_not_missing_and_nothing_of_it_is_restored(filled: Warehouse) -> None:
    (wrong,) = decisions(0.0, "t1")
    filled.rewrite("verdicts", {(wrong["verdict_id"],): wrong})
    filled.compact(grace_s=0.0)
    filled.verify()

    assert [] == take_notices(filled.root)
    assert [] == filled.losses()
    assert {"t1": 0.0, "t2": 1.0} == standing(filled)


def test_a_row_can_be_removed_and_come_again(filled: Warehouse) -> None:
    (gone,) = decisions(1.0, "t2")
    filled.rewrite("verdicts", {(gone["verdict_id"],): None})
    filled.publish()
    assert {"t1": 1.0} == standing(filled)

    filled.write("verdicts", [gone])
    filled.publish()
    assert {"t1": 1.0, "t2": 1.0} == standing(filled)


def test_a_row_in_a_merged_part_can_be_replaced(filled: Warehouse) -> None:
    filled.compact()
    (other,) = decisions(0.0, "t1")
    filled.rewrite("verdicts", {(other["verdict_id"],): other})
    assert filled.publish()
    assert {"t1": 0.0, "t2": 1.0} == standing(filled)


def test_a_switch_that_does_not_come_leaves_all_as_it_was(filled: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    (other,) = decisions(0.0, "t1")
    with monkeypatch.context() as patched:
        patched.setattr(manifest, "write_manifest", dies)
        with pytest.raises(KeyboardInterrupt):
            filled.rewrite("verdicts", {(other["verdict_id"],): other})
    assert not filled.publish()
    filled.rewrite("verdicts", {(other["verdict_id"],): other})
    filled.publish()
    assert {"t1": 0.0, "t2": 1.0} == standing(filled)


def test_a_row_that_is_not_there_changes_nothing(filled: Warehouse) -> None:
    filled.rewrite("verdicts", {("nobody's",): None})
    filled.rewrite("verdicts", {})
    assert not filled.publish()
