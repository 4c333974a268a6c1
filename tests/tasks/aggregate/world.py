"""A made-up world as rows of the stored tables, with everything that can happen to responses and
verdicts.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tasks.benchmarks.prbench import SEVERITIES
from tasks.certify.certifying import INTERVALS
from tests.kit import Rows, admitted, at, criterion, response, row, verdict
from tests.tasks.certify.checker import Figures

MODELS = {
    ("ada", "base"): (1, 2, 3),
    ("bell", "base"): (1, 2),
    ("curie", "base"): (1, 2),
    ("bell", "2026-11-20"): (1,),
    ("dirac", "2026-11-20"): (1,),
}
"""(model, vintage) -> trials"""
JUDGES = ("a-judge", "judge-b")
MAJORITIES = {
    "panel": ("a-judge", "judge-b", "people"),
    "four": ("a-judge", "judge-b", "people", "tern"),
    "with a stranger": ("a-judge", "judge-b", "nobody"),
}
"""Configured majority -> its members."""
_MORE_GRADERS = {
    "people": {"source": "imported"},
    "tern": {"grading": "ternary"},
    "a-judge#2": {"judge_trial": 2},
    "a-judge#3": {"judge_trial": 3},
    "judge-b#2": {"judge_trial": 2},
}
"""Grader of some responses -> columns of its verdicts."""
REFUSED = "t-refused"

EVERY_ROW = """
    from (
        select * exclude (is_own_hard, n_tasks_annotated) from breakdown_leaderboard
        union all by name
        select *, 'all' as breakdown, '' as label from leaderboard
        union all by name
        select *, 'all' as breakdown, '' as label from hard_leaderboard
    ) where is_judged
