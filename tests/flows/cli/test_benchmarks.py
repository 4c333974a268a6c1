"""Several benchmarks: listed, chosen by `--benchmark`, and beside each other in one warehouse without touching."""

import csv
import io
import json
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.cli.main import main
from flows.run.arguments import Arguments
from flows.run.config import load_job
from tasks.aggregate import aggregate
from tasks.benchmarks import OWN_FOLDERS, benchmark_names, load_benchmark
from tasks.config.job import Job
from tasks.dataset.source import source_of
from tasks.rules.errors import UsageError
from tests.kit import one_line
from tests.tasks.aggregate.test_cookbook import small_world
from warehouse import Warehouse

TWIN = """
from dataclasses import replace
from tasks.benchmarks.prbench import BENCHMARK as PRBENCH

BENCHMARK = replace(PRBENCH, name="twin", title="A twin of PRBench", breakdowns={"mood": "Mood"},
    gradings={"ternary": "researchrubrics_ternary_v1", "binary": "binary_v1"})
"""
COMMANDS = (
    ["leaderboard"], ["leaderboard", "--vintage", "all"], ["leaderboard", "--hard"], ["leaderboard", "--risk"],
    ["leaderboard", "--selection", "latest"], ["leaderboard", "--by", "category"], ["leaderboard", "--by", "subset"],
    ["judges"], ["judges", "--by", "model"], ["judges", "--people", "expert"], ["lengths"], ["lengths", "--hard"],
    *(["criteria", which] for which in ("never-met", "disagreed", "suspect")),
    ["diff", "ada", "bell"], ["diff", "a-judge", "expert"], ["check", "--list"],
)  # fmt: skip
Answers = dict[str, Any]


@dataclass(frozen=True)
class World:
    """PRBench in a warehouse, and then its twin beside it; `before` is what commands said while PRBench was alone."""

    folder: Path
    before: Answers

    def run(self, *arguments: str, code: int = 0) -> str:
        """What a command said: its result, or why there is none."""
        stdout, stderr = io.StringIO(), io.StringIO()
        where = ["--config", str(self.folder / "prbench.yaml"), "--warehouse", str(self.folder / "warehouse")]
        with redirect_stdout(stdout), redirect_stderr(stderr):
            returned = main([*arguments, *([] if arguments[0] == "benchmarks" else where)])
        assert (returned, stderr.getvalue() if code == 0 else "") == (code, "")
        return stderr.getvalue() if code else stdout.getvalue()

    def answers(self) -> Answers:
        return {" ".join(each): json.loads(self.run(*each, "--json"), parse_float=_rounded) for each in COMMANDS}

    def fill(self, name: str) -> Job:
        """Put made-up results of a benchmark in the warehouse."""
        job = load_job(
            Arguments(config=self.folder / "prbench.yaml", benchmark=name, warehouse=self.folder / "warehouse")
        )
        revision = job.data.revision
        for table_name, rows in small_world(seed=len(name)).items():
            Warehouse(job.warehouse).write(table_name, [_of(name, revision, row) for row in rows])
        return job


def _rounded(number: str) -> float:
    # The last digits of a sum depend on the order of its rows.
    return round(float(number), 9)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Two benchmarks whose tasks, criteria, models and judges have the same names.

    The twin's `a-judge` reads another template, and its judges decide otherwise.
    """
    folder = tmp_path_factory.mktemp("benchmarks")
    (folder / "mine").mkdir()
    (folder / "mine" / "twin.py").write_text(TWIN, encoding="utf-8")
    sources = {name: folder / name / "finance.jsonl" for name in ("prbench", "twin")}
    for name, source in sources.items():
        source.parent.mkdir()
        source.write_text(json.dumps({"of": name}) + "\n", encoding="utf-8")
    own = {"twin": {"dataset": {"source": str(sources["twin"])}, "coverage": {"min": 0.5}}}
    settings = {"dataset": {"source": str(sources["prbench"])}, "benchmarks": own}
    (folder / "prbench.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(OWN_FOLDERS, str(folder / "mine"))
        alone = World(folder, {})
        aggregate(alone.fill("prbench"))
        both = World(folder, alone.answers())
        Warehouse(both.fill("twin").warehouse).publish()
        yield both


@pytest.fixture(scope="module")
def now(world: World) -> Answers:
    return world.answers()


def _of(name: str, revision: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row of PRBench as one of another benchmark; ids that are made of the benchmark's name differ."""
    own = {key: f"{name}/{row[key]}" for key in ("response_id", "verdict_id", "selection_id") if key in row}
    template = {"template_hash": "other"} if name == "twin" and row.get("judge") == "a-judge" else {}
    places = {key: value for key, value in {"benchmark": name, "dataset_revision": revision}.items() if key in row}
    return row | own | template | places


