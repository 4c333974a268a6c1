"""Operations data for the made-up results: the first judge's control set, the checks, and the runs
with their costs.
"""

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.prbench import SEVERITIES
from tasks.check import default_policy, expectations_of
from tasks.config.settings import Settings
from tasks.rules.identity import digest
from tasks.rules.records import Task
from tasks.rules.statistics.control import METHOD, limits
from tests.kit import Rows, row
from tests.tasks.report.synthetic.attacks import Taint
from tests.tasks.report.synthetic.contenders import DRIFT_NIGHT, NIGHTS, run_of
from tests.tasks.report.synthetic.results import BASE_RUN, CAUSES, IMPORT_RUN, Row

N_CONTROL = 60
_DRIFT_SHARE = 0.6
_USUAL_SHARE = 0.03
"""The share of unmet verdicts that become met in the night of the drift; the share that changes in
other nights.
"""
_FAILED_SHARE = 0.005


def control_rows(
    verdicts: Sequence[Row], conversations: dict[str, str], nights: dict[str, str]
) -> Rows:
    """The rows of a judge's control set, chosen from its verdicts, its decisions in each night, and
    the limits.

    `nights` are the labels of the nights, by day.
    """
    decided = [each for each in verdicts if each["value"] is not None and each["trial"] == 1]
    chosen = decided[:: len(decided) // N_CONTROL][:N_CONTROL]
    set_id = digest("control set", [each["verdict_id"] for each in chosen])
    same = (
        "dataset_revision",
        "task_id",
        "judge",
        "judge_config_hash",
        "template_hash",
        "grading",
        "judge_trial",
        "response_id",
        "verdict_id",
        "criterion_id",
        "criterion_hash",
        "model",
        "trial",
        "vintage",
    )
    members = [
        row(
            "control_set",
            set_id=set_id,
            conversation_id=conversations[each["task_id"]],
            first_value=each["value"],
            run_id=BASE_RUN,
            created_at=chosen[0]["created_at"],
            **{name: each[name] for name in same},
        )
        for each in chosen
    ]
    again = [
        row(
            "control_verdicts",
            set_id=set_id,
            judge_vintage=label,
            explanation=each["explanation"],
            served_model=each["judge"],
            run_id=run_of(night),
            created_at=datetime.fromisoformat(f"{night}T01:25Z"),
            **{name: each[name] for name in same if name != "verdict_id"},
            **_decided_anew(each, night, is_drift=night == DRIFT_NIGHT),
        )
        for night, label in nights.items()
        for each in chosen
    ]
    return {
        "control_set": members,
        "control_verdicts": again,
        "control_limits": _limits(set_id, chosen, again),
    }


def _decided_anew(first: Row, night: str, *, is_drift: bool) -> Row:
    dice = random.Random(f"control {first['criterion_id']} {first['task_id']} {night}")
    value = first["value"]
    if is_drift:
        value = 1.0 if dice.random() < _DRIFT_SHARE else value
    elif dice.random() < _USUAL_SHARE:
        value = 1 - value
    tokens = {
        "prompt_tokens": first["prompt_tokens"],
        "cached_tokens": 0,
        "completion_tokens": 60,
    }
    called = {"cost_usd": first["cost_usd"], **tokens}
    if dice.random() < _FAILED_SHARE:
        return {
            "status": "parse_error",
            "value": None,
            "error": CAUSES["parse_error"],
            **called,
        }
    return {
        "status": "met" if value else "unmet",
        "value": value,
        **called,
    }


def _limits(set_id: str, chosen: Sequence[Row], again: Sequence[Row]) -> list[Row]:
    first = {(each["response_id"], each["criterion_id"]): each["value"] for each in chosen}
    counts: dict[str, list[bool]] = defaultdict(list)
    for each in again:
        if each["value"] is not None:
            counts[each["judge_vintage"]].append(
                each["value"] == first[each["response_id"], each["criterion_id"]]
            )
    nights = [
        {
            "night": label,
            "n_decided": len(alike),
            "n_agreeing": sum(alike),
            "min_agreement": 0.8,
        }
        for label, alike in counts.items()
    ]
    return [
        row("control_limits", set_id=set_id, method=METHOD, **night) for night in limits(nights)
    ]


def check_rows(revision: str, tasks: Sequence[Task], refused: str, tables: Rows) -> Rows:
    """The checks of the last night: two failed ones with their keys, and the task that one of them
    refused.
    """
    benchmark = load_benchmark("prbench")
    failing = {
        "criteria_per_task": [refused],
        "weight_in_band": [
            f"{task.task_id}/{each.criterion_id}"
            for task in tasks
            for each in task.criteria
            for low, high in [SEVERITIES[each.severity or ""]]
            if not low <= (each.weight or 0.0) <= high
        ],
    }
    judged = {
        (each["response_id"], each["judge"], each["judge_trial"]) for each in tables["verdicts"]
    }
    sizes = {
        "rubrics": len(tasks),
        "criteria": sum(len(task.criteria) for task in tasks),
        "judged_responses": len(judged),
        "responses": len(tables["responses"]),
        "verdicts": len(tables["verdicts"]),
    }
    run_id = run_of(NIGHTS[-1])
    now = datetime.fromisoformat(f"{NIGHTS[-1]}T00:59:00+00:00")
    checks = [
        row(
            "checks",
            run_id=run_id,
            dataset_revision=revision,
            suite=each.suite,
            check_name=each.check,
            expectation=each.text,
            table_name=each.table,
            severity=default_policy(each),
            success=not keys,
            n_evaluated=sizes[each.table],
            n_failed=len(keys),
            failing_keys=keys,
            created_at=now,
        )
        for each in expectations_of(benchmark)
        for keys in [failing.get(each.check, [])]
    ]
    refusal = row(
        "refusals",
        run_id=run_id,
        dataset_revision=revision,
        task_id=refused,
        check_name="criteria_per_task",
        severity="quarantine",
        detail=f"a task has 10 to 30 criteria: {refused}: n_criteria is 7",
        created_at=now,
    )
    return {"refusals": [refusal], "checks": checks}


_TABLES = {
    "sample": "responses",
    "judge": "verdicts",
    "drift": "control_verdicts",
}
"""Purpose of calls -> the table of their rows."""
_TOTALS = ("prompt_tokens", "cached_tokens", "completion_tokens")


def run_rows(settings: Settings, nights: dict[str, str], tables: Rows, taint: Taint) -> Rows:
    """The runs that made the rows, a killed and a failed run, and the spend of their calls.

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
    # Imported rows had no calls.
    called = {purpose: _by("run_id", tables[table]) for purpose, table in _TABLES.items()}
    for by_run in called.values():
        by_run.pop(IMPORT_RUN, None)
    document = settings.model_dump(mode="json")
    document["dataset"]["source"] = "data"  # the real folder differs from build to build
    config = json.dumps(document, sort_keys=True)
    return {
        "runs": [_run(run_id, facts, config, called) for run_id, facts in runs.items()],
        "spend": [
            _spent(run_id, purpose, model, of_model)
            for purpose, by_run in called.items()
            for run_id, rows in by_run.items()
            for model, of_model in _by("model" if purpose == "sample" else "judge", rows).items()
        ],
    }


def _run(
    run_id: str, facts: tuple[str | None, str, str], config: str, called: dict[str, Rows]
) -> Row:
    night, command, outcome = facts
    rows = [each for by_run in called.values() for each in by_run.get(run_id, [])]
    costs = [each["cost_usd"] for each in rows]
    start = datetime.strptime(run_id[:15], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    return row(
        "runs",
        run_id=run_id,
        command=command,
        night=night,
        config=config,
        outcome=outcome,
        started_at=start,
        ended_at=None if outcome == "killed" else start + timedelta(minutes=32),
        git_commit="0123456789" * 4,
        calls=sum(each["attempts"] for each in rows),
        responses_made=len(called["sample"].get(run_id, [])),
        verdicts_made=len(called["judge"].get(run_id, [])),
        cached_share=0.5 if rows else None,
        cost_usd=None if None in costs else sum(costs),
        **_totals(rows),
    )


def _spent(run_id: str, purpose: str, model: str, rows: Sequence[Row]) -> Row:
    first = min(each["created_at"] for each in rows)
    return row(
        "spend",
        run_id=run_id,
        day=first.date().isoformat(),
        purpose=purpose,
        called_model=f"hosted_vllm/{model}",
        calls=sum(each["attempts"] for each in rows),
        failed_calls=0,
        unpriced_calls=sum(each["cost_usd"] is None for each in rows),
        cost_usd=sum(each["cost_usd"] or 0.0 for each in rows),
        created_at=first,
        **_totals(rows),
    )


def _by(column: str, rows: Iterable[Row]) -> Rows:
    actual: Rows = defaultdict(list)
    for each in rows:
        actual[each[column]].append(each)
    return actual


def _totals(rows: Sequence[Row]) -> dict[str, Any]:
    return {name: sum(each[name] or 0 for each in rows) for name in _TOTALS}
