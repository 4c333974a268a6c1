"""Texts are held against the hashes of a certificate: those that differ are listed, and those that are missing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.certify.texts import Texts
from tasks.certify.verifying import verify
from tasks.config.job import Job
from tasks.exports.tables import export_tables
from tasks.rules.errors import PipelineError
from tests.kit import write_jsonl
from tests.tasks.certify.conftest import ANSWERS, SAMPLE

Rows = list[dict[str, Any]]
EVERYTHING = {"conversation": 8, "criterion": 98, "response": 4}


def rows_of(path: Path) -> Rows:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def checked(certificate: Path, *texts: Path) -> Texts:
    found = verify(certificate, texts=texts)
    assert found.texts is not None
    assert found.is_confirmed == (not found.texts.differing)
    return found.texts


def test_a_data_set_and_responses_match(certificate: Path) -> None:
    found = checked(certificate, SAMPLE, ANSWERS)

    assert EVERYTHING == found.n_checked == found.n_certified
    assert ([], [], 0) == (found.differing, found.missing, found.n_others)
    assert ["texts: 8 of 8 conversations, 98 of 98 criteria, 4 of 4 responses checked; all match"] == found.lines


def test_an_export_and_a_warehouse_match(sample_job: Job, certificate: Path, tmp_path: Path) -> None:
    export_tables(sample_job, tmp_path / "exported")

    for place in (tmp_path / "exported", sample_job.warehouse):
        found = checked(certificate, place)
        assert (EVERYTHING, []) == (found.n_checked, found.differing)


def _prompt(rows: Rows) -> None:
    rows[0]["prompt_0"] += " "


def _title(rows: Rows) -> None:
    rows[0]["rubric"][2]["title"] += "!"


def _weight(rows: Rows) -> None:
    notes = rows[0]["rubric"][2]["annotations"]
    notes[notes["weight_class"].replace(" ", "_") + "_weight"] += 1


def _response(rows: Rows) -> None:
    rows[1]["response"] += "."


@pytest.mark.parametrize(("source", "change", "said"), [
    (SAMPLE, _prompt, "row 1: conversation of task sample-fin-1 is not what is certified"),
    (SAMPLE, _title, "row 1: criterion 2 of task sample-fin-1 is not what is certified"),
    (SAMPLE, _weight, "row 1: criterion 2 of task sample-fin-1 is not what is certified"),
    (ANSWERS, _response, "(trial 1, vintage base) is not what is certified"),
])  # fmt: skip
def test_one_text_or_weight_that_was_changed_is_the_one_that_is_listed(
    source: Path, change: Callable[[Rows], None], said: str, certificate: Path, tmp_path: Path
) -> None:
    rows = rows_of(source)
    change(rows)

    (line,) = checked(certificate, write_jsonl(tmp_path / "changed.jsonl", rows)).differing

    assert line.startswith(f"{tmp_path / 'changed.jsonl'}: row ")
    assert line.endswith(said)


def test_what_is_missing_is_named_and_what_is_not_certified_is_counted(certificate: Path, tmp_path: Path) -> None:
    rows = rows_of(ANSWERS)
    given = [*rows[1:], {**rows[0], "model": "stranger"}]

    found = checked(certificate, write_jsonl(tmp_path / "some.jsonl", given))

    first = f"response of {rows[0]['model']} to task {rows[0]['task']} (trial 1, vintage base)"
    assert ([first], 1, {"response": 3}) == (found.missing, found.n_others, found.n_checked)
    assert f"not given: {first}" in found.lines


def test_what_holds_no_texts_is_refused(certificate: Path, tmp_path: Path) -> None:
    other = write_jsonl(tmp_path / "other.jsonl", [{"task": "sample-fin-1", "model": "a"}])

    with pytest.raises(PipelineError, match="has neither `response` nor all columns of prbench"):
        checked(certificate, other)
    with pytest.raises(PipelineError, match="no such file; check the path"):
        checked(certificate, tmp_path / "nosuch.jsonl")
