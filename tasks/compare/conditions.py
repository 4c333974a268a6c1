"""Conditions of models: configured and stored ones, their comparisons, and tests that are not
stored yet.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import sql
from tasks.config.job import Job
from tasks.measures import CONDITION, Steps
from tasks.rules.errors import UsageError
from tasks.rules.text.characters import hint_on
from warehouse import Reader, Row

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


def new_conditions(reader: Reader, job: Job) -> list[Row]:
    """Return the rows of `condition_sets` that make the stored conditions equal to the configured
    ones.

    A configuration without the key `conditions` changes nothing, so several configurations can
    share a warehouse.
    """
    if "conditions" not in job.settings.model_fields_set:
        return []
    benchmark = job.benchmark
    configured = job.settings.conditions
    stored_definitions = stored_conditions(reader, benchmark)
    created_at = datetime.now(UTC)
    rows = []
    for name in sorted({*stored_definitions, *configured}):
        labels = configured.get(name, {})
        # The order of conditions counts.
        if list(stored_definitions.get(name, {}).items()) != list(labels.items()):
            rows.append(
                {
                    "benchmark": benchmark,
                    **_definition_columns(name, labels),
                    "created_at": created_at,
                }
            )
    return rows


def _definition_columns(name: str, labels: Mapping[str, str]) -> Row:
    """Return the columns of a model with its conditions."""
    return {
        "shared_model": name,
        "condition_names": list(labels),
        "condition_models": list(labels.values()),
    }


def unknown_labels(reader: Reader, job: Job) -> list[str]:
    """Return one line for each label in a condition that is neither configured nor in a stored
    response.
    """
    rows = reader.select("responses", "distinct model", benchmark=job.benchmark)
    labels = [row["model"] for row in rows]
    labels += job.settings.model_labels
    # The settings have only the named models; a condition may have any configured one.
    labels += job.configured_labels.get("model", ())
    lines = []
    for name, conditions in job.settings.conditions.items():
        for condition, label in conditions.items():
            if label not in labels:
                lines.append(
                    f"conditions.{name}.{condition}: {label!r} is neither a configured model nor"
                    f" one with stored responses{hint_on(label, labels)}"
                )
    return lines


def definitions_of(reader: Reader, job: Job) -> Definitions:
    """Return the configured conditions, or the stored ones if the configuration has none.

    Raises:
        UsageError: there are no conditions, or a label is unknown.
    """
    if "conditions" in job.settings.model_fields_set:
        wrong_labels = unknown_labels(reader, job)
        if wrong_labels:
            raise UsageError("; ".join(wrong_labels))
        definitions: Definitions = job.settings.conditions
    else:
        definitions = stored_conditions(reader, job.benchmark)
    if not definitions:
        raise UsageError(
            "no conditions are configured or stored: list under `conditions` the labels that are"
            " one model, such as `conditions: {gpt-5.6-sol: {baseline: gpt-5.6-sol-plain, web"
            " search: gpt-5.6-sol-search}}`"
        )
    names = set(definitions)
    for labels in definitions.values():
        names.update(labels.values())
    unknown_names = sorted(set(job.named_models or ()) - names)
    if unknown_names:
        hint = hint_on(unknown_names[0], names)
        raise UsageError(f"--model {unknown_names[0]}: no condition has it{hint}")
    return definitions


def model_labels_of(definitions: Definitions, models: Sequence[str]) -> tuple[str, ...]:
    """Return the labels that names stand for: all labels of a model's shared name; a label stands
    for itself.
    """
    labels = list[str]()
    for name in models:
        if name in definitions:
            labels += definitions[name].values()
        else:
            labels.append(name)
    return tuple(labels)


def current_steps(reader: Reader, benchmark: str, definitions: Definitions) -> Steps:
    """Return steps with the given definitions and their tests, in place of the stored ones. Nothing
    is written.
    """
    records = [_definition_columns(name, labels) for name, labels in definitions.items()]
    parameters = {"conditions": json.dumps(records), "conditions_of": benchmark}
    ctes = {"condition_sets": sql.read("queries/compare/condition_sets")}
    for view in sql.models_above({"condition_sets", "intermediate.condition_tests"}):
        ctes[view.name.removeprefix(f"{sql.INTERMEDIATE}.")] = view.query
    tests = CONDITION.fresh(reader, Steps(ctes, parameters), benchmark=benchmark)
    # In place of the model's query, so it stays before the CTEs that read it.
    ctes["condition_tests"] = sql.read("queries/compare/condition_tests")
    return Steps(ctes, {**parameters, "fresh": json.dumps(tests, default=str)})


def not_compared(
    definitions: Definitions,
    models: Sequence[str],
    rows: Iterable[Row],
) -> list[str]:
    """Return a sentence for each condition that has no comparison."""
    compared = {(row["shared_model"], row["condition"]) for row in rows}
    sentences = []
    for name, labels in definitions.items():
        # The first condition is the baseline.
        for condition, label in list(labels.items())[1:]:
            is_selected = not models or name in models or label in models
            if is_selected and (name, condition) not in compared:
                sentences.append(
                    f"{name}, {condition} ({label}): no verdicts in this selection under a judge"
                    " that also judged its baseline."
                )
    return sentences
