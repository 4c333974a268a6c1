"""Conditions of models: configured and stored ones, their comparisons, and tests that are not
stored yet.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import sql
from tasks.config.job import Job
from tasks.measures import CONDITION, Steps
from tasks.rules.errors import UsageError
from tasks.rules.text.characters import hint_on
from warehouse import Reader

Definitions = Mapping[str, Mapping[str, str]]
"""Shared name of a model -> condition -> the label of the model under this condition; the baseline
comes first.
"""


def stored_conditions(reader: Reader, benchmark: str) -> Definitions:
    """Return the stored conditions of a benchmark."""
    return {
        row["shared_model"]: dict(zip(row["condition_names"], row["condition_models"], strict=True))
        for row in reader.select("condition_sets", order="shared_model", benchmark=benchmark)
        if row["condition_names"]
    }


def new_conditions(reader: Reader, job: Job) -> list[dict[str, Any]]:
    """Return the rows of `condition_sets` that make the stored conditions equal to the configured
    ones.

    A configuration without the key `conditions` changes nothing, so several configurations can
    share a warehouse.
    """
    if "conditions" not in job.settings.model_fields_set:
        return []
    benchmark = job.settings.benchmark
    configured = job.settings.conditions
    stored = stored_conditions(reader, benchmark)
    now = datetime.now(UTC)
    return [
        {
            "benchmark": benchmark,
            "shared_model": name,
            "condition_names": list(labels),
            "condition_models": list(labels.values()),
            "created_at": now,
        }
        for name in sorted({*stored, *configured})
        for labels in [configured.get(name, {})]
        if [*stored.get(name, {}).items()] != [*labels.items()]
    ]


def unknown_labels(reader: Reader, job: Job) -> list[str]:
    """Return one line for each label in a condition that is neither configured nor in a stored
    response.
    """
    stored = reader.select("responses", "distinct model", benchmark=job.settings.benchmark)
    configured = (model.label for model in job.settings.models)
    known = list(
        dict.fromkeys([*configured, *(job.named_models or ()), *(row["model"] for row in stored)])
    )
    return [
        f"conditions.{name}.{condition}: {label!r} is neither a configured model nor one with"
        f" stored responses{hint_on(label, known)}"
        for name, labels in job.settings.conditions.items()
        for condition, label in labels.items()
        if label not in known
    ]


def definitions_of(reader: Reader, job: Job) -> Definitions:
    """Return the configured conditions, or the stored ones if the configuration has none.

    Raises:
        UsageError: there are no conditions, or a label is unknown.
    """
    is_configured = "conditions" in job.settings.model_fields_set
    if is_configured and (wrong := unknown_labels(reader, job)):
        raise UsageError("; ".join(wrong))
    definitions = (
        job.settings.conditions
        if is_configured
        else stored_conditions(reader, job.settings.benchmark)
    )
    if not definitions:
        raise UsageError(
            "no conditions are configured or stored: list under `conditions` the labels that are"
            " one model, such as `conditions: {gpt-5.6-sol: {baseline: gpt-5.6-sol-plain, web"
            " search: gpt-5.6-sol-search}}`"
        )
    known = sorted(
        {*definitions, *(label for labels in definitions.values() for label in labels.values())}
    )
    unknown = sorted(set(job.named_models or ()) - set(known))
    if unknown:
        raise UsageError(f"--model {unknown[0]}: no condition has it{hint_on(unknown[0], known)}")
    return definitions


def labels_of(definitions: Definitions, models: Sequence[str]) -> tuple[str, ...]:
    """Return the labels that names stand for: all labels of a model's shared name; a label stands
    for itself.
    """
    return tuple(label for name in models for label in definitions.get(name, {"": name}).values())


def current_steps(
    reader: Reader,
    benchmark: str,
    definitions: Definitions,
) -> tuple[Mapping[str, str], Mapping[str, Any]]:
    """Return CTEs that replace the stored definitions and tests by these definitions and new tests.

    The second value has their parameters. Nothing is written.
    """
    records = [
        {
            "shared_model": name,
            "condition_names": list(labels),
            "condition_models": list(labels.values()),
        }
        for name, labels in definitions.items()
    ]
    given = {"conditions": json.dumps(records), "conditions_of": benchmark}
    views = sql.behind({"condition_sets", "intermediate.condition_tests"})
    steps = {"condition_sets": sql.read("queries/compare/condition_sets")}
    steps |= {view.name.removeprefix(f"{sql.INTERMEDIATE}."): view.query for view in views}
    fresh = json.dumps(
        CONDITION.fresh(reader, Steps(steps, given), benchmark=benchmark), default=str
    )
    # It keeps its place before the steps that read it.
    steps["condition_tests"] = sql.read("queries/compare/condition_tests")
    return steps, {**given, "fresh": fresh}


def not_compared(
    definitions: Definitions,
    models: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
) -> list[str]:
    """Return a sentence for each condition that has no comparison."""
    compared = {(row["shared_model"], row["condition"]) for row in rows}
    return [
        f"{name}, {condition} ({label}): no verdicts in this selection under a judge that also"
        " judged its baseline."
        for name, labels in definitions.items()
        for condition, label in list(labels.items())[1:]
        if (name, condition) not in compared and (not models or name in models or label in models)
    ]
