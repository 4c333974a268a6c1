"""The stored rules of coverage: what a configuration wants of a model, and the coverage that a
vintage needs.
"""

from datetime import UTC, datetime
from typing import Any

from tasks.config.job import Job
from tasks.run.judge_configs import model_hash
from warehouse import Reader, Warehouse

_KEY = ("benchmark", "model", "model_config_hash", "vintage")
OTHERS = ""
"""The label of the rule for models that are not configured."""


def store_coverage_rules(job: Job) -> None:
    """Store the rules of a job that are new."""
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        warehouse.write("coverage_rules", new_coverage_rules(reader, job))


def new_coverage_rules(reader: Reader, job: Job) -> list[dict[str, Any]]:
    """Return the rules of the configured models in their vintages, as far as they are not stored.

    Models of other configurations keep theirs, so that several configurations can share a
    warehouse.
    """
    benchmark = job.settings.benchmark
    wanted = {
        "benchmark": benchmark,
        "wanted_trials": job.settings.trials,
        "min_coverage": job.settings.coverage.min,
    }
    rules = [
        {
            **wanted,
            "model": OTHERS,
            "model_config_hash": OTHERS,
            "vintage": OTHERS,
        }
    ]
    for model in job.settings.models:
        if not model.is_imported:
            identity = {"model": model.label, "model_config_hash": model_hash(model)}
            rules.append(
                {
                    **wanted,
                    **identity,
                    "vintage": job.vintage_of(model),
                }
            )
    stored = {
        tuple(row[name] for name in _KEY): row
        for row in reader.select("coverage_rules", benchmark=benchmark)
    }
    now = datetime.now(UTC)
    new = []
    for rule in rules:
        earlier = stored.get(tuple(rule[name] for name in _KEY))
        if earlier is None or any(earlier[name] != value for name, value in rule.items()):
            new.append({**rule, "created_at": now})
    return new
