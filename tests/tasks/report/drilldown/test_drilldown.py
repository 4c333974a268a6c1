"""The content of the drill-down, against the stored rows themselves, joined in plain Python."""

import string
from collections.abc import Iterator
from itertools import groupby, product
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.figures.addresses import criterion_key, entry_key, judge_config_key, task_key
from tests.tasks.report.drilldown.drilled import Row, files
from tests.tasks.report.synthetic.texts import CANARY
from warehouse import Warehouse

pytestmark = pytest.mark.slow

Cell = tuple[str, str, int, str, int]
"""Task, entry, trial, judge configuration, position of the criterion."""


class Stored:
    """The stored rows of the revision that a job shows."""

    def __init__(self, job: Job) -> None:
        revision = job.data.revision
        with Warehouse(job.warehouse).reader() as reader:
            of = {
                name: [
                    row
                    for row in reader.rows(f"select * from {name}")
                    if row["dataset_revision"] == revision
                ]
                for name in (
                    "tasks",
                    "criteria",
                    "responses",
                    "verdicts",
                    "message_rows",
                    "conversation_turns",
                )
            }
        self.tasks = {row["task_id"]: row for row in of["tasks"] if row["is_admitted"]}
        self.responses = {
            row["response_id"]: row for row in of["responses"] if row["task_id"] in self.tasks
        }
        self.criteria = self._by_task(of["criteria"])
        self.turns = self._by_task(of["message_rows"])
        self.openings = {
            row["task_id"]: row["prompt"]
            for row in of["conversation_turns"]
            if row["position"] == 0
        }
        # People label here, so they are not judges.
        self.verdicts = dict(
            self._cells([row for row in of["verdicts"] if row["source"] == "judged"])
        )

    def _by_task(self, rows: list[Row]) -> dict[str, list[Row]]:
        in_order = sorted(rows, key=lambda row: (row["task_id"], row["position"]))
        return {
            task_id: list(of_task)
            for task_id, of_task in groupby(in_order, lambda row: str(row["task_id"]))
        }

    def _cells(self, verdicts: list[Row]) -> Iterator[tuple[Cell, Row]]:
        criteria = (row for rows in self.criteria.values() for row in rows)
        positions = {
            (row["task_id"], row["criterion_id"], row["content_hash"]): row["position"]
            for row in criteria
        }
        for row in verdicts:
            position = positions.get((row["task_id"], row["criterion_id"], row["criterion_hash"]))
            if position is not None and row["response_id"] in self.responses:
                response = self.responses[row["response_id"]]
                yield (
                    (
                        row["task_id"],
                        entry_key(response),
                        response["trial"],
                        judge_config_key(row),
                        position,
                    ),
                    row,
                )


@pytest.fixture(scope="module")
def stored(world_job: Job) -> Stored:
    return Stored(world_job)


def test_every_admitted_task_is_listed_with_what_it_is_found_by(
    held: dict[str, Any], stored: Stored
) -> None:
    listed = {row["task_id"]: row for row in held["index"]["tasks"]}

    assert stored.tasks.keys() == listed.keys()
    for task_id, row in listed.items():
        same = (
            "field",
            "topic",
            "turns",
            "splits",
            "decision_types",
            "economic_pathways",
            "expert",
        )
        assert {name: stored.tasks[task_id][name] for name in same} == {
            name: row[name] for name in same
        }
        assert task_key(task_id) == row["key"]
        assert len(stored.criteria[task_id]) == row["n_criteria"]
        assert sorted({each["category"] for each in stored.criteria[task_id]}) == row["categories"]
        assert stored.openings[task_id].startswith(row["opening"])
    assert 0 < sum(row["is_hard"] for row in listed.values()) < len(listed)


def test_the_conversation_and_the_criteria_are_as_they_were_sent(
    held: dict[str, Any], stored: Stored
) -> None:
    for task_id in stored.tasks:
        part = held[f"task-{task_key(task_id)}"]["task"]
        expected = stored.turns[task_id]
        actual = part["conversation"]
        assert [(t["role"], t["content"]) for t in expected] == [
            (t["role"], t["content"]) for t in actual
        ]
        same = ("criterion_id", "title", "category", "severity", "weight", "position")
        assert [
            (criterion_key(row["criterion_id"]), *(row[name] for name in same))
            for row in stored.criteria[task_id]
        ] == [tuple(each[name] for name in ("key", *same)) for each in part["criteria"]]


