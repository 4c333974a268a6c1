"""The pages of the drill-down, and the lists that they search: tasks, scores, criteria, and all
verdicts.

The list of verdicts has one letter for each, its status. The values of each list are in the order
of the tasks in the index, and of the criteria in their rubrics. The index names all other files, so
that a page never mixes two reports.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from tasks.figures.addresses import task_key
from tasks.figures.page import Page
from tasks.figures.scope import Scope
from tasks.report.drilldown.blocks import (
    STATUSES,
    Block,
    Row,
    Subjects,
    subjects_of,
    write_blocks,
    write_data,
)
from tasks.report.drilldown.markdown import as_html
from tasks.report.rendering.site import Site, render
from tasks.rules.identity import IMPORTED
from tasks.rules.text.characters import visible
from tasks.rules.verdict import BINARY, TERNARY, reminder
from tasks.run.judge_configs import templates_by_hash

TASKS = Page(
    "tasks",
    "Tasks",
    "Every task with the score of each model. A task's page has its conversation, the responses,"
    " and every verdict.",
    template="list.html",
    group="Tasks and verdicts",
)
VERDICTS = Page(
    "verdicts",
    "Verdicts",
    "Every verdict on the chosen models: which judge decided what on which criterion, and which"
    " verdicts failed.",
    template="list.html",
    group="Tasks and verdicts",
)
TASK = Page(
    "task",
    "Task",
    "The conversation, the responses, and every judge's verdicts on them.",
    template="task.html",
)
NAVIGATED = (TASKS, VERDICTS)
"""The pages in the navigation; these two link to the page of a task."""


def write_drilldown(
    scope: Scope, site: Site, common: Mapping[str, Any], also: Sequence[Row] = ()
) -> None:
    """Write the tasks, their responses and verdicts, and the pages that show them; unchanged files
    are kept.

    Data is written first, so that every existing page finds its files.

    Args:
        scope: the scope of the shown entries and judge configurations.
        site: the report's folder.
        common: values of every page.
        also: earlier vintages for comparison (`model`, `model_config_hash`, `vintage`, and a label
            `entry`); entries that are already in the scope are ignored.
    """
    subjects = subjects_of(scope, also)
    rubrics = {
        task_id: dict(
            zip(("conversation", "criteria", "is_sent"), map(json.loads, members), strict=True)
        )
        for task_id, *members in subjects.rows("report/drilldown/rubrics")
    }
    for rubric in rubrics.values():
        for turn in rubric["conversation"]:
            if (
                turn["role"] == "assistant"
            ):  # an earlier response, so it is Markdown like the others
                turn["html"] = as_html(turn["content"])
    tasks = scope.rows("report/drilldown/tasks", {"n_characters": 200})
    _write_lists(
        subjects, tasks, {task["task_id"]: rubrics[task["task_id"]] for task in tasks}, site
    )
    for page in (TASK, TASKS, VERDICTS):
        site.write(f"{page.name}.html", render(page, common))


Rubrics = Mapping[str, Mapping[str, Any]]
"""Task id, in the order of the tasks -> its `conversation` and `criteria`, and `is_sent`: true if
the conversation is assembled.
"""
_REMINDERS = {"2": reminder(BINARY), "3": reminder(TERNARY)}
"""Number of values of a grading -> the reminder that its judges get."""
_CRITERION = ("title", "weight", "category", "severity", "labels", "criterion_id", "key")


def _write_lists(subjects: Subjects, tasks: Sequence[Row], rubrics: Rubrics, site: Site) -> None:
    """Write all lists, each named by a hash of its content; the index is last, because it names the
    others.

    `tasks` have their columns in the index.
    """
    blocks = write_blocks(subjects, site)
    scores = {
        key: write_data(site, values) for key, values in _scores(subjects, [*rubrics]).items()
    }
    marks = {key: write_data(site, values) for key, values in _marks(subjects, rubrics).items()}
    by_block: dict[int, dict[str, Any]] = defaultdict(dict)
    for task in tasks:
        by_block[task["block"]][task_key(task["task_id"])] = rubrics[task["task_id"]]
    criteria = [criterion for rubric in rubrics.values() for criterion in rubric["criteria"]]
    # Pages fill in templates themselves (`assets/prompts.js`), so no prompts are stored.
    used = {each["template_hash"] for each in subjects.judge_configs}
    benchmark = subjects.scope.benchmark
    known_templates = templates_by_hash(subjects.scope.job, benchmark)
    templates = {key: text for key, text in known_templates.items() if key in used}
    index = _about(subjects, tasks) | {
        "criteria": write_data(
            site, {name: [each[name] for each in criteria] for name in _CRITERION}
        ),
        "templates": write_data(site, {"templates": templates, "reminders": _REMINDERS}),
        "rubrics": {number: write_data(site, of_block) for number, of_block in by_block.items()},
        "judge_configs": [
            {
                "key": each["key"],
                "label": visible(each["judge_config"]),
                "scale": each["scale"],
                "reads": each["reads"],
                "template": each["template_hash"],
                "is_imported": each["judge_config_hash"] == IMPORTED,
                "scores": scores[each["key"]],
            }
            for each in subjects.judge_configs
        ],
        "entries": _entries(subjects, [*rubrics], blocks, marks),
    }
    write_data(site, index, "index")


def _entries(
    subjects: Subjects, task_ids: Sequence[str], blocks: Sequence[Block], marks: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the entries of the index.

    `response_states` has a digit for each task: 0 no response, 1 a response that can be judged, 2
    failed.
    """
    files: dict[str, dict[int, str]] = defaultdict(dict)
    for block in blocks:
        files[block.entry][block.number] = block.name
    states: dict[tuple[str, str], str] = {}
    trials: dict[str, set[int]] = defaultdict(set)
    for key, task_id, is_usable, of_task in subjects.rows("report/drilldown/response_states"):
        states[key, task_id] = "1" if is_usable else "2"
        trials[key].update(of_task)
    return [
        {
            "key": key,
            "label": visible(each["entry"]),
            "vintage": each["vintage"],
            "is_also": each["is_also"],
            "trials": sorted(trials[key]),
            "marks": marks[key],
            "blocks": files[key],
            "response_states": "".join(states.get((key, task_id), "0") for task_id in task_ids),
        }
        for each in subjects.entries
        if (key := each["key"])
    ]


