"""Increments of a run: it makes only the missing calls, counted in the provider's book."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.imports.responses import import_responses
from tasks.plan.plan import plan
from tasks.rules.errors import UsageError
from tasks.run.coverage import coverage
from tests.faults.behaviours import HttpResponse, Request, is_judge_request, well_behaved
from tests.faults.server import FaultServer
from tests.kit import (
    endpoint,
    good_row,
    good_rubric,
    job_on,
    judged,
    prepared,
    sampled,
    write_jsonl,
)
from warehouse import Warehouse

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_scores")]

TASKS = 3
CRITERIA = 10
VERDICTS = TASKS * CRITERIA

TEMPLATE = """Another way to ask about one item of an expert's grading rubric.
<<conversation>>
<<rubric_item>>
Reply with JSON: {"explanation": "...", "criteria_met": true or false}"""


def new_each_time(request: Request, number: int) -> HttpResponse:
    """A response that differs each time, as with a temperature; verdicts depend on the prompt
    alone.
    """
    if is_judge_request(request):
        return well_behaved(request, number)
    return HttpResponse(
        f"{well_behaved(request, number).text} Take {number} at {request.get('temperature')}."
    )


def data(
    folder: Path, split: str = "finance", n_tasks: int = TASKS, **changed: dict[str, Any]
) -> Path:
    """A split of tasks, some with changed columns."""
    rows = [good_row(f"{split}-{i}", **changed.get(f"t{i}", {})) for i in range(n_tasks)]
    folder.mkdir(exist_ok=True)
    return write_jsonl(folder / f"{split}.jsonl", rows).parent


class World:
    """A warehouse and a provider that counts calls: `does` runs the stages and returns the
    numbers.
    """

    def __init__(self, server: FaultServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        data(folder / "data", "legal", 2)
        dataset = {"source": str(data(folder / "data")), "splits": ["finance"]}
        models = [self.model("pinned")]
        judges = [self.judge("judge")]
        self.settings: dict[str, Any] = {
            "dataset": dataset,
            "models": models,
            "judges": judges,
        }

    def model(self, label: str, **settings: Any) -> dict[str, Any]:
        return endpoint(label, self.server.api_base, **settings)

    judge = model

    def job(self, **narrowed: Any) -> Job:
        return job_on("given", self.folder / "w", **self.settings).model_copy(update=narrowed)

    def does(self, **narrowed: Any) -> tuple[int, int]:
        """Run the stages; return the numbers of calls for responses and for verdicts, from the
        provider's book.
        """
        before = len(self.server.samples), len(self.server.judge_requests)
        job = prepared(self.job(**narrowed))
        sampled(job)
        judged(job)
        return len(self.server.samples) - before[0], len(self.server.judge_requests) - before[1]

    def count(self, table: str, where: str = "true") -> int:
        with Warehouse(self.folder / "w").reader() as reader:
            return int(reader.value(f"select count(*) from {table} where {where}"))


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world in which a pinned model has responses with verdicts; tests work on copies of it."""
    with FaultServer(new_each_time) as server:
        world = World(server, tmp_path_factory.mktemp("begun"))
        assert world.does() == (TASKS, VERDICTS)
        yield world


@pytest.fixture
def world(begun: World, tmp_path: Path) -> Iterator[World]:
    shutil.copytree(begun.folder / "w", tmp_path / "w")
    yield World(begun.server, tmp_path)
    begun.server.behaviour = new_each_time


def another_template(world: World) -> None:
    path = world.folder / "template.txt"
    path.write_text(TEMPLATE)
    world.settings["judges"][0]["template"] = str(path)


INCREMENTS: dict[str, tuple[Callable[[World], Any], tuple[int, int]]] = {
    "another model": (
        lambda world: world.settings["models"].append(world.model("another")),
        (TASKS, VERDICTS),
    ),
    "another trial": (lambda world: world.settings.update(trials=2), (TASKS, VERDICTS)),
    "another judge": (
        lambda world: world.settings["judges"].append(world.judge("another-judge")),
        (0, VERDICTS),
    ),
    "another judge trial": (
        lambda world: world.settings["judges"][0].update(trials=2),
        (0, VERDICTS),
    ),
    "another template": (another_template, (0, VERDICTS)),
    "another split": (
        lambda world: world.settings["dataset"]["splits"].append("legal"),
        (2, 2 * CRITERIA),
    ),
    "a parameter": (
        lambda world: world.settings["models"][0].update(temperature=0.5),
        (TASKS, VERDICTS),
    ),
}


