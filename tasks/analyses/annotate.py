"""Annotate: labels of tasks by a model, one call for each task and vocabulary, and how far labels agree."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import combinations, groupby, product
from operator import itemgetter
from typing import Any

import numpy as np

import sql
from tasks.analyses import assembled, json_shape
from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Vocabulary
from tasks.config.job import Job
from tasks.config.models import Analyst
from tasks.prompts import load_analysis_template
from tasks.rules.conversation import prompt_on
from tasks.rules.errors import UsageError
from tasks.rules.identity import digest, template_hash
from tasks.rules.statistics.agreement import MEASURES, LabelAgreement, label_agreement
from tasks.rules.text.characters import did_you_mean, storable
from tasks.rules.verdict import VerdictError, json_object
from tasks.run.asking import Analysis, Columns, Item, Question
from tasks.run.judgings import target_of
from tasks.run.missing_work import Conversation, WantedTasks
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

REMINDER = (
    'Reply again with only the JSON object: {"explanation": "...", "primary": "...", "secondary": ["..."]}, with '
    "labels exactly as they are given."
)


def reply_format(labels: Collection[str], most_secondary: int, *, is_listed: bool) -> dict[str, Any]:
    """The structured output that is asked for; labels that the prompt lists are the only ones allowed."""
    label = {"type": "string", "enum": list(labels)} if is_listed else {"type": "string"}
    secondary = {"type": "array", "items": label, "maxItems": most_secondary}
    return json_shape("labels", {"explanation": {"type": "string"}, "primary": label, "secondary": secondary})


def read_labels(
    reply: str, labels: Collection[str], most_secondary: int, *, omits_think_tag: bool = False
) -> Mapping[str, Any]:
    """The columns of an annotation that a reply holds.

    A label must be a known one, exactly; none is named twice.

    Raises:
        VerdictError: for anything else.
    """
    answer = json_object(reply, omits_think_tag=omits_think_tag)
    primary, secondary = answer.get("primary"), answer.get("secondary", [])
    if not isinstance(secondary, list):
        raise VerdictError("secondary is no list")
    named = [primary, *secondary]
    for label in named:
        if not isinstance(label, str) or label not in labels:
            raise VerdictError(f"{str(label)[:60]!r} is no label")
    if len(set(named)) < len(named):
        raise VerdictError("a label is named twice")
    if len(secondary) > most_secondary:
        raise VerdictError(f"more than {most_secondary} secondary labels")
    explanation = answer.get("explanation", "")
    if not isinstance(explanation, str):
        raise VerdictError("explanation is no text")
    return {"primary_label": primary, "secondary_labels": secondary, "explanation": storable(explanation)}


TEMPLATE = "annotation_v1"
RELEASED = "released"
"""What the data set's own labels are compared under."""
_UNANSWERED = {"primary_label": None, "secondary_labels": None, "explanation": None}


def refuse_unready(job: Job) -> None:
    """Refuse a job that cannot annotate: without an annotator, without vocabularies, or with an unknown one.

    Raises:
        UsageError: it is one.
    """
    if not job.settings.annotator:
        raise UsageError("annotator: no model is configured that labels tasks; name one under `annotator:`")
    if any(annotator.label == RELEASED for annotator in job.settings.annotator):
        raise UsageError(f"annotator: the label {RELEASED!r} stands for the data set's own labels; give it another one")
    known = load_benchmark(job.settings.benchmark).annotations
    if not known:
        raise UsageError(f"{job.settings.benchmark} declares no vocabulary (`annotations`) to label tasks with")
    for name in job.vocabularies:
        if name not in known:
            near = did_you_mean(name, known) or f"; known are {', '.join(known)}"
            raise UsageError(f"{name}: {job.settings.benchmark} has no such vocabulary{near}")


def _items(job: Job, wanted: WantedTasks, reader: Reader, annotator: Analyst) -> list[Item]:
    """A call for each vocabulary, task and trial; a field without labels of a kind is left out."""
    fields = {row["task_id"]: row["field"] for row in reader.select("tasks", "task_id, field", **wanted.key)}
    conversations = assembled(reader, wanted)
    return [
        item
        for kind, vocabulary in wanted.benchmark.annotations.items()
        if kind in (job.vocabularies or wanted.benchmark.annotations)
        for field in dict.fromkeys(fields[task_id] for task_id in wanted.task_ids)
        if vocabulary.labels_of(field)
        for item in _items_of_field(
            wanted.key, annotator, kind, vocabulary, field,
            {task_id: conversations[task_id] for task_id in wanted.task_ids if fields[task_id] == field},
        )
    ]  # fmt: skip


