"""Commands that only read, in a folder whose configuration is for other data, or with unknown
names.
"""

from pathlib import Path

import pytest

from tasks.aggregate import aggregate
from tasks.rules.identity import IMPORTED
from tests.kit import combined, configure, job_on, row, write_jsonl, written
from tests.tasks.compare.comparisons import judged, tasks_of
from warehouse import Warehouse

TASKS = ["t0", "t1", "t2", "t3"]


def fill(folder: Path, revision: str, n_responses: int = 1):
    """One imported model's responses to the first tasks, judged by a person, on a revision of four
    tasks.
    """
    rubrics = {task: [(5, "Accuracy"), (-3, "Risk")] for task in TASKS}
    turn = {
        "position": 0,
        "prompt": "Why?",
        "reference_texts": [],
    }
    turns = [row("conversation_turns", task_id=task, **turn) for task in TASKS]
    rows = combined(
        tasks_of(rubrics, "finance_hard"),
        {"conversation_turns": turns},
        judged(
            {task: [1.0, 1.0] for task in TASKS[:n_responses]},
            "a-model",
            rubrics=rubrics,
            of_response={"model_config_hash": IMPORTED},
            judge="reader",
            judge_config_hash=IMPORTED,
            source="imported",
        ),
    )
    for response in rows["responses"]:
        response["source"] = "imported"
    written(folder / "data", rows, revision)


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Path:
    """A warehouse with one revision, and a configuration for it."""
    folder = tmp_path_factory.mktemp("world")
    data = write_jsonl(folder / "finance_hard.jsonl", [{}])
    configure(folder, dataset={"source": str(data)})
    job = job_on(data, folder / "data")
    fill(folder, job.data.revision)
    aggregate(job)
    return folder


@pytest.fixture
def elsewhere(tmp_path, monkeypatch) -> Path:
    """A folder without a configuration: the embedded default is for the shipped sample."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


READING = (
    ["leaderboard"],
    ["status"],
    ["judges"],
    ["criteria", "always-met"],
    ["lengths"],
    ["export", "labelling", "sheet.csv"],
)


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_the_only_revision_is_read_from_anywhere(world, elsewhere, run, command):
    output = run(*command, "--json", "--warehouse", world / "data")
    notices = run.err
    (elsewhere / "sheet.csv").unlink(missing_ok=True)
    configured_output = run(
        *command,
        "--json",
        "--warehouse",
        world / "data",
        "--config",
        world / "prbench.yaml",
    )

    assert output == configured_output
    assert notices.count("showing the only revision of prbench there") == 1
    assert "(finance_hard: 4 tasks, 1 responses, 2 verdicts)" in notices
    assert run.err == ""


@pytest.fixture(scope="module")
def two_revisions(tmp_path_factory) -> Path:
    """A warehouse with two revisions; only the other one than that of `finance_hard.jsonl` has a
    response.
    """
    folder = tmp_path_factory.mktemp("two-revisions")
    data = write_jsonl(folder / "finance_hard.jsonl", [{}])
    fill(folder, job_on(data, folder / "data").data.revision, n_responses=0)
    fill(folder, "another-revision")
    Warehouse(folder / "data").publish()
    return folder / "data"


@pytest.mark.usefixtures("elsewhere")
def test_of_several_revisions_none_is_guessed_and_those_are_named(two_revisions, run):
    error = run("leaderboard", "--warehouse", two_revisions, code=2)

    counts = "finance_hard: 4 tasks, 1 responses, 2 verdicts"
    assert "(finance_hard: 4 tasks, 0 responses, 0 verdicts)" in error
    assert f"prbench another-revi ({counts})" in error


@pytest.mark.usefixtures("elsewhere")
def test_the_revisions_of_another_benchmark_are_named(two_revisions, run):
    benchmark = ("--benchmark", "researchrubrics")

    error = run("leaderboard", *benchmark, "--warehouse", two_revisions, code=2)

    assert "it has prbench another-revi" in error


def test_a_configured_revision_without_verdicts_is_named_with_the_others(
    two_revisions, elsewhere, run
):
    data = two_revisions.with_name("finance_hard.jsonl")
    configure(elsewhere, dataset={"source": str(data)})

    output = run("leaderboard", "--warehouse", two_revisions)

    notice = "No model has a verdict in this selection yet. This is about revision "
    assert notice in output
    assert "another-revi (finance_hard: 4 tasks, 1 responses, 2 verdicts)" in output
