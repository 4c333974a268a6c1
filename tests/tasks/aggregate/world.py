"""A made-up world as rows of the stored tables, with everything that can happen to responses and
verdicts.
"""

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tasks.benchmarks.prbench import SEVERITIES
from tasks.certify.certifying import INTERVALS
from tests.kit import Row, Rows, admitted, at, criterion, response, row, verdict
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
_FURTHER_GRADERS = {
    "people": {"source": "imported"},
    "tern": {"grading": "ternary"},
    "a-judge#2": {"judge_trial": 2},
    "a-judge#3": {"judge_trial": 3},
    "judge-b#2": {"judge_trial": 2},
}
"""Grader of some responses -> columns of its verdicts."""
REFUSED = "t-refused"
RESAMPLES = 200
"""Number of resamples for intervals: measuring takes less time, and the checker draws as many."""

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
    seed: int,
    n_tasks: int = 60,
    models: Mapping[tuple[str, str], Sequence[int]] = MODELS,
) -> Rows:
    """Tasks with all kinds of labels, one task refused, and responses and verdicts, some failed or
    missing.
    """
    dice = random.Random(seed)
    task_ids = [f"t{number:03d}" for number in range(n_tasks)]
    tasks = [_task(dice, task_id, number) for number, task_id in enumerate(task_ids)]
    tasks.append(_task(dice, REFUSED, 0) | {"topic": "of the refused task"})
    hard_ids = [
        task["task_id"]
        for task in tasks
        if task["task_id"] == REFUSED or dice.random() < 0.4
    ]
    rubrics = {
        task["task_id"]: list(_rubric(dice, task["task_id"])) for task in tasks
    }
    for task in tasks:
        weights = [line["weight"] for line in rubrics[task["task_id"]]]
        task["n_criteria"] = len(weights)
        task["positive_weight"] = sum(max(weight, 0.0) for weight in weights)
    responses = list(_responses(dice, random.Random(seed), tasks, models))
    return admitted([]) | {
        "checks": admitted([*task_ids, REFUSED])["checks"],
        "task_rows": tasks,
        "split_members": _split_members([*task_ids, REFUSED], hard_ids),
        "hard_subset": [
            *_selection("older", [*task_ids, REFUSED], 1),
            *_selection("latest", [*task_ids[1::4], REFUSED], 2),
        ],
        **refused(REFUSED),
        "severities": [
            row(
                "severities", severity=severity, min_weight=lowest, max_weight=highest
            )
            for severity, (lowest, highest) in SEVERITIES.items()
        ],
        "criteria": list(itertools.chain.from_iterable(rubrics.values())),
        "responses": responses,
        "verdicts": list(_verdicts(dice, responses, rubrics)),
    }


def graded_world(seed: int, n_tasks: int) -> Rows:
    """A random world with decisions of people, of a ternary judge, and of repetitions of judges.

    Some verdicts are on earlier wordings; a model's second trial has one response, to the refused
    task.
    """
    rows = random_world(seed, n_tasks, MODELS | {("euler", "base"): (1,)})
    rows["verdicts"] += list(_further_verdicts(random.Random(seed), rows))
    for decision in rows["verdicts"][::37]:
        decision["criterion_hash"] = "an-older-wording"
    for decision in rows["verdicts"]:
        # All judges agree that one criterion is never met, and another one always.
        if decision["value"] is not None and decision["criterion_id"] == "t000-c0":
            decision |= {"value": 0.0, "status": "unmet"}
        if decision["value"] is not None and decision["criterion_id"] == "t001-c0":
            decision |= {"value": 1.0, "status": "met"}
    rows["responses"].append(response(REFUSED, "dirac", 2, vintage="2026-11-20"))
    return rows


