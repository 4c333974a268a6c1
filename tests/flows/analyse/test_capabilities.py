"""`prbench capabilities` and `weaknesses` against a scripted provider: calls, rows, and
weaknesses.
"""

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.faults.behaviours import HttpResponse, Request, criterion_of, prompt_of
from tests.faults.server import FaultServer
from tests.flows.conftest import Command
from tests.kit import Row, endpoint, good_row, write_jsonl
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
"""The topic that the model `weak` fails."""
MODELS = ("weak", "even")


def is_naming(request) -> bool:
    return 'only key is "name"' in prompt_of(request)


def describing(request, _: int) -> HttpResponse:
    """Phrase a criterion by the topic in its title; name a group after its first phrase."""
    prompt = prompt_of(request)
    if is_naming(request):
        phrase, *_ = re.findall(r"phrase \d+ of \d+\]\n(.*)\n", prompt)
        subject, _, _ = phrase.partition(" of ")
        return HttpResponse(json.dumps({"name": f"Rules on {subject}"}))
    point, _, topic = criterion_of(prompt).partition(": ")
    manner = MANNERS[int(point.split()[-1]) % 3]
    return HttpResponse(json.dumps({"capability": f"Applying the {topic} {manner}"}))


def configure(
    command: Command,
    provider: FaultServer,
    embedding: Row | None = None,
    **settings: Any,
):
    capabilities = {"model": endpoint("describer", provider.api_base)}
    if embedding is not None:
        capabilities["embedding"] = embedding
    command.configure(
        warehouse="data",
        models=[],
        judges=[],
        capabilities=capabilities,
        **settings,
    )


def is_undesired(criterion_id: str) -> bool:
    return criterion_id.endswith("-c7")


def topic_of(criterion_id: str) -> int:
    return int(criterion_id[-1]) % len(TOPICS)


def planted_rows() -> tuple[list[Row], list[Row]]:
    """Tasks with two criteria of each topic, one of them undesired, and verdicts on them.

    The model `weak` fails a topic, `even` fails all equally.
    """
    dice = np.random.default_rng(5)
    tasks = []
    verdicts = []
    for number in range(N_TASKS):
        task = f"t{number:02}"
        rubric = []
        for index in range(N_CRITERIA):
            criterion_id = f"{task}-c{index}"
            importance = ("important", 5)
            if is_undesired(criterion_id):
                importance = ("detrimental", -5)
            title = (
                f"Point {index} of task {number}: {TOPICS[topic_of(criterion_id)]}"
            )
            rubric.append(hub_criterion(criterion_id, *importance) | {"title": title})
            for model in MODELS:
                is_failed_topic = model == "weak" and topic_of(criterion_id) == WEAK
                is_right = dice.random() < (0.15 if is_failed_topic else 0.7)
                verdict = {
                    "task": task,
                    "model": model,
                    "criterion": criterion_id,
                    "criteria_met": bool(is_right != is_undesired(criterion_id)),
                }
                verdicts.append(verdict)
        tasks.append(good_row(task, rubric=rubric))
    return tasks, verdicts


@dataclass(frozen=True)
class Planted:
    """A benchmark with two models, one of which is weak in a topic; its verdicts; and the calls of
    two executions of the analysis.
    """

    command: Command
    verdicts: list[Row]
    calls: list[Request]
    n_calls: int
    second_stderr: str

    def weaknesses(self, *options: str) -> Any:
        return self.command.json("weaknesses", *options)

    def members(self) -> dict[str, set[str]]:
        """Node -> the ids of its criteria."""
        members = defaultdict(set)
        for row in self.command.sql(
            "select node_id, criterion_id from capability_members"
        ):
            members[row["node_id"]].add(row["criterion_id"])
        return members


@pytest.fixture(scope="module")
def planted(tmp_path_factory) -> Planted:
    command = Command(tmp_path_factory.mktemp("planted"))
    tasks, verdicts = planted_rows()
    responses = []
    for task in tasks:
        for model in MODELS:
            responses.append(
                {"task": task["task"], "model": model, "response": f"{model} says"}
            )
    write_jsonl(command.folder / "finance.jsonl", tasks)
    write_jsonl(command.folder / "responses.jsonl", responses)
    write_jsonl(command.folder / "verdicts.jsonl", verdicts)
    with FaultServer(describing) as provider:
        configure(
            command,
            provider,
            dataset={"source": "finance.jsonl"},
            quality={"criteria_per_task": "warn"},
        )
        command("ingest")
        command("assemble")
        command("import", "responses", "responses.jsonl")
        command("import", "verdicts", "verdicts.jsonl")
        command("capabilities")
        calls = list(provider.book)
        stderr = command("capabilities").stderr
        return Planted(
            command,
            verdicts,
            calls,
            len(provider.book),
            stderr,
        )


