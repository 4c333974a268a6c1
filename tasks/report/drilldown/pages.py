"""The pages of the drill-down, and the lists that they search.

The list of verdicts has one letter for each, its status. The values of each list are in the order
of the tasks in the index, and of the criteria in their rubrics. The index names all other files, so
that a page never mixes two reports.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from tasks.figures.addresses import task_key
from tasks.figures.figure import Row, Rows
from tasks.figures.page import Breakdown, Page
from tasks.figures.scope import Scope
from tasks.report.drilldown.blocks import (
    STATUSES,
    Block,
    Subjects,
    as_json,
    data_file,
    name_of,
    subjects_of,
    write_blocks,
    write_data,
    write_packed,
)
from tasks.report.drilldown.markdown import as_html
from tasks.report.rendering.site import Site, Values, render
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


class Rubric(TypedDict):
    """The conversation and the criteria of a task.

    `is_sent` is true if the conversation is assembled.
    """

    conversation: list[Row]
    criteria: list[Row]
    is_sent: bool


Rubrics = Mapping[str, Rubric]
"""Task id, in the order of the tasks -> its rubric."""
_REMINDERS = {"2": reminder(BINARY), "3": reminder(TERNARY)}
"""Number of values of a grading -> the reminder that its judges get."""
_CRITERION_COLUMNS = ("title", "weight", "category", "severity", "labels", "criterion_id", "key")
"""The columns of the list of all criteria."""


def write_drilldown(scope: Scope, site: Site, report: Values, earlier_entries: Rows) -> None:
    """Write the tasks, their responses and verdicts, and the pages that show them.

    Unchanged files are kept: without any query if the results are those of the report before.

    Data is written first, so that every existing page finds its files.

    Args:
        scope: the scope of the shown entries and judge configurations.
        site: the report's folder.
        report: values of every page.
        earlier_entries: earlier vintages for comparison (`model`, `model_config_hash`, `vintage`,
            and a label `entry`); entries that are already in the scope are ignored.
    """
    if not site.keeps_data():
        subjects = subjects_of(scope, earlier_entries)
        all_rubrics = _rubrics(subjects)
        tasks = scope.rows("report/drilldown/tasks", {"n_characters": 200})
        rubrics = {task["task_id"]: all_rubrics[task["task_id"]] for task in tasks}
        _write_lists(subjects, tasks, rubrics, site)
    for page in (TASK, TASKS, VERDICTS):
        site.write(f"{page.name}.html", render(page, report))


def _rubrics(subjects: Subjects) -> dict[str, Rubric]:
    rubrics = {}
    for task_id, conversation, criteria, is_sent in subjects.rows("report/drilldown/rubrics"):
        turns = json.loads(conversation)
        for turn in turns:
            # An earlier response, so it is Markdown like the others.
            if turn["role"] == "assistant":
                turn["html"] = as_html(turn["content"])
        rubrics[task_id] = Rubric(
            conversation=turns, criteria=json.loads(criteria), is_sent=is_sent
        )
    return rubrics


def _write_lists(subjects: Subjects, tasks: Rows, rubrics: Rubrics, site: Site) -> None:
    """Write all lists, each named by a hash of its content or inputs, and last the index of them.

    The index has all columns of `tasks`.
    """
    scope = subjects.scope
    blocks = write_blocks(subjects, site)
    main_key = None
    for judge_config in subjects.judge_configs:
        if judge_config["judge_config"] == scope.main:
            main_key = judge_config["key"]
    index = {
        **_titles(scope, tasks),
        "statuses": {mark: status for status, mark in STATUSES.items()},
        "main": main_key,
        "tasks": [{**task, "key": task_key(task["task_id"])} for task in tasks],
        "criteria": write_data(site, _criteria(rubrics)),
        "templates": write_data(site, _templates(subjects)),
        "rubrics": _write_rubrics(tasks, rubrics, site),
        "judge_configs": _write_judge_configs(subjects, rubrics, site),
        "entries": _write_entries(subjects, rubrics, blocks, site),
    }
    write_packed(site, "index", as_json(index))


def _titles(scope: Scope, tasks: Rows) -> dict[str, Any]:
    """Return the titles of field and category, and the kinds of labels.

    If the labels of a kind always equal the field, the kind is left out, and the field gets its
    title.
    """
    breakdowns = scope.own_breakdowns
    fields = [breakdown for breakdown in breakdowns if _is_field(breakdown, tasks)]
    return {
        "field_title": fields[0].title if fields else "Field",
        "category_title": scope.category_title or "Category",
        "breakdowns": [vars(breakdown) for breakdown in breakdowns if breakdown not in fields],
    }


def _is_field(breakdown: Breakdown, tasks: Rows) -> bool:
    """Return whether each task has one label of this kind, which equals its field."""
    if breakdown.of_criteria:
        return False
    for task in tasks:
        labels = [row["label"] for row in task["labels"] if row["kind"] == breakdown.kind]
        if labels != [task["field"]]:
            return False
    return True


def _criteria(rubrics: Rubrics) -> dict[str, list[Any]]:
    """Return the columns of all criteria, in the order of the tasks."""
    columns: dict[str, list[Any]] = {name: [] for name in _CRITERION_COLUMNS}
    for rubric in rubrics.values():
        for criterion in rubric["criteria"]:
            for name, values in columns.items():
                values.append(criterion[name])
    return columns


def _templates(subjects: Subjects) -> dict[str, dict[str, str]]:
    """Return the known templates of judges, and their reminders.

    Pages show a template beside the values of its placeholders, so no prompts are stored.
    """
    hashes = {judge_config["template_hash"] for judge_config in subjects.judge_configs}
    templates = templates_by_hash(subjects.scope.job, subjects.scope.benchmark)
    return {
        "templates": {key: text for key, text in templates.items() if key in hashes},
        "reminders": _REMINDERS,
    }


def _write_rubrics(tasks: Rows, rubrics: Rubrics, site: Site) -> dict[int, str]:
    """Write the rubrics of each block of tasks, and return the names of the files."""
    blocks: dict[int, dict[str, Rubric]] = defaultdict(dict)
    for task in tasks:
        blocks[task["block"]][task_key(task["task_id"])] = rubrics[task["task_id"]]
    return {number: write_data(site, block) for number, block in blocks.items()}


def _write_judge_configs(subjects: Subjects, rubrics: Rubrics, site: Site) -> Rows:
    """Write the scores by each judge configuration, and return the entries of the index."""
    scores = _scores(subjects, rubrics)
    documents = []
    for judge_config in subjects.judge_configs:
        key = judge_config["key"]
        documents.append(
            {
                "key": key,
                "label": visible(judge_config["judge_config"]),
                "scale": judge_config["scale"],
                "reads": judge_config["reads"],
                "template": judge_config["template_hash"],
                "is_imported": judge_config["judge_config_hash"] == IMPORTED,
                "scores": write_data(site, scores[key]),
            }
        )
    return documents


def _write_entries(
    subjects: Subjects,
    rubrics: Rubrics,
    blocks: Sequence[Block],
    site: Site,
) -> Rows:
    """Write the marks of each entry, and return the entries of the index.

    `response_states` has a digit for each task: 0 no response, 1 a response that can be judged, 2
    failed.
    """
    files: dict[str, dict[int, str]] = defaultdict(dict)
    for block in blocks:
        files[block.entry][block.number] = block.name
    marks_files = _write_marks(subjects, rubrics, blocks, site)
    states: dict[tuple[str, str], str] = {}
    trials: dict[str, set[int]] = defaultdict(set)
    for key, task_id, is_usable, task_trials in subjects.rows("report/drilldown/response_states"):
        states[key, task_id] = "1" if is_usable else "2"
        trials[key].update(task_trials)
    entries = []
    for entry in subjects.entries:
        key = entry["key"]
        entries.append(
            {
                "key": key,
                "label": visible(entry["entry"]),
                "vintage": entry["vintage"],
                "is_earlier": entry["is_earlier"],
                "trials": sorted(trials[key]),
                "marks": marks_files[key],
                "blocks": files[key],
                "response_states": "".join(states.get((key, task_id), "0") for task_id in rubrics),
            }
        )
    return entries


def _scores(
    subjects: Subjects, rubrics: Rubrics
) -> dict[str, dict[str, dict[int, list[float | None]]]]:
    """Return the scores of tasks: judge configuration -> entry -> index of the task -> its score.

    The list of a task has its score, or None and then the bounds if the task is incomplete. A judge
    configuration without scores has an empty entry.
    """
    indices = {task_id: index for index, task_id in enumerate(rubrics)}
    scores: dict[str, Any] = defaultdict(lambda: defaultdict(dict))
    for judge_config, entry, task_id, score, *bounds in subjects.rows("report/drilldown/scores"):
        if task_id in indices:
            values = [score, *bounds] if score is None else [score]
            rounded = [None if value is None else round(value, 5) for value in values]
            scores[judge_config][entry][indices[task_id]] = rounded
    return scores


Positions = Mapping[str, Sequence[int]]
"""Task id, in the order of the tasks -> the positions of its criteria."""


def _write_marks(
    subjects: Subjects,
    rubrics: Rubrics,
    blocks: Sequence[Block],
    site: Site,
) -> dict[str, str]:
    """Write the marks of the entries that have new blocks, and return the name of each entry's
    file.

    The name is a hash of the entry's blocks and of the rubrics, which determine the marks.
    """
    positions = {}
    for task_id, rubric in rubrics.items():
        positions[task_id] = [criterion["position"] for criterion in rubric["criteria"]]
    names = {}
    for entry in subjects.entries:
        key = entry["key"]
        entry_blocks = [block for block in blocks if block.entry == key]
        names[key] = name_of(as_json([key, entry_blocks, positions]))
    missing = {key for key, name in names.items() if not site.keep(data_file(name))}
    marks = _marks(subjects, positions, [block for block in blocks if block.entry in missing])
    for key in sorted(missing):
        write_packed(site, names[key], as_json(marks[key]))
    return names


def _marks(
    subjects: Subjects,
    positions: Positions,
    blocks: Sequence[Block],
) -> dict[str, dict[str, dict[str, str]]]:
    """Return the status of every criterion of every response of the entries of some blocks.

    Entry -> judge configuration -> trial -> a letter for each criterion.
    """
    trials: dict[tuple[str, str, int], dict[str, str]] = defaultdict(dict)
    rows = subjects.rows("report/drilldown/marks", blocks) if blocks else []
    for entry, judge_config, trial, task_id, letters, letter_positions in rows:
        rubric_positions = positions.get(task_id, [])
        # Letters have no positions if every criterion of the rubric has one.
        letters_by_position = dict(zip(letter_positions or rubric_positions, letters, strict=False))
        trials[entry, judge_config, trial][task_id] = _line_up(
            letters_by_position, rubric_positions
        )
    marks: dict[str, Any] = defaultdict(lambda: defaultdict(dict))
    for (entry, judge_config, trial), letters_by_task in sorted(trials.items()):
        all_letters = ""
        for task_id, rubric_positions in positions.items():
            all_letters += letters_by_task.get(task_id) or _line_up({}, rubric_positions)
        marks[entry][judge_config][str(trial)] = all_letters
    return marks


def _line_up(letters: Mapping[int, str], positions: Sequence[int]) -> str:
    """Return the letters of criteria, by position; a criterion without a verdict is not judged."""
    return "".join(letters.get(position, STATUSES["not_judged"]) for position in positions)
