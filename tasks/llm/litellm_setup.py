"""LiteLLM, imported when it is first needed and set up so that it does nothing behind our back."""

import atexit
import gc
import importlib
import os
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from typing import Any

_must_price: ContextVar[bool] = ContextVar("must_price", default=True)


@cache
def litellm() -> Any:
    """Return the module `litellm`; its import takes seconds."""
    # The price table comes with the package; without this the import asks the network for it three times.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOG", "ERROR")
    import litellm as library

    library.suppress_debug_info = True
    library.telemetry = False
    # A parameter that a model does not take is an error to see, not one to drop in silence.
    library.drop_params = False
    # Counting tokens for a Llama asks the hub for its tokenizer, six times and for half a minute where there is none.
    library.disable_hf_tokenizer_download = True
    price = library.response_cost_calculator
    library.response_cost_calculator = lambda **call: price(**call) if _must_price.get() else None
    return library


def collect_seldom() -> None:
    """Look for garbage after 50,000 new objects instead of 700, since looking takes a sixth of the time of imports."""
    gc.set_threshold(50_000)


@cache
def warm_up() -> None:
    """Import what LiteLLM and PyArrow would import in the middle of the first calls, while replies wait unread."""
    litellm()
    for name in ("fastapi", "pandas"):
        importlib.import_module(name)
    # What the imports made stays; the collector need not walk through it again and again. At the end it may: DuckDB's
    # binding prints pages about objects that are still there then.
    gc.freeze()
    atexit.register(gc.unfreeze)


@cache
def make_known(name: str) -> None:
    """Give a model that LiteLLM's table lacks an entry without prices.

    For a model without one, LiteLLM tries all its rules for names, several times in every call. Only once a name:
    LiteLLM makes an entry longer, and its look-ups slower, when it is registered again.
    """
    library = litellm()
    provider, _, bare = name.partition("/")
    if bare and name not in library.model_cost and bare not in library.model_cost:
        library.register_model({name: {"litellm_provider": provider, "mode": "chat"}})


def spare_work(*, must_price: bool) -> None:
    """Have LiteLLM leave out what nobody reads after the calls of this task, a fifth of what a call takes.

    That is what it puts together for its loggers and, unless `must_price`, what the call cost.
    """
    litellm()
    _must_price.set(must_price)
    with suppress(ImportError):  # no part of LiteLLM's interface: without it calls only take longer
        from litellm._internal_context import is_internal_call

        is_internal_call.set(True)


@cache
def decision_providers() -> tuple[str, ...]:
    """Return the providers whose decision models LiteLLM can call."""
    litellm()
    from litellm.decisions.call import supported_decisions_providers

    return tuple(sorted(supported_decisions_providers()))


@cache
def can_follow_schema(name: str) -> bool:
    """Return whether LiteLLM knows that a model supports structured output."""
    return bool(litellm().supports_response_schema(model=name))
