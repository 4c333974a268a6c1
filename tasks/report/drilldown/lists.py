"""The lists that pages search: tasks, scores, criteria, and what became of every verdict, one letter each.

Each has its values in the order of the tasks in the index, and of the criteria in their rubrics; `order` says of which
index, so that a page notices when the report was renewed under it.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.figures.figure import Breakdown
from tasks.figures.scope import criterion_key, task_key
from tasks.report.drilldown.packing import write_data
from tasks.report.drilldown.subjects import STATUSES, UNKNOWN, Row, Subjects
from tasks.report.rendering.site import Site
from tasks.rules.identity import IMPORTED, digest

_OPENING_CHARACTERS = 200
_DECIMALS = 5
_ENTRIES_AT_ONCE = 20
"""Entries whose verdicts are read at once: each reading goes through all verdicts."""


@dataclass(frozen=True)
class Tasks:
    """The tasks in their order: what pages get of each, its id, and the positions of its criteria."""

    rows: Sequence[Row]
    rubrics: Mapping[str, Sequence[Row]]

    @property
    def ids(self) -> list[str]:
        """The ids in their order."""
        return [row["task_id"] for row in self.rows]

    @property
    def order(self) -> str:
        """Changes with the tasks, their criteria, or their order."""
        return digest([[task_id, [each["criterion_id"] for each in self.rubric(task_id)]] for task_id in self.ids])

    def rubric(self, task_id: str) -> Sequence[Row]:
        """The criteria of a task."""
        return self.rubrics.get(task_id, ())


def tasks_of(subjects: Subjects) -> Tasks:
    """The tasks that are listed."""
    edition = subjects.edition
    given = {"n_characters": _OPENING_CHARACTERS}
    rubrics: dict[str, list[Row]] = defaultdict(list)
    for row in edition.reader.rows(edition.asked("drilldown/criteria")):
        rubrics[row["task_id"]].append(row)
    return Tasks(edition.reader.rows(edition.asked("drilldown/tasks", given)), rubrics)


def write_lists(subjects: Subjects, tasks: Tasks, site: Site, replied: Collection[str]) -> None:
    """Write all lists; the index last, since the others are found by it.

    `replied` are the ids of the tasks of which the report has judges' replies.
    """
    order = {"order": tasks.order}
    for judging, scores in _scores(subjects, tasks).items():
        write_data(site, f"scores-{judging}", order | {"entries": scores})
    write_data(site, "criteria", order | _criteria(tasks))
    for start in range(0, len(subjects.entries), _ENTRIES_AT_ONCE):
        entries = subjects.entries[start : start + _ENTRIES_AT_ONCE]
        for key, marks in _marks(subjects, tasks, entries).items():
            write_data(site, f"entry-{key}", order | {"marks": marks})
    write_data(site, "index", order | _index(subjects, tasks, replied))


def _index(subjects: Subjects, tasks: Tasks, replied: Collection[str]) -> dict[str, Any]:
    trials: dict[str, list[int]] = defaultdict(list)
    for key, trial in subjects.rows("drilldown/trials"):
        trials[key].append(trial)
    answered = {entry: set(task_ids) for entry, task_ids in subjects.rows("drilldown/answered")}
    main = subjects.edition.main
    field_title, breakdowns = _breakdowns(subjects.edition.own_breakdowns, tasks.rows)
    return {
        "field_title": field_title,
        "category_title": subjects.edition.category_title or "Category",
        "breakdowns": [
            {"kind": each.kind, "title": each.title, "of_criteria": each.of_criteria} for each in breakdowns
        ],
        "statuses": {mark: status for status, mark in STATUSES.items()} | {UNKNOWN: "unknown"},
        "main": next((each["key"] for each in subjects.judgings if each["judging"] == main), None),
        "judgings": [
            {"key": each["key"], "label": each["judging"], "scale": each["scale"], "reads": each["reads"],
             "template": each["template_hash"], "is_imported": each["judge_config_hash"] == IMPORTED}
            for each in subjects.judgings
        ],
        "entries": [
            {"key": each["key"], "label": each["entry"], "vintage": each["vintage"], "is_also": each["is_also"],
             "trials": trials[each["key"]],
             "answered": "".join("01"[task_id in answered.get(each["key"], ())] for task_id in tasks.ids)}
            for each in subjects.entries
        ],
        "tasks": [
            {**row, "key": task_key(row["task_id"]), "n_criteria": len(tasks.rubric(row["task_id"])),
             "has_replies": row["task_id"] in replied}
            for row in tasks.rows
        ],
    }  # fmt: skip


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
    """The criteria of all tasks, one after the other, a column at a time."""
    rows = [row for task_id in tasks.ids for row in tasks.rubric(task_id)]
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in ("title", "weight")}
    for name in ("category", "severity"):
        labels = sorted({row[name] for row in rows if row[name] is not None})
        numbers = {label: number for number, label in enumerate(labels)}
        columns[name] = {"labels": labels, "numbers": [numbers.get(row[name], -1) for row in rows]}
    columns["labels"] = [row["labels"] for row in rows]
    ids = [row["criterion_id"] for row in rows]
    return columns | {"id": ids, "key": list(map(criterion_key, ids))}


def _marks(subjects: Subjects, tasks: Tasks, entries: Sequence[Row]) -> dict[str, dict[str, dict[str, str]]]:
    """What became of every criterion of some entries' answers: entry -> judging -> trial -> a letter for each."""
    some = Subjects(subjects.edition, tuple(entries), subjects.judgings)
    rubrics = {task_id: [row["position"] for row in tasks.rubric(task_id)] for task_id in tasks.ids}
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
