"""LiteLLM, imported when it is first needed and set up so that it does nothing behind our back."""

import importlib
import os
from functools import cache
from typing import Any


@cache
def litellm() -> Any:
    """The module `litellm`; its import takes seconds."""
    # The price table comes with the package; without this the import asks the network for it three times.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOG", "ERROR")
    import litellm as library

    library.suppress_debug_info = True
    library.telemetry = False
    # A parameter that a model does not take is an error to see, not one to drop in silence.
    library.drop_params = False
    return library


def warm_up() -> None:
    """Import what LiteLLM and PyArrow would import in the middle of the first calls, while replies wait unread."""
    litellm()
    for name in ("fastapi", "pandas"):
        importlib.import_module(name)
