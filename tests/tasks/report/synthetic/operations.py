"""Operations data for the made-up results: the first judge's control set, the checks, and the runs
with their costs.
"""

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.prbench import SEVERITIES
from tasks.check import default_policy, expectations_of
from tasks.config.settings import Settings
from tasks.figures.figure import grouped
from tasks.rules.identity import digest
from tasks.rules.records import Task
from tasks.rules.statistics.control import METHOD, limits
from tests.kit import Rows, row
from tests.tasks.report.synthetic.attacks import Taint
from tests.tasks.report.synthetic.contenders import DRIFT_NIGHT, NIGHTS, run_of
from tests.tasks.report.synthetic.results import BASE_RUN, CAUSES, IMPORT_RUN, Row

N_CONTROL = 60
_DRIFT_SHARE = 0.6
"""The share of decisions that become met in the night of the drift, if they are not."""
_USUAL_SHARE = 0.03
"""The share of decisions that change in another night."""
_FAILED_SHARE = 0.005
"""The share of calls that fail in any night."""


def control_rows(
    verdicts: Sequence[Row],
    conversations: dict[str, str],
    nights: dict[str, str],
) -> Rows:
    """The rows of a judge's control set, chosen from its verdicts, its decisions in each night, and
    the limits.

    `nights` are the labels of the nights, by day.
    """
    decided = [
        verdict
        for verdict in verdicts
        if verdict["value"] is not None and verdict["trial"] == 1
    ]
    control_set = decided[:: len(decided) // N_CONTROL][:N_CONTROL]
    set_id = digest("control set", [verdict["verdict_id"] for verdict in control_set])
    names = (
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
    members = []
    for verdict in control_set:
        member = row(
            "control_set",
            set_id=set_id,
            conversation_id=conversations[verdict["task_id"]],
            first_value=verdict["value"],
            run_id=BASE_RUN,
            created_at=control_set[0]["created_at"],
            **{name: verdict[name] for name in names},
        )
        members.append(member)
    repetitions = []
    for night, label in nights.items():
        for verdict in control_set:
            repetition = row(
                "control_verdicts",
                set_id=set_id,
                judge_vintage=label,
                explanation=verdict["explanation"],
                served_model=verdict["judge"],
                run_id=run_of(night),
                created_at=datetime.fromisoformat(f"{night}T01:25Z"),
                **{name: verdict[name] for name in names if name != "verdict_id"},
                **_decided_again(verdict, night),
            )
            repetitions.append(repetition)
    return {
        "control_set": members,
        "control_verdicts": repetitions,
        "control_limits": _limits(set_id, control_set, repetitions),
    }


def _decided_again(verdict: Row, night: str) -> Row:
    dice = random.Random(
        f"control {verdict['criterion_id']} {verdict['task_id']} {night}"
    )
    value = verdict["value"]
    if night == DRIFT_NIGHT:
        value = 1.0 if dice.random() < _DRIFT_SHARE else value
    elif dice.random() < _USUAL_SHARE:
        value = 1 - value
    columns = {
        "prompt_tokens": verdict["prompt_tokens"],
        "cached_tokens": 0,
        "completion_tokens": 60,
        "cost_usd": verdict["cost_usd"],
    }
    if dice.random() < _FAILED_SHARE:
        return columns | {
            "status": "parse_error",
            "value": None,
            "error": CAUSES["parse_error"],
        }
    return columns | {"status": "met" if value else "unmet", "value": value}


def _limits(
    set_id: str,
    control_set: Sequence[Row],
    repetitions: Sequence[Row],
) -> list[Row]:
    first_values = {}
    for verdict in control_set:
        first_values[verdict["response_id"], verdict["criterion_id"]] = verdict[
            "value"
        ]
    nights = []
    for label, verdicts in grouped(repetitions, "judge_vintage").items():
        agreements = []
        for verdict in verdicts:
            if verdict["value"] is not None:
                first_value = first_values[
                    verdict["response_id"], verdict["criterion_id"]
                ]
                agreements.append(verdict["value"] == first_value)
        night = {
            "night": label,
            "n_decided": len(agreements),
            "n_agreeing": sum(agreements),
            "joint_limit": None,
            "min_agreement": 0.8,
        }
        nights.append(night)
    return [
        row("control_limits", set_id=set_id, method=METHOD, **limit)
        for limit in limits(nights)
    ]


def check_rows(
    revision: str,
    tasks: Sequence[Task],
    refused: str,
    tables: Rows,
) -> Rows:
    """The checks of the last night: two of them failed, with the keys of their failing rows; and the
    task that one of the two refused.
    """
    benchmark = load_benchmark("prbench")
    failing_keys = {
        "criteria_per_task": [refused],
        "weight_in_band": _outside_band(tasks),
    }
    judged = set()
    for verdict in tables["verdicts"]:
        judged.add((verdict["response_id"], verdict["judge"], verdict["judge_trial"]))
    sizes = {
        "rubrics": len(tasks),
        "criteria": sum(len(task.criteria) for task in tasks),
        "judged_responses": len(judged),
        "responses": len(tables["responses"]),
        "verdicts": len(tables["verdicts"]),
    }
    run_id = run_of(NIGHTS[-1])
    checked_at = datetime.fromisoformat(f"{NIGHTS[-1]}T00:59:00+00:00")
    checks = []
    for expectation in expectations_of(benchmark):
        keys = failing_keys.get(expectation.check, [])
        check = row(
            "checks",
            run_id=run_id,
            dataset_revision=revision,
            suite=expectation.suite,
            check_name=expectation.check,
            expectation=expectation.text,
            table_name=expectation.table,
            severity=default_policy(expectation),
            success=not keys,
            n_evaluated=sizes[expectation.table],
            n_failed=len(keys),
            failing_keys=keys,
            created_at=checked_at,
        )
        checks.append(check)
    refusal = row(
        "refusals",
        run_id=run_id,
        dataset_revision=revision,
        task_id=refused,
        check_name="criteria_per_task",
        severity="quarantine",
        detail=f"a task has 10 to 30 criteria: {refused}: n_criteria is 7",
        created_at=checked_at,
    )
    return {"refusals": [refusal], "checks": checks}


def _outside_band(tasks: Sequence[Task]) -> list[str]:
    """Return the criteria whose weight is outside the band of their severity."""
    keys = []
    for task in tasks:
        for criterion in task.criteria:
            low, high = SEVERITIES[criterion.severity or ""]
            if not low <= (criterion.weight or 0.0) <= high:
                keys.append(f"{task.task_id}/{criterion.criterion_id}")
    return keys


_TABLES = {
    "sample": "responses",
    "judge": "verdicts",
    "drift": "control_verdicts",
}
"""Purpose of calls -> the table of their rows."""
_TOTALS = ("prompt_tokens", "cached_tokens", "completion_tokens")


def run_rows(
    settings: Settings,
    nights: dict[str, str],
    tables: Rows,
    taint: Taint,
) -> Rows:
    """The runs that made the rows, a killed and a failed run, and the spend of their calls.

    `nights` are the labels of the nights, by day.
    """
    runs = {
        BASE_RUN: (None, "prbench run", "done"),
        IMPORT_RUN: (None, "prbench import responses grove.jsonl", "done"),
        "20260930T190000-killed": (None, "prbench run --limit 4", "killed"),
        "20261003T120000-failed": (
            None,
            taint("prbench run --config other.yaml"),
            "failed",
        ),
    }
    for night, label in nights.items():
        outcome = "below_bar" if night == NIGHTS[-1] else "done"
        runs[run_of(night)] = (label, "prbench nightly", outcome)
    calls = {}
    for purpose, table in _TABLES.items():
        calls[purpose] = grouped(tables[table], "run_id")
        calls[purpose].pop(IMPORT_RUN, None)  # imported rows had no calls
    spend = []
    for purpose, rows_by_run in calls.items():
        for run_id, run_calls in rows_by_run.items():
            name = "model" if purpose == "sample" else "judge"
            models = grouped(run_calls, name)
            for model, model_calls in models.items():
                spend.append(_spent(run_id, purpose, model, model_calls))
    document = settings.model_dump(mode="json")
    # The real folder differs from build to build.
    document["dataset"]["source"] = "data"
    config = json.dumps(document, sort_keys=True)
    return {
        "runs": [
            _run(run_id, facts, config, calls) for run_id, facts in runs.items()
        ],
        "spend": spend,
    }


def _run(
    run_id: str,
    facts: tuple[str | None, str, str],
    config: str,
    calls: dict[str, dict[str, list[Row]]],
) -> Row:
    """A run; its facts are the night, the command and the outcome, its calls are by purpose and
    run.
    """
    night, command, outcome = facts
    rows = []
    for rows_by_run in calls.values():
        rows += rows_by_run.get(run_id, [])
    costs = [call["cost_usd"] for call in rows]
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
        calls=sum(call["attempts"] for call in rows),
        responses_made=len(calls["sample"].get(run_id, [])),
        verdicts_made=len(calls["judge"].get(run_id, [])),
        cached_share=0.5 if rows else None,
        cost_usd=None if None in costs else sum(costs),
        **_totals(rows),
    )


def _spent(run_id: str, purpose: str, model: str, rows: Sequence[Row]) -> Row:
    started_at = min(call["created_at"] for call in rows)
    return row(
        "spend",
        run_id=run_id,
        day=started_at.date().isoformat(),
        purpose=purpose,
        called_model=f"hosted_vllm/{model}",
        calls=sum(call["attempts"] for call in rows),
        failed_calls=0,
        unpriced_calls=sum(call["cost_usd"] is None for call in rows),
        cost_usd=sum(call["cost_usd"] or 0.0 for call in rows),
        created_at=started_at,
        **_totals(rows),
    )


def _totals(rows: Sequence[Row]) -> dict[str, Any]:
    totals = dict.fromkeys(_TOTALS, 0)
    for call in rows:
        for name in _TOTALS:
            totals[name] += call[name] or 0
    return totals
