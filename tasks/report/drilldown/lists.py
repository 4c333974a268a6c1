"""The lists that pages search: tasks, scores, criteria, and what became of every verdict, one letter each.

Each has its values in the order of the tasks in the index, and of the criteria in their rubrics. The index names the
files of all others, so that a page that has read it never mixes two reports.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.figures.figure import Breakdown
from tasks.figures.scope import task_key
from tasks.report.drilldown.packing import INDEX, write_data
from tasks.report.drilldown.replies import templates_of
from tasks.report.drilldown.subjects import STATUSES, UNKNOWN, Block, Row, Subjects
from tasks.report.rendering.site import Site
from tasks.rules.identity import IMPORTED

_ANSWERED = {None: "0", True: "1", False: "2"}
"""How the index says whether an entry answered a task: not at all, or so that it can be judged, or in vain."""
_OPENING_CHARACTERS = 200
_DECIMALS = 5
_ENTRIES_AT_ONCE = 20
"""Entries whose verdicts are read at once: each reading goes through all verdicts."""


@dataclass(frozen=True)
class Tasks:
    """The tasks in their order: what the index says of each, and its conversation and criteria."""

    rows: Sequence[Row]
    rubrics: Mapping[str, Mapping[str, Any]]

    @property
    def ids(self) -> list[str]:
        """The ids in their order."""
        return [row["task_id"] for row in self.rows]

    def criteria(self, task_id: str) -> Sequence[Row]:
        """Return the criteria of a task."""
        criteria: Sequence[Row] = self.rubrics[task_id]["criteria"]
        return criteria


def tasks_of(subjects: Subjects) -> Tasks:
    """Return the tasks that are listed."""
    scope = subjects.scope
    rubrics = {
        task_id: dict(zip(("conversation", "criteria", "is_sent"), map(json.loads, members), strict=True))
        for task_id, *members in subjects.rows("drilldown/rubrics")
    }
    return Tasks(scope.reader.rows(scope.asked("drilldown/tasks", {"n_characters": _OPENING_CHARACTERS})), rubrics)


def write_lists(subjects: Subjects, tasks: Tasks, site: Site, blocks: Sequence[Block]) -> None:
    """Write all lists, each named by a hash of its content; the index last, since the others are found by it."""
    scores = {key: write_data(site, values) for key, values in _scores(subjects, tasks).items()}
    marks: dict[str, str] = {}
    for start in range(0, len(subjects.entries), _ENTRIES_AT_ONCE):
        entries = subjects.entries[start : start + _ENTRIES_AT_ONCE]
        marks |= {key: write_data(site, values) for key, values in _marks(subjects, tasks, entries).items()}
    files: dict[str, dict[int, str]] = defaultdict(dict)
    for block in blocks:
        files[block.entry][block.number] = block.name
    usable: dict[tuple[str, str], bool] = {}
    trials: dict[str, set[int]] = defaultdict(set)
    for entry, task_id, is_usable, of_task in subjects.rows("drilldown/answered"):
        usable[entry, task_id] = is_usable
        trials[entry].update(of_task)
    index = _about(subjects, tasks) | {
        "criteria": write_data(site, _criteria(tasks)),
        "templates": write_data(site, templates_of(subjects)),
        "rubrics": {number: write_data(site, of_block) for number, of_block in _rubrics(tasks).items()},
        "judgings": [
            {"key": each["key"], "label": each["judging"], "scale": each["scale"], "reads": each["reads"],
             "template": each["template_hash"], "is_imported": each["judge_config_hash"] == IMPORTED,
             "scores": scores[each["key"]]}
            for each in subjects.judgings
        ],
        "entries": [
            {"key": key, "label": each["entry"], "vintage": each["vintage"], "is_also": each["is_also"],
             "trials": sorted(trials[key]), "marks": marks[key], "blocks": files[key],
             "answered": "".join(_ANSWERED[usable.get((key, task_id))] for task_id in tasks.ids)}
            for each in subjects.entries if (key := each["key"])
        ],
    }  # fmt: skip
    write_data(site, index, INDEX)


def _about(subjects: Subjects, tasks: Tasks) -> dict[str, Any]:
    """Return what the index says of tasks and labels."""
    main = subjects.scope.main
    field_title, breakdowns = _breakdowns(subjects.scope.own_breakdowns, tasks.rows)
    return {
        "field_title": field_title,
        "category_title": subjects.scope.category_title or "Category",
        "breakdowns": [
            {"kind": each.kind, "title": each.title, "of_criteria": each.of_criteria} for each in breakdowns
        ],
        "statuses": {mark: status for status, mark in STATUSES.items()} | {UNKNOWN: "unknown"},
        "main": next((each["key"] for each in subjects.judgings if each["judging"] == main), None),
        "tasks": [
            {**row, "key": task_key(row["task_id"]), "n_criteria": len(tasks.criteria(row["task_id"]))}
            for row in tasks.rows
        ],
    }


def _rubrics(tasks: Tasks) -> dict[int, dict[str, Any]]:
    """Return the conversations and criteria of the tasks of each block."""
    found: dict[int, dict[str, Any]] = defaultdict(dict)
    for row in tasks.rows:
        found[row["block"]][task_key(row["task_id"])] = tasks.rubrics[row["task_id"]]
    return found


def _breakdowns(own: Sequence[Breakdown], rows: Sequence[Row]) -> tuple[str, list[Breakdown]]:
    """What the field is called here, and the benchmark's own kinds of labels that say more than the field does."""
    same = [
        each for each in own
        if not each.of_criteria
        and all([of["label"] for of in row["labels"] if of["kind"] == each.kind] == [row["field"]] for row in rows)
    ]  # fmt: skip
    return (same[0].title if same else "Field"), [each for each in own if each not in same]


