"""The content of the drill-down, against the stored rows themselves, joined in plain Python."""

import string
from collections.abc import Iterator
from operator import itemgetter

import pytest

from tasks.config.job import Job
from tasks.figures.addresses import (
    criterion_key,
    entry_key,
    judge_config_key,
    task_key,
)
from tasks.figures.figure import grouped
from tests.tasks.report.drilldown.drilled import Row, files
from tests.tasks.report.synthetic.texts import CANARY
from warehouse import Warehouse

Cell = tuple[str, str, int, str, int]
"""Task, entry, trial, judge configuration, position of the criterion."""


class Stored:
    """The stored rows of the revision that a job shows."""

    def __init__(self, job: Job):
        with Warehouse(job.warehouse).reader() as reader:

            def select(table):
                rows = reader.select(table, "*", dataset_revision=job.data.revision)
                return sorted(rows, key=lambda row: row.get("position", 0))

            tasks = select("tasks")
            responses = select("responses")
            self.criteria = grouped(select("criteria"), "task_id")
            self.turns = grouped(select("message_rows"), "task_id")
            self.openings = {
                row["task_id"]: row["prompt"]
                for row in select("conversation_turns")
                if row["position"] == 0
            }
            verdicts = select("verdicts")
        self.tasks = {row["task_id"]: row for row in tasks if row["is_admitted"]}
        self.responses = {
            row["response_id"]: row
            for row in responses
            if row["task_id"] in self.tasks
        }
        # People label here, so they are not judges.
        self.verdicts = dict(
            self._cells(row for row in verdicts if row["source"] == "judged")
        )

    def _cells(self, verdicts: Iterator[Row]) -> Iterator[tuple[Cell, Row]]:
        positions = {}
        for rows in self.criteria.values():
            for row in rows:
                criterion = (
                    row["task_id"],
                    row["criterion_id"],
                    row["content_hash"],
                )
                positions[criterion] = row["position"]
        for row in verdicts:
            criterion = (
                row["task_id"],
                row["criterion_id"],
                row["criterion_hash"],
            )
            response = self.responses.get(row["response_id"])
            if criterion in positions and response:
                judge_config = judge_config_key(row)
                yield (*trial_of(response), judge_config, positions[criterion]), row


def trial_of(response: Row) -> tuple[str, str, int]:
    """Return the task, the entry and the trial of a response."""
    return response["task_id"], entry_key(response), response["trial"]


@pytest.fixture(scope="module")
def stored(world_job: Job) -> Stored:
    return Stored(world_job)


def sections(contents: Row, stored: Stored) -> Iterator[tuple[str, str, Row]]:
    """Yield each task and entry with the responses and verdicts in its data file."""
    for task_id in stored.tasks:
        for entry, section in contents[f"task-{task_key(task_id)}"].items():
            if entry != "task":
                yield task_id, entry, section


LISTED = (
    "field",
    "topic",
    "turns",
    "splits",
    "decision_types",
    "economic_pathways",
    "expert",
)


def test_every_admitted_task_is_listed_with_its_labels(contents, stored):
    listed_tasks = {row["task_id"]: row for row in contents["index"]["tasks"]}

    assert listed_tasks.keys() == stored.tasks.keys()
    for task_id, task in listed_tasks.items():
        categories = {row["category"] for row in stored.criteria[task_id]}
        expected_labels = {name: stored.tasks[task_id][name] for name in LISTED}
        assert {name: task[name] for name in LISTED} == expected_labels
        assert task["key"] == task_key(task_id)
        assert task["n_criteria"] == len(stored.criteria[task_id])
        assert task["categories"] == sorted(categories)
        assert stored.openings[task_id].startswith(task["opening"])


def test_some_tasks_are_listed_as_hard(contents):
    assert {row["is_hard"] for row in contents["index"]["tasks"]} == {True, False}


def test_the_conversation_is_as_it_was_sent(contents, stored):
    turn = itemgetter("role", "content")

    for task_id in stored.tasks:
        rubric = contents[f"task-{task_key(task_id)}"]["task"]
        turns = list(map(turn, rubric["conversation"]))
        assert turns == list(map(turn, stored.turns[task_id]))


def test_the_criteria_are_as_they_were_sent(contents, stored):
    criterion = itemgetter(
        "criterion_id",
        "title",
        "category",
        "severity",
        "weight",
        "position",
    )

    for task_id in stored.tasks:
        criteria = contents[f"task-{task_key(task_id)}"]["task"]["criteria"]
        stored_criteria = stored.criteria[task_id]
        assert list(map(criterion, criteria)) == list(map(criterion, stored_criteria))
        for row in criteria:
            assert row["key"] == criterion_key(row["criterion_id"])


