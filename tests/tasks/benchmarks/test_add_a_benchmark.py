"""The guide "Add a benchmark" works: its files are used as written, for the full pipeline."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from flows.cli.main import main
from flows.run.arguments import Arguments
from flows.run.config import load_job
from tasks import benchmarks
from tasks.aggregate import aggregate
from tasks.config.job import Job
from tasks.imports.verdicts import import_verdicts
from tests.faults.behaviours import HttpResponse, prompt_of
from tests.faults.server import FaultServer
from tests.kit import (
    configure,
    endpoint,
    few_published,
    judged,
    prepared,
    sampled,
    values_in,
    write_jsonl,
)
from warehouse import Warehouse

pytestmark = pytest.mark.slow

GUIDE = Path(benchmarks.__file__).with_name("guide.md").read_text()
FILES = dict(
    re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)```", GUIDE, re.DOTALL | re.MULTILINE)
)
ROWS = [json.loads(line) for line in FILES["minutes.jsonl"].splitlines()]


def titles_of(row: dict[str, Any]) -> list[str]:
    return [item["what"] for item in row["wanted"]]


TITLES = list(map(titles_of, ROWS))
BAD = {
    **ROWS[0],
    "id": "too heavy",
    "wanted": [{**item, "worth": 7} for item in ROWS[0]["wanted"]],
}
EVEN = "meets even places"
ODD = "meets odd places"


def meets(model: str, position: int) -> bool:
    return position % 2 == (model == ODD)


def behaviour(request, _number: int) -> HttpResponse:
    """Models that write their name, and a judge that decides by that name and the criterion's
    position.
    """
    prompt = prompt_of(request)
    if not prompt.startswith("You check minutes of a meeting."):
        return HttpResponse(f"Minutes of one who {request['model']}.")
    conversation, _, title = prompt.partition("Does this hold for the minutes?")
    titles = next(titles for titles in TITLES if title.strip() in titles)
    model = next(name for name in (EVEN, ODD) if name in conversation)
    is_met = meets(model, titles.index(title.strip()))
    verdict = {"explanation": "as the test says", "criteria_met": is_met}
    return HttpResponse(json.dumps(verdict))


@dataclass(frozen=True)
class World:
    job: Job
    config: Path
    n_judged: int

    def command(self, capsys, *arguments: str) -> Any:
        location = [
            "--config",
            str(self.config),
            "--warehouse",
            str(self.job.warehouse),
        ]
        assert main([*arguments, *location, "--json"]) == 0
        return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Iterator[World]:
    """The guide's files in a folder of their own, with another row that breaks a rule, after the
    full pipeline.
    """
    folder = tmp_path_factory.mktemp("mine")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    write_jsonl(folder / "minutes.jsonl", [*ROWS, BAD])
    with pytest.MonkeyPatch.context() as patch, FaultServer(behaviour) as server:
        patch.setenv(benchmarks.FOLDERS_VARIABLE, str(folder))
        config = configure(
            folder,
            benchmark="minutes",
            dataset={"source": "sample"},
            models=[endpoint(name, server.api_base) for name in (EVEN, ODD)],
            judges=[endpoint("judge", server.api_base)],
        )
        arguments = Arguments(
            config=config,
            warehouse=folder / "warehouse",
            is_quiet=True,
        )
        with few_published():
            job = prepared(load_job(arguments))
            sampled(job)
            judged(job)
            n_judged = len(server.entries) - 2 * len(ROWS)
            assert judged(job).rows == 0
            import_marks(job, folder / "marks.jsonl")
        Warehouse(job.warehouse).database.unlink()
        aggregate(job)
        yield World(job, config, n_judged)


def import_marks(job: Job, file: Path):
    """Import the marks of a person who agrees with the judge on one response, except on its first
    criterion.
    """
    marks = {title: meets(EVEN, position) for position, title in enumerate(TITLES[0])}
    marks[TITLES[0][0]] = not meets(EVEN, 0)
    row = {
        "id": ROWS[0]["id"],
        "writer": EVEN,
        "reader": "a reader",
        "marks": marks,
    }
    assert import_verdicts(job, write_jsonl(file, [row])).rows == len(marks)


def scores_of(
    model: str,
    row: dict[str, Any],
    **labels: str,
) -> dict[str, float]:
    """Return both scores of a response by the guide's formulas, over all criteria or those with
    these labels.
    """
    points = 0.0
    positive = 0.0
    negative = 0.0
    for position, item in enumerate(row["wanted"]):
        if labels.items() <= item.items():
            points += item["worth"] * meets(model, position)
            positive += max(item["worth"], 0)
            negative += min(item["worth"], 0)
    return {
        "share": points / positive,
        "from_worst": (points - negative) / (positive - negative),
    }


def test_what_breaks_a_rule_is_refused_and_all_else_is_judged_once(world):
    query = "select check_name, severity, n_failed from checks where not success"
    assert values_in(world.job, query) == [("weight_range", "quarantine", 3)]
    assert values_in(world.job, "select task_id from quarantine") == [("too heavy",)]
    assert world.n_judged == 2 * sum(map(len, TITLES))


def test_all_declared_invariants_are_checked(world):
    names = values_in(
        world.job, "select check_name from checks where suite = 'ingest'"
    )

    invariants = benchmarks.load_benchmark("minutes").invariants
    assert {name for (name,) in names} == set(invariants)


@pytest.mark.parametrize("model", [EVEN, ODD])
@pytest.mark.parametrize("name", ["share", "from_worst"])
def test_both_scores_are_those_of_the_formulas(world, model, name):
    conditions = "judge = 'judge' and model = ? and score_name = ?"
    query = f"select mean_score from leaderboard where {conditions}"

    [[mean_score]] = values_in(world.job, query, model, name)

    expected_score = fmean(scores_of(model, row)[name] for row in ROWS)
    assert mean_score == pytest.approx(expected_score)


def scores_by(world: World, capsys, kind: str) -> dict[tuple[str, str], float]:
    """Return the mean scores of a leaderboard by label and model."""
    board = world.command(capsys, "leaderboard", "--by", kind, "--judge", "judge")
    return {(row["label"], row["model"]): row["mean_score"] for row in board}


def test_a_leaderboard_is_broken_down_by_a_declared_label_of_tasks(world, capsys):
    expected = {}
    for row, model in product(ROWS, (EVEN, ODD)):
        expected[row["meeting"], model] = scores_of(model, row)["share"]

    assert scores_by(world, capsys, "meeting") == pytest.approx(expected)


@pytest.mark.parametrize("model", [EVEN, ODD])
def test_a_leaderboard_is_broken_down_by_the_categories_of_criteria(
    world,
    capsys,
    model,
):
    scores = [scores_of(model, row, about="decisions")["from_worst"] for row in ROWS]

    actual = scores_by(world, capsys, "category")["decisions", model]

    assert actual == pytest.approx(fmean(scores))


def test_published_marks_stand_beside_the_judge(world, capsys):
    [pair] = world.command(capsys, "judges")["pairs"]

    assert {pair["grader_a"], pair["grader_b"]} == {"a reader", "judge"}
    assert pair["n"] == len(TITLES[0])
    assert pair["agreement"] == pytest.approx(1 - 1 / len(TITLES[0]))
