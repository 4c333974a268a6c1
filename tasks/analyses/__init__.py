"""The paper's analyses: labels of tasks, reviews of rubrics, the tree of capabilities."""

from collections.abc import Mapping

from tasks.config.models import Analyst
from tasks.rules.errors import PipelineError
from tasks.run.judge_configs import target_of
from tasks.run.missing_work import Conversation, WantedTasks, conversations_of
from warehouse import Reader


def assembled_conversations(
    reader: Reader,
    selected_tasks: WantedTasks,
) -> Mapping[str, Conversation]:
    """Return the conversations of the wanted tasks, by task id.

    Raises:
        PipelineError: a conversation is not assembled.
    """
    conversations = conversations_of(reader, selected_tasks, selected_tasks.task_ids)
    if len(conversations) < len(selected_tasks.task_ids):
        raise PipelineError(
            "the conversations are not assembled; run `prbench assemble` first, it makes no call"
        )
    return conversations


def provenance(analyst_column: str, analyst: Analyst, template_hash: str) -> dict[str, str]:
    """Return the columns with the origin of a row: its analyst, and the hash of the template."""
    return {
        analyst_column: analyst.label,
        f"{analyst_column}_config_hash": target_of(analyst).config_hash,
        "template_hash": template_hash,
    }