def _scores(subjects: Subjects, tasks: Tasks) -> dict[str, dict[str, Any]]:
    """Of each judging the values of each entry, task by task; of a task that is not complete the bounds."""
    places = {task_id: place for place, task_id in enumerate(tasks.ids)}
    found: dict[str, dict[str, Any]] = {each["key"]: {} for each in subjects.judgings}
    for judging, entry, task_id, value, lower, upper in subjects.rows("drilldown/scores"):
        if task_id not in places:
            continue
        of_entry = found[judging].setdefault(entry, {"values": [None] * len(places), "bounds": {}})
        if value is None:
            of_entry["bounds"][str(places[task_id])] = [round(lower, _DECIMALS), round(upper, _DECIMALS)]
        else:
            of_entry["values"][places[task_id]] = round(value, _DECIMALS)
    return found


def _criteria(tasks: Tasks) -> dict[str, Any]:
    """Return the criteria of all tasks, one after the other, a column at a time."""
    names = ("title", "weight", "category", "severity", "labels", "criterion_id", "key")
    rows = [row for task_id in tasks.ids for row in tasks.criteria(task_id)]
    return {name: [row[name] for row in rows] for name in names}


def _marks(subjects: Subjects, tasks: Tasks, entries: Sequence[Row]) -> dict[str, dict[str, dict[str, str]]]:
    """What became of every criterion of some entries' answers: entry -> judging -> trial -> a letter for each."""
    some = Subjects(subjects.scope, tuple(entries), subjects.judgings)
    rubrics = {task_id: [row["position"] for row in tasks.criteria(task_id)] for task_id in tasks.ids}
    found: dict[tuple[str, str, int], dict[str, str]] = defaultdict(dict)
    for entry, judging, trial, task_id, marks, positions in some.rows("drilldown/marks"):
        found[entry, judging, trial][task_id] = _placed(marks, positions, rubrics.get(task_id, []))
    blanks = {task_id: STATUSES["not_judged"] * len(rubric) for task_id, rubric in rubrics.items()}
    result: dict[str, dict[str, dict[str, str]]] = {entry["key"]: defaultdict(dict) for entry in entries}
    for (entry, judging, trial), of_tasks in sorted(found.items()):
        result[entry][judging][str(trial)] = "".join(of_tasks.get(task_id, blanks[task_id]) for task_id in tasks.ids)
    return result


def _placed(marks: str, positions: Sequence[int] | None, rubric: Sequence[int]) -> str:
    """Letters in the order of a rubric, those that are missing as not judged."""
    if positions is None and len(marks) == len(rubric):
        return marks
    placed = dict(zip(positions or rubric, marks, strict=False))
    return "".join(placed.get(position, STATUSES["not_judged"]) for position in rubric)
