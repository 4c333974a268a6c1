"""A certificate has the basis of its figures and nothing else, and an independent checker gets the
same figures.
"""

import csv
import json
import re
from pathlib import Path

import pytest

import sql
from tasks.aggregate import aggregate
from tasks.certify.certifying import MODELS, ROWS, certify
from tasks.certify.verifying import compare_leaderboard, verify
from tasks.config.job import DataRevision, Job
from tasks.imports.verdicts import import_verdicts
from tasks.ingest import ingest
from tasks.rules.errors import PipelineError, UsageError
from tests.kit import Rows, copied, job_on, row, write_jsonl, written
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


def test_the_same_state_gives_the_same_bytes(sample_job, certificate, tmp_path):
    certificate_again = certificates.certified(sample_job, tmp_path / "again.zip")

    assert certificate_again.read_bytes() == certificate.read_bytes()


def test_after_a_rebuild_only_the_last_digits_of_means_may_differ(
    sample_job, certificate, tmp_path
):
    job = copied(sample_job, tmp_path / "copied")
    Warehouse(job.warehouse).database.unlink()
    Warehouse(job.warehouse).publish()

    members = certificates.members_of(certificate)
    rebuilt_certificate = certificates.certified(job, tmp_path / "rebuilt.zip")
    rebuilt = certificates.members_of(rebuilt_certificate)

    assert rebuilt.keys() == members.keys()
    for name in members.keys() - {"manifest.json"}:
        if rebuilt[name] != members[name]:
            assert name.startswith("figures/")
            for state, contents in (("before", members), ("after", rebuilt)):
                file = tmp_path / state / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(contents[name])
            _, differences = compare_leaderboard(
                Path(name).stem,
                tmp_path / "before",
                tmp_path / "after",
                is_same_sql=True,
            )
            assert differences == []


def texts_in(job: Job) -> set[str]:
    """The texts of a warehouse above 25 characters: shorter ones could be labels."""
    texts = set()
    with Warehouse(job.warehouse).reader() as reader:
        for query in TEXTS:
            _, rows = reader.table(query)
            texts.update(text.strip() for (text,) in rows if text)
    return {text for text in texts if len(text) > 25}


def test_no_text_canary_or_explanation_is_in_a_certificate(world_job, tmp_path):
    texts = texts_in(world_job)

    certificate = certificates.certified(world_job, tmp_path / "world.zip")

    parts = set()
    for name, content in certificates.members_of(certificate).items():
        member = content.decode()
        # Each string of a table once, since figures repeat many.
        is_table = name.endswith(".jsonl")
        parts.update(
            re.findall(r'"(?:[^"\\]|\\.)*"', member) if is_table else [member]
        )
    certified_text = "\n".join(parts)
    # The texts are there, with canaries.
    assert len(texts) > 1000
    assert any("prbench:sample" in text or "canary" in text for text in texts)
    for text in texts:
        assert text not in certified_text
        assert json.dumps(text)[1:-1] not in certified_text


def test_no_certificate_is_written_to_a_folder_that_does_not_exist(
    sample_job, tmp_path
):
    with pytest.raises(UsageError, match="no such folder"):
        certify(sample_job, tmp_path / "nosuch" / "file.zip")


def test_no_certificate_lacks_figures(tmp_path):
    job = job_on("sample", tmp_path / "empty")
    ingest(job)

    with pytest.raises(PipelineError, match="run `prbench judge`"):
        certify(job, tmp_path / "file.zip")

    assert not (tmp_path / "file.zip").exists()


def test_figures_without_their_intervals_are_not_certified(sample_job, tmp_path):
    job = copied(sample_job, tmp_path / "copied")
    labels = list(csv.DictReader(LABELS.read_text().splitlines()))
    # A new judge has no intervals yet.
    for label in labels:
        label["judge"] = "third"
    import_verdicts(job, write_jsonl(tmp_path / "labels.jsonl", labels))

    with pytest.raises(PipelineError, match="run `prbench aggregate` first"):
        certify(job, tmp_path / "file.zip")