@pytest.mark.parametrize("increment", INCREMENTS)
def test_an_increment_costs_exactly_its_missing_cells_and_the_old_ones_stay(
    world: World, increment: str
) -> None:
    change, cost = INCREMENTS[increment]
    change(world)
    assert cost == world.does()
    assert world.does() == (0, 0)
    assert TASKS + cost[0] == world.count("responses")
    assert VERDICTS + cost[1] == world.count("verdicts")


@pytest.mark.long
def test_a_revision_costs_only_what_reads_differently(world: World) -> None:
    reworded = good_rubric("finance-0")
    heavier = good_rubric("finance-1")
    reworded[3]["title"] = "Names the risk in other words."
    heavier[0]["annotations"]["important_weight"] = 4
    changed = {
        "t0": {"rubric": reworded},
        "t1": {"rubric": heavier},
        "t2": {"prompt_0": "What else about finance-2?"},
    }
    data(world.folder / "data", **changed)
    # A reworded criterion is judged again, a changed prompt is sampled and judged; a changed weight
    # costs nothing.
    assert world.does() == (1, 1 + CRITERIA)
    assert world.count("responses") == 2 * TASKS
    assert world.count("verdicts") == 2 * VERDICTS
    assert world.does() == (0, 0)


def test_a_night_samples_anew_only_the_models_that_are_to_be(world: World) -> None:
    world.settings["models"].append(world.model("fresh", resample="nightly"))
    assert world.does() == (TASKS, VERDICTS)
    assert world.does(night="2026-11-21") == (TASKS, VERDICTS)
    assert world.does(night="2026-11-21") == (0, 0)
    assert world.does(night="2026-11-22") == (TASKS, VERDICTS)
    assert world.count("responses", "model = 'pinned'") == TASKS
    assert world.count("responses", "model = 'fresh'") == 3 * TASKS
    rows = {
        (each.model, each.vintage, each.judge): each.share
        for each in coverage(world.job(night="2026-11-22"))
    }
    assert set(rows.values()) == {1.0}
    assert {(model, vintage) for model, vintage, _ in rows} == {
        ("pinned", "base"),
        ("fresh", "2026-11-22"),
    }


def test_named_trials_and_tasks_are_filled_in_and_nothing_else(world: World) -> None:
    assert world.does(named_trials=(3,), named_tasks=("finance-1",)) == (1, CRITERIA)
    assert world.count("responses", "trial = 3") == 1
    assert world.does(named_trials=(3,)) == (TASKS - 1, VERDICTS - CRITERIA)
    assert world.count("responses", "trial = 2") == 0


def test_a_task_that_is_not_there_is_refused_by_name(world: World) -> None:
    with pytest.raises(UsageError, match="--task nobody: not an admitted task"):
        world.does(named_tasks=("nobody",))


def test_an_imported_response_fills_its_cell_in_pinned_sampling_alone(
    world: World, tmp_path: Path
) -> None:
    given = tmp_path / "given.json"
    given.write_text(json.dumps({"finance-0": "A response that was made elsewhere."}))
    world.settings["models"] = [world.model("fresh", resample="nightly")]
    import_responses(world.job(), given, "fresh")
    assert world.does() == (TASKS - 1, VERDICTS)
    assert world.does(night="2026-11-22") == (TASKS, VERDICTS)


IMPORTED = {
    "named": ([], ("elsewhere",), CRITERIA),
    "listed": ([{"label": "elsewhere", "source": "imported"}], None, CRITERIA),
    "listed but not there": ([{"label": "elsewere", "source": "imported"}], None, 0),
    "no model is": (None, None, CRITERIA),
}


@pytest.mark.parametrize("case", IMPORTED)
def test_imported_responses_are_judged_where_listed_or_named_or_alone(
    case: str, world: World, tmp_path: Path
) -> None:
    rows = [
        {
            "task": "finance-0",
            "response": "One made elsewhere.",
            "trial": trial,
        }
        for trial in (1, 2)
    ]
    listed, named, n_judged = IMPORTED[case]
    (line,) = import_responses(
        world.job(), write_jsonl(tmp_path / "given.jsonl", rows), "elsewhere"
    ).warnings
    assert line.startswith(
        "elsewhere: not configured, so no run judges these responses; run with --model, or"
    )
    world.settings["models"] = [*world.settings["models"], *listed] if listed is not None else []
    narrowed = {"named_models": named} if named else {}
    job = world.job(**narrowed)
    if named:
        job = job.model_copy(update={"settings": job.settings.model_copy(update={"models": ()})})

    assert n_judged == sum(each.calls for each in plan(job) if each.purpose == "judge")
    assert (0, n_judged) == world.does(**narrowed)
    cells = [each for each in coverage(job) if each.model.startswith("else")]
    assert {each.trial for each in cells} == {1}
    assert all(each.done == each.due for each in cells)
    assert {each.wanted for each in cells} == {TASKS, VERDICTS}
