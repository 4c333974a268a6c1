"""`prbench capabilities` and `weaknesses` against a scripted provider: calls, rows, and
weaknesses.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.faults.behaviours import HttpResponse, Request, criterion_of, prompt_of
from tests.faults.server import FaultServer
from tests.flows.conftest import Command
from tests.kit import good_row, write_jsonl
from tests.tasks.dataset.rows import hub_criterion

pytestmark = pytest.mark.slow
TOPICS = (
    "depreciation of leased equipment",
    "inheritance tax of foreign estates",
    "margin calls on short options",
    "notice periods in employment",
)
MANNERS = ("briefly", "precisely", "completely")
N_TASKS = 50
N_CRITERIA = 8
WEAK = 1


def is_naming(request: Request) -> bool:
    return 'only key is "name"' in prompt_of(request)


def describing(request: Request, _: int) -> HttpResponse:
    """Phrase a criterion by the topic in its title; name a group after its first phrase."""
    prompt = prompt_of(request)
    if is_naming(request):
        return HttpResponse(
            json.dumps({"name": f"Rules on {phrases_in(prompt)[0].partition(' of ')[0]}"})
        )
    title = criterion_of(prompt)
    manner = MANNERS[int(title.split()[4].rstrip(":")) % 3]
    return HttpResponse(
        json.dumps({"capability": f"Applying the {title.partition(': ')[2]} {manner}"})
    )


def phrases_in(prompt: str) -> list[str]:
    return re.findall(r"phrase \d+ of \d+\]\n(.*)\n", prompt)


@pytest.fixture
def provider() -> Iterator[FaultServer]:
    with FaultServer(describing) as server:
        yield server


def described_by(provider: FaultServer, **more: Any) -> dict[str, Any]:
    return {
        "model": {
            "name": "hosted_vllm/describer",
            "label": "d",
            "api_base": provider.api_base,
        },
        **more,
    }


def rows_and_verdicts() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Tasks with two criteria of each topic, one criterion negative; `weak` fails a topic, `even`
    fails all equally.
    """
    dice = np.random.default_rng(5)
    rows = []
    verdicts = []
    for number in range(N_TASKS):
        task = f"t{number:02}"
        rubric = []
        for index in range(N_CRITERIA):
            topic = index % 4
            is_bad = index == 7
            of = f"{task}-c{index}"
            title = {"title": f"Point {index} of task {number}: {TOPICS[topic]}"}
            rubric.append(
                hub_criterion(of, *(("detrimental", -5) if is_bad else ("important", 5))) | title
            )
            for model in ("weak", "even"):
                is_right = dice.random() < (0.15 if (model, topic) == ("weak", WEAK) else 0.7)
                decided = {"criterion": of, "criteria_met": bool(is_right != is_bad)}
                verdicts.append(
                    {
                        "task": task,
                        "model": model,
                        **decided,
                    }
                )
        rows.append(good_row(task, rubric=rubric))
    return rows, verdicts


@dataclass(frozen=True)
class Planted:
    """A benchmark with two models, one of which is weak in a topic; its verdicts; and the calls of
    the analysis.
    """

    command: Command
    verdicts: list[dict[str, Any]]
    calls: list[Request]
    calls_again: list[Request]
    again: str


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    command = Command(tmp_path_factory.mktemp("planted"))
    rows, verdicts = rows_and_verdicts()
    write_jsonl(command.folder / "finance.jsonl", rows)
    responses = [
        {
            "task": row["task"],
            "model": model,
            "response": f"{model} says",
        }
        for row in rows
        for model in ("weak", "even")
    ]
    write_jsonl(command.folder / "responses.jsonl", responses)
    write_jsonl(command.folder / "verdicts.jsonl", verdicts)
    with FaultServer(describing) as provider:
        command.configure(
            dataset={"source": "finance.jsonl"},
            warehouse="data",
            models=[],
            judges=[],
            quality={"criteria_per_task": "warn"},
            capabilities=described_by(provider),
        )
        for line in (
            "ingest -q",
            "assemble -q",
            "import responses responses.jsonl",
            "import verdicts verdicts.jsonl",
        ):
            command(*line.split())
        command("capabilities")
        calls = list(provider.book)
        again = command("capabilities").stderr
        return Planted(command, verdicts, calls, provider.book[len(calls) :], again)