def in_other_words(rows: Rows):
    """Rewrite half of the criteria, and let the first judge decide the whole rubric
    again in this form.
    """
    rows["criterion_variants"] = [
        row(
            "criterion_variants",
            benchmark=criterion["benchmark"],
            dataset_revision=criterion["dataset_revision"],
            task_id=criterion["task_id"],
            rubric="short",
            status="ok",
            title="other",
            criterion_id=f"short-{criterion['criterion_id']}",
            original_id=criterion["criterion_id"],
            original_hash=criterion["content_hash"],
            content_hash="other",
        )
        for criterion in rows["criteria"][::2]
    ]
    rewritten_ids = {variant["original_id"] for variant in rows["criterion_variants"]}
    judge = rows["verdicts"][0]["judge"]
    for verdict in list(rows["verdicts"]):
        if verdict["judge"] != judge:
            continue
        reworded = verdict | {
            "verdict_id": f"{verdict['verdict_id']}-2",
            "template_hash": "short",
        }
        if verdict["criterion_id"] in rewritten_ids:
            reworded["criterion_id"] = f"short-{verdict['criterion_id']}"
            reworded["criterion_hash"] = "other"
        rows["verdicts"].append(reworded)


def stopped_and_hidden(rows: Rows):
    """Stop a model, another one whose skipped tasks were evaluated later, and a third one that may
    hide failures.
    """
    # Model, evaluated and skipped tasks, and the interval at every look. The world has
    # verdicts on 20 tasks, more than bell had when it stopped, but not all 50 of the
    # other two.
    stops = (
        ("ada", 30, 20, -0.9, 0.9),
        ("bell", 9, 1, 0.1, 0.9),
        ("curie", 30, 20, None, None),
    )
    rows["stopping_scores"] = [
        row(
            "stopping_scores",
            split="everything",
            judge="a-judge",
            model=model,
            score_name=score["score_name"],
            n_tasks=n_tasks,
            n_tasks_evaluated=n_tasks,
            n_tasks_skipped=n_skipped,
            sequence_low=low,
            sequence_high=high,
            unbiased_mean_score=0.25,
        )
        for score in rows["score_definitions"]
        for model, n_tasks, n_skipped, low, high in stops
    ]
    for verdict in rows["verdicts"]:
        hides_failures = verdict["model"] == "curie" and verdict["judge"] == "judge-b"
        verdict["may_hide_failures"] = True if hides_failures else None


@pytest.fixture(scope="module")
def random_certificate(tmp_path_factory) -> Path:
    """The certificate of stopped models, hidden failures and other words."""
    folder = tmp_path_factory.mktemp("random")
    rows = random_world(seed=5, n_tasks=20)
    in_other_words(rows)
    rows["criteria"][0]["weight"] = None
    stopped_and_hidden(rows)
    certificates.with_true_ids(rows)
    job = job_on("sample", folder / "warehouse")
    written(job.warehouse, rows)
    data = DataRevision(
        name="random", revision=rows["criteria"][0]["dataset_revision"], splits=()
    )
    job = job.looking_up(lambda: data)
    aggregate(job)
    return certificates.certified(job, folder / "random.zip")


def test_an_independent_checker_comes_to_the_certified_figures(random_certificate):
    n_checked, differences = check(random_certificate)

    assert differences == []
    assert n_checked > 3_000
    assert verify(random_certificate).is_confirmed


def test_the_checked_certificate_has_figures_of_each_kind(random_certificate):
    content = certificates.members_of(random_certificate)["figures/leaderboard.jsonl"]
    boards = list(map(json.loads, content.splitlines()))

    stopped = {
        row["model"] for row in boards if row["n_tasks_skipped"] and row["rank"]
    }
    hiding = {
        (row["model"], row["judge"]) for row in boards if row["may_hide_failures"]
    }
    assert {row["template_hash"] for row in boards} == {"a-template", "short"}
    assert any(row["coverage"] < 1 and row["ci_low"] is not None for row in boards)
    assert stopped == {"ada", "curie"}
    assert hiding == {("curie", "judge-b")}


def test_only_measures_are_left_out_of_the_certified_tables():
    sources = set()
    for model in sql.leading_to(MODELS, ROWS):
        sources.update(model.depends_on)

    # Measures are drawn again by the checker.
    assert (sources & TABLES.keys()) - set(ROWS) == {"measures"}
    assert sources >= set(ROWS)
