"""A model under several conditions: what is configured and stored."""

from collections.abc import Mapping
from datetime import UTC, datetime

from tasks.config.job import Job
from tasks.measures import Row
from tasks.rules.text.characters import did_you_mean
from warehouse import Reader

Definitions = Mapping[str, Mapping[str, str]]
"""The name that a model's conditions share -> condition -> the label of the model under it, the baseline first."""


def stored_conditions(reader: Reader, benchmark: str) -> Definitions:
    """The conditions that are stored of a benchmark."""
    rows = reader.rows("select * from condition_sets where benchmark = ? order by shared_model", [benchmark])
    return {
        row["shared_model"]: dict(zip(row["condition_names"], row["condition_models"], strict=True))
        for row in rows
        if row["condition_names"]
    }


def new_conditions(reader: Reader, job: Job) -> list[Row]:
    """The rows of `condition_sets` that make what is stored the same as what is configured.

    A configuration without the key changes nothing, so that one warehouse can serve several configurations.
    """
    if "conditions" not in job.settings.model_fields_set:
        return []
    benchmark, configured = job.settings.benchmark, job.settings.conditions
    stored = stored_conditions(reader, benchmark)
    now = datetime.now(UTC)
    return [
        {"benchmark": benchmark, "shared_model": name, "condition_names": list(labels),
         "condition_models": list(labels.values()), "created_at": now}
        for name in sorted({*stored, *configured})
        for labels in [configured.get(name, {})]
        if [*stored.get(name, {}).items()] != [*labels.items()]
    ]  # fmt: skip


def unknown_labels(reader: Reader, job: Job) -> list[str]:
    """One line for each label of a condition that is neither configured nor the model of a stored response."""
    query = "select distinct model from responses where benchmark = ? order by model"
    stored = [row["model"] for row in reader.rows(query, [job.settings.benchmark])]
    known = list(dict.fromkeys([*(model.label for model in job.settings.models), *(job.named_models or ()), *stored]))
    return [
        f"conditions.{name}.{condition}: {label!r} is neither a configured model nor one with stored responses"
        f"{did_you_mean(label, known)}; known: {', '.join(known) or 'none'}"
        for name, labels in job.settings.conditions.items()
        for condition, label in labels.items()
        if label not in known
    ]