def _responses(
    dice: random.Random,
    length_dice: random.Random,
    tasks: Sequence[Row],
    models: Mapping[tuple[str, str], Sequence[int]],
) -> Iterator[Row]:
    """Responses to the tasks; dice of their own for lengths leave all other draws as they are."""
    for task, (model, vintage) in itertools.product(tasks, models):
        task_id = task["task_id"]
        for trial in models[model, vintage]:
            # One model has hardly begun, and one has a second trial in one field only.
            if dice.random() >= (0.3 if model == "dirac" else 0.985):
                continue
            if model == "bell" and trial == 2 and task["field"] == "Legal":
                continue
            # One model has no response to the only task of a topic.
            has_failed = dice.random() < 0.02 or (
                task_id == "t004" and model == "curie"
            )
            yield response(
                task_id,
                model,
                trial,
                "timeout" if has_failed else "ok",
                vintage=vintage,
                created_at=at(0 if vintage == "base" else 1),
                **_lengths(length_dice, model),
            ) | {"response_id": f"{task_id}/{model}/{trial}/{vintage}"}


def _verdicts(
    dice: random.Random, responses: Sequence[Row], rubrics: Mapping[str, list[Row]]
) -> Iterator[Row]:
    """The second judge has seen the first trials of the first tasks."""
    for judge, judged in itertools.product(JUDGES, responses):
        is_seen = judge == JUDGES[0] or (
            judged["trial"] == 1 and judged["task_id"] < "t020"
        )
        if judged["status"] != "ok" or not is_seen:
            continue
        for line in rubrics[judged["task_id"]]:
            if dice.random() < 0.997:
                value = _decision(dice, judged["model"], line["weight"])
                yield verdict(judged, line, value, judge=judge)


def _further_verdicts(dice: random.Random, rows: Rows) -> Iterator[Row]:
    """The verdicts of further graders, which differ now and then from those of the second judge."""
    criteria = {line["criterion_id"]: line for line in rows["criteria"]}
    verdicts = [
        decision
        for decision in rows["verdicts"]
        if decision["judge"] == JUDGES[1]
        and decision["model"] != "curie"
        and decision["task_id"] < "t012"
    ]
    for grader, columns in _FURTHER_GRADERS.items():
        for decision in verdicts:
            if dice.random() >= 0.92:
                continue
            differs = dice.random() < 0.2
            is_partial = dice.random() < 0.3
            fails = dice.random() < 0.03
            value = decision["value"]
            if fails or value is None:
                value = None
            elif differs:
                value = 1.0 - value
            if grader == "tern" and is_partial:
                value = 0.5
            judge = grader.partition("#")[0]
            yield verdict(
                decision,
                criteria[decision["criterion_id"]],
                value,
                judge=judge,
                **columns,
            )


def _split_members(task_ids: Sequence[str], hard_ids: Sequence[str]) -> list[Row]:
    members = []
    for position, task_id in enumerate(task_ids):
        splits = ("everything", "hard") if task_id in hard_ids else ("everything",)
        for split in splits:
            members.append(
                row("split_members", split=split, task_id=task_id, position=position)
            )
    return members


def _lengths(dice: random.Random, model: str) -> dict[str, int | None]:
    """Few different lengths, so that there are ties; some tokens are not reported, and one model's
    never vary.
    """
    tokens = 7 if model == "dirac" else dice.choice([None, *range(40, 60)])
    return {
        "chars_alnum": dice.choice([100, 150, 200, 250, 300, 350]),
        "completion_tokens": tokens,
    }