@pytest.mark.slow
@pytest.mark.parametrize("command", map(" ".join, COMMANDS))
def test_a_benchmark_is_shown_as_if_no_other_one_were_there(world: World, now: Answers, command: str) -> None:
    assert world.before[command]
    assert world.before[command] == now[command]


@pytest.mark.slow
def test_the_same_names_mean_another_benchmarks_where_it_is_asked_for(world: World) -> None:
    def graders(*arguments: str) -> set[str]:
        pairs = json.loads(world.run("judges", *arguments, "--json"))["pairs"]
        return {pair[side] for pair in pairs for side in ("grader_a", "grader_b")}

    boards = [json.loads(world.run("leaderboard", *asked, "--json")) for asked in ([], ["--benchmark", "twin"])]

    assert {"a-judge", "b-judge", "expert", "majority"} == graders() == graders("--benchmark", "twin")
    assert {row["model"] for row in boards[0]} == {row["model"] for row in boards[1]}
    assert {row["mean_score"] for row in boards[0]} != {row["mean_score"] for row in boards[1]}


@pytest.mark.slow
def test_people_are_asked_about_the_benchmark_that_is_named(world: World, tmp_path: Path) -> None:
    world.run("export", "labelling", str(tmp_path / "sheet.csv"), "-n", "10000", "--benchmark", "twin")
    with (tmp_path / "sheet.csv").open(encoding="utf-8-sig", newline="") as lines:
        sheet = list(csv.DictReader(lines))
    rows = [(row["task"], row["model"], row["trial"], row["criterion"]) for row in sheet]

    assert len(rows) == len(set(rows)) == len(small_world(seed=4)["responses"]) * 5
    # It is graded in three steps, so the decision is in words.
    assert {""} == {row["verdict"] for row in sheet}
    assert "criteria_met" not in sheet[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["leaderboard", "--by", "mood"],
            "--by mood: no such breakdown; prbench has category, topic, expert, turns, decision_type, ",
        ),
        (["leaderboard", "--benchmark", "twin", "--by", "axis"], "reference_texts, subset, mood"),
        (["leaderboard", "--benchmark", "nope"], "there is no 'nope'; known: healthbench, "),
        (["leaderboard", "--benchmark", "healthbench"], "name one of healthbench there under benchmarks.healthbench."),
        (["benchmarks", "nope"], "there is no 'nope'; known: healthbench, prbench, researchrubrics, twin"),
    ],
)
def test_what_a_benchmark_does_not_have_is_told_in_one_line(world: World, arguments: list[str], said: str) -> None:
    error = world.run(*arguments, code=2)

    assert said in error
    assert len(error.strip().splitlines()) == 1


@pytest.mark.slow
def test_one_benchmark_is_shown_whole(world: World) -> None:
    found = json.loads(world.run("benchmarks", "prbench", "--json"))
    formulas = {each["score"]: each["formula"] for each in found["scores"]}

    assert formulas["score"].startswith("points / positive with points = sum of weight x verdict, positive = sum ")
    assert formulas["min_normalized"].startswith("(points − negative) / (positive − negative) with points")
    shown = world.run("benchmarks", "prbench")
    for part in ("binary_v2", "critically detrimental", "legal_hard", "Compliance Efficiency", "criteria_per_task"):
        assert part in shown


