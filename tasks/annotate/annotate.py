"""Annotate: labels of tasks by a model, one call for each task and vocabulary."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import sql
from tasks.annotate.reply import REMINDER, read_labels, reply_format
from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Vocabulary
from tasks.config.job import Job
from tasks.config.models import Analyst
from tasks.prompts import load_analysis_template
from tasks.rules.conversation import Message, prompt_on
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.identity import digest, template_hash
from tasks.rules.text.characters import did_you_mean
from tasks.run.asking import Analysis, Columns, Item, Question
from tasks.run.judgings import target_of
from tasks.run.missing_work import Conversation, WantedTasks, conversations_of
from warehouse import Reader

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


@dataclass(frozen=True)
class _Labelling:
    """What an annotator is asked about the tasks of a field, for one kind of label."""

    annotator: Analyst
    wanted: WantedTasks
    kind: str
    vocabulary: Vocabulary
    field: str | None

    @cached_property
    def _places(self) -> dict[str, str]:
        """What all prompts of a field and kind begin with."""
        labels = self.vocabulary.labels_of(self.field)
        listed = "".join(f"- {label}: {meaning}\n" for label, meaning in labels.items())
        return {
            "<<question>>": self.vocabulary.question,
            "<<labels>>": f"Labels:\n{listed}\n" if self.vocabulary.is_listed else "",
            "<<most_secondary>>": str(self.vocabulary.most_secondary),
        }

    @cached_property
    def _question(self) -> Question[Columns]:
        labels, most = tuple(self.vocabulary.labels_of(self.field)), self.vocabulary.most_secondary
        read = partial(read_labels, labels=labels, most_secondary=most, omits_think_tag=self.annotator.omits_think_tag)
        return Question(read, reply_format(labels, most, is_listed=self.vocabulary.is_listed), REMINDER)

    @cached_property
    def _made_by(self) -> dict[str, str]:
        template = load_analysis_template(TEMPLATE)
        return {
            "annotator": self.annotator.label,
            "annotator_config_hash": target_of(self.annotator).config_hash,
            "template_hash": template_hash(template, *self._places.values()),
        }

    def items(self, task_id: str, conversation: Conversation) -> Iterator[Item]:
        """A task's items, one for each trial."""
        for trial in range(1, self.annotator.trials + 1):
            known = {
                **self.wanted.key, "task_id": task_id, "conversation_id": conversation.conversation_id,
                "kind": self.kind, **self._made_by, "trial": trial,
            }  # fmt: skip
            yield Item(
                digest("annotation", *known.values()), f"{self.kind} {self.field}", {**known, **_UNANSWERED},
                self._question, partial(self._prompt, conversation.messages), trial,
            )  # fmt: skip

    def _prompt(self, messages: tuple[Message, ...]) -> str:
        return prompt_on(load_analysis_template(TEMPLATE), messages, "", more=self._places)


def _items(job: Job, wanted: WantedTasks, reader: Reader, annotator: Analyst) -> list[Item]:
    """A call for each vocabulary, task and trial; a field without labels of a kind is left out."""
    rows = reader.rows(sql.read("questions/analyses/fields_of_tasks"), wanted.key)
    fields = {row["task_id"]: row["field"] for row in rows}
    conversations = conversations_of(reader, wanted, wanted.task_ids)
    if len(conversations) < len(wanted.task_ids):
        raise PipelineError("the conversations are not assembled; run `prbench assemble` first, it makes no call")
    found = []
    for kind, vocabulary in wanted.benchmark.annotations.items():
        if job.vocabularies and kind not in job.vocabularies:
            continue
        for field in dict.fromkeys(fields[task_id] for task_id in wanted.task_ids):
            if vocabulary.labels_of(field):
                labelling = _Labelling(annotator, wanted, kind, vocabulary, field)
                of_field = (task_id for task_id in wanted.task_ids if fields[task_id] == field)
                found += [item for task_id in of_field for item in labelling.items(task_id, conversations[task_id])]
    return found


ANNOTATION = Analysis("annotate", "annotator", "task_annotations", "annotation_id", _items)
