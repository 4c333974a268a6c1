"""LiteLLM, imported when it is first needed, without its own network requests, retries and silent
changes.
"""

import gc
import importlib.metadata
import json
import os
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

from tasks.llm.variables import refuse_unreadable_certificates

_must_price: ContextVar[bool] = ContextVar("must_price", default=True)


@cache
def litellm() -> Any:
    """Return the module `litellm`; its import takes seconds.

    Raises:
        UsageError: it cannot be imported, because certificates that the environment names cannot be
            read.
    """
    # The price table comes with the package; without this the import asks the network for it three
    # times.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOG", "ERROR")
    try:
        import litellm as library
    except OSError:  # the import reads the certificates
        refuse_unreadable_certificates()
        raise

    library.suppress_debug_info = True
    library.telemetry = False
    # An unsupported parameter must be an error, not be dropped silently.
    library.drop_params = False
    # Counting tokens for a Llama would ask the hub six times for a tokenizer, which takes half a
    # minute if it has none.
    library.disable_hf_tokenizer_download = True
    # `skip_unused_work` switches prices off for calls that do not need them.
    price = library.response_cost_calculator
    library.response_cost_calculator = lambda **call: price(**call) if _must_price.get() else None
    return library


@cache
def model_table() -> dict[str, dict[str, Any]]:
    """Return LiteLLM's table of models, as it is in its package, which need not be imported."""
    library = importlib.metadata.distribution("litellm")
    path = library.locate_file("litellm/model_prices_and_context_window_backup.json")
    table: dict[str, dict[str, Any]] = json.loads(Path(str(path)).read_bytes())
    return table


def model_entry(name: str) -> dict[str, Any]:
    """Return the entry of a name in LiteLLM's table, or of what it is an alias of; empty without
    one.
    """
    table = model_table()
    entry = table.get(name, {})
    return table.get(entry.get("alias_of", ""), entry)


def collect_seldom() -> None:
    """Collect garbage after 50,000 new objects; the default of 700 takes a sixth of the time of
    imports.
    """
    gc.set_threshold(50_000)


@cache
def warm_up() -> None:
    """Import modules that LiteLLM and PyArrow would else import during the first calls, while
    replies wait unread.
    """
    litellm()
    for name in ("fastapi", "pandas"):
        importlib.import_module(name)


@cache
def make_known(name: str) -> None:
    """Give a model that LiteLLM's table lacks an entry without prices.

    For a model without an entry, LiteLLM tries all its rules for names, several times in every
    call. A name is registered only once, because a repeated registration makes the entry longer and
    look-ups slower.
    """
    library = litellm()
    provider, _, bare = name.partition("/")
    if bare and name not in library.model_cost and bare not in library.model_cost:
        library.register_model({name: {"litellm_provider": provider, "mode": "chat"}})


def skip_unused_work(*, must_price: bool) -> None:
    """Make LiteLLM skip work after the calls of this task that nobody uses, a fifth of their time.

    The skipped work prepares data for loggers and, unless `must_price`, computes the cost of the
    call.
    """
    litellm()
    _must_price.set(must_price)
    # It is not in LiteLLM's interface; if it is missing, calls only take longer.
    with suppress(ImportError):
        from litellm._internal_context import is_internal_call

        is_internal_call.set(True)


@cache
def decision_providers() -> tuple[str, ...]:
    """Return the providers whose decision models LiteLLM can call."""
    litellm()
    from litellm.decisions.call import supported_decisions_providers

    return tuple(sorted(supported_decisions_providers()))
