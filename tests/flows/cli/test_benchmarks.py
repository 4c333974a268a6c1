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
from tasks.benchmarks import OWN_FOLDERS, benchmark_names, load_benchmark
from tasks.config.job import Job
from tasks.dataset.source import source_of
from tasks.rules.errors import UsageError
from tests.flows.conftest import Command
from tests.kit import Patch, configure, one_line
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
        Arguments(
            config=folder / "prbench.yaml",
            benchmark=name,
            warehouse=folder / "warehouse",
        )
    )
    revision = job.data.revision
    for table_name, rows in small_world(seed=len(name)).items():
        Warehouse(job.warehouse).write(table_name, [_of(name, revision, row) for row in rows])
    return job


def outputs(folder: Path) -> Outputs:
    """Return the output of commands in a folder, rounded: the last digits of a sum depend on the
    order of its rows.
    """
    command = Command(folder)
    stdout = {
        " ".join(each): command(*each, "--json", "--warehouse", "warehouse").stdout
        for each in COMMANDS
    }
    return {
        name: json.loads(text, parse_float=lambda number: round(float(number), 9))
        for name, text in stdout.items()
    }


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Outputs]]:
    """Two benchmarks with the same names of tasks, criteria, models and judges, and the commands'
    output for the first.

    The twin's `a-judge` uses another template, and its judges decide differently.
    """
    folder = tmp_path_factory.mktemp("benchmarks")
    (folder / "mine").mkdir()
    (folder / "mine" / "twin.py").write_text(TWIN, encoding="utf-8")
    sources = {name: folder / name / "finance.jsonl" for name in ("prbench", "twin")}
    for name, source in sources.items():
        source.parent.mkdir()
        source.write_text(json.dumps({"of": name}) + "\n", encoding="utf-8")
    own = {"twin": {"dataset": {"source": str(sources["twin"])}, "coverage": {"min": 0.5}}}
    configure(folder, dataset={"source": str(sources["prbench"])}, benchmarks=own)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(OWN_FOLDERS, str(folder / "mine"))
        aggregate(fill(folder, "prbench"))
        before = outputs(folder)
        Warehouse(fill(folder, "twin").warehouse).publish()
        yield folder, before


def _of(name: str, revision: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row of PRBench turned into one of another benchmark, with other ids where they contain the
    benchmark's name.
    """
    own = {
        key: f"{name}/{row[key]}"
        for key in ("response_id", "verdict_id", "selection_id")
        if key in row
    }
    template = (
        {"template_hash": "other"} if name == "twin" and row.get("judge") == "a-judge" else {}
    )
    identity = {
        key: value
        for key, value in {"benchmark": name, "dataset_revision": revision}.items()
        if key in row
    }
    return row | own | template | identity


@pytest.mark.slow
def test_a_benchmark_is_shown_as_if_no_other_one_were_there(world: tuple[Path, Outputs]) -> None:
    folder, before = world
    now = outputs(folder)
    assert all(before.values())
    assert [name for name in before if before[name] != now[name]] == []

    # Its own settings override the shared ones.
    jobs = {
        name: load_job(Arguments(config=folder / "prbench.yaml", benchmark=name))
        for name in (None, "twin")
    }

    assert jobs[None].settings.benchmark == "prbench"
    assert jobs[None].settings.coverage.min == 0.99
    assert jobs["twin"].settings.benchmark == "twin"
    assert jobs["twin"].settings.coverage.min == 0.5
    assert str(folder / "twin" / "finance.jsonl") == jobs["twin"].settings.dataset.source


def test_the_sample_is_that_of_the_benchmark_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("dataset: {source: sample}")
    for name in ("prbench", "researchrubrics", "healthbench"):
        source = source_of(load_job(Arguments(config=tmp_path / "x.yaml", benchmark=name)))
        benchmark = load_benchmark(name)
        tasks = [benchmark.parse_row(row) for row in source.rows("sample")]
        assert {
            "prbench": 8,
            "researchrubrics": 2,
            "healthbench": 3,
        }[name] == len(tasks)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a1",
            "import nowhere_to_be_found",
            "a1.py: cannot be loaded (ModuleNotFoundError: No module",
        ),
        ("a2", "BENCHMARK = 3", "a2.py: BENCHMARK is not a Benchmark with the name 'a2'"),
        ("a3", TWIN, "a3.py: BENCHMARK is not a Benchmark with the name 'a3'"),
        ("a4", TWIN.replace("ternary", "stars", 1), "`gradings` has a template for one or more of"),
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
        ("prbench", TWIN, "prbench.py: there is a prbench already; give it another name"),
    ],
)
def test_a_bad_module_is_refused(
    tmp_path: Path, monkeypatch: Patch, name: str, text: str, message: str
) -> None:
    (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.setenv(OWN_FOLDERS, str(tmp_path))
    with pytest.raises(UsageError, match=one_line(message)):
        load_benchmark(name)


def test_what_a_benchmark_declares_is_not_shown_without_its_template(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    (tmp_path / "twin.py").write_text(TWIN.replace("binary_v1", "gone_v1"), encoding="utf-8")
    monkeypatch.setenv(OWN_FOLDERS, str(tmp_path))
    assert (
        "template: gone_v1 is neither a file nor"
        in Command(tmp_path)("benchmarks", "twin", code=2).stderr
    )


@pytest.mark.parametrize("named", ["relative", "/nowhere/to/be/found"])
def test_a_folder_of_benchmarks_is_named_by_its_whole_path(monkeypatch: Patch, named: str) -> None:
    monkeypatch.setenv(OWN_FOLDERS, named)
    with pytest.raises(
        UsageError, match=f"{OWN_FOLDERS}: {named} is not the absolute path of a folder; correct it"
    ):
        benchmark_names()