def test_every_response_is_in_the_file_of_its_task_word_for_word(contents, stored):
    values = itemgetter(
        "status",
        "error",
        "text",
        "degraded",
        "chars_alnum",
        "completion_tokens",
        "cost_usd",
        "latency_s",
        "source",
    )
    expected = {trial_of(row): values(row) for row in stored.responses.values()}

    actual = {}
    for task_id, entry, section in sections(contents, stored):
        for response in section["responses"]:
            actual[task_id, entry, response["trial"]] = values(response)

    assert actual == expected
    assert {status for status, *_ in actual.values()} == {
        "ok",
        "refused",
        "truncated",
    }


def test_every_verdict_of_every_judge_is_beside_its_response(contents, stored):
    cell = itemgetter("trial", "judge_config", "position")
    values = itemgetter("status", "explanation", "error")

    actual = {}
    for task_id, entry, section in sections(contents, stored):
        for verdict in section["verdicts"]:
            actual[task_id, entry, *cell(verdict)] = values(verdict)

    assert actual == {cell: values(row) for cell, row in stored.verdicts.items()}
    # two judges, one with two configurations
    statuses = {status for status, *_ in actual.values()}
    assert len({judge_config for *_, judge_config, _ in actual}) == 3
    assert {"met", "unmet", "timeout", "parse_error"} <= statuses


def test_the_list_of_verdicts_has_a_letter_for_every_criterion(contents, stored):
    index = contents["index"]
    criteria = []
    for task in index["tasks"]:
        criteria += stored.criteria[task["task_id"]]
    failed_responses = {
        trial_of(row) for row in stored.responses.values() if row["status"] != "ok"
    }

    actual = {}
    for entry in index["entries"]:
        for judge_config, marks_by_trial in contents[f"entry-{entry['key']}"].items():
            for trial, marks in marks_by_trial.items():
                for row, mark in zip(criteria, marks, strict=True):
                    response = (
                        row["task_id"],
                        entry["key"],
                        int(trial),
                    )
                    cell = (*response, judge_config, row["position"])
                    actual[cell] = index["statuses"][mark]

    expected = {}
    for cell in actual:
        unjudged = "no_response" if cell[:3] in failed_responses else "not_judged"
        expected[cell] = stored.verdicts.get(cell, {"status": unjudged})["status"]
    assert actual == expected
    assert actual.keys() >= stored.verdicts.keys()
    assert contents["criteria"]["title"] == [row["title"] for row in criteria]


def test_scores_and_bounds_are_those_of_the_marts(world_job, contents):
    query = "from task_scores where score_name = 'score' and dataset_revision = ?"
    with Warehouse(world_job.warehouse).reader() as reader:
        rows = reader.rows(query, [world_job.data.revision])
    index = contents["index"]
    task_ids = [task["task_id"] for task in index["tasks"]]
    entries = {entry["key"] for entry in index["entries"]}
    judge_configs = {judge_config["key"] for judge_config in index["judge_configs"]}
    expected = {}
    for row in rows:
        cell = (
            judge_config_key(row),
            entry_key(row),
            row["task_id"],
        )
        if cell[0] in judge_configs and cell[1] in entries and cell[2] in task_ids:
            values = [row["value"]]
            if row["value"] is None:
                values += [row["value_lower"], row["value_upper"]]
            expected[cell] = pytest.approx(values, abs=1e-5)

    actual = {}
    for judge_config in judge_configs:
        for entry, scores in contents[f"scores-{judge_config}"].items():
            for number, values in scores.items():
                actual[judge_config, entry, task_ids[int(number)]] = values

    assert actual == expected
    assert {len(values) for values in actual.values()} == {1, 3}


def test_no_file_has_a_canary(world_drilldown, contents):
    for content in files(world_drilldown).values():
        assert CANARY.encode() not in content
    assert CANARY not in repr(contents)


def test_no_data_file_has_a_character_that_could_end_a_script(
    world_drilldown, hostile_site
):
    letters = string.ascii_letters + string.digits
    plain_characters = set(f'{letters}+/=-."{{}}[](),:;\n'.encode())

    for site in (world_drilldown, hostile_site):
        for content in files(site / "data").values():
            assert set(content) <= plain_characters
