"""Conditions: which labels are one model with other tools, another effort, or another system prompt."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

BASELINE = "baseline"
"""The name of the condition that the others are compared with; without it, the first one is."""
_Name = Annotated[str, Field(min_length=1)]


def _with_names(given: Any) -> Any:
    """A mapping whose keys are texts.

    Raises:
        ValueError: YAML read a key as something else.
    """
    strange = [key for key in given if not isinstance(key, str)] if isinstance(given, dict) else []
    if strange:
        raise ValueError(
            f"the name {strange[0]!r} is not a text; put it in quotes (YAML reads on, off, yes and no as true or false)"
        )
    return given


def _checked(labels: dict[str, str]) -> dict[str, str]:
    """Conditions with the baseline first.

    Raises:
        ValueError: there is nothing to compare, or two conditions are the same label.
    """
    if len(labels) < 2:
        raise ValueError("needs at least two conditions: `baseline`, and one to compare with it")
    condition_of: dict[str, str] = {}
    for condition, label in labels.items():
        if label in condition_of:
            raise ValueError(f"{condition_of[label]!r} and {condition!r} have the same label {label!r}")
        condition_of[label] = condition
    first = BASELINE if BASELINE in labels else next(iter(labels))
    return {first: labels[first], **labels}


_Labels = Annotated[dict[_Name, _Name], BeforeValidator(_with_names), AfterValidator(_checked)]
Conditions = Annotated[dict[_Name, _Labels], BeforeValidator(_with_names)]
"""The name that a model's conditions share -> condition -> the label of the model under it, the baseline first."""
