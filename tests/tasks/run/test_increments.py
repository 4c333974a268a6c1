"""Increments of a run: it makes only the missing calls, counted in the provider's book."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.imports.responses import import_responses
from tasks.plan.plan import plan
from tasks.rules.errors import UsageError
from tasks.run.coverage import coverage
from tests.faults.behaviours import HttpResponse, is_judge_request, well_behaved
from tests.faults.server import FaultServer
from tests.kit import (
    endpoint,
    few_published,
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


def new_each_time(request, number: int) -> HttpResponse:
    """A response that differs each time, as with a temperature; verdicts depend on the prompt
    alone.
    """
    if is_judge_request(request):
        return well_behaved(request, number)
    return HttpResponse(
        f"{well_behaved(request, number).text} Take {number} at {request.get('temperature')}."
    )


def data(
    folder: Path,
    split: str = "finance",
    n_tasks: int = TASKS,
    **changes: dict[str, Any],
) -> Path:
    """A split of tasks, some with changed columns."""
    rows = [
        good_row(f"{split}-{n}", **changes.get(f"t{n}", {})) for n in range(n_tasks)
    ]
    folder.mkdir(exist_ok=True)
    return write_jsonl(folder / f"{split}.jsonl", rows).parent


class World:
    """A warehouse and a provider that counts calls: `run` runs the stages and returns the
    numbers.
    """

    def __init__(self, server: FaultServer, folder: Path):
        self.server = server
        self.folder = folder
        data(folder / "data", "legal", 2)
        self.settings: dict[str, Any] = {
            "dataset": {"source": str(data(folder / "data")), "splits": ["finance"]},
            "models": [self.model("pinned")],
            "judges": [self.judge("judge")],
        }

    def model(self, label: str, **settings: Any) -> dict[str, Any]:
        return endpoint(label, self.server.api_base, **settings)

    judge = model

    def job(self, **narrowed: Any) -> Job:
        return job_on("given", self.folder / "w", **self.settings).model_copy(
            update=narrowed
        )

    def run(self, **narrowed: Any) -> tuple[int, int]:
        """Run the stages; return the numbers of calls for responses and for verdicts, from the
        provider's book.
        """
        n_samples = len(self.server.samples)
        n_judge_calls = len(self.server.judge_requests)
        job = prepared(self.job(**narrowed))
        sampled(job)
        judged(job)
        return (
            len(self.server.samples) - n_samples,
            len(self.server.judge_requests) - n_judge_calls,
        )

    def count(self, table: str, where: str = "true") -> int:
        with Warehouse(self.folder / "w").reader() as reader:
            return int(reader.value(f"select count(*) from {table} where {where}"))


@pytest.fixture(scope="module")
def shared_world(tmp_path_factory) -> Iterator[World]:
    """A world in which a pinned model has responses with verdicts; tests work on copies of it."""
    with FaultServer(new_each_time) as server:
        world = World(server, tmp_path_factory.mktemp("shared"))
        with few_published():
            assert world.run() == (TASKS, VERDICTS)
        yield world


@pytest.fixture
def world(shared_world: World, tmp_path) -> World:
    shutil.copytree(shared_world.folder / "w", tmp_path / "w")
    return World(shared_world.server, tmp_path)


def set_template(world: World):
    path = world.folder / "template.txt"
    path.write_text(TEMPLATE)
    world.settings["judges"][0]["template"] = str(path)


def add_model(world: World):
    world.settings["models"].append(world.model("another"))


def add_judge(world: World):
    world.settings["judges"].append(world.judge("another-judge"))


def add_trial(world: World):
    world.settings["trials"] = 2


def add_split(world: World):
    world.settings["dataset"]["splits"].append("legal")


def set_temperature(world: World):
    world.settings["models"][0]["temperature"] = 0.5


@pytest.mark.parametrize(
    ("change", "n_samples", "n_judge_calls"),
    [
        (add_model, TASKS, VERDICTS),
        (add_judge, 0, VERDICTS),
        (set_template, 0, VERDICTS),
        (set_temperature, TASKS, VERDICTS),
        pytest.param(add_trial, TASKS, VERDICTS, marks=pytest.mark.long),
        pytest.param(add_split, 2, 2 * CRITERIA, marks=pytest.mark.long),
    ],
)
def test_an_increment_costs_exactly_its_missing_cells_and_the_old_ones_stay(
    change,
    n_samples,
    n_judge_calls,
    world,
):
    change(world)

    assert world.run() == (n_samples, n_judge_calls)
    assert world.run() == (0, 0)
    assert world.count("responses") == TASKS + n_samples
    assert world.count("verdicts") == VERDICTS + n_judge_calls


@pytest.mark.long
def test_a_revision_costs_only_what_reads_differently(world):
    reworded = good_rubric("finance-0")
    heavier = good_rubric("finance-1")
    reworded[3]["title"] = "Names the risk in other words."
    heavier[0]["annotations"]["important_weight"] = 4
    data(
        world.folder / "data",
        t0={"rubric": reworded},
        t1={"rubric": heavier},
        t2={"prompt_0": "What else about finance-2?"},
    )

    # A reworded criterion is judged again, a changed prompt is sampled and judged; a changed weight
    # costs nothing.
    assert world.run() == (1, 1 + CRITERIA)
    assert world.run() == (0, 0)
    assert world.count("responses") == 2 * TASKS
    assert world.count("verdicts") == 2 * VERDICTS


def test_a_night_covers_pinned_and_nightly_models(world):
    world.settings["models"].append(world.model("fresh", resample="nightly"))
    world.run(night="2026-11-22")

    cells = coverage(world.job(night="2026-11-22"))

    assert {cell.share for cell in cells} == {1.0}
    assert {(cell.model, cell.vintage) for cell in cells} == {
        ("pinned", "base"),
        ("fresh", "2026-11-22"),
    }


def test_named_trials_and_tasks_are_filled_in_and_nothing_else(world):
    assert world.run(named_trials=(3,), named_tasks=("finance-1",)) == (1, CRITERIA)
    assert world.count("responses", "trial = 3") == 1
    assert world.run(named_trials=(3,)) == (TASKS - 1, VERDICTS - CRITERIA)
    assert world.count("responses", "trial = 2") == 0


def test_a_task_that_is_not_there_is_refused_by_name(world):
    with pytest.raises(UsageError, match="--task nobody: not an admitted task"):
        world.run(named_tasks=("nobody",))


def test_an_imported_response_fills_its_cell_in_pinned_sampling_alone(
    world, tmp_path
):
    responses = tmp_path / "responses.json"
    responses.write_text(
        json.dumps({"finance-0": "A response that was made elsewhere."})
    )
    world.settings["models"] = [world.model("fresh", resample="nightly")]
    import_responses(world.job(), responses, "fresh")

    assert world.run() == (TASKS - 1, VERDICTS)
    assert world.run(night="2026-11-22") == (TASKS, VERDICTS)


@pytest.fixture
def importing_world(world: World) -> World:
    """A world with two imported responses, to one task in two trials, of which one is wanted."""
    response = {"task": "finance-0", "response": "One made elsewhere."}
    rows = [{**response, "trial": trial} for trial in (1, 2)]
    responses = write_jsonl(world.folder / "responses.jsonl", rows)
    [warning] = import_responses(world.job(), responses, "elsewhere").warnings
    assert warning.startswith(
        "elsewhere: not configured, so no run judges these responses; run with --model, or"
    )
    return world


def imported(label: str) -> dict[str, str]:
    return {"label": label, "source": "imported"}


@pytest.mark.parametrize(
    ("change_models", "named_models", "n_judged"),
    [
        pytest.param(lambda models: None, ("elsewhere",), CRITERIA, id="named"),
        pytest.param(
            lambda models: models.append(imported("elsewhere")),
            None,
            CRITERIA,
            id="listed",
        ),
        pytest.param(
            lambda models: models.append(imported("elsewere")),
            None,
            0,
            id="mistyped",
        ),
        pytest.param(lambda models: models.clear(), None, CRITERIA, id="no model"),
    ],
)
def test_imported_responses_are_judged_where_listed_or_named_or_alone(
    change_models,
    named_models,
    n_judged,
    importing_world,
):
    change_models(importing_world.settings["models"])
    job = importing_world.job(named_models=named_models)
    if named_models:
        job = job.with_settings(models=())
    planned = plan(job)

    assert sum(row.calls for row in planned if row.purpose == "judge") == n_judged
    assert importing_world.run(named_models=named_models) == (0, n_judged)
    cells = [cell for cell in coverage(job) if cell.model.startswith("else")]
    assert {cell.trial for cell in cells} == {1}
    assert {cell.wanted for cell in cells} == {TASKS, VERDICTS}
    for cell in cells:
        assert cell.done == cell.due
