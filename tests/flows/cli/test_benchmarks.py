"""Several benchmarks: listed, chosen by `--benchmark`, and independent of each other in one
warehouse.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.run.arguments import Arguments
from flows.run.config import load_job
from tasks.aggregate import aggregate
from tasks.benchmarks import FOLDERS_VARIABLE, benchmark_names, load_benchmark
from tasks.config.job import Job
from tasks.dataset.source import source_of
from tasks.rules.errors import UsageError
from tests.flows.conftest import Command
from tests.kit import configure, one_line, write_jsonl
from tests.tasks.aggregate.world import small_world
from warehouse import Warehouse

TWIN = """
from dataclasses import replace
from tasks.benchmarks.prbench import BENCHMARK as PRBENCH

BENCHMARK = replace(PRBENCH, name="twin", title="A twin of PRBench", breakdowns={"mood": "Mood"},
    gradings={"ternary": "researchrubrics_ternary_v1", "binary": "binary_v1"})
"""
COMMANDS = (
    ["leaderboard", "--vintage", "all"],
    ["leaderboard", "--hard"],
    ["leaderboard", "--risk"],
    ["leaderboard", "--selection", "latest"],
    ["leaderboard", "--by", "subset"],
    ["judges", "--by", "model"],
    ["judges", "--people", "expert"],
    ["lengths"],
    ["criteria", "suspect"],
    ["diff", "ada", "bell"],
    ["diff", "a-judge", "expert"],
    ["check", "--list"],
)
Outputs = dict[str, Any]


def fill(folder: Path, name: str) -> Job:
    """Put made-up results of a benchmark in the warehouse of a folder."""
    job = load_job(
        Arguments(folder / "prbench.yaml", name, warehouse=folder / "warehouse")
    )
    for table_name, rows in small_world(seed=len(name)).items():
        Warehouse(job.warehouse).write(table_name, [turned(row, job) for row in rows])
    return job


def outputs(folder: Path) -> Outputs:
    """Return the output of commands in a folder, rounded: the last digits of a sum depend on the
    order of its rows.
    """
    command = Command(folder)
    values = {}
    for words in COMMANDS:
        text = command(*words, "--json", "--warehouse", "warehouse").stdout
        values[" ".join(words)] = json.loads(
            text,
            parse_float=lambda digits: round(float(digits), 9),
        )
    return values


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Iterator[tuple[Path, Outputs]]:
    """Two benchmarks with the same names of tasks, criteria, models and judges, and the commands'
    output for the first.

    The twin's `a-judge` uses another template, and its judges decide differently.
    """
    folder = tmp_path_factory.mktemp("benchmarks")
    (folder / "mine").mkdir()
    (folder / "mine" / "twin.py").write_text(TWIN)
    sources = {}
    for name in ("prbench", "twin"):
        (folder / name).mkdir()
        sources[name] = str(
            write_jsonl(folder / name / "finance.jsonl", [{"of": name}])
        )
    twin = {"dataset": {"source": sources["twin"]}, "coverage": {"min": 0.5}}
    configure(
        folder,
        dataset={"source": sources["prbench"]},
        benchmarks={"twin": twin},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDERS_VARIABLE, str(folder / "mine"))
        aggregate(fill(folder, "prbench"))
        outputs_alone = outputs(folder)
        Warehouse(fill(folder, "twin").warehouse).publish()
        yield folder, outputs_alone


def turned(row: dict[str, Any], job: Job) -> dict[str, Any]:
    """A row of PRBench turned into one of a job's benchmark, with other ids where they contain the
    benchmark's name.
    """
    name = job.settings.benchmark
    changes = job.key
    for column in ("response_id", "verdict_id", "selection_id"):
        changes[column] = f"{name}/{row.get(column)}"
    if name == "twin" and row.get("judge") == "a-judge":
        changes["template_hash"] = "other"
    return row | {column: value for column, value in changes.items() if column in row}


@pytest.mark.slow
def test_a_benchmark_is_shown_as_if_no_other_one_were_there(world):
    folder, outputs_alone = world

    assert all(outputs_alone.values())
    assert outputs(folder) == outputs_alone


def test_settings_of_a_benchmark_override_the_shared_ones(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(TWIN.replace('"twin"', '"own"'))
    monkeypatch.setenv(FOLDERS_VARIABLE, str(tmp_path))
    own_settings = {
        "dataset": {"source": "own/finance.jsonl"},
        "coverage": {"min": 0.5},
    }
    configure(
        tmp_path,
        dataset={"source": "sample"},
        benchmarks={"own": own_settings},
    )

    shared_settings = load_job(Arguments(tmp_path / "prbench.yaml")).settings
    settings = load_job(Arguments(tmp_path / "prbench.yaml", "own")).settings

    assert shared_settings.benchmark == "prbench"
    assert shared_settings.coverage.min == 0.99
    assert settings.benchmark == "own"
    assert settings.coverage.min == 0.5
    assert settings.dataset.source == "own/finance.jsonl"


@pytest.mark.parametrize(
    ("name", "n_tasks"),
    [("prbench", 8), ("researchrubrics", 2), ("healthbench", 3)],
)
def test_the_sample_is_that_of_the_named_benchmark(tmp_path, name, n_tasks):
    configure(tmp_path, dataset={"source": "sample"})

    job = load_job(Arguments(tmp_path / "prbench.yaml", name))

    parse_row = load_benchmark(name).parse_row
    assert len(list(map(parse_row, source_of(job).rows("sample")))) == n_tasks


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a1",
            "import nowhere_to_be_found",
            "a1.py: cannot be loaded (ModuleNotFoundError: No module",
        ),
        (
            "a2",
            "BENCHMARK = 3",
            "a2.py: BENCHMARK is not a Benchmark with the name 'a2'",
        ),
        ("a3", TWIN, "a3.py: BENCHMARK is not a Benchmark with the name 'a3'"),
        (
            "a4",
            TWIN.replace("ternary", "stars", 1),
            "`gradings` has a template for one or more of",
        ),
        (
            "a5",
            TWIN.replace("mood", "topic"),
            "`breakdowns`: every benchmark has topic; give the kind another name",
        ),
        (
            "a6",
            TWIN.replace("breakdowns=", "scores=PRBENCH.scores[:1] * 2, breakdowns="),
            "need unique names, and",
        ),
        ("rows", TWIN, "rows.py: there is a rows already; give it another name"),
        (
            "prbench",
            TWIN,
            "prbench.py: there is a prbench already; give it another name",
        ),
    ],
)
def test_a_bad_module_is_refused(tmp_path, monkeypatch, name, text, message):
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setenv(FOLDERS_VARIABLE, str(tmp_path))

    with pytest.raises(UsageError, match=one_line(message)):
        load_benchmark(name)


def test_what_a_benchmark_declares_is_not_shown_without_its_template(
    tmp_path, monkeypatch
):
    module = TWIN.replace("binary_v1", "gone_v1").replace('"twin"', '"bare"')
    (tmp_path / "bare.py").write_text(module)
    monkeypatch.setenv(FOLDERS_VARIABLE, str(tmp_path))

    output = Command(tmp_path)("benchmarks", "bare", code=2)

    assert "template: gone_v1 is neither a file nor" in output.stderr


@pytest.mark.parametrize("path", ["relative", "/nowhere/to/be/found"])
def test_a_folder_of_benchmarks_is_named_by_its_whole_path(monkeypatch, path):
    monkeypatch.setenv(FOLDERS_VARIABLE, path)

    reason = (
        f"{FOLDERS_VARIABLE}: {path} is not the absolute path of a folder; correct it"
    )
    with pytest.raises(UsageError, match=reason):
        benchmark_names()