def _items_of_field(
    key: Mapping[str, str], annotator: Analyst, kind: str, vocabulary: Vocabulary, field: str | None,
    conversations: Mapping[str, Conversation],
) -> Iterator[Item]:  # fmt: skip
    """What an annotator is asked about the tasks of a field, for one kind of label, in each trial."""
    labels, most, template = vocabulary.labels_of(field), vocabulary.most_secondary, load_analysis_template(TEMPLATE)
    listed = "".join(f"- {label}: {meaning}\n" for label, meaning in labels.items())
    begin = {  # what all prompts of a field and kind begin with
        "<<question>>": vocabulary.question,
        "<<labels>>": f"Labels:\n{listed}\n" if vocabulary.is_listed else "",
        "<<most_secondary>>": str(most),
    }
    read = partial(read_labels, labels=labels, most_secondary=most, omits_think_tag=annotator.omits_think_tag)
    question: Question[Columns] = Question(read, reply_format(labels, most, is_listed=vocabulary.is_listed), REMINDER)
    made_by = {
        "annotator": annotator.label, "annotator_config_hash": target_of(annotator).config_hash,
        "template_hash": template_hash(template, *begin.values()),
    }  # fmt: skip
    for (task_id, conversation), trial in product(conversations.items(), range(1, annotator.trials + 1)):
        known = {
            **key, "task_id": task_id, "conversation_id": conversation.conversation_id, "kind": kind, **made_by,
            "trial": trial,
        }  # fmt: skip
        yield Item(
            digest("annotation", *known.values()), f"{kind} {field}", {**known, **_UNANSWERED}, question,
            partial(prompt_on, template, conversation.messages, "", more=begin), trial,
        )  # fmt: skip


ANNOTATION = Analysis("annotate", "annotator", "task_annotations", "annotation_id", _items)


Labels = Mapping[str, frozenset[str]]
"""Task -> its labels of one kind."""
Row = dict[str, Any]
_COMPARISON = itemgetter("benchmark", "dataset_revision", "kind", "annotator", "compared_with")
_ENDS = ("", "_ci_low", "_ci_high")
_FIGURES = [f"{name}{end}" for name in MEASURES for end in _ENDS]


def measure_annotations(job: Job) -> StageReport:
    """Measure the agreement where labels have changed since the last time, and publish it."""
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        rows = list(_stale(reader))
    if rows:
        warehouse.write("annotation_agreement", rows)
        warehouse.publish()
    n_pairs = len({row["basis"] for row in rows})
    return StageReport("agreement", rows=len(rows), notes=[f"{n_pairs} comparisons of labels measured"])


def has_unmeasured(reader: Reader) -> bool:
    """Whether labels have changed since their agreement was measured."""
    return any(True for _ in _stale(reader))


def _stale(reader: Reader) -> Iterator[Row]:
    stored: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for row in reader.rows("from annotation_agreement"):
        stored[_COMPARISON(row)][row["label"]] = row["basis"]
    for key, given, expected in _pairs(reader):
        yield from _new(key, given, expected, stored)


def _pairs(reader: Reader) -> Iterator[tuple[Row, Labels, Labels]]:
    """What is compared: the key of a comparison, and the labels of its two sources."""
    found = reader.rows(sql.read("queries/analyses/labels_by_source"))
    for (benchmark, revision, kind), of_kind in groupby(found, key=itemgetter("benchmark", "dataset_revision", "kind")):
        by_source = {
            source: {row["task_id"]: frozenset(row["labels"]) for row in rows}
            for source, rows in groupby(of_kind, key=lambda row: row["source"])
        }
        released = by_source.pop(RELEASED, {})
        pairs = [(name, RELEASED, labels, released) for name, labels in by_source.items()]
        pairs += [(a, b, by_source[a], by_source[b]) for a, b in combinations(by_source, 2)]
        for annotator, other, given, expected in pairs:
            key = {"benchmark": benchmark, "dataset_revision": revision, "kind": kind, "annotator": annotator}
            yield {**key, "compared_with": other}, given, expected


def _new(key: Row, given: Labels, expected: Labels, stored: Mapping[tuple[str, ...], dict[str, str]]) -> list[Row]:
    """The rows of a comparison if its labels are others than those that were measured.

    A label that neither side uses any more has a row as well, which replaces the one that is stored.
    """
    tasks = sorted(given.keys() & expected.keys())
    basis = digest("labels", *key.values(), [[task, sorted(given[task]), sorted(expected[task])] for task in tasks])
    before = stored.get(_COMPARISON(key), {})
    if set(before.values()) == {basis} or not (tasks or before):
        return []
    labels = sorted({label for task in tasks for label in given[task] | expected[task]})
    flags, other_flags = (
        np.array([[label in of[task] for label in labels] for task in tasks]) for of in (given, expected)
    )
    measured = {each.label: each for each in (label_agreement(flags, other_flags, labels) if tasks else ())}
    return [
        {
            **key, "agreement_id": digest("label agreement", *key.values(), label), "label": label,
            "n_tasks": len(tasks), **_figures(measured.get(label)), "basis": basis, "created_at": datetime.now(UTC),
        }
        for label in (*measured, *sorted(before.keys() - measured.keys()))
    ]  # fmt: skip


def _figures(agreement: LabelAgreement | None) -> Row:
    """The columns of what was measured; None: the label is used by nobody."""
    if agreement is None:
        return {"n_annotated": 0, "n_compared_with": 0, "n_both": 0} | dict.fromkeys(_FIGURES)
    figures = {
        f"{name}{end}": None if math.isnan(value) else value
        for name in MEASURES
        for end, value in zip(_ENDS, (agreement.values[name], *agreement.intervals[name]), strict=True)
    }
    n_of_each = {"n_annotated": agreement.n_given, "n_compared_with": agreement.n_expected, "n_both": agreement.n_both}
    return n_of_each | figures
