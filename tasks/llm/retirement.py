"""When providers switch models off, as the configuration or LiteLLM's local table says."""

import importlib.metadata
from datetime import date

from tasks.llm.request import Target, table_entry

ANNOUNCED_DAYS = (90, 30, 7, 0)
"""How many days before a model is switched off a night announces it; elsewhere it is announced all
the time from the first of them on.
"""


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
    if end_date is None or (end_date - today).days > max(ANNOUNCED_DAYS):
        return None
    source = f"(LiteLLM {importlib.metadata.version('litellm')})"
    if target.retires_on is not None:
        source = "(`retires_on`)"
    return f"{end_of(target.name, end_date, today)} {source}"


def end_of(name: str, last_day: date, today: date) -> str:
    """Return a clause on the end of a model, with the name that a reader knows."""
    verb = "was" if last_day <= today else "will be"
    return f"{name} {verb} switched off on {last_day}"