def test_each_criterion_is_described_once(planted):
    descriptions = [call for call in planted.calls if not is_naming(call)]
    rows = planted.command.sql("select criterion_id from criterion_capabilities")

    assert len(descriptions) == N_TASKS * N_CRITERIA
    assert len(rows) == N_TASKS * N_CRITERIA


def test_each_node_has_a_name_of_its_own_and_all_criteria_are_in_its_leaves(planted):
    n_namings = sum(map(is_naming, planted.calls))

    nodes = planted.command.sql("select * from capability_nodes order by position")

    names = {node["name"].casefold() for node in nodes}
    leaves = [node for node in nodes if node["is_leaf"]]
    assert 4 < len(nodes) <= n_namings + 1
    assert len(names) == len(nodes)
    assert nodes[0]["n_criteria"] == N_TASKS * N_CRITERIA
    assert sum(leaf["n_criteria"] for leaf in leaves) == N_TASKS * N_CRITERIA


def test_a_finished_analysis_makes_no_call(planted):
    assert "nothing is missing, no model call made" in planted.second_stderr
    assert planted.n_calls == len(planted.calls)


def test_scores_are_those_of_plain_loops(planted):
    members = planted.members()
    scores = planted.command.sql("from capability_scores")

    assert {score["model"] for score in scores} == set(MODELS)
    for score in scores:
        rightness = defaultdict(list)
        for verdict in planted.verdicts:
            criterion_id = verdict["criterion"]
            is_member = criterion_id in members[score["node_id"]]
            if is_member and verdict["model"] == score["model"]:
                is_right = verdict["criteria_met"] != is_undesired(criterion_id)
                rightness[verdict["task"]].append(is_right)
        # All weights have the same size here, so the min-normalised score is a plain share.
        expected = np.mean([np.mean(values) for values in rightness.values()])
        assert score["value"] == pytest.approx(expected)
        assert score["n_tasks"] == len(rightness)
        if score["ci_low"] is not None:
            assert score["ci_low"] < score["value"] < score["ci_high"]


def test_the_planted_weakness_alone_is_confirmed(planted):
    members = planted.members()
    planted_criteria = {
        verdict["criterion"]
        for verdict in planted.verdicts
        if topic_of(verdict["criterion"]) == WEAK
    }

    weaknesses = planted.weaknesses("weak")["weaknesses"]

    weak_criteria = set[str]()
    for weakness in weaknesses:
        weak_criteria |= members[weakness["node_id"]]
    assert weak_criteria == planted_criteria
    assert weaknesses[0]["gap_ci_high"] < 0
    assert weaknesses[0]["p_confirmed"] < 0.01
    assert weaknesses[0]["n_tasks"] + weaknesses[0]["n_tasks_found"] <= N_TASKS
    assert planted.weaknesses("even")["weaknesses"] == []


def test_a_weakness_is_confirmed_compared_with_another_model_too(planted):
    assert planted.weaknesses("weak", "--than", "even")["weaknesses"]


def test_each_weakness_has_examples_of_its_topic(planted):
    result = planted.weaknesses("weak")

    weak_nodes = {weakness["node_id"] for weakness in result["weaknesses"]}
    assert {example["node_id"] for example in result["examples"]} == weak_nodes
    assert all(TOPICS[WEAK] in example["title"] for example in result["examples"])


def whole_criterion(request, number: int) -> HttpResponse:
    """Phrase a criterion by itself, and return vectors for texts."""
    if is_naming(request):
        return describing(request, number)
    if "messages" not in request:
        return HttpResponse()
    return HttpResponse(json.dumps({"capability": criterion_of(prompt_of(request))}))


@pytest.mark.long
def test_vectors_of_phrases_come_from_the_embedding_model_once(command):
    with FaultServer(whole_criterion) as provider:
        configure(
            command,
            provider,
            dataset={"source": "sample"},
            embedding=endpoint("embedder", provider.api_base),
        )
        command("ingest")
        command("assemble")
        command("capabilities")
        n_calls = len(provider.book)
        command("capabilities")

    vectors = command.sql("from phrase_embeddings")
    trees = command.sql("select distinct vectors from capability_trees")
    embedding_calls = [
        entry for entry in provider.entries if entry.path == "/v1/embeddings"
    ]
    assert len({row["phrase"] for row in vectors}) == len(vectors)
    assert len(embedding_calls) == len(vectors)
    assert {row["status"] for row in vectors} == {"ok"}
    assert {len(row["vector"]) for row in vectors} == {64}
    assert sum(row["prompt_tokens"] for row in vectors) > len(vectors)
    assert trees == [{"vectors": "embedder"}]
    assert len(provider.book) == n_calls
