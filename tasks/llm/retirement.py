"""When providers switch models off, as the configuration or LiteLLM's local table says."""

import importlib.metadata
from datetime import date, timedelta

from tasks.llm.request import Target, table_entry

NOTICE_PERIOD = timedelta(days=90)
"""The end of a model is announced this long before it."""


def retirement_date(target: Target) -> date | None:
    """Return the day on which a model is switched off: the configured one, else that of the table;
    None if no day is known.

    `openai/` with an address is any server that speaks OpenAI's protocol, of which the table knows
    nothing.
    """
    if target.retires_on is not None:
        return target.retires_on
    if target.name.startswith("openai/") and target.api_base is not None:
        return None
    stated_date = table_entry(target.name).get("deprecation_date")
    return date.fromisoformat(stated_date) if stated_date else None


def is_retired(target: Target, today: date) -> bool:
    """Return whether a model has been switched off."""
    end_date = retirement_date(target)
    return end_date is not None and end_date <= today


def retirement_notice(target: Target, today: date) -> str | None:
    """Return a sentence on the end of a model that has ended or ends soon; None for any other
    model.
    """
    end_date = retirement_date(target)
    if end_date is None or end_date > today + NOTICE_PERIOD:
        return None
    source = f"(LiteLLM {importlib.metadata.version('litellm')})"
    if target.retires_on is not None:
        source = "(`retires_on`)"
    if end_date <= today:
        return f"{target.name} was switched off on {end_date} {source}"
    return f"{target.name} will be switched off on {end_date} {source}"
