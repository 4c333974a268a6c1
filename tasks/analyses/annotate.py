"""Annotate: labels of tasks by a model, with one call for each task and vocabulary."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

from tasks.analyses import provenance
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
from tasks.run.missing_work import Conversation, WantedTasks, assembled_conversations
from warehouse import Reader

REMINDER = (
    'Reply again with only the JSON object: {"explanation": "...", "primary": "...", "secondary":'
    ' ["..."]}, with labels exactly as they are given.'
)


def reply_format(
    labels: Collection[str],
    most_secondary: int,
    *,
    is_listed: bool,
) -> dict[str, Any]:
    """Return the structured output to request; only labels that the prompt lists are allowed."""
    label: dict[str, Any] = {"type": "string"}
    if is_listed:
        label["enum"] = list(labels)
    secondary = {"type": "array", "items": label, "maxItems": most_secondary}
    properties = {"explanation": {"type": "string"}, "primary": label, "secondary": secondary}
    return strict_format("labels", properties)


def read_labels(
    reply: str,
    labels: Collection[str],
    most_secondary: int,
    *,
    omits_think_tag: bool = False,
) -> Mapping[str, Any]:
    """Return the columns of an annotation from a reply.

    Each label must be exactly one of the vocabulary's, and be named once.

    Raises:
        VerdictError: the reply is anything else.
    """
    content = json_object(reply, omits_think_tag=omits_think_tag)
    primary = content.get("primary")
    secondary = content.get("secondary", [])
    explanation = content.get("explanation", "")
    if not isinstance(secondary, list) or not isinstance(explanation, str):
        raise VerdictError("secondary is not a list, or explanation is not a text")
    chosen_labels = [primary, *secondary]
    for label in chosen_labels:
        if not isinstance(label, str) or label not in labels:
            raise VerdictError(f"{str(label)[:60]!r} is not a label")
    if len(set(chosen_labels)) < len(chosen_labels) or len(secondary) > most_secondary:
        raise VerdictError(
            f"a label is named twice, or there are more than {most_secondary} secondary labels"
        )
    return {
        "primary_label": primary,
        "secondary_labels": secondary,
        "explanation": storable(explanation),
    }


TEMPLATE = "annotation_v1"
_IDENTITY = (
    "benchmark",
    "dataset_revision",
    "task_id",
    "conversation_id",
    "kind",
    "annotator",
    "annotator_config_hash",
    "template_hash",
    "trial",
)
"""The columns that decide the id of an annotation, in the order of the hash."""


def refuse_unready_annotation(job: Job) -> None:
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
    vocabularies = load_benchmark(job.benchmark).annotations
    if not vocabularies:
        raise UsageError(
            f"{job.benchmark} declares no vocabulary (`annotations`) to label tasks with"
        )
    for name in job.vocabularies:
        if name not in vocabularies:
            hint = hint_on(name, vocabularies)
            raise UsageError(f"{name}: {job.benchmark} has no such vocabulary{hint}")


def _items(job: Job, selected_tasks: WantedTasks, reader: Reader, annotator: Analyst) -> list[Item]:
    """Return an item for each vocabulary, task and trial.

    Fields without labels of a kind are left out.
    """
    rows = reader.select(
        "tasks",
        "field, task_id",
        **selected_tasks.key,
        task_id=list(selected_tasks.task_ids),
    )
    conversations = assembled_conversations(reader, selected_tasks, selected_tasks.task_ids)
    conversations_by_field: dict[str | None, dict[str, Conversation]] = defaultdict(dict)
    for row in rows:
        conversations_by_field[row["field"]][row["task_id"]] = conversations[row["task_id"]]
    items: list[Item] = []
    for kind, vocabulary in selected_tasks.benchmark.annotations.items():
        if job.vocabularies and kind not in job.vocabularies:
            continue
        for field, field_conversations in conversations_by_field.items():
            if vocabulary.labels_of(field):
                items += _field_items(
                    selected_tasks.key,
                    annotator,
                    kind,
                    vocabulary,
                    field,
                    field_conversations,
                )
    return items


def _field_items(
    key: Mapping[str, str],
    annotator: Analyst,
    kind: str,
    vocabulary: Vocabulary,
    field: str | None,
    conversations: Mapping[str, Conversation],
) -> Iterator[Item]:
    """Yield the items of an annotator on the tasks of a field, for one kind of label."""
    labels = vocabulary.labels_of(field)
    most_secondary = str(vocabulary.most_secondary)
    listed_labels = ""
    if vocabulary.is_listed:
        lines = [f"- {label}: {meaning}\n" for label, meaning in labels.items()]
        listed_labels = f"Labels:\n{''.join(lines)}\n"
    template = load_analysis_template(TEMPLATE)
    template_id = template_hash(template, vocabulary.instruction, listed_labels, most_secondary)
    texts = {  # all prompts of a field and kind begin with these
        "<<question>>": vocabulary.instruction,
        "<<labels>>": listed_labels,
        "<<most_secondary>>": most_secondary,
    }
    origin = provenance("annotator", annotator, template_id)
    reply_spec = _reply_spec(labels, vocabulary, annotator)
    trials = range(1, annotator.trials + 1)
    for (task_id, conversation), trial in product(conversations.items(), trials):
        identity = {
            **key,
            "task_id": task_id,
            "conversation_id": conversation.conversation_id,
            "kind": kind,
            **origin,
            "trial": trial,
        }
        yield Item(
            row_id=digest("annotation", *(identity[name] for name in _IDENTITY)),
            group=f"{kind} {field}",
            columns={
                **identity,
                "primary_label": None,
                "secondary_labels": None,
                "explanation": None,
            },
            reply_spec=reply_spec,
            prompt=partial(prompt_on, template, conversation.messages, "", extra_texts=texts),
            trial=trial,
        )


def _reply_spec(
    labels: Collection[str],
    vocabulary: Vocabulary,
    annotator: Analyst,
) -> ReplySpec[Columns]:
    read = partial(
        read_labels,
        labels=labels,
        most_secondary=vocabulary.most_secondary,
        omits_think_tag=annotator.omits_think_tag,
    )
    shape = reply_format(labels, vocabulary.most_secondary, is_listed=vocabulary.is_listed)
    return ReplySpec(read, shape, REMINDER)


ANNOTATION = Analysis(
    stage="annotate",
    settings_key="annotator",
    table="task_annotations",
    id_column="annotation_id",
    analyst_column="annotator",
    items_of=_items,
)
