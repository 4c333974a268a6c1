"""A certificate has the basis of its figures and nothing else, and an independent checker gets the
same figures.
"""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

import sql
from tasks.aggregate import aggregate
from tasks.certify.certifying import MODELS, ROWS, certify
from tasks.certify.verifying import compare, verify
from tasks.config.job import DataRevision, Job
from tasks.imports.verdicts import import_verdicts
from tasks.ingest import ingest
from tasks.rules.errors import PipelineError, UsageError
from tests.kit import copied, job_on, row, write_jsonl, written
from tests.tasks.aggregate.world import random_world
from tests.tasks.certify import conftest as certificates
from tests.tasks.certify.checker import check
from tests.worlds import LABELS
from warehouse import Warehouse
from warehouse.tables import TABLES

pytestmark = pytest.mark.slow
TEXTS = (
    "select title from criteria",
    "select canary from split_members",
    "select prompt from conversation_turns",
    "select response from conversation_turns",
    "select unnest(reference_texts) from conversation_turns",
    "select text from responses",
    "select error from responses",
    "select explanation from verdicts",
    "select error from verdicts",
    "select content from messages",
)
"""Queries for all texts that a certificate must not have."""


def test_the_same_state_gives_the_same_bytes(
    sample_job: Job, certificate: Path, tmp_path: Path
) -> None:
    again = certificates.certified(sample_job, tmp_path / "again.zip")
    rebuilding = copied(sample_job, tmp_path / "copied")
    Warehouse(rebuilding.warehouse).database.unlink()
    Warehouse(rebuilding.warehouse).publish()
    rebuilt = certificates.certified(rebuilding, tmp_path / "rebuilt.zip")

    assert certificate.read_bytes() == again.read_bytes()
    # After a rebuild, only the last digits of means may differ.
    ours = certificates.members_of(certificate)
    others = certificates.members_of(rebuilt)
    assert ours.keys() == others.keys()
    differing = {name for name in ours if ours[name] != others[name]} - {"manifest.json"}
    assert differing <= {name for name in ours if name.startswith("figures/")}
    for name in differing:
        for side, members in (("ours", ours), ("others", others)):
            (tmp_path / side).write_bytes(members[name])
        assert compare(name, tmp_path / "ours", tmp_path / "others", is_same_sql=True)[1] == []


def texts_in(job: Job) -> set[str]:
    """The texts of a warehouse, without short ones, which could also be labels."""
    with Warehouse(job.warehouse).reader() as reader:
        texts = {value for query in TEXTS for (value,) in reader.table(query)[1]}
    return {text.strip() for text in texts if text and len(text.strip()) > 25}


def test_no_text_canary_or_explanation_is_in_a_certificate(world_job: Job, tmp_path: Path) -> None:
    members = certificates.members_of(certificates.certified(world_job, tmp_path / "world.zip"))
    # Each string once, since figures repeat many.
    held = "\n".join(
        {
            each
            for text in members.values()
            for each in re.findall(r'"(?:[^"\\]|\\.)*"', text.decode())
        }
    )
    held += "\n".join(
        text.decode() for name, text in members.items() if not name.endswith(".jsonl")
    )
    texts = texts_in(world_job)

    assert len(texts) > 1000
    assert any("prbench:sample" in text or "canary" in text for text in texts)
    assert [text for text in texts if text in held or json.dumps(text)[1:-1] in held] == []


def test_no_certificate_replaces_a_file_or_lacks_figures(
    sample_job: Job, certificate: Path, tmp_path: Path
) -> None:
    before = certificate.read_bytes()
    with pytest.raises(UsageError, match="exists already; name a new file"):
        certify(sample_job, certificate)
    assert before == certificate.read_bytes()
    with pytest.raises(UsageError, match="no such folder"):
        certify(sample_job, tmp_path / "nosuch" / "file.zip")
    empty = job_on("sample", tmp_path / "empty")
    ingest(empty)
    with pytest.raises(PipelineError, match="run `prbench judge`"):
        certify(empty, tmp_path / "file.zip")
    assert not (tmp_path / "file.zip").exists()


