"""Made-up analyses: annotations, a tree of capabilities, reviews, people's labels, and looks at
comparisons.
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tests.kit import Rows, at, row
from tests.tasks.report.synthetic.attacks import Taint
from tests.tasks.report.synthetic.results import PosedTask, Row

ANNOTATORS = ("annotator-one", "annotator-two")
AREAS = ("DE", "FR", "US-CA")


def annotation_rows(
    posed_tasks: Sequence[PosedTask],
    revision: str,
    taint: Taint,
) -> list[Row]:
    """The rows of `task_annotations`; the labels depend on the numbers of task and annotator."""
    rows = []
    for posed in posed_tasks:
        for annotator, name in enumerate(ANNOTATORS):
            rows += _task_annotations(
                posed,
                annotator,
                taint.name(name),
                taint,
                revision,
            )
    return rows


def _task_annotations(
    posed: PosedTask,
    annotator: int,
    name: str,
    taint: Taint,
    revision: str,
) -> Iterator[Row]:
    area = AREAS[
        (posed.number // 3 + annotator * (posed.number % 4 == 0)) % len(AREAS)
    ]
    released_labels = list(posed.task.decision_types)
    labels = {
        "jurisdiction": [area],
        "decision_type": released_labels[: 1 + annotator]
        or [f"None of {posed.number % 2}"],
    }
    for kind, (primary, *secondary) in labels.items():
        has_failed = (kind, annotator, posed.number) == ("jurisdiction", 0, 0)
        yield row(
            "task_annotations",
            dataset_revision=revision,
            task_id=posed.task.task_id,
            annotation_id=f"{kind} {annotator} {posed.number}",
            conversation_id=posed.task.conversation_id,
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
NAMES = (
    "Whole",
    "Reading contracts",
    "Computing taxes",
    "Taxes of companies",
    "Taxes of persons",
)
PARENTS = (-1, 0, 0, 2, 2)


def tree_rows(posed_tasks: Sequence[PosedTask], revision: str, taint: Taint) -> Rows:
    """The rows, by table, of one tree with all criteria; a criterion's leaf depends on its
    position.
    """
    leaves = []
    for posed in posed_tasks:
        for criterion in posed.task.criteria:
            leaf = (1, 3, 4)[criterion.position % 3]
            leaves.append((posed.task.task_id, criterion, leaf))
    tree = {
        "dataset_revision": revision,
        "tree_id": TREE,
        "field": "Finance",
    }
    members = {
        node: [leaf for leaf in leaves if node in _path_to(leaf[2])]
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
            for node, node_leaves in members.items()
            for task_id, criterion, _ in node_leaves
        ],
        "capability_node_rows": [
            row(
                "capability_node_rows",
                **tree,
                node_id=f"node-{node}",
                position=node,
                level=len(_path_to(node)) - 1,
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
                n_criteria=len(leaves),
                n_tasks=len(posed_tasks),
            ),
        ],
    }


def weakness_rows(measures: Sequence[dict[str, Any]]) -> Rows:
    """A confirmed weakness for the first score, and one that is not confirmed for the second."""
    candidates = []
    for number, score in enumerate(measures[:2]):
        common = {
            name: score[name]
            for name in score.keys()
            - {"n_criteria", "n_decided", "ci_low", "ci_high"}
        }
        candidates.append(
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
    return {"weakness_candidates": candidates}


def _path_to(node: int) -> tuple[int, ...]:
    """The nodes from the root, whose parent is -1, to a node."""
    return (*_path_to(PARENTS[node]), node) if node >= 0 else ()


PEOPLE = ("Reviewer One", "Reviewer Two")
MODEL = "reviewer-model"
CHECKS = ("atomic", "objective", "self_contained", "consistent", "not_given_away")
_PROBABILITY = 0.5


def _findings(number: int, position: int, trial: int, taint: Taint) -> str:
    findings = []
    for check_index, name in enumerate(CHECKS):
        remainder = (number * 5 + position * (check_index + 2) + trial // 2) % 7
        findings.append(
            {
                "name": name,
                "passes": remainder > 0,
                "reason": taint(f"It is {name}, or not."),
            }
        )
    return json.dumps(findings)


def review_rows(
    posed_tasks: Sequence[PosedTask], revision: str, taint: Taint
) -> Rows:
    """The rows of reviews, by table; findings depend on the number of the task and the position of
    the criterion.
    """
    reviewed = [
        (
            posed.number,
            criterion.position,
            {
                "dataset_revision": revision,
                "task_id": posed.task.task_id,
                "criterion_id": criterion.criterion_id,
                "criterion_hash": criterion.content_hash,
            },
        )
        for posed in posed_tasks
        for criterion in posed.task.criteria
    ]
    sample = []
    for number, position, key in reviewed:
        if (number + position) % 2 == 0:
            sample.append((number, position, key))
    people = [taint.name(name) for name in PEOPLE]
    model = taint.name(MODEL)
    expert_reviews = []
    for reviewer, name in enumerate(people):
        for number, position, key in sample:
            is_bad = (number * 7 + position * 3 + reviewer) % 11 == 0
            review = row(
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
            expert_reviews.append(review)
    model_reviews = []
    for trial, (number, position, key) in itertools.product((1, 2), reviewed):
        has_failed = (number, position) == (0, 0)
        review = row(
            "model_reviews",
            **key,
            review_id=f"{trial} {number} {position}",
            reviewer=model,
            reviewer_config_hash="a-configuration",
            review_trial=trial,
            created_at=at(trial),
            status="timeout" if has_failed else "ok",
            findings=None
            if has_failed
            else _findings(number, position, trial, taint),
        )
        model_reviews.append(review)
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
            for _, _, key in sample
        ],
        "expert_reviews": expert_reviews,
        "model_reviews": model_reviews,
    }


SHEET = "a-sheet-of-verdicts"
_CHANGE_BY_LABELS = -0.03
"""The debiased score minus the judge's."""


