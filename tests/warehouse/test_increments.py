"""The law of publishing: an incremental build gives the same rows as a build from all parts."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.kit import at, response, row
from tests.warehouse.conftest import SLOW_EXAMPLES, watched
from tests.warehouse.parts import (
    Row,
    as_facts,
    published,
    put,
    standing,
    stored,
    without_models,
)
from warehouse import Warehouse
from warehouse.compaction import compact_parts
from warehouse.publish import publish_parts

pytestmark = pytest.mark.slow

BATCHES = ["import-1", "import-2"]


def rows_to_publish(warehouse: Warehouse) -> dict[str, list[Row]]:
    """Return the rows to publish from the parts, computed without SQL."""
    retractions = stored(warehouse.store, "retractions")
    responses = stored(warehouse.store, "responses")
    verdicts = stored(warehouse.store, "verdicts")
    retracted = [
        retraction["import_batch"]
        for retraction in standing("retractions", retractions)
        if retraction["is_retracted"]
    ]
    current_responses = standing("responses", responses, retracted)
    withdrawn = {
        response["response_id"]
        for response in responses
        if response["import_batch"] in retracted
    }
    withdrawn -= {response["response_id"] for response in current_responses}
    kept_verdicts = [
        verdict for verdict in verdicts if verdict["response_id"] not in withdrawn
    ]
    return {
        "runs": standing("runs", stored(warehouse.store, "runs")),
        "responses": current_responses,
        "verdicts": standing("verdicts", kept_verdicts, retracted),
    }


keys = st.sampled_from("abcde")
moments = st.integers(1, 12)
statuses = st.sampled_from(["ok", "timeout", "refused"])
batches = st.sampled_from([None, None, *BATCHES])
response_lists = st.lists(
    st.tuples(keys, statuses, batches),
    min_size=1,
    max_size=3,
)
verdict_lists = st.lists(
    st.tuples(keys, statuses, batches, keys),
    min_size=1,
    max_size=3,
)
run_lists = st.lists(
    keys,
    min_size=1,
    max_size=3,
    unique=True,
)
retractions = st.tuples(st.sampled_from(BATCHES), st.booleans())
publishing = st.just(("publish", 0, None))
events = st.one_of(
    st.tuples(st.just("responses"), moments, response_lists),
    st.tuples(st.just("verdicts"), moments, verdict_lists),
    st.tuples(st.just("runs"), moments, run_lists),
    st.tuples(st.just("retractions"), moments, retractions),
    publishing,
    publishing,
    st.tuples(st.just("compact"), st.integers(2, 8), st.none()),
)


def happen(
    warehouse: Warehouse, number: int, name: str, number_given: int, content: Any
):
    if name == "publish":
        warehouse.publish()
    elif name == "compact":
        warehouse.publish()
        compact_parts(warehouse.store, large_rows=number_given)
        if number % 2:  # else as if killed before rebuilding the database
            publish_parts(warehouse.store, must_rebuild=True)
    else:
        rows = list(rows_of_part(number, name, content))
        put(warehouse.root, name, number_given, rows)


def rows_of_part(number: int, table_name: str, content: Any) -> Iterator[Row]:
    """Yield the rows of a part; each contains the number of its part."""
    if table_name == "responses":
        for position, (key, status, batch) in enumerate(content):
            columns = {"import_batch": batch, "error": f"{number}.{position}"}
            yield response(key, status=status, **columns) | {"response_id": key}
    elif table_name == "verdicts":
        for position, (key, status, batch, response_id) in enumerate(content):
            yield row(
                "verdicts",
                verdict_id=f"v-{key}",
                response_id=response_id,
                status="met" if status == "ok" else status,
                import_batch=batch,
                error=f"{number}.{position}",
            )
    elif table_name == "runs":
        for key in content:
            yield row("runs", run_id=key, command=str(number))
    else:
        batch, is_retracted = content
        yield row(
            "retractions",
            import_batch=batch,
            is_retracted=is_retracted,
            created_at=at(number),
        )


@settings(SLOW_EXAMPLES, max_examples=10)
@given(history=st.lists(events, min_size=3, max_size=10))
def test_whatever_was_done_in_any_order_is_published_as_from_scratch(history):
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as monkeypatch,
    ):
        without_models(monkeypatch)
        copies = watched(monkeypatch)
        warehouse = Warehouse(Path(folder))
        for number, (name, number_given, content) in enumerate(history):
            happen(warehouse, number, name, number_given, content)
        warehouse.publish()
        event(f"with additions: {any(copies)}")

        for table_name, rows in rows_to_publish(warehouse).items():
            published_rows = published(warehouse, table_name)
            assert as_facts(published_rows) == as_facts(rows), table_name
