"""A phrase for the capability that each criterion needs, and the vectors of the phrases: one call each."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import sql
from tasks.capabilities.replies import NAME, PHRASE, read_text, reminder, reply_shape, vector_question
from tasks.capabilities.tree import refuse_without_library
from tasks.config.job import Job
from tasks.config.models import Analyst
from tasks.prompts import load_analysis_template
from tasks.rules.conversation import prompt_on
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.identity import digest, template_hash
from tasks.run.asking import Analysis, Item, Question
from tasks.run.judgings import target_of
from tasks.run.missing_work import WantedTasks, conversations_of
from warehouse import Reader

TEMPLATE = "capability_v1"
Row = Mapping[str, Any]


def refuse_unready(job: Job) -> None:
    """Refuse a job that names no model for capabilities, or where the tree could not be made in the end.

    Raises:
        UsageError: it does not, or scikit-learn is not installed.
    """
    refuse_without_library()
    if not job.settings.capability_model:
        raise UsageError(
            "no model describes capabilities; set `capabilities: {model: {name: ...}}` in the configuration"
        )


def made_by(analyst: Analyst, template: str) -> dict[str, str]:
    """The columns that say who made a row."""
    return {
        "model": analyst.label, "model_config_hash": target_of(analyst).config_hash, "template_hash": template,
    }  # fmt: skip


def text_question(analyst: Analyst, kind: str) -> Question[Row]:
    """What asks for a short text: a phrase or a name."""
    column = {PHRASE: "phrase", NAME: "name"}[kind]
    return Question(
        lambda reply: {column: read_text(reply, kind, omits_think_tag=analyst.omits_think_tag)},
        reply_shape(kind), reminder(kind),
    )  # fmt: skip


def phrase_items(job: Job, wanted: WantedTasks, reader: Reader, analyst: Analyst) -> list[Item]:
    """A phrase for each criterion of the wanted tasks.

    Raises:
        PipelineError: a task has no assembled conversation.
    """
    template = load_analysis_template(TEMPLATE)
    common = {**wanted.key, **made_by(analyst, template_hash(template))}
    rows = reader.rows(sql.read("questions/capabilities/criteria"), {**wanted.key, "tasks": list(wanted.task_ids)})
    conversations = conversations_of(reader, wanted, wanted.task_ids)
    question = text_question(analyst, PHRASE)
    items = []
    for row in rows:
        conversation = conversations.get(row["task_id"])
        if conversation is None:
            raise PipelineError(
                f"task {row['task_id']}: its conversation is not assembled; run `prbench assemble` first"
            )
        given = {name: row[name] for name in ("task_id", "criterion_id", "criterion_hash")}
        items.append(Item(
            row_id=digest("capability", common, given, conversation.conversation_id),
            group=row["task_id"],
            columns={**common, **given, "phrase": None},
            question=question,
            make_prompt=partial(prompt_on, template, conversation.messages, row["title"]),
        ))  # fmt: skip
    return items


def phrase_identity(job: Job) -> dict[str, str]:
    """What phrases of the configured model have in common."""
    by = made_by(job.settings.capability_model[0], template_hash(load_analysis_template(TEMPLATE)))
    return {name: by[name] for name in ("model_config_hash", "template_hash")}


def stored_phrases(job: Job, reader: Reader, key: Mapping[str, str]) -> list[dict[str, Any]]:
    """All criteria that have a phrase by the configured model, by field, task and criterion."""
    return list(reader.rows(sql.read("questions/capabilities/phrases"), {**key, **phrase_identity(job)}))


def embedding_items(job: Job, wanted: WantedTasks, reader: Reader, analyst: Analyst) -> list[Item]:
    """A vector for each phrase; equal phrases have one."""
    common = {**wanted.key, **made_by(analyst, "")}
    phrases = sorted({row["phrase"] for row in stored_phrases(job, reader, wanted.key)})
    return [
        Item(
            row_id=digest("embedding", common, phrase),
            group=phrase,
            columns={**common, "phrase": phrase, "vector": None},
            question=vector_question(),
            make_prompt=partial(str, phrase),
        )
        for phrase in phrases
    ]


PHRASES = Analysis("capabilities", "capability_model", "criterion_capabilities", "capability_id", phrase_items, "model")
EMBEDDINGS = Analysis(
    "capabilities", "capability_embedding", "phrase_embeddings", "embedding_id", embedding_items, "model"
)
