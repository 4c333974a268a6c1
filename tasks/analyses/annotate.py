"""Annotate: labels of tasks by a model, one call for each task and vocabulary, and the agreement of
labels.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from itertools import groupby, product
from operator import itemgetter
from typing import Any

from tasks.analyses import assembled, provenance
from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Vocabulary
from tasks.config.job import Job
from tasks.config.models import Analyst
from tasks.prompts import load_analysis_template
from tasks.rules.conversation import prompt_on
from tasks.rules.errors import UsageError
from tasks.rules.identity import digest, template_hash
from tasks.rules.text.characters import hint_on, storable
from tasks.rules.verdict import VerdictError, json_object, strict_format
from tasks.run.calls import Analysis, Columns, Item, ReplySpec
from tasks.run.missing_work import Conversation, WantedTasks
from warehouse import Reader

REMINDER = (
    'Reply again with only the JSON object: {"explanation": "...", "primary": "...", "secondary":'
    ' ["..."]}, with labels exactly as they are given.'
)


def reply_format(
    labels: Collection[str], most_secondary: int, *, is_listed: bool
) -> dict[str, Any]:
    """Return the structured output to request; only labels that the prompt lists are allowed."""
    label = {"type": "string", "enum": list(labels)} if is_listed else {"type": "string"}
    secondary = {
        "type": "array",
        "items": label,
        "maxItems": most_secondary,
    }
    return strict_format(
        "labels",
        {
            "explanation": {"type": "string"},
            "primary": label,
            "secondary": secondary,
        },
    )


def read_labels(
    reply: str, labels: Collection[str], most_secondary: int, *, omits_think_tag: bool = False
) -> Mapping[str, Any]:
    """Return the columns of an annotation from a reply.

    Each label must exactly match a known one, and be named once.

    Raises:
        VerdictError: the reply is anything else.
    """
    content = json_object(reply, omits_think_tag=omits_think_tag)
    primary = content.get("primary")
    secondary = content.get("secondary", [])
    explanation = content.get("explanation", "")
    if not isinstance(secondary, list) or not isinstance(explanation, str):
        raise VerdictError("secondary is not a list, or explanation is not a text")
    named = [primary, *secondary]
    for label in named:
        if not isinstance(label, str) or label not in labels:
            raise VerdictError(f"{str(label)[:60]!r} is not a label")
    if len(set(named)) < len(named) or len(secondary) > most_secondary:
        raise VerdictError(
            f"a label is named twice, or there are more than {most_secondary} secondary labels"
        )
    return {
        "primary_label": primary,
        "secondary_labels": secondary,
        "explanation": storable(explanation),
    }


TEMPLATE = "annotation_v1"
_UNANSWERED = {
    "primary_label": None,
    "secondary_labels": None,
    "explanation": None,
}


def refuse_unready(job: Job) -> None:
    """Refuse a job that cannot annotate.

    Raises:
        UsageError: it has no annotator or no vocabularies, or an unknown one.
    """
    if not job.settings.annotator:
        raise UsageError(
            "annotator: no model is configured that labels tasks; name one under `annotator:`"
        )
    if any(annotator.label == "released" for annotator in job.settings.annotator):
        raise UsageError(
            "annotator: the label 'released' stands for the data set's own labels; give it"
            " another one"
        )
    known = load_benchmark(job.settings.benchmark).annotations
    if not known:
        raise UsageError(
            f"{job.settings.benchmark} declares no vocabulary (`annotations`) to label tasks with"
        )
    for name in job.vocabularies:
        if name not in known:
            raise UsageError(
                f"{name}: {job.settings.benchmark} has no such vocabulary{hint_on(name, known)}"
            )


def _items(job: Job, wanted: WantedTasks, reader: Reader, annotator: Analyst) -> list[Item]:
    """Return an item for each vocabulary, task and trial; fields without labels of a kind are left
    out.
    """
    rows = reader.select("tasks", "field, task_id", **wanted.key, task_id=list(wanted.task_ids))
    conversations = assembled(reader, wanted)
    by_field = {
        field: {row["task_id"]: conversations[row["task_id"]] for row in of_field}
        for field, of_field in groupby(rows, key=itemgetter("field"))
    }
    return [
        item
        for kind, vocabulary in wanted.benchmark.annotations.items()
        if kind in (job.vocabularies or wanted.benchmark.annotations)
        for field, of_field in by_field.items()
        if vocabulary.labels_of(field)
        for item in _items_of_field(wanted.key, annotator, kind, vocabulary, field, of_field)
    ]


def _items_of_field(
    key: Mapping[str, str],
    annotator: Analyst,
    kind: str,
    vocabulary: Vocabulary,
    field: str | None,
    conversations: Mapping[str, Conversation],
) -> Iterator[Item]:
    """Yield the items of an annotator on the tasks of a field, for one kind of label, in each
    trial.
    """
    labels = vocabulary.labels_of(field)
    most = vocabulary.most_secondary
    template = load_analysis_template(TEMPLATE)
    listed = "".join(f"- {label}: {meaning}\n" for label, meaning in labels.items())
    begin = {  # all prompts of a field and kind begin with this
        "<<question>>": vocabulary.instruction,
        "<<labels>>": f"Labels:\n{listed}\n" if vocabulary.is_listed else "",
        "<<most_secondary>>": str(most),
    }
    read = partial(
        read_labels,
        labels=labels,
        most_secondary=most,
        omits_think_tag=annotator.omits_think_tag,
    )
    shape = reply_format(labels, most, is_listed=vocabulary.is_listed)
    reply_spec: ReplySpec[Columns] = ReplySpec(read, shape, REMINDER)
    template_id = template_hash(
        template, begin["<<question>>"], begin["<<labels>>"], begin["<<most_secondary>>"]
    )
    origin = provenance("annotator", annotator, template_id)
    for (task_id, conversation), trial in product(
        conversations.items(), range(1, annotator.trials + 1)
    ):
        known = {
            **key,
            "task_id": task_id,
            "conversation_id": conversation.conversation_id,
            "kind": kind,
            **origin,
            "trial": trial,
        }
        yield Item(
            digest(
                "annotation",
                known["benchmark"],
                known["dataset_revision"],
                known["task_id"],
                known["conversation_id"],
                known["kind"],
                known["annotator"],
                known["annotator_config_hash"],
                known["template_hash"],
                known["trial"],
            ),
            f"{kind} {field}",
            {**known, **_UNANSWERED},
            reply_spec,
            partial(prompt_on, template, conversation.messages, "", more=begin),
            trial,
        )


ANNOTATION = Analysis(
    "annotate", "annotator", "task_annotations", "annotation_id", "annotator", _items
)
