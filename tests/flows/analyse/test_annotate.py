"""`prbench annotate` against a scripted provider: its calls, the stored rows, and the use of the
labels.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tasks.benchmarks import load_benchmark
from tests.faults.behaviours import HttpResponse, Request, prompt_of
from tests.faults.server import FaultServer
from tests.flows.conftest import Command
from tests.kit import endpoint

pytestmark = pytest.mark.slow
KINDS = {
    "decision_type": "Which kind of decision",
    "economic_pathway": "economic consequence",
    "jurisdiction": "Whose",
}
N_TASKS = 8


def kind_of(prompt: str) -> str:
    return next((kind for kind, words in KINDS.items() if words in prompt), "")


def labels_in(prompt: str) -> list[str]:
    listed = prompt.partition("Labels:\n")[2].partition("\n\n")[0]
    return re.findall(r"^- (.+?): ", listed, re.MULTILINE) or ["DE", "US-CA", "EU", "NONE"]


def labelled(request: Request, _: int) -> HttpResponse:
    """Return a label chosen by a hash of model and prompt, in a third of the cases with a second
    one.
    """
    prompt = prompt_of(request)
    labels = labels_in(prompt)
    seed = hashlib.sha256((request["model"] + prompt).encode()).digest()
    index = seed[0] % len(labels)
    has_second = seed[1] % 3 == 0 and "further labels, at most 0" not in prompt
    secondary = [labels[(index + 1) % len(labels)]] if has_second else []
    return HttpResponse(
        json.dumps(
            {
                "explanation": "so",
                "primary": labels[index],
                "secondary": secondary,
            }
        )
    )


@pytest.fixture
def provider() -> Iterator[FaultServer]:
    with FaultServer(labelled) as server:
        yield server


def ready(command: Command, provider: FaultServer, *annotators: dict[str, Any]) -> None:
    """The sample, assembled, with these annotators."""
    annotator = list(annotators) or endpoint("ann", provider.api_base)
    command.configure(
        dataset={"source": "sample"},
        warehouse="data",
        models=[],
        judges=[],
        annotator=annotator,
    )
    command("ingest", "-q")
    command("assemble", "-q")


def test_each_task_is_labelled_once_by_each_vocabulary(
    command: Command, provider: FaultServer
) -> None:
    ready(
        command,
        provider,
        endpoint("ann", provider.api_base, trials=2),
        endpoint("bob", provider.api_base),
    )
    labels = "select task_id, decision_types, economic_pathways from tasks order by task_id"
    before = command.sql(labels)
    command("annotate")
    calls = Counter((kind_of(prompt_of(each)), each["model"]) for each in provider.book)

    assert {
        (kind, name): N_TASKS * n for kind in KINDS for name, n in (("ann", 2), ("bob", 1))
    } == calls
    rows = command.sql("select * from task_annotations")
    assert Counter(row["status"] for row in rows) == {"ok": 9 * N_TASKS}
    known = load_benchmark("prbench").annotations
    fields = {
        row["task_id"]: row["field"] for row in command.sql("select task_id, field from tasks")
    }
    for row in rows:
        allowed = known[row["kind"]].labels_of(fields[row["task_id"]])
        assert {row["primary_label"], *row["secondary_labels"]} <= allowed.keys()

    # The data set's own labels stay, and missing ones are used.
    after = command.sql(labels)
    sources = command.sql(
        "select kind, source, count(distinct task_id)::int as n from labelled_tasks group by all"
    )
    n_of = {(row["kind"], row["source"]): row["n"] for row in sources}
    for kind, column in (
        ("decision_type", "decision_types"),
        ("economic_pathway", "economic_pathways"),
    ):
        assert sum(bool(row[column]) for row in before) == n_of.get((kind, "released"), 0)
        assert sum(not row[column] for row in before) == n_of.get((kind, "annotated"), 0)
        assert all(row[column] for row in after)
        assert all(
            not was[column] or was[column] == row[column]
            for was, row in zip(before, after, strict=True)
        )
    assert n_of["jurisdiction", "annotated"] == N_TASKS

    done = command("annotate")
    assert "nothing is missing, no model call made" in done.stderr
    assert len(provider.book) == 9 * N_TASKS


def test_an_annotator_named_like_the_data_set_s_own_labels_is_refused(
    command: Command, provider: FaultServer
) -> None:
    ready(command, provider, endpoint("released", provider.api_base))

    assert (
        "the label 'released' stands for the data set's own labels"
        in command("annotate", code=2).stderr
    )
