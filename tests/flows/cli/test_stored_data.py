"""Commands that only read, in a folder whose configuration is for other data, or with unknown
names.
"""

from pathlib import Path

import pytest

from tasks.aggregate import aggregate
from tasks.rules.identity import IMPORTED
from tests.flows.conftest import Run
from tests.kit import Patch, combined, configure, job_on, row, write_jsonl, written
from tests.tasks.compare.comparisons import judged, tasks_of
from warehouse import Warehouse

TASKS = ["t0", "t1", "t2", "t3"]


def fill(folder: Path, revision: str, n_responses: int = 1) -> None:
    """One imported model's responses to the first tasks, judged by a person, on a revision of four
    tasks.
    """
    rubrics = {task: [(5, "Accuracy"), (-3, "Risk")] for task in TASKS}
    imported = {
        "judge": "reader",
        "judge_config_hash": IMPORTED,
        "source": "imported",
    }
    of_response = {"model_config_hash": IMPORTED}
    decided = {task: [1.0, 1.0] for task in TASKS[:n_responses]}
    turns = [
        row(
            "conversation_turns",
            task_id=task,
            position=0,
            prompt="Why?",
            reference_texts=[],
        )
        for task in TASKS
    ]
    rows = combined(
        tasks_of(rubrics, "finance_hard"),
        {"conversation_turns": turns},
        judged(decided, "a-model", rubrics=rubrics, of_response=of_response, **imported),
    )
    rows["responses"] = [each | {"source": "imported"} for each in rows["responses"]]
    written(folder / "data", rows, revision)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with one revision, and a configuration for it."""
    folder: Path = tmp_path_factory.mktemp("world")
    data = write_jsonl(folder / "finance_hard.jsonl", [{}])
    configure(folder, dataset={"source": str(data)})
    job = job_on(data, folder / "data")
    fill(folder, job.data.revision)
    aggregate(job)
    return folder


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: Patch) -> Path:
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
def test_the_only_revision_is_read_from_anywhere(
    world: Path, elsewhere: Path, run: Run, command: list[str]
) -> None:
    from_elsewhere = run(*command, "--json", "--warehouse", world / "data")
    notices = run.err
    if command[0] == "export":
        (elsewhere / "sheet.csv").unlink()
    as_configured = run(
        *command, "--json", "--warehouse", world / "data", "--config", world / "prbench.yaml"
    )

    assert as_configured == from_elsewhere
    assert "a-model" in as_configured or command[0] in {"judges", "criteria", "lengths", "export"}
    assert notices.count("showing the only revision of prbench there") == 1
    assert "(finance_hard: 4 tasks, 1 responses, 2 verdicts)" in notices
    assert run.err == ""


def test_of_several_revisions_none_is_guessed_and_those_are_named(
    tmp_path: Path, elsewhere: Path, run: Run
) -> None:
    data = write_jsonl(tmp_path / "finance_hard.jsonl", [{}])
    revision = job_on(data, tmp_path / "data").data.revision
    fill(tmp_path, revision, n_responses=0)
    fill(tmp_path, "another-revision")
    Warehouse(tmp_path / "data").publish()
    where = ["--warehouse", str(tmp_path / "data")]

    notices = run("leaderboard", *where, code=2)
    assert f"prbench {revision[:12]} (finance_hard: 4 tasks, 0 responses, 0 verdicts)" in notices
    assert "prbench another-revi (finance_hard: 4 tasks, 1 responses, 2 verdicts)" in notices
    notices = run("leaderboard", "--benchmark", "researchrubrics", *where, code=2)
    assert "it has prbench another-revi" in notices

    configure(tmp_path, dataset={"source": str(data)})
    notices = run("leaderboard", *where)
    assert (
        f"No model has a verdict in this selection yet. This is about revision {revision[:12]}"
        in notices
    )
    assert "another-revi (finance_hard: 4 tasks, 1 responses, 2 verdicts)" in notices