"""
"""The judged rows of all leaderboards, with whole task sets under the breakdown `all`."""


def random_world(
    seed: int, n_tasks: int = 60, models: Mapping[tuple[str, str], Sequence[int]] = MODELS
) -> Rows:
    """Tasks with all kinds of labels, one task refused, and responses and verdicts, some failed or
    missing.
    """
    dice = random.Random(seed)
    of_lengths = random.Random(seed)
    ids = [f"t{i:03d}" for i in range(n_tasks)]
    tasks = [_task(dice, task_id, i) for i, task_id in enumerate(ids)]
    tasks.append(_task(dice, REFUSED, 0) | {"topic": "of the refused task"})
    is_hard = {task["task_id"]: task["task_id"] == REFUSED or dice.random() < 0.4 for task in tasks}
    rubrics = {task["task_id"]: list(_rubric(dice, task["task_id"])) for task in tasks}
    for task in tasks:
        weights = [line["weight"] for line in rubrics[task["task_id"]]]
        task |= {
            "n_criteria": len(weights),
            "positive_weight": sum(max(weight, 0.0) for weight in weights),
        }
    responses = [
        # One model has no response to the only task of a topic.
        response(
            task["task_id"],
            model,
            trial,
            "timeout" if dice.random() < 0.02 or is_none else "ok",
            vintage=vintage,
            created_at=at(vintage != "base"),
            **_lengths(of_lengths, model),
        )
        | {"response_id": f"{task['task_id']}/{model}/{trial}/{vintage}"}
        for task in tasks
        for (model, vintage), trials in models.items()
        for is_none in [(task["task_id"], model) == ("t004", "curie")]
        for trial in trials
        # One model has hardly begun, and one has a second trial in one field only.
        if dice.random() < (0.3 if model == "dirac" else 0.985)
        if not (model == "bell" and trial == 2 and task["field"] == "Legal")
    ]
    verdicts = [
        verdict(each, line, _decision(dice, each["model"], line["weight"]), judge=judge)
        for judge in JUDGES
        for each in responses
        if each["status"] == "ok"
        and (judge == JUDGES[0] or (each["trial"] == 1 and each["task_id"] < "t020"))
        for line in rubrics[each["task_id"]]
        if dice.random() < 0.997
    ]
    return admitted([]) | {
        "checks": admitted([*ids, REFUSED])["checks"],
        "task_rows": tasks,
        "split_members": [
            row(
                "split_members",
                split=split,
                task_id=task_id,
                position=i,
            )
            for i, task_id in enumerate(is_hard)
            for split in ["everything", "hard"][: 1 + is_hard[task_id]]
        ],
        "hard_subset": [
            *_selection("older", is_hard, 1),
            *_selection("latest", [*ids[1::4], REFUSED], 2),
        ],
        **refused(REFUSED),
        "severities": [
            row(
                "severities",
                severity=s,
                min_weight=a,
                max_weight=b,
            )
            for s, (a, b) in SEVERITIES.items()
        ],
        "criteria": [line for rubric in rubrics.values() for line in rubric],
        "responses": responses,
        "verdicts": verdicts,
    }


def graded_world(seed: int, n_tasks: int = 45) -> Rows:
    """A random world with decisions of people, of a ternary judge, and of repetitions of judges.

    Some verdicts are on earlier wordings; a model's second trial has one response, to the refused
    task.
    """
    rows = random_world(seed, n_tasks, MODELS | {("euler", "base"): (1,)})
    dice = random.Random(seed)
    first = [
        each
        for each in rows["verdicts"]
        if each["judge"] == JUDGES[1] and each["model"] != "curie" and each["task_id"] < "t012"
    ]
    criteria = {each["criterion_id"]: each for each in rows["criteria"]}
    for grader, about in _MORE_GRADERS.items():
        for each in (each for each in first if dice.random() < 0.92):
            differs, is_partial, fails = (dice.random() < share for share in (0.2, 0.3, 0.03))
            value = None if fails or each["value"] is None else abs(each["value"] - differs)
            value = 0.5 if grader == "tern" and is_partial else value
            of_criterion = criteria[each["criterion_id"]]
            rows["verdicts"].append(
                verdict(each, of_criterion, value, judge=grader.partition("#")[0], **about)
            )
    for each in rows["verdicts"][::37]:
        each["criterion_hash"] = "an-older-wording"
    for each in rows[
        "verdicts"
    ]:  # all judges agree that one criterion is never met, and another one always
        if each["criterion_id"] in {"t000-c0", "t001-c0"} and each["value"] is not None:
            is_met = each["task_id"] == "t001"
            each |= {"value": float(is_met), "status": "met" if is_met else "unmet"}
    rows["responses"].append(response(REFUSED, "dirac", 2, vintage="2026-11-20"))
    return rows


def _lengths(dice: random.Random, model: str) -> dict[str, int | None]:
    """Few different lengths, so that there are ties; some tokens are not reported, and one model's
    never vary.
    """
    tokens = 7 if model == "dirac" else dice.choice([None, *range(40, 60)])
    return {"chars_alnum": dice.choice([100, 150, 200, 250, 300, 350]), "completion_tokens": tokens}


def _task(dice: random.Random, task_id: str, i: int) -> dict[str, Any]:
    field = "Finance" if i % 2 else "Legal"
    topics = {"Finance": ["Audit", "Tax", "Markets"], "Legal": ["Contracts", "Torts"]}[field]
    return row(
        "task_rows",
        task_id=task_id,
        field=field,
        n_rows=1,
        # one task is the only one of its topic, one has no topic
        topic={4: "Rare", 7: None}.get(i, dice.choice(topics)),
        expert=dice.choice(["Expert", "Non-Expert"]),
        turns=dice.choice([1, 1, 1, 2, 10]),
        decision_types=dice.sample(
            ["Choice", "Plan", "Procedure, Forum & Jurisdiction"], dice.randint(0, 3)
        ),
        economic_pathways=dice.sample(
            ["Risk", "Value", "Operations, Processes & Controls"], dice.randint(1, 2)
        ),
        has_reference_texts=dice.random() < 0.2,
    )


def _rubric(dice: random.Random, task_id: str) -> Iterable[dict[str, Any]]:
    for i in range(dice.randint(6, 14)):
        weight = dice.choice([1, 1, -1]) * dice.randint(1, 10) if i else dice.randint(1, 10)
        category = dice.choices(["Accuracy", "Risk", "Utility", None], [5, 3, 3, 1])[0]
        severity = next(name for name, (low, high) in SEVERITIES.items() if low <= weight <= high)
        yield criterion(task_id, i, weight, category) | {"severity": severity}


def _decision(dice: random.Random, model: str, weight: float) -> float | None:
    if dice.random() < 0.004:
        return None
    # one model is so bad that its means are below zero
    return float(dice.random() < ((0.15 if weight > 0 else 0.8) if model == "curie" else 0.55))


def _selection(name: str, tasks: Iterable[str], seconds: float) -> list[dict[str, Any]]:
    """The rows of an own hard selection; the latest one counts."""
    return [
        row(
            "hard_subset",
            selection_id=name,
            field="Finance",
            task_id=task,
            rank=rank,
            selected_at=at(seconds),
        )
        for rank, task in enumerate(tasks, start=1)
    ]


def refused(task_id: str) -> Rows:
    """The row that refuses a task."""
    return {
        "refusals": [
            row(
                "refusals",
                task_id=task_id,
                check_name="weight_range",
                severity="quarantine",
            )
        ]
    }


def figures_of(tables: Rows) -> Figures:
    """Return the independent checker's figures for rows, in the form of a certificate."""
    out = {each["task_id"] for each in tables.get("refusals", [])}
    kinds = {"decision_type": "decision_types", "economic_pathway": "economic_pathways"}
    given = (
        {
            "criterion_labels": [],
            "criterion_variants": [],
            "stopping_scores": [],
        }
        | tables
        | {
            "tasks": [
                each | {"is_admitted": each["task_id"] not in out} for each in tables["task_rows"]
            ],
            "labelled_tasks": [
                {
                    "task_id": each["task_id"],
                    "kind": kind,
                    "label": label,
                }
                for each in tables["task_rows"]
                for kind, column in kinds.items()
                for label in each[column] or ()
            ],
            "hard_subset": [
                each for each in tables.get("hard_subset", []) if each["selection_id"] == "latest"
            ],
        }
    )
    return Figures({"intervals": INTERVALS}, given)


