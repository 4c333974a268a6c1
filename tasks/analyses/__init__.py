"""The paper's analyses: labels of tasks, reviews of rubrics, the tree of capabilities."""

from tasks.config.models import Analyst
from tasks.run.judge_configs import target_of


def provenance(analyst_column: str, analyst: Analyst, template_hash: str) -> dict[str, str]:
    """Return the columns with the origin of a row: its analyst, and the hash of the template."""
    return {
        analyst_column: analyst.label,
        f"{analyst_column}_config_hash": target_of(analyst).config_hash,
        "template_hash": template_hash,
    }
