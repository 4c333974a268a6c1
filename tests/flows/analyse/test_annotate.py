"""`prbench annotate` against a scripted provider: its calls, the stored rows, and the use of the
labels.
"""

import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass

import pytest

from tasks.benchmarks import load_benchmark
from tests.faults.behaviours import HttpResponse, Request, prompt_of
from tests.faults.server import FaultServer
from tests.flows.conftest import N_TASKS, Command
from tests.kit import Row, endpoint, row, written

pytestmark = pytest.mark.slow
WORDS_BY_KIND = {
    "decision_type": "Which kind of decision",
    "economic_pathway": "economic consequence",
    "jurisdiction": "Whose",
}
"""Kind of label -> words that only its prompt has."""
TASKS = "select task_id, field, decision_types, economic_pathways from tasks order by task_id"


def kind_of(prompt: str) -> str:
    [kind] = [kind for kind, words in WORDS_BY_KIND.items() if words in prompt]
    return kind


JURISDICTIONS = ["DE", "US-CA", "EU", "NONE"]
"""Some codes of jurisdictions, which no prompt lists."""


def labels_in(prompt: str) -> list[str]:
    listing = prompt.partition("Labels:\n")[2].partition("\n\n")[0]
    return re.findall(r"^- (.+?): ", listing, re.MULTILINE) or JURISDICTIONS


def labelled(request, _: int) -> HttpResponse:
    """Return a label chosen by a hash of model and prompt, in a third of the cases with a second
    one.
    """
    prompt = prompt_of(request)
    labels = labels_in(prompt)
    seed = hashlib.sha256((request["model"] + prompt).encode()).digest()
    index = seed[0] % len(labels)
    secondary = []
    if seed[1] % 3 == 0 and "further labels, at most 0" not in prompt:
        secondary = [labels[(index + 1) % len(labels)]]
    reply = {
        "explanation": "so",
        "primary": labels[index],
        "secondary": secondary,
    }
    return HttpResponse(json.dumps(reply))


@dataclass(frozen=True)
class Annotation:
    """The sample, labelled twice by one annotator and once by another.

    Attributes:
        calls: those of the first execution.
        n_calls: the number of calls of both executions.
        released: the tasks with the data set's own labels, in order.
        stderr: the messages of a second execution.
    """

    command: Command
    calls: list[Request]
    n_calls: int
    released: list[Row]
    stderr: str


@pytest.fixture(scope="module")
def annotation(tmp_path_factory) -> Annotation:
    command = Command(tmp_path_factory.mktemp("annotated"))
    with FaultServer(labelled) as provider:
        command.configure(
            dataset={"source": "sample"},
            warehouse="data",
            models=[],
            judges=[],
            annotator=[
                endpoint("ann", provider.api_base, trials=2),
                endpoint("bob", provider.api_base),
            ],
        )
        command("ingest")
        command("assemble")
        released = command.sql(TASKS)
        command("annotate")
        calls = list(provider.book)
        stderr = command("annotate").stderr
        return Annotation(
            command,
            calls,
            len(provider.book),
            released,
            stderr,
        )


def test_each_task_is_labelled_once_by_each_annotator_with_each_vocabulary(
    annotation,
):
    counts = Counter(
        (call["model"], kind_of(prompt_of(call))) for call in annotation.calls
    )

    for kind in WORDS_BY_KIND:
        assert counts["ann", kind] == 2 * N_TASKS
        assert counts["bob", kind] == N_TASKS


def test_stored_labels_are_those_of_the_vocabulary(annotation):
    vocabularies = load_benchmark("prbench").annotations
    fields = {row["task_id"]: row["field"] for row in annotation.released}

    annotations = annotation.command.sql("select * from task_annotations")

    # Two trials of one annotator, one of the other.
    assert len(annotations) == len(WORDS_BY_KIND) * (2 + 1) * N_TASKS
    for stored in annotations:
        labels = vocabularies[stored["kind"]].labels_of(fields[stored["task_id"]])
        assert stored["status"] == "ok"
        assert {stored["primary_label"], *stored["secondary_labels"]} <= labels.keys()


@pytest.mark.parametrize("column", ["decision_types", "economic_pathways"])
def test_the_own_labels_of_the_data_set_stay_and_missing_ones_are_filled(
    annotation,
    column,
):
    tasks = annotation.command.sql(TASKS)

    for released, task in zip(annotation.released, tasks, strict=True):
        assert task[column]
        if released[column]:
            assert task[column] == released[column]


@pytest.mark.parametrize(
    ("kind", "column"),
    [("decision_type", "decision_types"), ("economic_pathway", "economic_pathways")],
)
def test_each_label_says_whether_the_data_set_or_an_annotator_has_set_it(
    annotation,
    kind,
    column,
):
    rows = annotation.command.sql(
        f"select distinct task_id, source from labelled_tasks where kind = '{kind}'"
    )

    sources = {row["task_id"]: row["source"] for row in rows}
    for task in annotation.released:
        source = "released" if task[column] else "annotated"
        assert sources[task["task_id"]] == source


def test_a_kind_without_own_labels_is_annotated_for_every_task(annotation):
    rows = annotation.command.sql(
        "select distinct task_id, source from labelled_tasks where kind = 'jurisdiction'"
    )

    assert len(rows) == N_TASKS
    assert {row["source"] for row in rows} == {"annotated"}


def test_a_finished_annotation_makes_no_call(annotation):
    assert "nothing is missing, no model call made" in annotation.stderr
    assert annotation.n_calls == len(annotation.calls)


def test_an_annotator_named_like_the_data_set_s_own_labels_is_refused(command):
    written(command.folder / "data", {"runs": [row("runs")]})
    command.configure(
        dataset={"source": "sample"},
        warehouse="data",
        annotator=[endpoint("released", "http://127.0.0.1:9/v1")],
    )

    stderr = command("annotate", code=2).stderr

    assert "the label 'released' stands for the data set's own labels" in stderr