def label_rows(people: str, revision: str, tables: Rows) -> Rows:
    """The rows, by table, that make people's verdicts labels, with a sheet that draws every second
    one.
    """
    verdicts = [
        verdict
        for verdict in tables["verdicts"]
        if verdict["dataset_revision"] == revision and verdict["judge"] == people
    ]
    sample = verdicts[::2]
    responses = {
        response["response_id"]
        for response in tables["responses"]
        if response["dataset_revision"] == revision
    }
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
                covered_responses=sorted(responses),
                n_population=10 * len(sample),
                n_drawn=len(sample),
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
                    name: verdict[name]
                    for name in (
                        "dataset_revision",
                        "task_id",
                        "response_id",
                        "criterion_id",
                        "criterion_hash",
                    )
                },
            )
            for verdict in sample
        ],
    }


def debiased_rows(judged: Iterable[Row]) -> Rows:
    """Measures with made-up values, instead of those that note that there are too few labels."""
    measures = []
    for judge_score in judged:
        for name, value, margin in (
            ("debiased", judge_score["value"] + _CHANGE_BY_LABELS, 0.06),
            ("labels_alone", judge_score["value"] + 2 * _CHANGE_BY_LABELS, 0.11),
            ("judge_power", 0.7, 0.0),
            ("effective_labels", 60.0, 0.0),
        ):
            measure = {
                "measure": name,
                "value": value,
                "ci_low": value - margin,
                "ci_high": value + margin,
                "note": None,
            }
            measures.append(judge_score | measure)
    return {"measures": measures}


def look_rows(board: list[dict[str, Any]]) -> Rows:
    """The looks at comparisons of a leaderboard's first model with the next two, with the first
    row's judge columns.
    """
    best, *compared_rows = board[:3]
    judge_config = {
        name: best[name]
        for name in (
            "dataset_revision",
            "judge",
            "judge_config_hash",
            "template_hash",
        )
    }
    looks = []
    for number, compared in enumerate(compared_rows):
        for block in (1, 2):
            is_open = number == 1 or block == 1
            looks.append(
                row(
                    "stopping_looks",
                    **judge_config,
                    stopping_id="made up",
                    grading=best["grading"],
                    judge_trial=1,
                    score_name="score",
                    model=best["model"],
                    model_config_hash=best["model_config_hash"],
                    vintage=best["vintage"],
                    compared_model=compared["model"],
                    compared_config_hash=compared["model_config_hash"],
                    compared_vintage=compared["vintage"],
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
    return {"stopping_looks": looks}