def _about(subjects: Subjects, tasks: Sequence[Row]) -> dict[str, Any]:
    """Return the tasks and labels of the index.

    If the labels of a kind always equal the field, the kind is left out, and the field gets its
    title.
    """
    scope = subjects.scope
    same = [
        each
        for each in scope.own_breakdowns
        if not each.of_criteria
        and all(
            [of["label"] for of in task["labels"] if of["kind"] == each.kind] == [task["field"]]
            for task in tasks
        )
    ]
    return {
        "field_title": same[0].title if same else "Field",
        "category_title": scope.category_title or "Category",
        "breakdowns": [vars(each) for each in scope.own_breakdowns if each not in same],
        "statuses": {mark: status for status, mark in STATUSES.items()},
        "main": next(
            (each["key"] for each in subjects.judge_configs if each["judge_config"] == scope.main),
            None,
        ),
        "tasks": [{**task, "key": task_key(task["task_id"])} for task in tasks],
    }


def _scores(
    subjects: Subjects, task_ids: Sequence[str]
) -> dict[str, dict[str, dict[int, list[float | None]]]]:
    """Return the scores of tasks: judge configuration -> entry -> index of the task -> its score.

    An incomplete task has no score, and its bounds follow.
    """
    indices = {task_id: index for index, task_id in enumerate(task_ids)}
    scores: dict[str, dict[str, Any]] = {
        each["key"]: defaultdict(dict) for each in subjects.judge_configs
    }
    for judge_config, entry, task_id, value, *bounds in subjects.rows("report/drilldown/scores"):
        if task_id in indices:
            known = (value,) if value is not None else (None, *bounds)
            scores[judge_config][entry][indices[task_id]] = [
                None if each is None else round(each, 5) for each in known
            ]
    return scores


def _marks(subjects: Subjects, rubrics: Rubrics) -> dict[str, dict[str, dict[str, str]]]:
    """Return the status of every criterion of every response.

    Entry -> judge configuration -> trial -> a letter for each criterion.
    """
    positions_of = {
        task_id: [row["position"] for row in rubric["criteria"]]
        for task_id, rubric in rubrics.items()
    }
    marked_tasks: dict[tuple[str, str, int], dict[str, str]] = defaultdict(dict)
    for entry, judge_config, trial, task_id, marks, positions in subjects.rows(
        "report/drilldown/marks"
    ):
        rubric = positions_of.get(task_id, [])
        # In the order of the rubric; a criterion without a verdict is not judged.
        by_position = dict(zip(positions or rubric, marks, strict=False))
        of_task = "".join(by_position.get(at, STATUSES["not_judged"]) for at in rubric)
        marked_tasks[entry, judge_config, trial][task_id] = of_task
    result: dict[str, dict[str, dict[str, str]]] = {
        entry["key"]: defaultdict(dict) for entry in subjects.entries
    }
    blanks = {
        task_id: STATUSES["not_judged"] * len(rubric) for task_id, rubric in positions_of.items()
    }
    for (entry, judge_config, trial), of_tasks in sorted(marked_tasks.items()):
        marked = (of_tasks.get(task_id, blank) for task_id, blank in blanks.items())
        result[entry][judge_config][str(trial)] = "".join(marked)
    return result
