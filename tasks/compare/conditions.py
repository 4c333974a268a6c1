"""Conditions of models, as they are configured now: what of them is compared, and tests that are not stored yet."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sql
from tasks.aggregate.conditions import Definitions, stored_conditions, unknown_labels
from tasks.config.job import Job
from tasks.measures import CONDITION
from tasks.rules.errors import UsageError
from warehouse import Reader

_STEPS = (
    "condition_members", "condition_pairs", "condition_values", "condition_figures", "condition_task_values",
    "condition_answers",
)  # fmt: skip
"""The views of `sql/intermediate/conditions/` that read the definitions, each after those that it reads."""
_VIEWS = ("condition_differences", "condition_criteria")


def definitions_of(reader: Reader, job: Job) -> Definitions:
    """The configured conditions, or the stored ones if the configuration has none.

    Raises:
        UsageError: there are no conditions, or a label is unknown.
    """
    if "conditions" not in job.settings.model_fields_set:
        definitions = stored_conditions(reader, job.settings.benchmark)
    else:
        definitions = job.settings.conditions
        if wrong := unknown_labels(reader, job):
            raise UsageError("; ".join(wrong))
    if not definitions:
        raise UsageError(
            "no conditions are configured or stored: say under `conditions` which labels are one model, such as "
            "`conditions: {gpt-5: {baseline: gpt-5-plain, web search: gpt-5-search}}`"
        )
    known = sorted({*definitions, *(label for labels in definitions.values() for label in labels.values())})
    if unknown := sorted(set(job.named_models or ()) - set(known)):
        raise UsageError(f"--model {unknown[0]}: no condition has it; known: {', '.join(known)}")
    return definitions


def labels_of(definitions: Definitions, models: Sequence[str]) -> tuple[str, ...]:
    """The labels that are meant by names that conditions share, or by labels."""
    return tuple(label for name in models for label in definitions.get(name, {"": name}).values())


def current_steps(
    reader: Reader, benchmark: str, definitions: Definitions
) -> tuple[Mapping[str, str], Mapping[str, Any]]:
    """First steps that put these definitions, and tests that are not stored yet, in place of the stored ones.

    With them come the values that they ask for; nothing is written.
    """
    records = [
        {"shared_model": name, "condition_names": list(labels), "condition_models": list(labels.values())}
        for name, labels in definitions.items()
    ]
    steps = {"condition_sets": sql.read("queries/compare/condition_sets")}
    steps |= {name: sql.read(f"intermediate/conditions/{name}") for name in _STEPS}
    given = {"conditions": json.dumps(records), "conditions_of": benchmark}
    fresh = [
        {name: value for name, value in row.items() if name not in {"note", "created_at"}}
        for row in CONDITION.fresh(reader, (steps, given), benchmark=benchmark)
    ]
    steps["condition_tests"] = sql.read("queries/compare/condition_tests")
    steps["condition_measures"] = sql.read("intermediate/conditions/condition_measures")
    views = {name: sql.read(f"marts/conditions/{name}") for name in _VIEWS}
    return {**steps, **views}, {**given, "fresh": json.dumps(fresh)}


def not_compared(definitions: Definitions, models: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """A sentence for each condition of which there is no comparison."""
    compared = {(row["shared_model"], row["condition"]) for row in rows}
    return [
        f"{name}, {condition} ({label}): no verdicts in this selection under a judge that also judged its "
        f"{baseline!r} ({of_baseline}) in the same vintage."
        for name, ((baseline, of_baseline), *others) in ((name, labels.items()) for name, labels in definitions.items())
        for condition, label in others
        if (not models or name in models or label in models) and (name, condition) not in compared
    ]