@pytest.mark.slow
def test_what_a_benchmark_has_of_its_own_stands_before_what_all_have(world: World) -> None:
    jobs = {name: load_job(Arguments(config=world.folder / "prbench.yaml", benchmark=name)) for name in (None, "twin")}

    assert ("prbench", 0.99) == (jobs[None].settings.benchmark, jobs[None].settings.coverage.min)
    assert ("twin", 0.5) == (jobs["twin"].settings.benchmark, jobs["twin"].settings.coverage.min)
    assert str(world.folder / "twin" / "finance.jsonl") == jobs["twin"].settings.dataset.source


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"nope": {}}, "benchmarks.nope: there is no such benchmark; known: healthbench, prbench"),
        ({"healthbench": {"benchmark": "prbench"}}, "benchmarks.healthbench.benchmark: there is no such key"),
        ({"healthbench": {"trials": 0}}, "benchmarks.healthbench: trials: "),
        ({"healthbench": 3}, "benchmarks: must map each benchmark to its settings"),
        ([], None),
    ],
)
def test_a_mistake_in_what_another_benchmark_has_is_found_at_once(tmp_path: Path, own: Any, said: str | None) -> None:
    (tmp_path / "x.yaml").write_text(yaml.safe_dump({"dataset": {"source": "sample"}, "benchmarks": own}))
    if said is None:
        assert load_job(Arguments(config=tmp_path / "x.yaml")).settings.benchmark == "prbench"
        return
    with pytest.raises(UsageError) as refused:
        load_job(Arguments(config=tmp_path / "x.yaml"))
    assert f"x.yaml: {said}" in str(refused.value)


def test_the_sample_is_that_of_the_benchmark_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("dataset: {source: sample}")
    for name in ("prbench", "researchrubrics", "healthbench"):
        source = source_of(load_job(Arguments(config=tmp_path / "x.yaml", benchmark=name)))
        benchmark = load_benchmark(name)
        tasks = [benchmark.parse_row(row) for row in source.rows("sample")]
        assert len(tasks) == {"prbench": 8, "researchrubrics": 2, "healthbench": 3}[name]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a1", "import nowhere_to_be_found", "a1.py: cannot be loaded (ModuleNotFoundError: No module"),
        ("a2", "BENCHMARK = 3", "a2.py: BENCHMARK is not a Benchmark with the name 'a2'"),
        ("a3", TWIN, "a3.py: BENCHMARK is not a Benchmark with the name 'a3'"),
        ("a4", TWIN.replace("ternary", "stars", 1), "`gradings` has a template for one or more of"),
        ("a5", TWIN.replace("mood", "topic"), "`breakdowns`: every benchmark has topic; give the kind another name"),
        (
            "a6",
            TWIN.replace("breakdowns=", "scores=PRBENCH.scores[:1] * 2, breakdowns="),
            "each has a name of its own and",
        ),
        ("rows", TWIN, "rows.py: there is a rows already; give it another name"),
        ("prbench", TWIN, "prbench.py: there is a prbench already; give it another name"),
    ],
)
def test_a_module_that_cannot_be_used_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, said: str
) -> None:
    (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.setenv(OWN_FOLDERS, str(tmp_path))
    with pytest.raises(UsageError, match=one_line(said)):
        load_benchmark(name)


@pytest.mark.parametrize("named", ["relative", "/nowhere/to/be/found"])
def test_a_folder_of_benchmarks_is_named_by_its_whole_path(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv(OWN_FOLDERS, named)
    with pytest.raises(UsageError, match=f"{OWN_FOLDERS}: {named} is not the absolute path of a folder; correct it"):
        benchmark_names()


def test_a_helper_of_ones_own_is_no_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "_parts.py").write_text("X = 1")
    monkeypatch.setenv(OWN_FOLDERS, str(tmp_path))

    assert ["healthbench", "prbench", "researchrubrics"] == benchmark_names()
