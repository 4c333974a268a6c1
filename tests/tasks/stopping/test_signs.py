"""The sign of differences: second minus first, for rows of this version and of earlier ones."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tasks.rules.stopping import Rule
from tasks.stopping.comparisons import EARLIER, ComparedModel, PlannedComparison
from tests.kit import Row, row
from tests.warehouse.parts import put_table
from warehouse import Warehouse
from warehouse.parts import begin
from warehouse.tables import TABLES

DIFFERENCES = (
    "mean_difference",
    "unbiased_difference",
    "sequence_low",
    "sequence_high",
)


def look(**values: Any) -> Row:
    return row(
        "stopping_looks",
        stopping_id="some",
        block=1,
        compared_vintage="base",
        compared_model="worse",
        model="better",
        decision="different",
        **values,
    )


OF_MODELS = look(
    mean_difference=0.2,
    unbiased_difference=0.1,
    sequence_low=0.05,
    sequence_high=0.35,
)
OF_NIGHT = look(
    mean_difference=-0.2,
    unbiased_difference=-0.1,
    sequence_low=-0.35,
    sequence_high=-0.05,
) | {"compared_vintage": EARLIER, "compared_model": "better", "decision": "dropped"}
OPEN_LOOK = look(mean_difference=0.0) | {"compared_model": "another"}


def put_old(root: Path, *looks: Row, moment: int = 1):
    """Write a part of looks as version 0.2.0 did: without the column that states the convention."""
    begin(root)
    schema = TABLES["stopping_looks"].schema
    table = pa.Table.from_pylist(list(looks), schema=schema)
    put_table(
        root, "stopping_looks", moment, table.drop_columns(["is_second_minus_first"])
    )


def differences_in(
    warehouse: Warehouse, table: str = "stopping_looks"
) -> list[tuple[Any, ...]]:
    """The differences of all rows, by the compared model and vintage."""
    columns = ", ".join(DIFFERENCES)
    query = f"select {columns} from {table} order by compared_model, compared_vintage"
    with warehouse.reader() as reader:
        return [tuple(values.values()) for values in reader.rows(query)]


@pytest.fixture
def old(tmp_path) -> Warehouse:
    """A warehouse with looks of an earlier version: of an open comparison, a night and two models,
    in the order of `differences_in`.
    """
    put_old(tmp_path, OF_MODELS, OF_NIGHT, OPEN_LOOK)
    return Warehouse(tmp_path)


TURNED = [
    (0.0, None, None, None),
    (-0.2, -0.1, -0.35, -0.05),
    (-0.2, -0.1, -0.35, -0.05),
]


def test_looks_of_an_earlier_version_are_turned_except_those_of_nights(old):
    old.publish()

    assert differences_in(old) == TURNED
    assert differences_in(old, "stopped_comparisons") == TURNED


def test_a_difference_of_zero_stays_without_a_sign(old):
    old.publish()

    (difference, *_) = differences_in(old)[0]
    assert str(difference) == "0.0"


def test_looks_of_this_version_stay_as_they_are(old):
    old.write(
        "stopping_looks", [OF_MODELS | {"block": 2, "is_second_minus_first": True}]
    )
    old.publish()

    with old.reader() as reader:
        [stored_look] = reader.select(
            "stopping_looks", ", ".join(DIFFERENCES), block=2
        )
    assert tuple(stored_look.values()) == (0.2, 0.1, 0.05, 0.35)


def test_looks_are_turned_once_when_parts_are_merged(old):
    put_old(old.root, OF_MODELS | {"block": 2}, moment=2)

    old.compact()
    old.compact()

    assert len(old.store.current_parts("stopping_looks")) == 1
    assert differences_in(old) == [*TURNED, TURNED[-1]]


def test_looks_of_a_lost_part_are_restored_with_the_same_signs(old):
    put_old(old.root, OF_MODELS | {"compared_model": "zero"}, moment=2)
    old.publish()
    old.store.current_parts("stopping_looks")[0].unlink()

    old.verify()

    assert differences_in(old) == [*TURNED, TURNED[-1]]


def test_a_night_is_stored_as_the_model_that_is_compared_with_earlier_nights():
    earlier = ComparedModel("good", "a-hash", EARLIER)
    tonight = ComparedModel("good", "a-hash", "2026-11-03")
    rule = Rule("dropped", 0.05, 0.02, (20,))

    comparison = PlannedComparison(earlier, tonight, rule, ("a-task",))

    assert comparison.columns["vintage"] == "2026-11-03"
    assert comparison.columns["compared_vintage"] == EARLIER
    assert comparison.evaluated_sides == (tonight,)


def test_two_models_are_stored_in_their_order():
    first = ComparedModel("good", "a-hash", "base")
    second = ComparedModel("bad", "another", "base")
    rule = Rule("different", 0.05, 0.02, (20,))

    comparison = PlannedComparison(first, second, rule, ("a-task",))

    assert comparison.columns["model"] == "good"
    assert comparison.columns["compared_model"] == "bad"
