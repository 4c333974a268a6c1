"""The paper's analyses (labels of tasks, reviews of rubrics, the tree of capabilities), and their
shared functions.
"""

from collections.abc import Mapping

from tasks.config.models import Analyst
from tasks.rules.errors import PipelineError
from tasks.run.judge_configs import target_of
from tasks.run.missing_work import Conversation, WantedTasks, conversations_of
from warehouse import Reader


def assembled(reader: Reader, wanted: WantedTasks) -> Mapping[str, Conversation]:
    """Return the conversations of the wanted tasks, by task id.

    Raises:
        PipelineError: a conversation is not assembled.
    """
    conversations = conversations_of(reader, wanted, wanted.task_ids)
    if len(conversations) < len(wanted.task_ids):
        raise PipelineError(
            "the conversations are not assembled; run `prbench assemble` first, it makes no call"
        )
    return conversations


def provenance(by: str, analyst: Analyst, template: str) -> dict[str, str]:
    """Return the columns with the origin of a row: who made it (the column `by`), and the hash of
    the template.
    """
    return {
        by: analyst.label,
        f"{by}_config_hash": target_of(analyst).config_hash,
        "template_hash": template,
    }