def _task(dice: random.Random, task_id: str, number: int) -> Row:
    field = "Finance" if number % 2 else "Legal"
    topics = {
        "Finance": ["Audit", "Tax", "Markets"],
        "Legal": ["Contracts", "Torts"],
    }[field]
    return row(
        "task_rows",
        task_id=task_id,
        field=field,
        n_rows=1,
        # One task is the only one of its topic, one has no topic.
        topic={4: "Rare", 7: None}.get(number, dice.choice(topics)),
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


def _rubric(dice: random.Random, task_id: str) -> Iterator[Row]:
    for position in range(dice.randint(6, 14)):
        sign = dice.choice([1, 1, -1]) if position else 1
        weight = sign * dice.randint(1, 10)
        category = dice.choices(["Accuracy", "Risk", "Utility", None], [5, 3, 3, 1])[
            0
        ]
        severity = next(
            name for name, (low, high) in SEVERITIES.items() if low <= weight <= high
        )
        yield criterion(task_id, position, weight, category) | {"severity": severity}


def _decision(dice: random.Random, model: str, weight: float) -> float | None:
    if dice.random() < 0.004:
        return None
    chance = 0.55
    if model == "curie":  # so bad that its means are below zero
        chance = 0.15 if weight > 0 else 0.8
    return float(dice.random() < chance)


def _selection(name: str, task_ids: Iterable[str], seconds: float) -> list[Row]:
    """The rows of an own hard selection; the latest one counts."""
    return [
        row(
            "hard_subset",
            selection_id=name,
            field="Finance",
            task_id=task_id,
            rank=rank,
            selected_at=at(seconds),
        )
        for rank, task_id in enumerate(task_ids, start=1)
    ]


def refused(task_id: str) -> Rows:
    """The row that refuses a task."""
    refusal = row(
        "refusals", task_id=task_id, check_name="weight_range", severity="quarantine"
    )
    return {"refusals": [refusal]}


def figures_of(tables: Rows) -> Figures:
    """Return the independent checker's figures for rows, in the form of a certificate."""
    refused_ids = {refusal["task_id"] for refusal in tables.get("refusals", [])}
    selections = tables.get("hard_subset", [])
    tasks = []
    labels = []
    for task in tables["task_rows"]:
        task_id = task["task_id"]
        tasks.append(task | {"is_admitted": task_id not in refused_ids})
        for kind in ("decision_type", "economic_pathway"):
            for label in task[f"{kind}s"] or ():
                labels.append({"task_id": task_id, "kind": kind, "label": label})
    certified = {
        "criterion_labels": [],
        "criterion_variants": [],
        "stopping_scores": [],
    }
    certified |= tables
    certified["tasks"] = tasks
    certified["labelled_tasks"] = labels
    certified["hard_subset"] = [
        selection for selection in selections if selection["selection_id"] == "latest"
    ]
    return Figures({"intervals": INTERVALS}, certified, RESAMPLES)


def small_world(seed: int) -> Rows:
    """A random world with few tasks, and the costs, lengths, people, turns, evidence and looks that
    recipes need.
    """
    dice = random.Random(seed)
    rows = random_world(seed, n_tasks=12)
    for sampled in rows["responses"]:
        sampled["chars_alnum"] = dice.randint(100, 900)
        sampled["completion_tokens"] = dice.randint(50, 300)
        sampled["cost_usd"] = 0.01
    for decision in rows["verdicts"]:
        decision["cost_usd"] = 0.001
        decision["error"] = (
            "no reply within 60 s" if decision["value"] is None else None
        )
        if decision["criterion_id"] == "t000-c0":  # no model meets it
            decision |= {"value": 0.0, "status": "unmet"}
    first_verdict = rows["verdicts"][0]
    rows["verdicts"] += list(_expert_verdicts(dice, rows["verdicts"]))
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
            verdict_id=first_verdict["verdict_id"],
            response_id=first_verdict["response_id"],
            task_id=first_verdict["task_id"],
            criterion_id=first_verdict["criterion_id"],
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


def _expert_verdicts(dice: random.Random, verdicts: Sequence[Row]) -> Iterator[Row]:
    """The labels of an expert, who differs now and then from the first judge."""
    opposites = {
        0.0: {"value": 1.0, "status": "met"},
        1.0: {"value": 0.0, "status": "unmet"},
    }
    for decision in verdicts:
        if decision["judge"] != "a-judge":
            continue
        label = decision | {
            "verdict_id": f"{decision['verdict_id']}/expert",
            "judge": "expert",
            "source": "imported",
        }
        if decision["value"] in opposites and dice.random() < 0.2:
            label |= opposites[decision["value"]]
        yield label
