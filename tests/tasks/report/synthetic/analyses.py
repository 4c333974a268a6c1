"""Made-up analyses: annotations, a tree of capabilities, reviews, people's labels, and looks at
comparisons.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tests.kit import Rows, at, row
from tests.tasks.report.synthetic.attacks import Taint
from tests.tasks.report.synthetic.results import PosedTask, Row

ANNOTATORS = ("annotator-one", "annotator-two")
AREAS = ("DE", "FR", "US-CA")


def annotation_rows(posed_tasks: Sequence[PosedTask], revision: str, taint: Taint) -> list[Row]:
    """The rows of `task_annotations`; the labels depend on the numbers of task and annotator."""
    names = [taint.name(name) for name in ANNOTATORS]
    tasks = ((each, which, name) for each in posed_tasks for which, name in enumerate(names))
    return [
        row for each, which, name in tasks for row in _of_task(each, which, name, taint, revision)
    ]


def _of_task(each: PosedTask, which: int, name: str, taint: Taint, revision: str) -> Iterator[Row]:
    area = AREAS[(each.number // 3 + which * (each.number % 4 == 0)) % len(AREAS)]
    released = list(each.task.decision_types)
    labels = {
        "jurisdiction": [area],
        "decision_type": released[: 1 + which] or [f"None of {each.number % 2}"],
    }
    for kind, (primary, *secondary) in labels.items():
        has_failed = (kind, which, each.number) == ("jurisdiction", 0, 0)
        yield row(
            "task_annotations",
            dataset_revision=revision,
            task_id=each.task.task_id,
            annotation_id=f"{kind} {which} {each.number}",
            conversation_id=each.task.conversation_id,
            kind=kind,
            annotator=name,
            annotator_config_hash="a-configuration",
            template_hash="a-template",
            trial=1,
            status="parse_error" if has_failed else "ok",
            primary_label=None if has_failed else primary,
            secondary_labels=None if has_failed else secondary,
            created_at=at(1),
            explanation=None if has_failed else taint("The request says so."),
        )


TREE = "a-tree"
NAMES = ("Whole", "Reading contracts", "Computing taxes", "Taxes of companies", "Taxes of persons")
PARENTS = (-1, 0, 0, 2, 2)


def tree_rows(posed_tasks: Sequence[PosedTask], revision: str, taint: Taint) -> Rows:
    """The rows, by table, of one tree with all criteria; a criterion's leaf depends on its
    position.
    """
    criteria = [
        (each.task.task_id, criterion) for each in posed_tasks for criterion in each.task.criteria
    ]
    placed = [
        (task_id, criterion, (1, 3, 4)[criterion.position % 3]) for task_id, criterion in criteria
    ]
    tree = {
        "dataset_revision": revision,
        "tree_id": TREE,
        "field": "Finance",
    }
    members = {
        node: [number for number in placed if node in _way(number[2])]
        for node in range(len(PARENTS))
    }
    return {
        "capability_members": [
            row(
                "capability_members",
                dataset_revision=revision,
                tree_id=TREE,
                node_id=f"node-{node}",
                task_id=task_id,
                criterion_id=criterion.criterion_id,
                criterion_hash=criterion.content_hash,
                is_leaf=node not in PARENTS,
            )
            for node, of_node in members.items()
            for task_id, criterion, _ in of_node
        ],
        "capability_node_rows": [
            row(
                "capability_node_rows",
                **tree,
                node_id=f"node-{node}",
                position=node,
                level=len(_way(node)) - 1,
                parent_id=None if parent < 0 else f"node-{parent}",
                is_leaf=node not in PARENTS,
                name=None if node == len(PARENTS) - 1 else taint(NAMES[node]),
                n_criteria=len(members[node]),
                n_tasks=len({task_id for task_id, *_ in members[node]}),
            )
            for node, parent in enumerate(PARENTS)
        ],
        "capability_trees": [
            row(
                "capability_trees",
                **tree,
                vectors="tfidf",
                method="made up",
                n_criteria=len(placed),
                n_tasks=len(posed_tasks),
            ),
        ],
    }


def weakness_rows(measured: Sequence[dict[str, Any]]) -> Rows:
    """A confirmed weakness for the first score, and one that is not confirmed for the second."""
    actual = []
    for number, score in enumerate(measured[:2]):
        common = {
            name: score[name]
            for name in score.keys() - {"n_criteria", "n_decided", "ci_low", "ci_high"}
        }
        actual.append(
            row(
                "weakness_candidates",
                **{
                    **common,
                    "compared_key": "made up",
                    "compared_value": 0.8,
                    "gap": -0.2,
                    "gap_ci_low": -0.3,
                    "gap_ci_high": -0.1,
                    "p_confirmed": 0.001 + number,
                    "is_confirmed": number == 0,
                    "found_gap": -0.25,
                    "n_tasks_found": 9,
                    "p_found": 0.01,
                    "method": "made up",
                },
            )
        )
    return {"weakness_candidates": actual}


def _way(node: int) -> tuple[int, ...]:
    return (*_way(PARENTS[node]), node) if node >= 0 else ()


PEOPLE = ("Reviewer One", "Reviewer Two")
MODEL = "reviewer-model"
CHECKS = ("atomic", "objective", "self_contained", "consistent", "not_given_away")
_PROBABILITY = 0.5


def review_rows(posed_tasks: Sequence[PosedTask], revision: str, taint: Taint) -> Rows:
    """The rows of reviews, by table; findings depend on the number of the task and the position of
    the criterion.
    """
    reviewed = [
        (
            each.number,
            criterion.position,
            {
                "dataset_revision": revision,
                "task_id": each.task.task_id,
                "criterion_id": criterion.criterion_id,
                "criterion_hash": criterion.content_hash,
            },
        )
        for each in posed_tasks
        for criterion in each.task.criteria
    ]
    sampled = [one for one in reviewed if (one[0] + one[1]) % 2 == 0]
    people = [taint.name(name) for name in PEOPLE]
    model = taint.name(MODEL)
    return {
        "review_samples": [
            row(
                "review_samples",
                **key,
                sample_id="a-sample",
                population_id="all",
                n_population=len(reviewed),
                design="simple random",
                stratum="all",
                probability=_PROBABILITY,
            )
            for _, _, key in sampled
        ],
        "expert_reviews": [
            row(
                "expert_reviews",
                **key,
                review_id=f"{name} {number} {position}",
                reviewer=name,
                sample_id="a-sample",
                value=float(not is_bad),
                explanation=taint("Two experts would differ.") if is_bad else None,
                better_wording=taint("Says which year.") if is_bad else None,
                import_batch="a-batch",
            )
            for which, name in enumerate(people)
            for number, position, key in sampled
            for is_bad in [(number * 7 + position * 3 + which) % 11 == 0]
        ],
        "model_reviews": [
            row(
                "model_reviews",
                **key,
                review_id=f"{trial} {number} {position}",
                reviewer=model,
                reviewer_config_hash="a-configuration",
                review_trial=trial,
                created_at=at(trial),
                status="timeout" if (number, position) == (0, 0) else "ok",
                findings=(
                    None
                    if (number, position) == (0, 0)
                    else json.dumps(
                        [
                            {
                                "name": name,
                                "passes": (
                                    (number * 5 + position * (check_index + 2) + trial // 2) % 7 > 0
                                ),
                                "reason": taint(f"It is {name}, or not."),
                            }
                            for check_index, name in enumerate(CHECKS)
                        ]
                    )
                ),
            )
            for trial in (1, 2)
            for number, position, key in reviewed
        ],
    }


SHEET = "a-sheet-of-verdicts"
_OFF = -0.03
"""The change of each score by labels."""


def label_rows(people: str, revision: str, tables: Rows) -> Rows:
    """The rows, by table, that make people's verdicts labels, with a sheet that draws every second
    one.
    """
    names = ("verdicts", "responses")
    own = {
        name: [each for each in tables[name] if each["dataset_revision"] == revision]
        for name in names
    }
    sampled = [each for each in own["verdicts"] if each["judge"] == people][::2]
    responses = sorted({each["response_id"] for each in own["responses"]})
    return {
        "labellers": [row("labellers", judge=people, import_batch="batch-of-labels")],
        "label_sheets": [
            row(
                "label_sheets",
                dataset_revision=revision,
                sheet_id=SHEET,
                design="drawn for leaderboard",
                covered_breakdown="all",
                covered_label="",
                covered_responses=responses,
                n_population=10 * len(sampled),
                n_drawn=len(sampled),
                seed=0,
            )
        ],
        "label_draws": [
            row(
                "label_draws",
                sheet_id=SHEET,
                probability=0.1,
                is_known=False,
                **{
                    name: each[name]
                    for name in (
                        "dataset_revision",
                        "task_id",
                        "response_id",
                        "criterion_id",
                        "criterion_hash",
                    )
                },
            )
            for each in sampled
        ],
    }


def debiased_rows(judged: Iterable[Row]) -> Rows:
    """Measures with made-up values, instead of those that note that there are too few labels."""
    return {
        "measures": [
            each
            | {
                "measure": name,
                "value": value,
                "ci_low": value - off,
                "ci_high": value + off,
                "note": None,
            }
            for each in judged
            for name, value, off in (
                ("debiased", each["value"] + _OFF, 0.06),
                ("labels_alone", each["value"] + 2 * _OFF, 0.11),
                ("judge_power", 0.7, 0.0),
                ("effective_labels", 60.0, 0.0),
            )
        ]
    }


def look_rows(board: list[dict[str, Any]]) -> Rows:
    """The looks at comparisons of a leaderboard's first model with the next two, with the first
    row's judge columns.
    """
    first, *others = board[:3]
    judge_config = {
        name: first[name]
        for name in ("dataset_revision", "judge", "judge_config_hash", "template_hash")
    }
    actual = []
    for number, other in enumerate(others):
        for block in (1, 2):
            is_open = number == 1 or block == 1
            actual.append(
                row(
                    "stopping_looks",
                    **judge_config,
                    stopping_id="made up",
                    grading=first["grading"],
                    judge_trial=1,
                    score_name="score",
                    model=first["model"],
                    model_config_hash=first["model_config_hash"],
                    vintage=first["vintage"],
                    compared_model=other["model"],
                    compared_config_hash=other["model_config_hash"],
                    compared_vintage=other["vintage"],
                    block=block,
                    n_tasks=20 * block - 1,
                    n_tasks_evaluated=20 * block,
                    n_tasks_planned=60 - 20 * number,
                    is_second_minus_first=True,
                    mean_difference=0.2 - 0.19 * number,
                    unbiased_difference=None if is_open else 0.17,
                    sequence_low=None if block == 1 else 0.05 - 0.2 * number,
                    sequence_high=None if block == 1 else 0.35 - 0.1 * number,
                    comparison_alpha=0.025,
                    least_difference=0.02,
                    decision="open" if is_open else "different",
                    created_at=at(block),
                )
            )
    return {"stopping_looks": actual}