def test_figures_without_their_intervals_are_not_certified(sample_job: Job, tmp_path: Path) -> None:
    job = copied(sample_job, tmp_path / "copied")
    labels = csv.DictReader(LABELS.read_text("utf-8").splitlines())
    import_verdicts(
        job, write_jsonl(tmp_path / "labels.jsonl", [{**each, "judge": "third"} for each in labels])
    )

    with pytest.raises(PipelineError, match="run `prbench aggregate` first"):
        certify(job, tmp_path / "file.zip")


def in_other_words(rows: dict[str, list[dict[str, Any]]]) -> None:
    """Rewrite half of the criteria, and let the first judge also decide the rewritten ones; one
    weight is NULL.
    """
    of_task = ("benchmark", "dataset_revision", "task_id")
    others = {each["criterion_id"]: each for each in rows["criteria"][::2]}
    rows["criterion_variants"] = [
        row(
            "criterion_variants",
            **{name: each[name] for name in of_task},
            rubric="short",
            status="ok",
            title="other",
            criterion_id=f"short-{name}",
            original_id=name,
            original_hash=each["content_hash"],
            content_hash="other",
        )
        for name, each in others.items()
    ]
    again = [each for each in rows["verdicts"] if each["judge"] == rows["verdicts"][0]["judge"]]
    for each in again:
        reworded = {"criterion_id": f"short-{each['criterion_id']}", "criterion_hash": "other"}
        other = reworded if each["criterion_id"] in others else {}
        rows["verdicts"].append(
            {
                **each,
                "verdict_id": f"{each['verdict_id']}-2",
                "template_hash": "short",
                **other,
            }
        )
    rows["criteria"][0]["weight"] = None


def stopped_and_hidden(rows: dict[str, list[dict[str, Any]]]) -> None:
    """Stop a model, another one whose skipped tasks were evaluated later, and a third one that may
    hide failures.
    """
    stopped = {
        "ada": (30, 20, -0.9),
        "bell": (9, 1, 0.1),
        "curie": (30, 20, None),
    }
    rows["stopping_scores"] = [
        row(
            "stopping_scores",
            split="everything",
            judge="a-judge",
            model=model,
            score_name=each["score_name"],
            n_tasks=n_tasks,
            n_tasks_evaluated=n_tasks,
            n_tasks_skipped=n_skipped,
            sequence_low=low,
            sequence_high=None if low is None else 0.9,
            unbiased_mean_score=0.25,
        )
        for each in rows["score_definitions"]
        for model, (n_tasks, n_skipped, low) in stopped.items()
    ]
    for each in rows["verdicts"]:
        each["may_hide_failures"] = (each["model"], each["judge"]) == ("curie", "judge-b") or None


def test_an_independent_checker_comes_to_the_figures_of_stopped_models_failures_and_other_words(
    tmp_path: Path,
) -> None:
    rows = random_world(seed=5, n_tasks=20)
    in_other_words(rows)
    stopped_and_hidden(rows)
    certificates.with_true_ids(rows)
    job = job_on("sample", tmp_path / "random")
    written(job.warehouse, rows)
    revision = rows["criteria"][0]["dataset_revision"]
    job = job.looking_up(
        lambda: DataRevision(
            name="random",
            revision=revision,
            splits=(),
        )
    )
    aggregate(job)
    path = certificates.certified(job, tmp_path / "random.zip")

    n_checked, wrong = check(path)

    assert wrong == []
    assert n_checked > 3_000
    assert verify(path).is_confirmed
    judged = [
        json.loads(line)
        for line in certificates.members_of(path)["figures/leaderboard.jsonl"].splitlines()
    ]
    assert {each["template_hash"] for each in judged} == {"a-template", "short"}
    assert any(each["coverage"] < 1 and each["ci_low"] is not None for each in judged)
    assert {each["model"] for each in judged if each["n_tasks_skipped"] and each["rank"]} == {
        "ada",
        "curie",
    }
    assert {(each["model"], each["judge"]) for each in judged if each["may_hide_failures"]} == {
        ("curie", "judge-b")
    }


def test_no_stored_table_that_figures_rest_on_is_left_out_but_measures_which_are_drawn_again() -> (
    None
):
    read = {
        name
        for model in sql.leading_to(MODELS, ROWS)
        for name in model.depends_on
        if name in TABLES
    }

    assert read - set(ROWS) == {"measures"}
    assert {
        name for model in sql.leading_to(MODELS, ROWS) for name in model.depends_on if name in ROWS
    } == set(ROWS)
