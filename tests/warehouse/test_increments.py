"""The law of publishing: an incremental build gives the same rows as a build from all parts."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from tests.kit import at, response, row
from tests.warehouse.conftest import watched
from tests.warehouse.parts import Row, as_facts, published, put, standing, stored, without_models
from warehouse import Warehouse
from warehouse.compaction import compact

pytestmark = pytest.mark.slow

BATCHES = ["import-1", "import-2"]


def expected(warehouse: Warehouse) -> dict[str, list[Row]]:
    """Return the rows to publish from the parts, computed without SQL."""
    rows = {
        name: stored(warehouse.store, name)
        for name in ("runs", "retractions", "responses", "verdicts")
    }
    gone = {
        each["import_batch"]
        for each in standing("retractions", rows["retractions"])
        if each["is_retracted"]
    }
    responses = standing("responses", rows["responses"], gone)
    withdrawn = {each["response_id"] for each in rows["responses"] if each["import_batch"] in gone}
    withdrawn -= {each["response_id"] for each in responses}
    verdicts = [each for each in rows["verdicts"] if each["response_id"] not in withdrawn]
    standing_verdicts = standing("verdicts", verdicts, gone)
    return {
        "runs": standing("runs", rows["runs"]),
        "responses": responses,
        "verdicts": standing_verdicts,
    }


keys = st.sampled_from("abcde")
moments = st.integers(1, 12)
statuses = st.sampled_from(["ok", "timeout", "refused"])
batches = st.sampled_from([None, None, *BATCHES])
events = st.one_of(
    st.tuples(
        st.just("responses"),
        moments,
        st.lists(st.tuples(keys, statuses, batches), min_size=1, max_size=3),
    ),
    st.tuples(
        st.just("verdicts"),
        moments,
        st.lists(st.tuples(keys, statuses, batches, keys), min_size=1, max_size=3),
    ),
    st.tuples(
        st.just("runs"),
        moments,
        st.lists(
            keys,
            min_size=1,
            max_size=3,
            unique=True,
        ),
    ),
    st.tuples(st.just("retractions"), moments, st.tuples(st.sampled_from(BATCHES), st.booleans())),
    *[st.just(("publish", 0, None))] * 2,
    st.tuples(st.just("compact"), st.integers(2, 8), st.none()),
)


def happen(warehouse: Warehouse, number: int, what: str, moment: int, given: Any) -> None:
    if what == "publish":
        warehouse.publish()
    elif what == "compact":
        if number % 2:
            warehouse.compact(large_rows=moment)
        else:  # as if killed before rebuilding the database
            compact(warehouse.store, large_rows=moment)
    elif what == "responses":
        put(
            warehouse.root,
            what,
            moment,
            [
                {
                    **response(
                        key,
                        status=status,
                        import_batch=batch,
                        error=f"{number}.{i}",
                    ),
                    "response_id": key,
                }
                for i, (key, status, batch) in enumerate(given)
            ],
        )
    elif what == "verdicts":
        put(
            warehouse.root,
            what,
            moment,
            [
                row(
                    "verdicts",
                    verdict_id=f"v-{key}",
                    response_id=of,
                    status={"ok": "met"}.get(status, status),
                    import_batch=batch,
                    error=f"{number}.{i}",
                )
                for i, (key, status, batch, of) in enumerate(given)
            ],
        )
    elif what == "runs":
        put(
            warehouse.root,
            what,
            moment,
            [row("runs", run_id=key, command=str(number)) for key in given],
        )
    else:
        batch, is_retracted = given
        values = {
            "import_batch": batch,
            "is_retracted": is_retracted,
            "created_at": at(number),
        }
        put(warehouse.root, what, moment, [row("retractions", **values)])


@settings(
    max_examples=10,
    suppress_health_check=[HealthCheck.too_slow],
    phases=set(Phase) - {Phase.explain},
)
@given(happening=st.lists(events, min_size=3, max_size=10))
def test_whatever_was_done_in_any_order_is_published_as_from_anew(
    happening: list[tuple[str, int, Any]],
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        without_models(monkeypatch)
        copies = watched(monkeypatch)
        warehouse = Warehouse(Path(folder))
        for number, (what, moment, of_it) in enumerate(happening):
            happen(warehouse, number, what, moment, of_it)
        warehouse.publish()
        event(f"with additions: {any(copies)}")
        for table_name, rows in expected(warehouse).items():
            assert as_facts(rows) == as_facts(published(warehouse, table_name)), table_name
