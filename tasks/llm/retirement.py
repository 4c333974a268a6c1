"""When providers switch models off, as far as LiteLLM's local table knows."""

import importlib.metadata
from datetime import date, timedelta

from tasks.llm.request import Target, table_entry

NOTICE_PERIOD = timedelta(days=90)
"""An end that is further away is not mentioned."""


def retirement_date(target: Target) -> date | None:
    """Return the day on which a model is switched off; None if no day is known.

    `openai/` with an address is any server that speaks OpenAI's protocol, of which the table knows
    nothing.
    """
    if target.name.startswith("openai/") and target.api_base is not None:
        return None
    stated_date = table_entry(target.name).get("deprecation_date")
    if not stated_date:
        return None
    return date.fromisoformat(stated_date)


def is_retired(target: Target, today: date) -> bool:
    """Return whether a model has been switched off."""
    last_day = retirement_date(target)
    return last_day is not None and last_day <= today


def retirement_notice(target: Target, today: date) -> str | None:
    """Return a sentence on the end of a model that has ended or ends soon; None for any other
    model.
    """
    last_day = retirement_date(target)
    if last_day is None or last_day > today + NOTICE_PERIOD:
        return None
    source = f"(LiteLLM {importlib.metadata.version('litellm')})"
    if last_day <= today:
        return f"{target.name} was switched off on {last_day} {source}"
    return f"{target.name} will be switched off on {last_day} {source}"