def test_each_criterion_is_described_once_and_a_finished_analysis_makes_no_call(
    planted: Planted,
) -> None:
    command = planted.command
    kinds = Counter("name" if is_naming(each) else "phrase" for each in planted.calls)
    nodes = command.sql("select * from capability_nodes order by position")

    assert kinds["phrase"] == N_TASKS * N_CRITERIA
    assert (
        command.sql("select count(*)::int as n from criterion_capabilities")[0]["n"]
        == N_TASKS * N_CRITERIA
    )
    assert len(nodes) - 1 <= kinds["name"]
    assert len({node["name"].casefold() for node in nodes}) == len(nodes) > 4
    in_leaves = sum(each["n_criteria"] for each in nodes if each["is_leaf"])
    assert N_TASKS * N_CRITERIA == nodes[0]["n_criteria"] == in_leaves
    assert "nothing is missing, no model call made" in planted.again
    assert planted.calls_again == []


def test_scores_are_those_of_plain_loops_and_the_planted_weakness_alone_is_confirmed(
    planted: Planted,
) -> None:
    command = planted.command
    members = defaultdict(set)
    for row in command.sql("select node_id, task_id, criterion_id from capability_members"):
        members[row["node_id"]].add(row["criterion_id"])
    decided = {
        (each["model"], each["criterion"]): each["criteria_met"] for each in planted.verdicts
    }
    right = {cell: is_met != cell[1].endswith("-c7") for cell, is_met in decided.items()}
    for row in command.sql("from capability_scores"):
        of_tasks = defaultdict(list)
        for criterion in members[row["node_id"]]:
            of_tasks[criterion.partition("-")[0]].append(right[row["model"], criterion])
        # All weights have the same size here, so the min-normalised score is a plain share.
        assert pytest.approx(row["value"]) == np.mean([np.mean(each) for each in of_tasks.values()])
        assert row["n_tasks"] == len(of_tasks)
        assert row["ci_low"] is None or row["ci_low"] < row["value"] < row["ci_high"]

    result = command.json("weaknesses", "weak")
    weakness = result["weaknesses"][0]
    weak_criteria = set().union(*(members[each["node_id"]] for each in result["weaknesses"]))
    true = {
        each["criterion"] for each in planted.verdicts if int(each["criterion"][-1]) % 4 == WEAK
    }
    assert true == weak_criteria
    assert weakness["gap_ci_high"] < 0
    assert weakness["p_confirmed"] < 0.01
    assert weakness["n_tasks"] + weakness["n_tasks_found"] <= N_TASKS
    assert {each["node_id"] for each in result["examples"]} == {
        each["node_id"] for each in result["weaknesses"]
    }
    assert all(TOPICS[WEAK] in each["title"] for each in result["examples"])
    assert command.json("weaknesses", "weak", "--than", "even")["weaknesses"]
    assert command.json("weaknesses", "even")["weaknesses"] == []
    shown = command("weaknesses", "weak").stdout
    assert "Where models are weak" in shown
    assert "\neven " in shown.partition("Candidates for weaknesses")[2]
    assert "--model none: not found" in command("weaknesses", "none", code=2).stderr


def test_vectors_of_phrases_come_from_the_embedding_model_once(
    command: Command, provider: FaultServer
) -> None:
    embedding = {
        "name": "hosted_vllm/embedder",
        "label": "e",
        "api_base": provider.api_base,
    }
    command.configure(
        dataset={"source": "sample"},
        warehouse="data",
        models=[],
        judges=[],
        capabilities=described_by(provider, embedding=embedding),
    )
    provider.behaviour = whole_criterion
    command("ingest", "-q")
    command("assemble", "-q")
    command("capabilities")
    stored = command.sql(
        "select phrase, status, len(vector)::int as length, prompt_tokens from phrase_embeddings"
    )
    embedded = [each for each in provider.entries if each.path == "/v1/embeddings"]

    assert len(embedded) == len(stored) == len({row["phrase"] for row in stored})
    assert {(row["status"], row["length"]) for row in stored} == {("ok", 64)}
    assert sum(row["prompt_tokens"] for row in stored) > len(embedded)
    assert [
        each["vectors"] for each in command.sql("select distinct vectors from capability_trees")
    ] == ["e"]
    n_calls = len(provider.book)
    command("capabilities")
    assert n_calls == len(provider.book)


def whole_criterion(request: Request, number: int) -> HttpResponse:
    if is_naming(request):
        return describing(request, number)
    if "messages" not in request:
        return HttpResponse()
    return HttpResponse(json.dumps({"capability": criterion_of(prompt_of(request))}))
