"""The runs that made the made-up results, and what their calls came to."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tasks.config.settings import Settings
from tests.builders import row
from tests.tasks.report.made_up.attacks import Taint
from tests.tasks.report.made_up.contenders import NIGHTS, run_of
from tests.tasks.report.made_up.results import BASE_RUN, IMPORT_RUN, Row

_TABLES = {"sample": "responses", "judge": "verdicts", "drift": "control_verdicts"}
"""Where the rows are that calls for a purpose made."""
_TOTALS = ("prompt_tokens", "cached_tokens", "completion_tokens")


def run_rows(
    settings: Settings, nights: dict[str, str], made: dict[str, list[Row]], taint: Taint
) -> dict[str, list[Row]]:
    """The runs that made the rows, one that was killed and one that failed, and what their calls came to.

    `nights` are the labels of the nights, by day.
    """
    runs: dict[str, tuple[str | None, str, str]] = {
        BASE_RUN: (None, "prbench run", "done"),
        IMPORT_RUN: (None, "prbench import responses grove.jsonl", "done"),
        "20260930T190000-killed": (None, "prbench run --limit 4", "killed"),
        "20261003T120000-failed": (None, taint("prbench run --config other.yaml"), "failed"),
    } | {
        run_of(night): (label, "prbench nightly", "below_bar" if night == NIGHTS[-1] else "done")
        for night, label in nights.items()
    }
    # What was imported was not called for.
    called = {
        purpose: _by("run_id", (each for each in made[table] if each["run_id"] != IMPORT_RUN))
        for purpose, table in _TABLES.items()
    }
    document = settings.model_dump(mode="json")
    document["dataset"]["source"] = "data"  # the folder is another one for each call
    config = json.dumps(document, sort_keys=True)
    return {
        "runs": [_run(run_id, told, config, called) for run_id, told in runs.items()],
        "spend": [
            _spent(run_id, purpose, model, of_model)
            for purpose, by_run in called.items()
            for run_id, rows in by_run.items()
            for model, of_model in _by("model" if purpose == "sample" else "judge", rows).items()
        ],
    }


def _run(run_id: str, told: tuple[str | None, str, str], config: str, called: dict[str, dict[str, list[Row]]]) -> Row:
    night, command, outcome = told
    rows = [each for by_run in called.values() for each in by_run.get(run_id, [])]
    costs = [each["cost_usd"] for each in rows]
    start = datetime.strptime(run_id[:15], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    return row(
        "runs", run_id=run_id, command=command, night=night, config=config, outcome=outcome, started_at=start,
        ended_at=None if outcome == "killed" else start + timedelta(minutes=32), git_commit="0123456789" * 4,
        calls=sum(each["attempts"] for each in rows), responses_made=len(called["sample"].get(run_id, [])),
        verdicts_made=len(called["judge"].get(run_id, [])), cached_share=0.5 if rows else None,
        cost_usd=None if None in costs else sum(costs), **_totals(rows),
    )  # fmt: skip


def _spent(run_id: str, purpose: str, model: str, rows: Sequence[Row]) -> Row:
    first = min(each["created_at"] for each in rows)
    return row(
        "spend", run_id=run_id, day=first.date().isoformat(), purpose=purpose, called_model=f"hosted_vllm/{model}",
        calls=sum(each["attempts"] for each in rows), failed_calls=0,
        unpriced_calls=sum(each["cost_usd"] is None for each in rows),
        cost_usd=sum(each["cost_usd"] or 0.0 for each in rows), created_at=first, **_totals(rows),
    )  # fmt: skip


def _by(column: str, rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for each in rows:
        found[each[column]].append(each)
    return found


def _totals(rows: Sequence[Row]) -> dict[str, Any]:
    return {name: sum(each[name] or 0 for each in rows) for name in _TOTALS}
