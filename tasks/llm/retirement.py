"""When providers switch models off, as the configuration or LiteLLM's local table says."""

import importlib.metadata
from datetime import date

from tasks.llm.request import Target, table_entry

ANNOUNCED_DAYS = (90, 30, 7, 0)
"""How many days before a model is switched off a night sends an alert. Commands and the report name
its end from the first of them on.
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


def retirement_notice(target: Target, today: date) -> str | None:
    """Return a sentence on the end of a model that has ended or ends soon; None for any other
    model.
    """
    retires_on = retirement_date(target)
    if retires_on is None or (retires_on - today).days > max(ANNOUNCED_DAYS):
        return None
    source = f"(LiteLLM {importlib.metadata.version('litellm')})"
    if target.retires_on is not None:
        source = "(`retires_on`)"
    return f"{retirement_text(target.name, retires_on, today)} {source}"


def retirement_text(name: str, retires_on: date, today: date) -> str:
    """Return a clause on the end of a model; `name` is how it is shown."""
    verb = "was" if retires_on <= today else "will be"
    return f"{name} {verb} switched off on {retires_on}"
