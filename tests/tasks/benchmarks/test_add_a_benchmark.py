"""The guide "Add a benchmark" works: its files are used as written, for the full pipeline."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
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
from tests.faults.behaviours import HttpResponse, Request, prompt_of
from tests.faults.server import FaultServer
from tests.kit import configure, endpoint, judged, prepared, sampled, values_in, write_jsonl

pytestmark = pytest.mark.slow

GUIDE = Path(benchmarks.__file__).with_name("guide.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)```", GUIDE, re.DOTALL | re.MULTILINE))
ROWS = [json.loads(line) for line in FILES["minutes.jsonl"].splitlines()]
TITLES = [[item["what"] for item in row["wanted"]] for row in ROWS]
BAD = {
    **ROWS[0],
    "id": "too heavy",
    "wanted": [{**item, "worth": 7} for item in ROWS[0]["wanted"]],
}
EVEN = "meets even places"
ODD = "meets odd places"


def meets(model: str, position: int) -> bool:
    return position % 2 == (model == ODD)


def behaviour(request: Request, _number: int) -> HttpResponse:
    """Models that write their name, and a judge that decides by that name and the criterion's
    position.
    """
    prompt = prompt_of(request)
    if not prompt.startswith("You check minutes of a meeting."):
        return HttpResponse(f"Minutes of one who {request['model']}.")
    conversation, _, title = prompt.partition("Does this hold for the minutes?")
    position = next(titles.index(title.strip()) for titles in TITLES if title.strip() in titles)
    model = next(name for name in (EVEN, ODD) if name in conversation)
    return HttpResponse(
        json.dumps({"explanation": "as the test says", "criteria_met": meets(model, position)})
    )


@dataclass(frozen=True)
class World:
    job: Job
    config: Path
    n_judged: int

    def command(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
        where = ["--config", str(self.config), "--warehouse", str(self.job.warehouse), "--json"]
        assert main([*arguments, *where]) == 0
        return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The guide's files in a folder of their own, with another row that breaks a rule, after the
    full pipeline.
    """
    folder = tmp_path_factory.mktemp("mine")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    write_jsonl(folder / "minutes.jsonl", [*ROWS, BAD])
    with pytest.MonkeyPatch.context() as patch, FaultServer(behaviour) as server:
        patch.setenv(benchmarks.OWN_FOLDERS, str(folder))
        models, judges = (
            [endpoint(name, server.api_base) for name in of] for of in ((EVEN, ODD), ("judge",))
        )
        config = configure(
            folder,
            benchmark="minutes",
            dataset={"source": "sample"},
            models=models,
            judges=judges,
        )
        job = prepared(
            load_job(
                Arguments(
                    config=config,
                    warehouse=folder / "warehouse",
                    is_quiet=True,
                )
            )
        )
        sampled(job)
        judged(job)
        n_judged = len(server.entries) - 2 * len(ROWS)
        assert judged(job).rows == 0
        # A person who agrees with the judge on one response, except on its first criterion.
        marks = {
            title: meets(EVEN, position) != (position == 0)
            for position, title in enumerate(TITLES[0])
        }
        published = [
            {
                "id": ROWS[0]["id"],
                "writer": EVEN,
                "reader": "a reader",
                "marks": marks,
            }
        ]
        assert (
            len(marks) == import_verdicts(job, write_jsonl(folder / "marks.jsonl", published)).rows
        )
        aggregate(job)
        yield World(job, config, n_judged)


def scores_of(model: str, row: dict[str, Any], **only: str) -> dict[str, float]:
    """Return both scores of a response by the guide's formulas, over all criteria or those with the
    given values.
    """
    wanted = [
        (position, item["worth"])
        for position, item in enumerate(row["wanted"])
        if only.items() <= item.items()
    ]
    points = sum(worth for position, worth in wanted if meets(model, position))
    positive, negative = (
        sum(worth for _, worth in wanted if (worth > 0) == is_gain) for is_gain in (True, False)
    )
    return {"share": points / positive, "from_worst": (points - negative) / (positive - negative)}


def test_what_breaks_a_rule_is_refused_and_all_else_is_judged_once(world: World) -> None:
    failed = values_in(
        world.job, "select check_name, severity, n_failed from checks where not success"
    )
    checked = values_in(world.job, "select check_name from checks where suite = 'ingest'")

    assert failed == [("weight_range", "quarantine", 3)]
    assert set(benchmarks.load_benchmark("minutes").invariants) == {name for (name,) in checked}
    assert values_in(world.job, "select task_id from quarantine") == [("too heavy",)]
    assert 2 * sum(map(len, TITLES)) == world.n_judged


def test_both_scores_are_those_of_the_formulas(world: World) -> None:
    rows = values_in(
        world.job, "select model, score_name, mean_score from leaderboard where judge = 'judge'"
    )
    expected = {
        (model, name): fmean(scores_of(model, row)[name] for row in ROWS) for model, name, _ in rows
    }

    assert len(rows) == 4
    assert pytest.approx(expected) == {(model, name): mean for model, name, mean in rows}


def test_leaderboards_are_cut_by_what_it_declares(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = world.command(capsys, "leaderboard", "--by", "meeting", "--judge", "judge")
    parts = world.command(capsys, "leaderboard", "--by", "category", "--judge", "judge")
    by_meeting = {
        (row["meeting"], model): scores_of(model, row)["share"]
        for row in ROWS
        for model in (EVEN, ODD)
    }
    of_decisions = {
        m: [scores_of(m, row, about="decisions")["from_worst"] for row in ROWS] for m in (EVEN, ODD)
    }
    decisions = {model: fmean(scores) for model, scores in of_decisions.items()}

    assert pytest.approx(by_meeting) == {
        (row["label"], row["model"]): row["mean_score"] for row in rows
    }
    assert pytest.approx(decisions) == {
        row["model"]: row["mean_score"] for row in parts if row["label"] == "decisions"
    }


def test_published_marks_stand_beside_the_judge(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    (pair,) = world.command(capsys, "judges")["pairs"]

    assert {pair["grader_a"], pair["grader_b"]} == {"a reader", "judge"}
    assert len(TITLES[0]) == pair["n"]
    assert pytest.approx(1 - 1 / len(TITLES[0])) == pair["agreement"]