def test_every_response_stands_in_the_file_of_its_task_word_for_word(
    held: dict[str, Any], stored: Stored
) -> None:
    same = (
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
    rows = stored.responses.values()
    expected = {
        (row["task_id"], entry_key(row), row["trial"]): tuple(row[n] for n in same) for row in rows
    }
    actual = {
        (task_id, entry, response["trial"]): tuple(response[name] for name in same)
        for task_id in stored.tasks
        for entry, part in held[f"task-{task_key(task_id)}"].items()
        for response in part.get("responses", ())
    }

    assert actual == expected
    assert {status for status, *_ in actual.values()} == {"ok", "refused", "truncated"}


def test_every_verdict_of_every_judge_stands_beside_its_response(
    held: dict[str, Any], stored: Stored
) -> None:
    same = ("status", "explanation", "error")
    actual = {
        (task_id, entry, *(verdict[name] for name in ("trial", "judge_config", "position"))): tuple(
            verdict[name] for name in same
        )
        for task_id in stored.tasks
        for entry, part in held[f"task-{task_key(task_id)}"].items()
        for verdict in part.get("verdicts", ())
    }

    assert {
        cell: tuple(row[name] for name in same) for cell, row in stored.verdicts.items()
    } == actual
    assert (
        len({judge_config for *_, judge_config, _ in actual}) == 3
    )  # two judges, one with two configurations
    assert {"met", "unmet", "timeout", "parse_error"} <= {status for status, *_ in actual.values()}


def test_the_list_of_verdicts_has_a_letter_for_every_criterion(
    held: dict[str, Any], stored: Stored
) -> None:
    index = held["index"]
    criteria = held["criteria"]
    rows = [row for task in index["tasks"] for row in stored.criteria[task["task_id"]]]
    failed = {
        (r["task_id"], entry_key(r), r["trial"])
        for r in stored.responses.values()
        if r["status"] != "ok"
    }
    listed = {
        (row["task_id"], entry["key"], int(trial), judge_config, row["position"]): index[
            "statuses"
        ][mark]
        for entry in index["entries"]
        for judge_config, by_trial in held[f"entry-{entry['key']}"].items()
        for trial, marks in by_trial.items()
        for row, mark in zip(rows, marks, strict=True)
    }
    unjudged = {cell: "no_response" if cell[:3] in failed else "not_judged" for cell in listed}

    assert [row["title"] for row in rows] == criteria["title"]
    assert (
        unjudged | {cell: verdict["status"] for cell, verdict in stored.verdicts.items()} == listed
    )


def test_scores_and_bounds_are_those_of_the_marts(world_job: Job, held: dict[str, Any]) -> None:
    with Warehouse(world_job.warehouse).reader() as reader:
        query = "from task_scores where score_name = 'score' and dataset_revision = ?"
        stored_rows = reader.rows(query, [world_job.data.revision])
        rows = {(judge_config_key(row), entry_key(row), row["task_id"]): row for row in stored_rows}
    index = held["index"]
    for judge_config, entry in product(
        (each["key"] for each in index["judge_configs"]), index["entries"]
    ):
        shown = held[f"scores-{judge_config}"].get(entry["key"], {})
        for number, task in enumerate(index["tasks"]):
            row = rows.get((judge_config, entry["key"], task["task_id"]), {"value": None})
            value, *bounds = shown.get(str(number), [None])
            assert (row["value"] and pytest.approx(row["value"], abs=1e-5)) == value
            if row["value"] is None and len(row) > 1:
                assert pytest.approx([row["value_lower"], row["value_upper"]], abs=1e-5) == bounds
    assert {row["value"] is None for row in rows.values()} == {True, False}


def test_no_file_has_a_canary_or_ends_a_script(
    world_drilldown: Path, hostile_site: Path, held: dict[str, Any]
) -> None:
    plain = frozenset((string.ascii_letters + string.digits + '+/=-."{}[](),:;\n').encode())

    assert [
        name for name, content in files(world_drilldown).items() if CANARY.encode() in content
    ] == []
    assert CANARY not in repr(held)
    for site in (world_drilldown, hostile_site):
        assert [
            name for name, content in files(site / "data").items() if set(content) - plain
        ] == []
