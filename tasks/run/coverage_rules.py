"""The stored rules of coverage: what a configuration wants of a model, and the coverage that a
vintage needs.
"""

from datetime import UTC, datetime

from tasks.config.job import Job
from tasks.run.judge_configs import model_hash
from warehouse import Reader, Row, Warehouse

OTHERS = ""
"""The label of the rule for models that are not configured."""


def store_coverage_rules(job: Job) -> None:
    """Store the rules of a job that are new."""
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        warehouse.write("coverage_rules", new_coverage_rules(reader, job))


def new_coverage_rules(reader: Reader, job: Job) -> list[Row]:
    """Return the rules of the configured models in their vintages, as far as they are not stored.

    Models of other configurations keep theirs, so that several configurations can share a
    warehouse.
    """
    rules = [_rule(job, OTHERS, OTHERS, OTHERS)]
    for model in job.settings.models:
        if not model.is_imported:
            rules.append(_rule(job, model.label, model_hash(model), job.vintage_of(model)))
    columns = ", ".join(rules[0])
    stored_rules = reader.select("coverage_rules", columns, benchmark=job.benchmark)
    created_at = datetime.now(UTC)
    return [{**rule, "created_at": created_at} for rule in rules if rule not in stored_rules]


def _rule(job: Job, label: str, config_hash: str, vintage: str) -> Row:
    """Return the rule of a model in a vintage."""
    return {
        "benchmark": job.benchmark,
        "model": label,
        "model_config_hash": config_hash,
        "vintage": vintage,
        "wanted_trials": job.settings.trials,
        "min_coverage": job.settings.coverage.min,
    }