def small_world(seed: int) -> Rows:
    """A random world with few tasks, and the costs, lengths, people, turns, evidence and looks that
    recipes need.
    """
    dice = random.Random(seed)
    rows = random_world(seed, n_tasks=12)
    for each in rows["responses"]:
        each |= {
            "chars_alnum": dice.randint(100, 900),
            "completion_tokens": dice.randint(50, 300),
            "cost_usd": 0.01,
        }
    for each in rows["verdicts"]:
        each |= {
            "cost_usd": 0.001,
            "error": "no reply within 60 s" if each["value"] is None else None,
        }
        if each["criterion_id"] == "t000-c0":  # no model meets it
            each |= {"value": 0.0, "status": "unmet"}
    first = rows["verdicts"][0]
    labelled = [each for each in rows["verdicts"] if each["judge"] == "a-judge"]
    for each in labelled:
        other = {0.0: (1.0, "met"), 1.0: (0.0, "unmet")}.get(each["value"])
        decision = (
            dict(zip(("value", "status"), other, strict=True))
            if other and dice.random() < 0.2
            else {}
        )
        expert = {
            "verdict_id": f"{each['verdict_id']}/expert",
            "judge": "expert",
            "source": "imported",
        }
        rows["verdicts"].append(each | expert | decision)
    rows["conversation_turns"] = [
        row(
            "conversation_turns",
            task_id=task["task_id"],
            position=0,
            prompt="Why?",
            reference_texts=[],
        )
        for task in rows["task_rows"]
    ]
    rows["evidence"] = [
        row(
            "evidence",
            **{
                name: first[name]
                for name in ("verdict_id", "response_id", "task_id", "criterion_id")
            },
            round=1,
            chunk_number=1,
            n_chunks=1,
            first_char=0,
            n_chars=9,
            status="ok",
            evidence=["It says so."],
        )
    ]
    rows["stopping_looks"] = [
        row(
            "stopping_looks",
            stopping_id="s",
            score_name="score",
            model="ada",
            compared_model="bell",
            compared_vintage="base",
            block=block,
            decision=decision,
            is_second_minus_first=True,
            mean_difference=0.1,
            n_tasks_evaluated=20 * block,
            n_tasks_planned=60,
        )
        for block, decision in ((1, "open"), (2, "different"))
    ]
    return rows
